"""Fréchet distance of joint distributions."""

# Numerics are imported where they are used: `calcheck --help` reads this file and must start at once.

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from calcheck.metrics._joint_mmd import GenerativeMetric
from calcheck.results import Alternative, IntervalMethod, RowResults

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.kernels.kernel_options import Normalization
    from calcheck.kernels.scaling import Scaling
    from calcheck.mmd.frechet import SharedInputs
    from calcheck.predictions import Predictions, Source
    from calcheck.results import Means


@dataclass(frozen=True, eq=False)
class FidSettings:
    """The choices that depend on the data.

    Parameters
    ----------
    scaling : Scaling
        Normalization of the inputs.
    spread : (t,)
        What divides targets.
    """

    scaling: Scaling
    spread: NDArray[np.float64]


@dataclass(frozen=True)
class Fid(GenerativeMetric[FidSettings, "SharedInputs"]):
    r"""Fréchet distance, squared, of the Gaussians like (input, target) and (input, prediction).

    .. math:: |m - m'|^2 + \mathrm{tr}\big( C + C' - 2 (C^{1/2} C' C^{1/2})^{1/2} \big)

    with means and covariances of the standardized inputs, joined by targets and by predictions.

    Parameters
    ----------
    standardize
        Whether inputs and targets are standardized.

    Needs
    -----
    y : (n,), (n, t) or (n, r, t), unit of y
    predictive : n distributions
    x : (n, d), any unit

    Value
    -----
    Dimensionless where standardized, squared, >= 0, smaller is better; positive for a perfect model too, by the noise
    of n rows. Sees means and covariances only: no other shape, and of the relation to the inputs the linear part.

    Raises
    ------
    DataError
        A needed column is absent, targets are constant, there is one row only, or distributions have no variance.

    Notes
    -----
    Every input weighs 1/n, shared by its targets or draws; exact moments of known distributions; covariances
    n / (n - 1) times that. The trace of the root is the sum of singular values of a product of triangular factors,
    which costs no digits where covariances are singular. O(n (d + t)^2 + (d + t)^3).

    References
    ----------
    Dowson, Landau (1982), doi:10.1016/0047-259X(82)90077-X. Heusel et al. (2017). As in Huang, Lam, Zhang (arXiv
    2206.04287), Table 1.

    Examples
    --------
    >>> Fid().options()
    {'standardize': 'data'}
    """

    name: ClassVar[str] = "fid"
    alternative: ClassVar[Alternative] = "upper"
    interval: ClassVar[IntervalMethod] = "none"
    pointwise: ClassVar[bool] = False
    source: ClassVar[str] = "Dowson, Landau 1982; Heusel et al. 2017"
    interpretation: ClassVar[str] = "0 is a perfect match of means and covariances."
    no_interval: ClassVar[str] = "resampling adds noise to both covariances, and the distance grows with it"

    def prepare(self, source: Source, run: Run) -> FidSettings:
        from calcheck.kernels.input_kernel import all_inputs
        from calcheck.kernels.scaling import fit_scaling

        rows = source.predictions()
        normalize: Normalization = "standardize" if self.standardize == "data" else "none"
        return FidSettings(fit_scaling(all_inputs(rows, run), normalize, "rbf"), self._spread(rows))

    def prepare_replicate(self, settings: FidSettings, source: Source, run: Run) -> FidSettings:  # noqa: ARG002 - nothing is drawn
        return replace(settings, spread=self._spread(source.predictions()))

    def _spread(self, rows: Predictions) -> NDArray[np.float64]:
        from calcheck.mmd.joint import repeated_targets

        y = repeated_targets(rows)
        return self._bandwidths(y.reshape(-1, y.shape[2]), 1.0) ** -0.5

    def fit(self, settings: FidSettings, source: Source, run: Run) -> SharedInputs:  # noqa: ARG002
        from calcheck.mmd.frechet import SharedInputs

        return SharedInputs(settings.scaling(source.predictions().inputs()))

    def rows(
        self,
        settings: FidSettings,
        state: SharedInputs,
        source: Source,
        at: Source | None,  # noqa: ARG002
        run: Run,  # noqa: ARG002
    ) -> RowResults:
        import numpy as np

        from calcheck.execution.prefetch import one_blas_thread
        from calcheck.mmd.covariances import covariances_within_rows, covariances_within_targets
        from calcheck.mmd.frechet import frechet
        from calcheck.mmd.joint import repeated_targets

        rows = source.predictions()
        y, predictive = repeated_targets(rows), rows.distributions()
        with one_blas_thread():  # many small products, again for each replicate
            data = state.joint_moments(*covariances_within_targets(y), settings.spread)
            model = state.joint_moments(*covariances_within_rows(predictive), settings.spread)
            distance = np.asarray(frechet(data, model))
        details: dict[str, Any] = {
            "columns": {"inputs": state.columns, "targets": y.shape[2]},
            "repeats": y.shape[1],
            "draws": predictive.n_draws or "exact",
            "means": float(np.sum((data.mean - model.mean) ** 2)),
        }
        return RowResults({}, fixed={"fid": distance}, details=details)

    def value(self, means: Means, n: int) -> NDArray[np.float64]:  # noqa: ARG002 - of all rows together
        return means["fid"]
