"""Conditional maximum mean discrepancy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from calcheck.details import CmmdDetails
from calcheck.kernels.kernel_options import Solver
from calcheck.metric_info import SHARED_FIT, MetricInfo
from calcheck.metrics._joint_mmd import JointMetric
from calcheck.metrics._of_samples import OfSamples, info_of_samples, sample_kernel, with_options_of
from calcheck.options import option, require_positive_option
from calcheck.results import RowResults

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from calcheck.embeddings.fitted_settings import KernelSettings
    from calcheck.embeddings.laplace_features import PairForm
    from calcheck.execution.context import Run
    from calcheck.kernels.functions import Kernel
    from calcheck.mmd.joint import JointEmbedding
    from calcheck.mmd.joint_samples import SampleDistance
    from calcheck.mmd.ridge_norms import RidgeNorms

    Values = NDArray[np.float64]


@dataclass(frozen=True)
class Cmmd(JointMetric["RidgeNorms"]):
    r"""Squared conditional maximum mean discrepancy: distance between conditional embedding operators.

    .. math:: \mathrm{CMMD}^2 = \mathrm{tr}\, B^\top K_X B, \qquad B = (K_X + n \lambda I)^{-1} \delta, \qquad
              \delta_i = \frac1r \sum_a \psi(y_{ia}) - \mathrm{E}\, \psi(Y'_i)

    where :math:`\psi` are features of the kernel on targets. For samples, the expectation is the mean over the draws
    of the row.

    Parameters
    ----------
    standardize, kernel_x, gamma_x, kernel_y, gamma_y
        Standardization, and the kernels on inputs and targets.
    feature_targets, gamma_features, epsilon
        Features among the target columns, and their kernel.
    lambda_
        Regularizer.
    solver
        Solver of the linear system.
    max_exact_rows
        Maximum rows for an exact solution.

    Needs
    -----
    y : (n,), (n, t) or (n, r, t), unit of y
    predictive : n distributions
    x : (n, d), any unit

    Value
    -----
    Dimensionless, squared, >= 0, smaller is better. Because of noise, a perfect model also has a positive value. The
    value increases with the rank of K_X and decreases with lambda.

    Raises
    ------
    DataError
        A required column is missing, or targets are constant.

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
        unit="1",
        needs=("y", "predictive", "x"),
        alternative="greater",
        orientation="smaller",
        above="wrong-distribution",
        source="Huang, Lam, Zhang, Eq. 2-4 (arXiv 2206.04287)",
        interpretation="0 means equal distributions; because of noise, a perfect model is above 0.",
        interval="none",
        no_interval=SHARED_FIT,
        uses_kernels=True,
        several_targets=True,
        repeated_targets=True,
        details=CmmdDetails,
    )

    lambda_: float = option(0.1, "Regularizer: K + n lambda I.")
    solver: Solver = option("auto", "Cholesky or block conjugate gradients (cg); auto uses Cholesky up to 2,048 rows.")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive_option("lambda_", self.lambda_)

    def _sums(self, settings: KernelSettings, x: NDArray[np.floating[Any]], run: Run) -> RidgeNorms:
        from calcheck.mmd.ridge_norms import RidgeNorms

        x = settings.scaling(x)
        return RidgeNorms(settings.kernel, x, run, self.lambda_, solver=self.solver, exact_rows=self.max_exact_rows)

    def _row_results(self, sums: RidgeNorms, embedding: JointEmbedding) -> RowResults:
        norm = sums.norm(embedding.difference)
        details = {"lambda": self.lambda_, **norm.details}
        return RowResults({"cmmd": len(norm.terms) * norm.terms}, details=details, warnings=norm.warnings)

    def _pair_form(self, sums: RidgeNorms) -> PairForm | None:
        return sums.pair_form

    def _replicate_values(self, sums: RidgeNorms, data_sets: Iterable[JointEmbedding | None]) -> list[float]:
        differences = [None if each is None else each.difference for each in data_sets]
        values = iter(sums.norms([each for each in differences if each is not None]))
        return [float("nan") if each is None else next(values) for each in differences]

    def _influences(self, sums: RidgeNorms, first: JointEmbedding, second: JointEmbedding) -> NDArray[np.float64]:
        import numpy as np

        mean, half = (first.difference + second.difference) / 2, (first.difference - second.difference) / 2
        return np.asarray(-4 * np.sum(half * sums.apply(mean) + mean * sums.apply(half), axis=1))

    def of_samples(self) -> CmmdOfSamples:
        """Return the metric with these options, of two samples."""
        return with_options_of(self, CmmdOfSamples)


@dataclass(frozen=True)
class CmmdOfSamples(OfSamples, Cmmd):  # type: ignore[misc]
    """Squared conditional maximum mean discrepancy of two samples, whose inputs may differ."""

    exchanges_similar_inputs: ClassVar[bool] = True

    info: ClassVar[MetricInfo] = info_of_samples(
        Cmmd.info, "0 means equal distributions given the inputs; noise and different inputs make it larger."
    )

    def _distance(self, kernel: Kernel, x: Values, y: Values) -> tuple[SampleDistance, dict[str, Any]]:
        from calcheck.mmd.joint_samples import OperatorMmd, target_features

        on_targets, details = sample_kernel(self, y.shape[1])
        return OperatorMmd(kernel.gram(x, x), target_features(on_targets, y), self.lambda_), {
            **details,
            "lambda": self.lambda_,
        }
