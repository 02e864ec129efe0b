"""Roles of columns, and their conversion to arrays and distributions."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from os.path import commonprefix
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from calcheck.core.lazy_inputs import Categories
from calcheck.core.validation import LARGEST, require, require_finite, require_moderate, require_positive
from calcheck.distributions import Convention, Gaussian, Independent, Predictive, Quantiles, Samples
from calcheck.distributions.continuous import AssumedGaussian, StudentT
from calcheck.distributions.quantiles import Intervals
from calcheck.errors import DataError, ValuesError
from calcheck.io.arrow_columns import inner_length, is_narrow, is_vector, natural, one_hot, to_floats, to_matrix
from calcheck.reports import FileRole
from calcheck.typing import AnyArray, Floats, Values

if TYPE_CHECKING:
    from calcheck.distributions.noise_clip_rounding import Observation, Observations

Arrays = dict[str, AnyArray]

Spread = Literal["std", "var", "log_std", "log_var"]
Shape = Literal["normal", "t6"]
Contents = Literal["all", "any", "new", "sample", "inputs"]  # A new file may lack the target that is named
FILE_ROLES: dict[Contents, FileRole] = {"sample": "sample", "inputs": "evaluation_points"}
"""The role of a file in reports, by what is read from it; predictions from others."""
SHAPE_UNKNOWN = (
    "the file does not state the error distribution: p-values and the score of a perfect model assume a normal one"
    " (pass --error-dist normal or --error-dist t6)"
)
DF = 6.0  # Degrees of freedom of Student-t errors: typical tails of machine-learning errors [ZMS]
REMEDY = "Pass --min-std X to raise them to X, or --log-std or --log-var if they are logs."


@dataclass(frozen=True)
class GaussianRole:
    """Means and spreads, with one column of each per target."""

    mean: tuple[str, ...]
    spread: tuple[str, ...]
    kind: Spread
    shape: Shape | None = None


@dataclass(frozen=True)
class ResidualRole:
    """Errors y - mean, and spreads; the means are unknown, and the shape may be."""

    error: str
    spread: str
    kind: Spread
    shape: Shape | None = None


@dataclass(frozen=True)
class ParametersRole:
    """One column per parameter of a family, or several; without a location if ``error`` holds y - location."""

    convention: Convention
    columns: dict[str, tuple[str, ...]]
    error: str | None = None


@dataclass(frozen=True)
class SamplesRole:
    """Draws: for each target a column of lists, or one column per draw."""

    columns: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class QuantilesRole:
    """Quantiles: one column per level, with increasing levels."""

    columns: tuple[str, ...]
    levels: tuple[float, ...]


@dataclass(frozen=True)
class IntervalsRole:
    """Both limits for each level, or a column of lists, lower limits first; ``point`` has point predictions."""

    lower: tuple[str, ...]
    upper: tuple[str, ...]
    levels: tuple[float, ...]
    point: str | None = None
    tool: str = ""  # That writes the level unless told otherwise, if nothing states it

    @property
    def packed(self) -> bool:
        """Whether one column holds both limits."""
        return self.lower == self.upper

    def arguments(self) -> list[str]:
        """Return the options that specify this role."""
        sides = ["--lower", ",".join(self.lower), "--upper", ",".join(self.upper)]
        limits = ["--intervals", self.lower[0]] if self.packed else sides
        return [*limits, "--level", _listed(self.levels), *(["--mean", self.point] if self.point else [])]

    def arrays(self, table: pa.Table) -> Arrays:
        """Return the limits, (n, k) each, and the point predictions, (n,), if there are any."""
        point = {} if self.point is None else {"point": to_floats(table[self.point], self.point)}
        if not self.packed:
            return {"lower": _matrix(table, self.lower), "upper": _matrix(table, self.upper), **point}
        both, levels = to_matrix(table[self.lower[0]], self.lower[0]), len(self.levels)  # all lower limits come first
        if both.shape[1] != 2 * levels:
            raise DataError(
                f"column {self.lower[0]!r} has {both.shape[1]} limits per row, and --level names {levels}. Pass the"
                " level of each interval, in their order; each has two limits"
            )
        return {"lower": both[:, :levels], "upper": both[:, levels:], **point}


Distributions: TypeAlias = GaussianRole | ResidualRole | ParametersRole | SamplesRole | QuantilesRole | IntervalsRole

OBSERVED = ("target-std", "clip", "rounded")  # The options that say how targets were observed
Given: TypeAlias = "str | float | None"  # A column, a number, or nothing


@dataclass(frozen=True)
class ObservationRole:
    """Columns or numbers that say how targets were observed: one for all targets, or one for each."""

    noise: tuple[Given, ...] = (None,)
    low: tuple[Given, ...] = (None,)
    high: tuple[Given, ...] = (None,)
    step: tuple[Given, ...] = (None,)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns among them."""
        each = (*self.noise, *self.low, *self.high, *self.step)
        return tuple(dict.fromkeys(name for name in each if isinstance(name, str)))

    def arguments(self) -> dict[str, str]:
        """Return the columns or numbers by option."""
        limits = [each for pair in zip(self.low, self.high, strict=True) for each in pair]
        found = {"target-std": self.noise, "clip": tuple(limits), "rounded": self.step}
        return {name: ",".join(map(_given, each)) for name, each in found.items() if any(v is not None for v in each)}

    def observation(self, arrays: Arrays, count: int, targets: int) -> "Observation | Observations":
        """Return how one or several targets of a number of rows were observed."""
        from calcheck.distributions.noise_clip_rounding import Observation, Observations

        def values(given: tuple[Given, ...], place: int) -> Values | None:
            each = given[place % len(given)]
            if each is None:
                return None
            return np.full(count, each) if isinstance(each, float) else np.asarray(arrays[each], np.float64)

        named = {"--target-std": self.noise, "--clip": self.low, "--rounded": self.step}
        for name, given in named.items():
            if len(given) not in (1, targets):
                raise DataError(f"{name} is given for {len(given)} targets, and there are {targets}")
        every = {"noise": self.noise, "low": self.low, "high": self.high, "step": self.step}
        found = [{name: values(given, place) for name, given in every.items()} for place in range(targets)]
        parts = tuple(Observation(keys=None, **each) for each in found)
        return parts[0] if targets == 1 else Observations(parts)


def _given(each: Given) -> str:
    return "" if each is None else each if isinstance(each, str) else f"{each:.15g}"


def columns_by_option(role: Distributions | None) -> dict[str, tuple[str, ...]]:
    """Return the columns that describe the distributions, by the option that names them."""
    found: dict[str, tuple[str, ...]] = {}
    match role:
        case GaussianRole(mean=mean, spread=spread, kind=kind):
            found = {"mean": mean, kind: spread}
        case ResidualRole(error=error, spread=one, kind=kind):
            found = {"error": (error,), kind: (one,)}
        case ParametersRole(_, columns, error):
            found = {"error": (error,)} if error else {}
            found["param"] = tuple(name for group in columns.values() for name in group)
        case SamplesRole(groups):
            found = {"samples": tuple(name for group in groups for name in group)}
        case QuantilesRole(columns=names):
            found = {"quantiles": names}
        case IntervalsRole(lower=lower, upper=upper, point=point):
            found = {"mean": () if point is None else (point,)}
            found |= {"intervals": lower} if role.packed else {"lower": lower, "upper": upper}
    return found


def columns_of(role: Distributions | None) -> tuple[str, ...]:
    """Return the columns that describe the distributions."""
    return tuple(name for names in columns_by_option(role).values() for name in names)


def is_wide(role: Distributions | None) -> bool:
    """Return whether many numbers describe each distribution, too many to show: draws or quantiles."""
    return isinstance(role, (SamplesRole, QuantilesRole))


@dataclass(frozen=True)
class Roles:
    """The columns of a file by role."""

    target: tuple[str, ...] = ()  # Columns of targets, or of errors instead; may be empty
    predictive: Distributions | None = None
    x: tuple[str, ...] = ()  # The embedding (one column of vectors, or several of numbers) or the inputs; may be empty
    has_embedding: bool = True  # Whether `x` is an embedding
    id: str | None = None  # The column of row keys
    # Scalar columns to show beside results: targets, predictions and inputs first, then the others in file order
    narrow: tuple[str, ...] = field(default=())
    tool: str = ""  # The tool whose column names these are; empty if unknown
    keys: tuple[str, ...] = ()  # Columns that identify rows in files of that tool
    unusual: bool = False  # Whether the columns were found by names that are less common, so that reports state them
    observed: ObservationRole | None = None  # How the targets were observed
    categories: tuple[Categories, ...] = ()  # Columns of text among the inputs
    other_categories: bool = False  # Whether rows may have other categories

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the columns of `x`; each category of a column of text has one."""
        values = {each.column: each.values for each in self.categories}
        named = ([f"{name}={value}" for value in values[name]] if name in values else [name] for name in self.x)
        return tuple(name for group in named for name in group)

    def described_columns(self, place: int | None = None) -> dict[str, str]:
        """Return the column names of each role, for reports: of all targets, or of the one that is used."""
        listed = partial(list_names, place=place)
        described = {"y": listed(self.target)} if self.target else {}
        match self.predictive:
            case GaussianRole(mean=mean, spread=spread, kind=kind):
                described |= {"mean": listed(mean), kind: listed(spread)}
            case ResidualRole(error=error, spread=spread, kind=kind):
                described = {"y - mean": error, kind: spread}
            case ParametersRole(convention, columns, error):
                described = {f"y - {convention.location}": error} if error else described
                described |= {name: list_names(group) for name, group in columns.items()}
            case SamplesRole(columns):
                described["samples"] = "; ".join(list_names(group) for group in columns)
            case QuantilesRole(columns, _):
                described["quantiles"] = list_names(columns)
            case IntervalsRole(lower, upper, levels, point):
                described |= {"point": point} if point else {}
                described |= {"lower": list_names(lower), "upper": list_names(upper), "levels": _listed(levels)}
        described |= {} if self.observed is None else self.observed.arguments()
        if self.x:
            described["x"] = list_names(self.x)
        if self.id:
            described["id"] = self.id
        return described

    def explicit(self, names: list[str]) -> list[str]:
        """Return the options that specify these roles explicitly, given all column names."""
        arguments = ["--target", ",".join(self.target)] if self.target else []
        match self.predictive:
            case ResidualRole(error, spread, kind, shape):
                arguments = ["--error", error, f"--{kind.replace('_', '-')}", spread, *_shape(shape)]
            case GaussianRole(mean, spread, kind, shape):
                arguments += ["--mean", ",".join(mean), f"--{kind.replace('_', '-')}", ",".join(spread), *_shape(shape)]
            case ParametersRole(convention, columns, error):
                arguments = ["--error", error] if error else arguments
                arguments += ["--dist", convention.spelling]
                for name, group in columns.items():
                    ordered = sorted(group, key=natural) == list(group)  # as patterns are read
                    pattern = pattern_of(group, names) if ordered else None
                    arguments += ["--param", f"{name}={pattern or ','.join(group)}"]
            case QuantilesRole(columns, _):
                arguments += ["--quantiles", pattern_of(columns, names) or ",".join(columns)]
            case IntervalsRole():
                arguments += self.predictive.arguments()
            case SamplesRole(columns):
                patterns = [pattern_of(group, names) for group in columns]
                arguments += ["--samples", ",".join(filter(None, patterns))] if None not in patterns else []
        observed = {} if self.observed is None else self.observed.arguments()
        arguments += [word for name, given in observed.items() for word in (f"--{name}", given)]
        listed = ",".join(self.x)
        if self.x:
            embedding = ["--embedding", pattern_of(self.x, names) or listed]
            arguments += embedding if self.has_embedding else ["--inputs", listed]
        return [*arguments, "--id", self.id] if self.id else arguments


def _listed(levels: tuple[float, ...]) -> str:
    return ",".join(f"{level:g}" for level in levels)


def _shape(shape: Shape | None) -> list[str]:
    return [] if shape is None else ["--error-dist", shape]


def list_names(columns: tuple[str, ...], place: int | None = None) -> str:
    """Return column names as text, or the name at a place of several; only the first and last if there are many."""
    few, columns = 4, columns if place is None or len(columns) == 1 else columns[place : place + 1]
    if len(columns) <= few:
        return ", ".join(columns)
    return f"{columns[0]} … {columns[-1]} ({len(columns)} columns)"


def pattern_of(columns: tuple[str, ...], names: list[str]) -> str | None:
    """Return a name or pattern that matches exactly these columns; None if there is none."""
    if len(columns) == 1:
        return columns[0]
    stem = re.sub(r"\d+$", "", columns[0])
    start = commonprefix(columns)  # noqa: RUF071 - of names, not of paths
    for pattern in (f"{stem}*", f"{stem}[0-9]*", f"{start}*"):
        if {name for name in names if fnmatchcase(name, pattern)} == set(columns):
            return pattern
    return None


def columns_read(roles: Roles, also: Iterable[str] = ()) -> list[str]:
    """Return the columns that a scan needs, without duplicates."""
    wanted = [*roles.target, *roles.x, *columns_of(roles.predictive)]
    wanted += [roles.id] if roles.id else []
    wanted += [] if roles.observed is None else roles.observed.columns
    wanted += also
    return list(dict.fromkeys(wanted))


def arrays_of(table: pa.Table, roles: Roles) -> Arrays:
    """Return the array of each role: (n,), or (n, t) for several targets; x is (n, d)."""
    arrays: Arrays = {"y": _columns(table, roles.target)} if roles.target else {}
    match roles.predictive:
        case GaussianRole(mean=mean, spread=spread, kind=kind):
            arrays |= {"mean": _columns(table, mean), kind: _columns(table, spread)}
        case ResidualRole(spread=spread, kind=kind):
            arrays[kind] = to_floats(table[spread], spread)
        case ParametersRole(convention, columns, error):
            reader = _matrix if convention.grouped else _columns
            arrays |= {name: reader(table, group) for name, group in columns.items()}
            if error and convention.location:
                arrays[convention.location] = np.zeros(len(table))
        case QuantilesRole(columns, _):
            arrays["quantiles"] = _matrix(table, columns)
        case IntervalsRole() as role:
            arrays |= role.arrays(table)
        case SamplesRole(groups):
            draws = [_samples(table, group) for group in groups]
            counts = [values.shape[1] for values in draws]
            if len(set(counts)) > 1:
                raise DataError(f"targets have different numbers of samples: {', '.join(map(str, counts))}")
            arrays["samples"] = draws[0] if len(draws) == 1 else np.stack(draws, axis=2)
    observed = () if roles.observed is None else roles.observed.columns
    arrays |= {name: to_floats(table[name], name) for name in observed}
    return {**arrays, "x": _inputs(table, roles)} if roles.x else arrays


def predictive_of(roles: Roles, arrays: Arrays, min_std: float | None) -> tuple[Predictive | None, int]:
    """Return the distributions and the number of standard deviations that ``min_std`` raised."""
    raised, predictive = 0, None
    match roles.predictive:
        case GaussianRole(kind=kind, shape=shape):
            std, raised = _deviations(arrays[kind], kind, min_std)
            predictive = _of_moments(arrays["mean"], std, shape or "normal")
        case ResidualRole(kind=kind, shape=shape):
            std, raised = _deviations(arrays[kind], kind, min_std)
            predictive = _of_moments(np.zeros_like(std), std, shape)
        case ParametersRole(convention, columns, _):
            for name in columns:
                require_moderate(name, arrays[name], power=2 if name == "covariance" else 1)
            predictive = convention(**{name: arrays[name] for name in convention.parameters if name in arrays})
        case QuantilesRole(_, levels):
            predictive = Quantiles(np.array(levels), np.asarray(arrays["quantiles"], dtype=np.float64))
        case IntervalsRole(levels=levels):
            predictive = Intervals(np.array(levels), arrays["lower"], arrays["upper"], arrays.get("point"))
        case SamplesRole():
            predictive = Samples(np.asarray(arrays["samples"], dtype=np.float64))
    return predictive, raised


def _deviations(spread: Values, kind: str, min_std: float | None) -> tuple[Values, int]:
    """Convert spreads to standard deviations, at least ``min_std``; return the number that was raised too."""
    if kind == "std" and min_std is None:
        return spread, 0  # checked by the distribution
    if kind == "var" and min_std is None:
        require_positive(kind, spread, REMEDY, power=2)
    else:
        require_finite(kind, spread)
    if kind == "std":
        std = spread
    elif kind == "var":
        std = np.sqrt(np.maximum(spread, 0))
    else:
        with np.errstate(over="ignore"):
            std = np.exp(spread if kind == "log_std" else spread / 2)
        rule = f"must be logarithms of numbers up to {LARGEST:.0e}"
        require(kind, std <= LARGEST, rule, "Does the column hold logarithms?")
    if min_std is None:
        return std, 0
    return np.maximum(std, min_std), int((std < min_std).sum())


def _of_moments(mean: Values, std: Values, shape: Shape | None) -> Predictive:
    """Return normal distributions, assumed if no shape is given, or Student-t with 6 degrees of freedom."""
    if mean.shape != std.shape:
        raise DataError(f"means and standard deviations differ in shape: {mean.shape} and {std.shape}")
    try:
        if mean.ndim == 1:
            return _shaped(mean, std, shape)
        return Independent(tuple(_shaped(mean[:, t], std[:, t], shape) for t in range(mean.shape[1])))
    except ValuesError as error:
        if error.name == "std" and not error.remedy:
            raise ValuesError(error.name, error.rule, error.rows, error.total, REMEDY) from error
        raise


def _shaped(mean: Values, std: Values, shape: Shape | None) -> Predictive:
    normal = AssumedGaussian(mean, std) if shape is None else Gaussian(mean, std)  # validates both
    if shape != "t6":
        return normal
    return StudentT(loc=mean, scale=std * np.sqrt(1 - 2 / DF), df=np.full(len(std), DF))


def _samples(table: pa.Table, names: tuple[str, ...]) -> Floats:
    """Return draws (n, m); lists of vectors as (n, m, t)."""
    draws = _matrix(table, names)
    inner = inner_length(table[names[0]]) if len(names) == 1 else 1
    return draws if inner == 1 else draws.reshape(len(draws), -1, inner)


def _inputs(table: pa.Table, roles: Roles) -> Floats:
    """Return the embedding or the inputs, (n, d); a column of text has a column for each category."""
    if not roles.categories:
        return _matrix(table, roles.x)
    values = {each.column: each.values for each in roles.categories}
    others = roles.other_categories
    encoded = [
        one_hot(table[name], name, values[name], others=others)
        if name in values
        else to_floats(table[name], name)[:, None]
        for name in roles.x
    ]
    return np.concatenate(encoded, axis=1)


def _columns(table: pa.Table, names: tuple[str, ...]) -> Values:
    """Return one column of numbers as (n,); several columns, or one of vectors, as (n, t)."""
    if len(names) == 1 and is_vector(table.schema.field(names[0]).type):
        values = np.asarray(to_matrix(table[names[0]], names[0]), dtype=np.float64)
        return values if values.shape[1] > 1 else values[:, 0]
    if len(names) == 1:
        return to_floats(table[names[0]], names[0])
    return np.stack([to_floats(table[name], name) for name in names], axis=1)


def _matrix(table: pa.Table, names: tuple[str, ...]) -> Floats:
    """Return one column of vectors, or several of numbers, as (n, d); float32 if all are stored in single precision."""
    if len(names) == 1:
        return to_matrix(table[names[0]], names[0])
    narrow = all(is_narrow(table.schema.field(name).type) for name in names)
    matrix = np.empty((len(table), len(names)), dtype=np.float32 if narrow else np.float64)
    for place, name in enumerate(names):
        matrix[:, place] = to_floats(table[name], name)
    return matrix
