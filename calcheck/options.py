"""Options declared as dataclass fields, with one rule for their names and parsing."""

import math
import types
from collections.abc import Iterable
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from itertools import chain
from typing import Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

from calcheck.errors import OptionError, with_suggestion

RANGE = "linspace:"  # Beginning of a text that stands for evenly spaced numbers: `linspace:0:1:5`
STEPS = ".."  # Separator of the first and the last of consecutive whole numbers: `2..20`
MAX_DESCRIPTION = 80  # Maximum number of characters of a wrong value in messages
MAX_SPACED = 10_000  # Maximum count of evenly spaced numbers
LISTED = {int: "whole numbers", float: "numbers", str: "names"}
TRUTHS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def option(  # noqa: PLR0913 - keywords
    text: str,
    default: Any = None,
    *,
    metavar: str | None = None,
    short: str | None = None,
    by_hand: str = "",
    repeated: bool = False,
    choices: tuple[str, ...] = (),
    off: tuple[str, str] | None = None,
    common: bool = False,
) -> Any:
    """Return a field that declares an option; ``short`` is a further flag; ``off`` is a flag for 0, with its help."""
    metadata = {"help": text, "metavar": metavar, "short": short, "by_hand": by_hand, "repeated": repeated}
    metadata["common"] = common
    return field(default=default, metadata={**metadata, "choices": choices, "off": off})


Exclusive = tuple[tuple[frozenset[str], ...], ...]


@dataclass(frozen=True)
class Option:
    """One field of a dataclass as an option."""

    field: str
    hint: Any  # Type of the field
    default: Any  # Value if the option is not given; None if it depends on the data
    help: str = ""  # Help text
    metavar: str | None = None  # Placeholder of the value in the help; by default, the placeholder of its type
    # short, by_hand, repeated, common: as in `option`
    short: str | None = None
    by_hand: str = ""
    repeated: bool = False
    common: bool = False
    off: "Option | None" = None  # Flag that stands for the number 0
    # Sets of options of which only one may be given; each is a list of alternatives
    exclusive: Exclusive = ()

    @property
    def name(self) -> str:
        """Name of the option in reports: the field without the trailing underscore that avoids Python keywords."""
        return self.field.rstrip("_")

    @property
    def placeholder(self) -> str:
        """Placeholder of the value in the help."""
        return self.metavar or _metavar(self.hint)

    @property
    def listed(self) -> bool:
        """Whether the value is a list, separated by commas on the command line."""
        return _item(self.hint) is not None and not self.repeated

    @property
    def flag(self) -> str:
        """Long flag of the option on the command line."""
        return flag_of(self.field)

    @property
    def flags(self) -> tuple[str, ...]:
        """All flags of the option on the command line."""
        return (self.flag, self.short) if self.short else (self.flag,)

    def parse(self, text: str, called: str | None = None) -> Any:
        """Return the value parsed from text; a list is separated by commas, and becomes a tuple."""
        try:
            return _parse_any(text, self.hint)
        except ValueError:
            expected = f"{called or self.flag} takes {_expected(self.hint)}, got {text!r}"
            raise OptionError(with_suggestion(expected, text, choices_of(self.hint))) from None

    def take(self, value: Any, called: str) -> Any:
        """Return the value of typed data, as from TOML or JSON; a list becomes a tuple.

        None is accepted if it is the default, and a single value in place of a list. A list of strings is equivalent to
        text with commas, for an option that takes either.
        """
        if value is None and self.default is None:
            return None
        item = str if self.repeated else _item(self.hint)
        if (
            item in (int, float)
            and isinstance(value, str)
            and (value in choices_of(self.hint) or value.startswith(RANGE) or STEPS in value)
        ):
            return self.parse(value, called)
        if item is not None and item is not str and _fits(value, item):
            value = [value]
        listed = isinstance(value, list | tuple) and bool(value or self.default == ())
        if item is not None and listed and all(_fits(each, item) for each in value):
            return tuple(_parse_any(str(each), item) for each in value)
        if item is None and listed and str in _kinds(self.hint) and all(_fits(each, str) for each in value):
            return ",".join(value)
        if _fits(value, self.hint if item is None or self.repeated else item):
            return self.parse(str(value), called)
        expected = "a list of texts" if self.repeated else _expected(self.hint)
        expected = "the name of a column" if (expected, self.metavar) == ("text", "COLUMN") else expected
        kinds = {str: f"the text {value!r}", dict: "a table", list: f"the list {value}", bool: str(value).lower()}
        text = kinds.get(type(value), type(value).__name__ if hasattr(value, "shape") else str(value))
        raise OptionError(
            f"{called} takes {expected}, got {text if len(text) <= MAX_DESCRIPTION else f'{text[:MAX_DESCRIPTION]}…'}"
        )

    def text(self, value: Any) -> str:
        """Return a value as it is given on the command line."""
        if isinstance(value, tuple):
            return ",".join(map(self.text, value))
        return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Argument:
    """A positional parameter: a file, or several, that a study reads."""

    name: str
    metavar: str
    text: str
    hint: Any = str
    optional: bool = False


@dataclass(frozen=True)
class Group:
    """Options in one panel of the help."""

    panel: str
    owners: tuple[type[Any], ...] = ()  # The dataclasses that declare the options
    metrics: tuple[str, ...] = ()  # Metrics whose options these are
    only: frozenset[str] = frozenset()  # The options that the study has; by default all
    omitted: frozenset[str] = frozenset()  # Options that it does not have

    def keep(self, *names: str) -> Self:
        """Return the group with these options only."""
        return replace(self, only=frozenset(names))

    def omit(self, *names: str) -> Self:
        """Return the group without these options."""
        return replace(self, omitted=frozenset(names))

    def has(self, name: str) -> bool:
        """Return whether an option of the classes is one of the study."""
        return name not in self.omitted and (not self.only or name in self.only)


def group(panel: str, *owners: type[Any]) -> Group:
    """Return the options of classes as a group."""
    return Group(panel, owners)


def options_of(owner: type[Any]) -> tuple[Option, ...]:
    """Return the options that a dataclass declares, in order.

    Its attribute ``exclusive``, if any, names the options that contradict each other.

    >>> @dataclass
    ... class Example:
    ...     lambda_: float = option(0.1, "Regularizer.")
    >>> [(found.name, found.flag, found.parse("2")) for found in options_of(Example)]
    [('lambda', '--lambda', 2.0)]
    """
    if owner not in _DECLARED:
        hints, exclusive = get_type_hints(owner), getattr(owner, "exclusive", ())
        _DECLARED[owner] = tuple(_option(declared, hints[declared.name], exclusive) for declared in fields(owner))
    return _DECLARED[owner]


_DECLARED: dict[type[Any], tuple[Option, ...]] = {}


def _option(declared: Field[Any], hint: Any, exclusive: Exclusive) -> Option:
    """Return the option that a field declares."""
    metadata = dict(declared.metadata)
    choices, off = metadata.pop("choices", ()), metadata.pop("off", None)
    if off is not None:
        exclusive = (*exclusive, (frozenset({declared.name}), frozenset({off[0]})))
        off = Option(off[0], bool, default=False, help=off[1], exclusive=exclusive)
    default = None if declared.default is MISSING else declared.default
    hint = Literal[choices] if choices else hint
    return Option(declared.name, hint, default, off=off, exclusive=exclusive, **metadata)


def is_excluded(field: str, given: set[str], options: Iterable[Option]) -> bool:
    """Return whether one of the given options excludes a field."""
    return any(
        field in part and any(other & given for other in parts if other is not part)
        for parts in {parts for option in options for parts in option.exclusive}
        for part in parts
    )


def flag_of(field_name: str) -> str:
    """Return the command-line flag of a field.

    >>> flag_of("lambda_"), flag_of("gamma_x")
    ('--lambda', '--gamma-x')
    """
    return "--" + field_name.rstrip("_").replace("_", "-")


def require_positive_option(name: str, value: float | None) -> None:
    """Raise an error unless an option is None or a positive, finite number."""
    if value is not None and not 0 < value < math.inf:
        raise OptionError(f"{flag_of(name)} must be a positive number, got {value}")


def require_share_option(name: str, value: float, *, closed: bool = False) -> None:
    """Raise an error unless an option is between 0 and 1, strictly unless ``closed``."""
    if not 0 < value < 1 and not (closed and value in (0, 1)):
        between = "between" if closed else "strictly between"
        raise OptionError(f"{flag_of(name)} must lie {between} 0 and 1, got {value:g}{share_suggestion(value)}")


def share_suggestion(value: float) -> str:
    """Return a question whether a percentage was meant as a share; an empty string if it cannot be a percentage.

    >>> share_suggestion(95), share_suggestion(-1)
    (': did you mean 0.95?', '')
    """
    return f": did you mean {value / 100:g}?" if 1 < value < 100 else ""  # noqa: PLR2004 - percent


def require_count_option(name: str, value: int, most: int | None = None) -> None:
    """Raise an error unless an option is at least 1 and at most ``most``, if that is given."""
    if value < 1 or (most is not None and value > most):
        msg = f"{flag_of(name)} must be at least 1{'' if most is None else f' and at most {most:,}'}, got {value}"
        raise OptionError(msg)


TOLERANCE = 0.2  # Default relative error of intervals that does not matter
LEVEL_TOLERANCE = 1e-9  # Levels within this distance are equal
MAX_LEVELS = 1_000  # Maximum number of quantile levels in a list


class NotNegative:
    """A dataclass of options, of which some must be at least 0."""

    not_negative: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name in self.not_negative:
            if (getattr(self, name) or 0) < 0:
                raise OptionError(f"{flag_of(name)} must be >= 0, got {getattr(self, name)}")


def require_levels_option(name: str, levels: tuple[float, ...], *, closed: bool = False) -> None:
    """Raise an error unless an option is a list of 1 to 1,000 different quantile levels; 0 and 1 only if ``closed``."""
    if not 1 <= len(levels) <= MAX_LEVELS:
        raise OptionError(f"{flag_of(name)} takes 1 to {MAX_LEVELS:,} levels, got {len(levels):,}")
    for level in levels:
        require_share_option(name, level, closed=closed)
    if repeated := [level for level in levels if levels.count(level) > 1]:
        raise OptionError(f"{flag_of(name)} must differ, got {repeated[0]:g} twice")


def choices_of(hint: Any) -> tuple[str, ...]:
    """Return the literal values that a type allows."""
    return tuple(word for kind in _kinds(hint) if get_origin(kind) is Literal for word in get_args(kind))


def _kinds(hint: Any) -> tuple[Any, ...]:
    """Return the members of a union, without None."""
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(kind for kind in get_args(hint) if kind is not type(None))
    return (hint,)


def _item(hint: Any) -> Any:
    """Return the type of the items of a list-valued option; None for an option with a single value."""
    return next((get_args(kind)[0] for kind in _kinds(hint) if get_origin(kind) is tuple), None)


def _fits(value: Any, hint: Any) -> bool:
    """Return whether typed data has a type that an option takes."""
    kinds = _kinds(hint)
    text = str in kinds or any(get_origin(kind) is Literal for kind in kinds)
    fits = {bool: bool in kinds, int: int in kinds or float in kinds, float: float in kinds, str: text and value}
    return bool(fits.get(type(value)))


def _parse_items(text: str, item: Any) -> tuple[Any, ...]:
    """Return the items that a part of a list stands for."""
    if item is float and text.startswith(RANGE):
        return _spaced(text)
    if item in (int, float) and STEPS in text:
        first, last = map(int, text.split(STEPS))
        if not 0 <= last - first < MAX_SPACED:
            raise ValueError(text)
        return tuple(map(item, range(first, last + 1)))
    return (_parse_any(text, item),)


def _spaced(text: str) -> tuple[float, ...]:
    """Return the evenly spaced numbers that ``linspace:START:STOP:COUNT`` stands for, those of :func:`numpy.linspace`.

    >>> _spaced("linspace:0.25:0.75:3")
    (0.25, 0.5, 0.75)
    """
    start, stop, count = text.removeprefix(RANGE).split(":")
    first, last, steps = _parse(start, float), _parse(stop, float), int(count) - 1
    if not 1 <= steps < MAX_SPACED:
        raise ValueError(text)
    step = (last - first) / steps
    return (*(first + step * place for place in range(steps)), last)


def _parse_any(text: str, hint: Any) -> Any:
    """Return the value parsed as the first member of a union that admits it."""
    for kind in _kinds(hint):
        try:
            return _parse(text, kind)
        except ValueError:
            continue
    raise ValueError(text)


def _parse(text: str, kind: Any) -> Any:
    if kind is bool:
        if text.lower() not in TRUTHS:
            raise ValueError(text)
        return TRUTHS[text.lower()]
    if get_origin(kind) is Literal:
        if text not in get_args(kind):
            raise ValueError(text)
        return text
    if get_origin(kind) is tuple:
        parts = [part.strip() for part in text.split(",") if part.strip()]
        if not parts:
            raise ValueError(text)
        return tuple(chain.from_iterable(_parse_items(part, get_args(kind)[0]) for part in parts))
    value = kind(text)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(text)
    return value


def _metavar(hint: Any) -> str:
    if (item := _item(hint)) is not None:
        return "|".join([f"{_metavar(item)},…", *choices_of(hint)])
    words = {int: "INT", float: "FLOAT", str: "TEXT"}
    parts = [word for kind in _kinds(hint) if (word := words.get(kind))]
    return "|".join([*parts, *choices_of(hint)])


def _expected(hint: Any) -> str:
    words = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
    parts = [word for kind in _kinds(hint) if (word := words.get(kind))]
    if (item := _item(hint)) is not None:
        parts = [f"a list of {LISTED.get(item) or _expected(item)}"]
    return " or ".join([*parts, *([f"one of {', '.join(choices_of(hint))}"] if choices_of(hint) else [])])
