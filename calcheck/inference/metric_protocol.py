"""The interface of a metric that inference uses; :class:`calcheck.metrics.base.Metric` implements it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.predictions import Predictions, Source
    from calcheck.results import Alternative, IntervalMethod, Means, RowResults


class InferableMetric(Protocol):
    """The members of a metric that inference uses; they are documented in :class:`calcheck.metrics.base.Metric`."""

    name: ClassVar[str]
    interval: ClassVar[IntervalMethod]
    no_interval: ClassVar[str]
    conditional_on: ClassVar[str]
    distribution_free: ClassVar[bool]

    @property
    def alternative_in_use(self) -> Alternative: ...

    def columns(self) -> tuple[str, ...]: ...

    def interpolates(self, levels: NDArray[np.float64]) -> bool: ...

    def prepare_replicate(self, settings: Any, source: Source, run: Run) -> Any: ...

    def rows(self, settings: Any, state: Any, source: Source, at: Source | None, run: Run) -> RowResults: ...

    def quick_value(self, settings: Any, source: Source, run: Run) -> float | None: ...

    def no_influences_reason(self, rows: RowResults) -> str: ...

    def influences(self, both: Predictions, run: Run) -> NDArray[np.float64] | None: ...

    def value(self, means: Means, n: int) -> NDArray[np.float64]: ...


MetricT_co = TypeVar("MetricT_co", bound=InferableMetric, covariant=True)
