"""Marginal calibration: of quantiles, and of the probability integral transform (PIT) with its components."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from calcheck.core.metric_info import MetricInfo
from calcheck.errors import AT_QUANTILES, DataError, OptionError
from calcheck.inference.metric_protocol import CurveData, RowResults
from calcheck.metrics._lazy import bootstrap, clusters, curves, groups, np, pit
from calcheck.metrics.base import MeanMetric, Metric, OrderedMetric, RowMetric
from calcheck.options import LEVEL_TOLERANCE, option, require_count_option, require_levels_option
from calcheck.result_details import EceDetails, PitDetails, PitIndependenceDetails

if TYPE_CHECKING:
    from calcheck.metrics._lazy import Curve, Direction, Means, Predictions, Run, Source, Values

MAX_BINS = 10_000  # maximum number of histogram bins
CURVE_LEVELS = 99  # levels of the distribution function in pictures
FIXED_LEVELS = 199  # levels of the integral if rows depend on each other
MOST_LAGS = 1_000  # maximum number of lags


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
        alternative="greater",
        above="wrong-shape",
        source="Czado, Gneiting, Held 2009",
        interpretation="Smaller is better; a perfect model scores about 1/(6 n), or 1/n by Anderson-Darling.",
        interval="percentile",
        details=PitDetails,
        several_targets=True,
    )

    bins: int = option("Number of bins of the histogram in the details.", 20)
    statistic: Literal["cramer-von-mises", "anderson-darling"] = option(
        "Distance from uniform: equal weights, or larger ones near 0 and 1 (anderson-darling).", "cramer-von-mises"
    )
    pre_rank: Literal["variogram", "band-depth", "average", "multivariate"] | None = option(
        "Order of the vectors of several targets: by the distances of coordinates, which show their dependence"
        " (variogram), by their depths, by their ranks, or by the number of smaller vectors. Default: variogram."
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
        if rows.distributions().targets > 1:
            from calcheck.statistics.multivariate import rank_pit

            return rank_pit(rows, self.pre_rank or "variogram")
        if self.pre_rank is not None:
            raise DataError("--pre-rank is for several targets, and there is one: omit it")
        return pit.pit(rows)

    def from_sort_keys(self, columns: dict[str, Values]) -> RowResults:
        right = columns["pit_high"]
        left = columns.get("pit_low", right)
        terms, places = pit.distribution(left, right)
        details: PitDetails = {"histogram": self._histogram(left, right)}
        return RowResults({"pit_low": left, "pit_high": right}, terms, fixed={"places": places}, details=details)

    def quick_statistic(self, fit: None, source: Source, run: Run) -> float:  # noqa: ARG002 - not random
        """Return the value, by the shortest computation."""
        left, right = self._limits(source.predictions())
        if self.statistic == "cramer-von-mises":
            return pit.distance_of_sorted(np.sort(right)) if left is right else pit.distance_of_jumps(left, right)
        terms, places = pit.distribution(left, right)
        return bootstrap.Statistic(terms, len(right), self.value, {"places": places}).estimate()

    def _histogram(self, left: Values, right: Values) -> list[float]:
        """Return the counts of PIT values by bin; a row whose PIT spans several bins is divided among them."""
        if self.bins == 1:
            return [float(len(left))]
        below = pit.share_below(left, right, pit.levels_of(self.bins - 1)).sums(None)
        return [float(count) for count in np.diff(below, prepend=0, append=len(left))]

    def curves(self, shown: CurveData[None]) -> tuple[Curve, ...]:
        """Return the histogram of the PIT as a density, and its distribution function minus the level."""
        left, right = self._limits(shown.source.predictions())
        edges, levels = np.linspace(0, 1, self.bins + 1), pit.levels_of(CURVE_LEVELS)
        density = np.array(self._histogram(left, right)) * self.bins / len(left)
        difference = pit.mean_share_below(left, right, levels) - levels
        return (
            curves.curve_of("pit-histogram", edges[:-1], density, stop=edges[1:]),
            curves.curve_of("pit-difference", levels, difference),
        )

    def direction_above(self, means: Means) -> Direction:
        if self.pre_rank is not None:
            return "wrong-distribution"
        return pit.direction(means["places"], pit.cumulate(means, means["places"]))

    def at_fixed_levels(self, rows: RowResults) -> RowResults:
        """Return the results with the integral as a sum over levels."""
        levels = pit.levels_of(FIXED_LEVELS)
        right = rows.columns["pit_high"]
        left = rows.columns["pit_low"]
        below = groups.MeanTerm(groups=pit.share_below(right if (left is right) else left, right, levels))
        return replace(rows, terms={"below": below}, fixed={"levels": levels})

    def value(self, means: Means) -> Values:
        if "below" in means:
            return pit.distance_at_levels(
                means["below"], means["levels"], weighted=self.statistic == "anderson-darling"
            )
        distance = pit.anderson_darling if self.statistic == "anderson-darling" else pit.cramer_von_mises
        return distance(means, means["places"])


@dataclass(frozen=True)
class PitComponent(MeanMetric):
    """Mean of an orthonormal polynomial of the PIT: 0 for a perfect model, with variance at most 1/n."""

    column: ClassVar[str] = "component"
    degree: ClassVar[int]  # The degree of the polynomial, from 1

    def compute(self, rows: Predictions) -> RowResults:
        predictive = rows.distributions()
        is_exact = predictive.shape_is_known and predictive.quantile_levels is None
        values = pit.mean_component(*pit.pit(rows), self.degree)
        return RowResults({"component": values}, reference=0.0 if is_exact else None)


@dataclass(frozen=True)
class PitBias(PitComponent):
    r"""Bias of the probability integral transform (PIT): its mean, standardized.

    .. math:: \frac1n \sum_i \phi_1(F_i(y_i)), \qquad \phi_1(u) = \sqrt3 (2u - 1)

    If a CDF jumps at its target from F- to F, the polynomial is averaged over [F-, F].

    Value
    -----
    Dimensionless, in [-1.73, 1.73]; 0 is ideal. Positive values mean that targets are above the
    predictions.

    Notes
    -----
    A mean over rows; unbiased. For a perfect continuous model the variance is 1/n, and the four components of the PIT
    are uncorrelated. The influence of a row is bounded, so the metric suits heavy tails and distributions without a
    mean. Time O(n).

    References
    ----------
    Neyman (1937), "Smooth test for goodness of fit". Czado, Gneiting, Held (2009).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="pit-bias",
        orientation="zero",
        source="Neyman 1937",
        interpretation="0 is ideal; positive values mean that targets are above the predictions.",
    )
    degree: ClassVar[int] = 1


@dataclass(frozen=True)
class PitDispersion(PitComponent):
    r"""Dispersion of the probability integral transform (PIT): its mean square around 1/2, standardized.

    .. math:: \frac1n \sum_i \phi_2(F_i(y_i)), \qquad \phi_2(u) = \sqrt5 (6u^2 - 6u + 1)

    If a CDF jumps at its target from F- to F, the polynomial is averaged over [F-, F].

    Value
    -----
    Dimensionless, in [-1.12, 2.24]; 0 is ideal. Positive values mean that distributions
    are too narrow: the histogram of the PIT has the shape of a U.

    Notes
    -----
    A mean over rows; unbiased. A bias alone also makes it positive: compare ``pit-bias`` first. The influence of a row
    is bounded, so the metric suits heavy tails, where few rows determine ``zms``. Time O(n).

    References
    ----------
    Neyman (1937), "Smooth test for goodness of fit". Czado, Gneiting, Held (2009).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="pit-dispersion",
        orientation="zero",
        above="too-narrow",
        below="too-wide",
        source="Neyman 1937",
        interpretation="0 is ideal; positive values mean that distributions are too narrow.",
    )
    degree: ClassVar[int] = 2


@dataclass(frozen=True)
class PitSkew(PitComponent):
    r"""Skewness of the probability integral transform (PIT): its third Legendre moment, standardized.

    .. math:: \frac1n \sum_i \phi_3(F_i(y_i)), \qquad \phi_3(u) = \sqrt7 (20u^3 - 30u^2 + 12u - 1)

    If a CDF jumps at its target from F- to F, the polynomial is averaged over [F-, F].

    Value
    -----
    Dimensionless, in [-2.65, 2.65]; 0 is ideal. Positive values mean that targets are more
    skewed to the right than predicted.

    Notes
    -----
    A mean over rows; unbiased. Compare ``pit-bias`` and ``pit-dispersion`` first: a large bias or a wrong width also
    contributes to this component. The influence of a row is bounded. Time O(n).

    References
    ----------
    Neyman (1937), "Smooth test for goodness of fit". Czado, Gneiting, Held (2009).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="pit-skew",
        orientation="zero",
        above="skewed-right",
        below="skewed-left",
        source="Neyman 1937",
        interpretation="0 is ideal; positive values mean that targets are more skewed to the right than predicted.",
    )
    degree: ClassVar[int] = 3


@dataclass(frozen=True)
class PitTails(PitComponent):
    r"""Tails of the probability integral transform (PIT): its fourth Legendre moment, standardized.

    .. math:: \frac1n \sum_i \phi_4(F_i(y_i)), \qquad \phi_4(u) = 3 (70u^4 - 140u^3 + 90u^2 - 20u + 1)

    If a CDF jumps at its target from F- to F, the polynomial is averaged over [F-, F].

    Value
    -----
    Dimensionless, in [-1.29, 3]; 0 is ideal. Positive values mean that targets have
    heavier tails, and more values near the center, than predicted.

    Notes
    -----
    A mean over rows; unbiased. If ``pit-dispersion`` is near 0, the width is right and the shape is wrong. A wrong
    width also contributes to this component. The influence of a row is bounded. Time O(n).

    References
    ----------
    Neyman (1937), "Smooth test for goodness of fit". Czado, Gneiting, Held (2009).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="pit-tails",
        orientation="zero",
        above="heavy-tails",
        below="light-tails",
        source="Neyman 1937",
        interpretation="0 is ideal; positive values mean that targets have heavier tails than predicted.",
    )
    degree: ClassVar[int] = 4


@dataclass(frozen=True)
class PitIndependence(Metric[None]):
    r"""Serial correlation of the probability integral transform (PIT), and of its distance from 1/2.

    .. math:: \sqrt{\frac1{2L} \sum_{k=1}^{L} \left(r_k(u)^2 + r_k(|2u - 1|)^2\right)}, \qquad u_t = F_t(y_t)

    where r_k is the autocorrelation at lag k. Rows are in the order of the file, or of the column of ``--time``; rows
    of one time are averaged. If a CDF jumps at its target from F- to F, both are averaged over [F-, F].

    Value
    -----
    Dimensionless, in [0, 1], smaller is better. A perfect model of which each forecast knows the targets before it
    scores about 1 / sqrt(n).

    Notes
    -----
    Forecasts of h steps ahead are right although errors depend on each other at lags below h. A large value is
    evidence against forecasts of one step, and it is the reason to pass ``--time`` to the other metrics, whose
    p-values assume independent rows. Replicates are independent, so that the p-value is exact, also for counts and
    samples. Time O(n L).

    References
    ----------
    Diebold, Gunther, Tay (1998), "Evaluating density forecasts", International Economic Review 39, 863-883. Box, Pierce
    (1970).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="pit-independence",
        alternative="greater",
        above="dependent-errors",
        source="Diebold, Gunther, Tay 1998",
        interpretation="Smaller is better; errors of forecasts of one step are independent in time.",
        no_interval="it is a function of pairs of rows, for which the row bootstrap is not valid",
        tests_independence=True,
        pointwise=False,
        details=PitIndependenceDetails,
    )

    lags: int = option("Number of lags.", 5)

    def __post_init__(self) -> None:
        require_count_option("lags", self.lags, MOST_LAGS)

    def fit(self, source: Source, run: Run) -> None:
        """Return None: there is nothing to fit."""

    def evaluate(self, fit: None, source: Source, run: Run) -> RowResults:  # noqa: ARG002 - nothing is fitted
        rows = source.predictions()
        place = clusters.time_labels(rows, run.dependence.time)
        counts = np.bincount(place)
        if len(counts) < self.lags + 2:
            times = "1 time is" if len(counts) == 1 else f"{len(counts)} times are"
            raise DataError(f"{times} too few for {self.lags} lags. Pass a smaller --lags, or more rows")
        left, right = pit.pit(rows)
        series = [np.bincount(place, each) / counts for each in ((left + right) / 2, pit.mean_distance(left, right))]
        found = np.zeros((2, self.lags))  # 0 for a constant series
        for number, each in enumerate(series):
            covariances = clusters.autocovariances(each)
            if covariances[0] > 0:
                found[number] = covariances[1 : self.lags + 1] / covariances[0]
        details: PitIndependenceDetails = {
            "correlations": [
                {"lag": lag, "position": position, "distance": distance}
                for lag, (position, distance) in enumerate(found.T.tolist(), 1)
            ]
        }
        return RowResults({}, fixed={"correlations": found}, details=details)

    def value(self, means: Means) -> Values:
        return np.asarray(np.sqrt(np.mean(means["correlations"] ** 2)))


MAX_LEVELS = 10_000  # maximum number of quantile levels


@dataclass(frozen=True)
class Ece(RowMetric):
    r"""Mean difference between quantile levels and the share of targets below the predicted quantiles.

    .. math:: \mathrm{ECE} = \sum_{j=1}^{q} w_j |p_j - \hat p_j|^\alpha, \qquad
              p_j = \frac{j}{q+1} \text{ or given}, \quad \hat p_j = \frac1n \sum_i 1\{F_i(y_i) \le p_j\}

    If a CDF jumps at its target from F- to F, the indicator is replaced by its expectation under a uniform draw within
    the jump: (p - F-) / (F - F-), clipped to [0, 1]. For files of quantiles, the levels are those of the file, and
    where targets are equal to a quantile, p-hat_j is the number nearest to p_j between the shares of targets below it
    and at or below it: a right model only states that P(Y < q) <= p <= P(Y <= q).

    Value
    -----
    Dimensionless, in [0, 1/2] for uniform weights, smaller is better. A perfect model scores about 0.3 / sqrt(n).
    ``details`` have the quantile reliability diagram at all levels; tables show about nine of them.

    Notes
    -----
    Measures marginal calibration: a model that predicts the marginal distribution for all rows scores as perfect. With
    ``--pit plain``, as in the papers, perfect predictions of counts score badly (0.070 instead of 0.006 for Poisson
    rates). Biased upwards, and more so under resampling; the percentile interval is not used for the verdict. Time
    O(n) for continuous distributions, O(n q) for others. For files of quantiles, the value depends only on the counts
    between quantiles, multinomial if the model is right, whatever lies between them. It is 0 only if every count is as
    expected, so it judges all of them together. Targets equal to quantiles make the test conservative, except at limits
    of ``--clip``; those rounded to quantiles, little: see coverage.

    References
    ----------
    Kuleshov, Fenner, Ermon (ICML 2018); Young et al., Eq. 4-5 (arXiv 2405.12412). Czado, Gneiting, Held (2009).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="ece",
        alternative="greater",
        above="wrong-shape",
        source="Kuleshov et al. 2018; Young et al., Eq. 4-5 (arXiv 2405.12412)",
        interpretation="Smaller is better; because of noise, a perfect model is above 0.",
        interval="percentile",
        details=EceDetails,
    )

    n_levels: int = option("Number of quantile levels q, at j/(q + 1). Quantile files use their own levels.", 99)
    levels: tuple[float, ...] | None = option(
        "Quantile levels in [0, 1], as a list or linspace:START:STOP:COUNT, in place of --n-levels."
    )
    alpha: int = option("Power of the distance at each level: 1 or 2.", 1)
    level_weights: tuple[float, ...] | Literal["uniform", "frequency"] = option(
        "Weights of the levels: uniform, by the share of targets below (frequency), as in the authors' code, or a list"
        " of numbers, which are not normalized.",
        "uniform",
    )
    norm: Literal["mean", "max"] = option("Weighted mean of the distances at the levels, or their maximum.", "mean")
    pit: Literal["nonrandomized", "plain"] = option(
        "Treatment of counts and samples: spread each row over the jump of its CDF, or use F(y) <= p as in the papers.",
        "nonrandomized",
    )

    def __post_init__(self) -> None:
        require_count_option("n_levels", self.n_levels, MAX_LEVELS)
        if self.alpha not in (1, 2):
            raise OptionError(f"--alpha must be 1 or 2, got {self.alpha}")
        if self.levels is not None:
            object.__setattr__(self, "levels", tuple(self.levels))  # a list, of Python, has no hash
            require_levels_option("levels", self.levels, closed=True)
            if list(self.levels) != sorted(self.levels):
                raise OptionError(f"--levels must increase, got {', '.join(f'{level:g}' for level in self.levels)}")
        if not isinstance(self.level_weights, str):
            object.__setattr__(self, "level_weights", tuple(self.level_weights))  # a list, of Python, has no hash
            if min(self.level_weights, default=-1.0) < 0 or not 0 < sum(self.level_weights) < math.inf:
                listed = ", ".join(f"{weight:g}" for weight in self.level_weights) or "none"
                raise OptionError(f"--level-weights must be numbers from 0 on, and not all 0, got {listed}")
        if self.norm == "max" and self.level_weights != "uniform":
            raise OptionError("--norm max has no weights. Remove --level-weights")

    def description(self) -> str:
        statistic = f"{'Largest' if self.norm == 'max' else 'Mean'}{'' if self.alpha == 1 else ' squared'} difference"
        between = "between quantile levels and the share of targets below the predicted quantiles"
        return f"{statistic} {between}. {self.info.interpretation}"

    def interpolates(self, levels: Values) -> bool:
        return self.levels is not None and any(abs(levels - level).min() > LEVEL_TOLERANCE for level in self.levels)

    def _levels(self, rows: Predictions) -> tuple[Values, bool]:
        """Return the levels, (q,), and whether they are those of stated quantiles."""
        known = rows.distributions().quantile_levels
        if self.levels is not None:
            levels = np.array(self.levels)
        else:
            levels = pit.levels_of(self.n_levels) if known is None else known
        if not isinstance(self.level_weights, str) and len(self.level_weights) != len(levels):
            number = len(self.level_weights)
            raise DataError(f"--level-weights must have a number for each of the {len(levels)} levels, got {number}")
        return levels, known is not None and not self.interpolates(known)

    def quick_statistic(self, fit: None, source: Source, run: Run) -> float:
        """Return the value, without the shares of each row where distributions jump."""
        rows = source.predictions()
        levels, stated = self._levels(rows)
        if stated or self.pit == "plain" or self.level_weights == "frequency":
            return bootstrap.statistic_of(self, self.evaluate(fit, source, run)).estimate()
        means = groups.Means({"below": pit.mean_share_below(*pit.pit(rows), levels), "levels": levels}, len(rows))
        return float(self.value(means))

    def compute(self, rows: Predictions) -> RowResults:
        left, right = pit.pit(rows)
        levels, stated = self._levels(rows)
        if stated:
            below = pit.shares_at_quantiles(rows, levels)
        else:
            below = pit.share_below(right if self.pit == "plain" else left, right, levels)
        are_equal = False
        if stated:
            counts_below, counts_up_to, *_ = below.sums(None).reshape(-1, len(levels))
            are_equal = bool((counts_up_to - counts_below > 1 / 2).any())
        return RowResults(
            {"pit_low": left, "pit_high": right},
            {"below": groups.MeanTerm(groups=below)},
            fixed={"levels": levels},
            warnings=(AT_QUANTILES,) if are_equal else (),
            details=self.details(groups.Means({"below": below.sums(None) / len(rows), "levels": levels}, len(rows))),
        )

    def evaluate(self, fit: None, source: Source, run: Run) -> RowResults:
        found = super().evaluate(fit, source, run)
        below = found.terms["below"].groups
        if self.level_weights == "frequency" and below is not None and not below.sums(None).any():
            msg = "--level-weights frequency is undefined, as no target is below any quantile. Pass uniform instead"
            raise DataError(msg)
        return found

    def curves(self, shown: CurveData[None]) -> tuple[Curve, ...]:
        """Return the share of targets below each quantile, by level."""
        found = shown.rows or self.evaluate(shown.fit, shown.source, shown.run)
        means = bootstrap.statistic_of(self, found).means().with_values(found.fixed)
        return (curves.curve_of("reliability", means["levels"], _observed(means)),)

    def details(self, means: Means) -> EceDetails:
        """Return the quantile reliability diagram."""
        pairs = zip(means["levels"].tolist(), _observed(means).tolist(), strict=True)
        return {"curve": [{"level": level, "observed": observed} for level, observed in pairs]}

    def direction_above(self, means: Means) -> Direction:
        return pit.direction(means["levels"], _observed(means))

    def value(self, means: Means) -> Values:
        observed = _observed(means)  # (..., q)
        gaps = np.abs(means["levels"] - observed) ** self.alpha
        if self.norm == "max":
            return np.asarray(gaps.max(axis=-1))
        if self.level_weights == "uniform":
            return np.asarray(gaps.mean(axis=-1))
        if self.level_weights == "frequency":
            return np.asarray((gaps * observed).sum(axis=-1) / observed.sum(axis=-1))
        return np.asarray(gaps @ np.array(self.level_weights))


def _observed(means: Means) -> Values:
    """Return the share of targets below each quantile, (..., q), nearest to the level if targets are equal to it."""
    levels, shares = means["levels"], means["below"]
    if shares.shape[-1] == len(levels):
        return shares
    below, up_to, *at_limits = np.split(shares, shares.shape[-1] // len(levels), axis=-1)  # files of quantiles
    found = np.clip(levels, below, up_to)
    if at_limits:
        found += np.maximum(at_limits[0], 0) + np.minimum(at_limits[1], 0)
    return np.asarray(found)
