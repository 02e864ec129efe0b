"""Conditional congruence error: distance between predicted and observed distributions at each input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log
from typing import TYPE_CHECKING, Any, ClassVar, Self

from calcheck.core.metric_info import SHARED_FIT, MetricInfo
from calcheck.details import CceDetails
from calcheck.errors import DataError, Message
from calcheck.metrics._cce_options import CceOptions
from calcheck.metrics.base import LevelOption, Metric

if TYPE_CHECKING:
    from calcheck.embeddings.target_kernels import KernelSettings
    from calcheck.execution.run import Run
    from calcheck.inference.metric_protocol import NullDistribution, RowResults
    from calcheck.inference.null_distribution import NullSimulator
    from calcheck.metrics._cce_fits import CceExact, CceNystroem
    from calcheck.predictions import Predictions, Source
    from calcheck.statistics.groups import Means
    from calcheck.typing import Values

SQUARED = "Squared and corrected for noise: 0 on average for a perfect model; negative values are possible."
MOMENTS = "0 means equal moments up to the degree of the kernel on targets; there is no upper limit."
OF_COVERAGE = (
    "the file states intervals, so the value is the mean difference between the share of targets inside, given the"
    " inputs, and the level {:g}"
)
OPEN = (
    "some targets are equal to limits of their intervals, as for counts, so that the share inside that is right at each"
    " input is not known"
)


@dataclass(frozen=True)
class Cce(CceOptions, Metric["CceExact | CceNystroem"]):
    r"""Distance between the predicted and observed conditional distributions, averaged over inputs.

    .. math:: \mathrm{CCE}(x) = \left\| \hat U_{Y|X}(x) - \hat U_{Y'|X}(x) \right\|, \qquad
              \hat U_{Y|X}(x) = \sum_i a_i(x)\, \phi(y_i), \quad a(x) = (K_X + n \lambda I)^{-1} k_X(x)

    where :math:`\phi` is the feature map of the kernel :math:`k_Y`, RBF by default, and :math:`Y'` follows the
    predictive distributions. These enter by closed-form mean embeddings or by draws (regularized by
    :math:`n \lambda'`). The value is the mean of CCE(x) over the rows, or over the inputs of another file.

    Value
    -----
    Dimensionless, >= 0, smaller is better. Distributions that do not overlap have a distance of about sqrt(2); at
    inputs far from all others, the polynomial kernel may exceed that. A polynomial kernel on targets compares moments
    up to its degree, without an upper limit. Because of noise, a perfect model also has a positive value. CCE^2 is a
    V-statistic: sampling noise biases it upwards, the regularizer downwards.
    ``--estimator unbiased`` subtracts the noise, sum_i a_i(x)^2 |delta_i|^2, from the square. The result may be
    negative and is 0 on average for a perfect model (it is not unbiased for other models). Above 2,048 rows the noise
    is estimated with random signs, and details give its error.

    Prediction intervals state only how often targets are inside. The outcome is then whether a target is inside, and
    its distribution has the level as probability. By default, gamma_y is such that the kernel distance between inside
    and outside is 1 (log 2 for rbf): CCE(x) is the absolute difference between the smoothed share of targets inside and
    the smoothed level. If targets are equal to limits, as for counts, there is no verdict.

    Notes
    -----
    CCE(x) is the norm of a kernel ridge regression of psi(y) - E psi(Y') on the inputs, where psi are low-rank
    features of k_Y; it needs one n x n system for any number of draws. Each matrix product takes O(n^2 (d + r)), and
    there are about ten. Memory is n^2 / 2 numbers, or O(n) if these exceed ``--memory``. The Nyström approximation with
    M landmarks takes one pass over the rows, O(n M (d + M)); its bias is estimated on 1,024 validation rows and added
    to the mean.
    Details give the reach, the distance within which inputs are averaged (:func:`calcheck.embeddings.distance.reach`).
    Rows give the effective number of neighbors (:func:`calcheck.embeddings.distance.effective_neighbors`).
    A Laplace or polynomial kernel on targets needs an exact solver. Means of a polynomial kernel are moments, in closed
    form. Those of a Laplace kernel are sums for counts and draws, and otherwise integrals, exact to 1e-11; all pairs of
    targets and predictions are then compared, so memory is O(n^2). A replicate takes O(n^2), or O(n r) if the kernel on
    inputs has the low rank r; O(n^3) for several target columns.
    Differences from the paper: exact embeddings of parametric families by default (the paper's protocol is
    ``--draws 1 --trials 5``), and no explicit inverse.

    References
    ----------
    Young et al., Beyond Calibration: Assessing the Probabilistic Fit of Neural Regressors via Conditional Congruence,
    Eq. 2-3 (arXiv 2405.12412). Regularized embeddings: Park, Muandet, A Measure-Theoretic Approach to Kernel
    Conditional Mean Embeddings, NeurIPS 2020.

    Examples
    --------
    >>> Cce(lambda_=0.01).options()["lambda"]
    0.01
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="cce",
        unit="1",
        needs=("y", "predictive", "x"),
        alternative="greater",
        orientation="smaller",
        above="wrong-distribution",
        source="Young et al., Eq. 2-3 (arXiv 2405.12412)",
        interpretation="0 means equal distributions; distributions that do not overlap have a distance of about 1.4.",
        interval="none",
        no_interval=SHARED_FIT,
        uses_kernels=True,
        conditional=True,
        several_targets=True,
        details=CceDetails,
    )

    curves_along_columns: ClassVar[bool] = True

    def description(self) -> str:
        if self.unbiased:
            return f"{self.summary()} {SQUARED}"
        return f"{self.summary()} {MOMENTS}" if self.kernel_y == "polynomial" else super().description()

    def with_defaults(self, rows: Predictions) -> Self:
        """Return the metric; for prediction intervals with a kernel in which outcomes 0 and 1 have the distance 1."""
        intervals = rows.predictive is not None and rows.predictive.interval_levels is not None
        if not intervals or self.gamma_y is not None:
            return self
        powers = (1 + self.coef0**self.degree) ** (1 / self.degree) - self.coef0
        return replace(self, gamma_y=powers if self.kernel_y == "polynomial" else log(2))

    def outcomes(self, source: Source) -> Source:
        """Return, for prediction intervals, whether targets are inside as targets, with the probability of that."""
        from calcheck.statistics.pit import coverage_outcomes

        return coverage_outcomes(source, LevelOption().level_of(source.predictions().predictive))

    def fit(self, source: Source, run: Run) -> CceExact | CceNystroem:
        from calcheck.metrics._cce_fits import CceExact, CceNystroem

        settings = self.settings(source.predictions(), run)
        if reason := self._approximation_reason(settings, source.predictions(), run):
            return CceNystroem.from_source(self, settings, source, reason, run)
        return CceExact.from_source(self, settings, source, run)

    def refit(self, fit: CceExact | CceNystroem, source: Source, run: Run) -> CceExact | CceNystroem:
        """Return the fit with these options to other distributions at the same inputs."""
        return fit.refit(self, self.settings(source.predictions(), run), source)

    def plan(self, fit: CceExact | CceNystroem, metrics: Sequence[Metric[Any]], models: int) -> None:
        """Prepare a fit that several metrics of ``models`` models will share."""
        fit.plan([metric for metric in metrics if isinstance(metric, Cce)], models)

    def at_inputs(self, fit: CceExact | CceNystroem, source: Source) -> CceExact | CceNystroem:
        """Return the fit, to be evaluated at the inputs of another source."""
        return fit.at_inputs(source)

    def settings(self, rows: Predictions, run: Run) -> KernelSettings:
        """Return the choices that depend on the data: kernels, scaling and features."""
        from calcheck.embeddings.target_kernels import KernelSettings, representation
        from calcheck.kernels.functions import conditioning, require_inputs

        y, predictive = require_inputs(rows)
        if len(y) == 1 and None in (self.gamma_x, self.gamma_y):
            msg = "cce needs at least 2 rows to choose kernel scales, got 1. Pass more rows, or --gamma-x and --gamma-y"
            raise DataError(msg)
        inputs = conditioning(rows, self)
        gamma = self.bandwidths(y, predictive)
        lambda_, lambda_model = self.lambdas
        described = {
            "inputs": inputs.details,
            "targets": {**self.target_kernel.details, "gamma": gamma.tolist() if len(gamma) > 1 else float(gamma[0])},
            "model": {"draws": representation(predictive, self.draws), "lambda": lambda_, "lambda_model": lambda_model},
        }
        features = self.features(y, predictive, run)
        return KernelSettings(inputs.scaling, inputs.kernel, features, predictive, described)

    def _approximation_reason(self, settings: KernelSettings, rows: Predictions, run: Run) -> str:
        """Return why cce is computed on landmarks; empty for an exact solver."""
        from calcheck.embeddings.ridge import approximation_reason

        if self.requested:
            return "as requested"
        if self.solver != "auto" or self.exact_only:
            return ""
        return approximation_reason(len(rows), rows.width, settings.features.rank, run)

    def evaluate(self, fit: CceExact | CceNystroem, source: Source, run: Run) -> RowResults:
        from calcheck.distributions.count_families import OpenBernoulli

        rows, predictive = fit.evaluate(source, run), source.predictions().predictive
        if predictive is None or predictive.family != "bernoulli":
            return rows
        text = OF_COVERAGE.format(float(predictive.mean()[0]))
        return replace(
            rows,
            warnings=(*rows.warnings, Message("coverage-outcome", text)),
            no_verdict=OPEN if isinstance(predictive, OpenBernoulli) else "",
        )

    def null_distribution(self, fit: CceExact | CceNystroem, simulation: NullSimulator, run: Run) -> NullDistribution:
        """Return the metric of all replicates, which share the fit."""
        return fit.null_distribution(simulation, run)

    def influences(self, both: Predictions, run: Run) -> Values:
        """Return the contribution of each row to the difference between two models, (n,)."""
        from calcheck.metrics._cce_fits import influences

        first = both.take(slice(len(both) // 2))
        settings = self.settings(first, run)
        if self._approximation_reason(settings, first, run):
            msg = "row influences require an exact solver. Pass --solver cg, or use fewer rows"
            raise DataError(msg)
        return influences(self, settings, both, run)

    def value(self, means: Means) -> Values:
        mean = means[self.column]
        return mean + means["correction"] if "correction" in means else mean
