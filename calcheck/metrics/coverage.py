"""Coverage of central intervals."""

# Numerics are imported where they are used: `calcheck --help` reads this file and must start at once.

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from calcheck.metrics.base import Need, RowMetric
from calcheck.options import option, require_share_option
from calcheck.results import Alternative, Inference, Orientation, RowResults

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.distributions import Predictive
    from calcheck.execution.context import Run
    from calcheck.predictions import Predictions, Source
    from calcheck.results import Means

UNCLEAR = 1e-3  # of the reference, beyond which there is none
ROUNDING = 1e-9
OTHER_LEVELS = (0.5, 0.8, 0.9, 0.95)


@dataclass(frozen=True)
class Coverage(RowMetric):
    r"""Coverage: the share of targets inside their central prediction intervals.

    .. math:: \mathrm{coverage} = \frac1n \sum_i 1\{l_i \le y_i \le u_i\}, \qquad
              l_i = F_i^{-1}(\tfrac{1-p}2), \; u_i = F_i^{-1}(\tfrac{1+p}2)

    Parameters
    ----------
    level
        What share of targets the central interval is meant to hold.

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions

    Value
    -----
    Dimensionless, in [0, 1]. The reference is the mean of F_i(u_i) - F_i(l_i-): p for continuous families, more for
    counts, whose quantiles jump, and the share of gaps between the limits for m draws.

    Raises
    ------
    OptionError
        The level is not strictly between 0 and 1.

    Notes
    -----
    A mean over rows: unbiased, O(n) and two quantiles a level.

    References
    ----------
    Gneiting, Balabdaoui, Raftery (2007), "Probabilistic forecasts, calibration and sharpness".
    """

    name: ClassVar[str] = "coverage"
    unit: ClassVar[str] = "1"
    needs: ClassVar[tuple[Need, ...]] = ("y", "predictive")
    alternative: ClassVar[Alternative] = "both"
    orientation: ClassVar[Orientation] = "reference"
    source: ClassVar[str] = "Gneiting et al. 2007"
    interpretation: ClassVar[str] = "The reference is what intervals of this level hold if the model is right."

    level: float = option(0.9, "Share of targets that the central interval is meant to hold.")

    def __post_init__(self) -> None:
        require_share_option("level", self.level)

    def compute(self, rows: Predictions) -> RowResults:
        covered, expected = self._at(rows, self.level)
        means = {level: [float(each.mean()) for each in self._at(rows, level)] for level in self._other_levels(rows)}
        details = {
            "at_other_levels": [
                {"level": level, "coverage": inside, "expected": mass} for level, (inside, mass) in means.items()
            ]
        }
        columns = {"covered": covered, "expected": expected}
        unclear = self._unclear(rows)
        if unclear > UNCLEAR:
            told = f"no exact reference: ties, or levels that are not known, leave it open by {unclear:.2g}"
            return RowResults(columns, details=details, warnings=(told,))
        return RowResults(columns, details=details, reference=float(expected.mean()))

    def interpolates(self, levels: NDArray[np.float64]) -> bool:
        return not _has_interval(levels, self.level)

    def _other_levels(self, rows: Predictions) -> list[float]:
        """List the other levels that are told of: those whose intervals the file knows."""
        known = rows.distributions().quantile_levels
        others = [level for level in OTHER_LEVELS if level != self.level]
        return others if known is None else [level for level in others if _has_interval(known, level)]

    def rows(self, settings: None, state: None, source: Source, at: Source | None, run: Run) -> RowResults:
        found = super().rows(settings, state, source, at, run)
        covered = found.columns["covered"]
        if found.reference is None or covered.min() < covered.max():
            return found
        return replace(found, inference=self._of_equal_rows(covered, found.columns["expected"], run))

    @staticmethod
    def _of_equal_rows(covered: NDArray[np.float64], expected: NDArray[np.float64], run: Run) -> Inference:
        """Judge by the chance that all rows are inside, or all outside: resampling would only repeat them."""
        import numpy as np

        p_value = min(1.0, 2 * float(np.prod(expected if covered[0] else 1 - expected)))
        return Inference(
            p_value=p_value,
            verdict="fail" if p_value <= 1 - run.confidence else "pass",
            warnings=("no interval: all rows agree; the verdict is by how likely that is",),
        )

    @staticmethod
    def _at(rows: Predictions, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Tell whether each target is inside its interval, and how likely that was, (n,) each."""
        import numpy as np

        from calcheck.statistics.moments import central_interval, interval_mass, targets

        y = targets(rows)

        def inside(part: Predictive, rows: slice) -> NDArray[np.float64]:
            low, high = central_interval(part, level)
            return ((low <= y[rows]) & (y[rows] <= high)).astype(np.float64)

        return rows.distributions().map_batches(inside), interval_mass(rows, level)

    def _unclear(self, rows: Predictions) -> float:
        """Return by how much the reference may be too small: draws that tie leave it open."""
        from calcheck.statistics.moments import central_interval, targets

        y = targets(rows)

        def error(part: Predictive, rows: slice) -> NDArray[np.float64]:
            return part.interval_mass_error(y[rows], *central_interval(part, self.level))

        return float(rows.distributions().map_batches(error).mean())

    def value(self, means: Means, n: int) -> NDArray[np.float64]:  # noqa: ARG002 - a plain mean
        return means["covered"]


def _has_interval(levels: NDArray[np.float64], level: float) -> bool:
    """Tell whether both ends of a central interval are quantiles at these levels."""
    return all(abs(levels - end).min() < ROUNDING for end in ((1 - level) / 2, (1 + level) / 2))
