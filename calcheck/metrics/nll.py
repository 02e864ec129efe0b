"""Negative log-likelihood of the targets."""

# Numerics are imported where they are used: `calcheck --help` reads this file and must start at once.

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.metrics.base import Need, RowMetric
from calcheck.results import Alternative, Orientation, RowResults

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.predictions import Predictions
    from calcheck.results import Means


@dataclass(frozen=True)
class Nll(RowMetric):
    r"""Negative log-likelihood: how surprising the targets are under the predicted distributions.

    .. math:: \mathrm{NLL} = \frac1n \sum_i -\log f_i(y_i)

    with the natural logarithm, of densities for continuous families and of masses for discrete ones.

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions with a density or masses

    Value
    -----
    Any number, smaller is better; dimensionless, but a change of the unit of y by c shifts it by log c for densities.
    No value where a target is impossible: the log-likelihood is infinite, and the report counts these rows.

    Raises
    ------
    DataError
        The distributions have no density (samples).

    Notes
    -----
    For Gaussians it is (ZMS + mean log std^2 + log 2 pi) / 2, and ``details`` shows the parts: a small NLL may come
    from sharp predictions or from calibrated ones. A mean over rows: unbiased, O(n).

    References
    ----------
    Pernot (2024), Eq. 12, arXiv 2402.10043. Gneiting, Raftery (2007), doi:10.1198/016214506000001437.
    """

    name: ClassVar[str] = "nll"
    unit: ClassVar[str] = "1"
    needs: ClassVar[tuple[Need, ...]] = ("y", "predictive")
    alternative: ClassVar[Alternative] = "both"
    orientation: ClassVar[Orientation] = "smaller"
    source: ClassVar[str] = "Pernot, Eq. 12 (arXiv 2402.10043)"
    interpretation: ClassVar[str] = (
        "Smaller is better; it compares models on the same targets and has no absolute scale."
    )
    exempt_laws: ClassVar[dict[str, str]] = {"unit": "the log of densities, in 1/y: another unit of y adds a constant"}

    def compute(self, rows: Predictions) -> RowResults:
        import numpy as np

        from calcheck.statistics.moments import targets, uncertainties, z_scores

        predictive = rows.distributions()
        surprise = -predictive.log_prob(targets(rows))
        details = {}
        if predictive.normal() is not None:
            log_variance = 2 * np.log(uncertainties(rows))
            details = {"zms": float(np.mean(z_scores(rows) ** 2)), "mean_log_variance": float(log_variance.mean())}
        impossible = int(np.isinf(surprise).sum())
        told = (f"{impossible:,} targets are impossible under their distributions: their log-likelihood is infinite",)
        return RowResults({"nll": surprise}, details=details, warnings=told if impossible else ())

    def value(self, means: Means, n: int) -> NDArray[np.float64]:  # noqa: ARG002 - a plain mean
        return means["nll"]
