"""Return types of metrics: results per row, null distributions and inference."""

# numpy is imported in functions: `calcheck --help` imports this module and must start fast.

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from calcheck.report import Inference

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from calcheck.errors import Message
    from calcheck.statistics.groups import MeanTerm


@dataclass(frozen=True, kw_only=True)
class IntervalInference(Inference):
    """Inference from an interval, before the comparison with a null distribution.

    Parameters
    ----------
    no_verdict : str
        Reason if the interval gives no verdict; empty otherwise.
    resamples : int
        Number of bootstrap resamples of the interval; 0 for other intervals.
    """

    no_verdict: str = ""
    resamples: int = 0


@dataclass(frozen=True, eq=False)
class NullDistribution:
    """The null distribution of a metric: its values for R replicates of the targets drawn from the predictions.

    Parameters
    ----------
    values : (R,)
        Value of the metric for each replicate; NaN where it is undefined.
    data_value : float, optional
        Value for the data computed like those of the replicates, if that differs from the reported value.
    at_inputs : (1 + R, m), optional
        Values at each of m inputs: of the data in row 0, then of the replicates.
    at_sample : (1 + R, e), optional
        The same at a sample of the inputs, for pictures, if there are no values at all of them.
    floor : (m,), optional
        Smallest possible value at each input; None if ``at_inputs`` holds distances.
    details : mapping
        Settings and diagnostics of the simulation.
    warnings : tuple of Message
        Reasons to doubt the null distribution.
    no_verdict : str
        Reason if no verdict can be derived; empty otherwise.
    """

    values: NDArray[np.float64]
    data_value: float | None = None
    at_inputs: NDArray[np.float64] | None = None
    at_sample: NDArray[np.float64] | None = None
    floor: NDArray[np.float64] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[Message, ...] = ()
    no_verdict: str = ""

    def concat(self, other: NullDistribution) -> NullDistribution:
        """Return a null distribution with the values of both sets of replicates."""
        import numpy as np

        return replace(self, values=np.concatenate([self.values, other.values]))


@dataclass(frozen=True, eq=False)
class RowResults:
    """Results of a metric for each row.

    Parameters
    ----------
    columns : dict
        Results per row by name, (n,) each: written to pointwise output; the value is a function of their means.
    terms : dict
        Other means that the value depends on, by name: means over groups of rows.
    fixed : dict
        Other arrays that the value depends on, by name; row weights do not affect them.
    details : mapping
        Settings and diagnostics of the computation.
    warnings : tuple of Message
        Reasons to doubt the value.
    reference : float, optional
        Mean score of a perfect model, if it is known for distributions of any shape.
    inference : IntervalInference, optional
        Result of an inference method specific to the metric, which replaces the bootstrap of its means.
    no_verdict : str
        Reason if no test gives a verdict; empty otherwise.
    numbers : (n,), optional
        Row numbers of the results, if these are of a sample of the rows.
    count : int
        Number of rows if there are no columns: 1 for a result for all rows together.
    """

    columns: dict[str, NDArray[Any]]
    terms: dict[str, MeanTerm] = field(default_factory=dict)
    fixed: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[Message, ...] = ()
    reference: float | None = None
    inference: IntervalInference | None = None
    no_verdict: str = ""
    numbers: NDArray[np.intp] | None = None
    count: int = 1

    @property
    def n(self) -> int:
        """Number of rows that have results."""
        return len(next(iter(self.columns.values()))) if self.columns else self.count
