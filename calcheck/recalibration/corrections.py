"""The corrections of distributions, and the regressions that fit them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from calcheck.core import sc
from calcheck.core.text import count_of
from calcheck.dependence.clusters import column_labels, time_labels
from calcheck.distributions import Gaussian, Predictive
from calcheck.distributions.continuous import StudentT
from calcheck.distributions.quantiles import Intervals, Quantiles
from calcheck.distributions.recalibrated import Recalibrator, recalibrate
from calcheck.distributions.row_random import hash_rows
from calcheck.errors import DataError, NumericalError
from calcheck.execution.run import RowDependence
from calcheck.predictions import Predictions
from calcheck.recalibration.features import Feature, center
from calcheck.statistics.groups import digitize
from calcheck.typing import Indices, Mask, Values

Fit = Callable[[Values, Values, float], Values]
Loss = Callable[[Values, Values], Values]
RIDGES = (1e-8, 0.3, 3.0, 30.0, 300.0, 3000.0)  # In numbers of rows: the weight of a coefficient of 0
INNER_FOLDS = 5
MAX_STEPS = 100
LARGEST_LOG = 8.0  # Maximum |log of a variance factor|
CONVERGED = 1e-16  # Decrement of the loss per row; the next step would be about its square
MAX_HALVINGS = 60
LOSS_ROUNDING = 1e-14
SHOWN_LEVELS = 201  # Points of the curve of a map of probabilities
BETA_KNOTS = 4001  # Levels at which a beta map is linearized, equally spaced in the logit
BETA_RANGE = 34.0  # Largest logit of these levels: a probability of 2e-15


def gamma_regression(design: Values, squares: Values, ridge: float) -> Values:
    """Return the coefficients of log E z^2 = X b that maximize the likelihood of normal errors, (k,), by Newton steps.

    This is gamma regression with a log link: convex. The first coefficient, of the constant, is not penalized.
    """
    means = np.append(0.0, design[:, 1:].mean(axis=0))
    centered, penalty = design - means, _penalty(design, ridge)
    coefficients = np.zeros(design.shape[1])
    coefficients[0] = np.log(squares.mean())
    for _ in range(MAX_STEPS):
        weights = squares * np.exp(-(centered @ coefficients))
        gradient = centered.T @ (weights - 1) - penalty @ coefficients
        step = np.linalg.solve(centered.T @ (weights[:, None] * centered) + penalty, gradient)
        coefficients = _descend(centered, squares, penalty, coefficients, step)
        if gradient @ step < CONVERGED * len(squares):
            return np.asarray(np.append(coefficients[0] - coefficients @ means, coefficients[1:]))
    raise NumericalError("the regression of squared errors on the features does not converge. Use fewer features")


def _descend(design: Values, squares: Values, penalty: Values, start: Values, step: Values) -> Values:
    """Return the coefficients after a step, halved until the penalized loss does not rise."""

    def loss(coefficients: Values) -> float:
        log_variance = design @ coefficients
        with np.errstate(over="ignore", invalid="ignore"):  # The loss of a step that is far too long is no number
            terms = log_variance + squares * np.exp(-log_variance)
        return float(np.sum(terms) + coefficients @ penalty @ coefficients / 2)

    before = loss(start)
    for _ in range(MAX_HALVINGS):
        if loss(start + step) <= before + LOSS_ROUNDING * abs(before):
            return start + step
        step = step / 2
    return start


def gamma_loss(log_variance: Values, squares: Values) -> Values:
    """Return the negative log-likelihoods of normal errors, up to a constant, (n,)."""
    clipped = np.clip(log_variance, -LARGEST_LOG, LARGEST_LOG)
    return np.asarray((clipped + squares * np.exp(-clipped)) / 2)


def ridge_regression(design: Values, targets: Values, ridge: float) -> Values:
    """Return the least-squares coefficients of targets (n,) on features (n, k) with a penalty, (k,)."""
    return np.asarray(np.linalg.solve(design.T @ design + _penalty(design, ridge), design.T @ targets))


def squared_loss(predicted: Values, targets: Values) -> Values:
    """Return squared errors, (n,)."""
    return np.asarray((predicted - targets) ** 2)


def choose_ridge(design: Values, targets: Values, fold: Indices, fit: Fit, loss: Loss) -> float:
    """Return the penalty with the smallest mean loss of rows that were not fitted; design (n, k), targets (n,)."""
    if design.shape[1] == 1:
        return RIDGES[0]
    means = []
    for ridge in RIDGES:
        losses = np.empty(len(targets))
        for each in np.unique(fold):
            held = fold == each
            losses[held] = loss(design[held] @ fit(design[~held], targets[~held], ridge), targets[held])
        means.append(losses.mean())
    return RIDGES[int(np.argmin(means))]


def _penalty(design: Values, ridge: float) -> Values:
    penalty = ridge * np.eye(design.shape[1])
    penalty[0, 0] = 0.0
    return penalty


def times(factor: float) -> str:
    """Return a factor as tables have it; very small ones with three digits.

    >>> times(1.7183), times(12.0), times(0.01234)
    ('×1.72', '×12', '×0.0123')
    """
    return f"×{factor:.2f}" if 0.1 <= factor < 10 else f"×{factor:.3g}"  # noqa: PLR2004 - digits


class StepCurve(NamedTuple):
    """How a step changes something, for a picture."""

    # x_label, y_label: what is changed, and what it becomes
    x_label: str
    y_label: str
    # x, y: (k,), points of the curve
    x: Values
    y: Values
    unchanged: float | None = None  # Value of y that changes nothing; None if that is y = x


@dataclass(frozen=True, kw_only=True)
class Step(ABC):
    """A step of a correction."""

    @abstractmethod
    def corrected(self, rows: Predictions) -> Predictive:
        """Return the corrected distributions of the rows, n of them."""

    def outside(self, rows: Predictions) -> Mask:
        """Return which rows are outside the range of the fitted rows, and are treated as its nearest point, (n,)."""
        return np.zeros(len(rows), np.bool_)

    @abstractmethod
    def describe(self) -> str:
        """Return the step in words."""

    def curves(self) -> list[StepCurve]:
        """Return curves that show the step; none if one number says it."""
        return []

    def apply(self, rows: Predictions) -> Predictions:
        """Return the rows with corrected distributions."""
        corrected = self.corrected(rows)
        return replace(rows, predictive=corrected) if rows.y is None else rows.with_targets(rows.y, corrected)


@dataclass(frozen=True, kw_only=True)
class Scale(Step):
    """Multiplies deviations by a factor [Levi et al., Eq. 12-13]."""

    kind: Literal["scale"] = "scale"
    factor: float  # The factor s, > 0

    def corrected(self, rows: Predictions) -> Predictive:
        n = len(rows)
        return rows.distributions().load().rescale(np.zeros(n), np.full(n, self.factor))

    def describe(self) -> str:
        return f"uncertainties {times(self.factor)}, the root mean squared z-score"


@dataclass(frozen=True, kw_only=True)
class ShiftScale(Step):
    """Moves distributions by a multiple of their deviations, and multiplies these by a factor."""

    kind: Literal["shift-scale"] = "shift-scale"
    # shift, factor: shift b in units of the deviations, and factor s > 0
    shift: float
    factor: float

    def corrected(self, rows: Predictions) -> Predictive:
        predictive = rows.distributions().load()
        shift = self.shift * predictive.spread() if self.shift else np.zeros(len(rows))
        return predictive.rescale(shift, np.full(len(rows), self.factor))

    def describe(self) -> str:
        scaled = f"uncertainties {times(self.factor)}"
        return f"predictions {self.shift:+.4g} uncertainties, {scaled}" if self.shift else scaled


@dataclass(frozen=True, kw_only=True)
class _Regression(Step):
    """A correction that depends on features of the rows."""

    features: tuple[Feature, ...]  # The features
    coefficients: tuple[float, ...]  # Coefficients of the constant and of the columns of the features
    ridge: float  # Penalty of the fit, in numbers of rows

    def _predicted(self, rows: Predictions) -> Values:
        return np.asarray(design_matrix(self.features, rows) @ np.array(self.coefficients))

    def outside(self, rows: Predictions) -> Mask:
        return np.asarray(np.logical_or.reduce([feature.outside(rows) for feature in self.features]))

    @property
    def _names(self) -> str:
        return ", ".join(feature.name for feature in self.features)

    def _partial(self) -> list[tuple[str, Values, Values]]:
        """Return the name of each number, its values, and what is predicted if other numbers are in their middle."""
        parts, start = [], 1
        for feature in self.features:
            values, design = feature.grid()
            stop = start + design.shape[1]
            if len(values):
                parts.append((feature.column, values, design @ np.array(self.coefficients[start:stop])))
            start = stop
        middle = self.coefficients[0] + sum(part[len(part) // 2] for _, _, part in parts)
        return [(name, values, middle - part[len(part) // 2] + part) for name, values, part in parts]


@dataclass(frozen=True, kw_only=True)
class Bias(_Regression):
    """Moves distributions by a multiple of their deviations that depends on features."""

    kind: Literal["bias"] = "bias"

    def corrected(self, rows: Predictions) -> Predictive:
        predictive = rows.distributions().load()
        return predictive.rescale(self._predicted(rows) * predictive.spread(), np.ones(len(rows)))

    def describe(self) -> str:
        return f"predictions moved by {self._names}"

    def curves(self) -> list[StepCurve]:
        return [StepCurve(name, "shift [uncertainties]", values, shift, 0.0) for name, values, shift in self._partial()]


@dataclass(frozen=True, kw_only=True)
class Local(_Regression):
    """Multiplies deviations by a factor that depends on features: log s_i^2 is linear in them."""

    kind: Literal["local"] = "local"

    def corrected(self, rows: Predictions) -> Predictive:
        return rows.distributions().load().rescale(np.zeros(len(rows)), self._factor(self._predicted(rows)))

    def describe(self) -> str:
        if [feature.kind for feature in self.features] == ["deviation"]:
            constant, slope = self.coefficients
            return f"uncertainties to the power {1 + slope / 2:.4g}, {times(np.exp(constant / 2))}"
        if [feature.kind for feature in self.features] == ["step"]:
            low, high = self._factor(np.cumsum(self.coefficients))
            return f"uncertainties {times(high)} where {self._names}, {times(low)} elsewhere, by squared z-scores"
        return f"uncertainties scaled by {self._names}"

    def curves(self) -> list[StepCurve]:
        label = "factor of uncertainties"
        return [StepCurve(name, label, values, self._factor(logs), 1.0) for name, values, logs in self._partial()]

    @staticmethod
    def _factor(log_variance: Values) -> Values:
        return np.exp(np.clip(log_variance, -LARGEST_LOG, LARGEST_LOG) / 2)


@dataclass(frozen=True, kw_only=True)
class IsotonicVariance(Step):
    """Replaces variances by the isotonic regression of squared errors on them."""

    kind: Literal["isotonic-variance"] = "isotonic-variance"
    # predicted, fitted: predicted variances in ascending order, and fitted ones, between which variances are
    # interpolated linearly. They are constant beyond the ends
    predicted: tuple[float, ...]
    fitted: tuple[float, ...]

    def corrected(self, rows: Predictions) -> Predictive:
        predictive = rows.distributions().load()
        variance = predictive.std() ** 2
        fitted = np.interp(variance, self.predicted, self.fitted)
        return predictive.rescale(np.zeros(len(rows)), np.sqrt(fitted / variance))

    def outside(self, rows: Predictions) -> Mask:
        variance = rows.distributions().std() ** 2
        return np.asarray((variance < self.predicted[0]) | (variance > self.predicted[-1]))

    def describe(self) -> str:
        return f"variances by isotonic regression, {len(set(self.fitted)):,} different ones"

    def curves(self) -> list[StepCurve]:
        return [StepCurve("predicted variance", "corrected variance", np.array(self.predicted), np.array(self.fitted))]


@dataclass(frozen=True, kw_only=True)
class BinScaling(Step):
    """Multiplies deviations by the factor of their bin (bin-wise variance scaling)."""

    kind: Literal["bvs"] = "bvs"
    edges: tuple[float, ...]  # Deviations at which a new bin begins, ascending, b - 1 of them
    factors: tuple[float, ...]  # Factor of each bin, > 0, b of them

    def corrected(self, rows: Predictions) -> Predictive:
        predictive = rows.distributions().load()
        place = digitize(predictive.spread(), np.array(self.edges), equal=True)
        return predictive.rescale(np.zeros(len(rows)), np.array(self.factors)[place])

    def describe(self) -> str:
        low, high = min(self.factors), max(self.factors)
        return f"uncertainties {times(low)} to {times(high)} in {len(self.factors)} bins of their size"

    def curves(self) -> list[StepCurve]:
        if not self.edges:
            return []
        inner = np.repeat(self.edges, 2)
        places = np.concatenate([[inner[0] - (inner[-1] - inner[0]) / 10], inner, [inner[-1] * 1.1]])
        return [StepCurve("uncertainty", "factor of uncertainties", places, np.repeat(self.factors, 2), 1.0)]


@dataclass(frozen=True, kw_only=True)
class _ProbabilityMap(Step):
    """A correction of distribution functions by an increasing map of probabilities."""

    @abstractmethod
    def recalibrator(self) -> Recalibrator:
        """Return the map of probabilities, linear between levels that are close to each other."""

    def corrected(self, rows: Predictions) -> Predictive:
        return recalibrate(rows.distributions(), self.recalibrator())

    def curves(self) -> list[StepCurve]:
        grid, recalibrator = np.linspace(0, 1, SHOWN_LEVELS), self.recalibrator()
        return [StepCurve("predicted probability", "corrected probability", grid, recalibrator(grid))]


@dataclass(frozen=True, kw_only=True)
class Pit(_ProbabilityMap):
    """Maps distribution functions by the distribution of the PIT (Kuleshov et al. 2018)."""

    kind: Literal["pit"] = "pit"
    # probability, level: knots of the increasing map, and its values there; from 0 to 1
    probability: tuple[float, ...]
    level: tuple[float, ...]

    def recalibrator(self) -> Recalibrator:
        return Recalibrator(np.array(self.probability), np.array(self.level))

    def describe(self) -> str:
        return f"probabilities by an increasing map with {len(self.level)} knots"


@dataclass(frozen=True, kw_only=True)
class Beta(_ProbabilityMap):
    """Maps distribution functions by R(p) = 1 / (1 + exp(-(a log p - b log(1 - p) + c))) (Kull et al. 2017)."""

    kind: Literal["beta"] = "beta"
    # a, b, c: parameters, a > 0 and b > 0; 1, 1 and 0 change nothing
    a: float
    b: float
    c: float

    def recalibrator(self) -> Recalibrator:
        grid = np.linspace(-BETA_RANGE, BETA_RANGE, BETA_KNOTS)
        level = sc.expit(beta_logit(grid, self.a, self.b, self.c))
        inside = (level > 0) & (level < 1) & np.append(np.diff(level) > 0, True)
        return Recalibrator.from_knots(sc.expit(grid[inside]), level[inside])

    def describe(self) -> str:
        return f"probabilities by a beta map, a = {self.a:.3g}, b = {self.b:.3g}, c = {self.c:.3g}"


@dataclass(frozen=True, kw_only=True)
class HeavyTails(Step):
    """Replaces normal distributions by Student-t distributions."""

    kind: Literal["student-t"] = "student-t"
    # factor, df: factor s > 0 of the scales, and the degrees of freedom
    factor: float
    df: float

    def corrected(self, rows: Predictions) -> Predictive:
        predictive = rows.distributions().load()
        if not isinstance(predictive, Gaussian):
            raise DataError(f"student-t replaces normal distributions, and these predictions are {predictive.family}")
        return StudentT(predictive.loc, self.factor * predictive.scale, np.full(len(rows), self.df))

    def describe(self) -> str:
        freedom = f"{self.df:.4g} degrees of freedom"
        return f"Student-t distributions with {freedom}, scales = uncertainties {times(self.factor)}"


def beta_logit(at: Values, a: float, b: float, c: float) -> Values:
    """Return the logit of R(p) at logits of p, of the shape of ``at``."""
    return np.asarray(-a * np.logaddexp(0.0, -at) + b * np.logaddexp(0.0, at) + c)


@dataclass(frozen=True, kw_only=True)
class Conformal(Step):
    """Moves quantiles, or the limits of intervals, by conformal scores."""

    kind: Literal["conformal"] = "conformal"
    levels: tuple[float, ...]  # Levels of the quantiles, or of the intervals
    scores: tuple[float, ...]  # Score of each level: in the unit of the targets, or relative to widths or deviations
    # Whether scores are relative: to the width of the outermost pair of quantiles or of the interval
    relative: bool = field(default=False)
    # ``"quantiles"``; ``"intervals"``; ``"distributions"``, which become intervals center ± score deviation
    form: Literal["quantiles", "intervals", "distributions"]

    def corrected(self, rows: Predictions) -> Predictive:
        predictive = rows.distributions().load()
        scores = np.array(self.scores)
        if self.form == "distributions":
            middle, reach = center(predictive)[:, None], predictive.spread()[:, None] * scores
            return Intervals(np.array(self.levels), middle - reach, middle + reach, middle[:, 0])
        unit = conformal_unit(predictive, relative=self.relative)
        if isinstance(predictive, Quantiles):
            require_levels(self.levels, predictive.levels)
            return Quantiles(predictive.levels, np.sort(predictive.values + scores * unit, axis=1))
        if not isinstance(predictive, Intervals):
            raise DataError(f"a correction of {self.form} does not apply to {predictive.display_name}")
        require_levels(self.levels, predictive.levels)
        lower, upper = predictive.lower - scores * unit, predictive.upper + scores * unit
        middle = (lower + upper) / 2
        crossed = lower > upper
        lower, upper = np.where(crossed, middle, lower), np.where(crossed, middle, upper)
        return Intervals(predictive.levels, lower, upper, predictive.point)

    def describe(self) -> str:
        pairs = zip(self.levels[:3], self.scores, strict=False)
        moved = ", ".join(f"{level:g}: {score:+.3g}" for level, score in pairs)
        more = ", …" if len(self.levels) > 3 else ""  # noqa: PLR2004 - shown
        unit = " widths" if self.relative else ""
        return f"{self.form} moved by conformal scores ({moved}{more}){unit}"

    def curves(self) -> list[StepCurve]:
        label = "limit [uncertainties]" if self.form == "distributions" else "shift"
        return [StepCurve("level", label, np.array(self.levels), np.array(self.scores), 0.0)]


def conformal_unit(predictive: Predictive, *, relative: bool) -> Values:
    """Return the unit of conformal scores, (n, 1) or (n, k): 1, or widths of the rows' intervals."""
    if not relative:
        return np.ones((len(predictive), 1))
    if isinstance(predictive, Quantiles):
        return np.asarray(predictive.values[:, -1:] - predictive.values[:, :1])
    if isinstance(predictive, Intervals):
        return np.asarray(predictive.upper - predictive.lower)
    raise DataError(f"{predictive.display_name} have no widths")


def require_levels(fitted: tuple[float, ...], stated: Values) -> None:
    """Raise unless a file states the levels to which a correction was fitted."""
    if not np.array_equal(np.array(fitted), stated):
        lists = [", ".join(f"{level:g}" for level in levels) for levels in (fitted, stated)]
        raise DataError(f"the correction was fitted at the levels {lists[0]}, and the file states {lists[1]}")


def design_matrix(features: tuple[Feature, ...], rows: Predictions) -> Values:
    """Return the constant and the columns of the features, (n, 1 + k)."""
    return np.column_stack([np.ones(len(rows)), *(feature.design(rows) for feature in features)])


AnyStep = Scale | ShiftScale | Bias | Local | IsotonicVariance | BinScaling | HeavyTails | Pit | Beta | Conformal
"""All kinds of steps."""


def assign_folds(rows: Predictions, folds: int, *, seed: int = 0, dependence: RowDependence | None = None) -> Indices:
    """Return the fold of each row, (n,), in 0 … folds - 1: whole clusters, and for a series blocks of time.

    Other rows are ordered by hashes of their contents, so that other orders of the rows give the same folds.
    """
    stated = dependence or RowDependence()
    if stated.time is not None or stated.block is not None:
        labels = time_labels(rows, stated.time)
        order = np.arange(labels.max() + 1)
    elif stated.cluster is not None:
        labels = column_labels(rows, stated.cluster)
        order = np.argsort(hash_rows([np.arange(labels.max() + 1.0)], seed), kind="stable")
    else:
        y = rows.targets()
        words = hash_rows([y.reshape(len(y), -1), rows.distributions().hashes(seed)], seed)
        labels, order = np.arange(len(rows)), np.argsort(words, kind="stable")
    counts = np.bincount(labels)[order]
    before = np.cumsum(counts) - counts / 2
    fold_of_group = np.empty(len(order), np.intp)
    fold_of_group[order] = np.minimum((before / len(labels) * folds).astype(np.intp), folds - 1)
    fold = fold_of_group[labels]
    if len(np.unique(fold)) < folds:
        of = f" of {stated.columns[0]!r}" if stated.columns else ""
        one, many = ("different value", "different values") if of else ("row", "rows")
        found = count_of(len(order), f"{one}{of} is", f"{many}{of} are")
        fewer = "a smaller --folds, or " * (len(order) > 1)
        raise DataError(f"{found} too few for {folds} folds. Pass {fewer}more rows")
    return fold
