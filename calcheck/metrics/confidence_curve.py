"""Area between the confidence curve and its oracle."""

# Numerics are imported where they are used: `calcheck --help` reads this file and must start at once.

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from calcheck.metrics.base import Need, OrderedMetric
from calcheck.options import option
from calcheck.results import Alternative, IntervalMethod, Orientation, RowResults

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.predictions import Predictions
    from calcheck.results import Means

LEVELS = 100  # percent
SHOWN = range(0, LEVELS, 10)


@dataclass(frozen=True)
class ConfidenceCurve(OrderedMetric):
    r"""Whether large uncertainties point at large errors: area from the confidence curve to its oracle.

    .. math:: \int_0^{0.99} (c(s) - o(s)) \, ds

    where c(s) is the error of the rows that are kept after removing the share s with the largest standard deviations,
    and o(s) the same after removing the largest errors; by the trapezoidal rule over 0, 1, ..., 99 %.

    Parameters
    ----------
    score
        The error of the rows that are kept: mean absolute, or root mean squared.

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions

    Value
    -----
    Unit of y, >= 0, smaller is better; 0 only if the order of the uncertainties is that of the errors, which no
    probabilistic model can reach.

    Raises
    ------
    DataError
        Targets or predictions are absent.

    Notes
    -----
    Sees the order of the uncertainties, not their size. Rows with equal uncertainties are removed in equal parts, so
    the order of the file never matters. Its interval is of percentiles. O(n log n).

    References
    ----------
    Pernot (2022), "Confidence curves for UQ validation: probabilistic reference vs. oracle", arXiv 2206.15272.
    """

    name: ClassVar[str] = "confidence-curve"
    unit: ClassVar[str] = "y"
    needs: ClassVar[tuple[Need, ...]] = ("y", "predictive")
    alternative: ClassVar[Alternative] = "both"
    orientation: ClassVar[Orientation] = "smaller"
    source: ClassVar[str] = "Pernot 2022 (arXiv 2206.15272)"
    interpretation: ClassVar[str] = "Smaller is better; a perfect model is above 0, as errors are partly chance."
    exempt_laws: ClassVar[dict[str, str]] = {"spread": "looks at the order of the uncertainties only"}
    interval: ClassVar[IntervalMethod] = "percentile"

    score: Literal["mae", "rmse"] = option(
        "mae", "Error of the rows that are kept: mean absolute, or root mean squared."
    )

    def sort_keys(self, rows: Predictions) -> dict[str, NDArray[np.float64]]:
        import numpy as np

        from calcheck.statistics.moments import errors, uncertainties

        return {"absolute_error": np.abs(errors(rows)), "std": uncertainties(rows)}

    def from_sort_keys(self, columns: dict[str, NDArray[np.float64]]) -> RowResults:
        from calcheck.statistics.groups import Averages, MeanTerm
        from calcheck.statistics.tie_groups import CutTieGroups

        error, std = columns["absolute_error"], columns["std"]
        lost = error if self.score == "mae" else error**2
        by_std, by_error = CutTieGroups(std, self._kept()), CutTieGroups(lost, self._kept())
        terms = {
            "rows_by_std": MeanTerm(groups=by_std),
            "error_by_std": MeanTerm(lost, by_std),
            "rows_by_error": MeanTerm(groups=by_error),
            "error_by_error": MeanTerm(lost, by_error),
        }
        curve, oracle = self._curves(Averages(terms, len(std)).means())
        lines = [
            {"removed": percent / LEVELS, "error": float(curve[percent]), "oracle": float(oracle[percent])}
            for percent in SHOWN
        ]
        return RowResults({"absolute_error": error, "std": std}, terms, details={"curve": lines})

    def value(self, means: Means, n: int) -> NDArray[np.float64]:  # noqa: ARG002 - a function of means
        import numpy as np

        curve, oracle = self._curves(means)
        return np.asarray(np.trapezoid(curve - oracle, dx=1 / LEVELS, axis=-1))

    @staticmethod
    def _kept() -> NDArray[np.float64]:
        """Return the shares of the rows that are kept."""
        import numpy as np

        return 1 - np.arange(LEVELS) / LEVELS

    def _curves(self, means: Means) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the error of the rows kept after removing 0, 1, ..., 99 %, by uncertainty and by error, (..., 100)."""
        import numpy as np

        from calcheck.statistics.groups import cumulative_at

        kept = self._kept()
        curves = (
            cumulative_at(kept, means[f"rows_by_{order}"], means[f"error_by_{order}"]) / kept
            for order in ("std", "error")
        )
        curve, oracle = (each if self.score == "mae" else np.sqrt(each) for each in curves)
        return curve, oracle
