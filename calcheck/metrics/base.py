"""Base classes of metrics: a metric maps rows to columns and computes its value from the column means."""

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
    "two-sided": (),
    "greater": ("reference_low",),
    "less": ("reference_high",),
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
"""Result fields that are always null, by alternative hypothesis and by interval method."""

SettingsT = TypeVar("SettingsT")
StateT = TypeVar("StateT")


@dataclass(frozen=True)
class Metric(ABC, Generic[SettingsT, StateT]):
    """Base class of metrics; the dataclass fields are the options.

    ``prepare`` makes the choices that depend on the data, ``fit`` does the expensive work that depends on inputs only,
    ``rows`` computes the columns of each row, and ``value`` computes the metric from the column means.
    """

    name: ClassVar[str]
    unit: ClassVar[str]
    needs: ClassVar[tuple[Need, ...]]
    alternative: ClassVar[Alternative]
    orientation: ClassVar[Orientation]
    """Which of two values is better: the smaller, the larger, or the one nearer to 0 or the reference; or none."""
    source: ClassVar[str]
    interpretation: ClassVar[str]
    """How to read a value: its range and its optimum."""
    interval: ClassVar[IntervalMethod] = "bca"
    """Interval method: bootstrap (percentile where resampling is biased), the metric's own method, or none."""
    conditional_on: ClassVar[str] = ""
    """Data-dependent choices that are held fixed in the bootstrap."""
    distribution_free: ClassVar[bool] = False
    """Whether the exact reference holds for any error distribution; the interval then decides if none is given."""
    no_interval: ClassVar[str] = ""
    """Reason why there is no interval; empty if there is one."""
    uses_kernels: ClassVar[bool] = False
    """Whether the metric uses kernels, and so the device, precision and memory options."""
    conditional: ClassVar[bool] = False
    """Whether the metric can be evaluated at any input, including those of another file."""
    pointwise: ClassVar[bool] = True
    """Whether the metric has a value per row."""
    several_targets: ClassVar[bool] = False
    """Whether the metric accepts several target columns."""

    repeated_targets: ClassVar[bool] = False
    """Whether the metric accepts several targets per input, given as rows with the same key."""

    fit_key: ClassVar[tuple[str, ...] | None] = None
    """Fields that ``fit`` depends on; metrics that agree in them share the fitted state. None means all fields."""
    exempt_laws: ClassVar[dict[str, str]] = {}
    """Laws in tests/unit/test_every_metric.py that do not apply to the metric, with the reasons."""

    @classmethod
    def summary(cls) -> str:
        """Return the first line of the class docstring, one sentence."""
        return (cls.__doc__ or "").strip().splitlines()[0]

    @classmethod
    def fields(cls) -> tuple[str, ...]:
        """Return the names of the result fields that are not always null."""
        never = {*ABSENT_BY_ALTERNATIVE[cls.alternative], *ABSENT_BY_INTERVAL[cls.interval]}
        return tuple(declared.name for declared in fields(Result) if declared.name not in never)

    def description(self) -> str:
        """Return the meaning of the value and how to read it."""
        return f"{self.summary()} {self.interpretation}"

    def options(self) -> dict[str, Any]:
        """Return the options by name; they rebuild the same metric."""
        return {option.name: getattr(self, option.field) for option in options_of(type(self))}

    @classmethod
    def from_options(cls, options: dict[str, Any]) -> Metric[Any, Any]:
        """Return the metric with the given :meth:`options`."""
        return cls(**{option.field: options[option.name] for option in options_of(cls)})

    @property
    def alternative_in_use(self) -> Alternative:
        """Alternative hypothesis with these options; :attr:`alternative` by default."""
        return self.alternative

    def columns(self) -> tuple[str, ...]:
        """Return the names of required columns other than targets, predictions and inputs."""
        return ()

    def interpolates(self, levels: NDArray[np.float64]) -> bool:  # noqa: ARG002 - used by subclasses
        """Return whether the value depends on interpolation between quantiles at these levels."""
        return True

    @abstractmethod
    def prepare(self, source: Source, run: Run) -> SettingsT:
        """Make the choices that depend on the data: bandwidths, bin edges, output features."""

    def prepare_replicate(self, settings: SettingsT, source: Source, run: Run) -> SettingsT:  # noqa: ARG002 - used by subclasses
        """Make the choices for a replicate of the targets; choices that depend on inputs only may be reused."""
        return self.prepare(source, run)

    @abstractmethod
    def fit(self, settings: SettingsT, source: Source, run: Run) -> StateT:
        """Do the expensive work that depends on inputs only; the data and all replicates share the result."""

    def prepare_shared(self, state: StateT, metrics: Sequence[Metric[SettingsT, StateT]], models: int) -> None:
        """Prepare a fit that several metrics of ``models`` models share (:attr:`fit_key`)."""

    @abstractmethod
    def rows(self, settings: SettingsT, state: StateT, source: Source, at: Source | None, run: Run) -> RowResults:
        """Return the columns of each row of ``at``, or of ``source`` if ``at`` is None."""

    def null_distribution(
        self,
        settings: SettingsT,  # noqa: ARG002 - used by subclasses
        state: StateT,  # noqa: ARG002
        simulation: NullSimulator,  # noqa: ARG002
        at: Source | None,  # noqa: ARG002
        run: Run,  # noqa: ARG002
    ) -> NullDistribution | None:
        """Return the metric of all replicates, computed together; None if that is not cheaper than one by one."""
        return None

    def quick_value(
        self,
        settings: SettingsT,  # noqa: ARG002 - used by subclasses
        source: Source,  # noqa: ARG002
        run: Run,  # noqa: ARG002
    ) -> float | None:
        """Return a cheaper statistic for comparing data and replicates; None to use the metric itself."""
        return None

    def no_influences_reason(self, rows: RowResults) -> str:  # noqa: ARG002 - used by subclasses
        """Return why :meth:`influences` cannot compare two models, given the rows of one; empty if it can."""
        return ""

    def influences(
        self,
        both: Predictions,  # noqa: ARG002 - used by subclasses
        run: Run,  # noqa: ARG002
    ) -> NDArray[np.float64] | None:
        """Return the contribution of each row to the second model's squared value minus the first model's.

        Parameters
        ----------
        both : Predictions
            The n rows of the first model, then those of the second, with the same targets and inputs.
        run : Run
            Seed, device, precision, memory.

        Returns
        -------
        (n,) or None
            Contributions; they sum to twice the difference, which is bilinear in the rows. None if not available.
        """
        return None

    @property
    def not_streamable_reason(self) -> str:
        """Reason why the metric cannot be computed in batches."""
        return "needs all rows at once and cannot be computed in batches"

    @abstractmethod
    def value(self, means: Means, n: int) -> NDArray[np.float64]:
        """Return the metric as a function of the column means over n rows.

        Parameters
        ----------
        means : mapping
            Means of the columns, (...), and of the terms, (..., k) for terms with k groups, and the fixed values.
            Leading axes are resamples.
        n : int
            Number of rows.
        """


@dataclass(frozen=True)
class RowMetric(Metric[None, None]):
    """Base class of metrics whose columns depend on one row at a time; there is nothing to prepare or fit."""

    def prepare(self, source: Source, run: Run) -> None:
        """Return None; there are no choices."""

    def fit(self, settings: None, source: Source, run: Run) -> None:
        """Return None; there is nothing to fit."""

    def rows(self, settings: None, state: None, source: Source, at: Source | None, run: Run) -> RowResults:  # noqa: ARG002
        return self.compute(source.predictions())

    @abstractmethod
    def compute(self, rows: Predictions) -> RowResults:
        """Return the columns of each row."""

    def details(self, means: Means) -> dict[str, Any]:  # noqa: ARG002 - used by subclasses
        """Return report details that follow from the means of all rows."""
        return {}


@dataclass(frozen=True)
class OrderedMetric(RowMetric):
    """Base class of metrics that depend on the rows only through a few sort keys."""

    @abstractmethod
    def sort_keys(self, rows: Predictions) -> dict[str, NDArray[np.float64]]:
        """Return the sort keys by name, (n,) each."""

    @abstractmethod
    def from_sort_keys(self, columns: dict[str, NDArray[np.float64]]) -> RowResults:
        """Return the columns of each row, given the sort keys."""

    def compute(self, rows: Predictions) -> RowResults:
        return self.from_sort_keys(self.sort_keys(rows))


@dataclass(frozen=True)
class BinnedMetric(Metric["Bins", None]):
    """Base class of metrics over bins with equal counts, ordered by predicted uncertainty or by a column."""

    conditional_on: ClassVar[str] = "bin edges"

    bins: int = option(10, "Number of bins with equal counts.")
    by: str | None = option(
        None, "Column used to sort rows into bins. Default: the predicted standard deviation.", metavar="COLUMN"
    )

    def __post_init__(self) -> None:
        require_count_option("bins", self.bins)

    def columns(self) -> tuple[str, ...]:
        return () if self.by is None else (self.by,)

    def prepare(self, source: Source, run: Run) -> Bins:  # noqa: ARG002 - not random
        from calcheck.statistics.bins import bins_of

        return bins_of(source.predictions(), self.bins, self.by)

    def fit(self, settings: Bins, source: Source, run: Run) -> None:
        """Return None; there is nothing to fit."""

    def rows(self, settings: Bins, state: None, source: Source, at: Source | None, run: Run) -> RowResults:  # noqa: ARG002
        """Return predicted variances and squared errors, to be averaged by bin."""
        from calcheck.statistics.bins import bin_warnings, reliability, spread_by_bin

        terms = spread_by_bin(source.predictions(), settings)
        columns = {name: term.values for name, term in terms.items() if term.values is not None}
        sums = {name: settings.sums(term.values) for name, term in terms.items()}
        warnings = bin_warnings(settings, sums["rows"])
        return RowResults(
            {**columns, "bin": settings.number()}, terms, details=reliability(sums, settings), warnings=warnings
        )


def inapplicable_reason(metric: type[Metric[Any, Any]], rows: Predictions) -> str:
    """Return why a metric does not apply to the rows; empty if it does."""
    lacking = [REMEDIES[need] for need in metric.needs if getattr(rows, need) is None]
    if lacking:
        return "needs " + " and ".join(lacking)
    if rows.repeated and not metric.repeated_targets:
        return "needs one target per input, but there are several"
    targets = 1 if rows.predictive is None else rows.predictive.targets
    if targets > 1 and not metric.several_targets:
        return f"needs a single target column, but there are {targets}"
    return ""


REMEDIES: dict[Need, str] = {
    "y": "targets (--target)",
    "predictive": "predictive distributions (--mean and --std, --samples, or --dist)",
    "x": "inputs to condition on (--embedding or --inputs)",
}
