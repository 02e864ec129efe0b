"""Settings that a sweep varies: options of a metric, and the number of rows."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from calcheck.errors import OptionError
from calcheck.options import options_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from calcheck.metrics.base import Metric
    from calcheck.options import Option

SUBSAMPLE = "subsample"
POINTS, MOST_POINTS = 7, 1000  # of a range, and of a sweep
PERCENT = 100
DIGITS = 4  # of the values of a range
RANGE = re.compile(r"(?P<low>[^.:].*?)\.\.(?P<high>[^:]+)(?::(?P<count>\d+))?")


@dataclass(frozen=True)
class SweptSetting:
    """A setting and its values.

    Parameters
    ----------
    name : str
        ``"subsample"``, or an option as on the command line, without its dashes: ``"gamma-y"``.
    values : tuple
        What it is set to; of subsample a share of the rows (float), or their number (int).
    description : tuple of str
        The values as they are shown.
    """

    name: str
    values: tuple[Any, ...]
    description: tuple[str, ...]


@dataclass(frozen=True)
class SweepPoint:
    """A metric and how many rows it is of.

    Parameters
    ----------
    description : dict
        What is varied, by name, as it is shown; nothing where all is as the user set it.
    metric : Metric
        The metric with its options.
    size : float or int or None
        A share of the rows, or their number; None for all.
    """

    description: dict[str, str]
    metric: Metric[Any, Any]
    size: float | int | None = None

    def rows(self, n: int) -> int:
        """Count its rows, of n.

        Raises
        ------
        OptionError
            There are not so many.
        """
        if self.size is None:
            return n
        rows = round(n * self.size) if isinstance(self.size, float) else self.size
        if not 1 <= rows <= n:
            msg = f"--vary {SUBSAMPLE}={self.description[SUBSAMPLE]} is {rows:,} rows, and there are {n:,}"
            raise OptionError(msg)
        return rows


def parse(text: str, metric: type[Metric[Any, Any]]) -> SweptSetting:
    """Read a setting and its values: ``"lambda=0.001..1:7"``, ``"draws=1,2,5"``, ``"subsample=25%,50%"``.

    Raises
    ------
    OptionError
        It is no setting of the metric, or a value is none that it can have.
    """
    spelled, equals, listed = (part.strip() for part in text.partition("="))
    name = spelled.removeprefix("--").replace("_", "-")
    known = {option.flag.removeprefix("--"): option for option in options_of(metric)}
    if not equals or not listed or name not in (*known, SUBSAMPLE):
        there = ", ".join((*known, SUBSAMPLE))
        takes = "--vary takes NAME=VALUES, as in lambda=0.001..1 or draws=1,2,5"
        msg = f"{takes}; for {metric.name} the names are {there}, got {text!r}"
        raise OptionError(msg)
    read = _size if name == SUBSAMPLE else partial(known[name].parse, called=f"--vary {name}")
    whole = name == SUBSAMPLE or not _is_fractional(known[name])
    items = [found for item in listed.split(",") for found in _items(item.strip(), name, whole=whole)]
    values = dict.fromkeys(read(item) for item in items)
    if len(values) > MOST_POINTS:
        msg = f"--vary {name} has {len(values):,} values: at most {MOST_POINTS:,}"
        raise OptionError(msg)
    return SweptSetting(name, tuple(values), tuple(_told(value, name) for value in values))


def points(metric: Metric[Any, Any], varied: Sequence[SweptSetting], *, all_combinations: bool) -> list[SweepPoint]:
    """List what is computed: first the metric as it is, then each value alone, or all combinations of values.

    Raises
    ------
    OptionError
        An option cannot have a value, a setting is there twice, or the points are too many.
    """
    names = [each.name for each in varied]
    if len(set(names)) < len(names):
        msg = f"--vary {next(name for name in names if names.count(name) > 1)} is given twice: list its values in one"
        raise OptionError(msg)
    count = (
        math.prod(len(each.values) for each in varied) if all_combinations else sum(len(each.values) for each in varied)
    )
    if count > MOST_POINTS:
        msg = f"--vary makes {count:,} points: at most {MOST_POINTS:,}"
        raise OptionError(msg)
    settings: list[list[tuple[str, Any, str]]] = [
        [(each.name, value, told) for value, told in zip(each.values, each.description, strict=True)] for each in varied
    ]
    alone = ((one,) for each in settings for one in each)
    combinations: Iterable[tuple[tuple[str, Any, str], ...]] = product(*settings) if all_combinations else alone
    return [SweepPoint({}, metric), *(_point(metric, combination) for combination in combinations)]


def _point(metric: Metric[Any, Any], settings: Sequence[tuple[str, Any, str]]) -> SweepPoint:
    fields = {option.flag.removeprefix("--"): option.field for option in options_of(type(metric))}
    changed = {fields[name]: value for name, value, _ in settings if name != SUBSAMPLE}
    size = next((value for name, value, _ in settings if name == SUBSAMPLE), None)
    return SweepPoint({name: told for name, _, told in settings}, replace(metric, **changed), size)


def _items(item: str, name: str, *, whole: bool) -> list[str]:
    """Take a range apart into values at equal ratios; anything else is one value.

    Raises
    ------
    OptionError
        Its ends are no positive numbers, or it has too few or too many values.
    """
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
    if not (0 < low < high < math.inf and 2 <= count <= MOST_POINTS):  # noqa: PLR2004 - both ends
        msg = f"--vary {name} takes ranges of positive numbers, as in 0.001..1 or 0.001..1:7 for 7 values, got {item!r}"
        raise OptionError(msg)
    steps = (low * (high / low) ** (step / (count - 1)) for step in range(count))
    rounded = (round(value) if whole and not percent else value for value in steps)
    return [f"{value:.{DIGITS}g}{percent}" if isinstance(value, float) else str(value) for value in rounded]


def _is_fractional(option: Option) -> bool:
    """Tell whether an option takes numbers that are not whole."""
    try:
        option.parse("0.5")
    except OptionError:
        return False
    return True


def _size(text: str) -> float | int:
    """Read a number of rows, or a share of them in percent.

    Raises
    ------
    OptionError
        It is neither.
    """
    share = text.endswith("%")
    try:
        size = float(text.removesuffix("%")) / PERCENT if share else int(text)
    except ValueError:
        size = math.nan
    if not (0 < size <= 1 if share else size >= 1):
        msg = f"--vary {SUBSAMPLE} takes shares of the rows, as in 25%, or numbers of rows, got {text!r}"
        raise OptionError(msg)
    return size


def _told(value: Any, name: str) -> str:
    """Write a value as it is shown."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{PERCENT * value:.10g} %" if name == SUBSAMPLE else f"{value:.10g}"
    return str(value)
