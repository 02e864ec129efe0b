"""How two models differ on the same rows: intervals by resampling rows, p-values by swapping the models row by row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import DataError, NumericalError
from calcheck.execution.run import Stream
from calcheck.inference.bootstrap import Replicates, Statistic
from calcheck.inference.intervals import acceleration, bca, percentile
from calcheck.inference.verdicts import (
    EQUAL,
    FEW_ROWS,
    NO_BOOTSTRAP,
    RESAMPLES,
    RESAMPLES_OF_MANY_COLUMNS,
    statistic_of,
    usable,
)
from calcheck.inputs import equal
from calcheck.metric import Inference
from calcheck.predictions import InMemory, Predictions
from calcheck.predictive.deferred import Deferred
from calcheck.statistics.groups import Averages

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from calcheck.execution.run import Run
    from calcheck.metric import Metric, Rows

    Values = NDArray[np.float64]

SWAPS, SWAPS_OF_METRICS, SWAPS_OF_LONG_METRICS = 9_999, 999, 199
LONG = 20_000  # rows from which on metrics that are computed again for each swap are computed less often
BLOCK = 1 << 21  # rows swapped at a time
DECIDES_NOTHING = (
    "resampling adds noise to both values, so the interval of the difference shows spread, and decides nothing"
)
SWITCHED_OFF = "no p-value: swapping was switched off (--permutations 0)"
OF_PREDICTIONS = "no p-value: the predictions alone decide it"
OWN = "no interval and no p-value of the difference: each bin is judged on its own"


@dataclass(frozen=True, eq=False)
class Pair:
    """What a metric says of two models' predictions for the same n rows.

    Parameters
    ----------
    metric : Metric
        The metric.
    models : (Predictions, Predictions)
        Of both models; the difference is the second's value minus the first's.
    rows : (Rows, Rows)
        What the metric says of each.
    """

    metric: Metric[Any, Any]
    models: tuple[Predictions, Predictions]
    rows: tuple[Rows, Rows]

    @property
    def plain(self) -> bool:
        """Whether the values are functions of means of columns, each row's of that row alone."""
        return self.metric.interval == "bca"

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


def paired(pairs: Sequence[Pair], run: Run, *, swaps: int | None = None) -> list[Inference]:
    r"""Say of each difference how far it can be trusted.

    Intervals come from resampling rows, the same ones of both models. The p-value is that of a permutation test: where
    the models are as good as each other, their predictions of a row may be swapped, and D is one of the differences D*
    after swapping at random,

    .. math:: p = \frac{1 + \#\{|D^*| \ge |D|\}}{R + 1}.

    Parameters
    ----------
    pairs : sequence of Pair
        All of them of the same n rows.
    run : Run
        Seed, confidence, resamples and progress.
    swaps : int, optional
        How often models are swapped, R; 0 for no p-values. By default 9,999 for functions of means of columns, and 999
        (199 beyond 20,000 rows) for metrics that have to be computed again each time; 199 for those of one shared fit.

    Returns
    -------
    list of Inference
        With ``low``, ``high``, ``interval`` and ``p_value``; ``warnings`` say why one of them is absent.
    """
    told = [_unfit(pair) or _on_its_own(pair, run, swaps) for pair in pairs]
    fit = [pair for pair, known in zip(pairs, told, strict=True) if known is None]
    plain = [pair for pair in fit if pair.plain and pair.metric.evidence != "none"]
    limits = dict(zip(map(id, fit), _intervals(fit, run), strict=True))
    chances = dict(zip(map(id, plain), _chances(plain, run, SWAPS if swaps is None else swaps), strict=True))
    found = []
    for pair, known in zip(pairs, told, strict=True):
        if known is not None:
            found.append(known)
        elif pair.metric.evidence == "none":
            found.append(_noted(limits[id(pair)], OF_PREDICTIONS))
        elif swaps == 0:
            found.append(_noted(limits[id(pair)], SWITCHED_OFF))
        elif pair.plain:
            found.append(replace(limits[id(pair)], p_value=chances[id(pair)]))
        else:
            found.append(_computed_again(pair, limits[id(pair)], run, swaps))
    return found


def _noted(inferred: Inference, *notes: str) -> Inference:
    return replace(inferred, warnings=(*inferred.warnings, *notes))


def _unfit(pair: Pair) -> Inference | None:
    """Say why a difference has neither interval nor p-value; None if it may have."""
    if pair.metric.interval == "own":
        return Inference(warnings=(OWN,))
    if not np.isfinite(pair.values()).all():
        return Inference(warnings=("no interval and no p-value of the difference: a value is not finite",))
    return None


def _on_its_own(pair: Pair, run: Run, swaps: int | None) -> Inference | None:
    """Judge a metric whose rows share one fit: by swaps, all by that fit; None for other metrics."""
    if pair.metric.interval != "none":
        return None
    inferred = Inference(warnings=(f"no interval of the difference: {pair.metric.no_interval}",))
    if swaps == 0:
        return _noted(inferred, SWITCHED_OFF)
    first, second = pair.models
    differ = "" if equal(first.x, second.x) else "the models are conditioned on other inputs"
    if reason := differ or pair.metric.no_swaps(pair.rows[0]):
        return _noted(inferred, f"no p-value: {reason}")
    try:
        both = _stacked(pair)
    except DataError as error:
        return _noted(inferred, f"no p-value: {error}")
    rows = _swapped(len(first), swaps or SWAPS_OF_LONG_METRICS, run, f"swapping for {pair.metric.name}")
    found = pair.metric.swapped(both, rows, run.silenced())
    if found is None:
        return inferred
    own, *others = found
    return replace(inferred, p_value=_p_value(np.array(others), (0.0, float(own))))


def _intervals(pairs: Sequence[Pair], run: Run) -> list[Inference]:
    """Make the interval of each difference; plain ones share their resamples."""
    n = len(pairs[0].models[0]) if pairs else 0
    if run.resamples == 0 or n == 1:
        why = "no interval: a single row cannot be resampled" if n == 1 else NO_BOOTSTRAP
        return [Inference(warnings=(why,)) for _ in pairs]
    statistics = {place: pair.statistic() for place, pair in enumerate(pairs)}
    plain = [place for place, pair in enumerate(pairs) if pair.plain]
    values: dict[int, Values] = {}
    if plain:
        together = Replicates([statistics[place] for place in plain], run)
        together.grow(run.resamples or RESAMPLES)
        values = dict(zip(plain, together.values, strict=True))
    found = []
    for place, statistic in statistics.items():
        if place not in values:
            alone = Replicates([statistic], run, stage=pairs[place].metric.name)
            alone.grow(run.resamples or RESAMPLES_OF_MANY_COLUMNS)
            values[place] = alone.values[0]
        found.append(_interval(statistic, values[place], run, plain=place in plain))
    few = f"{n} rows are few: intervals by resampling are too narrow"
    return [_noted(each, few) if n < FEW_ROWS and each.interval else each for each in found]


def _interval(statistic: Statistic, replicates: Values, run: Run, *, plain: bool) -> Inference:
    estimate = statistic.estimate()
    values, details, reason = usable(replicates, estimate)
    if reason:
        return Inference(details=details, warnings=(reason,))
    if not plain:
        low, high = percentile(values, run.confidence)
        return Inference(low=low, high=high, interval="percentile", details=details, warnings=(DECIDES_NOTHING,))
    bent = acceleration(statistic.leave_one_out())
    limits = bca(values, estimate, bent, run.confidence)
    if not np.isfinite([limits.low, limits.high]).all():
        return Inference(details=details, warnings=("no interval: the BCa interval is not defined; rows are too few",))
    details["bootstrap"] |= {"z0": limits.correction, "acceleration": bent}
    return Inference(low=limits.low, high=limits.high, interval="bca", details=details)


def _swapped(n: int, swaps: int, run: Run, stage: str) -> Iterator[NDArray[np.bool_]]:
    """Draw which rows are swapped, (b, n) at a time: the same ones whatever is compared, and however often."""
    size = max(1, BLOCK // n)
    for block, start in enumerate(range(0, swaps, size)):
        rng = run.rng(Stream.PERMUTATIONS, block)
        bits = rng.integers(0, 256, (min(size, swaps - start), -(-n // 8)), dtype=np.uint8)
        yield np.unpackbits(bits, axis=1, count=n).astype(np.bool_)
        run.progress(stage, min(1.0, (start + size) / swaps))


def _chances(pairs: Sequence[Pair], run: Run, swaps: int) -> list[float]:
    """Return p-values of functions of means of columns: swapping rows moves a sum from one model to the other."""
    if not pairs or not swaps:
        return [float("nan")] * len(pairs)
    sides = [[statistic_of(pair.metric, rows) for rows in pair.rows] for pair in pairs]
    gaps = [second.averages.columns - first.averages.columns for first, second in sides]  # (n, c) each
    n, columns = len(gaps[0]), np.concatenate(gaps, axis=1)
    moved = np.concatenate([rows.astype(np.float64) @ columns for rows in _swapped(n, swaps, run, "swapping")]) / n
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


def _computed_again(pair: Pair, inferred: Inference, run: Run, swaps: int | None) -> Inference:
    """Add the p-value of a metric that sorts or groups rows by what is predicted of all of them."""
    n = len(pair.models[0])
    count = swaps or (SWAPS_OF_METRICS if n <= LONG else SWAPS_OF_LONG_METRICS)
    try:
        both = _stacked(pair)
    except DataError as error:
        return _noted(inferred, f"no p-value: {error}")
    found, own = [], np.arange(n)
    for rows in _swapped(n, count, run, f"swapping for {pair.metric.name}"):
        for swapped in rows:
            first, second = (_value(pair.metric, both.take(own + n * side), run) for side in (swapped, ~swapped))
            found.append(second - first)
    return replace(inferred, p_value=_p_value(np.array(found), pair.values()))


def _stacked(pair: Pair) -> Predictions:
    """Put the rows of one model below the other's.

    Raises
    ------
    DataError
        Their distributions have nothing in common.
    """
    first, second = pair.models
    a, b = first.predictive, second.predictive
    if a is None or b is None or type(a) is not type(b):
        told = " and ".join(each.called for each in (a, b) if each is not None)
        msg = f"distributions of different families ({told}) cannot be swapped row by row"
        raise DataError(msg)
    if isinstance(a, Deferred):
        msg = "distributions that do not fit in memory are not swapped row by row"
        raise DataError(msg)
    y = None if first.y is None or second.y is None else np.concatenate([first.y, second.y])
    columns = {name: np.concatenate([each.columns[name] for each in pair.models]) for name in pair.metric.columns()}
    x = None if first.x is None or second.x is None else np.concatenate([first.inputs(), second.inputs()])
    return Predictions(y=y, predictive=a.join([b]), x=x, embedded=first.embedded, columns=columns)


def _value(metric: Metric[Any, Any], predictions: Predictions, run: Run) -> float:
    """Compute a metric; NaN where it is not defined."""
    source, silent = InMemory(predictions), run.silenced()
    try:
        with np.errstate(all="ignore"):  # what is not finite is counted
            settings = metric.prepare(source, silent)
            rows = metric.rows(settings, metric.fit(settings, source, silent), source, None, silent)
    except (DataError, NumericalError):
        return float("nan")
    return statistic_of(metric, rows).estimate()
