"""Maximum conditional mean discrepancy: distance between two samples' conditional distributions at each input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from calcheck.core.metric_info import SHARED_FIT, MetricInfo
from calcheck.errors import NumericalError
from calcheck.execution.run import RandomStream, Run
from calcheck.inference.metric_protocol import NullDistribution, RowResults
from calcheck.kernels import Bandwidth, KernelName, KernelOptions, Solver
from calcheck.metrics._joint_mmd import SAMPLE, first_sample
from calcheck.metrics._lazy import bandwidths, distance, kernel_functions, np, permutations, two_samples
from calcheck.metrics.base import Metric
from calcheck.options import option, require_positive_option
from calcheck.result_details import McmdDetails, TargetKernel

if TYPE_CHECKING:
    from calcheck.embeddings.permutations import PooledOutputs
    from calcheck.embeddings.target_kernels import FeatureBounds
    from calcheck.kernels.bandwidths import Conditioning
    from calcheck.metrics._lazy import Mask, Means, NullSimulator, Source, Values
    from calcheck.mmd.two_samples import TwoSamples
SQUARED = "Squared: 0 means equal distributions; distributions that do not overlap have a square of about 2."


@dataclass(frozen=True, eq=False)
class McmdFit:
    """Choices that depend on the data, and the kernels on the inputs of both samples."""

    inputs: Conditioning  # Normalization and kernel of the inputs of both samples
    outputs: Sequence[Values]  # (n, r) each, features psi of the targets of each sample, k_Y(u, v) = psi(u) . psi(v)
    bounds: FeatureBounds  # Residuals of the features
    pooled: PooledOutputs | None  # Features of both samples in a kernel that permutations share; None for rbf
    samples: TwoSamples  # The kernel matrices
    details: McmdDetails  # Description of the settings, for the report
    at: Source | None = None  # The source of the evaluation inputs; by default the rows of both samples


@dataclass(frozen=True)
class Mcmd(KernelOptions, Metric[McmdFit]):
    r"""Distance between the conditional distributions of two samples, averaged over inputs.

    .. math:: \mathrm{MCMD}(x) = \left\| \hat U_{Y|X}(x) - \hat U_{Y'|X'}(x) \right\|, \qquad
              \hat U_{Y|X}(x) = \sum_i a_i(x)\, \phi(y_i), \quad a(x) = (K_X + n \lambda I)^{-1} k_X(x)

    for a sample (x, y) of n rows, and likewise with :math:`(K_{X'} + m \lambda' I)^{-1}` for a sample (x', y') of m
    rows, whose inputs may differ. :math:`\phi` is the feature map of the kernel :math:`k_Y`. The value is the mean
    of MCMD(x), or of its square, over the evaluation inputs.

    Value
    -----
    Dimensionless, >= 0; smaller means more similar. Distributions that do not overlap have a distance of about
    sqrt(2). Because of noise, equal distributions also have a positive value. At inputs far from all rows of one
    sample, its embedding is near 0, and the distance reflects that.

    Notes
    -----
    Two kernel ridge regressions of psi(y), where psi are low-rank features of k_Y, as in cce. A Laplace kernel has a
    feature for each different target, at most 4,096 of them.
    The reference is the mean over permutations of the sample labels, as if the distributions were equal. If each input
    occurs in both samples, labels are permuted among rows with the same input, which is exact. Otherwise they are
    permuted within groups of six consecutive rows, sorted by the input if it is a single number. Inputs of several
    numbers are sorted by propensity, the probability that a row belongs to the first sample, from logistic regression
    with the same kernel. Sorting by input is exact if the inputs have the same distribution; the other cases are
    approximate and improve with the number of rows.
    Differences from the papers: gamma is 1 for a single input [CCE, C.2]. The published numbers of the MCMD paper are
    squares with gamma 0.5 for inputs and targets, lambda 0.01 (its text states 0.1) and 50 evaluation points:
    ``--gamma-x 0.5 --gamma-y 0.5 --lambda 0.01 --squared --grid 50``.

    References
    ----------
    Park, Muandet, A Measure-Theoretic Approach to Kernel Conditional Mean Embeddings, NeurIPS 2020. Young, Jenkins, On
    Measuring Calibration of Discrete Probabilistic Neural Networks. Local permutations: Kim, Neykov, Balakrishnan,
    Wasserman, Local permutation tests for conditional independence, Annals of Statistics 2022.

    Examples
    --------
    >>> Mcmd(lambda_=0.01).options()["lambda"]
    0.01
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="mcmd",
        needs=("y", "x"),
        alternative="greater",
        above="wrong-distribution",
        source="Park, Muandet 2020; Young, Jenkins",
        interpretation="0 means equal distributions; distributions that do not overlap have a distance of about 1.4.",
        no_interval=SHARED_FIT,
        permutes_samples=True,
        uses_kernels=True,
        conditional=True,
        several_targets=True,
        details=McmdDetails,
    )

    gamma_x: float | Bandwidth | None = option(
        "Gamma of the input kernel: a number, 1/d, median (1/median distance) or variance (1/(2 variance)). "
        "Default: 1 for embeddings and for one column, 1/d for standardized inputs, median for other rbf and laplace."
    )
    kernel_y: KernelName = option(
        "Kernel on targets: rbf, laplace, or polynomial, with --degree and --coef0 as for inputs.", "rbf"
    )
    gamma_y: float | None = option(
        "Gamma of the kernel on targets. Default for t target columns: 1/(2 t variance) of A for rbf, and of both"
        " samples for polynomial; 1/(t deviation) of both for laplace."
    )
    lambda_: float = option("Regularizer of the embedding of A: K + n lambda I.", 0.1)
    lambda_b: float | None = option("Regularizer of the embedding of B. Default: lambda.")
    squared: bool = option("Average the square of the distance.", default=False)
    solver: Solver = option("Cholesky or block conjugate gradients (cg); auto uses Cholesky up to 2,048 rows.", "auto")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("lambda_", "lambda_b"):
            require_positive_option(name, getattr(self, name))

    def columns(self) -> tuple[str, ...]:
        return (SAMPLE,)

    def fit(self, source: Source, run: Run) -> McmdFit:
        rows = source.predictions()
        y, labels = bandwidths.target_matrix(rows), first_sample(rows, "mcmd")
        outputs, bounds, pooled, on_targets = self._features(y, labels, run)
        single = rows.width == 1 and self.kernel_x in (None, "rbf")
        chosen = replace(self, gamma_x=1.0) if single and self.gamma_x is None else self
        inputs = bandwidths.conditioning(rows, chosen)
        described: McmdDetails = {
            "samples": {
                "rows": len(outputs[0]),
                "rows_b": len(outputs[1]),
                "lambda": self.lambda_,
                "lambda_b": self._lambdas[1],
            },
            "inputs": inputs.details,
            "targets": on_targets,
        }
        x = inputs.scaling(rows.inputs())
        samples = two_samples.TwoSamples(inputs.kernel, (x[labels], x[~labels]), self.solver, run)
        return McmdFit(inputs, outputs, bounds, pooled, samples, described)

    def _features(
        self, y: Values, labels: Mask, run: Run
    ) -> tuple[Sequence[Values], FeatureBounds, PooledOutputs | None, TargetKernel]:
        """Return the features of each sample, their residuals, those of both, and the description of the kernel."""
        from calcheck.distributions import Samples
        from calcheck.embeddings.rbf import FeatureError, output_features

        if self.kernel_y == "rbf":
            first, second = y[labels], y[~labels]
            gamma = bandwidths.target_bandwidths(first, self.gamma_y)
            features = output_features(first, Samples(second[:, None]), gamma, run.rng(RandomStream.FEATURES))
            outputs = features.of_points(first), features.of_points(second)
            return outputs, FeatureError(features, np.concatenate(outputs)), None, _described("rbf", gamma)
        shape: TargetKernel = {}
        if self.kernel_y == "laplace":
            scale = gamma = bandwidths.laplace_bandwidths(y, self.gamma_y)
        else:
            gamma, shape = bandwidths.target_bandwidths(y, self.gamma_y), {"degree": self.degree, "coef0": self.coef0}
            scale = gamma**0.5
        kernel = kernel_functions.KERNELS[self.kernel_y](gamma=1.0, **shape)
        pooled, described = permutations.PooledOutputs.from_kernel(kernel, y * scale), _described(self.kernel_y, gamma)
        return (pooled.values[labels], pooled.values[~labels]), pooled.bounds, pooled, {**described, **shape}

    def at_inputs(self, fit: McmdFit, source: Source) -> McmdFit:
        """Return the fit, to be evaluated at the inputs of another source."""
        return replace(fit, at=source)

    def evaluate(self, fit: McmdFit, source: Source, run: Run) -> RowResults:
        points = bandwidths.evaluation_points(fit.at or source, fit.inputs.scaling)
        found, dofs = fit.samples.distances(fit.outputs, self._lambdas, points)
        values = found.values[0] ** self._power
        if not np.isfinite(values).all():
            msg = f"MCMD is not finite at {int((~np.isfinite(values)).sum()):,} inputs: the kernel overflows there"
            raise NumericalError(msg)
        neighbors = fit.samples.neighbors()
        details = {
            "rows": len(values),
            "quantiles": distance.quantiles(values),
            **fit.details,
            **({} if neighbors is None else {"neighbors": neighbors}),
            **distance.solver_details(found, fit.bounds, fit.samples.ridges[0], run),
            "dof_b": dofs[1].value,
            "dof_b_error": dofs[1].error,
        }
        fewest = min(dof.value for dof in dofs)
        narrow = bandwidths.narrow_kernel_warnings(neighbors, "input", "variance or median")
        warnings = (*distance.kernel_warnings(fewest, fit.bounds, found, run.precision), *narrow)
        return RowResults({self._column: values}, details=details, warnings=warnings)

    def null_distribution(self, fit: McmdFit, simulation: NullSimulator, run: Run) -> NullDistribution:
        """Return the metric of permuted samples; each permutation has its own regressions."""
        rows, scaling = simulation.rows, fit.inputs.scaling
        y, x, labels = bandwidths.target_matrix(rows), scaling(rows.inputs()), first_sample(rows, "mcmd")
        points = x if fit.at is None else bandwidths.evaluation_points(fit.at, scaling)
        kernel, centered = permutations.input_kernel_of(fit.inputs.kernel, x, points, run)
        groups = permutations.strata(x, labels, lambda: centered.rows)
        details = {"labels": groups.description, "exchangeable": groups.exchangeable, **kernel.details}
        if not groups.exchangeable:
            return NullDistribution(np.empty(0), details=details, no_verdict=permutations.NO_OVERLAP)

        def bandwidths_of(first: Values) -> Values | None:
            return bandwidths.bandwidths_or_none(bandwidths.target_bandwidths, first, self.gamma_y)

        found = permutations.permutation_null(
            kernel,
            fit.pooled or permutations.RescaledOutputs(y, labels, bandwidths_of, run),
            groups,
            len(simulation),
            lambdas=self._lambdas,
            power=self._power,
            rng=simulation.rng(),
            run=run,
        )
        own, *others = found.values
        return NullDistribution(
            np.array(others),
            data_value=own,
            at_inputs=found.at_points,
            details=details,
            warnings=permutations.permutation_warnings(groups),
        )

    def value(self, means: Means) -> Values:
        return means[self._column]

    def description(self) -> str:
        return f"{self.summary()} {SQUARED}" if self.squared else super().description()

    @property
    def _power(self) -> int:
        return 2 if self.squared else 1

    @property
    def _column(self) -> str:
        return "mcmd2" if self.squared else "mcmd"

    @property
    def _lambdas(self) -> tuple[float, float]:
        return self.lambda_, self.lambda_b or self.lambda_


def _described(kernel: KernelName, gamma: Values) -> TargetKernel:
    """Return the description of the kernel on targets."""
    return {"kernel": kernel, "gamma": gamma.tolist() if len(gamma) > 1 else float(gamma[0])}
