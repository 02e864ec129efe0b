"""What metrics share that come from conditional generative models: standardized data, and kernels on both sides."""

# Numerics are imported where they are used: `calcheck --help` reads this file and must start at once.

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from calcheck.embeddings.fitted_settings import FEW_NEIGHBOURS, KernelSettings
from calcheck.execution.context import RandomStream
from calcheck.kernels.kernel_options import Bandwidth, KernelName, KernelOptions, Standardize
from calcheck.metrics.base import Metric, Need, SettingsT, StateT
from calcheck.options import option, require_count_option, require_positive_option
from calcheck.results import IntervalMethod, NullDistribution, Orientation

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from calcheck.embeddings.output_features import OutputFeatures
    from calcheck.execution.context import Run
    from calcheck.inference.null_distribution import NullSimulator
    from calcheck.mmd.joint import JointEmbedding
    from calcheck.predictions import Predictions, Source

BLIND = "the kernel hardly relates inputs"
EXACT_ROWS = 20_000  # up to which sums over pairs of rows take every pair


@dataclass(frozen=True)
class GenerativeMetric(Metric[SettingsT, StateT]):
    """A metric of conditional generative models: of several targets, also of several for one input, and of samples."""

    needs: ClassVar[tuple[Need, ...]] = ("y", "predictive", "x")
    unit: ClassVar[str] = "1"
    orientation: ClassVar[Orientation] = "smaller"
    several_targets: ClassVar[bool] = True
    repeated_targets: ClassVar[bool] = True

    standardize: Standardize = option(
        "data", "Inputs and targets by the mean and standard deviation of each column of the data, or as they are."
    )

    def _bandwidths(self, y: NDArray[np.float64], gamma: float) -> NDArray[np.float64]:
        """Return gamma for each column of targets (p, t), in their own unit, (t,)."""
        import numpy as np

        from calcheck.kernels.input_kernel import target_precisions

        return gamma * target_precisions(y) if self.standardize == "data" else np.full(y.shape[1], gamma)


@dataclass(frozen=True)
class JointMetric(GenerativeMetric[KernelSettings, StateT]):
    """A metric by kernels on inputs and on targets."""

    interval: ClassVar[IntervalMethod] = "none"
    uses_kernels: ClassVar[bool] = True

    kernel_x: KernelName = option("rbf", "Kernel on inputs; the polynomial one is (gamma x.x' + 1)^3.")
    gamma_x: float | Bandwidth | None = option(
        None,
        "Scale of that kernel: a number, 1/d, or 1/median distance. Default: 1/2, as in the paper; 1/d if polynomial.",
    )
    gamma_y: float = option(0.5, "Scale of the kernel exp(-gamma |y - y'|^2) on targets.")
    max_exact_rows: int = option(EXACT_ROWS, "Up to so many rows every pair is summed; beyond, in linear time.")

    def __post_init__(self) -> None:
        require_positive_option("gamma_y", self.gamma_y)
        if not isinstance(self.gamma_x, str):
            require_positive_option("gamma_x", self.gamma_x)
        require_count_option("max_exact_rows", self.max_exact_rows)

    def prepare(self, source: Source, run: Run) -> KernelSettings:
        from calcheck.kernels.input_kernel import all_inputs, conditioning
        from calcheck.kernels.scaling import neighbors
        from calcheck.mmd.joint import repeated_targets

        rows = source.predictions()
        x, predictive = all_inputs(rows, run), rows.distributions().load()
        y = repeated_targets(rows)
        gamma_y = self._bandwidths(y.reshape(-1, y.shape[2]), self.gamma_y)
        inputs = conditioning(rows, self._on_inputs)
        described = {
            "inputs": {**inputs.details, "rows": len(x)},
            "targets": {"gamma": gamma_y.tolist() if len(gamma_y) > 1 else float(gamma_y[0]), "repeats": y.shape[1]},
            "draws": predictive.n_draws or "exact",
            "neighbors": neighbors(inputs.kernel, inputs.scaling(x)),
        }
        features = self._features(rows, gamma_y, run)
        return KernelSettings(inputs.scaling, inputs.kernel, features, predictive, described)

    @property
    def _on_inputs(self) -> KernelOptions:
        """The kernel on inputs, with what the paper leaves no choice of."""
        return KernelOptions(
            kernel_x=self.kernel_x,
            gamma_x=self.gamma_x or ("1/d" if self.kernel_x == "polynomial" else 0.5),
            normalize="standardize" if self.standardize == "data" else "none",
        )

    def null_distribution(
        self,
        settings: KernelSettings,
        state: StateT,
        simulation: NullSimulator,
        at: Source | None,  # noqa: ARG002 - it is of all rows together
        run: Run,
    ) -> NullDistribution:
        import numpy as np

        from calcheck.kernels.input_kernel import bandwidths_or_none
        from calcheck.mmd.joint import blocks, embed_replicates

        replicates = simulation.with_predictive(settings.predictive)
        data_sets = embed_replicates(
            simulation.rows,
            iter(replicates),
            lambda y: bandwidths_or_none(self._bandwidths, y, self.gamma_y),
            settings.predictive,
            lambda: run.rng(RandomStream.FEATURES),
            apart=self._of_differences,
        )
        values: list[float] = []
        for block in blocks(data_sets, 1 + len(replicates), run.progress):
            values += self._of_many(state, block)
        own, *others = values
        blind = BLIND if self._blind(settings) else ""
        return NullDistribution(np.array(others), data_value=own, details=self._told_of_many(state), no_verdict=blind)

    @staticmethod
    def _blind(settings: KernelSettings) -> list[str]:
        """Warn where the kernel relates hardly any two inputs."""
        near = settings.details["neighbors"]
        if near >= FEW_NEIGHBOURS:
            return []
        told = (
            f"the kernel on inputs relates a row to {near:.2g} others in all, so it sees hardly any two rows together."
            " Pass --gamma-x 1/d or median"
        )
        return [told]

    def influences(self, both: Predictions, run: Run) -> NDArray[np.float64]:
        from calcheck.mmd.joint import embed
        from calcheck.predictions import InMemory

        first = InMemory(both.take(slice(len(both) // 2)))
        settings = self.prepare(first, run)
        features = self._features(both, settings.features.pivots.gamma, run)
        found, _ = embed(features, both, both.distributions().load())
        return self._influences(self.fit(settings, first, run), *found.halves())

    @staticmethod
    def _features(rows: Predictions, gamma: NDArray[np.float64], run: Run) -> OutputFeatures:
        from calcheck.embeddings.output_features import output_features
        from calcheck.mmd.joint import repeated_targets

        y = repeated_targets(rows)
        return output_features(
            y.reshape(-1, y.shape[2]), rows.distributions().load(), gamma, run.rng(RandomStream.FEATURES)
        )

    @abstractmethod
    def _influences(self, state: StateT, first: JointEmbedding, second: JointEmbedding) -> NDArray[np.float64]:
        """Return what each row contributes to the second model's value less the first's, (n,): they sum to twice that.

        Values are quadratic forms Q of embeddings. With b the mean of two models and d half their difference, (b - d) Q
        (b - d) - (b + d) Q (b + d) = -4 d Q b: a row counts once as one of d, and once as one of b.
        """

    @property
    def _of_differences(self) -> bool:
        """Whether the metric depends on targets and predictions by the difference of their embeddings only."""
        return True

    @abstractmethod
    def _of_many(self, state: StateT, data_sets: Iterable[JointEmbedding | None]) -> list[float]:
        """Return the metric of some data sets, the data's own the very first; NaN for None."""

    @abstractmethod
    def _told_of_many(self, state: StateT) -> dict[str, Any]:
        """Say how it is computed of many data sets."""
