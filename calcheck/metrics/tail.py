"""Calibration of a tail: exceedances of a threshold, and excesses over it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from calcheck.core.metric_info import MetricInfo
from calcheck.errors import Message
from calcheck.inference.metric_protocol import RowResults
from calcheck.metrics._lazy import coverage, groups, np
from calcheck.metrics.base import UnfittedMetric
from calcheck.options import option, require_share_option
from calcheck.result_details import TailDetails, TailLevel, TailParts

if TYPE_CHECKING:
    from calcheck.metrics._lazy import Means, Predictions, Run, Source, Values
    from calcheck.statistics.coverage import Exceedances

FEWEST = 30  # Minimum number of exceedances without a warning
OTHER_LEVELS = (0.9, 0.95, 0.99)


@dataclass(frozen=True)
class Tail(UnfittedMetric):
    r"""Number of targets in the tail of the predictions, relative to the expected number; or their sizes.

    .. math:: \mathrm{occurrence} = \frac{\sum_i 1\{y_i > t\}}{\sum_i 1 - F_i(t)}, \qquad
              \mathrm{severity} = \frac{2 \sum_i z_i 1\{y_i > t\}}{\sum_i 1\{y_i > t\}}, \qquad
              z_i = \frac{F_i(y_i) - F_i(t)}{1 - F_i(t)}

    The threshold t is a quantile of the mixture of all predictive distributions. Severity is twice the mean PIT of the
    excesses; the combined statistic is occurrence times severity. Of the lower tail, targets below t count.

    Value
    -----
    Dimensionless, >= 0; 1 is ideal. Above 1, there are more targets in the tail than predicted, or they are farther
    out. ``details`` contain the threshold, both statistics, and those at the levels 0.9, 0.95 and 0.99.

    Notes
    -----
    A ratio of means over rows. Where a CDF jumps, z is its middle; for m draws it is the rank of the target among the
    draws beyond t. The threshold of draws depends on these, so the reference is that of replicates. With fewer than 30
    exceedances there is a warning. Time O(n), with 60 distribution functions per level; memory O(n m) for draws.

    References
    ----------
    Allen, Koh, Segers, Ziegel (2024), "Tail calibration of probabilistic forecasts".
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="tail",
        orientation="reference",
        above="heavy-tails",
        below="light-tails",
        source="Allen et al. 2024",
        interpretation="1 is ideal; above 1, the tail is heavier than predicted.",
        conditional_on="threshold",
        details=TailDetails,
    )

    threshold: float = option("Share of the mixture of all predictions that is not in the tail.", 0.95)
    side: Literal["upper", "lower"] = option("The tail: large targets (upper) or small ones (lower).", "upper")
    statistic: Literal["occurrence", "severity", "combined"] = option(
        "How often targets are in the tail (occurrence), how far out (severity), or their product.", "occurrence"
    )

    def __post_init__(self) -> None:
        require_share_option("threshold", self.threshold)

    def compute(self, rows: Predictions) -> RowResults:
        threshold, found = self._exceedances(rows, self.threshold)
        predictive = rows.distributions()
        is_exact = predictive.shape_is_known and predictive.quantile_levels is None and predictive.n_draws is None
        count = int(found.exceeds.sum())
        few = f"only {count} of {len(rows):,} targets {'is' if count == 1 else 'are'} in the tail"
        text = f"{few}: pass a threshold nearer to the middle"
        others: list[TailLevel] = [
            {"level": level, **_summary(*self._exceedances(rows, level))}
            for level in OTHER_LEVELS
            if level != self.threshold
        ]
        return RowResults(
            found._asdict(),
            details={**_summary(threshold, found), "at_other_levels": others},
            warnings=(Message("few-rows", text),) if count < FEWEST else (),
            reference=1.0 if is_exact else None,
        )

    def _exceedances(self, rows: Predictions, level: float) -> tuple[float, Exceedances]:
        """Return the threshold of a level, and the exceedances."""
        upper = self.side == "upper"
        threshold = coverage.mixture_quantile(rows.distributions(), level if upper else 1 - level)
        return threshold, coverage.exceedances(rows, threshold, upper=upper)

    def quick_statistic(self, fit: None, source: Source, run: Run) -> float:  # noqa: ARG002 - nothing is fitted
        """Return the value, without other levels, which replicates do not need."""
        rows = source.predictions()
        _, found = self._exceedances(rows, self.threshold)
        return float(self.value(groups.Means({name: each.mean() for name, each in found._asdict().items()}, len(rows))))

    def value(self, means: Means) -> Values:
        above = "exceeds" if self.statistic == "occurrence" else "excess"
        below = "exceeds" if self.statistic == "severity" else "probability"
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.divide(means[above], means[below]))


def _summary(threshold: float, found: Exceedances) -> TailParts:
    """Return the threshold, the numbers of exceedances, and both statistics; no severity without an exceedance."""
    observed, expected = float(found.exceeds.sum()), float(found.probability.sum())
    return {
        "threshold": threshold,
        "exceedances": int(observed),
        "expected_exceedances": expected,
        "occurrence": observed / expected if expected else None,
        "severity": float(found.excess.sum()) / observed if observed else None,
    }
