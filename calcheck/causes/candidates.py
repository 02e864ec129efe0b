"""The causes that are looked for: each with mended predictions or targets, in words, and as an edit of the file."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from calcheck.causes import fits
from calcheck.causes.fits import Fit, Scored
from calcheck.distributions import Samples
from calcheck.predictions import Predictions
from calcheck.statistics.zscores import NUMBERS, is_of_targets, ranks
from calcheck.typing import AnyArray, Indices, Mask, Values

Form = str  # What the file states about the size of the uncertainties: "std", "var", or another
LARGEST = 50.0  # Maximum logarithm whose exponential is tried
UNEVEN, CONSTANT_STD = "uneven-std", "constant-std"
ENDS = {"low": -0.9, "medium": 0.0, "high": 0.9}  # Ranks of values
HALF_WIDTHS = {
    1.645: "the std is a half width of 90 % (1.645 std)",
    1.96: "the std is a half width of 95 % (1.96 or 2 std)",
    3.92: "the std is the width of a 95 % interval (3.92 or 4 std)",
}
FEWEST_DRAWS = 4
MOST_RELATED = 3.0  # Correlation of shuffled targets with fewer draws, whose spread hardly tells, in standard errors
FAR = 0.37  # Minimum logarithm of a factor that tells a cause: 1.45
SURPLUS_OF_NEAR = 6.0  # Of another reading of the std whose factor is nearer to 1: the std may just be uneven
SURPLUS_OF_LOGS = 4.0  # Of logarithms that are all positive, which is rare
LOGARITHMS = {"log": (np.log, np.exp, "logs"), "log1p": (np.log1p, np.expm1, "log(1 + y)")}
UNITS = (10.0, 60.0, 100.0, 1000.0)
TEMPERATURES = {
    "targets are in °C, predictions in °F": (1.8, 32.0),
    "targets are in °F, predictions in °C": (1 / 1.8, -32 / 1.8),
    "targets are in °C, predictions in K": (1.0, 273.15),
    "targets are in K, predictions in °C": (1.0, -273.15),
}  # Factor and shift of the targets
SHIFTS = (1, -1, 2, -2)
FEWEST_VALUES = 5  # Minimum number of different values of a column of numbers
SURPLUS_OF_DRAWS = 5.0  # Where the spread of few draws is uneven by chance
LEAST_OF_NOISE, LEAST_OF_TAILS, LEAST_OF_REGION = 0.85, 0.75, 0.7  # Shares of the fault that these must explain
VARIATION = 0.3  # Share that varying errors must explain beyond the best plain correction
FEWEST_OF_GROUP, MOST_GROUPS = 15, 100  # Minimum number of rows of a group and of the others; most groups to try
TRAINED = 0.3  # Maximum factor of the errors of a group that was trained on, in predicted std and relative to others
OF_SPREAD = {
    *("noise-left-out", "training-rows", "heavy-tails", "one-input", "one-group"),
    *(UNEVEN, CONSTANT_STD),
}  # Causes of the size of errors
CONSTANT = 0.005  # Maximum std of the logarithm of a std that is constant
TIES = 1.6  # Least ratio of targets at a limit to those of the next value
EXTREME_MEMBER = 1.5  # Minimum squared distance of a member that is stuck, relative to that of the others
FEWEST_TIES, LEAST_TIES = 5, 0.01  # Minimum number and share of targets at a limit
MANY_INPUTS = 20
STANDARD_MEAN, STANDARD_STD = 0.5, 1.6  # Maximum mean and std of numbers that may be standardized by those of others
RESOLUTION = 0.05  # Of targets at a limit, in median predicted standard deviations


@dataclass(frozen=True)
class Reading:
    """What a column of standard deviations, or of variances, may hold instead."""

    text: str
    std: Callable[[Values], Values]  # Returns the true standard deviations
    edit: str = ""
    options: tuple[str, ...] = ()
    form: Form = "std"


READINGS = {
    "variance-as-std": Reading("the std is a variance", np.sqrt, "f[{std}] **= .5", ("--var",)),
    "std-as-variance": Reading("the variance is a std", np.square, "", ("--std",), "var"),
    "inverse-as-std": Reading("the std is its inverse, 1/std", lambda std: 1 / std, "f[{std}] **= -1"),
    "precision-as-std": Reading("the std is a precision, 1/std²", lambda std: std**-0.5, "f[{std}] **= -.5"),
    "log-as-std": Reading("the std is a log std", np.exp, "", ("--log-std",)),
    "log-variance-as-std": Reading("the std is a log variance", lambda std: np.exp(std / 2), "", ("--log-var",)),
}


@dataclass(frozen=True)
class Candidate:
    """A cause that may explain a fault."""

    name: str
    text: str
    fit: Fit
    # edit: What makes a mended table of the frame ``f``, with ``{y}``, ``{std}`` and ``{samples}`` for its columns;
    # options: Options that replace --std
    edit: str = ""
    options: tuple[str, ...] = ()
    is_corrected: bool = False  # Whether recalibrate mends it, where nothing is to undo
    stretched: Scored | None = None  # Predictions that are stretched about their medians, if that is all
    least: float = 0.5  # Least share of the fault that it must explain
    gain: float = -1.0  # Least share that it must explain beyond the best plain correction
    is_shift: bool = False  # Whether it is a cause of one group or region whose targets are off
    surplus: float = 0.0  # Log-likelihood beyond that of plain corrections which it needs further, as it is chosen
    alike: str = ""  # Kind of causes that few rows cannot tell apart, and that are told together
    # The factor of the std, the std of noise, or how many rows targets are below; None for other causes
    number: float | None = None

    @property
    def of_spread(self) -> bool:
        """Whether only the fault of the spread is to be explained, since the cause keeps means."""
        return self.stretched is not None or (self.name in OF_SPREAD and not self.is_shift)


@dataclass(frozen=True)
class Case:
    """The rows whose fault is to be explained, and what their file states."""

    rows: Predictions
    form: Form = "std"
    observed: bool = False  # Whether options say how targets were observed
    region: str = ""  # The worst region in words
    inside: Mask | None = None  # Which rows are in it
    columns: Mapping[str, AnyArray] = field(default_factory=dict)  # Numbers, and few different texts, of all rows
    names: Sequence[str] = ()  # Of the inputs
    sampled: Indices | None = None  # Which of all rows these are; None if they are all
    every: Predictions | None = None  # All rows that are in memory, if these are a sample
    total: int = 0  # Rows of the file
    step: int = 1  # Rows of each time

    @cached_property
    def scored(self) -> Scored:
        """Targets and quantiles."""
        return Scored.from_rows(self.rows)

    @cached_property
    def features(self) -> Values:
        """Standardized medians and inputs after a column of ones, (n, d)."""
        parts = [self.scored.center[:, None], *([] if self.inputs is None else [self.inputs])]
        columns = np.concatenate(parts, axis=1)
        std = columns.std(axis=0)
        return np.column_stack([np.ones(len(columns)), (columns - columns.mean(axis=0)) / np.where(std > 0, std, 1)])

    @cached_property
    def numbers(self) -> dict[str, Values]:
        """The predictions, the inputs, and columns of numbers that are not computed from targets."""
        found = {"the prediction": self.scored.center}
        if self.inputs is not None:
            named = self.names if len(self.names) == self.inputs.shape[1] else range(1, self.inputs.shape[1] + 1)
            found |= {
                str(name) if self.names else f"input {name}": x for name, x in zip(named, self.inputs.T, strict=True)
            }
        free = {name: each.astype(np.float64) for name, each in self.free.items() if each.dtype.kind in NUMBERS}
        found |= free if len(free) <= MANY_INPUTS else {}
        return {name: values for name, values in found.items() if len(np.unique(values)) >= FEWEST_VALUES}

    @cached_property
    def free(self) -> dict[str, AnyArray]:
        """Columns of the same rows that are not computed from targets."""
        own = {name: each if self.sampled is None else each[self.sampled] for name, each in self.columns.items()}
        y, errors = self.scored.y, self.scored.y - self.scored.center
        return {name: each for name, each in own.items() if not is_of_targets(name, each, y, errors)}

    @cached_property
    def groups(self) -> dict[str, AnyArray]:
        """Columns of few different texts, or whole numbers."""
        return {name: each for name, each in self.free.items() if not np.issubdtype(each.dtype, np.floating)}

    @cached_property
    def inputs(self) -> Values | None:
        """Inputs (n, d), if they are few."""
        if self.rows.x is None or self.rows.width > MANY_INPUTS:
            return None
        return np.asarray(self.rows.inputs(), dtype=np.float64)


def candidates(case: Case) -> Iterator[Candidate]:
    """Yield the causes that can be tried on predictions."""
    placed = np.ptp(case.scored.center) > 0  # else the file has errors only
    for make in (_spreads, *((_scales, _units, _orders) if placed else ()), _members, _observed, _groups, _others):
        yield from make(case)


def _read(case: Case, name: str, each: Reading) -> Candidate:
    """Return the candidate whose standard deviations are to be read in another way."""
    ratio = each.std(case.scored.spread) / case.scored.spread
    stretched = case.scored.stretched(ratio)
    is_near = abs(np.median(np.log(ratio))) < FAR
    surplus = SURPLUS_OF_NEAR if is_near else SURPLUS_OF_LOGS if name.startswith("log") else 0.0
    fit, alike = fits.as_stated(stretched), UNEVEN if is_near else ""
    return Candidate(name, each.text, fit, each.edit, each.options, stretched=stretched, surplus=surplus, alike=alike)


def _scaled(case: Case, name: str, text: str, factor: float, edit: str) -> Candidate:
    """Return the candidate whose standard deviations all have a factor."""
    stretched = case.scored.stretched(factor)
    return Candidate(name, text, fits.as_stated(stretched), edit, stretched=stretched, number=float(factor))


def _spreads(case: Case) -> Iterator[Candidate]:
    """Yield what a column of standard deviations may hold instead."""
    std = case.scored.spread
    for name, each in READINGS.items():
        if case.form == each.form and (std.max() < LARGEST or not name.startswith("log")):
            yield _read(case, name, each)
    if case.form != "std":
        return
    for width, text in HALF_WIDTHS.items():
        yield _scaled(case, "half-width-as-std", text, 1 / width, f"f[{{std}}] /= {width:g}")
    for unit in UNITS:
        for power, sign in ((-1, "/="), (1, "*=")):
            text = f"the std is in a unit {unit:g} times as {'small' if power < 0 else 'large'} as the targets"
            yield _scaled(case, "std-in-other-unit", text, unit**power, f"f[{{std}}] {sign} {unit:g}")


def _retargeted(
    case: Case, name: str, text: str, function: Callable[[Values], tuple[Values, Values | float]], edit: str
) -> Iterator[Candidate]:
    """Yield the candidate whose targets are on another scale; a function returns them and the log of its slope."""
    with np.errstate(all="ignore"):
        y, slope = function(case.scored.y)
    if np.isfinite(y).all() and np.isfinite(slope).all():
        surplus = 2.0 if name.startswith("standardized") else 0.0
        yield Candidate(name, text, fits.as_stated(case.scored.with_targets(y, slope)), edit, surplus=surplus)


def _scales(case: Case) -> Iterator[Candidate]:
    """Yield logarithms and standardized values on one side only."""
    for name, (log, exp, words) in LOGARITHMS.items():
        text, edit = f"targets are {words}, predictions are not", f"f[{{y}}] = np.{exp.__name__}(f[{{y}}])"
        yield from _retargeted(case, f"{name}-target", text, partial(_exponential, exp), edit)
        text, edit = f"predictions are of {words}, targets are not", f"f[{{y}}] = np.{name}(f[{{y}}])"
        yield from _retargeted(case, f"{name}-prediction", text, partial(_logarithm, log), edit)
    y, center, spread = case.scored.y, case.scored.center, case.scored.spread
    mean, std = float(np.mean(y)), float(np.std(y))
    own, whole = float(np.mean(center)), float(np.sqrt(np.var(center) + np.mean(spread**2)))
    if _is_standard(own, whole):
        text, edit = "predictions are of standardized targets", f"f[{{y}}] = (f[{{y}}] - {mean:.6g}) / {std:.6g}"
        yield from _retargeted(case, "standardized-prediction", text, lambda y: ((y - mean) / std, -np.log(std)), edit)
    if _is_standard(mean, std):
        slope, text = whole / std, "targets are standardized, predictions are not"
        edit = f"f[{{y}}] = {own:.6g} + {slope:.6g} * (f[{{y}}] - {mean:.6g})"
        yield from _retargeted(
            case, "standardized-target", text, lambda y: (own + whole * (y - mean) / std, np.log(slope)), edit
        )


def _exponential(exp: Callable[[Values], Values], y: Values) -> tuple[Values, Values]:
    """Return exponentials, and the logs of their slopes."""
    return exp(y), y


def _logarithm(log: Callable[[Values], Values], y: Values) -> tuple[Values, Values]:
    """Return logarithms, and the logs of their slopes."""
    return log(y), -log(y)


def _is_standard(mean: float, std: float) -> bool:
    """Return whether numbers may be standardized, by their mean and std over other rows."""
    return abs(mean) < STANDARD_MEAN and 1 / STANDARD_STD < std < STANDARD_STD


def _units(case: Case) -> Iterator[Candidate]:
    """Yield units of the targets that are not those of the predictions."""
    for unit in UNITS:
        for power, sign, size in ((1, "*=", "large"), (-1, "/=", "small")):
            text = f"targets are in a unit {unit:g} times as {size} as predictions"
            yield from _converted(case, text, unit**power, 0.0, f"f[{{y}}] {sign} {unit:g}")
    for text, (factor, shift) in TEMPERATURES.items():
        yield from _converted(case, text, factor, shift, f"f[{{y}}] = {factor:.10g} * f[{{y}}] {shift:+.10g}")


def _converted(case: Case, text: str, factor: float, shift: float, edit: str) -> Iterator[Candidate]:
    """Yield the candidate whose targets are in another unit."""
    yield from _retargeted(case, "other-unit", text, lambda y: (y * factor + shift, float(np.log(factor))), edit)


def _orders(case: Case) -> Iterator[Candidate]:
    """Yield targets in another order than predictions."""
    y = case.scored.y
    for shift in (*SHIFTS, *((case.step, -case.step) if case.step > max(SHIFTS) else ())):
        rows = f"{abs(shift):,} row{'s' * (abs(shift) > 1)}"
        step = ", one time step," if abs(shift) == case.step > 1 else ""
        text = f"targets are {rows}{step} {'above' if shift < 0 else 'below'} their predictions"
        fit = fits.as_stated(case.scored.with_targets(np.roll(y, -shift)))
        edit = f"f[{{y}}] = f[{{y}}].shift({-shift}); f = f[f[{{y}}].notna()]"
        yield Candidate("shifted-rows", text, fit, edit, surplus=1.0, number=float(shift))
    fit = fits.as_stated(case.scored.with_targets(y[::-1]))
    yield Candidate("reversed-rows", "targets are in reverse order", fit, "f[{y}] = f[{y}].to_numpy()[::-1]")
    is_related = np.corrcoef(y, case.scored.center)[0, 1] > MOST_RELATED / np.sqrt(len(y))
    if not is_related or (case.rows.distributions().n_draws or FEWEST_DRAWS) >= FEWEST_DRAWS:
        text = "targets and predictions are of different rows, to be joined by a key"
        yield Candidate("shuffled-rows", text, fits.shuffled(case.scored), surplus=2.0)


def _members(case: Case) -> Iterator[Candidate]:
    """Yield what may be wrong with the members of an ensemble."""
    samples = case.rows.distributions()
    if not isinstance(samples, Samples) or samples.targets > 1 or samples.n_draws < FEWEST_DRAWS:
        return
    draws = samples.draws
    m = samples.n_draws
    root = np.sqrt(m)
    text = f"the spread of the {m} members is that of their mean, √{m} times too small"
    stretch = f"g.mul({root:.6g}).sub(g.mean(axis=1) * {root - 1:.6g}, axis=0)"
    edit = f"g = f.filter(regex={{samples}}); f[g.columns] = {stretch}"
    yield _scaled(case, "spread-of-mean", text, root, edit)
    away = (draws - (draws.sum(axis=1, keepdims=True) - draws) / (m - 1)) ** 2
    size = away.mean(axis=0)
    worst = int(np.argmax(size))
    if size[worst] > EXTREME_MEMBER * np.median(size):
        kept = Samples(np.delete(draws, worst, axis=1))
        fit = fits.as_stated(Scored.from_rows(case.rows.with_targets(case.rows.y, kept)))
        edit = f"g = sorted(f.filter(regex={{samples}}), key=lambda c: (len(c), c)); f = f.drop(columns=g[{worst}])"
        text = f"member {worst + 1} of {m} does not follow the others"
        yield Candidate("stuck-member", text, fit, edit, surplus=1.0)


def _observed(case: Case) -> Iterator[Candidate]:
    """Yield noise and limits of the observation of targets."""
    if case.observed:
        return
    std = fits.noise_of(case.scored)
    surplus = 1.0 if case.rows.distributions().n_draws is None else SURPLUS_OF_DRAWS
    text = f"as if targets had noise that is left out, std about {std:.2g}"
    options, fit = ("--target-std", f"{std:.2g}"), fits.noisy(case.scored)
    found = Candidate("noise-left-out", text, fit, options=options, least=LEAST_OF_NOISE, surplus=surplus, alike=UNEVEN)
    yield replace(found, number=std)
    y = case.scored.y
    low, high = (_limit(case, np.sort(each)) for each in (y, -y))
    high = None if high is None else -high
    if low is not None or high is not None:
        limits = ",".join("" if each is None else f"{each:.10g}" for each in (low, high))
        where = " and ".join(f"{each:.4g}" for each in (low, high) if each is not None)
        fit = fits.clipped(case.scored, low, high, RESOLUTION * float(np.median(case.scored.spread)))
        yield Candidate("clipped-targets", f"targets are clipped at {where}", fit, options=("--clip", limits))


def _limit(case: Case, ordered: Values) -> float | None:
    """Return the least of sorted targets if it is a limit: more frequent than numbers and rounding explain."""
    values, counts = np.unique(ordered, return_counts=True)
    if counts[0] < max(FEWEST_TIES, LEAST_TIES * len(ordered)) or len(values) < FEWEST_TIES:
        return None
    if case.rows.distributions().is_discrete and values[0] == 0:
        return None
    return float(values[0]) if counts[0] > TIES * counts[1] else None


def _repeated_inputs(case: Case) -> str:
    """Return how many of all rows have the inputs of others, in words; empty if none has."""
    if case.inputs is None:
        return ""
    every = case.rows if case.every is None else case.every
    keys, weights = np.zeros(len(every)), np.random.default_rng(0).normal(size=every.width)
    for column, weight in zip(np.asarray(every.inputs(), dtype=np.float64).T, weights, strict=True):
        keys += weight * column  # Equal rows have equal keys, and others have others
    count, first = len(keys) - len(np.unique(keys)), "the first " * (len(every) < case.total)
    return f"; {count:,} of {first}{len(every):,} rows have the inputs of others" if count else ""


def _is_constant(case: Case) -> bool:
    """Return whether all standard deviations are equal, up to the noise of few draws."""
    draws = case.rows.distributions().n_draws
    noise = 0.0 if draws is None else 1.15 * _noise_of_draws(draws)
    return bool(np.std(np.log(case.scored.spread)) <= max(CONSTANT, noise))


def _noise_of_draws(draws: int) -> float:
    """Return the standard error of the logarithm of the std of draws."""
    return float(1 / np.sqrt(2 * (draws - 1)))


def _groups(case: Case) -> Iterator[Candidate]:
    """Yield each group that may explain the fault; columns of few groups first."""
    every = [(name, values, *np.unique(values, return_counts=True)) for name, values in case.groups.items()]
    tried = [
        (name, value, values == value)
        for name, values, found, counts in sorted(every, key=lambda each: len(each[2]))
        for value in found[(counts >= FEWEST_OF_GROUP) & (len(values) - counts >= FEWEST_OF_GROUP)]
    ][:MOST_GROUPS]
    surplus = 2.0 + float(np.log(max(len(tried), 1)))
    for name, value, inside in tried:
        shift, factor = fits.shift_and_factor(case.scored, inside)
        where, rows = f"{name}={value}", f"{np.sum(case.columns[name] == value):,} rows"
        fit = fits.piecewise(case.scored, inside)
        if factor < TRAINED and _are_small(case.scored, inside):
            text = f"rows with {where} ({rows}) were trained on: errors are ×{factor:.2g}"
            yield Candidate("training-rows", text, fit, options=("--filter", f"{name}!={value}"), surplus=surplus)
        else:
            off = abs(shift) > 2 * factor / np.sqrt(inside.sum())
            size = f", targets {shift:+.2g} std off" if off else ""
            text = f"one group explains it: {where} ({rows}), errors ×{factor:.2g}{size}"
            cause = Candidate("one-group", text, fit, options=("--by", name), is_corrected=True, is_shift=bool(off))
            yield replace(cause, least=LEAST_OF_REGION, surplus=surplus)


def _are_small(scored: Scored, inside: Mask) -> bool:
    """Return whether errors themselves are small in some rows, as after training; else their std may be too wide."""
    errors = np.abs(scored.y - scored.center)
    return bool(np.mean(errors[inside]) < TRAINED * np.mean(errors[~inside]))


def _variations(case: Case) -> Iterator[Candidate]:
    """Yield heavy tails, and errors whose size varies as the std does not: along columns, or from row to row."""
    scored, draws = case.scored, case.rows.distributions().n_draws
    constant, freedom = _is_constant(case), fits.freedom_of(scored)
    surplus = 3.0 + float(np.log(max(len(case.numbers), 1)))
    text = f"errors have heavier tails, as Student's t with {freedom:g} degrees of freedom"
    tails = Candidate("heavy-tails", text, fits.as_stated(scored, fits.TAILS), is_corrected=True, least=LEAST_OF_TAILS)
    yield replace(tails, alike=CONSTANT_STD if constant else "")
    if constant:
        text = "the std is constant, as if errors varied from row to row, which no column shows"
        yield replace(tails, name=CONSTANT_STD, text=text, alike=CONSTANT_STD)
        text = "the std is constant, but the size of errors is not"
        fit = fits.local(scored, case.features)
        yield Candidate(CONSTANT_STD, text, fit, is_corrected=True, gain=VARIATION, surplus=surplus + 1)
    else:
        along = np.log(scored.spread)
        features = np.column_stack([np.ones(len(along)), (along - along.mean()) / along.std()])
        slope = float(fits.coefficients(features, scored.evaluate()[0])[1])
        text = f"the std varies too {'much' if slope < 0 else 'little'} from row to row"
        by_chance = 0.0 if draws is None else 2.0 + len(along) / 4 * (_noise_of_draws(draws) ** 2 / along.std()) ** 2
        fit = fits.local(scored, features, fits.FREEDOMS)
        yield Candidate(UNEVEN, text, fit, is_corrected=True, gain=VARIATION, surplus=3.0 + by_chance, alike=UNEVEN)
    for name, values in case.numbers.items():
        along = (2 * ranks(values) - 1) / len(values) - 1
        features = _parabola(along)
        places = {word: along[np.argmin(np.abs(along - each))] for word, each in ENDS.items()}
        if places["medium"] in {places["low"], places["high"]}:  # Ties
            del places["medium"]
        spread = _parabola(np.array([*places.values()])) @ fits.coefficients(features, scored.evaluate()[0])
        sizes = _listed([f"×{each:.2g}" for each in np.exp(spread / 2)])
        text = f"{'the std is constant, but ' * constant}errors are {sizes} where {name} is {_listed([*places])}"
        cause = CONSTANT_STD if constant else "one-input"
        fit = fits.local(scored, features)
        yield Candidate(cause, text, fit, is_corrected=True, gain=VARIATION, surplus=surplus)


def _listed(words: Sequence[str]) -> str:
    """Return words in a list."""
    return ", ".join(words[:-1]) + f" and {words[-1]}"


def _parabola(along: Values) -> Values:
    """Return what a parabola is a sum of, at places between -1 and 1, (n, 3)."""
    return np.column_stack([np.ones(len(along)), along, along**2 - 1 / 3])


def _others(case: Case) -> Iterator[Candidate]:
    """Yield training rows, errors of other sizes, and a region that explains the fault."""
    scored = case.scored
    text = f"part of the rows were trained on, with far too small errors; evaluate others{_repeated_inputs(case)}"
    yield Candidate("training-rows", text, fits.partly_trained(scored), surplus=2.0)
    yield from _variations(case)
    if case.inside is not None:
        text, fit = f"one region explains it: {case.region}", fits.piecewise(scored, case.inside)
        cause = Candidate("one-region", text, fit, is_corrected=True, is_shift=True)
        yield replace(cause, least=LEAST_OF_REGION, surplus=2.0)
