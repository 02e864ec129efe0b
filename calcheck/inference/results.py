"""Return types of metrics: results per row, null distributions and inference."""

# numpy is imported in functions: `calcheck --help` imports this module and must start fast.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from calcheck.report import Inference

if TYPE_CHECKING:
    from calcheck.errors import Message
    from calcheck.statistics.groups import MeanTerm
    from calcheck.typing import AnyArray, Indices, Values


@dataclass(frozen=True, kw_only=True)
class IntervalInference(Inference):
    """Inference from an interval, before the comparison with a null distribution."""

    no_verdict: str = ""  # Reason if the interval gives no verdict; empty otherwise
    resamples: int = 0  # Number of bootstrap resamples of the interval; 0 for other intervals


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

    def concat(self, other: NullDistribution) -> NullDistribution:
        """Return a null distribution with the values of both sets of replicates."""
        import numpy as np

        return replace(self, values=np.concatenate([self.values, other.values]))


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
