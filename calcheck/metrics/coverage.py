"""Coverage of central intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from calcheck.details import CoverageDetails
from calcheck.messages import AT_QUANTILES, Message
from calcheck.metric_info import MetricInfo
from calcheck.metrics.base import MeanMetric
from calcheck.options import option, require_share_option
from calcheck.results import IntervalInference, RowResults

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.distributions import Predictive
    from calcheck.execution.context import Run
    from calcheck.predictions import Predictions, Source
    from calcheck.statistics.groups import Means
MAX_AMBIGUITY = 1e-3  # maximum uncertainty of the reference
ROUNDING = 1e-9  # tolerance for comparing quantile levels
OTHER_LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)


@dataclass(frozen=True)
class Coverage(MeanMetric):
    r"""Share of targets inside their central prediction intervals.

    .. math:: \mathrm{coverage} = \frac1n \sum_i 1\{l_i \le y_i \le u_i\}, \qquad
              l_i = F_i^{-1}(\tfrac{1-p}2), \; u_i = F_i^{-1}(\tfrac{1+p}2)

    Parameters
    ----------
    level
        Nominal coverage p of the central intervals.

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions

    Value
    -----
    Dimensionless, in [0, 1]. The reference is the mean of F_i(u_i) - F_i(l_i-): p for continuous distributions, more
    for counts, whose quantiles are discrete. For samples, it is the share of gaps between draws inside the interval.

    Raises
    ------
    OptionError
        The level is not strictly between 0 and 1.

    Notes
    -----
    A mean over rows; unbiased. For files of quantiles, a right model only states that the probability strictly inside
    is at most p, and that inside at least p. Where targets are equal to limits, as for counts, p is therefore compared
    with the nearest share between these two, and the verdict is conservative. Time O(n), with two quantiles per level.

    References
    ----------
    Gneiting, Balabdaoui, Raftery (2007), "Probabilistic forecasts, calibration and sharpness".
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="coverage",
        unit="1",
        needs=("y", "predictive"),
        alternative="two-sided",
        orientation="reference",
        above="too-wide",
        below="too-narrow",
        source="Gneiting et al. 2007",
        interpretation="The reference is the expected coverage if the model is correct.",
        details=CoverageDetails,
    )
    column: ClassVar[str] = "covered"

    level: float = option(0.9, "Nominal coverage of the central intervals.")

    def __post_init__(self) -> None:
        require_share_option("level", self.level)

    def compute(self, rows: Predictions) -> RowResults:
        from calcheck.statistics.moments import interval_mass

        covered, expected = self._inside(rows, self.level), interval_mass(rows, self.level)
        means = {
            level: (float(self._inside(rows, level).mean()), float(interval_mass(rows, level).mean()))
            for level in self._other_levels(rows)
        }
        details = {
            "at_other_levels": [
                {"level": level, "coverage": inside, "expected": mass} for level, (inside, mass) in means.items()
            ]
        }
        columns, warnings = {"covered": covered, "expected": expected}, list[Message]()
        if rows.distributions().quantile_levels is not None:
            strictly = columns["strictly_inside"] = self._inside(rows, self.level, strictly=True)
            warnings += [AT_QUANTILES] if (strictly < covered).any() else []
        ambiguity = self._ambiguity(rows)
        if ambiguity > MAX_AMBIGUITY:
            text = f"no exact reference: ties or missing quantile levels make it uncertain by {ambiguity:.2g}"
            warnings.append(Message("no-reference", text))
            return RowResults(columns, details=details, warnings=tuple(warnings))
        return RowResults(columns, details=details, warnings=tuple(warnings), reference=float(expected.mean()))

    def null_statistic(self, means: Means) -> NDArray[np.float64]:
        import numpy as np

        covered = means["covered"]
        return np.clip(self.level, means["strictly_inside"], covered) if "strictly_inside" in means else covered

    def interpolates(self, levels: NDArray[np.float64]) -> bool:
        return not _has_interval(levels, self.level)

    def _other_levels(self, rows: Predictions) -> list[float]:
        """Return the other levels to report, limited to intervals that the file contains."""
        known = rows.distributions().quantile_levels
        others = [level for level in OTHER_LEVELS if level != self.level]
        return others if known is None else [level for level in others if _has_interval(known, level)]

    def evaluate(self, fit: None, source: Source, run: Run) -> RowResults:
        found = super().evaluate(fit, source, run)
        covered = found.columns["covered"]
        if found.reference is None or covered.min() < covered.max():
            return found
        return replace(found, inference=self._inference_if_constant(covered, found.columns["expected"], run))

    @staticmethod
    def _inference_if_constant(
        covered: NDArray[np.float64], expected: NDArray[np.float64], run: Run
    ) -> IntervalInference:
        """Return an exact test if all targets are inside or all outside, where the bootstrap is constant."""
        import numpy as np

        p_value = min(1.0, 2 * float(np.prod(expected if covered[0] else 1 - expected)))
        return IntervalInference(
            p_value=p_value,
            verdict="fail" if p_value <= 1 - run.confidence else "pass",
            warnings=(
                Message(
                    "no-interval", "no interval: all rows are equal; the verdict uses the exact probability of that"
                ),
            ),
        )

    @staticmethod
    def _inside(rows: Predictions, level: float, *, strictly: bool = False) -> NDArray[np.float64]:
        """Return whether each target is inside its interval, (n,); strictly, if limits do not count."""
        import numpy as np

        from calcheck.statistics.moments import central_interval, targets

        y, below = targets(rows), np.less if strictly else np.less_equal

        def inside(part: Predictive, rows: slice) -> NDArray[np.float64]:
            low, high = central_interval(part, level)
            return np.asarray(below(low, y[rows]) & below(y[rows], high), dtype=np.float64)

        return rows.distributions().map_batches(inside)

    def _ambiguity(self, rows: Predictions) -> float:
        """Return by how much the reference may be too small because of tied draws."""
        from calcheck.statistics.moments import central_interval, targets

        y = targets(rows)

        def error(part: Predictive, rows: slice) -> NDArray[np.float64]:
            return part.interval_mass_error(y[rows], *central_interval(part, self.level))

        return float(rows.distributions().map_batches(error).mean())


def _has_interval(levels: NDArray[np.float64], level: float) -> bool:
    """Return whether both limits of a central interval are quantiles at the given levels."""
    return all(abs(levels - end).min() < ROUNDING for end in ((1 - level) / 2, (1 + level) / 2))
