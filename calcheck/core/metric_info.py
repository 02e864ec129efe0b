"""What is known of a metric before it is computed: name, requirements, null hypothesis and kind of interval."""

from dataclasses import dataclass, fields
from typing import Literal

from calcheck.reports import Alternative, Orientation, Result
from calcheck.reports.conclusion import Direction
from calcheck.result_details import Details, FieldTree, field_tree

Need = Literal["y", "predictive", "x"]
IntervalMethod = Literal["bca", "percentile", "one-sided", "lower", "own", "none"]
Part = Literal["distribution", "point", "interval", "coverage"]
"""Parts of predictions: all of the distribution, the mean or median, intervals, or the coverage of intervals."""

ONLY_INTERVALS = "the file states prediction intervals only"
UNSTATED: dict[Part, str] = {
    "distribution": f"needs predictive distributions, and {ONLY_INTERVALS}",
    "point": f"needs point predictions (--mean), and {ONLY_INTERVALS}",
}  # Why a metric does not apply to prediction intervals, by the part that it uses
REMEDIES: dict[Need, str] = {
    "y": "targets (--target)",
    "predictive": "predictive distributions (--mean and --std, --samples, or --dist)",
    "x": "inputs to condition on (--embedding or --inputs)",
}
FUNCTIONS_OF_MEANS: tuple[IntervalMethod, ...] = ("bca", "percentile", "one-sided")
"""Interval methods of metrics that are functions of means over rows."""
BINS = 10  # Default number of bins with equal counts
SHARED_FIT = "all rows share one fit, so resampling rows does not give a valid interval"
"""Why the metrics of kernel regressions have no interval."""

ABSENT_BY_ALTERNATIVE: dict[Alternative, tuple[str, ...]] = {
    "two-sided": (),
    "greater": ("reference_low",),
    "less": ("reference_high",),
    "none": (
        *("reference", "reference_low", "reference_high", "reference_kind", "zeta", "zeta_mc_error"),
        *("p_value", "p_value_mc_error", "p_value_adjusted", "direction"),
    ),
}
ABSENT_BY_INTERVAL: dict[IntervalMethod, tuple[str, ...]] = {
    "bca": (),
    "percentile": ("zeta_mc_error",),
    "one-sided": ("zeta", "zeta_mc_error"),
    "own": ("zeta_mc_error",),
    "lower": ("high", "zeta_mc_error"),
    "none": ("low", "high", "interval", "zeta_mc_error"),
}  # Result fields that are always null, by alternative hypothesis and by interval method

DIRECTIONS: dict[Orientation, tuple[Direction, Direction]] = {
    "smaller": ("worse-than-promised", "better-than-promised"),
    "zero": ("predictions-too-low", "predictions-too-high"),
}  # How a model is wrong whose value is above or below the reference, for metrics without directions of their own


@dataclass(frozen=True, kw_only=True)
class MetricInfo:
    """Properties of a metric that do not depend on its options."""

    name: str  # Name of the metric and of its command
    unit: str = "1"  # Unit of the value: "1", "y", "y^2" …
    needs: tuple[Need, ...] = ("y", "predictive")  # Required data: targets (y), predictive distributions, inputs (x)
    alternative: Alternative = "two-sided"  # Values that are evidence against a model, relative to the null
    # Which of two values is better: the smaller, the larger, the one nearer to 0 or to the reference; or none
    orientation: Orientation = "smaller"
    source: str  # Publication and equation
    interpretation: str  # How to read a value: its range and its optimum
    # Interval method: bootstrap (percentile if resampling is biased), the metric's own method (one-sided if it is a
    # function of means with two one-sided limits in closed form, lower if it has a lower limit only), or none
    interval: IntervalMethod = "bca"
    no_interval: str = ""  # Reason why there is no interval, which makes the method "none"; empty if there is one
    # Reason why there is no p-value and no interval if rows depend on each other; empty if that follows from the
    # interval method
    independent_rows: str = ""
    # Whether the metric tests that rows are independent, so that its null distribution assumes it
    tests_independence: bool = False
    permutes_samples: bool = False  # Whether the null distribution is that of a permutation test of two samples
    conditional_on: str = ""  # Data-dependent choices that are held fixed in the bootstrap
    # Whether the exact reference holds for any error distribution; the interval then decides if none is given
    distribution_free: bool = False
    uses_kernels: bool = False  # Whether the metric uses kernels, and so the device, precision and memory options
    conditional: bool = False  # Whether the metric can be evaluated at any input, including those of another file
    pointwise: bool = True  # Whether the metric has a value per row
    several_targets: bool = False  # Whether the metric accepts several target columns
    uses_inputs: bool = False  # Whether the metric uses inputs if there are any, without requiring them
    # Whether the metric accepts several targets per input, given as rows with the same key
    repeated_targets: bool = False
    # Whether an infinite value means that targets have probability 0 under the predictions
    infinite_if_impossible: bool = False
    # above, below: how the model is wrong if the value is significantly above or below the reference; by default, what
    # the orientation implies
    above: Direction | None = None
    below: Direction | None = None
    uses: Part = "distribution"  # The part of the predictive distributions that the metric uses
    details: type[Details] = Details  # Type of the details in results

    def __post_init__(self) -> None:
        if self.no_interval:
            object.__setattr__(self, "interval", "none")
        if self.alternative == "two-sided" and self.above is self.below is None:
            for name, direction in zip(("above", "below"), DIRECTIONS.get(self.orientation, (None, None)), strict=True):
                object.__setattr__(self, name, direction)

    @property
    def allows_dependence(self) -> bool:
        """Whether the metric's own interval and null distribution allow for rows that depend on each other."""
        return self.interval == "lower"

    @property
    def takes_inputs(self) -> bool:
        """Whether the metric uses inputs if there are any."""
        return self.uses_inputs or "x" in self.needs

    def result_fields(self) -> FieldTree:
        """Return the result fields that are not always null, by name, with the fields of their details."""
        never = {"curves", *ABSENT_BY_ALTERNATIVE[self.alternative], *ABSENT_BY_INTERVAL[self.interval]}
        names = (declared.name for declared in fields(Result) if declared.name not in never)
        free: FieldTree = {"options": None, "slice": None, "details": field_tree(self.details)}
        return {name: free.get(name, {}) for name in names}
