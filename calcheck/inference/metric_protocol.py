"""What inference uses of a metric: its interface, its results, and protocols for what only few metrics can do."""

# numpy is imported in functions: `calcheck --help` imports this module and must start fast.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, TypeGuard, TypeVar, runtime_checkable

from calcheck.reports import Inference

if TYPE_CHECKING:
    from calcheck.core.metric_info import MetricInfo
    from calcheck.dependence.clusters import Clusters
    from calcheck.errors import Message
    from calcheck.execution.run import Run
    from calcheck.inference.curve_bands import CurveBands
    from calcheck.predictions import Predictions, Source
    from calcheck.reports import Alternative, Curve
    from calcheck.reports.conclusion import Direction
    from calcheck.statistics.groups import Means, MeanTerm
    from calcheck.typing import AnyArray, Indices, Values


FitT = TypeVar("FitT")


class InferableMetric(Protocol):
    """The members of a metric that inference uses; they are documented in :class:`calcheck.metrics.base.Metric`."""

    info: ClassVar[MetricInfo]

    @property
    def alternative(self) -> Alternative: ...

    def columns(self) -> tuple[str, ...]: ...

    def interpolates(self, levels: Values) -> bool: ...

    def fit(self, source: Source, run: Run) -> Any: ...

    def evaluate(self, fit: Any, source: Source, run: Run) -> RowResults: ...

    def value(self, means: Means) -> Values: ...


@runtime_checkable
class RefitsReplicates(Protocol):
    """A metric whose fit to a replicate reuses what depends on inputs only."""

    def refit(self, fit: Any, source: Source, run: Run) -> Any:
        """Return the fit to other targets or distributions at the same inputs."""


@runtime_checkable
class HasQuickStatistic(Protocol):
    """A metric with a cheaper statistic for the comparison of data and replicates."""

    def quick_statistic(self, fit: Any, source: Source, run: Run) -> float:
        """Return the statistic of the data or of a replicate."""


@runtime_checkable
class HasStackedStatistics(Protocol):
    """A metric of columns that depend on one row at a time."""

    def stacked_statistics(self, fit: Any, rows: Predictions, count: int) -> Values:
        """Return the quick statistics of data sets of equal size whose rows are stacked, (count,)."""


@runtime_checkable
class HasMoments(Protocol):
    """A metric whose quick statistic follows from moments of the rows, and is cheaper for many data sets together."""

    def moments(self, fit: Any, source: Source, run: Run) -> Any:
        """Return the moments of the data or of a replicate."""

    def quick_statistics(self, moments: Sequence[Any], run: Run) -> Values:
        """Return the statistic of each data set; NaN for None."""


@runtime_checkable
class HasNullStatistic(Protocol):
    """A metric whose value is not what is compared with replicates."""

    def null_statistic(self, means: Means) -> Values:
        """Return the statistic of the data or of a replicate, as a function of the means that ``value`` takes."""

    def null_reference(self, rows: RowResults) -> float | None:
        """Return the statistic of a right model if it is stated; None if it is the mean over replicates."""


@runtime_checkable
class HasFixedLevels(Protocol):
    """A metric whose value is a function of means over groups of rows that depend on the targets."""

    def at_fixed_levels(self, rows: RowResults) -> RowResults:
        """Return nearly the same results by means over groups that are the same for the data and for replicates."""


@dataclass(frozen=True, eq=False)
class CurveData(Generic[FitT]):
    """What curves of a metric show: the data, or a replicate."""

    fit: FitT  # The result of `fit`
    source: Source  # The data, or a replicate
    run: Run  # The columns along which curves show rows
    rows: RowResults | None = None  # The result of `evaluate`; absent for replicates whose quick statistic is used


@runtime_checkable
class HasGrid(Protocol):
    """A metric of ordered values whose value follows from means over rows too, up to the steps of a grid."""

    def on_grid(self, rows: Predictions) -> dict[str, Values]:
        """Return the columns, (n,) each, of whose means ``value`` is a function, so that sums of rows can be added."""


@runtime_checkable
class HasLimits(Protocol):
    """A metric with two one-sided limits in closed form, also for weights, and for rows that depend on each other."""

    def limits(self, rows: RowResults, run: Run, clusters: Clusters | None) -> IntervalInference:
        """Return the interval, and the p-value and verdict of the test of its reference that needs no replicates."""

    def limits_of_sums(self, means: Means, rows: float, tail: float) -> tuple[float, float]:
        """Return the limits by means that can be added up, given how many independent rows they stand for."""


@runtime_checkable
class HasCurves(Protocol):
    """A metric that has a picture."""

    def curves(self, shown: CurveData[Any]) -> tuple[Curve, ...]:
        """Return the curves of the data or of a replicate, without bands."""


@runtime_checkable
class HasInfluences(Protocol):
    """A metric whose difference between two models is a sum of contributions of the rows."""

    def influences(self, both: Predictions, run: Run) -> Values:
        """Return the share of each row, (n,), in twice the difference of both models, whose rows are stacked."""


MetricT_co = TypeVar("MetricT_co", bound=InferableMetric, covariant=True)
ProtocolT = TypeVar("ProtocolT")
_issubclass: Any = cache(issubclass)


def implements(metric: object, protocol: type[ProtocolT]) -> TypeGuard[ProtocolT]:
    """Return whether a metric has the methods of a protocol. Each class is checked once: ``isinstance`` takes 60 µs."""
    return bool(_issubclass(type(metric), protocol))


@dataclass(frozen=True, kw_only=True)
class IntervalInference(Inference):
    """Inference from an interval, before the comparison with a null distribution."""

    no_verdict: str = ""  # Reason if the interval gives no verdict; empty otherwise


@dataclass(frozen=True, eq=False)
class NullDistribution:
    """The null distribution of a metric: its values for R replicates of the targets drawn from the predictions."""

    values: Values  # (R,), value of the metric for each replicate; NaN where it is undefined
    # Value for the data computed like those of the replicates, if that differs from the reported value
    data_value: float | None = None
    # (1 + R, m), values at each of m inputs: of the data in row 0, then of the replicates
    at_inputs: Values | None = None
    # (1 + R, e), the same at a sample of the inputs, for pictures, if there are no values at all of them
    at_sample: Values | None = None
    # (m,), smallest possible value at each input; None if `at_inputs` holds distances
    floor: Values | None = None
    details: Mapping[str, Any] = field(default_factory=dict)  # Settings and diagnostics of the simulation
    warnings: tuple[Message, ...] = ()  # Reasons to doubt the null distribution
    no_verdict: str = ""  # Reason if no verdict can be derived; empty otherwise


@dataclass(frozen=True, eq=False)
class RowResults:
    """Results of a metric for each row."""

    # Results per row by name, (n,) each: written to pointwise output; the value is a function of their means
    columns: dict[str, AnyArray]
    # Other means that the value depends on, by name: means over groups of rows
    terms: dict[str, MeanTerm] = field(default_factory=dict)
    # Other arrays that the value depends on, by name; row weights do not affect them
    fixed: dict[str, Values] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)  # Settings and diagnostics of the computation
    warnings: tuple[Message, ...] = ()  # Reasons to doubt the value
    reference: float | None = None  # Mean score of a perfect model, if it is known for distributions of any shape
    # Result of an inference method specific to the metric, which replaces the bootstrap of its means
    inference: IntervalInference | None = None
    no_verdict: str = ""  # Reason if no test gives a verdict; empty otherwise
    numbers: Indices | None = None  # (n,), row numbers of the results, if these are of a sample of the rows
    count: int = 1  # Number of rows if there are no columns: 1 for a result for all rows together

    @property
    def n(self) -> int:
        """Number of rows that have results."""
        return len(next(iter(self.columns.values()))) if self.columns else self.count


@dataclass(frozen=True)
class Basis:
    """The basis of a metric's verdict."""

    kind: Literal["p", "interval", "none"]  # The p-value, the interval (zeta), or none
    reason: str = ""  # Why the basis is not the p-value
    # Whether the file states what a perfect model's score depends on, so that it can be simulated
    can_simulate: bool = True


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


Computed = FittedMetric[InferableMetric]
MOST_CLEAR = 5  # number of rejected inputs listed when per-row results are written without --worst


def extremes(
    rows: RowResults, shown: Predictions, worst: int, best: int, *, pointwise: bool
) -> dict[str, list[dict[str, Any]]]:
    """Return the requested lists of rows, by their names in ``details``."""
    found = {
        "most_significant": _clearest(rows, shown, worst or (MOST_CLEAR if pointwise else 0)),
        "worst": ranked_rows(rows, shown, -worst),
        "best": ranked_rows(rows, shown, best),
    }
    return {name: listed for name, listed in found.items() if listed}


def ranked_rows(rows: RowResults, shown: Predictions, count: int) -> list[dict[str, Any]]:
    """Return the rows with the smallest values of the first column, or with the largest if count < 0."""
    if not count or not rows.columns:
        return []
    values = next(iter(rows.columns.values()))
    order = values.argsort(kind="stable")
    return _listed(rows, shown, order[::-1][:-count] if count < 0 else order[:count])


def _clearest(rows: RowResults, shown: Predictions, count: int) -> list[dict[str, Any]]:
    """Return the rejected inputs with the smallest p-values, in ascending order."""
    if "significant" not in rows.columns:
        return []
    order = rows.columns["p_value"].argsort(kind="stable")
    return _listed(rows, shown, order[rows.columns["significant"][order]][:count])


def _listed(rows: RowResults, shown: Predictions, chosen: Indices) -> list[dict[str, Any]]:
    """Return rows as dicts: row number, id, first column, p-value and the other columns of the input."""
    name, values = next(iter(rows.columns.items()))
    keys = {} if shown.id is None else {shown.id_name: shown.id}
    tested = {"p_value": rows.columns["p_value"]} if "p_value" in rows.columns else {}
    own = {"row": shown.row_numbers(), **keys, name: values, **tested}
    columns = own | {label: column for label, column in shown.columns.items() if label not in own}
    return [{label: _plain(column[row]) for label, column in columns.items()} for row in chosen]


def _plain(value: Any) -> Any:
    """Return a cell as a Python number or text."""
    if getattr(getattr(value, "dtype", None), "kind", "") in ("m", "M"):
        return None if value != value else str(value)  # noqa: PLR0124 - NaT differs from itself
    value = value.item() if hasattr(value, "item") else value
    return value if isinstance(value, (int, float, str)) or value is None else str(value)
