"""Conditional maximum mean discrepancy."""

# Numerics are imported where they are used: `calcheck --help` reads this file and must start at once.

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from calcheck.kernels.kernel_options import Solver
from calcheck.metrics._joint_mmd import JointMetric
from calcheck.options import option, require_positive_option
from calcheck.results import Alternative, RowResults

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from calcheck.embeddings.fitted_settings import KernelSettings
    from calcheck.execution.context import Run
    from calcheck.mmd.joint import JointEmbedding
    from calcheck.mmd.ridge_norms import RidgeNorms
    from calcheck.predictions import Source
    from calcheck.results import Means


@dataclass(frozen=True)
class Cmmd(JointMetric["RidgeNorms"]):
    r"""Conditional maximum mean discrepancy, squared: how far conditional embeddings are apart.

    .. math:: \mathrm{CMMD}^2 = \mathrm{tr}\, B^\top K_X B, \qquad B = (K_X + n \lambda I)^{-1} \delta, \qquad
              \delta_i = \frac1r \sum_a \psi(y_{ia}) - \mathrm{E}\, \psi(Y'_i)

    with :math:`\psi` the features of the kernel on targets, and the mean over the row's draws where only these are
    known.

    Parameters
    ----------
    standardize, kernel_x, gamma_x, gamma_y
        The kernels, on standardized inputs and targets.
    lambda_
        Regularizer.
    solver
        How the linear system is solved.
    exact_rows
        Up to how many rows it is solved exactly.

    Needs
    -----
    y : (n,), (n, t) or (n, r, t), unit of y
    predictive : n distributions
    x : (n, d), any unit

    Value
    -----
    Dimensionless, squared, >= 0, smaller is better; positive for a perfect model too, by the noise of n rows. It grows
    with the number of directions in which K_X sees inputs, and as lambda falls.

    Raises
    ------
    DataError
        A needed column is absent, or targets are constant.

    Notes
    -----
    The squared norm of a kernel ridge regression of delta on the inputs, of which CCE is the value at each input: the
    mean of CCE^2 is at most max k_X times it, for the same kernels. Repeated targets, r of an input, are rows with the
    same id; by the symmetry of ridge regression they and the draws count by their means only. Beyond ``--max-exact-rows``
    K_X is replaced by Nystroem features, O(n), compared with the exact value on 10,000 of the rows.

    References
    ----------
    Huang, Lam, Zhang, Evaluating Aleatoric Uncertainty via Conditional Generative Models, Eq. 2-4 (arXiv 2206.04287).
    Ren et al., Conditional Generative Moment-Matching Networks, NeurIPS 2016.

    Examples
    --------
    >>> Cmmd(lambda_=0.01).options()["lambda"]
    0.01
    """

    name: ClassVar[str] = "cmmd"
    alternative: ClassVar[Alternative] = "upper"
    source: ClassVar[str] = "Huang, Lam, Zhang, Eq. 2-4 (arXiv 2206.04287)"
    interpretation: ClassVar[str] = "0 is a perfect match; by the noise of the rows a perfect model is above it."
    no_interval: ClassVar[str] = "the rows share one noisy fit, so resampling them gives no honest interval"

    lambda_: float = option(0.1, "Regularizer: K + n lambda I.")
    solver: Solver = option(
        "auto", "Cholesky, or block conjugate gradients; auto takes Cholesky for at most 2,048 rows."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive_option("lambda_", self.lambda_)

    def fit(self, settings: KernelSettings, source: Source, run: Run) -> RidgeNorms:
        from calcheck.mmd.ridge_norms import RidgeNorms

        x = settings.scaling(source.predictions().inputs())
        return RidgeNorms(settings.kernel, x, run, self.lambda_, solver=self.solver, exact_rows=self.max_exact_rows)

    def rows(
        self,
        settings: KernelSettings,
        state: RidgeNorms,
        source: Source,
        at: Source | None,  # noqa: ARG002
        run: Run,  # noqa: ARG002
    ) -> RowResults:
        from calcheck.embeddings.diagnostics import feature_details, feature_warnings
        from calcheck.mmd.joint import embed

        found, bounds = embed(settings.features, source.predictions(), settings.predictive)
        norm = state.norm(found.difference)
        details = {**settings.details, "lambda": self.lambda_, **norm.details, **feature_details(bounds)}
        return RowResults(
            {"cmmd": len(norm.terms) * norm.terms},
            details=details,
            warnings=(*self._blind(settings), *feature_warnings(details), *norm.warnings),
        )

    def _of_many(self, state: RidgeNorms, data_sets: Iterable[JointEmbedding | None]) -> list[float]:
        apart = [None if each is None else each.difference for each in data_sets]
        values = iter(state.norms([each for each in apart if each is not None]))
        return [float("nan") if each is None else next(values) for each in apart]

    def _influences(self, state: RidgeNorms, first: JointEmbedding, second: JointEmbedding) -> NDArray[np.float64]:
        import numpy as np

        mean, half = (first.difference + second.difference) / 2, (first.difference - second.difference) / 2
        return np.asarray(-4 * np.sum(half * state.apply(mean) + mean * state.apply(half), axis=1))

    def _told_of_many(self, state: RidgeNorms) -> dict[str, Any]:
        return state.told_of_many

    def value(self, means: Means, n: int) -> NDArray[np.float64]:  # noqa: ARG002 - a plain mean
        return means["cmmd"]
