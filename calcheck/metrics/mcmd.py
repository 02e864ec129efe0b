"""Maximum conditional mean discrepancy: how far two samples' distributions are apart, at each input."""

# Numerics are imported where they are used: `calcheck --help` reads this file and must start at once.

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from calcheck.embeddings.fitted_settings import FEW_NEIGHBOURS
from calcheck.errors import DataError, NumericalError
from calcheck.execution.context import RandomStream
from calcheck.kernels.kernel_options import Bandwidth, KernelOptions, Solver
from calcheck.metrics.base import Metric, Need
from calcheck.options import option, require_positive_option
from calcheck.results import Alternative, IntervalMethod, NullDistribution, Orientation, RowResults

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.embeddings.output_features import OutputFeatures
    from calcheck.embeddings.strata import Strata
    from calcheck.execution.context import Run
    from calcheck.inference.null_distribution import NullSimulator
    from calcheck.kernels.input_kernel import Conditioning
    from calcheck.mmd.two_samples import TwoSamples
    from calcheck.predictions import Predictions, Source
    from calcheck.results import Means

SAMPLE = "sample"  # the column that says of a row whether it is of the first sample, 0, or of the second, 1
FEWEST_ROWS = 2  # of a sample
FEW_EXCHANGEABLE = 0.5  # share of the rows
APART = "the inputs of the two samples do not overlap: nowhere can rows of both be compared"
NOT_EXACT = {
    "input": "the two have other inputs: p is by exchange of rows among neighbors, exact if the inputs have the same"
    " distribution, and about right else",
    "propensity": "the two have other inputs: p is by exchange of rows that are as likely in either file, as estimated,"
    " and about right, but too small where the inputs of the two part sharply",
}


@dataclass(frozen=True, eq=False)
class McmdSettings:
    """The choices that depend on the data.

    Parameters
    ----------
    inputs : Conditioning
        Normalization and kernel of the inputs of both samples.
    features : OutputFeatures
        psi with k_Y(u, v) = psi(u) . psi(v), for the targets of both.
    details : dict
        The choices in words and numbers, for the report.
    """

    inputs: Conditioning
    features: OutputFeatures
    details: dict[str, Any]


@dataclass(frozen=True)
class Mcmd(KernelOptions, Metric[McmdSettings, "TwoSamples"]):
    r"""Distance between the conditional distributions of two samples at each input, averaged over inputs.

    .. math:: \mathrm{MCMD}(x) = \left\| \hat U_{Y|X}(x) - \hat U_{Y'|X'}(x) \right\|, \qquad
              \hat U_{Y|X}(x) = \sum_i a_i(x)\, \phi(y_i), \quad a(x) = (K_X + n \lambda I)^{-1} k_X(x)

    for a sample (x, y) of n rows, and the same with :math:`(K_{X'} + m \lambda' I)^{-1}` for one (x', y') of m rows, at
    inputs of its own; :math:`\phi` is the feature map of the RBF kernel :math:`k_Y`. The value is the mean of MCMD(x)
    over the inputs where it is evaluated.

    Parameters
    ----------
    kernel_x, gamma_x, degree, coef0, normalize
        The kernel on inputs, scaled by those of both samples.
    gamma_y
        Of the kernel on targets, scaled by those of the first sample.
    lambda_, lambda_b
        Regularizers of the first and the second sample's embedding.
    solver
        How the linear systems are solved; it does not change the value beyond rounding.

    Needs
    -----
    y : (n + m,) or (n + m, t), unit of y; the rows' column ``sample`` is 0 in the first sample, 1 in the second
    x : (n + m, d), any unit

    Value
    -----
    Dimensionless, >= 0, smaller is more alike; distributions that share nothing are about sqrt(2) apart. Positive for
    equal distributions too, by the noise of n and m rows. Where one of the samples has no rows, its embedding is near
    0, and the distance tells of that.

    Raises
    ------
    DataError
        A sample has fewer than two rows, targets of the first are constant, or gamma_y is too narrow for features.

    Notes
    -----
    Two kernel ridge regressions of psi(y), psi the low-rank features of k_Y, as for cce.
    Reference: the mean for other labelings of the rows, as if the distributions were equal. Where each input is in
    both samples, labels are permuted among rows with the same input, which is exact. Else they are permuted among six
    rows that follow each other in their input, or, for inputs of several numbers, in the chance that a row is of the
    first sample, by logistic regression with the same kernel: exact in the first case where the inputs have the same
    distribution, else the better the more rows there are.
    Differs from the papers in: gamma 1 on a single input [CCE, C.2]; the MCMD paper has 0.5 on inputs and targets.

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

    name: ClassVar[str] = "mcmd"
    unit: ClassVar[str] = "1"
    needs: ClassVar[tuple[Need, ...]] = ("y", "x")
    alternative: ClassVar[Alternative] = "upper"
    orientation: ClassVar[Orientation] = "smaller"
    source: ClassVar[str] = "Park, Muandet 2020; Young, Jenkins"
    interpretation: ClassVar[str] = "0 is a perfect match; distributions that share nothing are about 1.4 apart."
    no_interval: ClassVar[str] = "the rows share one noisy fit, so resampling them gives no honest interval"
    interval: ClassVar[IntervalMethod] = "none"
    uses_kernels: ClassVar[bool] = True
    conditional: ClassVar[bool] = True
    several_targets: ClassVar[bool] = True

    gamma_x: float | Bandwidth | None = option(
        None,
        "Scale of that kernel: a number, 1/d, or from the inputs 1/median distance or 1/(2 variance). "
        "Default: 1 for embeddings and for one number, 1/d for standardized inputs, median for other rbf and laplace.",
    )
    gamma_y: float | None = option(
        None,
        "Scale of the kernel exp(-gamma (y - y')^2) on targets. Default: 1/(2 t variance) of those of A, t columns.",
    )
    lambda_: float = option(0.1, "Regularizer of A's embedding: K + n lambda I.")
    lambda_b: float | None = option(None, "Regularizer of B's embedding. Default: lambda.")
    solver: Solver = option(
        "auto", "Cholesky, or block conjugate gradients; auto takes Cholesky for at most 2,048 rows."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("lambda_", "lambda_b"):
            require_positive_option(name, getattr(self, name))

    def columns(self) -> tuple[str, ...]:
        return (SAMPLE,)

    def prepare(self, source: Source, run: Run) -> McmdSettings:
        from calcheck.distributions import Samples
        from calcheck.embeddings.output_features import output_features
        from calcheck.kernels.input_kernel import conditioning, target_bandwidths

        rows = source.predictions()
        first, second = _targets(rows)
        single = rows.width == 1 and self.kernel_x in (None, "rbf")
        chosen = replace(self, gamma_x=1.0) if single and self.gamma_x is None else self
        gamma_y = target_bandwidths(first, self.gamma_y)
        features = output_features(first, Samples(second[:, None]), gamma_y, run.rng(RandomStream.FEATURES))
        inputs = conditioning(rows, chosen)
        described = {
            "samples": {
                "rows": len(first),
                "rows_b": len(second),
                "lambda": self.lambda_,
                "lambda_b": self._lambdas[1],
            },
            "inputs": inputs.details,
            "targets": {"kernel": "rbf", "gamma": gamma_y.tolist() if len(gamma_y) > 1 else float(gamma_y[0])},
        }
        return McmdSettings(inputs, features, described)

    def fit(self, settings: McmdSettings, source: Source, run: Run) -> TwoSamples:
        from calcheck.mmd.two_samples import TwoSamples

        rows = source.predictions()
        x, first = settings.inputs.scaling(rows.inputs()), _labels(rows)
        return TwoSamples(settings.inputs.kernel, (x[first], x[~first]), self.solver, run)

    def rows(
        self, settings: McmdSettings, state: TwoSamples, source: Source, at: Source | None, run: Run
    ) -> RowResults:
        import numpy as np

        from calcheck.embeddings.diagnostics import kernel_warnings, quantiles, solver_details
        from calcheck.embeddings.output_features import FeatureError
        from calcheck.kernels.input_kernel import evaluation_points

        outputs = [settings.features.of_points(targets) for targets in _targets(source.predictions())]
        bounds = FeatureError(settings.features, np.concatenate(outputs))
        points = evaluation_points(at or source, settings.inputs.scaling)
        found, dofs = state.distances(outputs, self._lambdas, points)
        values = found.values[0]
        if not np.isfinite(values).all():
            msg = f"MCMD is not a number at {int((~np.isfinite(values)).sum()):,} inputs: the kernel overflows there"
            raise NumericalError(msg)
        details = {
            "rows": len(values),
            "quantiles": quantiles(values),
            **settings.details,
            **_neighbors(state),
            **solver_details(found, bounds, state.ridges[0], run),
            "dof_b": dofs[1].value,
            "dof_b_error": dofs[1].error,
        }
        fewest = {**details, "dof": min(dof.value for dof in dofs)}
        warnings = (*kernel_warnings(fewest, found, run.precision), *_loneliness(details))
        return RowResults({"mcmd": values}, details=details, warnings=warnings)

    def null_distribution(
        self,
        settings: McmdSettings,
        state: TwoSamples,  # noqa: ARG002 - a labeling has other regressions
        simulation: NullSimulator,
        at: Source | None,
        run: Run,
    ) -> NullDistribution:
        import numpy as np

        from calcheck.embeddings.permutation_null import input_kernel_of, permutation_null
        from calcheck.embeddings.strata import strata
        from calcheck.kernels.input_kernel import evaluation_points, target_matrix

        rows, scaling = simulation.rows, settings.inputs.scaling
        y, x, labels = target_matrix(rows), scaling(rows.inputs()), _labels(rows)
        points = x if at is None else evaluation_points(at, scaling)
        kernel, centered = input_kernel_of(settings.inputs.kernel, x, points, run)
        groups = strata(x, labels, lambda: centered.rows)
        told = {"labels": f"permuted by {groups.by}", "exchangeable": groups.exchangeable, **kernel.details}
        if not groups.exchangeable:
            return NullDistribution(np.empty(0), details=told, no_verdict=APART)
        found = permutation_null(
            kernel,
            y,
            groups,
            len(simulation),
            bandwidths=self._bandwidths,
            lambdas=self._lambdas,
            rng=simulation.rng(),
            run=run,
        )
        own, *others = found.values
        return NullDistribution(
            np.array(others), data_value=own, at_inputs=found.at_points, details=told, warnings=_inexactness(groups)
        )

    def _bandwidths(self, y: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return the scale of the kernel on targets that the first sample's have; None where these have none."""
        from calcheck.kernels.input_kernel import bandwidths_or_none, target_bandwidths

        return bandwidths_or_none(target_bandwidths, y, self.gamma_y)

    def value(self, means: Means, n: int) -> NDArray[np.float64]:  # noqa: ARG002 - a plain mean
        return means["mcmd"]

    @property
    def _lambdas(self) -> tuple[float, float]:
        return self.lambda_, self.lambda_b or self.lambda_


def _labels(rows: Predictions) -> NDArray[np.bool_]:
    """Tell which rows are of the first sample, (n,).

    Raises
    ------
    DataError
        Nothing tells, or a sample has too few rows.
    """
    if SAMPLE not in rows.columns:
        msg = f"nothing says which of the two samples a row is of: give a column {SAMPLE!r} of 0 and 1"
        raise DataError(msg)
    first: NDArray[np.bool_] = rows.columns[SAMPLE] == 0
    fewest = min(int(first.sum()), int((~first).sum()))
    if fewest < FEWEST_ROWS:
        msg = f"mcmd compares two samples of at least {FEWEST_ROWS} rows, and one has {fewest}"
        raise DataError(msg)
    return first


def _targets(rows: Predictions) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the targets of the first sample, (n, t), and of the second, (m, t)."""
    from calcheck.kernels.input_kernel import target_matrix

    y, first = target_matrix(rows), _labels(rows)
    return y[first], y[~first]


def _neighbors(state: TwoSamples) -> dict[str, float]:
    """Tell how many others a row sees, where its kernel has a reach."""
    found = state.neighbors()
    return {} if found is None else {"neighbors": found}


def _loneliness(details: dict[str, Any]) -> tuple[str, ...]:
    """Say where inputs are too far apart for the kernel's scale."""
    if details.get("neighbors", FEW_NEIGHBOURS) >= FEW_NEIGHBOURS:
        return ()
    told = f"an input sees {details['neighbors']:.2g} others of its file, by the kernel added up"
    return (f"{told}: it is too narrow for these inputs. Try --gamma-x variance or median",)


def _inexactness(groups: Strata) -> tuple[str, ...]:
    """Say what keeps p from being exact."""
    told = [NOT_EXACT[groups.by]] if groups.by in NOT_EXACT else []
    if groups.exchangeable < FEW_EXCHANGEABLE * len(groups.labels):
        share = f"{groups.exchangeable:,} of {len(groups.labels):,} rows"
        told.append(f"only {share} have neighbors in both files: p tells of those, the value of all")
    return tuple(told)
