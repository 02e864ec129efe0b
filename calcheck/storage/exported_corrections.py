"""Corrections of normal predictions as functions in Python, and as queries in SQL."""

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any

import numpy as np

from calcheck.core.text import strip_control
from calcheck.distributions.continuous import Gaussian
from calcheck.distributions.recalibrated import BELOW_ONE, LEVELS
from calcheck.errors import OptionError
from calcheck.recalibration import corrections as steps
from calcheck.recalibration.features import MEAN, STD, Feature
from calcheck.recalibration.methods import RecalibrationMap

MOST = steps.LARGEST_LOG
MOST_LINES, WIDTH, WIDE = 60, 110, 160  # Columns of text, and of lists of numbers
DEVIATION_OF = {"std": "{}", "scale": "{}", "var": "SQRT({})", "log_std": "EXP({})", "log_var": "EXP({} / 2)"}
"""The std, by the role of a column."""
ADDED = ("calcheck_", "mended_")  # How names of columns begin that a query adds
TRUTHS = {"True": ("true", "1", "1.0"), "False": ("false", "0", "0.0")}  # Truth values as text, in lower case, by group
NO_QUERY = "the method {} is no formula of SQL: write a function with --export PATH.py, or pass --method local"
NO_FUNCTION = "the method {} has no function: write a map with --export PATH.json"


def exported(
    found: RecalibrationMap,
    suffix: str,
    *,
    roles: Mapping[str, str],
    times: Sequence[str],
    judgement: str,
    names: Sequence[str] = (),
) -> str:
    """Return a correction as the text of a Python module, or of an SQL query, by the suffix of its file."""
    if found.family != "gaussian":
        msg = f"--export writes functions of normal predictions, and these are {found.family}: pass a path with .json"
        raise OptionError(msg)
    if named := [name for name in found.columns if name in times]:
        msg = f"the correction depends on the times in {named[0]!r}: name other columns with --by, or write a .json"
        raise OptionError(msg)
    if suffix == ".sql" and (taken := [each for each in names if each.lower().startswith(ADDED)]):
        msg = f"the query adds columns whose names begin with {' or '.join(ADDED)}, and the file has {taken[0]!r}"
        raise OptionError(f"{msg}: rename it, or write a .py or .json")
    lines = [*_header(found, "--" if suffix == ".sql" else "#", judgement)]
    lines += _query(found, roles) if suffix == ".sql" else _function(found)
    if len(lines) > MOST_LINES:
        msg = f"the function has {len(lines)} lines, and at most {MOST_LINES} are written: name fewer columns with --by"
        raise OptionError(f"{msg}, or write a .json")
    return "\n".join(lines) + "\n"


def _header(found: RecalibrationMap, mark: str, judgement: str) -> Iterator[str]:
    today = datetime.now(UTC).date().isoformat()
    files, new = (
        [f"{each.path}, SHA-256 {each.sha256}" for each in given] or ["rows in memory"]
        for given in (found.fitted_on, found.new_inputs)
    )
    like = "" if found.effective_rows is None else f", like which {found.effective_rows:,.0f} of these rows count"
    texts = [
        f"Correction of normal predictions, written by calcheck {found.calcheck} on {today}.",
        *(f"Fitted to {found.rows:,} rows: {each}" for each in files),
        *(f"For new inputs: {each}{like}." for each in new if like),
        f"Method {found.method}: {'; '.join(found.texts) or 'nothing is changed'}.",
        judgement,
    ]
    for text in filter(None, texts):
        wrapped = textwrap.wrap(strip_control(text), WIDTH, break_long_words=False, break_on_hyphens=False)
        yield from (f"{mark} {line}" for line in wrapped)


def _spline(feature: Feature, coefficients: Sequence[float]) -> tuple[float, list[tuple[float, float]]]:
    """Return the slope of a number, and the factor of the cube beyond each knot."""
    slope, *curved = coefficients
    if not feature.knots:
        return slope, []
    *first, before, last = feature.knots
    width, ends = (last - first[0]) ** 2, [0.0, 0.0]
    for factor, knot in zip(curved, first, strict=True):
        ends[0] -= factor / width * (last - knot) / (last - before)
        ends[1] += factor / width * (before - knot) / (last - before)
    return slope, [*zip(first, (factor / width for factor in curved), strict=True), (before, ends[0]), (last, ends[1])]


def _with_coefficients(step: Any) -> Iterator[tuple[Feature, list[float]]]:
    start = 1
    for feature in step.features:
        count = len(feature.groups) if feature.kind == "category" else 1
        count += max(len(feature.knots) - 2, 0) if feature.kind == "number" else 0
        yield feature, list(step.coefficients[start : start + count])
        start += count


# Python


def _function(found: RecalibrationMap) -> Iterator[str]:
    yield from ("", "import numpy as np", "", "", "def mend(mean, std, columns=None):")
    yield f'    """Return {_returned(found)}; columns are arrays by name, or a frame."""'
    yield "    mean, std = np.asarray(mean, float), np.asarray(std, float)"
    for step in found.steps:
        if type(step) not in FUNCTIONS:
            raise OptionError(NO_FUNCTION.format(found.method))
        yield from (f"    {line}" for line in FUNCTIONS[type(step)](step))
    if not found.steps or not isinstance(found.steps[-1], ENDS):
        yield "    return mean, std"


def _returned(found: RecalibrationMap) -> str:
    if not found.steps or not isinstance(found.steps[-1], ENDS):
        return "the corrected mean and std"
    if isinstance(found.steps[-1], steps.HeavyTails):
        return "loc, scale and df of Student-t distributions"
    return "levels and quantiles" if not isinstance(found.steps[-1], steps.Conformal) else "levels and limits"


def _linear(step: Any) -> Iterator[str]:
    """Yield the lines that compute the regression of a step, as ``total``."""
    yield f"total = np.full(len(std), {step.coefficients[0]!r})"
    for feature, own in _with_coefficients(step):
        if feature.kind == "category":
            factors = dict(zip(feature.groups, own, strict=True))
            yield f"total += [{factors!r}.get(str(each), 0.0) for each in columns[{feature.column!r}]]"
            continue
        value = {STD: "std", MEAN: "mean"}.get(feature.column, f"np.asarray(columns[{feature.column!r}], float)")
        if feature.kind == "step":
            yield f"total += {own[0]!r} * ({value} > {feature.knots[0]!r})"
            continue
        value = "np.log(std)" if feature.kind == "deviation" else value
        slope, cubes = _spline(feature, own)
        yield f"x = (np.clip({value}, {feature.low!r}, {feature.high!r}) - {feature.center!r}) / {feature.scale!r}"
        yield f"total += {slope!r} * x"
        if cubes:
            yield f"total += sum(factor * np.maximum(x - knot, 0.0) ** 3 for knot, factor in {cubes!r})"


def _bin_lines(step: Any) -> Iterator[str]:
    yield from _array("edges", step.edges)
    yield from _array("factors", step.factors)
    yield 'std = std * factors[np.searchsorted(edges, std, side="right")]'


def _isotonic_lines(step: Any) -> Iterator[str]:
    yield from _array("predicted", step.predicted)
    yield from _array("fitted", step.fitted)
    yield "std = np.sqrt(np.interp(std**2, predicted, fitted))"


def _map_lines(step: Any) -> Iterator[str]:
    at = step.recalibrator().inverse(LEVELS)
    normal = Gaussian(np.zeros(len(at)), np.ones(len(at)))
    yield "levels = np.concatenate([[0.005], np.arange(1, 100) / 100, [0.995]])"
    yield from _array("z", normal.standard_quantile(np.minimum(at, BELOW_ONE)).tolist())
    yield "return levels, mean[:, None] + std[:, None] * z"


def _conformal_lines(step: Any) -> Iterator[str]:
    yield from _array("levels", step.levels)
    yield from _array("reach", step.scores)
    yield "return levels, mean[:, None] - std[:, None] * reach, mean[:, None] + std[:, None] * reach"


def _array(name: str, values: Sequence[float]) -> Iterator[str]:
    text = f"{name} = np.array([{', '.join(map(repr, values))}])"
    first, *others = textwrap.wrap(text, WIDE, break_long_words=False)
    yield first
    yield from (f"    {line}" for line in others)


FUNCTIONS: dict[type, Callable[[Any], Iterator[str]]] = {
    steps.Scale: lambda step: iter([f"std = std * {step.factor!r}"]),
    steps.ShiftScale: lambda step: iter([f"mean, std = mean + {step.shift!r} * std, {step.factor!r} * std"]),
    steps.Bias: lambda step: chain(_linear(step), ["mean = mean + total * std"]),
    steps.Local: lambda step: chain(_linear(step), [f"std = std * np.exp(np.clip(total, -{MOST}, {MOST}) / 2)"]),
    steps.BinScaling: _bin_lines,
    steps.IsotonicVariance: _isotonic_lines,
    steps.HeavyTails: lambda step: iter([f"return mean, std * {step.factor!r}, np.full(len(std), {step.df!r})"]),
    steps.Pit: _map_lines,
    steps.Beta: _map_lines,
    steps.Conformal: _conformal_lines,
}
ENDS = (steps.HeavyTails, steps.Pit, steps.Beta, steps.Conformal)


# SQL


def _query(found: RecalibrationMap, roles: Mapping[str, str]) -> Iterator[str]:
    """Yield a query whose expressions are those of SQLite, DuckDB and PostgreSQL alike."""
    center = next((kind for kind in (MEAN, "loc") if kind in roles), None)
    spread = next((kind for kind in DEVIATION_OF if kind in roles), None)
    if center is None or spread is None:
        raise OptionError(
            "a query needs columns of means and standard deviations (--mean, --std): write a .py or .json"
        )
    mean, std = _name(roles[center]), DEVIATION_OF[spread].format(_name(roles[spread]))
    yield "-- predictions: the table with the columns of the file."
    yield f"WITH {_table('step_0', 'predictions', f'{mean} AS calcheck_mean_0', f'{std} AS calcheck_std_0')}"
    last, added = 0, ""
    for number, step in enumerate(found.steps, 1):
        if type(step) not in QUERIES:
            raise OptionError(NO_QUERY.format(found.method))
        last = number
        before = number - 1
        terms, source = ["0.0e0"], f"step_{before}"
        if isinstance(step, (steps.Bias, steps.Local)):
            inside, terms = _terms(step, before)
            if inside:
                yield f", {_table(f'inside_{number}', source, *inside)}"
                source = f"inside_{number}"
            yield f", total_{number} AS MATERIALIZED (SELECT *, {terms[0]}"
            yield from (f"  + {term}" for term in terms[1:])
            yield f"  AS calcheck_total_{number} FROM {source})"
            source = f"total_{number}"
        names = (f"calcheck_mean_{before}", f"calcheck_std_{before}", f"calcheck_total_{number}")
        new_mean, new_std = QUERIES[type(step)](step, *names)
        added += f", {_number(step.df)} AS mended_df" if isinstance(step, steps.HeavyTails) else ""
        columns = f"{new_mean} AS calcheck_mean_{number}", f"{new_std} AS calcheck_std_{number}"
        yield f", {_table(f'step_{number}', source, *columns)}"
    called = ("loc", "scale") if added else ("mean", "std")
    shown = ", ".join(
        f"calcheck_{kind}_{last} AS mended_{name}" for kind, name in zip(("mean", "std"), called, strict=True)
    )
    yield f"SELECT step_{last}.*, {shown}{added}"
    yield f"FROM step_{last};"


def _table(name: str, source: str, *columns: str) -> str:
    """Return a table with the columns of its source, and further ones."""
    return " ".join((f"{name} AS MATERIALIZED (SELECT *,", ", ".join(columns), f"FROM {source})"))


def _number(value: float) -> str:
    """Return a number as a literal of a double."""
    mantissa, _, exponent = repr(float(value)).partition("e")
    return f"{mantissa}e{int(exponent or 0)}"


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _terms(step: Any, before: int) -> tuple[list[str], list[str]]:
    """Return the columns that hold numbers within their range, and the terms of the regression of a step."""
    inside, terms = list[str](), [_number(step.coefficients[0])]
    for place, (feature, own) in enumerate(_with_coefficients(step)):
        value = {STD: f"calcheck_std_{before}", MEAN: f"calcheck_mean_{before}"}.get(
            feature.column, _name(feature.column)
        )
        if feature.kind == "category":
            truths = set(feature.groups) <= set(TRUTHS)
            value = f"LOWER(CAST({value} AS VARCHAR))" if truths else value
            cases = (
                f"WHEN '{text.replace(chr(39), chr(39) * 2)}' THEN {_number(factor)}"
                for group, factor in zip(feature.groups, own, strict=True)
                for text in (TRUTHS[group] if truths else [group])
            )
            terms.append(f"CASE {value} {' '.join(cases)} ELSE 0.0e0 END")
            continue
        if feature.kind == "step":
            limit = _number(feature.knots[0])
            terms.append(f"CASE WHEN {value} > {limit} THEN {_number(own[0])} ELSE 0.0e0 END")
            continue
        value = f"LN({value})" if feature.kind == "deviation" else value
        low, high, middle, scale = map(_number, (feature.low, feature.high, feature.center, feature.scale))
        clipped = f"CASE WHEN {value} < {low} THEN {low} WHEN {value} > {high} THEN {high} ELSE {value} END"
        x = f"calcheck_x_{before}_{place}"
        inside.append(f"({clipped} - {middle}) / {scale} AS {x}")
        slope, cubes = _spline(feature, own)
        terms.append(f"{_number(slope)} * {x}")
        for knot, factor in cubes:
            away = f"({x} - {_number(knot)})"
            terms.append(
                f"CASE WHEN {x} > {_number(knot)} THEN {_number(factor)} * {away} * {away} * {away} ELSE 0.0e0 END"
            )
    return inside, terms


def _local_std(std: str, total: str) -> str:
    most = _number(MOST)
    clipped = f"CASE WHEN {total} < -{most} THEN -{most} WHEN {total} > {most} THEN {most} ELSE {total} END"
    return f"{std} * EXP({clipped} / 2)"


def _bin_std(step: Any, std: str) -> str:
    cases = [
        f"WHEN {std} < {_number(edge)} THEN {_number(factor)}"
        for edge, factor in zip(step.edges, step.factors, strict=False)
    ]
    last = _number(step.factors[-1])
    factor = f"CASE {' '.join(cases)} ELSE {last} END" if cases else last
    return f"{std} * {factor}"


def _shifted(step: Any, mean: str, std: str) -> tuple[str, str]:
    return f"{mean} + {_number(step.shift)} * {std}", f"{std} * {_number(step.factor)}"


QUERIES: dict[type, Callable[[Any, str, str, str], tuple[str, str]]] = {
    steps.Scale: lambda step, mean, std, _: (mean, f"{std} * {_number(step.factor)}"),
    steps.ShiftScale: lambda step, mean, std, _: _shifted(step, mean, std),
    steps.Bias: lambda _, mean, std, total: (f"{mean} + {total} * {std}", std),
    steps.Local: lambda _, mean, std, total: (mean, _local_std(std, total)),
    steps.BinScaling: lambda step, mean, std, _: (mean, _bin_std(step, std)),
    steps.HeavyTails: lambda step, mean, std, _: (mean, f"{std} * {_number(step.factor)}"),
}
"""What a step makes of the mean and the std, as expressions."""
