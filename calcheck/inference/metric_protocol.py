"""The interface of a metric that inference uses, and protocols for what only few metrics can do.

:class:`calcheck.metrics.base.Metric` implements the interface. Protocols are checked with ``isinstance``, and for
each replicate with :func:`implements`; another one is :class:`calcheck.inference.null_distribution.SimulatesNull`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeGuard, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from calcheck.core.metric_info import MetricInfo
    from calcheck.execution.run import Run
    from calcheck.inference.results import RowResults
    from calcheck.predictions import Predictions, Source
    from calcheck.report import Alternative, Curve
    from calcheck.statistics.groups import Means
    from calcheck.typing import Values

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
        ...


@runtime_checkable
class HasQuickStatistic(Protocol):
    """A metric with a cheaper statistic for the comparison of data and replicates."""

    def quick_statistic(self, fit: Any, source: Source, run: Run) -> float:
        """Return the statistic of the data or of a replicate."""
        ...


@runtime_checkable
class HasNullStatistic(Protocol):
    """A metric whose value is not what is compared with replicates."""

    def null_statistic(self, means: Means) -> Values:
        """Return the statistic of the data or of a replicate, as a function of the means that ``value`` takes."""
        ...

    def null_reference(self, rows: RowResults) -> float | None:
        """Return the statistic of a right model if it is stated; None if it is the mean over replicates."""
        ...


@runtime_checkable
class HasFixedLevels(Protocol):
    """A metric whose value is a function of means over groups of rows that depend on the targets."""

    def at_fixed_levels(self, rows: RowResults) -> RowResults:
        """Return nearly the same results by means over groups that are the same for the data and for replicates."""
        ...


@dataclass(frozen=True, eq=False)
class CurveData(Generic[FitT]):
    """What curves of a metric show: the data, or a replicate."""

    fit: FitT  # The result of `fit`
    source: Source  # The data, or a replicate
    run: Run  # The columns along which curves show rows
    rows: RowResults | None = None  # The result of `evaluate`; absent for replicates whose quick statistic is used


@runtime_checkable
class HasCurves(Protocol):
    """A metric that has a picture."""

    def curves(self, shown: CurveData[Any]) -> tuple[Curve, ...]:
        """Return the curves of the data or of a replicate, without bands."""
        ...


@runtime_checkable
class HasInfluences(Protocol):
    """A metric whose difference between two models is a sum of contributions of the rows."""

    def influences(self, both: Predictions, run: Run) -> Values:
        """Return the contribution of each row to the second model's squared value minus the first model's.

        Parameters
        ----------
        both : Predictions
            The n rows of the first model, then those of the second, with the same targets and inputs.
        run : Run
            Seed, device, precision, memory.

        Returns
        -------
        (n,)
            Contributions; they sum to twice the difference, which is bilinear in the rows.

        Raises
        ------
        DataError
            Influences are not available for these rows and options; the message gives the reason.
        """
        ...


MetricT_co = TypeVar("MetricT_co", bound=InferableMetric, covariant=True)
ProtocolT = TypeVar("ProtocolT")


def implements(metric: object, protocol: type[ProtocolT]) -> TypeGuard[ProtocolT]:
    """Return whether a metric has the methods of a protocol. Each class is checked once: ``isinstance`` takes 60 µs."""
    classes: Any = (type(metric), protocol)  # mypy does not know that classes are hashable
    return bool(_implements(*classes))


@cache
def _implements(metric: type, protocol: type) -> bool:
    return issubclass(metric, protocol)
