"""Negative log-likelihood of the targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from calcheck.core.metric_info import MetricInfo
from calcheck.details import NllDetails
from calcheck.errors import Message
from calcheck.inference.metric_protocol import RowResults
from calcheck.metrics.base import MeanMetric
from calcheck.options import option

if TYPE_CHECKING:
    from calcheck.distributions import Predictive
    from calcheck.predictions import Predictions


@dataclass(frozen=True)
class Nll(MeanMetric):
    r"""Negative log-likelihood of the targets under the predicted distributions.

    .. math:: \mathrm{NLL} = \frac1n \sum_i -\log f_i(y_i)

    with the natural logarithm; f_i is a density for continuous distributions and a probability mass for discrete ones.
    With ``--discretise``, continuous distributions have masses too, F_i(k + 1/2) - F_i(k - 1/2) for the integer k
    nearest to y_i, which can be compared with those of distributions of counts. For several targets, f_i is the density
    of the target vector: that of joint normal distributions, or a product if the targets are predicted independently.

    Value
    -----
    Any sign, smaller is better. Dimensionless, but for densities a change of the unit of y by a factor c adds log c.
    Infinite, and null in JSON, if a target has probability 0. The report counts these rows, and the verdict is fail
    with the smallest possible p-value, also without replicates.

    Notes
    -----
    For Gaussians the NLL is (ZMS + mean log std^2 + log 2 pi) / 2. ``details`` show both terms, because a small NLL may
    come from sharp predictions or from calibrated ones. A mean over rows; unbiased. Time O(n).

    References
    ----------
    Pernot (2024), Eq. 12, arXiv 2402.10043. Gneiting, Raftery (2007), doi:10.1198/016214506000001437.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="nll",
        unit="1",
        needs=("y", "predictive"),
        alternative="two-sided",
        orientation="smaller",
        above="worse-than-promised",
        below="better-than-promised",
        source="Pernot, Eq. 12 (arXiv 2402.10043)",
        interpretation=(
            "Smaller is better; only comparisons on the same targets are meaningful, as there is no absolute scale."
        ),
        details=NllDetails,
        several_targets=True,
        infinite_if_impossible=True,
        exempt_laws={"unit": "log of densities in 1/y: a change of the unit of y adds a constant"},
    )
    column: ClassVar[str] = "nll"

    discretise: bool = option(
        default=False, text="For targets that are counts, give continuous distributions the masses of whole numbers."
    )

    def measure(self, predictive: Predictive) -> Literal["densities", "masses"]:
        """Return what the likelihoods of distributions are."""
        return "masses" if predictive.is_discrete or self.discretise else "densities"

    def compute(self, rows: Predictions) -> RowResults:
        import numpy as np

        from calcheck.statistics.moments import uncertainties, z_scores
        from calcheck.statistics.scores import describe_impossible, log_likelihoods

        predictive = rows.distributions()
        discretised = self.discretise and not predictive.is_discrete
        loss = -log_likelihoods(rows, discretised=discretised)
        details: NllDetails = {}
        if predictive.targets == 1 and predictive.normal() is not None and not discretised:
            log_variance = 2 * np.log(uncertainties(rows))
            details = {"zms": float(np.mean(z_scores(rows) ** 2)), "mean_log_variance": float(log_variance.mean())}
        impossible = int(np.isposinf(loss).sum())
        if impossible:
            loss[np.isneginf(loss)] = 0.0  # an infinite density makes no target with probability 0 possible
        warning = f"{describe_impossible(impossible)}, so the log-likelihood is infinite"
        return RowResults(
            {"nll": loss}, details=details, warnings=(Message("impossible-targets", warning),) if impossible else ()
        )
