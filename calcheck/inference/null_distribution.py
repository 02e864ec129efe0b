"""What a perfect model would score on the same rows, and the comparison with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, runtime_checkable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from calcheck.distributions.row_random import RowRandom
from calcheck.distributions.samples import LazyPredictive
from calcheck.errors import DataError, Message, NumericalError
from calcheck.execution.bottom_k import batch_row_keys, hash_order, replicate_seed, row_keys
from calcheck.execution.run import Limits, RandomStream, Run
from calcheck.inference.metric_protocol import (
    CurveData,
    HasCurves,
    HasNullStatistic,
    HasQuickStatistic,
    InferableMetric,
    MetricT_co,
    RefitsReplicates,
    implements,
)
from calcheck.inference.p_values import cannot_reject, has_p_value, is_at_atom, is_open, p_value, p_value_error, rejects
from calcheck.inference.results import IntervalInference, NullDistribution, RowResults
from calcheck.inference.verdicts import Basis, null_statistic_of
from calcheck.predictions import InMemory, Predictions, Source
from calcheck.statistics.cache import cached

if TYPE_CHECKING:
    from calcheck.distributions import Predictive
    from calcheck.inference.curves import CurveBands
    from calcheck.report import Alternative, Direction, Inference
    from calcheck.typing import Indices, Values

REPLICATES = 199  # Default number of replicates
FEW_REPLICATES = 39  # Default for streaming and for distributions on disk; sufficient for a two-sided test at 5 %
REPLICATES_OF_MANY = 59  # Default for very many rows
MAX_REPLICATES = 9_999  # Maximum while a verdict is open; the standard error of p = 0.05 is then 0.002
MAX_DRAWS = 100_000_000  # Maximum number of targets drawn for all replicates together
COSTLY_TIMES = 4  # Maximum ratio of final to initial replicates, if each needs matrix products


class NullSimulator:
    """R replicates of a data set under the null hypothesis: the same rows, with targets drawn from the predictions."""

    def __init__(
        self,
        # Rows with targets and distributions. For distributions given by draws, the target is exchanged with a draw.
        rows: Predictions,
        run: Run,  # The number of replicates, and the seed
        *,
        inputs: int = 0,  # The number of inputs that are tested one by one; such tests need more replicates
        numbers: range | None = None,  # The numbers of the replicates; by default 0 to R - 1
        # (n,), keys of the rows, which seed their random numbers; by default those of `row_keys`
        keys: NDArray[np.uint64] | None = None,
    ) -> None:
        self.rows, self.run, self._inputs, self._own_keys = rows, run, inputs, keys
        count = _default_count(rows, inputs, run.limits) if run.replicates is None else run.replicates
        self._first = range(count)
        self.numbers = self._first if numbers is None else numbers

    def __len__(self) -> int:
        """Return the number of replicates, R."""
        return len(self.numbers)

    def rng(self) -> Generator:
        """Return the random generator for draws that concern all rows together."""
        number = 0 if self.rows.y is None else _digest(self.rows)
        return self.run.rng(RandomStream.REPLICATES, self.numbers.start, number)

    def with_predictive(self, predictive: Predictive) -> NullSimulator:
        """Return the same replicates with another representation of the distributions, such as one in memory."""
        y = self.rows.y
        rows = self.rows if y is None else self.rows.with_targets(y, predictive)
        return NullSimulator(rows, self.run, inputs=self._inputs, numbers=self.numbers, keys=self._own_keys)

    def take(self, chosen: Indices) -> NullSimulator:
        """Return the same replicates of some of the rows only, given by their numbers."""
        return NullSimulator(self.rows.take(chosen), self.run, numbers=self.numbers, keys=self._keys[chosen])

    @property
    def _keys(self) -> NDArray[np.uint64]:
        """The keys of the rows, (n,)."""
        return _cached_row_keys(self.rows, replicate_seed(self.run)) if self._own_keys is None else self._own_keys

    def for_inputs(self, inputs: int) -> NullSimulator:
        """Return a simulator with enough replicates for tests at ``inputs`` inputs."""
        return NullSimulator(self.rows, self.run, inputs=inputs)

    def max_replicates(self, *, costly: bool) -> int:
        """Return the maximum number of replicates while a verdict is open; a number given by the user is fixed."""
        count = len(self._first)
        if self.run.replicates is not None or isinstance(self.rows.predictive, LazyPredictive):
            return count
        most = max(count, REPLICATES, min(MAX_REPLICATES, MAX_DRAWS // len(self.rows)))
        return min(most, COSTLY_TIMES * count) if costly else most

    def more(self, most: int) -> NullSimulator | None:
        """Return the next replicates, which double the total number, up to ``most``; None if that is reached."""
        stop = self.numbers.stop
        numbers = range(stop, min(2 * stop, most))
        if not numbers:
            return None
        return NullSimulator(self.rows, self.run, inputs=self._inputs, numbers=numbers, keys=self._own_keys)

    def __iter__(self) -> Iterator[Predictions]:
        """Yield the replicates; each iteration yields the same ones."""
        rows, size = self.rows, max(1, self.run.limits.block_targets // len(self.rows))
        if rows.y is None or rows.predictive is None:
            return
        rng = RowRandom(self._keys)
        for start in range(0, len(self), size):
            for y, predictive in rows.predictive.replicates(rows.y, rng, self.numbers[start : start + size]):
                yield rows.with_targets(y, predictive)


def _default_count(rows: Predictions, inputs: int, limits: Limits) -> int:
    if isinstance(rows.predictive, LazyPredictive):
        return FEW_REPLICATES
    if len(rows) >= limits.many_rows and not inputs:
        return REPLICATES_OF_MANY
    few = max(inputs, len(rows)) <= limits.max_pointwise_inputs
    return limits.pointwise_replicates if inputs and few else REPLICATES


def batch_replicates(batch: Predictions, count: int, run: Run) -> Iterator[Predictions]:
    """Yield ``count`` replicates of a batch; the targets of a row do not depend on its batch."""
    if batch.y is None or batch.predictive is None:
        return
    rng, size = RowRandom(batch_row_keys(batch, replicate_seed(run))), max(1, run.limits.block_targets // len(batch))
    for start in range(0, count, size):
        for y, predictive in batch.predictive.replicates(batch.y, rng, range(count)[start : start + size]):
            yield batch.with_targets(y, predictive)


@cached
def _cached_row_keys(rows: Predictions, seed: int) -> NDArray[np.uint64]:
    """Return the keys of rows, cached per seed."""
    return row_keys(rows, seed)


@cached
def _digest(rows: Predictions) -> int:
    """Return a hash of the order of the targets, cached."""
    return hash_order(rows.targets())


@runtime_checkable
class SimulatesNull(Protocol):
    """A metric that computes all replicates of its null distribution together."""

    def null_distribution(self, fit: Any, simulation: NullSimulator, run: Run) -> NullDistribution | None:
        """Return the metric of all replicates; None if that is not cheaper than one by one."""
        ...


@dataclass(eq=False)
class FittedMetric(Generic[MetricT_co]):
    """A metric evaluated on the data, which can be evaluated on replicates too."""

    metric: MetricT_co
    fit: Any  # The result of `fit`
    rows: RowResults
    value: float
    basis: Basis  # The basis of its verdict
    null: NullDistribution | None = None
    sequential: bool = False  # Whether replicates were added while the verdict was open
    tested: float | None = None  # Its statistic for the null distribution, if that is not its value
    above: Direction | None = None  # How the model is wrong if the value is significantly above the reference
    bands: CurveBands | None = None  # Its curves, if they were requested
    shares_replicates: bool = True  # Whether its replicates are those of the other metrics

    @property
    def compared_value(self) -> float:
        """The value of the data, computed in the same way as the values of replicates."""
        data_value = None if self.null is None else self.null.data_value
        return self.tested_value if data_value is None else data_value

    @property
    def tested_value(self) -> float:
        """The statistic of the data for the null distribution."""
        return self.value if self.tested is None else self.tested

    def direction(self, inferred: Inference) -> Direction | None:
        """Return how the model is wrong; None unless it fails."""
        if inferred.verdict != "fail" or inferred.reference is None:
            return None
        return self.above if self.value > inferred.reference else self.metric.info.below

    def replicate_value(self, replicate: Source, run: Run) -> float:
        """Return the metric of a replicate, or its quick statistic if it has one; NaN where it is undefined."""
        try:
            return self._replicate_value(replicate, run)
        except (DataError, NumericalError):
            return np.nan

    def _replicate_value(self, replicate: Source, run: Run) -> float:
        metric: InferableMetric = self.metric
        fit = (
            metric.refit(self.fit, replicate, run)
            if implements(metric, RefitsReplicates)
            else metric.fit(replicate, run)
        )
        if implements(metric, HasQuickStatistic):
            rows, value = None, metric.quick_statistic(fit, replicate, run)
        else:
            rows = metric.evaluate(fit, replicate, run)
            value = null_statistic_of(metric, rows).estimate()
        if self.bands is not None and not self.bands.is_complete and implements(metric, HasCurves):
            with suppress(DataError, NumericalError):
                self.bands.add(metric.curves(CurveData(fit, replicate, run, rows)))
        return value

    def is_open(self, run: Run) -> bool:
        """Return whether more replicates may change the verdict; not if the threshold is at an atom."""
        if self.null is None or self.null.no_verdict or self.basis.kind != "p" or not has_p_value(self.value):
            return False
        values, alternative = self.null.values, self.metric.alternative
        if is_at_atom(values, self.compared_value, alternative):
            return False
        p = p_value(values, self.compared_value, alternative)
        return is_open(p, p_value_error(p, len(values), alternative), run.confidence)


def simulate_null(computed: Sequence[FittedMetric[InferableMetric]], simulation: NullSimulator, run: Run) -> None:
    """Simulate the null distributions of metrics, one replicate at a time, so that metrics share cached statistics.

    Metrics that have a null distribution already, or whose values are no evidence against a model, are skipped.
    Replicates are added for metrics with an open verdict.
    """

    def values_of(waiting: Sequence[FittedMetric[InferableMetric]], data_sets: NullSimulator) -> list[NullDistribution]:
        stage = f"{waiting[0].metric.info.name if len(waiting) == 1 else f'{len(waiting)} metrics'}: replicates"
        return replicate_values(waiting, data_sets, run, stage)

    waiting = [each for each in computed if each.null is None and each.metric.alternative != "none"]
    if not waiting or not len(simulation):
        return
    for each, found in zip(waiting, values_of(waiting, simulation), strict=True):
        each.null = found
    add_replicates(waiting, simulation, run, values_of, costly=False)


def replicate_values(
    computed: Sequence[FittedMetric[InferableMetric]], simulation: NullSimulator, run: Run, stage: str
) -> list[NullDistribution]:
    """Return the null distributions of metrics from replicates, one replicate at a time."""
    quiet, values = run.quiet(), np.empty((len(computed), len(simulation)))
    for number, rows in enumerate(simulation):
        replicate = InMemory(rows)
        with np.errstate(all="ignore"):
            values[:, number] = [each.replicate_value(replicate, quiet) for each in computed]
        run.progress(stage, (number + 1) / len(simulation))
    with np.errstate(all="ignore"):
        data_values = [_quick_statistic(each, InMemory(simulation.rows), quiet) for each in computed]
    return [NullDistribution(line, quick) for line, quick in zip(values, data_values, strict=True)]


def _quick_statistic(computed: FittedMetric[InferableMetric], data: Source, run: Run) -> float | None:
    """Return the quick statistic of the data; None if the metric has none."""
    metric = computed.metric
    return metric.quick_statistic(computed.fit, data, run) if implements(metric, HasQuickStatistic) else None


def add_replicates(
    computed: Sequence[FittedMetric[InferableMetric]],
    simulation: NullSimulator,
    run: Run,
    values_of: Callable[[Sequence[FittedMetric[Any]], NullSimulator], Sequence[NullDistribution]],
    *,
    costly: bool,
) -> None:
    """Add replicates while verdicts are open, doubling their number up to the maximum.

    This is a sequential Monte Carlo test, as in Besag and Clifford (1991) and Gandy (2009). It stops when the p-value
    differs from 1 - confidence by three standard errors, or if most of it is the probability of a single value.
    """
    most = simulation.max_replicates(costly=costly)
    for each in computed:
        each.sequential = most > len(simulation)
    while (further := simulation.more(most)) is not None:
        waiting = [each for each in computed if each.is_open(run)]
        if not waiting:
            break
        for each, found in zip(waiting, values_of(waiting, further), strict=True):
            each.null = found if each.null is None else each.null.concat(found)
        simulation = further


BY_ZETA, BY_TEST = "the verdict is based on zeta: {}", "the verdict is based on an exact test: {}"

IMPOSSIBLE = Message("verdict-basis", "the verdict is based on targets with probability 0, which no right model has")


def compare_with_null(
    computed: FittedMetric[InferableMetric], inferred: IntervalInference, run: Run
) -> IntervalInference:
    """Return the inference of a metric with its reference, p-value and verdict."""
    found = _compared(computed, inferred, run)
    if computed.value < np.inf or not computed.metric.info.infinite_if_impossible or found.verdict == "fail":
        return found
    if computed.null is not None and not np.isfinite(computed.null.values).all():
        return found
    notes = tuple(each for each in found.warnings if each.code != "no-verdict")
    return replace(found, verdict="fail", warnings=(*notes, IMPOSSIBLE))


def _compared(computed: FittedMetric[InferableMetric], inferred: IntervalInference, run: Run) -> IntervalInference:
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


def _with_p_value(computed: FittedMetric[InferableMetric], inferred: IntervalInference, run: Run) -> IntervalInference:
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
    low = None if alternative == "greater" else float(np.quantile(known, tail))
    high = None if alternative == "less" else float(np.quantile(known, 1 - tail))
    return float(known.mean()), low, high


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


def _with_verdict(computed: FittedMetric[InferableMetric], found: IntervalInference, run: Run) -> IntervalInference:
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
