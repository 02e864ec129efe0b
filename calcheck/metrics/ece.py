"""Expected calibration error of predicted quantiles."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from calcheck.core.metric_info import MetricInfo
from calcheck.errors import AT_QUANTILES, DataError, OptionError
from calcheck.inference.metric_protocol import CurveData, RowResults
from calcheck.metrics._lazy import bootstrap, curves, groups, np, pit
from calcheck.metrics.base import RowMetric
from calcheck.options import LEVEL_TOLERANCE, option, require_count_option, require_levels_option
from calcheck.result_details import EceDetails

if TYPE_CHECKING:
    from calcheck.metrics._lazy import Curve, Direction, Means, Predictions, Run, Source, Values

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
    of targets between the quantiles, which are multinomial if the model is right, whatever lies between them. It is 0
    only if every count is as expected, so it judges all of them together. Targets equal to quantiles make the test
    conservative.

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

    def compute(self, rows: Predictions) -> RowResults:
        left, right = pit.pit(rows)
        known = rows.distributions().quantile_levels
        if self.levels is not None:
            levels = np.array(self.levels)
        else:
            levels = pit.levels_of(self.n_levels) if known is None else known
        if not isinstance(self.level_weights, str) and len(self.level_weights) != len(levels):
            number = len(self.level_weights)
            raise DataError(f"--level-weights must have a number for each of the {len(levels)} levels, got {number}")
        if stated := known is not None and not self.interpolates(known):
            below = pit.shares_at_quantiles(left, right, levels)
        else:
            below = pit.share_below(right if self.pit == "plain" else left, right, levels)
        are_equal = False
        if stated:
            counts_below, counts_up_to = np.split(below.sums(None), 2)
            are_equal = bool((counts_below < counts_up_to).any())
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
    below, up_to = np.split(shares, 2, axis=-1)  # files of quantiles
    return np.clip(levels, below, up_to)
