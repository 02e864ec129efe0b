"""What a metric is: a map from rows to columns, followed by a function of the columns' means."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from calcheck.options import option, options_of, require_count_option
from calcheck.report import Result
from calcheck.results import Alternative, IntervalMethod, NullDistribution, Orientation, RowResults

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.inference.null_distribution import NullSimulator
    from calcheck.predictions import Predictions, Source
    from calcheck.results import Means
    from calcheck.statistics.bins import Bins


Need = Literal["y", "predictive", "x"]

ABSENT_BY_ALTERNATIVE: dict[Alternative, tuple[str, ...]] = {
    "both": (),
    "upper": ("reference_low",),
    "lower": ("reference_high",),
    "none": (
        *("reference", "reference_low", "reference_high", "reference_kind", "zeta", "zeta_mc_error"),
        *("p_value", "p_value_mc_error"),
    ),
}
ABSENT_BY_INTERVAL: dict[IntervalMethod, tuple[str, ...]] = {
    "bca": (),
    "percentile": ("zeta_mc_error",),
    "own": ("zeta_mc_error",),
    "none": ("low", "high", "interval", "zeta_mc_error"),
}
"""The fields of results that are always null, by what counts as evidence and by how intervals are made."""

SettingsT = TypeVar("SettingsT")
StateT = TypeVar("StateT")


@dataclass(frozen=True)
class Metric(ABC, Generic[SettingsT, StateT]):
    """A metric; its fields are its options.

    ``prepare`` makes the choices that depend on the data, ``fit`` does the costly work that looks at inputs only,
    ``rows`` says something of each row, and ``value`` is a function of the means of what it says.
    """

    name: ClassVar[str]
    unit: ClassVar[str]
    needs: ClassVar[tuple[Need, ...]]
    alternative: ClassVar[Alternative]
    orientation: ClassVar[Orientation]
    """Which of two values speaks for its model: the one nearer to its reference, say; none if neither does."""
    source: ClassVar[str]
    interpretation: ClassVar[str]
    """How to read a value: its range, and which end is good."""
    interval: ClassVar[IntervalMethod] = "bca"
    """How it comes to its interval: by the bootstrap (percentiles where resampling is biased), on its own, or not."""
    conditional_on: ClassVar[str] = ""
    """Which choices that depend on the data are not made again for each resample."""
    distribution_free: ClassVar[bool] = False
    """Whether its exact reference holds for any shape of distribution: where none is stated, its interval decides."""
    no_interval: ClassVar[str] = ""
    """Why there is no interval, where there is none."""
    uses_kernels: ClassVar[bool] = False
    """Whether it computes with kernels, on a device, in a precision and within a memory budget."""
    conditional: ClassVar[bool] = False
    """Whether it has a value at any input, also at those of another file."""
    pointwise: ClassVar[bool] = True
    """Whether it says something of each row."""
    several_targets: ClassVar[bool] = False
    """Whether it takes targets of several columns."""

    repeated_targets: ClassVar[bool] = False
    """Whether it takes several targets of one input, in rows that share a key."""

    fit_key: ClassVar[tuple[str, ...] | None] = None
    """The fields that ``fit`` looks at: metrics that differ in others only share its state; None if it may be all."""
    exempt_laws: ClassVar[dict[str, str]] = {}
    """The laws of all metrics (tests/unit/test_every_metric.py) that are not meant to hold for it, with the reasons."""

    @classmethod
    def summary(cls) -> str:
        """Return the first line of the class's documentation, one sentence."""
        return (cls.__doc__ or "").strip().splitlines()[0]

    @classmethod
    def fields(cls) -> tuple[str, ...]:
        """Name the fields of its results, without those that are always null."""
        never = {*ABSENT_BY_ALTERNATIVE[cls.alternative], *ABSENT_BY_INTERVAL[cls.interval]}
        return tuple(declared.name for declared in fields(Result) if declared.name not in never)

    def description(self) -> str:
        """Say what the value is, and how to read it."""
        return f"{self.summary()} {self.interpretation}"

    def options(self) -> dict[str, Any]:
        """Return the options by name; they rebuild the same metric."""
        return {option.name: getattr(self, option.field) for option in options_of(type(self))}

    @classmethod
    def from_options(cls, options: dict[str, Any]) -> Metric[Any, Any]:
        """Rebuild a metric from :meth:`options`."""
        return cls(**{option.field: options[option.name] for option in options_of(cls)})

    @property
    def alternative_in_use(self) -> Alternative:
        """What counts as evidence against a model, with these options: ``sided``, as a rule."""
        return self.alternative

    def columns(self) -> tuple[str, ...]:
        """Name the columns that it reads besides targets, predictions and inputs."""
        return ()

    def interpolates(self, levels: NDArray[np.float64]) -> bool:  # noqa: ARG002 - for those that look at quantiles only
        """Tell whether its value rests on what lies between quantiles at these levels, which is not known."""
        return True

    @abstractmethod
    def prepare(self, source: Source, run: Run) -> SettingsT:
        """Make the choices that depend on the data: bandwidths, bin edges, output features."""

    def prepare_replicate(self, settings: SettingsT, source: Source, run: Run) -> SettingsT:  # noqa: ARG002 - for those who keep some
        """Make the choices again for a replicate of the targets: those that look at inputs only may be kept."""
        return self.prepare(source, run)

    @abstractmethod
    def fit(self, settings: SettingsT, source: Source, run: Run) -> StateT:
        """Do the costly work that looks at inputs only; shared by the data and all replicates of their targets."""

    def prepare_shared(self, state: StateT, metrics: Sequence[Metric[SettingsT, StateT]], models: int) -> None:
        """Ready a state for metrics of so many models that share it (:attr:`fit_key`), where that pays."""

    @abstractmethod
    def rows(self, settings: SettingsT, state: StateT, source: Source, at: Source | None, run: Run) -> RowResults:
        """Say something of each row of ``at``, or of ``source`` itself."""

    def null_distribution(
        self,
        settings: SettingsT,  # noqa: ARG002 - for those who simulate on their own
        state: StateT,  # noqa: ARG002
        simulation: NullSimulator,  # noqa: ARG002
        at: Source | None,  # noqa: ARG002
        run: Run,  # noqa: ARG002
    ) -> NullDistribution | None:
        """Compute the metric of all replicates at once; None where that is no cheaper than one by one."""
        return None

    def quick_value(
        self,
        settings: SettingsT,  # noqa: ARG002 - for those whose rows resample
        source: Source,  # noqa: ARG002
        run: Run,  # noqa: ARG002
    ) -> float | None:
        """Return what stands for the metric where data and replicates are compared; None for the metric itself."""
        return None

    def no_influences_reason(self, rows: RowResults) -> str:  # noqa: ARG002 - for those whose rows share a fit
        """Say why :meth:`influences` cannot compare two models, given what is known of one; nothing if they can."""
        return ""

    def influences(
        self,
        both: Predictions,  # noqa: ARG002 - for those whose rows share a fit
        run: Run,  # noqa: ARG002
    ) -> NDArray[np.float64] | None:
        """Return what each row contributes to how much a second model's squared value exceeds a first one's.

        Parameters
        ----------
        both : Predictions
            The n rows of the first model, then those of the second; the same targets and inputs.
        run : Run
            Seed, device, precision, memory.

        Returns
        -------
        (n,) or None
            They sum to twice the difference, which is bilinear in the rows. None where that is not known.
        """
        return None

    @property
    def not_streamable_reason(self) -> str:
        """Why it is not summed, if it is not."""
        return "needs all rows together, so it keeps no sums"

    @abstractmethod
    def value(self, means: Means, n: int) -> NDArray[np.float64]:
        """Return the metric, a function of the means of n rows.

        Parameters
        ----------
        means : mapping
            The mean of each column, (...); of each term, (..., k) where it has k groups; and what is fixed. Leading
            axes count resamples.
        n : int
            How many rows they are means of.
        """


@dataclass(frozen=True)
class RowMetric(Metric[None, None]):
    """A metric that says of each row what follows from that row alone: no choices, nothing to fit."""

    def prepare(self, source: Source, run: Run) -> None:
        """Choose nothing."""

    def fit(self, settings: None, source: Source, run: Run) -> None:
        """Fit nothing."""

    def rows(self, settings: None, state: None, source: Source, at: Source | None, run: Run) -> RowResults:  # noqa: ARG002
        return self.compute(source.predictions())

    @abstractmethod
    def compute(self, rows: Predictions) -> RowResults:
        """Say something of each row."""

    def details(self, means: Means) -> dict[str, Any]:  # noqa: ARG002 - for those who have more to say
        """Describe what follows from the means of all rows besides the value, for the details."""
        return {}


@dataclass(frozen=True)
class OrderedMetric(RowMetric):
    """A metric that puts rows in order by a few numbers each, and looks at nothing else."""

    @abstractmethod
    def sort_keys(self, rows: Predictions) -> dict[str, NDArray[np.float64]]:
        """Return the numbers, (n,) each by name."""

    @abstractmethod
    def from_sort_keys(self, columns: dict[str, NDArray[np.float64]]) -> RowResults:
        """Say something of each row."""

    def compute(self, rows: Predictions) -> RowResults:
        return self.from_sort_keys(self.sort_keys(rows))


@dataclass(frozen=True)
class BinnedMetric(Metric["Bins", None]):
    """A metric of bins of rows that hold equal counts, in the order of the predicted uncertainty or of a column."""

    conditional_on: ClassVar[str] = "edges of bins"

    bins: int = option(10, "Number of bins of equal counts.")
    by: str | None = option(
        None, "Column that orders the rows into bins. Default: the predicted standard deviation.", metavar="COLUMN"
    )

    def __post_init__(self) -> None:
        require_count_option("bins", self.bins)

    def columns(self) -> tuple[str, ...]:
        return () if self.by is None else (self.by,)

    def prepare(self, source: Source, run: Run) -> Bins:  # noqa: ARG002 - nothing is drawn
        from calcheck.statistics.bins import bins_of

        return bins_of(source.predictions(), self.bins, self.by)

    def fit(self, settings: Bins, source: Source, run: Run) -> None:
        """Fit nothing."""

    def rows(self, settings: Bins, state: None, source: Source, at: Source | None, run: Run) -> RowResults:  # noqa: ARG002
        """Say of each row what compares predicted and observed spread, to be averaged bin by bin."""
        from calcheck.statistics.bins import bin_warnings, reliability, spread_by_bin

        terms = spread_by_bin(source.predictions(), settings)
        columns = {name: term.values for name, term in terms.items() if term.values is not None}
        sums = {name: settings.sums(term.values) for name, term in terms.items()}
        warnings = bin_warnings(settings, sums["rows"])
        return RowResults(
            {**columns, "bin": settings.number()}, terms, details=reliability(sums, settings), warnings=warnings
        )


def inapplicable_reason(metric: type[Metric[Any, Any]], rows: Predictions) -> str:
    """Say why a metric does not apply to some rows; nothing if it does."""
    lacking = [REMEDIES[need] for need in metric.needs if getattr(rows, need) is None]
    if lacking:
        return "needs " + " and ".join(lacking)
    if rows.repeated and not metric.repeated_targets:
        return "needs one target for each input, and there are several"
    targets = 1 if rows.predictive is None else rows.predictive.targets
    if targets > 1 and not metric.several_targets:
        return f"needs a single target column, and there are {targets}"
    return ""


REMEDIES: dict[Need, str] = {
    "y": "targets (--target)",
    "predictive": "predictive distributions (--mean and --std, --samples, or --dist)",
    "x": "inputs to condition on (--embedding or --inputs)",
}
