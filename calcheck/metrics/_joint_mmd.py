"""Base classes of the metrics of joint distributions, of a model or of two samples at different inputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from calcheck.errors import DataError, Message, OptionError
from calcheck.inference.metric_protocol import NullDistribution, RowResults
from calcheck.kernels import Bandwidth, KernelName, KernelOptions, Standardize
from calcheck.metrics._lazy import (
    bandwidths,
    joint,
    kernel_functions,
    np,
    permutations,
    predictions,
    quadratic_forms,
    target_kernels,
)
from calcheck.metrics.base import FitT, Metric
from calcheck.options import flag_of, option, require_count_option, require_positive_option

if TYPE_CHECKING:
    from calcheck.core.metric_info import MetricInfo
    from calcheck.embeddings.laplace import PairForm
    from calcheck.embeddings.target_kernels import KernelSettings, TargetFeatures, TargetKernel
    from calcheck.kernels.bandwidths import Conditioning
    from calcheck.metrics._lazy import Kernel, Mask, Means, NullSimulator, Predictions, Predictive, Run, Source, Values
    from calcheck.mmd.joint import DataSets, JointEmbedding
    from calcheck.mmd.quadratic_forms import GramSums, InputKernel, QuadraticForm, RidgeNorms
    from calcheck.mmd.two_samples import SampleDistance


NARROW_KERNEL = "the input kernel is too narrow"
EPSILON = 0.1  # default weight of the kernel without features
EXACT_ROWS = 20_000  # maximum rows for exact sums over pairs of rows
SumsT = TypeVar("SumsT", bound="GramSums | RidgeNorms")
SAMPLE = "sample"  # column with the sample of each row: 0 for the first, 1 for the second
MIN_ROWS = 2  # minimum rows per sample
OfSamplesT = TypeVar("OfSamplesT", bound="OfSamples")
COPIES = 3  # number of n x n matrices in memory
NO_INTERVAL = "resampling repeats rows, which adds noise to both samples"


@dataclass(frozen=True)
class GenerativeMetric(Metric[FitT]):
    """Base class of metrics that accept several target columns and several targets per input."""

    standardize: Standardize = option(
        "Standardize each column of inputs and targets to mean 0 and variance 1 (data), or leave them unchanged.",
        "data",
    )

    def value(self, means: Means) -> Values:
        return means[self.info.name]


@dataclass(frozen=True)
class KernelMetric(GenerativeMetric[FitT]):
    """Base class of metrics with a kernel on targets."""

    kernel_y: KernelName = option("Kernel on targets; polynomial is (gamma y.y' + 1)^3.", "rbf")
    gamma_y: float | None = option(
        "Gamma of the kernel on targets. Default: 1/2 for rbf, 1 for laplace, 1/t for polynomial."
    )
    feature_targets: int = option(
        "Number of target columns, the last ones, that are features f of the others: the kernel is ((1 - epsilon)"
        " k(f, f') + epsilon) k(y, y').",
        0,
    )
    gamma_features: float | None = option("Gamma of the kernel on features. Default: that on targets.")
    epsilon: float = option("Weight of the kernel without features, from 0 to 1, with --feature-targets.", EPSILON)

    def __post_init__(self) -> None:
        for name in ("gamma_y", "gamma_features"):
            require_positive_option(name, getattr(self, name))
        if self.feature_targets < 0 or not 0 <= self.epsilon <= 1:
            raise OptionError(
                "--feature-targets must be a whole number >= 0 and --epsilon a number from 0 to 1, got"
                f" {self.feature_targets} and {self.epsilon:g}"
            )
        given = {"epsilon": self.epsilon != EPSILON, "gamma_features": self.gamma_features is not None}
        if not self.feature_targets and (useless := [flag_of(name) for name, is_given in given.items() if is_given]):
            raise OptionError(
                f"{useless[0]} is for features of the targets: name their number with --feature-targets, or remove"
                f" {useless[0]}"
            )
        if self.feature_targets and self.kernel_y != "rbf":
            msg = f"--feature-targets requires --kernel-y rbf, got {self.kernel_y}. Remove one of the two options"
            raise OptionError(msg)

    @property
    def target_kernel(self) -> TargetKernel:
        """The kernel on targets."""
        from calcheck.embeddings.feature_aware import FeatureAwareTargets

        if self.feature_targets:
            return FeatureAwareTargets(self.feature_targets, self.epsilon)
        return target_kernels.target_kernel(self.kernel_y)

    def standard_gamma(self, columns: int) -> Values:
        """Return gamma of the kernel on standardized targets for each of a number of columns, (t,)."""
        if self.feature_targets >= columns:
            raise OptionError(
                f"--feature-targets {self.feature_targets} leaves no target: the targets have {columns}"
                f" column{'s' * (columns != 1)}. Pass"
                " the targets and their features as columns (--target), the features last"
            )
        gamma = self.gamma_y or {"rbf": 0.5, "laplace": 1.0, "polynomial": 1 / columns}[self.kernel_y]
        feature = np.arange(columns) >= columns - self.feature_targets
        return np.where(feature, self.gamma_features or gamma, gamma)

    def bandwidths(self, y: Values, predictive: Predictive) -> Values:
        """Return gamma per column of targets (n, r, t) in their original unit, (t,)."""
        gamma = self.standard_gamma(y.shape[2])
        if self.standardize == "none":
            return gamma
        return gamma * self.target_kernel.unit_gamma(y, predictive)

    def data_sets(self, simulation: NullSimulator, gamma: Values, predictive: Predictive, run: Run) -> DataSets:
        """Return the data and its replicates, given the scale of the kernel on targets of the data, (t,)."""

        def gamma_of(y: Values) -> Values | None:  # Of a replicate (p, t); None if it is undefined
            shared = self.target_kernel.replicates_share_scale
            return gamma if shared else bandwidths.bandwidths_or_none(self.bandwidths, y[:, None], predictive)

        replicates = simulation.with_predictive(predictive)
        name = tuple(getattr(self, each.name) for each in fields(KernelMetric))
        return joint.DataSets(simulation.rows, replicates, gamma_of, predictive, self.target_kernel, name, run)

    def describe_targets(self, gamma: Values, repeats: int) -> dict[str, Any]:
        """Return the description of the kernel on targets, and of the number of targets per input."""
        one_or_more = gamma.tolist() if len(gamma) > 1 else float(gamma[0])
        return {**self.target_kernel.details, "gamma": one_or_more, "repeats": repeats}


@dataclass(frozen=True, eq=False)
class JointFit(Generic[SumsT]):
    """The fit of a metric with kernels on inputs and on targets."""

    settings: KernelSettings  # Kernels, scaling and features
    sums: SumsT  # Sums over pairs of inputs


@dataclass(frozen=True)
class JointMetric(KernelMetric[JointFit[SumsT]]):
    """Base class of metrics with kernels on inputs and on targets."""

    kernel_x: KernelName = option("Kernel on inputs; polynomial is (gamma x.x' + 1)^3.", "rbf")
    gamma_x: float | Bandwidth | None = option(
        "Gamma of the input kernel: a number, 1/d, median (1/median distance) or variance (1/(2 variance)). "
        "Default: 1/2, as in the paper; 1/d for polynomial."
    )
    max_exact_rows: int = option(
        "Maximum rows for an exact sum over all pairs; beyond, a Nyström approximation in linear time.", EXACT_ROWS
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.gamma_x, str):
            require_positive_option("gamma_x", self.gamma_x)
        require_count_option("max_exact_rows", self.max_exact_rows)

    def fit(self, source: Source, run: Run) -> JointFit[SumsT]:
        rows = source.predictions()
        predictive = rows.distributions().load()
        y = joint.repeated_targets(rows)
        gamma_y = self.bandwidths(y, predictive)
        inputs = quadratic_forms.input_kernel(rows, self._inputs, run.for_worker())
        chosen = inputs.conditioning
        described = {
            "inputs": {**chosen.details, "rows": len(rows)},
            "targets": self.describe_targets(gamma_y, y.shape[1]),
            "draws": predictive.n_draws or "exact",
        }
        features = self._features(rows, gamma_y, run)
        settings = target_kernels.KernelSettings(chosen.scaling, chosen.kernel, features, predictive, described)
        return JointFit(settings, self._sums(inputs, run))

    @property
    def _inputs(self) -> KernelOptions:
        """Options of the input kernel, with the choices that the paper fixes."""
        return KernelOptions(
            kernel_x=self.kernel_x,
            gamma_x=self.gamma_x or ("1/d" if self.kernel_x == "polynomial" else 0.5),
            normalize="standardize" if self.standardize == "data" else "none",
        )

    def evaluate(self, fit: JointFit[SumsT], source: Source, run: Run) -> RowResults:  # noqa: ARG002 - not random
        settings = fit.settings
        embedding, bounds = joint.embed(
            self.target_kernel, settings.features, source.predictions(), settings.predictive
        )
        form = self._form(embedding)
        del embedding  # which takes much memory
        rows = self._row_results(fit.sums, form)
        details = {
            **settings.details,
            "neighbors": fit.sums.inputs.neighbors,
            **rows.details,
            **target_kernels.feature_details(bounds),
        }
        warnings = (*self._narrow_kernel(fit), *target_kernels.residual_warnings(bounds), *rows.warnings)
        return replace(rows, details=details, warnings=warnings)

    def _form(self, embedding: JointEmbedding) -> QuadraticForm:
        """Return the squared joint MMD, or another form of the differences of embeddings."""
        return embedding.form("v")

    @abstractmethod
    def _row_results(self, sums: SumsT, form: QuadraticForm) -> RowResults:
        """Return the contribution of each row to the metric, with the details and warnings of the sums."""

    @abstractmethod
    def _sums(self, inputs: InputKernel, run: Run) -> SumsT:
        """Return sums over pairs of inputs."""

    def null_distribution(self, fit: JointFit[SumsT], simulation: NullSimulator, run: Run) -> NullDistribution:
        """Return the metric of all replicates, which share the sums over pairs of inputs."""
        from calcheck.execution.run import one_blas_thread

        data_sets = self.data_sets(simulation, fit.settings.features.gamma, fit.settings.predictive, run)
        count = 1 + len(data_sets.replicates)
        values: list[float] = []
        form = self._pair_form(fit.sums)
        if form is None:
            for block in joint.blocks(data_sets.embeddings(apart=self._uses_differences), count, run.progress):
                values += self._replicate_values(fit.sums, block)
        else:
            with one_blas_thread():  # many small products
                for value in data_sets.sums(form):
                    values.append(value)
                    run.progress("replicates", len(values) / count)
        data_value, *others = values
        reason = NARROW_KERNEL if self._narrow_kernel(fit) else ""
        details = fit.sums.replicate_details
        return NullDistribution(np.array(others), data_value=data_value, details=details, no_verdict=reason)

    @staticmethod
    def _narrow_kernel(fit: JointFit[SumsT]) -> tuple[Message, ...]:
        """Return a warning if the input kernel is too narrow to relate different inputs."""
        return bandwidths.narrow_kernel_warnings(fit.sums.inputs.neighbors, "row", "1/d or median")

    def influences(self, both: Predictions, run: Run) -> Values:
        """Return the contribution of each row to the difference between two models, (n,)."""
        first = predictions.InMemory(both.take(slice(len(both) // 2)))
        fit = self.fit(first, run)
        features = self._features(both, fit.settings.features.gamma, run)
        found, _ = joint.embed(self.target_kernel, features, both, both.distributions().load())
        return self._influences(fit.sums, *found.halves())

    def _features(self, rows: Predictions, gamma: Values, run: Run) -> TargetFeatures:
        y = joint.repeated_targets(rows)
        return self.target_kernel.features(y.reshape(-1, y.shape[2]), rows.distributions().load(), gamma, run)

    @abstractmethod
    def _influences(self, sums: SumsT, first: JointEmbedding, second: JointEmbedding) -> Values:
        """Return the contribution of each row to the second model's value minus the first's, (n,).

        Values are quadratic forms Q of embeddings. With b the mean of the two models and d half their difference,
        (b - d) Q (b - d) - (b + d) Q (b + d) = -4 d Q b. Each row counts once through d and once through b, so the
        contributions sum to twice the difference.
        """

    @property
    def _uses_differences(self) -> bool:
        """Whether the metric depends only on the difference between target and prediction embeddings."""
        return True

    @abstractmethod
    def _pair_form(self, sums: SumsT) -> PairForm | None:
        """Return the metric as a form of the differences of embeddings; None if sums over all pairs are needed."""

    def _replicate_values(self, sums: SumsT, data_sets: Iterable[JointEmbedding | None]) -> list[float]:
        """Return the metric of each data set, NaN for None; the very first data set is the observed data."""
        raise NotImplementedError


def first_sample(rows: Predictions, metric: str) -> Mask:
    """Return which rows belong to the first sample, (n,)."""
    if SAMPLE not in rows.columns:
        msg = f"column {SAMPLE!r} is missing. Add it with 0 for rows of the first sample and 1 for rows of the second"
        raise DataError(msg)
    first: Mask = rows.columns[SAMPLE] == 0
    fewest = min(int(first.sum()), int((~first).sum()))
    if fewest < MIN_ROWS:
        raise DataError(f"{metric} needs two samples of at least {MIN_ROWS} rows, but one has {fewest}")
    return first


@dataclass(frozen=True, eq=False)
class SamplesFit:
    """The rows of two samples."""

    distance: SampleDistance  # The distance between the samples, for any labels of the rows
    labels: Mask  # (n,), whether a row is from the first sample
    inputs: Conditioning  # Normalization and kernel of the inputs of both samples
    details: dict[str, Any]  # Description of the settings, for the report


class OfSamples:
    """A metric of two samples, with p from exchanging their rows, and scales of both, which labels do not change."""

    # Whether only rows with similar inputs are exchanged, for a distance of distributions given the inputs
    exchanges_similar_inputs: ClassVar[bool] = False

    if TYPE_CHECKING:
        info: ClassVar[MetricInfo]
        standardize: Standardize

        @property
        def _inputs(self) -> KernelOptions:
            """Options of the normalization and of the kernel on inputs."""

    def columns(self) -> tuple[str, ...]:
        return (SAMPLE,)

    @abstractmethod
    def _distance(self, kernel: Kernel, x: Values, y: Values) -> tuple[SampleDistance, dict[str, Any]]:
        """Return the distance of normalized inputs (n, d) and targets (n, t), and the description of its settings."""

    def fit(self, source: Source, run: Run) -> SamplesFit:
        rows = source.predictions()
        labels = first_sample(rows, self.info.name)
        run.require_room(COPIES * 8 * len(rows) ** 2, f"all pairs of {len(rows):,} rows of both samples")
        inputs = bandwidths.conditioning(rows, self._inputs)
        x = np.asarray(inputs.scaling(bandwidths.all_inputs(rows, run)), dtype=np.float64)
        y = bandwidths.target_matrix(rows)
        if self.standardize == "data":
            y = np.asarray(y * np.sqrt(bandwidths.target_precisions(y)))
        distance, details = self._distance(inputs.kernel, x, y)
        n = int(labels.sum())
        samples = {"rows": n, "rows_b": len(rows) - n}
        return SamplesFit(distance, labels, inputs, {"samples": samples, **details})

    def evaluate(self, fit: SamplesFit, source: Source, run: Run) -> RowResults:  # noqa: ARG002 - the fit has the rows
        value = np.asarray(fit.distance.of_division(fit.labels))
        return RowResults({}, fixed={self.info.name: value}, details=fit.details)

    def null_distribution(self, fit: SamplesFit, simulation: NullSimulator, run: Run) -> NullDistribution:
        """Return the metric of permuted samples."""
        from calcheck.execution.run import one_blas_thread

        x = np.asarray(fit.inputs.scaling(simulation.rows.inputs()), dtype=np.float64)
        if self.exchanges_similar_inputs:
            groups = permutations.strata(x, fit.labels, lambda: _features(x))
        else:
            groups = permutations.joint_strata(x, fit.labels)
        details = {"labels": groups.description, "exchangeable": groups.exchangeable}
        if not groups.exchangeable:
            return NullDistribution(np.empty(0), details=details, no_verdict=permutations.NO_OVERLAP)
        compared, values = fit.distance.among_permutations(), []
        with one_blas_thread():
            for labels in groups.permuted(simulation.rng(), len(simulation)):
                values.append(compared.of_division(labels))
                run.progress("permutations", len(values) / len(simulation))
        own = fit.distance.of_division(fit.labels)
        at_inputs = own - compared.of_division(fit.labels)  # what does not depend on the labels
        warnings = permutations.permutation_warnings(groups)
        return NullDistribution(np.array(values) + at_inputs, data_value=own, details=details, warnings=warnings)

    def influences(self, both: Predictions, run: Run) -> Values:  # noqa: ARG002 - always an error
        """Raise an error: two samples are not compared with two others."""
        raise DataError(f"{self.info.name} of two samples is not compared with that of two others, row by row")


def _features(x: Values) -> Values:
    """Return features of inputs (n, d) for propensities: a cubic kernel, as a local one would tell apart row by row."""
    spread = x.std(axis=0)
    scaled = (x - x.mean(axis=0)) / (spread + (spread == 0))
    cubic = kernel_functions.Polynomial(degree=3, gamma=1 / x.shape[1], coef0=1.0)
    landmarks = min(permutations.MAX_LANDMARKS, max(1, len(x) // permutations.MIN_ROWS_PER_LANDMARK))
    return permutations.low_rank_kernel(cubic, scaled, scaled[:1], landmarks).rows


def info_of_samples(info: MetricInfo, interpretation: str) -> MetricInfo:
    """Return the description of a metric that compares two samples, with the meaning of its value."""
    return replace(
        info,
        needs=("y", "x"),
        interpretation=interpretation,
        no_interval=NO_INTERVAL,
        pointwise=False,
        repeated_targets=False,
    )


def with_options_of(metric: GenerativeMetric[Any], kind: type[OfSamplesT]) -> OfSamplesT:
    """Return a metric of two samples with the options of a metric."""
    return kind(**{each.name: getattr(metric, each.name) for each in fields(metric)})


def sample_kernel(metric: KernelMetric[Any], columns: int) -> tuple[Kernel, dict[str, Any]]:
    """Return the kernel of a metric on standardized targets, and its description for the report."""
    gamma, described = metric.standard_gamma(columns), metric.target_kernel.details
    own, of_features = float(gamma[0]), float(gamma[-1])
    shape = {key: described[key] for key in ("degree", "coef0") if key in described}
    kernel: Kernel = kernel_functions.KERNELS[metric.kernel_y](gamma=own, **shape)
    if count := metric.feature_targets:
        kernel = kernel_functions.FeatureAware(kernel, kernel_functions.Rbf(of_features), count, metric.epsilon)
    return kernel, {"targets": {**described, "gamma": gamma.tolist() if count else own}}
