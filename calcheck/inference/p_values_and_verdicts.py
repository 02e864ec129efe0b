"""P-values and verdicts: of replicates, at each input, adjusted; zeta scores, and the verdict of all metrics."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from calcheck.core import sc
from calcheck.errors import Message
from calcheck.inference.metric_protocol import Basis, HasNullStatistic, implements
from calcheck.reports import TIED, Alternative, Inference, Overall, Verdict, cannot_reject, rejects

if TYPE_CHECKING:
    from calcheck.distributions import Predictive
    from calcheck.execution.run import Run
    from calcheck.inference.metric_protocol import Computed, InferableMetric, IntervalInference, RowResults
    from calcheck.typing import AnyArray, Mask, Values

NO_REPLICATES = "the null distribution was not simulated (--replicates R simulates it, --no-null turns it off)"
NO_PERMUTATIONS = "there was no permutation test (--permutations R runs it, --no-null turns it off)"
NO_SHAPE = "the file does not state the error distribution, which a perfect model's score depends on (--error-dist)"
INTERPOLATED = (
    "the file states quantiles only, and a perfect model's score depends on interpolation between and beyond them"
)
INTERVALS_ONLY = "the file states intervals only, and a perfect model's score depends on more than their coverage"
NO_EVIDENCE = "the metric depends on the predictions only"
KeyT = TypeVar("KeyT", bound=Hashable)
UNDECIDED_ERRORS = 3.0  # A verdict is undecided if zeta is within this many standard errors of the threshold
BY_ZETA, BY_TEST = "the verdict is based on zeta: {}", "the verdict is based on an exact test: {}"
IMPOSSIBLE = Message("verdict-basis", "the verdict is based on targets with probability 0, which no right model has")
ATOM, ATOM_REPLICATES = 0.75, 1_500  # Share of a p-value that makes an atom, and replicates that show it
ERRORS = 3.0  # A verdict is open if p is within this many standard errors of the threshold
MIN_TAIL_REPLICATES = 10  # Minimum replicates at or above a value for an empirical p-value
QUANTILES = {"reference_q05": 0.05, "reference_q50": 0.5, "reference_q95": 0.95}
EQUAL = 1e-12  # Tolerance relative to the squared mean: a smaller variance is rounding error
TINY = 1e-300  # Replaces a sum of 0 in a denominator
MAX_CORRECTED = 10.0  # Distance from the mean, in standard deviations, from where on the correction is the same
INSIDE = 0.7  # Minimum error at an input, relative to the median of those rejected: at the border of a step, it is 0.5
APPROXIMATE = f"approximate where fewer than {MIN_TAIL_REPLICATES} replicates reach the value"
LEVEL = 0.05  # Probability beyond the limits of a statistic


@dataclass(frozen=True)
class StatedShape:
    """How completely a file specifies its predictive distributions."""

    shape: bool = True  # Whether the shape is stated
    # The levels of the stated quantiles; absent where the distributions are specified completely
    levels: tuple[float, ...] | None = None
    coverage_only: bool = False  # Whether only the coverage of intervals is stated

    @classmethod
    def from_predictive(cls, predictive: Predictive | None) -> StatedShape:
        """Return how completely the given distributions are specified."""
        if predictive is None:
            return cls()
        levels = predictive.quantile_levels
        known = None if levels is None else tuple(levels.tolist())
        return cls(predictive.shape_is_known, known, predictive.interval_levels is not None)


def basis_of(
    metric: InferableMetric, stated: StatedShape, rows: RowResults, *, replicates: bool, otherwise: str = NO_REPLICATES
) -> Basis:
    """Return the basis of a metric's verdict."""
    if metric.alternative == "none":
        return Basis("none", NO_EVIDENCE)
    if unfit := _unfit_reason(metric, stated, rows):
        return Basis("none", unfit, can_simulate=False)
    if stated.shape and replicates:
        return Basis("p")
    if not stated.shape:
        return Basis("interval" if metric.info.distribution_free else "none", NO_SHAPE)
    exact = metric.info.interval == "one-sided" or (rows.inference is not None and rows.inference.verdict != "none")
    reason = NO_PERMUTATIONS if metric.info.permutes_samples else otherwise
    return Basis("interval" if metric.info.distribution_free or exact else "none", reason)


def _unfit_reason(metric: InferableMetric, stated: StatedShape, rows: RowResults) -> str:
    """Return why no test of the metric gives a verdict, or ""."""
    if stated.levels is not None and metric.interpolates(np.array(stated.levels)):
        return INTERPOLATED
    if stated.coverage_only and metric.info.uses != "coverage":
        return INTERVALS_ONLY
    return rows.no_verdict


def with_zeta(inference: IntervalInference, distance: float, error: float) -> IntervalInference:
    """Return the inference with zeta and its Monte Carlo error."""
    return replace(inference, zeta=distance, zeta_mc_error=error if np.isfinite(error) else None)


def with_zeta_verdict(inference: IntervalInference, distance: float, error: float) -> IntervalInference:
    """Return the inference with zeta, its Monte Carlo error, and the verdict by zeta."""
    inference = with_zeta(inference, distance, error)
    if is_undecided(distance, error):
        message = f"undecided: zeta is {distance:.3f} ± {error:.3f} (Monte Carlo error), and the threshold is 1"
        return replace(inference, verdict="undecided", warnings=(Message("undecided", message),))
    return replace(inference, verdict="pass" if abs(distance) <= 1 else "fail")


def is_undecided(distance: float, error: float) -> bool:
    """Return whether zeta is too close to the threshold for a verdict, given its Monte Carlo error."""
    return abs(abs(distance) - 1) < UNDECIDED_ERRORS * error


def with_adjusted(inference: Inference, p_value: float | None) -> Inference:
    """Return the inference with a p-value adjusted for the number of results, which is at least its own."""
    known = [each for each in (p_value, inference.p_value) if each is not None]
    return replace(inference, p_value_adjusted=None if p_value is None else max(known))


def adjusted_by_family(computed: Sequence[Computed]) -> list[float | None]:
    """Return adjusted p-values; those of other outcomes form families of their own, which count as Bonferroni's."""
    families: dict[str, list[int]] = {}
    for place, each in enumerate(computed):
        if each.null is not None and has_p_value(each.value) and np.isfinite(each.null.values).any():
            families.setdefault("" if each.shares_replicates else each.metric.info.name, []).append(place)
    found: list[float | None] = [None] * len(computed)
    for places in families.values():
        statistics = extremes(
            [tested for place in places if (tested := _statistics(computed[place]))], undefined=np.inf
        )
        for place, p in zip(places, step_down_p_values(statistics), strict=True):
            found[place] = min(1.0, len(families) * float(p))
    return found


class Compared(NamedTuple):
    """The statistic of a metric for the data and for replicates."""

    value: float  # For the data
    values: Values  # (R,), for replicates
    alternative: Alternative


def _statistics(computed: Computed) -> Compared | None:
    """Return the statistics of a metric; None without a null distribution."""
    null = computed.null
    return None if null is None else Compared(computed.compared_value, null.values, computed.metric.alternative)


def judged_statistics(computed: Computed) -> Compared | None:
    """Return the statistics of a metric whose verdict is based on replicates that other metrics have too, or None."""
    known = computed.null is not None and not computed.null.no_verdict and has_p_value(computed.compared_value)
    return _statistics(computed) if known and computed.basis.kind == "p" and computed.shares_replicates else None


def common_statistics(tested: Sequence[Compared]) -> Values:
    """Return the statistics of K metrics, (K, 1 + R): of the data, then of the first replicates, which all have."""
    count = min(len(each.values) for each in tested)
    return np.array([np.append(each.value, each.values[:count]) for each in tested])


def extremes(tested: Sequence[Compared], undefined: float = 0.0) -> Values:
    """Return the distances :func:`relative_to_limits`, (K, 1 + R); by default undefined statistics are no evidence."""
    relative = relative_to_limits(common_statistics(tested), [each.alternative for each in tested])
    return np.where(np.isnan(relative), undefined, relative)


def overall_verdict(computed: Sequence[Computed], confidence: float, *, judged: bool = True) -> Overall | None:
    """Return the verdict on the largest of the :func:`extremes`; None for fewer than two metrics with replicates."""
    known = [(each.metric.info.name, tested) for each in computed if (tested := judged_statistics(each))]
    if len(known) < 2:  # noqa: PLR2004 - a pair
        return None
    metrics, statistics = tuple(name for name, _ in known), extremes([each for _, each in known])
    p, replicates = float(step_down_p_values(statistics).min()), statistics.shape[1] - 1
    decided: Verdict = "fail" if rejects(p, confidence) else "pass"
    return Overall(
        verdict="none" if not judged or cannot_reject(replicates, "greater", confidence) else decided,
        p_value=p,
        method="maximum relative to limits",
        replicates=replicates,
        metrics=metrics,
        leading=metrics[int(np.argmax(statistics[:, 0]))],
    )


def adjusted_p_values(computed: Sequence[Computed]) -> list[float | None]:
    """Return the adjusted p-value of each metric (:func:`step_down_p_values`); None without common replicates."""
    known = {place: tested for place, each in enumerate(computed) if (tested := judged_statistics(each))}
    adjusted: list[float | None] = [None] * len(computed)
    if len(known) > 1:
        for place, p in zip(known, step_down_p_values(extremes([*known.values()])), strict=True):
            adjusted[place] = float(p)
    return adjusted


def topic_p_values(topics: Mapping[KeyT, Sequence[Computed]]) -> dict[KeyT, float]:
    """Return the adjusted p-value of each topic with replicates, which is as extreme as its most extreme metric."""
    known = {key: [*filter(None, map(judged_statistics, found))] for key, found in topics.items()}
    known = {
        key: simulated for key, found in known.items() if (simulated := [each for each in found if len(each.values)])
    }
    if not known:
        return {}
    count = min(len(each.values) for found in known.values() for each in found)
    lines = [
        extremes([each._replace(values=each.values[:count]) for each in found]).max(axis=0) for found in known.values()
    ]
    p_values = step_down_p_values(extremes([Compared(line[0], line[1:], "greater") for line in lines]))
    return dict(zip(known, p_values.tolist(), strict=True))


def zeta(estimate: float, reference: float, low: float, high: float) -> float:
    """Return (estimate - reference) over the half-width of the interval on that side, NaN outside [ZMS Eq. 14]."""
    reach = high - estimate if estimate <= reference else estimate - low
    return (estimate - reference) / reach if reach > 0 else float("nan")


def compare_with_null(computed: Computed, inferred: IntervalInference, run: Run) -> IntervalInference:
    """Return the inference of a metric with its reference, p-value and verdict."""
    found = _compared(computed, inferred, run)
    if found.verdict == "fail" or not is_impossible(computed):
        return found
    notes = tuple(each for each in found.warnings if each.code != "no-verdict")
    return replace(found, verdict="fail", warnings=(*notes, IMPOSSIBLE))


def is_impossible(computed: Computed) -> bool:
    """Return whether a value is infinite since targets have probability 0, and that of no replicate is."""
    if computed.value != np.inf or not computed.metric.info.infinite_if_impossible:
        return False
    return computed.null is None or bool(np.isfinite(computed.null.values).all())


def _compared(computed: Computed, inferred: IntervalInference, run: Run) -> IntervalInference:
    """Return the inference with a verdict by the p-value or by the interval."""
    basis = computed.basis
    found = _with_p_value(computed, inferred, run)
    if basis.kind == "none":
        return without_verdict(found, basis.reason)
    if basis.kind == "p":
        return _with_verdict(computed, found, run)
    if found.verdict == "none":
        return without_verdict(found, "; ".join(filter(None, (found.no_verdict, basis.reason))))
    text = (BY_TEST if found.zeta is None else BY_ZETA).format(basis.reason)
    notes = (Message("verdict-basis", text),) if basis.reason else ()
    return replace(found, warnings=(*found.warnings, *notes))


def _with_p_value(computed: Computed, inferred: IntervalInference, run: Run) -> IntervalInference:
    """Add the p-value and the reference with its limits, if a null distribution was simulated."""
    metric, simulated = computed.metric, computed.null
    if metric.alternative == "none" or simulated is None or not has_p_value(computed.value):
        return inferred
    if simulated.no_verdict:
        return replace(inferred, details={**inferred.details, "null": simulated.details})
    values = simulated.values
    known = values[np.isfinite(values)]
    p = p_value(values, computed.compared_value, metric.alternative)
    details = {"replicates": len(values), **simulated.details}
    if len(known) < len(values):
        details["undefined"] = len(values) - len(known)
    found = replace(
        inferred,
        p_value=p,
        p_value_mc_error=p_value_error(p, len(values), metric.alternative),
        details={**inferred.details, "null": details},
        warnings=(*inferred.warnings, *simulated.warnings),
    )
    if not len(known):
        return found
    mean, low, high = _null_limits(known, metric.alternative, run.confidence)
    if found.reference is not None and metric.info.interval != "own":
        return replace(found, details={**found.details, "null": {**details, "mean": mean, "low": low, "high": high}})
    stated = metric.null_reference(computed.rows) if implements(metric, HasNullStatistic) else None
    return _with_null_reference(found, computed.tested_value, mean if stated is None else stated, low, high)


def _null_limits(
    known: Values, alternative: Alternative, confidence: float
) -> tuple[float, float | None, float | None]:
    """Return the mean of the null distribution, and its limits on the sides that are evidence against a model."""
    tail = (1 - confidence) / (2 if alternative == "two-sided" else 1)
    places = np.array([tail, 1 - tail]) * (len(known) - 1)  # np.quantile would import numpy.ma
    low, high = np.interp(places, np.arange(len(known)), np.sort(known)).tolist()
    return float(known.mean()), None if alternative == "greater" else low, None if alternative == "less" else high


def _with_null_reference(
    found: IntervalInference, estimate: float, mean: float, low: float | None, high: float | None
) -> IntervalInference:
    """Add the value of a right model and the limits of the null distribution as reference, with zeta."""
    limit = high if low is None or (high is not None and estimate > mean) else low
    reach = abs((mean if limit is None else limit) - mean)
    zeta = (estimate - mean) / reach if reach > 0 and np.isfinite(estimate) else None
    if zeta is not None and (low is None or high is None):  # no distance to the side without a limit is evidence
        zeta = max(zeta, -1.0) if low is None else min(zeta, 1.0)
    return replace(found, reference=mean, reference_low=low, reference_high=high, reference_kind="simulated", zeta=zeta)


def _with_verdict(computed: Computed, found: IntervalInference, run: Run) -> IntervalInference:
    """Add the verdict from the p-value; undecided if its Monte Carlo error is too large at the maximum replicates."""
    simulated, p, error = computed.null, found.p_value, found.p_value_mc_error
    if simulated is None or p is None or error is None:
        return without_verdict(found, found.no_verdict or (simulated.no_verdict if simulated else ""))
    count = len(simulated.values)
    if cannot_reject(count, computed.metric.alternative, run.confidence):
        message = f"{count} replicates cannot reject at a confidence of {run.confidence:g}: pass a larger --replicates"
        return without_verdict(found, message)
    if computed.sequential and is_open(p, error, run.confidence):
        level = 1 - run.confidence
        message = f"undecided: p is {p:.3f} ± {error:.3f} (Monte Carlo error), and the threshold is {level:.3g}"
        return replace(found, verdict="undecided", warnings=(*found.warnings, Message("undecided", message)))
    return replace(found, verdict="fail" if rejects(p, run.confidence) else "pass")


def without_verdict(found: IntervalInference, reason: str) -> IntervalInference:
    """Return the inference without a verdict, and why."""
    notes = (Message.of_absence("no-verdict", reason),) if reason else ()
    return replace(found, verdict="none", warnings=(*found.warnings, *notes))


def p_value(values: Values, own: float, alternative: Alternative) -> float:
    """Return the p-value (1 + #{T* >= T}) / (R + 1), or twice the smaller tail; undefined T* are more extreme."""
    slack = TIED * abs(own) if np.isfinite(own) else 0.0
    above = (1 + np.sum(~(values < own - slack))) / (len(values) + 1)
    below = (1 + np.sum(~(values > own + slack))) / (len(values) + 1)
    return float(min(1.0, {"greater": above, "less": below, "two-sided": 2 * min(above, below)}[alternative]))


def has_p_value(own: float) -> bool:
    """Return whether a value has a p-value: a finite one, and inf, the strongest evidence; not -inf and NaN."""
    return bool(own > -np.inf)


def p_value_error(p: float, replicates: int, alternative: Alternative) -> float:
    """Return the Monte Carlo standard error of a p-value: the binomial one, of each tail for two-sided tests."""
    sides = 2 if alternative == "two-sided" else 1
    return float(sides * np.sqrt(p / sides * (1 - p / sides) / replicates))


def is_open(p: float, error: float, confidence: float) -> bool:
    """Return whether more replicates may change the verdict: p is within three standard errors of 1 - confidence."""
    return abs(p - (1 - confidence)) < ERRORS * error


def is_at_atom(values: Values, own: float, alternative: Alternative) -> bool:
    """Return whether most of a :func:`p_value` is the probability of the value itself: more replicates do not help."""
    if len(values) < ATOM_REPLICATES:
        return False
    slack = TIED * abs(own)
    above, below = np.sum(~(values < own - slack)), np.sum(~(values > own + slack))
    tied = np.sum(np.abs(values - own) <= slack)
    return bool(tied >= ATOM * {"greater": above, "less": below, "two-sided": min(above, below)}[alternative])


def pointwise_p_values(
    at_inputs: Values | None, floor: Values | None, fdr: float
) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    """Test the neighborhood of each input against the null distribution, with control of the false discovery rate.

    With fewer than ten of R replicates beyond T, the p-value is approximate: a tail of a fitted gamma distribution.
    Otherwise, it could not be below 1 / (R + 1), and few significant inputs among many could not be rejected.
    Of the rejected inputs, those are kept at which the distance without its noise is at least 0.7 of the median: a
    smoothed error is half as large at the border of a wrong region as inside.
    """
    if at_inputs is None:
        return {}, {}
    observed, replicates = at_inputs[0], at_inputs[1:]
    total, reached = len(replicates), np.sum(~(replicates < observed), axis=0)  # NaN counts as more extreme
    replicates = replicates[np.isfinite(replicates).all(axis=1)]
    if not len(replicates) or not np.isfinite(observed).all():
        return {}, {}
    squares, value = (replicates**2, observed**2) if floor is None else (replicates, observed)
    tail = np.minimum(_pearson_tail(squares, value, floor), (MIN_TAIL_REPLICATES + 1) / (total + 1))
    approximate = (reached < MIN_TAIL_REPLICATES) & np.isfinite(tail)
    p = np.where(approximate, tail, (reached + 1) / (total + 1))
    flagged, error = benjamini_hochberg(p, fdr), np.maximum(value - squares.mean(axis=0), 0)
    if flagged.any():
        flagged &= error >= INSIDE**2 * np.median(error[flagged])
    columns = {
        "reference_mean": replicates.mean(axis=0),
        **dict(zip(QUANTILES, np.quantile(replicates, list(QUANTILES.values()), axis=0), strict=True)),
        "p_value": p,
        "p_approximate": approximate,
        "significant": flagged,
    }
    details = {"count": int(flagged.sum()), "inputs": len(observed), "fdr": fdr, "p_value_method": APPROXIMATE}
    return columns, {"rejected": details}


def _pearson_tail(squares: Values, value: Values, floor: Values | None) -> Values:
    r"""Return the upper tail probability of each value, (m,), by a fit to squares; NaN if replicates are equal.

    Squares are sums :math:`\sum_i w_i \chi^2_1`, with a tail close to that of the shifted gamma distribution (Pearson's
    type III) of equal mean, standard deviation and skewness. The skewness, relative to that of a gamma distribution, is
    at least 1 and that of all inputs together. The mean of the tail over the errors of the moments is the tail at a
    value that is lower by :math:`\tfrac12 \lambda \operatorname{Var}(\hat m + z \hat s)`, with the decay
    :math:`\lambda` of the log density (second order).

    Source: Imhof (1961), "Computing the distribution of quadratic forms in normal variables", Biometrika 48, 419-426.
    """
    squares, value = (squares, value) if floor is None else (squares - floor, value - floor)
    count, mean = len(squares), squares.mean(axis=0)
    away = squares - mean
    variance = np.sum(away**2, axis=0) / max(count - 1, 1)
    mean, variance = np.where(variance > EQUAL * mean**2, [mean, variance], np.nan)
    third = np.sum(away**3, axis=0) * count / max((count - 1) * (count - 2), 1)
    ratio = np.nansum(third / mean**3) / max(np.nansum(2 * variance**2 / mean**4), TINY)
    skewness = 2 * max(ratio, 1.0) * np.sqrt(variance) / mean
    root, z = 2 / skewness, (value - mean) / np.sqrt(variance)  # the square root of the shape
    near = np.clip(z, 0, MAX_CORRECTED)
    error = (1 + near * skewness + near**2 * (2 + 6 / root**2) / 4) / count
    decay = root * (1 - (root**2 - 1) / (root**2 + np.maximum(z, 0) * root))
    return np.asarray(sc.gammaincc(root**2, np.maximum(root**2 + root * (z - decay * error / 2), 0)))


def benjamini_hochberg(p: Values, fdr: float) -> Mask:
    """Return which hypotheses, (m,), are rejected by the step-up procedure of Benjamini and Hochberg (1995)."""
    ordered = np.sort(p)  # false_discovery_control decides the same, but scipy.stats loads in 0.4 s
    passed = np.flatnonzero(ordered <= fdr * np.arange(1, len(p) + 1) / len(p))
    return p <= ordered[passed[-1]] if len(passed) else np.zeros(len(p), bool)


def holm(p: Sequence[float], tests: int | None = None) -> list[float]:
    """Return p-values adjusted for their number, or for that of all tests if these are some of more.

    Source: Holm (1979), Scandinavian Journal of Statistics 6, 65-70.

    >>> holm([0.04, 0.01], tests=3)
    [0.08, 0.03]
    """
    order = np.argsort(p, kind="stable")
    steps = ((tests or len(p)) - np.arange(len(p))) * np.asarray(p, dtype=np.float64)[order]
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1)
    found: list[float] = adjusted.tolist()
    return found


def relative_to_limits(statistics: Values, alternatives: Sequence[Alternative]) -> Values:
    """Return the distances from the medians, relative to those of the limits of the null distributions, (k, N).

    A value of 1 is at the limit at which the statistic alone is significant at 5 %; values of 0 and below are no
    evidence. Medians and limits are those of all columns, so these remain exchangeable. Undefined statistics are NaN.

    Source: Myllymäki, Mrkvička, Grabarnik, Seijo, Hahn (2017), "Global envelope tests for spatial processes".
    """
    values = np.where(np.isfinite(statistics), statistics, np.nan)
    away = values - np.nanmedian(values, axis=1, keepdims=True)
    relative = np.array([_beyond(line, side) for line, side in zip(away, alternatives, strict=True)])
    largest = np.isposinf(statistics) & (np.array(alternatives) != "less")[:, None]
    return np.where(largest, np.inf, relative)


def _beyond(line: Values, alternative: Alternative) -> Values:
    """Return distances from 0, (N,), in units of the limit on their side; negative on the side that is no evidence."""
    tail = LEVEL / (2 if alternative == "two-sided" else 1)
    above, below = (side / _limit(side, tail) for side in (line, -line))
    sides = {"greater": above, "less": below, "two-sided": np.maximum(above, below)}
    return np.asarray(sides[alternative])


def _limit(line: Values, tail: float) -> float:
    """Return the quantile that leaves a tail above; the maximum if that is 0, and infinity if no value is above 0."""
    limits = (float(np.nanquantile(line, 1 - tail)), float(np.nanmax(line)))
    return next((limit for limit in limits if limit > 0), np.inf)


def step_down_p_values(extremes: Values) -> Values:
    """Return the adjusted p-value of each statistic of the first column of (k, N) extremes, (k,).

    Source: Westfall, Young (1993), "Resampling-based multiple testing", algorithm 2.8.
    """
    order = np.argsort(extremes[:, 0], kind="stable")
    largest = np.maximum.accumulate(extremes[order], axis=0)
    own = extremes[order, 0]
    reached = np.sum(largest >= own[:, None] * (1 - TIED * np.sign(own[:, None])), axis=1) / extremes.shape[1]
    p_values = np.empty(len(order))
    p_values[order] = np.maximum.accumulate(reached[::-1])[::-1]
    return p_values
