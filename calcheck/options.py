"""Options as fields of dataclasses: declared once, spelled and parsed by one rule everywhere."""

from __future__ import annotations

import math
import types
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from calcheck.errors import OptionError

TRUTHS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def option(default: Any, text: str, *, metavar: str | None = None, short: str | None = None, by_hand: str = "") -> Any:
    """Declare a field of a dataclass as an option.

    Parameters
    ----------
    default : Any
        What holds if the user says nothing.
    text : str
        Help, one or two sentences.
    metavar : str, optional
        What help calls the value, where its type does not say enough.
    short : str, optional
        A second, short flag: ``"-o"``.
    by_hand : str
        What it says, if that is not for a file of settings to say.
    """
    return field(default=default, metadata={"help": text, "metavar": metavar, "short": short, "by_hand": by_hand})


@dataclass(frozen=True)
class Option:
    """One field of a dataclass as an option.

    Parameters
    ----------
    field : str
        The field's name.
    hint : Any
        Its type.
    default : Any
        What holds if the user says nothing; None where that depends on the data.
    help : str
        What it does.
    metavar : str
        What help calls the value.
    short : str or None
        A second, short flag.
    by_hand : str
        What it says, if that is not for a file of settings to say.
    """

    field: str
    hint: Any
    default: Any
    help: str
    metavar: str
    short: str | None = None
    by_hand: str = ""

    @property
    def name(self) -> str:
        """The option's name in reports; a trailing underscore keeps a field from being a Python keyword."""
        return self.field.rstrip("_")

    @property
    def flag(self) -> str:
        """The option on the command line."""
        return flag_of(self.field)

    @property
    def flags(self) -> tuple[str, ...]:
        """All spellings of the option on the command line."""
        return (self.flag, self.short) if self.short else (self.flag,)

    @property
    def repeated(self) -> bool:
        """Whether it may be given several times."""
        return isinstance(self.default, tuple)

    def parse(self, text: str, called: str | None = None) -> Any:
        """Read a value.

        Parameters
        ----------
        text : str
            The value, as on the command line.
        called : str, optional
            What the option is called where that was said; its flag if nothing else is said.

        Raises
        ------
        OptionError
            The text is no value of the option's type.
        """
        for kind in _kinds(self.hint):
            try:
                return _parse(text, kind)
            except ValueError:
                continue
        msg = f"{called or self.flag} takes {_in_words(self.hint)}, got {text!r}"
        raise OptionError(msg)

    def take(self, value: Any, called: str) -> Any:
        """Read a value that has a type of its own, as in TOML; a list of texts is what commas separate.

        Raises
        ------
        OptionError
            It is no value of the option's type.
        """
        kinds = _kinds(self.hint)
        if isinstance(value, list) and all(isinstance(item, str) and item for item in value):
            if self.repeated:
                return value
            if str in kinds and value:
                return ",".join(value)
        words = str in kinds or any(get_origin(kind) is Literal for kind in kinds)
        fits = {bool: bool in kinds, int: int in kinds or float in kinds, float: float in kinds, str: words and value}
        if fits.get(type(value)):
            return self.parse(str(value), called)
        taken = "a list of texts" if self.repeated else _in_words(self.hint)
        msg = f"{called} takes {taken}, got {_told(value)}"
        raise OptionError(msg)


def options_of(owner: type[Any]) -> tuple[Option, ...]:
    """List the options that a dataclass declares, in order.

    Examples
    --------
    >>> @dataclass
    ... class Example:
    ...     lambda_: float = option(0.1, "Regularizer.")
    >>> [(found.name, found.flag, found.parse("2")) for found in options_of(Example)]
    [('lambda', '--lambda', 2.0)]
    """
    hints = get_type_hints(owner)
    found = []
    for declared in fields(owner):
        hint, metadata = hints[declared.name], declared.metadata
        default = None if declared.default is MISSING else declared.default
        metavar = metadata.get("metavar") or _metavar(hint)
        found.append(
            Option(
                declared.name,
                hint,
                default,
                metadata.get("help", ""),
                metavar,
                metadata.get("short"),
                metadata.get("by_hand", ""),
            )
        )
    return tuple(found)


def flag_of(field_name: str) -> str:
    """Spell a field as its option on the command line.

    Examples
    --------
    >>> flag_of("lambda_"), flag_of("gamma_x")
    ('--lambda', '--gamma-x')
    """
    return "--" + field_name.rstrip("_").replace("_", "-")


def require_positive_option(name: str, value: float | None) -> None:
    """Raise unless an option is absent or a positive, finite number.

    Raises
    ------
    OptionError
        It is something else.
    """
    if value is not None and not 0 < value < math.inf:
        msg = f"{flag_of(name)} must be a positive number, got {value}"
        raise OptionError(msg)


def require_share_option(name: str, value: float) -> None:
    """Raise unless an option is a number strictly between 0 and 1.

    Raises
    ------
    OptionError
        It is something else.
    """
    if not 0 < value < 1:
        msg = f"{flag_of(name)} must lie strictly between 0 and 1, got {value}"
        raise OptionError(msg)


def require_count_option(name: str, value: int, most: int | None = None) -> None:
    """Raise unless an option is a whole number of at least 1 and, if there is a limit, at most ``most``.

    Raises
    ------
    OptionError
        It is something else.
    """
    if value < 1 or (most is not None and value > most):
        msg = f"{flag_of(name)} must be at least 1{'' if most is None else f' and at most {most:,}'}, got {value}"
        raise OptionError(msg)


def choices_of(hint: Any) -> tuple[str, ...]:
    """List the words that a type admits."""
    return tuple(word for kind in _kinds(hint) if get_origin(kind) is Literal for word in get_args(kind))


def _kinds(hint: Any) -> tuple[Any, ...]:
    """Take a union apart, without None."""
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(kind for kind in get_args(hint) if kind is not type(None))
    return (hint,)


def _parse(text: str, kind: Any) -> Any:
    if kind is bool:
        if text.lower() not in TRUTHS:
            raise ValueError(text)
        return TRUTHS[text.lower()]
    if get_origin(kind) is Literal:
        if text not in get_args(kind):
            raise ValueError(text)
        return text
    value = kind(text)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(text)
    return value


def _metavar(hint: Any) -> str:
    words = {int: "INT", float: "FLOAT", str: "TEXT"}
    parts = [word for kind in _kinds(hint) if (word := words.get(kind))]
    return "|".join([*parts, *choices_of(hint)])


def _in_words(hint: Any) -> str:
    words = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
    parts = [word for kind in _kinds(hint) if (word := words.get(kind))]
    return " or ".join([*parts, *([f"one of {', '.join(choices_of(hint))}"] if choices_of(hint) else [])])


def _told(value: Any) -> str:
    """Describe a value of the wrong type."""
    kinds = {str: f"the text {value!r}", dict: "a table", list: f"the list {value}", bool: str(value).lower()}
    return kinds.get(type(value), str(value))
