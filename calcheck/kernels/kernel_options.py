"""The choices that users have; free of numerics, so that help can list them at once."""

from __future__ import annotations

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
    """The kernels on inputs and on targets, as options of a metric that conditions on inputs."""

    kernel_x: KernelName | None = option(
        None, "Kernel on inputs. Default: polynomial, or rbf where inputs are one number."
    )
    gamma_x: float | Bandwidth | None = option(
        None,
        "Scale of that kernel: a number, 1/d, or from the inputs 1/median distance or 1/(2 variance). "
        "Default: 1 for embeddings, 1/d for standardized inputs, median for rbf and laplace, variance for one number.",
    )
    degree: int = option(3, "Degree of the polynomial kernel (gamma x.x' + coef0)^degree.")
    coef0: float = option(1.0, "Constant of the polynomial kernel.")
    normalize: Normalization | None = option(
        None,
        "Rows to norm 1 (l2), or columns to mean 0 and variance 1 (standardize). "
        "Default: l2 for embeddings, standardize for --inputs; none for one number and a kernel of differences.",
    )
    gamma_y: float | None = option(
        None, "Scale of the kernel exp(-gamma (y - y')^2) on targets. Default: 1/(2 t variance), t target columns."
    )

    def __post_init__(self) -> None:
        require_positive_option("gamma_y", self.gamma_y)
        if not isinstance(self.gamma_x, str):
            require_positive_option("gamma_x", self.gamma_x)
        require_count_option("degree", self.degree)
        if not 0 <= self.coef0 < float("inf"):
            msg = f"--coef0 must be a number >= 0, got {self.coef0}"
            raise OptionError(msg)


@dataclass(frozen=True)
class SolverOptions(KernelOptions):
    """The kernels, and how the linear systems of an embedding are solved: exactly, or on centres."""

    solver: LandmarkSolver = option(
        "auto",
        "Cholesky, block conjugate gradients, or an approximation on centres with a measured error; "
        "auto goes from one to the next as rows become many.",
    )
    landmarks: int | None = option(
        None, "Take nystroem, with so many centres. Default: as many as the tolerance takes."
    )
    landmark_sampling: LandmarkSampling = option("uniform", "Centres are rows at random, or by approximate leverage.")
    tolerance: float = option(0.01, "Error of the mean, as a share of it, at which nystroem takes no more centres.")
    max_flops: float = option(2e13, "Products of two numbers that a pass of nystroem may take.")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("tolerance", "max_flops"):
            require_positive_option(name, getattr(self, name))
        if self.landmarks is None:
            return
        require_count_option("landmarks", self.landmarks)
        if self.solver in EXACT:
            msg = f"--landmarks is for --solver nystroem, got --solver {self.solver}: leave one of them out"
            raise OptionError(msg)

    @property
    def requested(self) -> str:
        """Name the option that asks for centres, whatever there is to compute."""
        if self.solver == "nystroem":
            return "--solver nystroem"
        return "" if self.landmarks is None else "--landmarks"
