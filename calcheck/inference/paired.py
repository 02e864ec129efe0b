"""How two models differ on the same rows: intervals and p-values by resampling rows, and by swapping models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic

import numpy as np

from calcheck.distributions.lazy import LazyPredictive
from calcheck.errors import DataError
from calcheck.execution.context import RandomStream
from calcheck.inference.bootstrap import Replicates, Statistic
from calcheck.inference.intervals import acceleration, bca, percentile
from calcheck.inference.metric_protocol import InferableMetric, MetricT_co
from calcheck.inference.verdicts import (
    EQUAL,
    FEW_ROWS,
    NO_BOOTSTRAP,
    PERCENTILE_RESAMPLES,
    RESAMPLES,
    check_replicates,
    statistic_of,
)
from calcheck.lazy_inputs import same_inputs
from calcheck.predictions import Predictions
from calcheck.results import Inference
from calcheck.statistics.groups import Averages, MeanTerm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.results import RowResults

    Values = NDArray[np.float64]

SWAPS = 9_999
BLOCK = 1 << 21  # rows swapped at a time
DECIDES_NOTHING = (
    "resampling adds noise to both values, so the interval of the difference shows spread, and decides nothing"
)
SWITCHED_OFF = "no p-value: swapping was switched off (--permutations 0)"
NOT_RESAMPLED = "no p-value: resampling was switched off (--no-bootstrap)"
EXCHANGEABLE = "p is by swapping models alone, without resampling: it supposes that they are exchangeable"
OF_PREDICTIONS = "no p-value: the predictions alone decide it"
OWN = "no interval and no p-value of the difference: each bin is judged on its own"
NOT_KNOWN = (
    "no p-value: no test of its difference is known that holds where models are equally good and not exchangeable"
)


@dataclass(frozen=True, eq=False)
class ModelPair(Generic[MetricT_co]):
    """What a metric says of two models' predictions for the same n rows.

    Parameters
    ----------
    metric : Metric
        The metric.
    models : (Predictions, Predictions)
        Of both models; the difference is the second's value minus the first's.
    rows : (Rows, RowResults)
        What the metric says of each.
    """

    metric: MetricT_co
    models: tuple[Predictions, Predictions]
    rows: tuple[RowResults, RowResults]

    @property
    def plain(self) -> bool:
        """Whether the values are functions of means of columns, each row's of that row alone."""
        return self.metric.interval == "bca"

    @property
    def ties(self) -> bool:
        """Whether both values are equal, to rounding."""
        first, second = self.values()
        return abs(second - first) <= EQUAL * max(abs(first), abs(second))

    def values(self) -> tuple[float, float]:
        """Return the metric of both models."""
        first, second = (statistic_of(self.metric, rows).estimate() for rows in self.rows)
        return first, second

    def statistic(self) -> Statistic:
        """Return the difference as a function of means of both models' rows."""
        sides = [statistic_of(self.metric, rows) for rows in self.rows]
        n, metric = sides[0].averages.n, self.metric
        named = [(f"{side}.", each) for side, each in enumerate(sides)]
        terms = {mark + name: term for mark, each in named for name, term in each.averages.terms.items()}
        fixed = {mark + name: values for mark, each in named for name, values in each.fixed.items()}

        def difference(means: Mapping[str, Values], n: int) -> Values:
            first, second = (metric.value(_of_side(means, mark), n) for mark, _ in named)
            return np.asarray(second - first)

        return Statistic(Averages(terms, n), difference, fixed)


def _of_side(means: Mapping[str, Values], mark: str) -> dict[str, Values]:
    return {name.removeprefix(mark): values for name, values in means.items() if name.startswith(mark)}


def compare_pairs(
    pairs: Sequence[ModelPair[InferableMetric]], run: Run, *, swaps: int | None = None
) -> list[Inference]:
    r"""Say of each difference how far it can be trusted.

    Intervals come from resampling rows, the same ones of both models. What p-values come from depends on the metric.

    * Functions of means over rows: the larger of two. Swapping the models' predictions of a row at random gives
      differences D*, and :math:`p = (1 + \#\{|D^*| \ge |D|\}) / (R + 1)` is exact where models are exchangeable.
      Where they are as good as each other in another way it may be too small; the bootstrap of D over its standard
      error, centered and with equal tails, is right in the limit.
    * Functions of means that noise biases: the bootstrap of D, centered at its mean.
    * Quadratic forms of embeddings: the bootstrap of D over its standard error, from the influence of each row.

    Parameters
    ----------
    pairs : sequence of ModelPair
        All of them of the same n rows.
    run : Run
        Seed, confidence, resamples and progress.
    swaps : int, optional
        How often models are swapped, R, by default 9,999; 0 for no p-values.

    Returns
    -------
    list of Inference
        With ``low``, ``high``, ``interval`` and ``p_value``; ``warnings`` say why one of them is absent.
    """
    known = [_unfit(pair) or _by_influences(pair, run, swaps) for pair in pairs]
    fit = [pair for pair, found in zip(pairs, known, strict=True) if found is None]
    judged = [pair for pair in fit if pair.plain and pair.metric.alternative_in_use != "none"]
    resampled = dict(zip(map(id, fit), _resampled(fit, run), strict=True))
    chances = dict(zip(map(id, judged), _chances(judged, run, SWAPS if swaps is None else swaps), strict=True))
    return [
        found or _together(pair, resampled[id(pair)], chances.get(id(pair)), swaps)
        for pair, found in zip(pairs, known, strict=True)
    ]


def _together(
    pair: ModelPair[InferableMetric], resampled: Inference, swapped: float | None, swaps: int | None
) -> Inference:
    """Put the interval and the p-values of a difference together."""
    p = resampled.p_value
    if pair.metric.alternative_in_use == "none":
        return _without_p(resampled, OF_PREDICTIONS)
    if swaps == 0:
        return _without_p(resampled, SWITCHED_OFF)
    if swapped is None:
        return resampled if p is not None else _without_p(resampled, NOT_RESAMPLED)
    if p is None:
        return replace(resampled, p_value=swapped, warnings=(*resampled.warnings, EXCHANGEABLE))
    return replace(resampled, p_value=max(p, swapped))


def _without_p(inferred: Inference, *notes: str) -> Inference:
    return replace(inferred, p_value=None, warnings=(*inferred.warnings, *notes))


def _unfit(pair: ModelPair[InferableMetric]) -> Inference | None:
    """Say why a difference has neither interval nor p-value; None if it may have."""
    if pair.metric.interval == "own":
        return Inference(warnings=(OWN,))
    if not np.isfinite(pair.values()).all():
        return Inference(warnings=("no interval and no p-value of the difference: a value is not finite",))
    return None


def _by_influences(pair: ModelPair[InferableMetric], run: Run, swaps: int | None) -> Inference | None:
    """Judge a metric whose rows share one fit, by the influence of each row; None for other metrics."""
    if pair.metric.interval != "none":
        return None
    inferred = Inference(warnings=(f"no interval of the difference: {pair.metric.no_interval}",))
    if swaps == 0:
        return _without_p(inferred, SWITCHED_OFF)
    first, second = pair.models
    differ = "" if same_inputs(first.x, second.x) else "the models are conditioned on other inputs"
    if reason := differ or pair.metric.no_influences_reason(pair.rows[0]):
        return _without_p(inferred, f"no p-value: {reason}")
    try:
        terms = pair.metric.influences(_stacked(pair), run.quiet())
    except DataError as error:
        return _without_p(inferred, f"no p-value: {error}")
    if terms is None:
        return _without_p(inferred, NOT_KNOWN)
    centered = terms - terms.mean()
    replicates = Replicates([_studentized(centered)], run, stage=f"resampling for {pair.metric.name}")
    replicates.draw(run.resamples or RESAMPLES)
    return replace(inferred, p_value=_p_of_ratio(replicates.values[0], float(terms.sum()) / 2, centered))


def _studentized(influences: Values) -> Statistic:
    """Return the sum of centered influences over its standard error, as a function of means."""

    def ratio(means: Mapping[str, Values], n: int) -> Values:
        mean, square = means["influence"], means["square"]
        return np.asarray(np.sqrt(n) * mean / np.sqrt(np.maximum(square - mean**2, 0)))

    return Statistic.from_terms(
        {"influence": MeanTerm(influences), "square": MeanTerm(influences**2)}, len(influences), ratio
    )


def _p_of_ratio(ratios: Values, difference: float, influences: Values) -> float:
    """Compare a difference over its standard error with resampled ones, in either tail; what is undefined counts."""
    error = np.sqrt(np.sum(influences**2))
    if error == 0:
        return 1.0 if difference == 0 else 2 / (len(ratios) + 1)
    own = difference / error
    farther = min(np.sum(~(ratios < own)), np.sum(~(ratios > own)))
    return float(min(1.0, 2 * (1 + farther) / (len(ratios) + 1)))


def _resampled(pairs: Sequence[ModelPair[InferableMetric]], run: Run) -> list[Inference]:
    """Make the interval and the p-value by resampling of each difference; plain ones share their resamples."""
    n = len(pairs[0].models[0]) if pairs else 0
    if run.resamples == 0 or n == 1:
        why = "no interval: a single row cannot be resampled" if n == 1 else NO_BOOTSTRAP
        return [Inference(warnings=(why,)) for _ in pairs]
    plain = {id(pair): _PlainDifference(pair) for pair in pairs if pair.plain}
    if plain:
        each = [statistic for found in plain.values() for statistic in found.statistics]
        together = Replicates(each, run)
        together.draw(run.resamples or RESAMPLES)
        for found, values in zip(plain.values(), np.split(together.values, len(plain)), strict=True):
            found.replicates = values
    inferred = [plain[id(pair)].inference(run) if id(pair) in plain else _of_biased(pair, run) for pair in pairs]
    few = f"{n} rows are few: intervals by resampling are too narrow"
    return [
        replace(found, warnings=(*found.warnings, few)) if n < FEW_ROWS and found.interval else found
        for found in inferred
    ]


class _PlainDifference:
    """The difference of a function of means over rows, and of that over its standard error."""

    def __init__(self, pair: ModelPair[InferableMetric]) -> None:
        self.pair, self.statistic = pair, pair.statistic()
        self.left = self.statistic.leave_one_out()
        n = len(self.left)
        self.influences = np.sqrt((n - 1) / n) * (self.left.mean() - self.left)
        self.statistics = [self.statistic, _studentized(self.influences)]
        self.replicates: Values = np.empty((2, 0))

    def inference(self, run: Run) -> Inference:
        """Return the BCa interval, and the p-value of the ratio."""
        estimate = self.statistic.estimate()
        values, details, reason = check_replicates(self.replicates[0], estimate)
        p = _p_of_ratio(self.replicates[1], 0.0 if self.pair.ties else estimate, self.influences)
        if reason:
            return Inference(p_value=p, details=details, warnings=(reason,))
        bent = acceleration(self.left)
        limits = bca(values, estimate, bent, run.confidence)
        if not np.isfinite([limits.low, limits.high]).all():
            told = "no interval: the BCa interval is not defined; rows are too few"
            return Inference(p_value=p, details=details, warnings=(told,))
        details["bootstrap"] |= {"z0": limits.correction, "acceleration": bent}
        return Inference(low=limits.low, high=limits.high, interval="bca", p_value=p, details=details)


def _of_biased(pair: ModelPair[InferableMetric], run: Run) -> Inference:
    """Return percentiles of the difference of functions of means that noise biases, and the p-value by centring."""
    statistic = pair.statistic()
    replicates = Replicates([statistic], run, stage=pair.metric.name)
    replicates.draw(run.resamples or PERCENTILE_RESAMPLES)
    estimate = statistic.estimate()
    values, details, reason = check_replicates(replicates.values[0], estimate)
    if pair.ties or reason:
        p = 1.0 if pair.ties else None
        return Inference(p_value=p, details=details, warnings=(reason,) if reason else ())
    low, high = percentile(values, run.confidence)
    away = np.abs(replicates.values[0] - values.mean())
    p = float((1 + np.sum(~(away < abs(estimate)))) / (len(away) + 1))
    warnings = (DECIDES_NOTHING,)
    return Inference(low=low, high=high, interval="percentile", p_value=p, details=details, warnings=warnings)


def _swap_p_value(n: int, swaps: int, run: Run, stage: str) -> Iterator[NDArray[np.bool_]]:
    """Draw which rows are swapped, (b, n) at a time: the same ones whatever is compared, and however often."""
    size = max(1, BLOCK // n)
    for block, start in enumerate(range(0, swaps, size)):
        rng = run.rng(RandomStream.PERMUTATIONS, block)
        bits = rng.integers(0, 256, (min(size, swaps - start), -(-n // 8)), dtype=np.uint8)
        yield np.unpackbits(bits, axis=1, count=n).astype(np.bool_)
        run.progress(stage, min(1.0, (start + size) / swaps))


def _chances(pairs: Sequence[ModelPair[InferableMetric]], run: Run, swaps: int) -> list[float]:
    """Return p-values of functions of means of columns: swapping rows moves a sum from one model to the other."""
    if not pairs or not swaps:
        return [1.0] * len(pairs)
    sides = [[statistic_of(pair.metric, rows) for rows in pair.rows] for pair in pairs]
    gaps = [second.averages.columns - first.averages.columns for first, second in sides]  # (n, c) each
    n, columns = len(gaps[0]), np.concatenate(gaps, axis=1)
    moved = np.concatenate([rows.astype(np.float64) @ columns for rows in _swap_p_value(n, swaps, run, "swapping")]) / n
    found, at = [], 0
    for pair, (first, second), gap in zip(pairs, sides, gaps, strict=True):
        shifts = dict(zip(first.averages.terms, moved[:, at : at + gap.shape[1]].T, strict=True))
        at += gap.shape[1]
        own, others = first.averages.means(), second.averages.means()
        before = first.of_means({name: own[name] + shift for name, shift in shifts.items()}, n)
        after = second.of_means({name: others[name] - shift for name, shift in shifts.items()}, n)
        found.append(_p_value(after - before, pair.values()))
    return found


def _p_value(differences: Values, values: tuple[float, float]) -> float:
    """Compare a difference with those after swapping; rounding tells none apart, and what is undefined counts."""
    first, second = values
    reached = abs(second - first) - EQUAL * max(abs(first), abs(second))
    return float((1 + np.sum(~(np.abs(differences) < reached))) / (len(differences) + 1))


def _stacked(pair: ModelPair[InferableMetric]) -> Predictions:
    """Put the rows of one model below the other's.

    Raises
    ------
    DataError
        Their distributions have nothing in common.
    """
    first, second = pair.models
    a, b = first.predictive, second.predictive
    if a is None or b is None or type(a) is not type(b):
        told = " and ".join(each.display_name for each in (a, b) if each is not None)
        msg = f"distributions of different families ({told}) cannot be swapped row by row"
        raise DataError(msg)
    if isinstance(a, LazyPredictive):
        msg = "distributions that do not fit in memory are not swapped row by row"
        raise DataError(msg)
    y = None if first.y is None or second.y is None else np.concatenate([first.y, second.y])
    columns = {name: np.concatenate([each.columns[name] for each in pair.models]) for name in pair.metric.columns()}
    x = None if first.x is None or second.x is None else np.concatenate([first.inputs(), second.inputs()])
    return Predictions(y=y, predictive=a.join([b]), x=x, has_embedding=first.has_embedding, columns=columns)
