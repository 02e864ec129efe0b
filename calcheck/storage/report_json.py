"""Reports that were stored as JSON, read back as what they were."""

from __future__ import annotations

import json
import math
import types
from collections import Counter
from dataclasses import fields, is_dataclass
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from calcheck.errors import FileError
from calcheck.io.files import File
from calcheck.report import SCHEMA_VERSION, Report

LARGEST_BYTES = 1 << 26
DEEPEST = 32  # objects in objects
LARGEST_PART = 1 << 20  # letters of all settings, and of what is told of the input
SHOWN = 40  # letters of a value that messages quote
WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false", type(None): "null"}
HOW = "calcheck evaluate FILE --format json writes reports"


class SchemaError(Exception):
    """A value is not of its type."""


def read_report(path: str) -> Report:
    """Read a report that was stored with ``--format json``.

    Parameters
    ----------
    path : str
        The file, or ``"-"`` for standard input.

    Raises
    ------
    FileError
        It cannot be read, is too large, is no JSON, or is not a report of this version of the schema.
    """
    file = File(path)
    told = _json(file)
    try:
        return _report(told)
    except SchemaError as error:
        msg = f"{file.display_name} {error}"
        raise FileError(msg) from error


def _report(told: Any) -> Report:
    _require_shallow(told, DEEPEST)
    if not isinstance(told, dict) or "schema_version" not in told:
        msg = f"is no report of calcheck: it has no schema_version. {HOW}"
        raise SchemaError(msg)
    if (version := told["schema_version"]) != SCHEMA_VERSION:
        msg = f"is of schema version {_shown(version)}; this calcheck reads {SCHEMA_VERSION}. Make the report again"
        raise SchemaError(msg)
    for part in ("settings", "input"):
        if (letters := len(json.dumps(told.get(part)))) > LARGEST_PART:
            msg = (
                f"is no report of calcheck: its {part} are {letters:,} letters long, at most {LARGEST_PART:,} are read"
            )
            raise SchemaError(msg)
    report: Report = from_json(Report, told, "")
    return report


def _require_shallow(told: Any, room: int) -> None:
    """Raise where so much is nested that those who walk through it would lose their way."""
    if not room:
        msg = f"is no report of calcheck: more than {DEEPEST} objects and lists are nested in each other"
        raise SchemaError(msg)
    for part in told.values() if isinstance(told, dict) else told if isinstance(told, list) else ():
        _require_shallow(part, room - 1)


def _json(file: File) -> Any:
    """Parse a file as JSON in the strict sense: no NaN, no member twice."""
    try:
        with file.open() as stream:
            content = stream.read(LARGEST_BYTES + 1)
    except OSError as error:
        msg = f"{file.display_name} cannot be read: {error.strerror}"
        raise FileError(msg) from error
    if len(content) > LARGEST_BYTES:
        msg = f"{file.display_name} is larger than {LARGEST_BYTES >> 20} MiB, which no report is"
        raise FileError(msg)
    try:
        return json.loads(
            content.decode("utf-8-sig"),
            parse_constant=_refused,
            parse_float=_finite,
            object_pairs_hook=_each_once,
        )
    except (ValueError, RecursionError) as error:
        msg = f"{file.display_name} is no JSON: {error}. {HOW}"
        raise FileError(msg) from error


def _refused(constant: str) -> NoReturn:
    msg = f"{constant} is no number of JSON"
    raise ValueError(msg)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        msg = f"{text} is beyond all numbers"
        raise ValueError(msg)
    return value


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        msg = f"{twice[:SHOWN]!r} comes twice in one object"
        raise ValueError(msg)
    return found


def from_json(hint: Any, value: Any, where: str) -> Any:
    """Make a value of a type from what JSON says, or raise :class:`SchemaError`."""
    kind = next((kind for kind in _kinds(hint) if _fits(kind, value)), None)
    if kind is None:
        msg = f"is no report of calcheck: {where} must be {_in_words(hint)}, got {_shown(value)}"
        raise SchemaError(msg)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        return tuple(from_json(arguments[0], item, f"{where}[{place}]") for place, item in enumerate(value))
    if origin is dict:
        return {name: from_json(arguments[1], item, f"{where}.{name}") for name, item in value.items()}
    if is_dataclass(kind):
        return _object(kind, value, where)
    return float(value) if kind is float else value


def _object(owner: Any, value: dict[str, Any], where: str) -> Any:
    """Make a dataclass; it must have all of its fields, but for those added later, and no other."""
    hints = get_type_hints(owner)
    names = [declared.name for declared in fields(owner)]
    added = {declared.name for declared in fields(owner) if declared.metadata.get("added")}
    for told, wrong in (("lacks", set(names) - set(value) - added), ("has an unknown", set(value) - set(names))):
        if wrong:
            name = next(name for name in (*names, *value) if name in wrong)
            msg = f"is no report of this calcheck: {where or 'it'} {told} {_shown(name)}"
            raise SchemaError(msg)
    return owner(
        **{name: from_json(hints[name], value[name], f"{where}.{name}".lstrip(".")) for name in names if name in value}
    )


def _kinds(hint: Any) -> tuple[Any, ...]:
    """Take a union apart."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _fits(kind: Any, value: Any) -> bool:
    """Tell whether a value looks like a type from the outside."""
    origin = get_origin(kind)
    if origin is Literal:
        return value in get_args(kind) and not isinstance(value, bool)
    if origin is dict or is_dataclass(kind):
        return isinstance(value, dict)
    if origin is tuple:
        return isinstance(value, list)
    if kind in (int, float):
        return isinstance(value, (int, kind)) and not isinstance(value, bool)
    return kind is Any or isinstance(value, kind)


def _in_words(hint: Any) -> str:
    told = []
    for kind in _kinds(hint):
        if get_origin(kind) is Literal:
            told.append(f"one of {', '.join(map(str, get_args(kind)))}")
        elif get_origin(kind) is tuple:
            told.append("a list")
        else:
            told.append(WORDS.get(kind, "an object"))
    return " or ".join(told)


def _shown(value: Any) -> str:
    """Quote a value as JSON, its beginning if it is long."""
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
