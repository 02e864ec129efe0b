"""Reports and recalibration maps as JSON."""

import json
import math
import types
from collections import Counter
from dataclasses import asdict, fields, is_dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from calcheck.core.text import extract, is_page
from calcheck.errors import FileError
from calcheck.io.files import File
from calcheck.reports import SCHEMA_VERSION, Report
from calcheck.storage.atomic_write import write_text

if TYPE_CHECKING:
    from calcheck.recalibration.methods import RecalibrationMap

HOW_TO_WRITE = "calcheck recalibrate FILE --export MAP.json writes maps"
CHECKSUM = "checksum"
LARGEST_BYTES = 1 << 26  # Maximum size of a file
MAX_DEPTH = 32  # Maximum nesting depth
MAX_PART_LENGTH = 1 << 20  # Maximum number of characters of the settings, and of the input description
SHOWN = 40  # Maximum number of characters of a value in messages
TYPE_NAMES = {int: "an integer", float: "a number", str: "text", bool: "true or false", type(None): "null"}
HOW = "calcheck evaluate FILE --format json writes reports"


def write_map(found: "RecalibrationMap", path: str) -> None:
    """Write a map as JSON; numbers are read again without loss."""
    content = asdict(found)
    write_text(path, json.dumps({**content, CHECKSUM: _checksum(content)}, indent=2, allow_nan=False) + "\n")


def read_map(path: str) -> "RecalibrationMap":
    """Return a map that was written by :func:`write_map`."""
    from pydantic import TypeAdapter, ValidationError

    from calcheck.recalibration.methods import VERSION, RecalibrationMap

    file = File(path)
    content = read_json(file, HOW_TO_WRITE)
    if not isinstance(content, dict) or "calcheck_map" not in content:
        raise FileError(f"{file.display_name} is not a recalibration map: it has no calcheck_map. {HOW_TO_WRITE}")
    if content["calcheck_map"] != VERSION:
        version = content["calcheck_map"]
        msg = f"{file.display_name} has the map version {version!r}; this calcheck reads {VERSION}. Fit the map again"
        raise FileError(msg)
    stated = content.pop(CHECKSUM, None)
    if stated != _checksum(content):
        msg = f"{file.display_name} was changed after it was written: its checksum does not match. Fit the map again"
        raise FileError(msg)
    try:
        found: RecalibrationMap = TypeAdapter(RecalibrationMap).validate_json(json.dumps(content), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        msg = f"{file.display_name} is not a recalibration map of this calcheck: {where}: {first['msg']}"
        raise FileError(msg) from error
    return found


def _checksum(content: dict[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True, allow_nan=False).encode()).hexdigest()


class SchemaError(Exception):
    """A value does not match its declared type."""


def read_report(path: str) -> Report:
    """Return a report that was stored with ``--format json``, or that is inside a page of ``calcheck report``."""
    file = File(path)
    content = read_json(file, HOW)
    try:
        return _report(content)
    except SchemaError as error:
        raise FileError(f"{file.display_name} {error}") from error


def _report(content: Any) -> Report:
    _require_shallow(content, MAX_DEPTH)
    if not isinstance(content, dict) or "schema_version" not in content:
        raise SchemaError(f"is not a calcheck report: it has no schema_version. {HOW}")
    if (version := content["schema_version"]) != SCHEMA_VERSION:
        msg = f"has schema version {_shown(version)}; this calcheck reads {SCHEMA_VERSION}. Create the report again"
        raise SchemaError(msg)
    for part in ("settings", "input"):
        if (length := len(json.dumps(content.get(part)))) > MAX_PART_LENGTH:
            msg = f"is not a calcheck report: {part!r} has {length:,} characters, at most {MAX_PART_LENGTH:,} are read"
            raise SchemaError(msg)
    report: Report = from_json(Report, content, "")
    return report


def _require_shallow(value: Any, room: int) -> None:
    """Raise if objects and lists are nested deeper than ``room`` levels."""
    if not room:
        raise SchemaError(f"is not a calcheck report: more than {MAX_DEPTH} objects and lists are nested in each other")
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _require_shallow(part, room - 1)


def read_json(file: File, how: str) -> Any:
    """Return the content of a JSON file; NaN, infinite numbers and duplicate names are errors."""
    try:
        with file.open() as stream:
            content = stream.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise FileError(f"{file.display_name} cannot be read: {error.strerror}") from error
    if len(content) > LARGEST_BYTES:
        raise FileError(f"{file.display_name} is larger than {LARGEST_BYTES >> 20} MiB, the maximum size")
    try:
        text = content.decode("utf-8-sig")
        found = extract(text, "report") if is_page(text) else [text]
        if len(found) != 1:
            held = f"holds the reports of {len(found)} models" if found else "is a page without a report of calcheck"
            msg = f"{file.display_name} {held}. calcheck report FILE writes pages with the report of one model"
            raise FileError(msg)
        return json.loads(found[0], parse_constant=_refused, parse_float=_finite, object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{file.display_name} is not valid JSON: {error}. {how}") from error


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is out of the range of float64")
    return value


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"{twice[:SHOWN]!r} occurs twice in one object")
    return found


def from_json(hint: Any, value: Any, where: str) -> Any:
    """Return a value of a declared type from parsed JSON, or raise :class:`SchemaError`."""
    kind = next((kind for kind in _kinds(hint) if _fits(kind, value)), None)
    if kind is None:
        raise SchemaError(f"is not a calcheck report: {where} must be {_describe_type(hint)}, got {_shown(value)}")
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        return tuple(from_json(arguments[0], item, f"{where}[{place}]") for place, item in enumerate(value))
    if origin is dict:
        return {name: from_json(arguments[1], item, f"{where}.{name}") for name, item in value.items()}
    if not is_dataclass(kind):
        return float(value) if kind is float else value
    hints: Any = get_type_hints(kind)  # all fields are required except those added later, and no others
    names = [declared.name for declared in fields(kind)]
    added = {declared.name for declared in fields(kind) if declared.metadata.get("added")}
    for problem, wrong in (("lacks", set(names) - set(value) - added), ("has an unknown", set(value) - set(names))):
        if wrong:
            name = next(name for name in (*names, *value) if name in wrong)
            raise SchemaError(f"is not a report of this calcheck: {where or 'it'} {problem} {_shown(name)}")
    owner: Any = kind
    return owner(
        **{name: from_json(hints[name], value[name], f"{where}.{name}".lstrip(".")) for name in names if name in value}
    )


def _kinds(hint: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the type itself."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _fits(kind: Any, value: Any) -> bool:
    """Return whether a value matches a type, without checking its members."""
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


def _describe_type(hint: Any) -> str:
    names = []
    for kind in _kinds(hint):
        if get_origin(kind) is Literal:
            names.append(f"one of {', '.join(map(str, get_args(kind)))}")
        elif get_origin(kind) is tuple:
            names.append("a list")
        else:
            names.append(TYPE_NAMES.get(kind, "an object"))
    return " or ".join(names)


def _shown(value: Any) -> str:
    """Return a value as JSON, truncated if it is long."""
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
