"""Distance of the probability integral transform from the uniform distribution."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from calcheck.core.metric_info import MetricInfo
from calcheck.details import PitDetails
from calcheck.errors import DataError
from calcheck.inference.metric_protocol import RowResults
from calcheck.metrics.base import OrderedMetric
from calcheck.options import option, require_count_option

if TYPE_CHECKING:
    from calcheck.inference.metric_protocol import CurveData
    from calcheck.predictions import Predictions
    from calcheck.report import Curve, Direction
    from calcheck.statistics.groups import Means
    from calcheck.typing import Values

MAX_BINS = 10_000  # maximum number of histogram bins
CURVE_LEVELS = 99  # levels of the distribution function in pictures
FIXED_LEVELS = 199  # levels of the integral if rows depend on each other


@dataclass(frozen=True)
class Pit(OrderedMetric):
    r"""Distance of the probability integral transform (PIT) from the uniform distribution.

    .. math:: \omega^2 = \int_0^1 (\bar F(u) - u)^2 \, du, \qquad \bar F(u) = \frac1n \sum_i 1\{F_i(y_i) \le u\}

    This is the Cramér-von Mises distance; Anderson-Darling divides the integrand by u (1 - u).

    If a CDF jumps at its target from F- to F, the indicator is replaced by (u - F-) / (F - F-), clipped to [0, 1]: the
    non-randomized PIT. The integral is exact.

    Value
    -----
    Dimensionless, in [0, 1/3], smaller is better. n times the value is the Cramér-von Mises statistic, 1/6 on average
    for a perfect continuous model. The Anderson-Darling statistic is n times a value >= 0, and 1 on average.

    Notes
    -----
    For several targets, F is the rank of the target vector among its draws, or among 50 draws of distributions that are
    not given by draws, in the order of a number: the mean distance between standardized coordinates (variogram), which
    is small if the targets vary together; the mean depth of the coordinates (band-depth), which shows wrong spreads;
    the mean of their ranks (average), which shows biases; or the number of vectors that are nowhere larger
    (multivariate).
    A U-shaped histogram indicates distributions that are too narrow, a hump-shaped one distributions that are too wide.
    For counts and samples the histogram is not multinomial, so there is no chi-square test. Biased upwards, and more so
    under resampling; the percentile interval is not used for the verdict. Anderson-Darling has more power against
    outliers and wrong tails; PIT values that round to 0 or 1 count as 1e-16 away from them. Time O(n log n).

    References
    ----------
    Czado, Gneiting, Held (2009); Gneiting, Balabdaoui, Raftery (2007). Anderson, Darling (1952). Allen, Ziegel,
    Ginsbourger (2024).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="pit",
        unit="1",
        needs=("y", "predictive"),
        alternative="greater",
        orientation="smaller",
        above="wrong-shape",
        source="Czado, Gneiting, Held 2009",
        interpretation="Smaller is better; a perfect model scores about 1/(6 n), or 1/n by Anderson-Darling.",
        interval="percentile",
        details=PitDetails,
        several_targets=True,
    )

    bins: int = option(20, "Number of bins of the histogram in the details.")
    statistic: Literal["cramer-von-mises", "anderson-darling"] = option(
        "cramer-von-mises", "Distance from uniform: equal weights, or larger ones near 0 and 1 (anderson-darling)."
    )
    pre_rank: Literal["variogram", "band-depth", "average", "multivariate"] | None = option(
        None,
        "Order of the vectors of several targets: by the distances of coordinates, which show their dependence"
        " (variogram), by their depths, by their ranks, or by the number of smaller vectors. Default: variogram.",
    )

    def __post_init__(self) -> None:
        require_count_option("bins", self.bins, MAX_BINS)

    def sort_keys(self, rows: Predictions) -> dict[str, Values]:
        left, right = self._limits(rows)
        return {"pit_high": right} if left is right else {"pit_low": left, "pit_high": right}

    def with_defaults(self, rows: Predictions) -> Self:
        if self.pre_rank is None and rows.predictive is not None and rows.predictive.targets > 1:
            return replace(self, pre_rank="variogram")
        return self

    def description(self) -> str:
        if self.pre_rank is None:
            return super().description()
        return (
            "Distance from uniform of the ranks of the target vectors among their draws, by the pre-rank"
            f" {self.pre_rank}. {self.info.interpretation}"
        )

    def _limits(self, rows: Predictions) -> tuple[Values, Values]:
        """Return the limits of the PIT, (n,) each."""
        from calcheck.statistics.pit import pit

        if rows.distributions().targets > 1:
            from calcheck.statistics.moments import rank_pit

            return rank_pit(rows, self.pre_rank or "variogram")
        if self.pre_rank is not None:
            msg = "--pre-rank is for several targets, and there is one: omit it"
            raise DataError(msg)
        return pit(rows)

    def from_sort_keys(self, columns: dict[str, Values]) -> RowResults:
        from calcheck.statistics.pit import distribution

        right = columns["pit_high"]
        left = columns.get("pit_low", right)
        terms, places = distribution(left, right)
        details: PitDetails = {"histogram": self._histogram(left, right)}
        return RowResults({"pit_low": left, "pit_high": right}, terms, fixed={"places": places}, details=details)

    def _histogram(self, left: Values, right: Values) -> list[float]:
        """Return the counts of PIT values by bin; a row whose PIT spans several bins is divided among them."""
        import numpy as np

        from calcheck.statistics.pit import levels_of, share_below

        if self.bins == 1:
            return [float(len(left))]
        below = share_below(left, right, levels_of(self.bins - 1)).sums(None)
        return [float(count) for count in np.diff(below, prepend=0, append=len(left))]

    def curves(self, shown: CurveData[None]) -> tuple[Curve, ...]:
        """Return the histogram of the PIT as a density, and its distribution function minus the level."""
        import numpy as np

        from calcheck.statistics.curves import curve_of
        from calcheck.statistics.pit import levels_of, share_below

        left, right = self._limits(shown.source.predictions())
        edges, levels = np.linspace(0, 1, self.bins + 1), levels_of(CURVE_LEVELS)
        density = np.array(self._histogram(left, right)) * self.bins / len(left)
        difference = share_below(left, right, levels).sums(None) / len(left) - levels
        return (
            curve_of("pit-histogram", edges[:-1], density, stop=edges[1:]),
            curve_of("pit-difference", levels, difference),
        )

    def direction_above(self, means: Means) -> Direction:
        from calcheck.statistics.pit import cumulate, direction

        if self.pre_rank is not None:
            return "wrong-distribution"
        return direction(means["places"], cumulate(means, means["places"]))

    def at_fixed_levels(self, rows: RowResults) -> RowResults:
        """Return the results with the integral as a sum over levels."""
        from calcheck.statistics.groups import MeanTerm
        from calcheck.statistics.pit import levels_of, share_below

        levels = levels_of(FIXED_LEVELS)
        right = rows.columns["pit_high"]
        left = rows.columns["pit_low"]
        below = MeanTerm(groups=share_below(right if (left is right) else left, right, levels))
        return replace(rows, terms={"below": below}, fixed={"levels": levels})

    def value(self, means: Means) -> Values:
        from calcheck.statistics.pit import anderson_darling, cramer_von_mises, distance_at_levels

        if "below" in means:
            return distance_at_levels(means["below"], means["levels"], weighted=self.statistic == "anderson-darling")
        distance = anderson_darling if self.statistic == "anderson-darling" else cramer_von_mises
        return distance(means, means["places"])
