"""Types of the details in results, by metric: settings and diagnostics of the computation.

All keys are optional: which ones a result has depends on the data, the options and the command.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict, get_type_hints, is_typeddict

FieldTree = dict[str, "FieldTree | None"]
"""Fields by name, each with its own fields; None if these may have any name."""


def field_tree(hint: Any) -> FieldTree:
    """Return the fields of a TypedDict by name, each with its own fields; empty for other types."""
    if not is_typeddict(hint):
        return {}
    return {name: field_tree(each) for name, each in get_type_hints(hint).items()}


# ------------------------------------------------------------------ all metrics


class Bootstrap(TypedDict, total=False):
    """Bootstrap of a value: resamples, bias, and what BCa limits need."""

    resamples: int
    bias: float | None
    undefined: int
    held_fixed: str
    z0: float
    acceleration: float
    effective_rows: float


class Abc(TypedDict, total=False):
    """ABC limits, which replace the bootstrap for many rows."""

    z0: float
    acceleration: float
    effective_rows: float


class Null(TypedDict, total=False):
    """Null distribution: number of replicates, and how they were computed."""

    replicates: int
    undefined: int
    mean: float
    low: float | None
    high: float | None
    method: str
    columns: int
    landmarks: int
    rank: int
    relative_error: float
    error: float
    null_std: float
    validation_rows: int
    accurate: bool
    labels: str
    exchangeable: int


class Details(TypedDict, total=False):
    """Details that results of any metric can have."""

    bootstrap: Bootstrap
    abc: Abc
    normal: Bootstrap
    null: Null
    worst: list[dict[str, Any]]
    best: list[dict[str, Any]]
    rank: int | None
    tau: float | None
    subsets: int
    deviation: float


# ------------------------------------------------------------------ metrics of rows


class SquaredZSkewness(TypedDict):
    """Skewness of squared z-scores."""

    z2: float


class ZmsDetails(Details, total=False):
    """Details of zms."""

    skewness: SquaredZSkewness


class SpreadSkewness(TypedDict):
    """Skewness of predicted variances and of squared errors."""

    variance: float
    squared_error: float


class RceDetails(Details, total=False):
    """Details of rce."""

    skewness: SpreadSkewness


class NllDetails(Details, total=False):
    """Details of nll, for normal distributions."""

    zms: float
    mean_log_variance: float


class CrpsDetails(Details, total=False):
    """Details of crps, for draws."""

    estimator: Literal["biased", "fair"]


class LevelScore(TypedDict):
    """Mean score of the quantiles at a level."""

    level: Annotated[float, "Level of the quantiles."]
    score: Annotated[float, "Mean score at the level, in the unit of y."]


class PinballDetails(Details, total=False):
    """Details of pinball."""

    by_level: Annotated[list[LevelScore], "Mean score at each level."]


class OtherLevel(TypedDict):
    """Coverage at another level."""

    level: float
    coverage: float
    expected: float


class CoverageDetails(Details, total=False):
    """Details of coverage."""

    at_other_levels: list[OtherLevel]


class LevelPoint(TypedDict):
    """Point of a quantile reliability diagram."""

    level: float
    observed: float


class EceDetails(Details, total=False):
    """Details of ece."""

    curve: list[LevelPoint]


class PitDetails(Details, total=False):
    """Details of pit."""

    histogram: list[float]


class RemovalPoint(TypedDict):
    """Point of a confidence curve: error without the removed share of rows, and that of an oracle."""

    removed: float
    error: float
    oracle: float


class ConfidenceCurveDetails(Details, total=False):
    """Details of confidence-curve."""

    curve: list[RemovalPoint]


# ------------------------------------------------------------------ metrics of bins

SpreadBin = TypedDict(
    "SpreadBin",
    {
        "from": float | str | None,
        "to": float | str | None,
        "rows": float,
        "rmv": float | None,
        "rmse": float | None,
    },
)
"""Bin of a reliability diagram: range, rows, root mean variance and root mean squared error."""


class BinnedDetails(Details, total=False):
    """Details of ence and uce."""

    bins: list[SpreadBin]


ValidBin = TypedDict(
    "ValidBin",
    {
        "from": float | str | None,
        "to": float | str | None,
        "rows": float,
        "value": float | None,
        "low": float | None,
        "high": float | None,
        "effective_rows": float | None,
        "valid": bool | None,
    },
)
"""Bin with the interval of its statistic, and whether that contains the reference."""


class ValidBinsDetails(Details, total=False):
    """Details of lzms and lrce."""

    bins: list[ValidBin]


# ------------------------------------------------------------------ metrics with kernels


class Quantiles(TypedDict):
    """Quantiles of the values over inputs."""

    min: float
    q05: float
    q25: float
    median: float
    q75: float
    q95: float
    max: float


class InputKernel(TypedDict, total=False):
    """Kernel on inputs, and their normalization."""

    kernel: str
    gamma: float
    degree: int
    coef0: float
    normalize: str
    columns: int
    rows: int


class TargetKernel(TypedDict, total=False):
    """Kernel on targets; gamma is a list for several target columns."""

    kernel: str
    gamma: float | list[float]
    repeats: int


class Features(TypedDict, total=False):
    """Features of the kernel on targets: rank, and residuals as shares of squared norms."""

    rank: int
    residual_targets: float
    residual_predictive: float
    residual_rows: float
    quadrature_error: float


class Preconditioner(TypedDict):
    """Preconditioner of conjugate gradients."""

    name: str
    rank: int


class Solver(TypedDict, total=False):
    """Solver of the linear systems."""

    name: str
    reason: str
    cached: bool
    iterations: int
    preconditioner: Preconditioner
    residual: float
    precision: str
    device: str
    landmarks: int
    landmark_sampling: str
    error: float
    tolerance: float
    bias_correction: float
    mean_rows: int
    validation_rows: int
    flops: float
    nystroem_residual: float
    validation_residual: float
    method: str
    rank: int
    relative_error: float


class Rejected(TypedDict, total=False):
    """Inputs at which the model is rejected, with the false discovery rate."""

    count: int
    inputs: int
    fdr: float
    p_value_method: str


class AtInputsDetails(Details, total=False):
    """Details of metrics that have a value at each input."""

    rows: int
    quantiles: Quantiles
    inputs: InputKernel
    targets: TargetKernel
    features: Features
    dof: float
    dof_error: float
    solver: Solver
    rejected: Rejected
    most_significant: list[dict[str, Any]]


class Trials(TypedDict):
    """Mean distance in repetitions with new draws."""

    std: float
    values: list[float]


Model = TypedDict("Model", {"draws": int | str, "lambda": float, "lambda_model": float})
"""Draws per row, or exact, and the regularizers of the data and of the model."""


class Reach(TypedDict):
    """Distance within which inputs are averaged, its unit, and the share of rows within it."""

    distance: float | None
    unit: str
    share_of_rows: float


class CceDetails(AtInputsDetails, total=False):
    """Details of cce."""

    model: Model
    noise: float
    noise_error: float
    trials: Trials
    reach: Reach


Samples = TypedDict("Samples", {"rows": int, "rows_b": int, "lambda": float, "lambda_b": float})
"""Rows and regularizers of both samples."""


class McmdDetails(AtInputsDetails, total=False):
    """Details of mcmd."""

    samples: Samples
    neighbors: float
    dof_b: float
    dof_b_error: float


class Pairs(TypedDict, total=False):
    """Sum over pairs of rows: exact, or by a low-rank kernel with an estimated error."""

    method: str
    rank: int
    error: float
    null_std: float
    validation_rows: int
    accurate: bool


class JmmdDetails(Details, total=False):
    """Details of jmmd."""

    inputs: InputKernel
    targets: TargetKernel
    draws: int | str
    neighbors: float
    pairs: Pairs
    features: Features


class AmmdDetails(Details, total=False):
    """Details of ammd."""

    targets: TargetKernel
    draws: int | str
    features: Features


_Lambda = TypedDict("_Lambda", {"lambda": float}, total=False)


class CmmdDetails(_Lambda, Details, total=False):
    """Details of cmmd."""

    inputs: InputKernel
    targets: TargetKernel
    draws: int | str
    neighbors: float
    dof: float
    dof_error: float
    solver: Solver
    features: Features


class Columns(TypedDict):
    """Numbers of columns."""

    inputs: int
    targets: int


class FidDetails(Details, total=False):
    """Details of fid: ``means`` is the contribution of the means."""

    columns: Columns
    repeats: int
    draws: int | str
    means: float
