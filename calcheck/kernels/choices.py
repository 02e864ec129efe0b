"""The choices that users have; free of numerics, so that help can list them at once."""

from typing import Literal

KernelName = Literal["rbf", "laplace", "polynomial"]
Normalization = Literal["none", "l2", "standardize"]
Bandwidth = Literal["1/d", "median", "variance"]
Standardize = Literal["data", "none"]
Estimator = Literal["unbiased", "v", "paper"]
Solver = Literal["auto", "cholesky", "cg"]
