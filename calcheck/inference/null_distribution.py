"""What a perfect model scores on the same data: metrics of replicates of the targets, drawn from the predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from calcheck.distributions.lazy import LazyPredictive
from calcheck.distributions.row_random import RowRandom
from calcheck.errors import DataError, NumericalError
from calcheck.execution.context import RandomStream
from calcheck.execution.data_hash import hash_order
from calcheck.execution.row_keys import batch_row_keys, replicate_seed, row_keys
from calcheck.inference.metric_protocol import InferableMetric, MetricT_co
from calcheck.inference.p_values import is_open, p_value, p_value_error
from calcheck.inference.verdicts import statistic_of
from calcheck.predictions import InMemory
from calcheck.results import NullDistribution
from calcheck.statistics.cache import cached

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.random import Generator
    from numpy.typing import NDArray

    from calcheck.distributions import Predictive
    from calcheck.execution.context import Run
    from calcheck.inference.verdict_basis import Basis
    from calcheck.predictions import Predictions, Source
    from calcheck.results import RowResults

REPLICATES = 199
FEW_REPLICATES = 39  # enough for a test at 5 %: of distributions that are read again for each, and of sums
MANY_ROWS, REPLICATES_OF_MANY = 1_000_000, 59  # which take as long as all else; more follow while a verdict is open
POINTWISE_REPLICATES = 1_999  # where a test is made at each input: tails that are fitted to 199 flag too many
MAX_POINTWISE_INPUTS = 2_048  # and rows, at which so many take seconds
MAX_REPLICATES = 9_999  # while a verdict is open: they tell p = 0.05 to 0.002
MAX_DRAWS = 100_000_000  # targets of all these replicates together
COSTLY_TIMES = 4  # as many replicates as at first, at most, where each takes products of matrices
BLOCK_DRAWS = 1 << 22  # targets drawn at a time, 32 MiB


class NullSimulator:
    """Data sets in which the predictions are right, R of them: the same rows with other targets.

    Parameters
    ----------
    rows : Predictions
        With targets and distributions. Where these are known by draws, a target and a draw change places.
    run : Run
        How many, and the seed.
    inputs : int
        At how many inputs values are compared, besides the value of all rows: that takes more data sets.
    numbers : range, optional
        Which of the data sets; by default the first ones, as many as it takes.
    """

    def __init__(self, rows: Predictions, run: Run, *, inputs: int = 0, numbers: range | None = None) -> None:
        self.rows, self.run, self._inputs = rows, run, inputs
        count = _default_count(rows, inputs) if run.replicates is None else run.replicates
        self._first = range(count)
        self.numbers = self._first if numbers is None else numbers

    def __len__(self) -> int:
        """Count the data sets, R."""
        return len(self.numbers)

    def rng(self) -> Generator:
        """Return the generator of what is drawn for all rows together."""
        number = 0 if self.rows.y is None else _digest(self.rows)
        return self.run.rng(RandomStream.REPLICATES, self.numbers.start, number)

    def with_predictive(self, predictive: Predictive) -> NullSimulator:
        """Return the same data sets, their distributions at hand in another way: held in memory, say."""
        y = self.rows.y
        rows = self.rows if y is None else self.rows.with_targets(y, predictive)
        return NullSimulator(rows, self.run, inputs=self._inputs, numbers=self.numbers)

    def for_inputs(self, inputs: int) -> NullSimulator:
        """Return as many data sets as it takes to compare values at so many inputs."""
        return NullSimulator(self.rows, self.run, inputs=inputs)

    def max_replicates(self, *, costly: bool) -> int:
        """Return how many data sets there may be while a verdict is open: no more where their number was chosen.

        Parameters
        ----------
        costly : bool
            Whether each takes products of matrices.
        """
        count = len(self._first)
        if self.run.replicates is not None or isinstance(self.rows.predictive, LazyPredictive):
            return count
        most = max(count, REPLICATES, min(MAX_REPLICATES, MAX_DRAWS // len(self.rows)))
        return min(most, COSTLY_TIMES * count) if costly else most

    def more(self, most: int) -> NullSimulator | None:
        """Return the data sets after these, as many as there are so far; None where there are the most."""
        stop = self.numbers.stop
        numbers = range(stop, min(2 * stop, most))
        return NullSimulator(self.rows, self.run, inputs=self._inputs, numbers=numbers) if numbers else None

    def __iter__(self) -> Iterator[Predictions]:
        """Yield the data sets, the same ones every time."""
        rows, size = self.rows, max(1, BLOCK_DRAWS // len(self.rows))
        if rows.y is None or rows.predictive is None:
            return
        rng = RowRandom(_keys(rows, replicate_seed(self.run)))
        for start in range(0, len(self), size):
            for y, predictive in rows.predictive.replicates(rows.y, rng, self.numbers[start : start + size]):
                yield rows.with_targets(y, predictive)


def _default_count(rows: Predictions, inputs: int) -> int:
    if isinstance(rows.predictive, LazyPredictive):
        return FEW_REPLICATES
    if len(rows) >= MANY_ROWS and not inputs:
        return REPLICATES_OF_MANY
    return POINTWISE_REPLICATES if inputs and max(inputs, len(rows)) <= MAX_POINTWISE_INPUTS else REPLICATES


def batch_replicates(batch: Predictions, count: int, run: Run) -> Iterator[Predictions]:
    """Yield a batch of rows with targets drawn anew, so many times: each row's as in any other batch."""
    if batch.y is None or batch.predictive is None:
        return
    rng, size = RowRandom(batch_row_keys(batch, replicate_seed(run))), max(1, BLOCK_DRAWS // len(batch))
    for start in range(0, count, size):
        for y, predictive in batch.predictive.replicates(batch.y, rng, range(count)[start : start + size]):
            yield batch.with_targets(y, predictive)


@cached
def _keys(rows: Predictions, seed: int) -> NDArray[np.uint64]:
    """Return the keys of rows, made once for each seed."""
    return row_keys(rows, seed)


@cached
def _digest(rows: Predictions) -> int:
    """Return a number that differs between targets, made once for each."""
    return hash_order(rows.targets())


@dataclass(eq=False)
class FittedMetric(Generic[MetricT_co]):
    """A metric of the data, ready to be computed again of replicates.

    Parameters
    ----------
    metric : Metric
        The metric.
    settings, state : Any
        What it has prepared and fitted.
    rows : RowResults
        What it says.
    value : float
        Its value.
    basis : Basis
        What its verdict follows from.
    null : NullDistribution, optional
        What it says of replicates.
    sequential : bool
        Whether replicates were added while the verdict was open.
    """

    metric: MetricT_co
    settings: Any
    state: Any
    rows: RowResults
    value: float
    basis: Basis
    null: NullDistribution | None = None
    sequential: bool = False

    @property
    def compared_value(self) -> float:
        """The value, made as those of replicates are."""
        own = None if self.null is None else self.null.data_value
        return self.value if own is None else own

    def replicate_value(self, replicate: Source, at: Source | None, run: Run) -> float:
        """Return the metric of a replicate; NaN where it has none."""
        metric = self.metric
        try:
            settings = metric.prepare_replicate(self.settings, replicate, run)
            if (quick := metric.quick_value(settings, replicate, run)) is not None:
                return quick
            return statistic_of(metric, metric.rows(settings, self.state, replicate, at, run)).estimate()
        except (DataError, NumericalError):
            return np.nan

    def is_open(self, run: Run) -> bool:
        """Tell whether more replicates may turn the verdict."""
        if self.null is None or self.null.no_verdict or self.basis.kind != "p" or not np.isfinite(self.value):
            return False
        values, sided = self.null.values, self.metric.alternative_in_use
        p = p_value(values, self.compared_value, sided)
        return is_open(p, p_value_error(p, len(values), sided), run.confidence)


def simulate_null(
    computed: Sequence[FittedMetric[InferableMetric]], simulation: NullSimulator, at: Source | None, run: Run
) -> None:
    """Compute metrics of all replicates, one replicate after the other: metrics share what they know of each.

    Those that are known already, or can be no evidence against a model, are left alone. Replicates are added for those
    whose verdict is open.
    """
    quiet, data = run.quiet(), InMemory(simulation.rows)

    def values_of(waiting: Sequence[FittedMetric[InferableMetric]], data_sets: NullSimulator) -> list[NullDistribution]:
        values = np.empty((len(waiting), len(data_sets)))
        for number, rows in enumerate(data_sets):
            replicate = InMemory(rows)
            with np.errstate(all="ignore"):
                values[:, number] = [each.replicate_value(replicate, at, quiet) for each in waiting]
            run.progress("simulating", (number + 1) / len(data_sets))
        with np.errstate(all="ignore"):
            own = [each.metric.quick_value(each.settings, data, quiet) for each in waiting]
        return [NullDistribution(line, quick) for line, quick in zip(values, own, strict=True)]

    waiting = [each for each in computed if each.null is None and each.metric.alternative_in_use != "none"]
    if not waiting or not len(simulation):
        return
    for each, found in zip(waiting, values_of(waiting, simulation), strict=True):
        each.null = found
    add_replicates(waiting, simulation, run, values_of, costly=False)


def add_replicates(
    computed: Sequence[FittedMetric[InferableMetric]],
    simulation: NullSimulator,
    run: Run,
    values_of: Callable[[Sequence[FittedMetric[Any]], NullSimulator], Sequence[NullDistribution]],
    *,
    costly: bool,
) -> None:
    """Add replicates, twice as many each time, while verdicts are open and more may be drawn.

    Sequential Monte Carlo, as in Besag and Clifford (1991) and Gandy (2009): it stops where the p-value lies three of
    its standard errors from 1 - confidence.

    Parameters
    ----------
    computed : sequence of FittedMetric
        Metrics of the data and of the first replicates.
    simulation : NullSimulator
        The first replicates.
    run : Run
        The confidence.
    values_of : callable
        Computes some of the metrics of further replicates.
    costly : bool
        Whether each replicate takes products of matrices.
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
