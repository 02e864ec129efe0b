"""Conditional congruence error: distance between predicted and observed distributions at each input."""

# NumPy and modules that import it are imported inside functions, so that `calcheck --help` is fast.

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from calcheck.embeddings.fitted_settings import KernelSettings
from calcheck.errors import DataError, NumericalError, OptionError
from calcheck.execution.context import RandomStream
from calcheck.kernels.kernel_options import SolverOptions
from calcheck.metrics.base import Metric, Need
from calcheck.options import option, require_count_option, require_positive_option
from calcheck.results import Alternative, IntervalMethod, NullDistribution, Orientation, RowResults

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from calcheck.distributions import Predictive
    from calcheck.embeddings.landmark_selection import NystroemEmbedding
    from calcheck.embeddings.output_features import OutputFeatures
    from calcheck.embeddings.ridge import KernelRidge
    from calcheck.execution.context import Run
    from calcheck.inference.null_distribution import NullSimulator
    from calcheck.predictions import Predictions, Source
    from calcheck.results import Means

SQUARED = "Squared and corrected for noise: 0 on average for a perfect model; negative values are possible."
MAX_VALUES = {"trials": 10_000, "draws": 100_000}  # maximum option values


@dataclass(frozen=True)
class Cce(SolverOptions, Metric[KernelSettings, "KernelRidge | NystroemEmbedding"]):
    r"""Distance between the predicted and observed conditional distributions, averaged over inputs.

    .. math:: \mathrm{CCE}(x) = \left\| \hat U_{Y|X}(x) - \hat U_{Y'|X}(x) \right\|, \qquad
              \hat U_{Y|X}(x) = \sum_i a_i(x)\, \phi(y_i), \quad a(x) = (K_X + n \lambda I)^{-1} k_X(x)

    where :math:`\phi` is the feature map of the RBF kernel :math:`k_Y` and :math:`Y'` follows the predictive
    distributions. These enter by closed-form mean embeddings or by draws (regularized by :math:`n \lambda'`). The
    value is the mean of CCE(x) over the rows, or over the inputs of another file.

    Parameters
    ----------
    kernel_x, gamma_x, degree, coef0, normalize
        Kernel on inputs and normalization of the inputs.
    gamma_y
        Scale of the kernel on targets.
    lambda_, lambda_model
        Regularizers of the data embedding and of the model embedding.
    estimator
        The distance (plugin), or its square corrected for noise (unbiased).
    draws, trials
        Number of draws per row that represent the model, and number of repetitions with new draws.
    solver
        Solver of the linear systems: exact, or a Nyström approximation with an estimated error (nystroem).
    landmarks, landmark_sampling, tolerance, max_flops
        Number of landmarks, how they are sampled, and limits that stop increasing their number.

    Needs
    -----
    y : (n,) or (n, t), unit of y
    predictive : n distributions
    x : (n, d), any unit

    Value
    -----
    Dimensionless, >= 0, smaller is better. Distributions that do not overlap have a distance of about sqrt(2); at
    inputs far from all others, the polynomial kernel may exceed that. Because of noise, a perfect model also has a
    positive value. CCE^2 is a V-statistic: sampling noise biases it upwards, the regularizer downwards.
    ``--estimator unbiased`` subtracts the noise, sum_i a_i(x)^2 |delta_i|^2, from the square. The result may be
    negative and is 0 on average for a perfect model (it is not unbiased for other models). Above 2,048 rows the noise
    is estimated with random signs, and details give its error.

    Raises
    ------
    DataError
        A required column is missing, targets or inputs are constant, or gamma_y is too large for the features.

    Notes
    -----
    CCE(x) is the norm of a kernel ridge regression of psi(y) - E psi(Y') on the inputs, where psi are low-rank
    features of k_Y; it needs one n x n system for any number of draws. Each matrix product takes O(n^2 (d + r)), and
    there are about ten. Memory is n^2 / 2 numbers, or O(n) if these exceed ``--memory``. The Nyström approximation with
    M landmarks takes one pass over the rows, O(n M (d + M)); its bias is estimated on 1,024 validation rows and added
    to the mean.
    Details give the reach, the distance within which inputs are averaged (:func:`calcheck.embeddings.reach.reach`).
    Rows give the effective number of neighbors (:func:`calcheck.embeddings.reach.effective_neighbors`).
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

    name: ClassVar[str] = "cce"
    unit: ClassVar[str] = "1"
    needs: ClassVar[tuple[Need, ...]] = ("y", "predictive", "x")
    alternative: ClassVar[Alternative] = "greater"
    orientation: ClassVar[Orientation] = "smaller"
    source: ClassVar[str] = "Young et al., Eq. 2-3 (arXiv 2405.12412)"
    interpretation: ClassVar[str] = (
        "0 means equal distributions; distributions that do not overlap have a distance of about 1.4."
    )
    no_interval: ClassVar[str] = "all rows share one fit, so resampling rows does not give a valid interval"
    interval: ClassVar[IntervalMethod] = "none"
    uses_kernels: ClassVar[bool] = True
    conditional: ClassVar[bool] = True
    several_targets: ClassVar[bool] = True
    fit_key: ClassVar[tuple[str, ...]] = (
        *("kernel_x", "gamma_x", "degree", "coef0", "normalize", "solver"),
        *("landmarks", "landmark_sampling", "tolerance", "max_flops", "exact_only"),
    )

    lambda_: float = option(0.1, "Regularizer of the data embedding: K + n lambda I.")
    lambda_model: float | None = option(None, "Regularizer of the model embedding. Default: lambda.")
    draws: int | Literal["exact", "all"] | None = option(
        None,
        "Draws per row that represent the model: a number, all saved draws, or exact (closed form). "
        "Default: exact for parametric distributions, all for samples.",
    )
    estimator: Literal["plugin", "unbiased"] = option(
        "plugin", "Distance (plugin), or its square corrected for noise (unbiased): 0 on average for a perfect model."
    )
    trials: int = option(1, "Number of repetitions with new draws; reports mean and standard deviation.")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("lambda_", "lambda_model"):
            require_positive_option(name, getattr(self, name))
        for name in ("trials", *(("draws",) if isinstance(self.draws, int) else ())):
            require_count_option(name, getattr(self, name), MAX_VALUES[name])
        if self.requested and self.exact_only:
            msg = f"{self.requested} does not support {self.exact_only}. Remove {self.exact_only}, or pass --solver cg"
            raise OptionError(msg)
        if self.estimator == "unbiased" and self.lambda_model not in (None, self.lambda_):
            msg = "--estimator unbiased requires equal regularizers, got two. Remove --lambda-model"
            raise OptionError(msg)
        if self.trials > 1 and not isinstance(self.draws, int):
            msg = f"--trials {self.trials} requires a number of draws per row. Pass --draws 1 as well"
            raise OptionError(msg)

    def description(self) -> str:
        return f"{self.summary()} {SQUARED}" if self.estimator == "unbiased" else super().description()

    def prepare(self, source: Source, run: Run) -> KernelSettings:
        from calcheck.embeddings.draws import draws_of
        from calcheck.kernels.input_kernel import conditioning, require_inputs, target_bandwidths

        rows = source.predictions()
        y, predictive = require_inputs(rows)
        if len(y) == 1 and None in (self.gamma_x, self.gamma_y):
            msg = "cce needs at least 2 rows to choose kernel scales, got 1. Pass more rows, or --gamma-x and --gamma-y"
            raise DataError(msg)
        inputs = conditioning(rows, self)
        gamma_y = target_bandwidths(y, self.gamma_y)
        described = {
            "inputs": inputs.details,
            "targets": {"kernel": "rbf", "gamma": gamma_y.tolist() if len(gamma_y) > 1 else float(gamma_y[0])},
            "model": {
                "draws": draws_of(predictive, self.draws),
                "lambda": self.lambda_,
                "lambda_model": self.lambda_model or self.lambda_,
            },
        }
        features = self._features(y, predictive, run)
        return KernelSettings(inputs.scaling, inputs.kernel, features, predictive, described)

    @property
    def exact_only(self) -> str:
        """Return the option in use that requires an exact solver; empty if there is none."""
        if self.lambda_model not in (None, self.lambda_):
            return "--lambda-model"
        if self.estimator == "unbiased":
            return "--estimator unbiased"
        return "--draws N" if isinstance(self.draws, int) else ""

    def fit(self, settings: KernelSettings, source: Source, run: Run) -> KernelRidge | NystroemEmbedding:
        from calcheck.embeddings.landmark_selection import (
            LandmarkOptions,
            NystroemEmbedding,
            approximation_reason,
            as_precise,
        )

        rows = source.predictions()
        reason = "as requested" if self.requested else ""
        if self.solver == "auto" and not (reason or self.exact_only):
            reason = approximation_reason(len(rows), rows.width, settings.features.rank, run)
        if not reason:
            return self._ridge(settings, source, run)
        return NystroemEmbedding(settings, source, LandmarkOptions.from_metric(self), as_precise(rows, run), reason)

    @property
    def not_streamable_reason(self) -> str:
        exact = self.exact_only or f"--solver {self.solver}"
        return f"{exact} needs all rows at once. Use --solver nystroem instead to compute cce in batches"

    def _ridge(self, settings: KernelSettings, source: Source, run: Run) -> KernelRidge:
        from calcheck.embeddings.ridge import KernelRidge

        x = settings.scaling.rounded(source.predictions().inputs(), precision=run.precision)
        return KernelRidge(settings.kernel, x, run, solver="auto" if self.solver == "nystroem" else self.solver)

    def prepare_shared(
        self,
        state: KernelRidge | NystroemEmbedding,
        metrics: Sequence[Metric[KernelSettings, KernelRidge | NystroemEmbedding]],
        models: int,
    ) -> None:
        from calcheck.embeddings.ridge import KernelRidge

        if not isinstance(state, KernelRidge):
            return
        of_cce = [each for each in metrics if isinstance(each, Cce)]
        ridges = {each.lambda_ for each in of_cce} | {each.lambda_model or each.lambda_ for each in of_cce}
        alone = any(
            each.estimator == "unbiased" for each in of_cce
        )  # the noise estimate must not depend on other metrics
        state.plan(len(ridges), 0 if alone else len(of_cce) * models)

    def rows(
        self,
        settings: KernelSettings,
        state: KernelRidge | NystroemEmbedding,
        source: Source,
        at: Source | None,
        run: Run,
    ) -> RowResults:
        import numpy as np

        from calcheck.embeddings.diagnostics import kernel_warnings, quantiles, solver_details, trial_statistics
        from calcheck.embeddings.distance import distances, noise
        from calcheck.embeddings.landmark_selection import NystroemEmbedding
        from calcheck.embeddings.output_features import FeatureError
        from calcheck.embeddings.reach import FEW_ROWS, effective_neighbors, reach
        from calcheck.execution.bottom_k import sample_inputs
        from calcheck.kernels.input_kernel import evaluation_points, require_inputs

        if isinstance(state, NystroemEmbedding):
            return self._with_landmarks(settings, state.from_fit(settings, source), at, run)
        y, _ = require_inputs(source.predictions())
        features = settings.features
        points = None if at is None else evaluation_points(at, settings.scaling)
        observed = features.of_points(y)
        bounds = FeatureError(features, observed)
        found = distances(
            state,
            observed,
            map(bounds.embed, self._trials(settings.predictive, run)),
            lambda_=self.lambda_,
            lambda_model=self.lambda_model or self.lambda_,
            points=points,
        )
        values, noise_details = found.values.mean(axis=0), {}
        if self.estimator == "unbiased":
            added, error = noise(state, found.sizes, self.lambda_, points)
            values = (found.values**2).mean(axis=0) - added
            noise_details = {"noise": float(added.mean()), "noise_error": error}
        if not np.isfinite(values).all():
            msg = f"CCE is not finite at {int((~np.isfinite(values)).sum()):,} inputs: the kernel overflows there"
            raise NumericalError(msg)
        few = sample_inputs(source.predictions().lazy_inputs(), FEW_ROWS)
        details = {
            "rows": len(values),
            "quantiles": quantiles(values),
            **noise_details,
            **trial_statistics(found.values.mean(axis=1)),
            **settings.details,
            **solver_details(found, bounds, state, run),
            "reach": reach(settings.kernel, settings.scaling(few), settings.scaling, self.lambda_),
        }
        columns = {self._column: values}
        if run.keep_rows:
            columns["effective_neighbors"] = effective_neighbors(state, self.lambda_, points)
        return RowResults(columns, details=details, warnings=kernel_warnings(details, found, state.run.precision))

    @property
    def _column(self) -> str:
        return "cce2" if self.estimator == "unbiased" else "cce"

    def _with_landmarks(
        self, settings: KernelSettings, state: NystroemEmbedding, at: Source | None, run: Run
    ) -> RowResults:
        from calcheck.embeddings.diagnostics import feature_details, nystroem_details, nystroem_warnings, quantiles
        from calcheck.embeddings.reach import FEW_ROWS, reach

        if at is not None:
            msg = "--at requires an exact solver. Pass --solver cg, or use fewer rows (--subsample)"
            raise OptionError(msg)
        found = state.fitted(self.lambda_)
        columns = {"cce": found.at_all_rows() if run.keep_rows else found.values[:, 0]}
        values = columns["cce"]
        if run.keep_rows:
            columns["effective_neighbors"] = found.effective_neighbors()
        details = {
            "rows": found.landmarks.rows,
            "quantiles": quantiles(values),
            **settings.details,
            **feature_details(found.bounds),
            **nystroem_details(found.measured, found.landmarks, state.options, state.run, state.reason),
            "reach": reach(settings.kernel, found.landmarks.evaluated[:FEW_ROWS], settings.scaling, self.lambda_),
        }
        value, accurate = found.measured.means[0], state.options.met_by(found.measured)
        warnings = nystroem_warnings(details, accurate=accurate, value=float(value))
        return RowResults(columns, fixed={"correction": value - values.mean()}, details=details, warnings=warnings)

    def null_distribution(
        self,
        settings: KernelSettings,
        state: KernelRidge | NystroemEmbedding,
        simulation: NullSimulator,
        at: Source | None,
        run: Run,
    ) -> NullDistribution:
        import numpy as np

        from calcheck.embeddings.landmark_selection import NystroemEmbedding

        if isinstance(state, NystroemEmbedding):
            near = state.fitted(self.lambda_)
            details = {"columns": near.groups[1], "landmarks": len(near.landmarks.landmarks)}
            return NullDistribution(near.measured.means[1:], at_inputs=near.at_inputs(), details=details)

        from calcheck.distributions import Samples
        from calcheck.embeddings.replicate_embeddings import embed_replicates
        from calcheck.embeddings.rescaled_features import DataSet, SwappedDraw
        from calcheck.kernels.input_kernel import evaluation_points, require_inputs, target_matrix

        y, _ = require_inputs(simulation.rows)
        distributions = settings.predictive
        model = list(self._trials(distributions, run))

        def data_set(rows: Predictions) -> DataSet:
            targets = target_matrix(rows)
            if rows.predictive is distributions or rows.predictive is None:
                return DataSet(targets, self._bandwidth(targets), model)
            if isinstance(self.draws, int):
                return DataSet(targets, self._bandwidth(targets), list(self._trials(rows.predictive, run)))
            return DataSet(targets, self._bandwidth(targets), [SwappedDraw(distributions)])

        trials = [each.draws for each in model if isinstance(each, Samples)]
        known = not trials or distributions.n_draws is not None
        replicates = simulation.with_predictive(distributions)
        found = embed_replicates(
            state,
            DataSet(y, self._bandwidth(y), model),
            map(data_set, replicates),
            len(replicates) + 1,
            covered=distributions if known else Samples(np.concatenate(trials, axis=1)),
            lambdas=(self.lambda_, self.lambda_model or self.lambda_),
            points=None if at is None else evaluation_points(at, settings.scaling),
            unbiased=self.estimator == "unbiased",
        )
        own, *others = found.values
        return NullDistribution(
            np.array(others), data_value=own, at_inputs=found.at_inputs, floor=found.floor, details=found.details
        )

    def no_influences_reason(self, rows: RowResults) -> str:
        on_landmarks = rows.details["solver"]["name"] == "nystroem"
        return "row influences require an exact solver. Pass --solver cg, or use fewer rows" if on_landmarks else ""

    def influences(self, both: Predictions, run: Run) -> NDArray[np.float64]:
        from calcheck.embeddings.difference_influences import difference_influences
        from calcheck.kernels.input_kernel import require_inputs
        from calcheck.predictions import InMemory

        n = len(both) // 2
        first = InMemory(both.take(slice(n)))
        y, predictive = require_inputs(both)
        settings = self.prepare(first, run)
        features = self._features(y[:n], predictive, run)
        means = [features.of_distributions(trial) for trial in self._trials(predictive, run)]
        return difference_influences(
            self._ridge(settings, first, run),
            features.of_points(y[:n]),
            [(mean[:n], mean[n:]) for mean in means],
            (self.lambda_, self.lambda_model or self.lambda_),
            unbiased=self.estimator == "unbiased",
        )

    def _features(self, y: NDArray[np.float64], predictive: Predictive, run: Run) -> OutputFeatures:
        from calcheck.embeddings.output_features import output_features
        from calcheck.kernels.input_kernel import target_bandwidths

        return output_features(y, predictive, target_bandwidths(y, self.gamma_y), run.rng(RandomStream.FEATURES))

    def _bandwidth(self, y: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return the scale of the kernel on targets; None if it is undefined."""
        from calcheck.kernels.input_kernel import bandwidths_or_none, target_bandwidths

        return bandwidths_or_none(target_bandwidths, y, self.gamma_y)

    def value(self, means: Means, n: int) -> NDArray[np.float64]:  # noqa: ARG002 - mean
        return means[self._column] + means["correction"] if "correction" in means else means[self._column]

    def _trials(self, predictive: Predictive, run: Run) -> Iterator[Predictive]:
        from calcheck.embeddings.draws import trials_of

        return trials_of(predictive, self.draws, self.trials, run)
