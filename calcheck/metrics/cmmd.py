"""Conditional distributions of targets, compared by embeddings and by moments."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from calcheck.core.metric_info import SHARED_FIT, MetricInfo
from calcheck.inference.metric_protocol import RowResults
from calcheck.kernels import KernelOptions, Normalization, Solver
from calcheck.metrics import _joint_mmd
from calcheck.metrics._lazy import bandwidths, frechet, joint, np, permutations, quadratic_forms, two_samples
from calcheck.options import option, require_positive_option
from calcheck.result_details import CmmdDetails, FidDetails

if TYPE_CHECKING:
    from calcheck.embeddings.laplace import PairForm
    from calcheck.embeddings.target_kernels import KernelSettings
    from calcheck.metrics._lazy import Floats, Kernel, Predictions, Run, Source, Values
    from calcheck.mmd.frechet import SharedInputs
    from calcheck.mmd.joint import JointEmbedding
    from calcheck.mmd.quadratic_forms import RidgeNorms
    from calcheck.mmd.two_samples import SampleDistance


@dataclass(frozen=True)
class Cmmd(_joint_mmd.JointMetric["RidgeNorms"]):
    r"""Squared conditional maximum mean discrepancy: distance between conditional embedding operators.

    .. math:: \mathrm{CMMD}^2 = \mathrm{tr}\, B^\top K_X B, \qquad B = (K_X + n \lambda I)^{-1} \delta, \qquad
              \delta_i = \frac1r \sum_a \psi(y_{ia}) - \mathrm{E}\, \psi(Y'_i)

    where :math:`\psi` are features of the kernel on targets. For samples, the expectation is the mean over the draws
    of the row.

    Value
    -----
    Dimensionless, squared, >= 0, smaller is better. Because of noise, a perfect model also has a positive value. The
    value increases with the rank of K_X and decreases with lambda.

    Notes
    -----
    CMMD^2 is the squared norm of a kernel ridge regression of delta on the inputs; CCE is the norm of its value at
    each input. With the same kernels, the mean of CCE^2 is at most max k_X times CMMD^2. Repeated targets of one input
    are rows with the same id. Targets and draws enter only through their row means, as ridge regression is linear.
    Beyond ``--max-exact-rows``, K_X is approximated by Nyström features in O(n); their error is estimated on 10,000
    validation rows. Kernels on targets are those of jmmd.
    With a second file, two samples are compared, whose inputs may differ: its targets are draws of the model, and each
    row has one. Scales are then those of both samples together. p comes from exchanging rows with similar inputs, as
    for mcmd. It compares what the regression of both samples together leaves of psi: otherwise different inputs would
    hide a difference of the targets. What this subtracts from the value is added to the reference, which is therefore
    expected of equal conditional distributions at these inputs. Memory is quadratic in the rows, and each permutation
    takes cubic time.

    References
    ----------
    Huang, Lam, Zhang, Evaluating Aleatoric Uncertainty via Conditional Generative Models, Eq. 2-4 (arXiv 2206.04287).
    Ren et al., Conditional Generative Moment-Matching Networks, NeurIPS 2016.

    Examples
    --------
    >>> Cmmd(lambda_=0.01).options()["lambda"]
    0.01
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="cmmd",
        needs=("y", "predictive", "x"),
        alternative="greater",
        above="wrong-distribution",
        source="Huang, Lam, Zhang, Eq. 2-4 (arXiv 2206.04287)",
        interpretation="0 means equal distributions; because of noise, a perfect model is above 0.",
        no_interval=SHARED_FIT,
        uses_kernels=True,
        several_targets=True,
        repeated_targets=True,
        details=CmmdDetails,
    )

    lambda_: float = option("Regularizer: K + n lambda I.", 0.1)
    solver: Solver = option("Cholesky or block conjugate gradients (cg); auto uses Cholesky up to 2,048 rows.", "auto")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive_option("lambda_", self.lambda_)

    def _sums(self, settings: KernelSettings, x: Floats, run: Run) -> RidgeNorms:
        x = settings.scaling(x)
        return quadratic_forms.RidgeNorms(
            settings.kernel, x, run, self.lambda_, solver=self.solver, exact_rows=self.max_exact_rows
        )

    def _row_results(self, sums: RidgeNorms, embedding: JointEmbedding) -> RowResults:
        norm = sums.norm(embedding.difference)
        details = {"lambda": self.lambda_, **norm.details}
        return RowResults({"cmmd": len(norm.terms) * norm.terms}, details=details, warnings=norm.warnings)

    def _pair_form(self, sums: RidgeNorms) -> PairForm:
        return sums.pair_form

    def _influences(self, sums: RidgeNorms, first: JointEmbedding, second: JointEmbedding) -> Values:
        mean, half = (first.difference + second.difference) / 2, (first.difference - second.difference) / 2
        return np.asarray(-4 * np.sum(half * sums.apply(mean) + mean * sums.apply(half), axis=1))

    def of_samples(self) -> CmmdOfSamples:
        """Return the metric with these options, of two samples."""
        return _joint_mmd.with_options_of(self, CmmdOfSamples)


@dataclass(frozen=True)
class CmmdOfSamples(_joint_mmd.OfSamples, Cmmd):  # type: ignore[misc]
    """Squared conditional maximum mean discrepancy of two samples, whose inputs may differ."""

    exchanges_similar_inputs: ClassVar[bool] = True

    info: ClassVar[MetricInfo] = _joint_mmd.info_of_samples(
        Cmmd.info, "0 means equal distributions given the inputs; noise and different inputs make it larger."
    )

    def _distance(self, kernel: Kernel, x: Values, y: Values) -> tuple[SampleDistance, dict[str, Any]]:
        on_targets, details = _joint_mmd.sample_kernel(self, y.shape[1])
        features = permutations.PooledOutputs.from_kernel(on_targets, y).values
        return two_samples.OperatorMmd(kernel.gram(x, x), features, self.lambda_), {**details, "lambda": self.lambda_}


@dataclass(frozen=True, eq=False)
class FidFit:
    """Choices that depend on the data, and moments that depend on inputs only."""

    inputs: SharedInputs  # The normalized inputs
    spread: Values  # (t,), scale of each target column; targets are divided by it


@dataclass(frozen=True)
class Fid(_joint_mmd.GenerativeMetric[FidFit]):
    r"""Squared Fréchet distance between Gaussian fits to (input, target) and (input, prediction).

    .. math:: |m - m'|^2 + \mathrm{tr}\big( C + C' - 2 (C^{1/2} C' C^{1/2})^{1/2} \big)

    where m, C are mean and covariance of standardized inputs joined with targets, and m', C' those of inputs joined
    with predictions.

    Value
    -----
    Dimensionless if standardized, squared, >= 0, smaller is better. Because of noise, a perfect model also has a
    positive value. The value depends on means and covariances only, so it captures only linear relations to the inputs.

    Notes
    -----
    Each row has weight 1/n, divided equally among its targets or draws. Parametric distributions use exact moments.
    Covariances carry the factor n / (n - 1). The trace of the matrix root is the sum of singular values of a product of
    triangular factors, which is accurate for singular covariances. Time O(n (d + t)^2 + (d + t)^3).
    With a second file, two samples are compared, whose inputs may differ: its targets are draws of the model, and each
    row has one. Scales are then those of both samples together. p comes from exchanging any rows, which is exact for
    independent rows: it is for inputs and targets together. If each input is equally frequent in both samples, rows
    with equal inputs are exchanged.

    References
    ----------
    Dowson, Landau (1982), doi:10.1016/0047-259X(82)90077-X. Heusel et al. (2017). As in Huang, Lam, Zhang (arXiv
    2206.04287), Table 1.

    Examples
    --------
    >>> Fid().options()
    {'standardize': 'data'}
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="fid",
        needs=("y", "predictive", "x"),
        alternative="greater",
        above="wrong-distribution",
        source="Dowson, Landau 1982; Heusel et al. 2017",
        interpretation="0 means equal means and covariances.",
        no_interval="resampling adds noise to both covariances, which increases the distance",
        pointwise=False,
        several_targets=True,
        repeated_targets=True,
        details=FidDetails,
    )

    def fit(self, source: Source, run: Run) -> FidFit:
        rows = source.predictions()
        scaling = bandwidths.fit_scaling(bandwidths.all_inputs(rows, run), self._normalization, "rbf", rows.categories)
        return FidFit(frechet.SharedInputs(scaling(rows.inputs())), self._spread(rows))

    @property
    def _normalization(self) -> Normalization:
        return "standardize" if self.standardize == "data" else "none"

    def refit(self, fit: FidFit, source: Source, run: Run) -> FidFit:  # noqa: ARG002 - not random
        """Return the fit to other targets at the same inputs."""
        return replace(fit, spread=self._spread(source.predictions()))

    def _spread(self, rows: Predictions) -> Values:
        y = joint.repeated_targets(rows)
        columns = y.reshape(-1, y.shape[2])
        return (
            bandwidths.target_precisions(columns) ** -0.5 if self.standardize == "data" else np.ones(columns.shape[1])
        )

    def evaluate(self, fit: FidFit, source: Source, run: Run) -> RowResults:  # noqa: ARG002 - not random
        from calcheck.execution.run import one_blas_thread

        rows = source.predictions()
        y, predictive = joint.repeated_targets(rows), rows.distributions()
        with one_blas_thread():  # many small products, repeated for each replicate
            data = fit.inputs.joint_moments(*frechet.covariances_within_targets(y), fit.spread)
            model = fit.inputs.joint_moments(*frechet.covariances_within_rows(predictive), fit.spread)
            distance = np.asarray(frechet.frechet(data, model))
        details: dict[str, Any] = {
            "columns": {"inputs": fit.inputs.columns, "targets": y.shape[2]},
            "repeats": y.shape[1],
            "draws": predictive.n_draws or "exact",
            "means": float(np.sum((data.mean - model.mean) ** 2)),
        }
        return RowResults({}, fixed={"fid": distance}, details=details)

    def of_samples(self) -> FidOfSamples:
        """Return the metric with these options, of two samples."""
        return _joint_mmd.with_options_of(self, FidOfSamples)


@dataclass(frozen=True)
class FidOfSamples(_joint_mmd.OfSamples, Fid):  # type: ignore[misc]
    """Squared Fréchet distance between Gaussian fits to two samples of inputs and targets."""

    info: ClassVar[MetricInfo] = _joint_mmd.info_of_samples(
        Fid.info, "0 means equal means and covariances of inputs and targets."
    )

    @property
    def _inputs(self) -> KernelOptions:
        """Options of a kernel for propensities; the distance has none."""
        return KernelOptions(kernel_x="rbf", gamma_x="1/d", normalize=self._normalization)

    def _distance(self, kernel: Kernel, x: Values, y: Values) -> tuple[SampleDistance, dict[str, Any]]:  # noqa: ARG002
        return two_samples.GaussianDistance(x, y), {"columns": {"inputs": x.shape[1], "targets": y.shape[1]}}
