"""Types of the details in results, by metric: settings and diagnostics of the computation."""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, TypedDict, TypeVar, cast, get_type_hints, is_typeddict

FieldTree = dict[str, "FieldTree | None"]  # Fields by name, each with its own fields; None if these may have any name


def field_tree(hint: Any) -> FieldTree:
    """Return the fields of a TypedDict by name, each with its own fields; empty for other types."""
    return _fields_of(hint) if is_typeddict(hint) else {}


@cache
def _fields_of(hint: Any) -> FieldTree:
    return {name: field_tree(each) for name, each in get_type_hints(hint).items()}


# ------------------------------------------------------------------ all metrics


class Bootstrap(TypedDict, total=False):
    """Bootstrap of a value: resamples, bias, and what BCa limits need."""

    resamples: Annotated[int, "Number of resamples."]
    bias: Annotated[float | None, "Mean of the resamples minus the value."]
    undefined: Annotated[int, "Number of resamples without a finite value."]
    held_fixed: Annotated[str, "Choices that are not repeated for each resample."]
    z0: Annotated[float, "Bias correction of BCa limits."]
    acceleration: Annotated[float, "Acceleration of BCa limits."]
    effective_rows: Annotated[float, "Number of rows that determine the interval; fewer than the rows for heavy tails."]


class Abc(TypedDict, total=False):
    """ABC limits, which replace the bootstrap for many rows."""

    z0: Annotated[float, "Bias correction."]
    acceleration: Annotated[float, "Acceleration."]
    effective_rows: Annotated[float, "Number of rows that determine the interval."]


class Pairs(TypedDict, total=False):
    """Sum over pairs of rows: exact, or by a low-rank kernel with an estimated error."""

    method: Annotated[str, "Method of the sum."]
    rank: Annotated[int, "Rank of the low-rank kernel."]
    error: Annotated[float, "Estimated error of the value."]
    null_std: Annotated[float, "Standard deviation of the null distribution, estimated on the validation rows."]
    validation_rows: Annotated[int, "Number of rows on which the error is estimated."]
    accurate: Annotated[bool, "Whether the error is within its tolerance."]


class Null(Pairs, total=False):
    """Null distribution: number of replicates, and how they were computed."""

    replicates: Annotated[int, "Number of replicates."]
    undefined: Annotated[int, "Number of replicates without a finite value."]
    mean: Annotated[float, "Mean score of the replicates, if the reference is exact."]
    low: Annotated[float | None, "Lower limit of the scores of replicates, if the reference is exact."]
    high: Annotated[float | None, "Upper limit of the scores of replicates, if the reference is exact."]
    clusters: Annotated[int, "Number of clusters or blocks of rows that depend on each other."]
    degrees_of_freedom: Annotated[float, "Degrees of freedom of the variance between clusters."]
    columns: Annotated[int, "Number of principal directions of the features."]
    landmarks: Annotated[int, "Number of landmarks."]
    relative_error: Annotated[float, "Relative error of the approximation."]
    labels: Annotated[str, "How the labels of samples are permuted."]
    exchangeable: Annotated[int, "Number of rows whose labels can be permuted."]


class Details(TypedDict, total=False):
    """Details that results of any metric can have."""

    bootstrap: Annotated[Bootstrap, "Bootstrap of the interval."]
    abc: Annotated[Abc, "ABC limits, which replace the bootstrap for many rows."]
    normal: Annotated[Bootstrap, "Draws from the normal distribution of means, which replace the bootstrap in states."]
    null: Annotated[Null, "Null distribution."]
    worst: Annotated[list[dict[str, Any]], "Rows with the largest values."]
    best: Annotated[list[dict[str, Any]], "Rows with the smallest values."]
    rank: Annotated[int | None, "Rank of the model among those compared."]
    tau: Annotated[float | None, "Kendall's tau between this ranking of the models and the first."]
    subsets: Annotated[int, "Number of random subsets of the rows."]
    deviation: Annotated[float, "Standard deviation over random subsets, or over trials with new draws."]
    change: Annotated[float, "Value minus that of all rows."]
    ideal: Annotated[
        list[float], "Ideal values of two models, if their difference is that of the distances from these values."
    ]


DetailsT = TypeVar("DetailsT", bound=Details)


def select_details(details: Mapping[str, Any], kind: type[DetailsT]) -> DetailsT:
    """Return the details of a result that a type declares, so that mypy checks their names and types."""
    return cast("DetailsT", {name: details[name] for name in field_tree(kind) if name in details})


# ------------------------------------------------------------------ metrics of rows


class SquaredZSkewness(TypedDict):
    """Skewness of squared z-scores."""

    z2: Annotated[float, "Skewness of squared z-scores."]


class ZmsDetails(Details, total=False):
    """Details of zms."""

    skewness: Annotated[SquaredZSkewness, "Skewness, which shows heavy tails."]
    mean_z: Annotated[float, "Mean z-score: its square is the part of the value that is due to bias."]
    variance_z: Annotated[float, "Variance of the z-scores, with divisor n - 1."]


class SpreadSkewness(TypedDict):
    """Skewness of predicted variances and of squared errors."""

    variance: Annotated[float, "Skewness of predicted variances."]
    squared_error: Annotated[float, "Skewness of squared errors."]


class RceDetails(Details, total=False):
    """Details of rce."""

    skewness: Annotated[SpreadSkewness, "Skewness, which shows heavy tails."]
    rmv: Annotated[float, "Root mean predicted variance."]
    rmse: Annotated[float, "Root mean squared error."]
    mean_error: Annotated[float, "Mean signed error, y - mean."]


class NllDetails(Details, total=False):
    """Details of nll, for normal distributions."""

    zms: Annotated[float, "Mean squared z-score."]
    mean_log_variance: Annotated[float, "Mean logarithm of the predicted variances."]


class CrpsDetails(Details, total=False):
    """Details of crps, for draws."""

    estimator: Annotated[Literal["biased", "fair"], "Estimator of the score of draws."]


class LevelScore(TypedDict):
    """Mean score of the quantiles at a level."""

    level: Annotated[float, "Level of the quantiles."]
    score: Annotated[float, "Mean score at the level, in the unit of y."]


class ScoreParts(TypedDict, total=False):
    """A mean score and its parts: miscalibration - discrimination + uncertainty."""

    score: Annotated[float, "Mean score."]
    miscalibration: Annotated[float, "What an increasing correction of the predictions removes."]
    discrimination: Annotated[float, "What the corrected predictions improve on a constant prediction."]
    uncertainty: Annotated[float, "Score of the best constant prediction."]


class MiscalibrationDetails(Details, ScoreParts, total=False):
    """Details of mean-miscalibration and crps-miscalibration."""


class LevelParts(ScoreParts):
    """Parts of the pinball loss at one level."""

    level: Annotated[float, "Level of the quantiles."]


class QuantileMiscalibrationDetails(MiscalibrationDetails, total=False):
    """Details of quantile-miscalibration."""

    by_level: Annotated[list[LevelParts], "Parts at each level."]


class TailParts(TypedDict, total=False):
    """A threshold, and the targets beyond it."""

    threshold: Annotated[float, "Threshold of the tail, in the unit of y."]
    exceedances: Annotated[int, "Number of targets in the tail."]
    expected_exceedances: Annotated[float, "Expected number of targets in the tail, if the model is right."]
    occurrence: Annotated[float | None, "Number of targets in the tail, relative to the expected number."]
    severity: Annotated[float | None, "Twice the mean PIT of the excesses; 1 if the model is right."]


class TailLevel(TailParts):
    """The tail beyond another threshold."""

    level: Annotated[float, "Share of the mixture of all predictions that is not in the tail."]


class TailDetails(Details, TailParts, total=False):
    """Details of tail."""

    at_other_levels: Annotated[list[TailLevel], "The tail beyond other thresholds."]


class PinballDetails(Details, total=False):
    """Details of pinball."""

    by_level: Annotated[list[LevelScore], "Mean score at each level."]


class WisDetails(Details, total=False):
    """Details of wis, of which the first three sum to the value."""

    overprediction: Annotated[float, "Part due to targets below intervals, and below medians, in the unit of y."]
    underprediction: Annotated[float, "Part due to targets above intervals, and above medians, in the unit of y."]
    dispersion: Annotated[float, "Part due to the widths of intervals, in the unit of y."]
    levels: Annotated[list[float], "Levels of the quantiles."]


class AtLimits(TypedDict, total=False):
    """Share of targets inside if those equal to stated limits of their intervals do not count, as for counts."""

    strictly_inside: Annotated[float, "Share of targets strictly inside, if some are equal to stated limits."]


class OtherLevel(AtLimits):
    """Coverage at another level."""

    level: Annotated[float, "Level of the intervals."]
    coverage: Annotated[float, "Share of targets inside."]
    expected: Annotated[float, "Expected share."]


class CoverageDetails(Details, AtLimits, total=False):
    """Details of coverage."""

    below: Annotated[float, "Share of targets below their interval."]
    above: Annotated[float, "Share of targets above their interval."]
    at_other_levels: Annotated[list[OtherLevel], "Coverage at other levels."]


class FactorAtLevel(TypedDict):
    """Factor by which intervals at a level would have to be wider."""

    level: Annotated[float, "Level of the intervals."]
    factor: Annotated[float | None, "Factor by which they would have to be wider; null if no factor suffices."]
    low: Annotated[float | None, "Lower limit of the factor; null if no factor suffices."]
    high: Annotated[float | None, "Upper limit of the factor; null if there is none."]
    ranks: Annotated[list[int], "Ranks of the limits; 0 or more than the rows if there is no such limit."]


class WidthFactorDetails(Details, total=False):
    """Details of width-factor."""

    factors: Annotated[list[FactorAtLevel], "Factors at 50, 90 and 99 %, as far as they are known, and at the level."]
    conformal_factor: Annotated[
        float | None, "Factor of split conformal prediction, with its guarantee; null if the rows are too few."
    ]


class LevelPoint(TypedDict):
    """Point of a quantile reliability diagram."""

    level: Annotated[float, "Level of the quantile."]
    observed: Annotated[float, "Share of targets below the quantile."]


class EceDetails(Details, total=False):
    """Details of ece."""

    curve: Annotated[list[LevelPoint], "Quantile reliability diagram."]


class PitDetails(Details, total=False):
    """Details of pit."""

    histogram: Annotated[
        list[float], "Number of PIT values in each of equal bins; a row of counts is shared between bins."
    ]


class LagCorrelations(TypedDict):
    """Autocorrelations of the PIT at one lag."""

    lag: Annotated[int, "Number of times between the rows."]
    position: Annotated[float, "Autocorrelation of the PIT."]
    distance: Annotated[float, "Autocorrelation of its distance from 1/2."]


class PitIndependenceDetails(Details, total=False):
    """Details of pit-independence."""

    correlations: Annotated[list[LagCorrelations], "Autocorrelations of the PIT by lag."]


class LocalErrorDetails(Details, total=False):
    """Details of local-scale and local-bias."""

    along: Annotated[str, "What the error varies along: std, inputs, time, or a column."]
    mean: Annotated[float, "Mean over all rows: log factor of the standard deviation, or bias in predicted deviations."]
    standard_error: Annotated[float, "Standard error of the value."]
    rows: Annotated[int, "Number of rows, or of sampled rows if there are many."]
    regularizer: Annotated[
        float, "Regularizer of the regression: the largest with a leave-one-out error near the smallest."
    ]
    directions: Annotated[int, "Number of independent functions of the inputs."]
    dof: Annotated[float, "Effective degrees of freedom of the regression."]


class RemovalPoint(TypedDict):
    """Point of a confidence curve: error without the removed share of rows, and that of an oracle."""

    removed: Annotated[float, "Share of removed rows."]
    error: Annotated[float, "Error of the other rows."]
    oracle: Annotated[float, "Error if the rows with the largest errors are removed."]


class ConfidenceCurveDetails(Details, total=False):
    """Details of confidence-curve."""

    curve: Annotated[list[RemovalPoint], "Confidence curve."]


# ------------------------------------------------------------------ metrics of bins

BinRange = TypedDict(
    "BinRange",
    {
        "from": Annotated[float | str | None, "Smallest value of the sort key in the bin."],
        "to": Annotated[float | str | None, "Largest value of the sort key in the bin."],
        "rows": Annotated[float, "Number of rows; tied rows are shared between bins."],
    },
)  # Which rows are in a bin


class SpreadBin(BinRange):
    """Bin of a reliability diagram: range, rows, root mean variance and root mean squared error."""

    rmv: Annotated[float | None, "Root mean predicted variance."]
    rmse: Annotated[float | None, "Root mean squared error."]


class BinnedDetails(Details, total=False):
    """Details of ence and uce."""

    bins: Annotated[list[SpreadBin], "Reliability diagram."]


class CoverageBin(BinRange):
    """Bin of intervals: range, rows, coverage and expected coverage."""

    coverage: Annotated[float | None, "Share of targets inside their intervals."]
    strictly_inside: NotRequired[
        Annotated[float | None, "Share of targets strictly inside, if some are equal to stated limits."]
    ]
    expected: Annotated[float | None, "Expected share."]


class StratifiedCoverageDetails(Details, total=False):
    """Details of stratified-coverage."""

    bins: Annotated[list[CoverageBin], "Coverage by bin."]


class ValidBin(BinRange):
    """Bin with the interval of its statistic, and whether that contains the reference."""

    value: Annotated[float | None, "Statistic of the bin."]
    low: Annotated[float | None, "Lower limit of its interval."]
    high: Annotated[float | None, "Upper limit of its interval."]
    effective_rows: Annotated[float | None, "Number of rows that determine the interval."]
    zeta: Annotated[float | None, "Distance from the reference, relative to the interval on that side."]
    variance: NotRequired[Annotated[float | None, "Variance of the z-scores in the bin, which a bias does not change."]]
    valid: Annotated[bool | None, "Whether the interval contains the reference."]


class ValidBinsDetails(Details, total=False):
    """Details of lzms and lrce."""

    bins: Annotated[list[ValidBin], "Bins with their intervals."]


# ------------------------------------------------------------------ metrics with kernels


class Quantiles(TypedDict):
    """Quantiles of the values over inputs."""

    min: Annotated[float, "Minimum."]
    q05: Annotated[float, "5 % quantile."]
    q25: Annotated[float, "25 % quantile."]
    median: Annotated[float, "Median."]
    q75: Annotated[float, "75 % quantile."]
    q95: Annotated[float, "95 % quantile."]
    max: Annotated[float, "Maximum."]


class InputKernel(TypedDict, total=False):
    """Kernel on inputs, and their normalization."""

    kernel: Annotated[str, "Kernel."]
    gamma: Annotated[float, "Gamma of the kernel."]
    degree: Annotated[int, "Degree of the polynomial kernel."]
    coef0: Annotated[float, "Constant of the polynomial kernel."]
    normalize: Annotated[str, "Normalization of the inputs."]
    columns: Annotated[int, "Number of input columns."]
    rows: Annotated[int, "Number of inputs."]


class TargetKernel(TypedDict, total=False):
    """Kernel on targets; gamma is a list for several target columns."""

    kernel: Annotated[str, "Kernel."]
    gamma: Annotated[float | list[float], "Gamma of the kernel; a list for several target columns."]
    repeats: Annotated[int, "Number of targets per input."]
    degree: Annotated[int, "Degree of the polynomial kernel."]
    coef0: Annotated[float, "Constant of the polynomial kernel."]
    feature_targets: Annotated[int, "Number of target columns that are features of the others."]
    epsilon: Annotated[float, "Weight of the kernel without features."]


class Features(TypedDict, total=False):
    """Features of the kernel on targets: rank, and residuals as shares of squared norms."""

    rank: Annotated[int, "Number of features."]
    residual_targets: Annotated[float, "Largest residual of targets."]
    residual_predictive: Annotated[float, "Largest residual of predictive distributions."]
    residual_rows: Annotated[float, "Share of squared norms that the features do not represent."]
    quadrature_error: Annotated[float, "Largest error of mean embeddings by quadrature."]


class Preconditioner(TypedDict):
    """Preconditioner of conjugate gradients."""

    name: Annotated[str, "Name."]
    rank: Annotated[int, "Rank."]


class Solver(TypedDict, total=False):
    """Solver of the linear systems."""

    name: Annotated[str, "Solver."]
    reason: Annotated[str, "Why it was chosen."]
    cached: Annotated[bool, "Whether the kernel matrix was cached in memory."]
    iterations: Annotated[int, "Number of iterations."]
    preconditioner: Annotated[Preconditioner, "Preconditioner."]
    residual: Annotated[float, "Relative residual of the solution."]
    precision: Annotated[str, "Floating-point precision."]
    device: Annotated[str, "Device."]
    landmarks: Annotated[int, "Number of landmarks."]
    landmark_sampling: Annotated[str, "How landmarks are sampled."]
    error: Annotated[float, "Estimated error of the value."]
    landmark_error: Annotated[float, "Relative error that stops the search for landmarks."]
    bias_correction: Annotated[float, "Correction that is added to the mean."]
    mean_rows: Annotated[int, "Number of rows in the mean."]
    validation_rows: Annotated[int, "Number of rows on which the error is estimated."]
    flops: Annotated[float, "Multiply-adds of one pass over the rows."]
    nystroem_residual: Annotated[float, "Mean Nyström residual of the inputs."]
    validation_residual: Annotated[float, "Mean Nyström residual of the validation inputs."]
    method: Annotated[str, "Method of the low-rank kernel."]
    rank: Annotated[int, "Rank of the low-rank kernel."]
    relative_error: Annotated[float, "Relative error on the validation rows."]


class Rejected(TypedDict, total=False):
    """Inputs in whose neighborhoods the model is rejected, with the false discovery rate of neighborhoods."""

    count: Annotated[int, "Number of inputs whose neighborhoods are rejected, with at least 0.7 of their median error."]
    inputs: Annotated[int, "Number of tested inputs."]
    fdr: Annotated[float, "False discovery rate of neighborhoods."]
    p_value_method: Annotated[str, "How p-values beyond the replicates are extrapolated."]


class AtInputsDetails(Details, total=False):
    """Details of metrics that have a value at each input."""

    rows: Annotated[int, "Number of inputs."]
    quantiles: Annotated[Quantiles, "Quantiles of the values over inputs."]
    inputs: Annotated[InputKernel, "Kernel on inputs."]
    targets: Annotated[TargetKernel, "Kernel on targets."]
    features: Annotated[Features, "Features of the kernel on targets."]
    dof: Annotated[float, "Effective degrees of freedom of the regression."]
    dof_error: Annotated[float, "Monte Carlo error of dof."]
    solver: Annotated[Solver, "Solver of the linear systems."]
    rejected: Annotated[Rejected, "Inputs in whose neighborhoods the model is rejected."]
    most_significant: Annotated[list[dict[str, Any]], "Rejected inputs with the smallest p-values."]


class Trials(TypedDict):
    """Mean distance in repetitions with new draws."""

    std: Annotated[float, "Standard deviation over repetitions."]
    values: Annotated[list[float], "Mean distance of each repetition."]


Model = TypedDict(
    "Model",
    {
        "draws": Annotated[int | str, "Draws per row, or exact."],
        "lambda": Annotated[float, "Regularizer of the data embedding."],
        "lambda_model": Annotated[float, "Regularizer of the model embedding."],
    },
)  # Draws per row, or exact, and the regularizers of the data and of the model


class Reach(TypedDict):
    """Distance within which inputs are averaged, its unit, and the share of rows within it."""

    distance: Annotated[float | None, "Distance within which inputs are averaged."]
    unit: Annotated[str, "Unit of the distance."]
    share_of_rows: Annotated[float, "Mean share of the rows within the distance."]


class CceDetails(AtInputsDetails, total=False):
    """Details of cce."""

    model: Annotated[Model, "Representation of the model."]
    noise: Annotated[float, "Mean noise that is subtracted from squares."]
    noise_error: Annotated[float, "Monte Carlo error of the noise."]
    trials: Annotated[Trials, "Repetitions with new draws."]
    reach: Annotated[Reach, "Distance within which inputs are averaged."]


class SampleSizes(TypedDict):
    """Rows of both samples."""

    rows: Annotated[int, "Rows of the first sample."]
    rows_b: Annotated[int, "Rows of the second sample."]


class MmdDetails(Details, total=False):
    """Details of mmd."""

    samples: Annotated[SampleSizes, "Rows of both samples."]
    targets: Annotated[TargetKernel, "Kernel on targets."]
    inputs: Annotated[InputKernel, "Kernel on inputs."]


Samples = TypedDict(
    "Samples",
    {
        "rows": Annotated[int, "Rows of the first sample."],
        "rows_b": Annotated[int, "Rows of the second sample."],
        "lambda": Annotated[float, "Regularizer of the first sample."],
        "lambda_b": Annotated[float, "Regularizer of the second sample."],
    },
)  # Rows and regularizers of both samples


class McmdDetails(AtInputsDetails, total=False):
    """Details of mcmd."""

    samples: Annotated[Samples, "Rows and regularizers of both samples."]
    neighbors: Annotated[float, "Effective neighbors per input."]
    dof_b: Annotated[float, "Effective degrees of freedom of the second regression."]
    dof_b_error: Annotated[float, "Monte Carlo error of dof_b."]


class SamplesDetails(Details, total=False):
    """Details of metrics that may compare two samples."""

    samples: Annotated[SampleSizes, "Rows of both samples, if two files are compared."]


class AmmdDetails(Details, total=False):
    """Details of ammd."""

    targets: Annotated[TargetKernel, "Kernel on targets."]
    draws: Annotated[int | str, "Draws per row, or exact."]
    features: Annotated[Features, "Features of the kernel on targets."]


class JointDetails(AmmdDetails, SamplesDetails, total=False):
    """Details of metrics with kernels on inputs and on targets."""

    inputs: Annotated[InputKernel, "Kernel on inputs."]
    neighbors: Annotated[float, "Effective neighbors per row."]


class JmmdDetails(JointDetails, total=False):
    """Details of jmmd."""

    pairs: Annotated[Pairs, "Sum over pairs of rows."]


_Lambda = TypedDict("_Lambda", {"lambda": Annotated[float, "Regularizer."]}, total=False)


class CmmdDetails(_Lambda, JointDetails, total=False):
    """Details of cmmd."""

    dof: Annotated[float, "Effective degrees of freedom of the regression."]
    dof_error: Annotated[float, "Monte Carlo error of dof."]
    solver: Annotated[Solver, "Solver of the linear systems."]


class Columns(TypedDict):
    """Numbers of columns."""

    inputs: Annotated[int, "Number of input columns."]
    targets: Annotated[int, "Number of target columns."]


class FidDetails(SamplesDetails, total=False):
    """Details of fid: ``means`` is the contribution of the means."""

    columns: Annotated[Columns, "Numbers of columns."]
    repeats: Annotated[int, "Number of targets per input."]
    draws: Annotated[int | str, "Draws per row, or exact."]
    means: Annotated[float, "Contribution of the means."]
