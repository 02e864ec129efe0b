"""Conditional congruence error: distance between predicted and observed distributions at each input."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from calcheck.core.metric_info import SHARED_FIT, MetricInfo
from calcheck.errors import DataError, Message, NumericalError, OptionError
from calcheck.inference.metric_protocol import NullDistribution, RowResults
from calcheck.kernels import KernelName, SolverOptions
from calcheck.metrics._lazy import bandwidths, coverage, distance, landmarks, np, predictions, ridge, target_kernels
from calcheck.metrics.base import LevelOption, Metric
from calcheck.options import option, require_count_option, require_positive_option
from calcheck.result_details import CceDetails

if TYPE_CHECKING:
    from calcheck.embeddings.landmarks import NystroemEmbedding
    from calcheck.embeddings.ridge import KernelRidge
    from calcheck.embeddings.target_kernels import KernelSettings, TargetFeatures, TargetKernel
    from calcheck.metrics._lazy import Means, NullSimulator, Predictions, Predictive, Run, Source, Values

MAX_VALUES = {"trials": 10_000, "draws": 100_000}  # maximum option values
FITTED_OPTIONS = (
    *("kernel_x", "gamma_x", "degree", "coef0", "normalize", "solver"),
    *("landmarks", "landmark_sampling", "landmark_error", "max_flops", "exact_only"),
)  # Options that the kernel matrix or the landmarks depend on
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
class Cce(SolverOptions, Metric["CceExact | CceNystroem"]):
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
        needs=("y", "predictive", "x"),
        alternative="greater",
        above="wrong-distribution",
        source="Young et al., Eq. 2-3 (arXiv 2405.12412)",
        interpretation="0 means equal distributions; distributions that do not overlap have a distance of about 1.4.",
        no_interval=SHARED_FIT,
        uses_kernels=True,
        conditional=True,
        several_targets=True,
        details=CceDetails,
    )

    curves_along_columns: ClassVar[bool] = True

    kernel_y: KernelName = option(
        "Kernel on targets: rbf, laplace, or polynomial, with --degree and --coef0 as for inputs.", "rbf"
    )
    gamma_y: float | None = option(
        "Gamma of the kernel on targets. Default for t target columns: 1/(2 t variance) for rbf and polynomial;"
        " 1/(t deviation of the predictions, with the targets for samples) for laplace."
    )
    lambda_: float = option("Regularizer of the data embedding: K + n lambda I.", 0.1)
    lambda_model: float | None = option("Regularizer of the model embedding. Default: lambda.")
    draws: int | Literal["exact", "all"] | None = option(
        "Draws per row that represent the model: a number, all saved draws, or exact (closed form). "
        "Default: exact for parametric distributions, all for samples."
    )
    estimator: Literal["plugin", "unbiased"] = option(
        "Distance (plugin), or its square corrected for noise (unbiased): 0 on average for a perfect model.", "plugin"
    )
    trials: int = option("Number of repetitions with new draws; reports mean and standard deviation.", 1)

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
            raise OptionError("--estimator unbiased requires equal regularizers, got two. Remove --lambda-model")
        if self.trials > 1 and not isinstance(self.draws, int):
            raise OptionError(f"--trials {self.trials} requires a number of draws per row. Pass --draws 1 as well")

    @property
    def unbiased(self) -> bool:
        """Whether the value is the squared distance, corrected for noise."""
        return self.estimator == "unbiased"

    @property
    def column(self) -> str:
        """Name of the column of values."""
        return "cce2" if self.unbiased else "cce"

    @property
    def lambdas(self) -> tuple[float, float]:
        """Regularizers of the data embedding and of the model embedding."""
        return self.lambda_, self.lambda_model or self.lambda_

    @property
    def exact_only(self) -> str:
        """The option in use that requires an exact solver; empty if there is none."""
        if self.lambda_model not in (None, self.lambda_):
            return "--lambda-model"
        if self.unbiased:
            return "--estimator unbiased"
        if self.kernel_y != "rbf":
            return f"--kernel-y {self.kernel_y}"
        return "--draws N" if isinstance(self.draws, int) else ""

    @property
    def fit_key(self) -> tuple[Any, ...]:
        """The options that the kernel matrix or the landmarks depend on."""
        return tuple(getattr(self, name) for name in FITTED_OPTIONS)

    @property
    def target_kernel(self) -> TargetKernel:
        """The kernel on targets."""
        return target_kernels.target_kernel(self.kernel_y, self.degree, self.coef0)

    def bandwidths(self, y: Values, predictive: Predictive) -> Values:
        """Return gamma of the kernel on targets (n, t), (t,)."""
        if self.gamma_y is not None:
            return np.full(y.shape[1], self.gamma_y)
        return self.target_kernel.default_gamma(y[:, None], predictive)

    def features(self, y: Values, predictive: Predictive, run: Run) -> TargetFeatures:
        """Return features of the kernel on targets for the targets (n, t) and the distributions."""
        return self.target_kernel.features(y, predictive, self.bandwidths(y, predictive), run)

    def replicate_bandwidths(self, gamma: Values) -> Callable[[Values], Any]:
        """Return the function of targets (n, t) that returns gamma (t,) of a replicate, None if it is undefined."""
        if self.target_kernel.replicates_share_scale:
            return lambda _: gamma
        return lambda y: bandwidths.bandwidths_or_none(bandwidths.target_bandwidths, y, self.gamma_y)

    def trials_of(self, predictive: Predictive, run: Run) -> Iterator[Predictive]:
        """Yield the distributions, or draws from them, for each trial."""
        return target_kernels.trials_of(predictive, self.draws, self.trials, run)

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
        return coverage.coverage_outcomes(source, LevelOption().level_of(source.predictions().predictive))

    def fit(self, source: Source, run: Run) -> CceExact | CceNystroem:
        settings = self.settings(source.predictions(), run)
        if reason := self._approximation_reason(settings, source.predictions(), run):
            precise = landmarks.as_precise(source.predictions(), run)
            return CceNystroem(self, landmarks.NystroemEmbedding(settings, source, self, precise, reason))
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
        y, predictive = bandwidths.require_inputs(rows)
        if len(y) == 1 and None in (self.gamma_x, self.gamma_y):
            msg = "cce needs at least 2 rows to choose kernel scales, got 1. Pass more rows, or --gamma-x and --gamma-y"
            raise DataError(msg)
        inputs = bandwidths.conditioning(rows, self)
        gamma = self.bandwidths(y, predictive)
        lambda_, lambda_model = self.lambdas
        described = {
            "inputs": inputs.details,
            "targets": {**self.target_kernel.details, "gamma": gamma.tolist() if len(gamma) > 1 else float(gamma[0])},
            "model": {
                "draws": target_kernels.representation(predictive, self.draws),
                "lambda": lambda_,
                "lambda_model": lambda_model,
            },
        }
        features = self.features(y, predictive, run)
        return target_kernels.KernelSettings(inputs.scaling, inputs.kernel, features, predictive, described)

    def _approximation_reason(self, settings: KernelSettings, rows: Predictions, run: Run) -> str:
        """Return why cce is computed on landmarks; empty for an exact solver."""
        if self.requested:
            return "as requested"
        if self.solver != "auto" or self.exact_only:
            return ""
        return ridge.approximation_reason(len(rows), rows.width, settings.features.rank, run)

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
        """Return the contribution of each row to the difference of squared values of two models, (n,)."""
        n = len(both) // 2
        first = both.take(slice(n))
        settings = self.settings(first, run)
        if self._approximation_reason(settings, first, run):
            raise DataError("row influences require an exact solver. Pass --solver cg, or use fewer rows")
        ridge = CceExact.from_source(self, settings, predictions.InMemory(first), run).ridge
        y, predictive = bandwidths.require_inputs(both)
        observed, means, _ = self.features(y[:n], predictive, run).embed(y[:n], self.trials_of(predictive, run))
        models = [(mean[:n], mean[n:]) for mean in means]
        return distance.difference_influences(ridge, observed, models, self.lambdas, unbiased=self.unbiased)

    def value(self, means: Means) -> Values:
        mean = means[self.column]
        return mean + means["correction"] if "correction" in means else mean


@dataclass(frozen=True, eq=False)
class CceExact:
    """The fit of cce with an exact solver."""

    options: Cce
    settings: KernelSettings  # Kernels, scaling, features and distributions
    ridge: KernelRidge  # Kernel ridge regression on the inputs
    # (m, d), scaled inputs at which cce is evaluated; by default the rows' own inputs
    at: Values | None = None

    @classmethod
    def from_source(cls, options: Cce, settings: KernelSettings, source: Source, run: Run) -> CceExact:
        """Return the fit to the inputs of a source."""
        x = settings.scaling.rounded(source.predictions().inputs(), precision=run.precision)
        solver = "auto" if options.solver == "nystroem" else options.solver
        return cls(options, settings, ridge.KernelRidge(settings.kernel, x, run, solver=solver))

    def refit(self, options: Cce, settings: KernelSettings, _: Source) -> CceExact:
        """Return the fit with other options and distributions, and with the same regression on the inputs."""
        return replace(self, options=options, settings=settings)

    def plan(self, options: Sequence[Cce], models: int) -> None:
        """Choose a solver for the regularizers of several metrics; the noise must not depend on other metrics."""
        lambdas = {lambda_ for each in options for lambda_ in each.lambdas}
        alone = any(each.unbiased for each in options)
        self.ridge.plan(len(lambdas), 0 if alone else len(options) * models)

    def at_inputs(self, source: Source) -> CceExact:
        """Return the fit, to be evaluated at the inputs of another source."""
        return replace(self, at=bandwidths.evaluation_points(source, self.settings.scaling))

    def evaluate(self, source: Source, run: Run) -> RowResults:
        """Return the distance at each input."""
        options, settings, ridge = self.options, self.settings, self.ridge
        lambda_, lambda_model = options.lambdas
        y, _ = bandwidths.require_inputs(source.predictions())
        observed, predicted, bounds = settings.features.embed(y, options.trials_of(settings.predictive, run))
        found = distance.distances(
            ridge, observed, predicted, lambda_=lambda_, lambda_model=lambda_model, points=self.at
        )
        values, noise_details = found.values.mean(axis=0), {}
        if options.unbiased:
            added, error = distance.noise(ridge, found.sizes, lambda_, self.at)
            values = (found.values**2).mean(axis=0) - added
            noise_details = {"noise": float(added.mean()), "noise_error": error}
        if not np.isfinite(values).all():
            msg = f"CCE is not finite at {int((~np.isfinite(values)).sum()):,} inputs: the kernel overflows there"
            raise NumericalError(msg)
        few = bandwidths.sample_inputs(source.predictions().lazy_inputs(), distance.FEW_ROWS)
        details = {
            "rows": len(values),
            "quantiles": distance.quantiles(values),
            **noise_details,
            **distance.trial_statistics(found.values.mean(axis=1)),
            **settings.details,
            **distance.solver_details(found, bounds, ridge, run),
            "reach": distance.reach(settings.kernel, settings.scaling(few), settings.scaling, lambda_),
        }
        columns = {options.column: values}
        if run.keep_rows:
            columns["effective_neighbors"] = distance.effective_neighbors(ridge, lambda_, self.at)
        warnings = distance.kernel_warnings(found.dof.value, bounds, found, ridge.run.precision)
        return RowResults(columns, details=details, warnings=warnings)

    def null_distribution(self, simulation: NullSimulator, run: Run) -> NullDistribution:
        """Return cce of replicates, which share the regression and its solutions for common features."""
        from calcheck.distributions import Samples

        options, distributions = self.options, self.settings.predictive
        y, _ = bandwidths.require_inputs(simulation.rows)
        bandwidth = options.replicate_bandwidths(self.settings.features.gamma)
        model = list(options.trials_of(distributions, run))

        def data_set(rows: Predictions) -> target_kernels.DataSet:
            targets, draws = bandwidths.target_matrix(rows), list[Any](model)
            if rows.predictive is not distributions and rows.predictive is not None:
                swapped = [target_kernels.SwappedDraw(distributions)]
                draws = list(options.trials_of(rows.predictive, run)) if isinstance(options.draws, int) else swapped
            return target_kernels.DataSet(targets, bandwidth(targets), draws)

        data = target_kernels.DataSet(y, bandwidth(y), model)
        trials = [each.draws for each in model if isinstance(each, Samples)]
        known = not trials or distributions.n_draws is not None
        covered = distributions if known else Samples(np.concatenate(trials, axis=1))
        kernel, shared_run = options.target_kernel, self.ridge.run
        replicates = simulation.with_predictive(distributions)
        found = distance.embed_replicates(
            self.ridge,
            data,
            map(data_set, replicates),
            len(replicates) + 1,
            share=lambda differences: kernel.shared(data, covered, shared_run, differences=differences),
            lambdas=options.lambdas,
            points=self.at,
            unbiased=options.unbiased,
        )
        own, *others = found.values
        return NullDistribution(
            np.array(others), data_value=own, at_inputs=found.at_inputs, floor=found.floor, details=found.details
        )


@dataclass(frozen=True, eq=False)
class CceNystroem:
    """The fit of cce on landmarks."""

    options: Cce
    embedding: NystroemEmbedding  # Landmarks, and regressions on them

    def refit(self, options: Cce, settings: KernelSettings, source: Source) -> CceNystroem:
        """Return the fit with other options and distributions, and with the same choice of landmarks."""
        return CceNystroem(options, replace(self.embedding, settings=settings, source=source, factorized={}))

    def plan(self, options: Sequence[Cce], models: int) -> None:
        """Do nothing; landmarks serve all regularizers."""

    def at_inputs(self, _: Source) -> CceNystroem:
        """Raise an error: landmarks are fitted for the rows' own inputs only."""
        raise OptionError("--at and --grid require an exact solver. Pass --solver cg, or use fewer rows (--subsample)")

    def evaluate(self, _: Source, run: Run) -> RowResults:
        """Return the distance at each input if rows are kept, else at the sampled inputs."""
        embedding, lambda_ = self.embedding, self.options.lambda_
        settings, found = embedding.settings, embedding.fitted(lambda_)
        columns = {"cce": found.at_all_rows() if run.keep_rows else found.values[:, 0]}
        values = columns["cce"]
        if run.keep_rows:
            columns["effective_neighbors"] = found.effective_neighbors()
        few = found.landmarks.evaluated[: distance.FEW_ROWS]
        details = {
            "rows": found.landmarks.rows,
            "quantiles": distance.quantiles(values),
            **settings.details,
            **target_kernels.feature_details(found.bounds),
            **landmarks.nystroem_details(
                found.measured, found.landmarks, embedding.options, embedding.run, embedding.reason
            ),
            "reach": distance.reach(settings.kernel, few, settings.scaling, lambda_),
        }
        correction = found.measured.means[0] - values.mean()
        warnings = landmarks.nystroem_warnings(
            found.measured, found.landmarks, embedding.options, target_kernels.residual_warnings(found.bounds)
        )
        numbers = None if len(values) == found.landmarks.rows else found.places
        fixed = {"correction": correction}
        return RowResults(columns, fixed=fixed, details=details, warnings=warnings, numbers=numbers)

    def null_distribution(self, _: NullSimulator, __: Run) -> NullDistribution:
        """Return cce of the replicates, which were fitted together with the data."""
        near = self.embedding.fitted(self.options.lambda_)
        details = {"columns": near.groups[1], "landmarks": len(near.landmarks.landmarks)}
        at_inputs = near.at_inputs()
        at_sample = near.values.T if at_inputs is None else None
        return NullDistribution(near.measured.means[1:], at_inputs=at_inputs, at_sample=at_sample, details=details)
