"""Base class of metrics of joint distributions that compare two samples at different inputs."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from calcheck.errors import DataError
from calcheck.inference.metric_protocol import NullDistribution, RowResults
from calcheck.mmd.samples import SAMPLE, first_sample

if TYPE_CHECKING:
    from calcheck.core.metric_info import MetricInfo
    from calcheck.embeddings.permutations import Strata
    from calcheck.execution.run import Run
    from calcheck.inference.null_distribution import NullSimulator
    from calcheck.kernels import KernelOptions, Standardize
    from calcheck.kernels.functions import Kernel
    from calcheck.kernels.input_kernel import Conditioning
    from calcheck.metrics._joint_mmd import GenerativeMetric, KernelMetric
    from calcheck.mmd.two_samples import SampleDistance
    from calcheck.predictions import Predictions, Source
    from calcheck.typing import Mask, Values


OfSamplesT = TypeVar("OfSamplesT", bound="OfSamples")

COPIES = 3  # number of n x n matrices in memory
NO_INTERVAL = "resampling repeats rows, which adds noise to both samples"


@dataclass(frozen=True, eq=False)
class SamplesFit:
    """The rows of two samples."""

    distance: SampleDistance  # The distance between the samples, for any labels of the rows
    labels: Mask  # (n,), whether a row is from the first sample
    inputs: Conditioning  # Normalization and kernel of the inputs of both samples
    details: dict[str, Any]  # Description of the settings, for the report


class OfSamples:
    """A metric of two samples, with p from exchanging their rows.

    Scales are those of both samples together, so that permutations of the labels do not change them.
    """

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
        import numpy as np

        from calcheck.kernels.input_kernel import all_inputs, conditioning, target_matrix

        rows = source.predictions()
        labels = first_sample(rows, self.info.name)
        run.require_room(COPIES * 8 * len(rows) ** 2, f"all pairs of {len(rows):,} rows of both samples")
        inputs = conditioning(rows, self._inputs)
        x = np.asarray(inputs.scaling(all_inputs(rows, run)), dtype=np.float64)
        distance, details = self._distance(inputs.kernel, x, self._scaled(target_matrix(rows)))
        n = int(labels.sum())
        samples = {"rows": n, "rows_b": len(rows) - n}
        return SamplesFit(distance, labels, inputs, {"samples": samples, **details})

    def _scaled(self, y: Values) -> Values:
        """Return targets (n, t), divided by their deviation over both samples unless they are left unchanged."""
        import numpy as np

        from calcheck.kernels.input_kernel import target_precisions

        return y if self.standardize == "none" else np.asarray(y * np.sqrt(target_precisions(y)))

    def evaluate(self, fit: SamplesFit, source: Source, run: Run) -> RowResults:  # noqa: ARG002 - the fit has the rows
        import numpy as np

        value = np.asarray(fit.distance.of_division(fit.labels))
        return RowResults({}, fixed={self.info.name: value}, details=fit.details)

    def null_distribution(self, fit: SamplesFit, simulation: NullSimulator, run: Run) -> NullDistribution:
        """Return the metric of permuted samples."""
        import numpy as np

        from calcheck.embeddings.permutations import NO_OVERLAP, permutation_warnings
        from calcheck.execution.reduce import one_blas_thread

        groups = self._groups(fit, simulation.rows)
        details = {"labels": groups.description, "exchangeable": groups.exchangeable}
        if not groups.exchangeable:
            return NullDistribution(np.empty(0), details=details, no_verdict=NO_OVERLAP)
        compared, values = fit.distance.among_permutations(), []
        with one_blas_thread():
            for labels in groups.permuted(simulation.rng(), len(simulation)):
                values.append(compared.of_division(labels))
                run.progress("permutations", len(values) / len(simulation))
        own = fit.distance.of_division(fit.labels)
        at_inputs = own - compared.of_division(fit.labels)  # what does not depend on the labels
        warnings = permutation_warnings(groups)
        return NullDistribution(np.array(values) + at_inputs, data_value=own, details=details, warnings=warnings)

    def _groups(self, fit: SamplesFit, rows: Predictions) -> Strata:
        """Return the groups of rows that are exchanged: all rows, or those with equal or similar inputs."""
        import numpy as np

        from calcheck.embeddings.permutations import joint_strata, strata

        x = np.asarray(fit.inputs.scaling(rows.inputs()), dtype=np.float64)
        if not self.exchanges_similar_inputs:
            return joint_strata(x, fit.labels)
        return strata(x, fit.labels, lambda: _features(x))

    def influences(self, both: Predictions, run: Run) -> Values:  # noqa: ARG002 - always an error
        """Raise an error: two samples are not compared with two others."""
        msg = f"{self.info.name} of two samples is not compared with that of two others, row by row"
        raise DataError(msg)


def _features(x: Values) -> Values:
    """Return features of inputs (n, d) for propensities, (n, q): those of a cubic kernel on standardized inputs.

    A local kernel would tell the samples apart row by row, and leave nothing to exchange.
    """
    from calcheck.embeddings.permutations import MAX_LANDMARKS, MIN_ROWS_PER_LANDMARK, low_rank_kernel
    from calcheck.kernels.functions import Polynomial

    spread = x.std(axis=0)
    scaled = (x - x.mean(axis=0)) / (spread + (spread == 0))
    cubic = Polynomial(degree=3, gamma=1 / x.shape[1], coef0=1.0)
    landmarks = min(MAX_LANDMARKS, max(1, len(x) // MIN_ROWS_PER_LANDMARK))
    return low_rank_kernel(cubic, scaled, scaled[:1], landmarks).rows


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
    from calcheck.kernels.functions import KERNELS, FeatureAware, Rbf

    gamma, described = metric.standard_gamma(columns), metric.target_kernel.details
    own, of_features = float(gamma[0]), float(gamma[-1])
    shape = {key: described[key] for key in ("degree", "coef0") if key in described}
    kernel: Kernel = KERNELS[metric.kernel_y](gamma=own, **shape)
    if count := metric.feature_targets:
        kernel = FeatureAware(kernel, Rbf(of_features), count, metric.epsilon)
    return kernel, {"targets": {**described, "gamma": gamma.tolist() if count else own}}
