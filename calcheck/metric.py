"""What a metric is: a map from rows to columns, followed by a function of the columns' means."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from calcheck.options import options_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.execution.run import Run
    from calcheck.predictions import Predictions, Source

Need = Literal["y", "predictive", "x"]
Sided = Literal["upper", "both", "none"]

SettingsT = TypeVar("SettingsT")
StateT = TypeVar("StateT")


@dataclass(frozen=True, eq=False)
class Rows:
    """What a metric says of each row.

    Parameters
    ----------
    columns : dict
        The columns whose means make the value, (n,) each, by name; pointwise output writes them.
    details : dict
        What was chosen and measured on the way.
    warnings : tuple of str
        What a reader should know before trusting the value.
    """

    columns: dict[str, NDArray[np.float64]]
    details: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Metric(ABC, Generic[SettingsT, StateT]):
    """A metric; its fields are its options.

    ``prepare`` makes the choices that depend on the data, ``fit`` does the costly work that looks at inputs only,
    ``rows`` says something of each row, and ``value`` is a function of the means of what it says.
    """

    name: ClassVar[str]
    unit: ClassVar[str]
    needs: ClassVar[tuple[Need, ...]]
    sided: ClassVar[Sided]
    source: ClassVar[str]
    reading: ClassVar[str]
    """How to read a value: its range, and which end is good."""
    no_interval: ClassVar[str] = ""
    """Why the bootstrap gives no honest interval; empty if it does."""
    engine: ClassVar[bool] = False
    """Whether it computes with kernels, on a device, in a precision and within a memory budget."""

    @classmethod
    def summary(cls) -> str:
        """Return the first line of the class's documentation, one sentence."""
        return (cls.__doc__ or "").strip().splitlines()[0]

    def options(self) -> dict[str, Any]:
        """Return the options by name; they rebuild the same metric."""
        return {option.name: getattr(self, option.field) for option in options_of(type(self))}

    @classmethod
    def from_options(cls, options: dict[str, Any]) -> Metric[Any, Any]:
        """Rebuild a metric from :meth:`options`."""
        return cls(**{option.field: options[option.name] for option in options_of(cls)})

    @abstractmethod
    def prepare(self, source: Source, run: Run) -> SettingsT:
        """Make the choices that depend on the data: bandwidths, bin edges, output features."""

    @abstractmethod
    def fit(self, settings: SettingsT, source: Source, run: Run) -> StateT:
        """Do the costly work that looks at inputs only; shared by the data and all replicates of their targets."""

    @abstractmethod
    def rows(self, settings: SettingsT, state: StateT, source: Source, at: Source | None, run: Run) -> Rows:
        """Say something of each row of ``at``, or of ``source`` itself."""

    @abstractmethod
    def value(self, means: dict[str, float], n: int) -> float:
        """Return the metric, a function of the means of n rows' columns."""


def missing_needs(metric: type[Metric[Any, Any]], rows: Predictions) -> list[str]:
    """Name what a metric needs and the rows do not have."""
    return [need for need in metric.needs if getattr(rows, need) is None]
