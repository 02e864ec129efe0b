"""Fréchet distance of joint distributions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from calcheck.details import FidDetails
from calcheck.kernels.kernel_options import KernelOptions
from calcheck.metric_info import MetricInfo
from calcheck.metrics._joint_mmd import GenerativeMetric
from calcheck.metrics._of_samples import OfSamples, info_of_samples, with_options_of
from calcheck.results import RowResults

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.kernels.functions import Kernel
    from calcheck.kernels.kernel_options import Normalization
    from calcheck.mmd.frechet import SharedInputs
    from calcheck.mmd.joint_samples import SampleDistance
    from calcheck.predictions import Predictions, Source

    Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FidFit:
    """Choices that depend on the data, and moments that depend on inputs only.

    Parameters
    ----------
    inputs : SharedInputs
        The normalized inputs.
    spread : (t,)
        Scale of each target column; targets are divided by it.
    """

    inputs: SharedInputs
    spread: NDArray[np.float64]


@dataclass(frozen=True)
class Fid(GenerativeMetric[FidFit]):
    r"""Squared Fréchet distance between Gaussian fits to (input, target) and (input, prediction).

    .. math:: |m - m'|^2 + \mathrm{tr}\big( C + C' - 2 (C^{1/2} C' C^{1/2})^{1/2} \big)

    where m, C are mean and covariance of standardized inputs joined with targets, and m', C' those of inputs joined
    with predictions.

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
    Dimensionless if standardized, squared, >= 0, smaller is better. Because of noise, a perfect model also has a
    positive value. The value depends on means and covariances only, so it captures only linear relations to the inputs.

    Raises
    ------
    DataError
        A required column is missing, targets are constant, there is only one row, or a distribution has no variance.

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
        unit="1",
        needs=("y", "predictive", "x"),
        alternative="greater",
        orientation="smaller",
        above="wrong-distribution",
        source="Dowson, Landau 1982; Heusel et al. 2017",
        interpretation="0 means equal means and covariances.",
        interval="none",
        no_interval="resampling adds noise to both covariances, which increases the distance",
        pointwise=False,
        several_targets=True,
        repeated_targets=True,
        details=FidDetails,
    )

    def fit(self, source: Source, run: Run) -> FidFit:
        from calcheck.kernels.input_kernel import all_inputs
        from calcheck.kernels.scaling import fit_scaling
        from calcheck.mmd.frechet import SharedInputs

        rows = source.predictions()
        scaling = fit_scaling(all_inputs(rows, run), self._normalization, "rbf")
        return FidFit(SharedInputs(scaling(rows.inputs())), self._spread(rows))

    @property
    def _normalization(self) -> Normalization:
        return "standardize" if self.standardize == "data" else "none"

    def refit(self, fit: FidFit, source: Source, run: Run) -> FidFit:  # noqa: ARG002 - not random
        """Return the fit to other targets at the same inputs."""
        return replace(fit, spread=self._spread(source.predictions()))

    def _spread(self, rows: Predictions) -> NDArray[np.float64]:
        import numpy as np

        from calcheck.kernels.input_kernel import target_precisions
        from calcheck.mmd.joint import repeated_targets

        y = repeated_targets(rows)
        columns = y.reshape(-1, y.shape[2])
        return target_precisions(columns) ** -0.5 if self.standardize == "data" else np.ones(columns.shape[1])

    def evaluate(self, fit: FidFit, source: Source, run: Run) -> RowResults:  # noqa: ARG002 - not random
        import numpy as np

        from calcheck.execution.prefetch import one_blas_thread
        from calcheck.mmd.covariances import covariances_within_rows, covariances_within_targets
        from calcheck.mmd.frechet import frechet
        from calcheck.mmd.joint import repeated_targets

        rows = source.predictions()
        y, predictive = repeated_targets(rows), rows.distributions()
        with one_blas_thread():  # many small products, repeated for each replicate
            data = fit.inputs.joint_moments(*covariances_within_targets(y), fit.spread)
            model = fit.inputs.joint_moments(*covariances_within_rows(predictive), fit.spread)
            distance = np.asarray(frechet(data, model))
        details: dict[str, Any] = {
            "columns": {"inputs": fit.inputs.columns, "targets": y.shape[2]},
            "repeats": y.shape[1],
            "draws": predictive.n_draws or "exact",
            "means": float(np.sum((data.mean - model.mean) ** 2)),
        }
        return RowResults({}, fixed={"fid": distance}, details=details)

    def of_samples(self) -> FidOfSamples:
        """Return the metric with these options, of two samples."""
        return with_options_of(self, FidOfSamples)


@dataclass(frozen=True)
class FidOfSamples(OfSamples, Fid):  # type: ignore[misc]
    """Squared Fréchet distance between Gaussian fits to two samples of inputs and targets."""

    info: ClassVar[MetricInfo] = info_of_samples(Fid.info, "0 means equal means and covariances of inputs and targets.")

    @property
    def _inputs(self) -> KernelOptions:
        """Options of a kernel for propensities; the distance has none."""
        return KernelOptions(kernel_x="rbf", gamma_x="1/d", normalize=self._normalization)

    def _distance(self, kernel: Kernel, x: Values, y: Values) -> tuple[SampleDistance, dict[str, Any]]:  # noqa: ARG002
        from calcheck.mmd.joint_samples import GaussianDistance

        return GaussianDistance(x, y), {"columns": {"inputs": x.shape[1], "targets": y.shape[1]}}
