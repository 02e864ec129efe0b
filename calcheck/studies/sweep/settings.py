"""Settings of a sweep: options of a metric, and the number of rows."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from calcheck.errors import OptionError, with_suggestion
from calcheck.options import Option, options_of

if TYPE_CHECKING:
    from calcheck.metrics.base import Metric

SUBSAMPLE = "subsample"
TIE = "+"  # Joins the names of options that are varied together
POINTS, MOST_POINTS = 7, 1000  # default number of values in a range, and maximum number of points in a sweep
PERCENT = 100
DIGITS = 4  # significant digits of the values in a range
RANGE = re.compile(r"(?P<low>[^.:].*?)\.\.(?P<high>[^:]+)(?::(?P<count>\d+))?")


@dataclass(frozen=True)
class SweptSetting:
    """A setting and its values."""

    # "subsample", or an option as on the command line without leading dashes: "gamma-y"; several options with equal
    # values are joined: "gamma-x+gamma-y"
    name: str
    # Values of the setting; for subsample, a fraction of the rows (float) or their number (int)
    values: tuple[Any, ...]
    description: tuple[str, ...]  # Values as text


@dataclass(frozen=True)
class SweepPoint:
    """A point of a sweep: a metric with its options, and the number of rows."""

    description: dict[str, str]  # Values of the varied settings as text, by name; empty for the unchanged metric
    metric: Metric[Any]  # Metric with its options
    size: float | int | None = None  # Fraction of the rows, or their number; None for all rows

    def rows(self, n: int) -> int:
        """Return the number of rows at this point, out of n."""
        if self.size is None:
            return n
        rows = round(n * self.size) if isinstance(self.size, float) else self.size
        if not 1 <= rows <= n:
            msg = (
                f"--vary {SUBSAMPLE}={self.description[SUBSAMPLE]} gives {rows:,} rows: expected between 1 and {n:,},"
                " the number of rows in the file"
            )
            raise OptionError(msg)
        return rows


def parse(text: str, metric: type[Metric[Any]]) -> SweptSetting:
    """Return the setting in a text: ``"lambda=0.001..1:7"``, ``"draws=1,2,5"``, ``"subsample=25%,50%"``.

    Several options that take equal values are joined by a plus: ``"gamma-x+gamma-y=0.1,0.5"``.
    """
    spelled, equals, listed = (part.strip() for part in text.partition("="))
    name = spelled.removeprefix("--").replace("_", "-").replace(" ", "")
    first, *tied = name.split(TIE)
    known = {option.flag.removeprefix("--"): option for option in options_of(metric)}
    unknown = [each for each in (first, *tied) if each not in (known if tied else (*known, SUBSAMPLE))]
    if not equals or not listed or unknown:
        there = ", ".join((*known, SUBSAMPLE))
        takes = "--vary takes NAME=VALUES, e.g. lambda=0.001..1 or draws=1,2,5"
        msg = with_suggestion(
            f"{takes}, got {text!r}. Names for {metric.info.name}: {there}",
            next(iter(unknown), ""),
            (*known, SUBSAMPLE),
        )
        raise OptionError(msg)
    read = (
        _size
        if name == SUBSAMPLE
        else partial(_read, [known[each] for each in (first, *tied)], called=f"--vary {name}")
    )
    whole = name == SUBSAMPLE or not _is_fractional(known[first])
    separator = ";" if first in known and known[first].listed else ","
    items = [found for item in listed.split(separator) for found in _items(item.strip(), name, whole=whole)]
    values = dict.fromkeys(read(item) for item in items)
    if len(values) > MOST_POINTS:
        msg = f"--vary {name} has {len(values):,} values: at most {MOST_POINTS:,} are allowed"
        raise OptionError(msg)
    return SweptSetting(name, tuple(values), tuple(_told(value, name) for value in values))


def _read(options: Sequence[Option], text: str, called: str) -> Any:
    """Return the value of a text for options that are varied together."""
    value, *_ = [option.parse(text, called) for option in options]  # all of them check the text
    return value


def from_values(name: str, values: Any, metric: type[Metric[Any]]) -> SweptSetting:
    """Return the setting with a list of values, or with the values in a text: ``("lambda_", [0.01, 0.1])``.

    For subsample, a fraction of the rows is a float from 0 to 1, and their number an int. Values of an option that is a
    list are lists: ``("levels", [[0.1, 0.9], [0.5]])``.
    """
    spelled = name.rstrip("_")
    _require_named(name, metric)
    if isinstance(values, str) and values.strip():
        return parse(f"{spelled}={values}", metric)
    listed = list(values) if isinstance(values, Iterable) else []
    plain = [value.tolist() if hasattr(value, "tolist") else value for value in listed]
    if not plain:
        msg = f"{name} is varied over a list of values, or a range as text such as '0.001..1', got {values!r}"
        raise OptionError(msg)
    if name == SUBSAMPLE:
        _require_sizes(plain)
    separator = ";" if any(option.name == spelled and option.listed for option in options_of(metric)) else ","
    return parse(f"{spelled}={separator.join(_listed(value, spelled) for value in plain)}", metric)


def _require_named(name: str, metric: type[Metric[Any]]) -> None:
    """Raise unless a metric has the setting, or all settings of a text that joins them."""
    named = {option.field: option for option in options_of(metric)}
    known = {SUBSAMPLE, *named, *(option.name for option in named.values())}
    parts = [part.strip().replace("-", "_") for part in name.split(TIE)]
    if unknown := [part for part in parts if part not in known or (part == SUBSAMPLE and len(parts) > 1)]:
        there = (*named, SUBSAMPLE)
        msg = f"{metric.info.name} has no setting {unknown[0]!r} to vary (settings: {', '.join(there)})"
        raise OptionError(with_suggestion(msg, unknown[0], [each for each in there if each != unknown[0]]))


def _require_sizes(values: Sequence[Any]) -> None:
    """Raise unless values are fractions or numbers of rows, or text."""
    for value in values:
        if isinstance(value, str) or (isinstance(value, float) and 0 < value <= 1):
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            msg = f"{SUBSAMPLE} takes fractions of the rows, such as 0.25, or whole numbers of rows, got {value!r}"
            raise OptionError(msg)


def _listed(value: Any, name: str) -> str:
    """Return a value as in a text of settings."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    if name != SUBSAMPLE or not isinstance(value, float):
        return str(value)
    return f"{Decimal(str(value)) * PERCENT:f}%"


def points(metric: Metric[Any], varied: Sequence[SweptSetting], *, all_combinations: bool) -> list[SweepPoint]:
    """Return the points of a sweep: the unchanged metric, then each value alone or all combinations of values."""
    names = [name for each in varied for name in each.name.split(TIE)]
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        msg = f"--vary {repeated} is given twice: list all its values in one --vary"
        raise OptionError(msg)
    count = (
        math.prod(len(each.values) for each in varied) if all_combinations else sum(len(each.values) for each in varied)
    )
    if count > MOST_POINTS:
        msg = f"--vary gives {count:,} points: at most {MOST_POINTS:,} are allowed"
        raise OptionError(msg)
    settings: list[list[tuple[str, Any, str]]] = [
        [(each.name, value, told) for value, told in zip(each.values, each.description, strict=True)] for each in varied
    ]
    alone = ((one,) for each in settings for one in each)
    combinations: Iterable[tuple[tuple[str, Any, str], ...]] = product(*settings) if all_combinations else alone
    return [SweepPoint({}, metric), *(_point(metric, combination) for combination in combinations)]


def _point(metric: Metric[Any], settings: Sequence[tuple[str, Any, str]]) -> SweepPoint:
    fields = {option.flag.removeprefix("--"): option.field for option in options_of(type(metric))}
    changed = {fields[each]: value for name, value, _ in settings if name != SUBSAMPLE for each in name.split(TIE)}
    size = next((value for name, value, _ in settings if name == SUBSAMPLE), None)
    return SweepPoint({name: told for name, _, told in settings}, replace(metric, **changed), size)


def _items(item: str, name: str, *, whole: bool) -> list[str]:
    """Return the log-spaced values of a range; any other text is a single value."""
    match = RANGE.fullmatch(item)
    if match is None:
        return [item]
    ends, percent = [match["low"].strip(), match["high"].strip()], ""
    if name == SUBSAMPLE and any(end.endswith("%") for end in ends):
        ends, percent = [end.removesuffix("%") for end in ends], "%"
    count = int(match["count"] or POINTS)
    try:
        low, high = map(float, ends)
    except ValueError:
        low = high = math.nan
    if not (0 < low < high < math.inf and 2 <= count <= MOST_POINTS):  # noqa: PLR2004 - the two ends
        msg = f"--vary {name} takes ranges of positive numbers, e.g. 0.001..1 or 0.001..1:7 for 7 values, got {item!r}"
        raise OptionError(msg)
    steps = (low * (high / low) ** (step / (count - 1)) for step in range(count))
    rounded = (round(value) if whole and not percent else value for value in steps)
    return [f"{value:.{DIGITS}g}{percent}" if isinstance(value, float) else str(value) for value in rounded]


def _is_fractional(option: Option) -> bool:
    """Return whether an option accepts numbers that are not integers."""
    try:
        option.parse("0.5")
    except OptionError:
        return False
    return True


def _size(text: str) -> float | int:
    """Return a number of rows, or a fraction given in percent."""
    share = text.endswith("%")
    try:
        size = float(text.removesuffix("%")) / PERCENT if share else int(text)
    except ValueError:
        size = math.nan
    if not (0 < size <= 1 if share else size >= 1):
        msg = f"--vary {SUBSAMPLE} takes percentages of the rows, e.g. 25%, or numbers of rows, got {text!r}"
        raise OptionError(msg)
    return size


def _told(value: Any, name: str) -> str:
    """Return a value as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(_told(item, name) for item in value)
    if isinstance(value, float):
        return f"{PERCENT * value:.10g} %" if name == SUBSAMPLE else f"{value:.10g}"
    return str(value)
