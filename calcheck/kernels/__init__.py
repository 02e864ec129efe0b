"""Kernels on inputs and targets: their options, without NumPy, so that --help is fast."""

from dataclasses import dataclass
from typing import Literal

from calcheck.errors import OptionError
from calcheck.options import option, require_count_option, require_positive_option

KernelName = Literal["rbf", "laplace", "polynomial"]
Normalization = Literal["none", "l2", "standardize"]
Bandwidth = Literal["1/d", "median", "variance"]
Standardize = Literal["data", "none"]
Estimator = Literal["unbiased", "v", "paper"]
Solver = Literal["auto", "cholesky", "cg"]
LandmarkSolver = Literal["auto", "cholesky", "cg", "nystroem"]
LandmarkSampling = Literal["uniform", "leverage"]
EXACT = ("cholesky", "cg")


@dataclass(frozen=True)
class KernelOptions:
    """Options of the kernels on inputs and on targets, for metrics that condition on inputs."""

    kernel_x: KernelName | None = option(
        "Kernel on inputs. Default: rbf for a single input column, polynomial otherwise."
    )
    gamma_x: float | Bandwidth | None = option(
        "Gamma of the input kernel: a number, 1/d, median (1/median distance) or variance (1/(2 variance)). "
        "Default: 1 for embeddings, 1/d for standardized inputs, median for rbf and laplace, variance for one column."
    )
    degree: int = option("Degree of the polynomial kernel (gamma x.x' + coef0)^degree.", 3)
    coef0: float = option("Constant term of the polynomial kernel.", 1.0)
    normalize: Normalization | None = option(
        "Normalization of inputs: rows to norm 1 (l2), or columns to mean 0 and variance 1 (standardize). "
        "Default: l2 for embeddings, standardize for --inputs, none for one column with rbf or laplace."
    )
    gamma_y: float | None = option(
        "Gamma of the kernel exp(-gamma (y - y')^2) on targets. Default: 1/(2 t variance) for t target columns."
    )

    def __post_init__(self) -> None:
        require_positive_option("gamma_y", self.gamma_y)
        if not isinstance(self.gamma_x, str):
            require_positive_option("gamma_x", self.gamma_x)
        require_count_option("degree", self.degree)
        if not 0 <= self.coef0 < float("inf"):
            raise OptionError(f"--coef0 must be a number >= 0, got {self.coef0}")


@dataclass(frozen=True)
class SolverOptions(KernelOptions):
    """Options of the kernels and of the solver of the regression: exact, or a Nyström approximation."""

    solver: LandmarkSolver = option(
        "Cholesky, block conjugate gradients (cg), or a Nyström approximation with an estimated error; "
        "auto chooses by the number of rows and the memory.",
        "auto",
    )
    landmarks: int | None = option(
        "Number of landmarks; implies nystroem. Default: increased until --landmark-error is met."
    )
    landmark_sampling: LandmarkSampling = option("Landmark sampling: uniform or ridge leverage scores.", "uniform")
    landmark_error: float = option("Target relative error of the mean with nystroem.", 0.01)
    max_flops: float = option("Maximum multiply-adds per pass with nystroem.", 2e13)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("landmark_error", "max_flops"):
            require_positive_option(name, getattr(self, name))
        if self.landmarks is None:
            return
        require_count_option("landmarks", self.landmarks)
        if self.solver in EXACT:
            msg = f"--landmarks requires --solver nystroem, got --solver {self.solver}. Remove one of the two options"
            raise OptionError(msg)

    @property
    def requested(self) -> str:
        """Return the option that requests the Nyström solver; empty if none does."""
        if self.solver == "nystroem":
            return "--solver nystroem"
        return "" if self.landmarks is None else "--landmarks"
