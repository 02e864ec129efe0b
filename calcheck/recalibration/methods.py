"""Methods of recalibration: the fits of their steps, methods by name, and fitted maps that are stored."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal, cast

import numpy as np

from calcheck.core import sc
from calcheck.core.text import count_of
from calcheck.distributions import Predictive
from calcheck.distributions.continuous import Gaussian, LocationScale
from calcheck.distributions.count_base import Counts
from calcheck.distributions.joint import with_marginals
from calcheck.distributions.noise_clip_rounding import Observation
from calcheck.distributions.quantiles import Intervals, Quantiles
from calcheck.errors import DataError, NumericalError, OptionError, with_suggestion
from calcheck.predictions import Predictions
from calcheck.recalibration import corrections as map_steps
from calcheck.recalibration import features as row_features
from calcheck.recalibration.features import select_features
from calcheck.statistics.binning import Binning
from calcheck.statistics.pit import levels_of, pit, share_of_row_below
from calcheck.typing import Mask, Values

MOST_ROWS = 10_000  # Maximum number of rows that choose a penalty, which is in rows and therefore that of all rows
MOST_KNOTS = 200  # Maximum number of inner knots of the map of probabilities
SMALLEST, LARGEST = 2.0**-1000, 1 - 2.0**-53  # Range of PIT values, which are 0 or 1 by rounding only
MOST_FAR = 0.1  # Maximum share of targets so far out that their probability is 0 or 1, which ends the known quantiles
FEW_FAR = 3  # Number of such targets that are always allowed
OBSERVED_METHODS = ("scale", "shift-scale")
"""The methods that are fitted to targets that were observed with noise, clipped or rounded."""
FARTHEST = 4.0  # Largest relative error that counts where features are selected
DEGREES = np.geomspace(2.1, 1000.0, 80).round(3)  # Of Student-t distributions, which have a standard deviation
CONVERGED, MOST_ROUNDS = 1e-10, 200
FLOOR = 1e-300  # Smallest mass of a target
ROUNDING = 1e-9  # Tolerance for rounding of a rank
VERSION: Literal[1] = 1


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """Options of the fits."""

    by: tuple[str, ...] = ("std",)  # Columns, or "std" for the predicted deviation, on which `bias` and `local` depend
    selects: bool = False  # Whether they depend on those of these columns only that score tests find
    bins: int = 20  # Number of bins of `bvs`
    levels: tuple[float, ...] = (0.5, 0.8, 0.9, 0.95)  # Levels of the intervals that `conformal` makes of distributions
    relative: bool = False  # Whether conformal scores of quantiles and intervals are relative to their widths
    seed: int = 0  # Seed of the folds that choose a ridge penalty


def fit_scale(rows: Predictions, _: FitOptions) -> map_steps.Scale:
    """Return the scaling with s^2 = mean z^2, relative to that of a perfect model [Levi et al., Eq. 12-13]."""
    square = float(np.mean(row_features.z_scores(rows) ** 2 / row_features.perfect_mean_square(rows.distributions())))
    _require_spread_of_errors(square)
    return map_steps.Scale(factor=math.sqrt(square))


def fit_shift_scale(rows: Predictions, _: FitOptions) -> map_steps.ShiftScale:
    """Return the shift and the scaling of greatest likelihood: mean and std of z for normals, mixtures and draws."""
    z = row_features.z_scores(rows)
    predictive = rows.distributions()
    variance = float(np.var(z))
    _require_spread_of_errors(variance)
    if isinstance(predictive, LocationScale) and not isinstance(predictive, Gaussian):
        return _most_likely(predictive, z)
    factor = math.sqrt(variance / float(np.mean(row_features.perfect_mean_square(predictive))))
    return map_steps.ShiftScale(shift=float(np.mean(z)), factor=factor)


def _most_likely(predictive: LocationScale, z: Values) -> map_steps.ShiftScale:
    """Return the shift and the scaling of a location-scale family that maximize the likelihood."""
    from scipy.optimize import minimize

    def loss(parameters: Values) -> float:
        shift, log_factor = parameters
        densities = predictive.standard_log_density((z - shift) * np.exp(-log_factor))
        return float(log_factor - densities.mean())

    middle = float(np.median(z))
    start = [middle, math.log(max(float(np.median(np.abs(z - middle))), 1e-12))]
    best = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14, "maxiter": 2000})
    return map_steps.ShiftScale(shift=float(best.x[0]), factor=math.exp(best.x[1]))


def fit_observed(rows: Predictions, name: str) -> map_steps.ShiftScale:
    """Return the shift and scaling of predictions by which observed targets are most likely, or have the best score.

    That is the CRPS of draws and of quantiles of clipped targets, and the interval score.
    """
    from scipy.optimize import minimize

    if name not in OBSERVED_METHODS or rows.observation is None:
        raise DataError(f"with --target-std, --clip or --rounded, only {' and '.join(OBSERVED_METHODS)} are fitted")
    predictive, y = rows.distributions().load(), rows.targets().reshape(len(rows))
    observation = cast("Observation", rows.observation)  # several targets are fitted one by one
    start, ones = np.zeros(1 if name == OBSERVED_METHODS[0] else 2), np.ones(len(rows))
    spread = predictive.spread() if len(start) > 1 else np.zeros(len(rows))

    def loss(parameters: Values) -> float:
        shift = parameters[1] if len(parameters) > 1 else 0.0
        moved = predictive.rescale(shift * spread, np.exp(np.clip(parameters[0], -20, 20)) * ones)
        moved = observation.distributions(moved, once=True)
        if isinstance(moved, Quantiles | Intervals):
            return float(np.mean(moved.losses(y)))
        return float(np.mean(-moved.log_prob(y) if predictive.n_draws is None else moved.crps(y)))

    best = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-10, "maxiter": 400})
    if not np.isfinite(best.fun):
        raise DataError("some targets are impossible for all shifts and factors that were tried")
    return map_steps.ShiftScale(shift=float(best.x[1]) if len(start) > 1 else 0.0, factor=math.exp(best.x[0]))


def fit_power(rows: Predictions, options: FitOptions) -> map_steps.AnyStep:
    """Return the log-linear regression of squared z-scores on the log deviation alone."""
    return fit_local(rows, replace(options, by=(row_features.STD,), selects=False))


def fit_local(rows: Predictions, options: FitOptions) -> map_steps.Local | map_steps.Scale:
    """Return the log-linear regression of squared z-scores on features: the most likely for normal errors."""
    squares = row_features.z_scores(rows) ** 2 / row_features.perfect_mean_square(rows.distributions())
    _require_spread_of_errors(float(squares.mean()))

    def residuals(logs: Values) -> Values:
        return np.minimum(squares * np.exp(-logs), FARTHEST**2)

    found = _regression(rows, options, squares, residuals, map_steps.gamma_regression, map_steps.gamma_loss)
    return map_steps.Local(**found) if found else map_steps.Scale(factor=math.sqrt(float(squares.mean())))


def fit_bias(rows: Predictions, options: FitOptions) -> map_steps.Bias | map_steps.ShiftScale:
    """Return the ridge regression of z-scores on features."""
    z = row_features.z_scores(rows)

    def residuals(fitted: Values) -> Values:
        reach = FARTHEST * float(np.median(np.abs(z - fitted)))
        return np.clip(z - fitted, -reach, reach)

    found = _regression(rows, options, z, residuals, map_steps.ridge_regression, map_steps.squared_loss)
    return map_steps.Bias(**found) if found else map_steps.ShiftScale(shift=float(z.mean()), factor=1.0)


def _regression(
    rows: Predictions,
    options: FitOptions,
    targets: Values,
    residuals: Callable[[Values], Values],
    fit: map_steps.Fit,
    loss: map_steps.Loss,
) -> dict[str, Any]:
    """Return the fields of a regression on the columns that were named, or on which residuals depend; {} on none.

    There is no ridge penalty for the power law; otherwise it is chosen by cross-validation of some rows.
    """

    def refit(features: tuple[row_features.Feature, ...]) -> Values:
        design = map_steps.design_matrix(features, rows)
        return residuals(design @ fit(design, targets, map_steps.RIDGES[1]))

    if options.selects:
        features = select_features(rows, options.by, refit)
    else:
        features = tuple(row_features.fit_feature(rows, column) for column in options.by)
    if not features:
        return {}
    design, ridge = map_steps.design_matrix(features, rows), map_steps.RIDGES[0]
    if [feature.kind for feature in features] != ["deviation"] and len(rows) >= 2 * map_steps.INNER_FOLDS:
        parts = math.ceil(len(rows) / MOST_ROWS)
        folds = map_steps.assign_folds(rows, parts * map_steps.INNER_FOLDS, seed=options.seed + 1)
        some = folds < map_steps.INNER_FOLDS
        ridge = map_steps.choose_ridge(design[some], targets[some], folds[some], fit, loss)
    return {"features": features, "coefficients": tuple(fit(design, targets, ridge).tolist()), "ridge": ridge}


def fit_isotonic_variance(rows: Predictions, _: FitOptions) -> map_steps.IsotonicVariance:
    """Return the isotonic regression of squared errors on variances (Busk et al. 2022), 0 as the next variance."""
    from scipy.optimize import isotonic_regression

    predictive, y = rows.distributions(), rows.targets()
    row_features.require_single_target(predictive, y)
    variance = predictive.std() ** 2
    squares = (y.reshape(len(y)) - predictive.mean()) ** 2
    different, place, counts = np.unique(variance, return_inverse=True, return_counts=True)
    means = np.bincount(place, weights=squares) / counts
    fitted = isotonic_regression(means, weights=counts).x
    if not (fitted > 0).any():
        _require_spread_of_errors(0.0)
    fitted = np.maximum(fitted, fitted[fitted > 0].min())
    inner = np.zeros(len(fitted), np.bool_)  # points within a constant piece change no interpolated value
    inner[1:-1] = (fitted[1:-1] == fitted[:-2]) & (fitted[1:-1] == fitted[2:])
    predicted, fitted = different[~inner].tolist(), fitted[~inner].tolist()
    return map_steps.IsotonicVariance(predicted=tuple(predicted), fitted=tuple(fitted))


def fit_bin_scaling(rows: Predictions, options: FitOptions) -> map_steps.BinScaling:
    """Return the factors of bins of equally many deviations, equal ones in one bin (bin-wise variance scaling)."""
    spread = rows.distributions().spread()
    squares = row_features.z_scores(rows) ** 2 / row_features.perfect_mean_square(rows.distributions())
    inner = np.arange(1, options.bins) / options.bins
    edges = np.unique(np.quantile(spread, inner, method="higher"))
    edges = edges[edges > spread.min()]
    means = Binning.edges(spread, np.concatenate([[-np.inf], edges, [np.inf]])).means(squares)
    _require_spread_of_errors(float(means.min()))
    return map_steps.BinScaling(edges=tuple(map(float, edges)), factors=tuple(map(float, np.sqrt(means))))


def fit_pit(rows: Predictions, _: FitOptions) -> map_steps.Pit:
    """Return the map of probabilities through the sorted PIT values u_(i) at i / (n + 1) (Kuleshov et al. 2018).

    Where distributions jump, the PIT is uniform in between, and a further such row takes the place of the 1 in n + 1.
    """
    left, right = _pit_limits(rows)
    n = len(right)
    if np.array_equal(left, right):
        from calcheck.distributions.recalibrated import Recalibrator

        ordered = np.sort(np.clip(right, SMALLEST, LARGEST))
        found = Recalibrator.from_knots(ordered, levels_of(n), most=MOST_KNOTS)
        return map_steps.Pit(probability=tuple(map(float, found.probability)), level=tuple(map(float, found.level)))
    grid = np.linspace(0, 1, MOST_KNOTS + 2)
    below = np.array([share_of_row_below(left, right, level).mean() for level in grid[1:-1]])
    level = np.concatenate([[0.0], (n * below + grid[1:-1]) / (n + 1), [1.0]])
    return map_steps.Pit(probability=tuple(map(float, grid)), level=tuple(map(float, level)))


def _pit_limits(rows: Predictions) -> tuple[Values, Values]:
    """Return the limits of the PIT of each row, (n,) each."""
    predictive = rows.distributions()
    row_features.require_single_target(predictive, rows.targets())
    if not predictive.shape_is_known:
        raise DataError("the file states errors and deviations, but no shape: name it with --error-dist")
    left, right = pit(rows)
    far = int(np.sum((left > LARGEST) | (right < SMALLEST)))
    if far > max(MOST_FAR * len(rows), FEW_FAR):
        raise DataError(
            f"{far:,} of {len(rows):,} targets are so far out that their predicted probabilities are 0 or 1. Scale the"
            " uncertainties first, as in local+pit"
        )
    return left, right


def fit_beta(rows: Predictions, _: FitOptions) -> map_steps.Beta:
    """Return the beta map with the largest likelihood of the PIT values."""
    from scipy.optimize import minimize

    left, right = (np.clip(side, SMALLEST, LARGEST) for side in _pit_limits(rows))
    at = sc.logit(right)
    jump = right - left
    wide = jump > 0

    def loss(parameters: Values) -> float:
        a, b, c = np.exp(parameters[0]), np.exp(parameters[1]), parameters[2]
        level = map_steps.beta_logit(at, a, b, c)
        slope = np.log(a * np.exp(-np.log(right)) + b * np.exp(-np.log1p(-right)))
        density = slope - np.logaddexp(0, -level) - np.logaddexp(0, level)
        if wide.any():
            mass = sc.expit(level[wide]) - sc.expit(map_steps.beta_logit(sc.logit(left[wide]), a, b, c))
            density[wide] = np.log(np.maximum(mass, FLOOR) / jump[wide])
        return float(-density.mean())

    best = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-8})
    a, b, c = math.exp(best.x[0]), math.exp(best.x[1]), float(best.x[2])
    if not all(map(math.isfinite, (a, b, c))):
        raise NumericalError("the beta map does not converge on these PIT values")
    return map_steps.Beta(a=a, b=b, c=c)


def fit_student_t(rows: Predictions, _: FitOptions) -> map_steps.HeavyTails:
    """Return the Student-t distributions with the means of normal ones that are most likely, at degrees of a grid."""
    if not isinstance(rows.distributions().load(), Gaussian):
        raise DataError("student-t replaces normal distributions only")
    squares = row_features.z_scores(rows) ** 2
    _require_spread_of_errors(float(squares.mean()))
    low, high = 0, len(DEGREES) - 1
    while low < high:  # The profile of the likelihood has one maximum
        middle = (low + high) // 2
        here, next_ = (_scaled_t(squares, float(df))[1] for df in DEGREES[middle : middle + 2])
        low, high = (low, middle) if here <= next_ else (middle + 1, high)
    df = float(DEGREES[low])
    return map_steps.HeavyTails(factor=math.sqrt(_scaled_t(squares, df)[0]), df=df)


def _scaled_t(squares: Values, df: float) -> tuple[float, float]:
    """Return the squared factor of a Student-t distribution that is most likely, and the loss."""
    square = float(squares.mean())
    for _ in range(MOST_ROUNDS):
        before, square = square, float(np.mean((df + 1) * squares / (df + squares / square)))
        if abs(square - before) <= CONVERGED * before:
            break
    power = float(np.log1p(squares / square / df).mean())
    constant = float(sc.gammaln((df + 1) / 2) - sc.gammaln(df / 2)) - math.log(df) / 2
    return square, math.log(square) / 2 + (df + 1) / 2 * power - constant


def fit_conformal(rows: Predictions, options: FitOptions) -> map_steps.Conformal:
    """Return conformal scores: of each quantile, of intervals (CQR), or of errors relative to deviations.

    The score of a level p is the ceil(p (n + 1))-th smallest of the n scores of the rows.

    Source: Romano, Patterson, Candes (2019), "Conformalized quantile regression".
    """
    predictive, y = rows.distributions().load(), rows.targets()
    row_features.require_single_target(predictive, y)
    y = y.reshape(len(y), 1)
    form: Literal["quantiles", "intervals", "distributions"]
    if isinstance(predictive, (Quantiles, Intervals)):
        unit = map_steps.conformal_unit(predictive, relative=options.relative)
        if options.relative and not (unit > 0).all():
            raise DataError("some intervals have the width 0, so scores cannot be relative to it")
        if isinstance(predictive, Quantiles):
            scores, form = (y - predictive.values) / unit, "quantiles"
        else:
            scores, form = np.maximum(predictive.lower - y, y - predictive.upper) / unit, "intervals"
        levels = tuple(map(float, predictive.levels))
    else:
        scores = np.abs(row_features.z_scores(rows))[:, None].repeat(len(options.levels), axis=1)
        levels, form = options.levels, "distributions"
    chosen = [_conformal_score(scores[:, place], level) for place, level in enumerate(levels)]
    return map_steps.Conformal(levels=levels, scores=tuple(chosen), relative=options.relative, form=form)


def _conformal_score(scores: Values, level: float) -> float:
    """Return the score that a new row exceeds with a probability of at most 1 - level."""
    n = len(scores)
    rank = max(1, math.ceil(level * (n + 1) - ROUNDING))
    if rank > n:
        needed = math.ceil(level / (1 - level) - ROUNDING)
        few = count_of(n, "row is", "rows are")
        msg = f"{few} too few for the level {level:g}, whose limit would be infinite: it needs {needed:,}"
        raise DataError(msg)
    return float(np.partition(scores, rank - 1)[rank - 1])


def _require_spread_of_errors(square: float) -> None:
    """Raise unless a mean squared z-score is positive and finite."""
    if not 0 < square < math.inf:
        raise DataError("the errors are all equal, or infinite, so they do not show how large uncertainties should be")


Fit = Callable[[Predictions, FitOptions], map_steps.AnyStep]
Stage = Literal["bias", "scale", "probability", "conformal"]

AUTO, NONE = "auto", "none"
JOINED = "+"  # Separates the steps of a composition
STAGES: tuple[Stage, ...] = ("bias", "scale", "probability", "conformal")  # The order of the steps of a composition


@dataclass(frozen=True)
class StepMethod:
    """A step of a method."""

    name: str  # Name in `--method`
    stage: Stage  # Its place in a composition
    fit: Fit  # Returns the step fitted to rows
    meaning: str  # What it changes, in a few words


STEPS: dict[str, StepMethod] = {
    step.name: step
    for step in (
        StepMethod("scale", "scale", fit_scale, "multiplies all uncertainties by one factor"),
        StepMethod("shift-scale", "scale", fit_shift_scale, "also moves predictions by a multiple of uncertainties"),
        StepMethod("power", "scale", fit_power, "raises uncertainties to a power, and multiplies them"),
        StepMethod("bias", "bias", fit_bias, "moves predictions by a regression of errors on --by"),
        StepMethod("local", "scale", fit_local, "multiplies uncertainties by a regression of squared errors on --by"),
        StepMethod(
            "isotonic-variance", "scale", fit_isotonic_variance, "isotonic regression of squared errors on variances"
        ),
        StepMethod("bvs", "scale", fit_bin_scaling, "one factor per bin of the uncertainties"),
        StepMethod("student-t", "probability", fit_student_t, "replaces normal by Student-t distributions"),
        StepMethod("beta", "probability", fit_beta, "maps probabilities by a function with three parameters"),
        StepMethod("pit", "probability", fit_pit, "maps probabilities by the distribution of the PIT"),
        StepMethod("conformal", "conformal", fit_conformal, "moves quantiles or limits by conformal scores"),
    )
}  # The steps by their names in `--method`


Known = dict[str, tuple[map_steps.AnyStep, Predictions]]


@dataclass(frozen=True)
class Method:
    """A method: one step, or several in order."""

    name: str  # Names of the steps, joined by +; "none" for no change

    @classmethod
    def parse(cls, text: str) -> "Method":
        """Return a method by its name."""
        if text == NONE:
            return cls(NONE)
        names = [name.strip() for name in text.split(JOINED)]
        for name in names:
            if name not in STEPS:
                known = ", ".join((AUTO, *STEPS))
                msg = with_suggestion(f"--method: there is no method {name!r} (methods: {known})", name, STEPS)
                raise OptionError(msg)
        places = [STAGES.index(STEPS[name].stage) for name in names]
        if any(later <= earlier for earlier, later in pairwise(places)):
            raise OptionError(
                f"--method {text}: steps are joined in the order bias, then one that scales, then pit or beta, as in"
                " bias+local+pit"
            )
        return cls(JOINED.join(names))

    @property
    def steps(self) -> tuple[StepMethod, ...]:
        """The steps in order."""
        return () if self.name == NONE else tuple(STEPS[name] for name in self.name.split(JOINED))

    @property
    def keeps_form(self) -> bool:
        """Whether corrected distributions have parameters, or draws, if those before had."""
        return all(step.stage in ("bias", "scale") or step.name == "student-t" for step in self.steps)

    def fit(self, rows: Predictions, options: FitOptions, known: Known | None = None) -> tuple[map_steps.AnyStep, ...]:
        """Return the steps fitted to rows, each to the rows corrected by those before."""
        found, names, steps = {} if known is None else known, "", list[map_steps.AnyStep]()
        for each in self.steps:
            names = JOINED.join(filter(None, (names, each.name)))
            if names not in found:
                fitted = each.fit(rows, options) if rows.observation is None else fit_observed(rows, each.name)
                found[names] = fitted, fitted.apply(rows)
            step, rows = found[names]
            steps.append(step)
        return tuple(steps)


def candidates(predictive: Predictive, *, observed: bool = False) -> tuple[Method, ...]:
    """Return the methods among which ``auto`` chooses, by freedom; draws are moved and scaled only.

    If targets were observed with noise, clipped or rounded, quantiles and intervals are too.
    """
    if isinstance(predictive, (Quantiles, Intervals)) and observed:
        names = ["scale"] + (["shift-scale"] if isinstance(predictive, Quantiles) else [])
    elif isinstance(predictive, (Quantiles, Intervals)):
        names = ["conformal"] + (["pit"] if isinstance(predictive, Quantiles) else [])
    elif isinstance(predictive, Counts):
        names = ["beta", "pit"]
    else:
        is_normal, is_mapped = isinstance(predictive, Gaussian), predictive.shape_is_known and not predictive.n_draws
        heavy = ["student-t", "local+student-t", "bias+local+student-t"] if is_normal and is_mapped else []
        mapped = ["beta", "pit", "local+pit", "bias+local+pit"] if is_mapped else []
        names = ["scale", "shift-scale", *heavy[:1], "power", "local", "bias+local", *heavy[1:], *mapped]
    return tuple(map(Method, [NONE, *names]))


def apply_steps(steps: tuple[map_steps.AnyStep, ...], rows: Predictions) -> Predictions:
    """Return rows with corrected distributions."""
    for step in steps:
        rows = step.apply(rows)
    return rows


@dataclass(frozen=True, kw_only=True)
class FittedFile:
    """A file to which a correction was fitted."""

    path: str  # Path as given
    sha256: str  # SHA-256 hash of the content


@dataclass(frozen=True, kw_only=True)
class MethodScore:
    """The score of a method by cross-validation."""

    method: str  # The method
    value: float | None = None  # Mean score of rows that were not fitted; None if the method does not apply
    # difference, p_value: difference from no change, and the p-value that it is below 0
    difference: float | None = None
    p_value: float | None = None
    reason: str = ""  # Why the method does not apply; empty if it does


@dataclass(frozen=True, kw_only=True)
class Choice:
    """How a method was chosen."""

    score: str  # The score that methods were compared by
    folds: int  # Number of folds
    table: tuple[MethodScore, ...]  # The methods with their scores


@dataclass(frozen=True, kw_only=True)
class RecalibrationMap:
    """A fitted correction."""

    calcheck_map: Literal[1] = VERSION  # Version of this format
    method: str  # The method
    steps: tuple[map_steps.AnyStep, ...]  # Steps in order; none for no change
    family: str  # Family of the distributions to which it was fitted
    rows: int  # Number of rows to which it was fitted
    fitted_on: tuple[FittedFile, ...] = ()  # Files of these rows; none for rows from memory
    new_inputs: tuple[FittedFile, ...] = ()  # Files of the new inputs for which it was fitted; none if for no others
    effective_rows: float | None = None  # How many of the rows count at new inputs; None if it is for no others
    choice: Choice  # How the method was chosen
    calcheck: str  # Version of calcheck that fitted it
    targets: "dict[str, RecalibrationMap]" = field(default_factory=dict)  # The corrections of several targets, by name

    def of_target(self, name: str) -> "RecalibrationMap":
        """Return the correction of one of several targets."""
        if name and self.targets and name not in self.targets:
            raise DataError(f"the map corrects the targets {', '.join(self.targets)}, and there is {name}")
        return self.targets.get(name, self)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the steps use."""
        if self.targets:
            return tuple(dict.fromkeys(name for each in self.targets.values() for name in each.columns))
        features = (feature for step in self.steps for feature in getattr(step, "features", ()))
        return tuple(dict.fromkeys(each.column for each in features if each.column not in row_features.PREDICTED))

    @property
    def texts(self) -> tuple[str, ...]:
        """The steps in words."""
        if self.targets:
            return tuple(f"{name}: {text}" for name, each in self.targets.items() for text in each.texts)
        return tuple(step.describe() for step in self.steps)

    def apply(self, rows: Predictions) -> Predictions:
        """Return rows with corrected distributions."""
        return self.apply_counted(rows)[0]

    def apply_counted(self, rows: Predictions) -> tuple[Predictions, int]:
        """Return rows with corrected distributions, and the number of rows outside the fitted range."""
        if self.targets:
            predictive = rows.distributions().load()
            if predictive.targets != len(self.targets):
                raise DataError(f"the map corrects {len(self.targets)} targets, and there are {predictive.targets}")
            found = [each.apply_counted(rows.of_target(place)) for place, each in enumerate(self.targets.values())]
            marginals = [own.distributions().load() for own, _ in found]
            return rows.with_targets(rows.y, with_marginals(predictive, marginals)), sum(count for _, count in found)
        family = family_of(rows)
        if family != self.family:
            raise DataError(f"the map was fitted to {self.family}, and these predictions are {family}")
        outside: Mask = np.zeros(len(rows), np.bool_)
        for step in self.steps:
            outside |= step.outside(rows)
            rows = step.apply(rows)
        return rows, int(outside.sum())


def family_of(rows: Predictions) -> str:
    """Return the family of predictions, as a map names it; quantiles and intervals with their levels, draws without."""
    predictive = rows.distributions()
    if predictive.quantile_levels is not None:
        return f"quantiles at {', '.join(f'{level:g}' for level in predictive.quantile_levels)}"
    return predictive.display_name


def fitted_map(
    method: str, steps: Sequence[map_steps.AnyStep], rows: Predictions, choice: Choice, files: Sequence[FittedFile] = ()
) -> RecalibrationMap:
    """Return the map of steps that were fitted to rows."""
    from calcheck.core import __version__

    return RecalibrationMap(
        method=method if steps else NONE,
        steps=tuple(steps),
        family=family_of(rows),
        rows=len(rows),
        fitted_on=tuple(files),
        choice=choice,
        calcheck=__version__,
    )


def joined_map(maps: Mapping[str, RecalibrationMap]) -> RecalibrationMap:
    """Return the corrections of several targets as one."""
    first = next(iter(maps.values()))
    method = ", ".join(f"{name}: {each.method}" for name, each in maps.items())
    return replace(first, method=method, steps=(), targets=dict(maps))
