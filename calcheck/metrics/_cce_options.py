"""Options of the conditional congruence error, and what its fits derive from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from calcheck.errors import OptionError
from calcheck.kernels import KernelName, SolverOptions
from calcheck.options import option, require_count_option, require_positive_option

if TYPE_CHECKING:
    from calcheck.distributions import Predictive
    from calcheck.embeddings.target_kernels import TargetFeatures, TargetKernel
    from calcheck.execution.run import Run
    from calcheck.typing import Values

MAX_VALUES = {"trials": 10_000, "draws": 100_000}  # maximum option values
FITTED_OPTIONS = (
    *("kernel_x", "gamma_x", "degree", "coef0", "normalize", "solver"),
    *("landmarks", "landmark_sampling", "tolerance", "max_flops", "exact_only"),
)
"""Options that the kernel matrix or the landmarks depend on."""


@dataclass(frozen=True)
class CceOptions(SolverOptions):
    """Options of the conditional congruence error."""

    kernel_y: KernelName = option(
        "rbf", "Kernel on targets: rbf, laplace, or polynomial, with --degree and --coef0 as for inputs."
    )
    gamma_y: float | None = option(
        None,
        "Gamma of the kernel on targets. Default for t target columns: 1/(2 t variance) for rbf and polynomial;"
        " 1/(t deviation of the predictions, with the targets for samples) for laplace.",
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
        from calcheck.embeddings.target_kernels import target_kernel

        return target_kernel(self.kernel_y, self.degree, self.coef0)

    def bandwidths(self, y: Values, predictive: Predictive) -> Values:
        """Return gamma of the kernel on targets (n, t), (t,)."""
        import numpy as np

        if self.gamma_y is not None:
            return np.full(y.shape[1], self.gamma_y)
        return self.target_kernel.default_gamma(y[:, None], predictive)

    def features(self, y: Values, predictive: Predictive, run: Run) -> TargetFeatures:
        """Return features of the kernel on targets for the targets (n, t) and the distributions."""
        return self.target_kernel.features(y, predictive, self.bandwidths(y, predictive), run)

    def replicate_bandwidths(self, gamma: Values) -> Callable[[Values], Any]:
        """Return the function of targets (n, t) that returns the gamma of a replicate; None if it is undefined.

        Shapes: gamma (t,).
        """
        from calcheck.kernels.functions import bandwidths_or_none, target_bandwidths

        if self.target_kernel.replicates_share_scale:
            return lambda _: gamma
        return lambda y: bandwidths_or_none(target_bandwidths, y, self.gamma_y)

    def trials_of(self, predictive: Predictive, run: Run) -> Iterator[Predictive]:
        """Yield the distributions, or draws from them, for each trial."""
        from calcheck.embeddings.target_kernels import trials_of

        return trials_of(predictive, self.draws, self.trials, run)
