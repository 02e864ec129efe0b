"""What metrics return, before it becomes a report: results of rows, null distributions, inferences."""

# Numerics are imported where they are used: `calcheck --help` reads this file and must start at once.

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from calcheck.report import Verdict
    from calcheck.statistics.groups import MeanTerm

    Means = Mapping[str, NDArray[np.float64]]

Alternative = Literal["upper", "lower", "both", "none"]
Orientation = Literal["smaller", "larger", "reference", "zero", "none"]
IntervalMethod = Literal["bca", "percentile", "own", "none"]


@dataclass(frozen=True, kw_only=True)
class Inference:
    """How far a value can be trusted: fields as in :class:`calcheck.report.Result`, and why there is no verdict."""

    low: float | None = None
    high: float | None = None
    interval: str | None = None
    reference: float | None = None
    reference_low: float | None = None
    reference_high: float | None = None
    reference_kind: str | None = None
    zeta: float | None = None
    zeta_mc_error: float | None = None
    p_value: float | None = None
    p_value_mc_error: float | None = None
    verdict: Verdict = "none"
    no_verdict: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class NullDistribution:
    """What a metric says where the model is right: of R replicates of the targets, drawn from the predictions.

    Parameters
    ----------
    values : (R,)
        The metric of each replicate; NaN where it has none.
    data_value : float, optional
        The metric of the data, made as the values are, where that is not quite how its value is made.
    at_inputs : (1 + R, m), optional
        What it says at each of m inputs, of the data first.
    floor : (m,), optional
        The least that this can be; absent where it is a distance.
    details : dict
        How they were made.
    warnings : tuple of str
        What a reader should know of them.
    no_verdict : str
        Why no verdict follows from them, where none does.
    """

    values: NDArray[np.float64]
    data_value: float | None = None
    at_inputs: NDArray[np.float64] | None = None
    floor: NDArray[np.float64] | None = None
    details: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    no_verdict: str = ""

    def concat(self, other: NullDistribution) -> NullDistribution:
        """Return the values of these replicates and of others."""
        import numpy as np

        return replace(self, values=np.concatenate([self.values, other.values]))


@dataclass(frozen=True, eq=False)
class RowResults:
    """What a metric says of each row.

    Parameters
    ----------
    columns : dict
        What is said, (n,) each, by name: pointwise output writes it, and its means make the value.
    terms : dict
        What is averaged where that is more than the means of the columns: means over groups of rows, by name.
    fixed : dict
        What the value is a function of besides means: arrays that no weight of a row touches, by name.
    details : dict
        What was chosen and measured on the way.
    warnings : tuple of str
        What a reader should know before trusting the value.
    reference : float, optional
        What a perfect model scores on average, where that is known whatever the distributions' shape.
    inference : Inference, optional
        What a metric finds by inference of its own, in place of the bootstrap of its means.
    count : int
        How many rows are told of where no columns are at hand: 1, where something is said of all together.
    """

    columns: dict[str, NDArray[Any]]
    terms: dict[str, MeanTerm] = field(default_factory=dict)
    fixed: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    reference: float | None = None
    inference: Inference | None = None
    count: int = 1

    @property
    def n(self) -> int:
        """How many rows are told of."""
        return len(next(iter(self.columns.values()))) if self.columns else self.count
