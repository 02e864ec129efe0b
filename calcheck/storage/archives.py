"""Dataclasses as files: states, states of monitors and checkpoints are archives of arrays with a JSON header."""

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from calcheck.core import __version__
from calcheck.errors import CalcheckError, FileError, OptionError
from calcheck.io.files import File, suffix_of
from calcheck.predictions import Predictions
from calcheck.storage.atomic_write import atomic_path
from calcheck.storage.report_json import SchemaError, from_json
from calcheck.typing import AnyArray

Arrays = Mapping[str, AnyArray]
STATE, MONITOR_STATE, CHECKPOINT = "state", "monitor state", "checkpoint"
SHARE = 8  # A stage is saved again after 1/SHARE more batches, which bounds the time spent on saving


def is_monitor_state(data: Any) -> bool:
    """Return whether data are a file with the state of a monitored model."""
    return isinstance(data, str) and is_archive(data, MONITOR_STATE)


VERSION = 1  # Of the content of archives
HEADER = "header"  # Name of the array that contains the header, JSON as bytes
KINDS = "fiubU"  # Permitted kinds of array types: numbers and text, no objects
DAMAGED = "is damaged or truncated: create it again"
UNREADABLE = (zipfile.BadZipFile, ValueError, KeyError, TypeError, EOFError, RuntimeError, MemoryError)
"""What NumPy and zipfile raise for damaged archives."""
INVALID = (SchemaError, CalcheckError, KeyError, TypeError, ValueError, IndexError, StopIteration, RecursionError)
"""What invalid content of an archive raises."""
OTHER_SUFFIXES = {".parquet", ".csv", ".json", ".tsv", ".feather", ".arrow"}
"""Suffixes of tables and reports, which no archive has."""


def write_archive(path: str, kind: str, header: dict[str, Any], arrays: Arrays) -> None:
    """Write named arrays and a header; an existing file is replaced on success only. Equal arrays give equal files."""
    top = {"kind": kind, "version": VERSION, "header": header, "arrays": list(arrays), "sha256": _digest(arrays)}
    text = json.dumps(top, allow_nan=False, indent=1).encode()
    members: dict[str, Any] = {HEADER: np.frombuffer(text, np.uint8), **arrays}
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.savez(stream, **members)


def read_archive(path: str, kind: str) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return the header and the arrays that :func:`write_archive` wrote."""
    file = File(path)
    if not file.content_starts(b"PK"):
        raise FileError(f"{file.display_name} is not a calcheck {kind}")
    try:
        with file.open() as stream, np.load(stream, allow_pickle=False) as archive:
            return _read(archive, file.display_name, kind)
    except UNREADABLE as error:
        raise FileError(f"{file.display_name} {DAMAGED} ({error})") from error
    except OSError as error:
        raise FileError(f"{file.display_name} cannot be read: {error.strerror}") from error


@contextmanager
def damage_as_error(path: str) -> Iterator[None]:
    """Raise a FileError for whatever is wrong with the content of an archive that is read inside."""
    try:
        with np.errstate(all="ignore"):
            yield
    except FileError:
        raise
    except INVALID as error:
        raise FileError(f"{path} {DAMAGED} ({error})") from error


def is_archive(path: str, kind: str) -> bool:
    """Return whether a file is an archive of some kind; False if it cannot be read, or is standard input."""
    try:
        if suffix_of(path) in OTHER_SUFFIXES or not Path(path).is_file():
            return False
        file = File(path, in_memory=False)
        if not file.content_starts(b"PK"):
            return False
        with file.open() as stream, np.load(stream, allow_pickle=False) as archive:
            return HEADER in archive.files and json.loads(np.asarray(archive[HEADER]).tobytes())["kind"] == kind
    except (FileError, OSError, *UNREADABLE):
        return False


def _read(archive: Any, name: str, kind: str) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    if HEADER not in archive.files:
        raise FileError(f"{name} is not a calcheck {kind}")
    if any(member.compress_type != zipfile.ZIP_STORED for member in archive.zip.infolist()):
        # Prevents decompression bombs
        raise ValueError("its members are compressed, but calcheck writes uncompressed files")
    top = json.loads(np.asarray(archive[HEADER]).tobytes())
    if top["kind"] != kind:
        raise FileError(f"{name} is not a calcheck {kind}, but a {top['kind']}")
    if top["version"] != VERSION:
        newer = "a newer" if top["version"] > VERSION else "an older"
        msg = f"{name} was written by {newer} calcheck: its version is {top['version']}, this calcheck reads {VERSION}"
        raise FileError(msg)
    arrays = {str(each): np.asarray(archive[each]) for each in top["arrays"]}  # Of bytes if it is no array
    if any(each.dtype.kind not in KINDS or not each.dtype.itemsize for each in arrays.values()):
        raise ValueError("an array contains neither numbers nor text")
    if top["sha256"] != _digest(arrays):
        raise ValueError("its checksum does not match")
    return dict(top["header"]), arrays


def _digest(arrays: Arrays) -> str:
    """Return the SHA-256 checksum of the content of arrays."""
    digest = hashlib.sha256()
    for values in arrays.values():
        digest.update(values.tobytes())
    return digest.hexdigest()


def require_archive_path(path: str, option: str) -> None:
    """Raise if the suffix of a path is that of a table or report, to protect such files."""
    if Path(path).suffix.lower() in OTHER_SUFFIXES:
        msg = f"{path} has the suffix of a table or report, but {option} writes neither. Use a name such as day.state"
        raise FileError(msg)


SUBCLASS = "subclass"  # Name of the class, if it is a subclass of the declared one
JSON = dict[str, Any]
ARRAYS = dict.fromkeys(("Values", "Floats", "Indices", "Mask", "AnyArray"), NDArray[Any])
"""Names of array types, which are Any where NumPy is not imported."""


def to_header(owner: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return fields of a dataclass as JSON, after the version of calcheck."""
    return {"calcheck": __version__, **{name: _plain(getattr(owner, name)) for name in names}}


def from_header(owner: type, names: Sequence[str], header: dict[str, Any]) -> dict[str, Any]:
    """Return fields of a dataclass from the header that :func:`to_header` returned, by name."""
    return {name: from_json(_types(owner)[name], header.get(name), name) for name in names}


def _plain(value: Any) -> Any:
    """Return a value as JSON; objects with a method ``stored`` state themselves what they store."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "stored"):
        return value.stored()
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def to_arrays(name: str, value: Any, kind: Any) -> dict[str, AnyArray]:
    """Return a value of a declared type as arrays with names such as ``settings.scaling.shift``; none for None."""
    if value is None:
        return {}
    if is_dataclass(value):
        owner: Any = type(value)
        parts: dict[str, AnyArray] = {}
        for field, hint in _types(owner).items():
            parts |= to_arrays(field, getattr(value, field), hint)
        if owner is not kind:
            parts[SUBCLASS] = np.array(owner.__name__)
    elif isinstance(value, dict) and kind != JSON:
        parts = {key: _array(each) for key, each in value.items()}
    elif (record := _record(kind)) is not None:
        texts = [[getattr(each, declared.name) for declared in fields(record)] for each in value]
        return {name: np.array(texts, dtype=str).reshape(-1, len(fields(record)))}
    else:
        return {name: np.array(json.dumps(value)) if kind == JSON else _array(value)}
    return {f"{name}.{key}": each for key, each in parts.items()}


def from_arrays(name: str, kind: Any, arrays: Arrays) -> Any:
    """Return a value of a declared type from the arrays of :func:`to_arrays`; other arrays are ignored."""
    if kind is NoneType or (NoneType in get_args(kind) and name not in arrays):
        return None
    if NoneType in get_args(kind):
        kind = get_args(kind)[0]
    if kind == JSON:
        return dict(json.loads(arrays[name].item()))
    parts = strip_prefix(name, arrays)
    if get_origin(kind) in (dict, Mapping):
        return {key: _typed(each, get_args(kind)[1]) for key, each in parts.items()}
    if is_dataclass(kind):
        owner: Any = kind
        if SUBCLASS in parts:  # no other class is ever made
            owner = {each.__name__: each for each in owner.__subclasses__()}[parts[SUBCLASS].item()]
        return owner(**{field: from_arrays(field, hint, parts) for field, hint in _types(owner).items()})
    if (record := _record(kind)) is not None:
        return tuple(record(*map(str, line)) for line in arrays[name].tolist())
    return _typed(arrays[name], kind)


def strip_prefix(prefix: str, arrays: Arrays) -> dict[str, AnyArray]:
    """Return the arrays whose names begin with the prefix and a dot, with these removed from the names."""
    return {name.removeprefix(f"{prefix}."): each for name, each in arrays.items() if name.startswith(f"{prefix}.")}


@cache
def _types(owner: type) -> dict[str, Any]:
    """Return the type of each field of a dataclass."""
    hints = get_type_hints(owner, localns=ARRAYS, include_extras=True)
    return {declared.name: hints[declared.name] for declared in fields(owner)}


def _record(kind: Any) -> Any:
    """Return the dataclass of texts whose instances a declared tuple holds; None for other types."""
    item = get_args(kind)[0] if get_origin(kind) is tuple else None
    return item if is_dataclass(item) else None


def _array(value: Any) -> AnyArray:
    """Return an array in C order of an array, a list of arrays, a number, or texts; times are whole numbers."""
    if isinstance(value, list):
        value[:] = [np.concatenate(value)]  # In place, so that memory holds the parts once
        return np.asarray(value[0])
    found = np.asarray(value, order="C", dtype=str if isinstance(value, (tuple, str)) else None)
    return found.astype(np.int64) if found.dtype.kind == "M" else found


def _typed(values: AnyArray, kind: Any) -> Any:
    """Return an array as a declared type."""
    if kind in (int, float, bool):
        return kind(values.item())
    if get_origin(kind) is list:
        return [values]
    if get_origin(kind) is tuple:
        return tuple(map(str, values))
    if get_origin(kind) is not Literal:
        return values
    if (word := values.item()) not in get_args(kind):
        raise ValueError(f"{word!r} is none of {', '.join(get_args(kind))}")
    return word


class FileCheckpoint:
    """A checkpoint file that is written regularly, and removed at the end of the run."""

    def __init__(
        self,
        path: str,  # The file
        # Description of the run: files, options, metrics. A checkpoint of a different run is rejected.
        identity: dict[str, str],
        *,
        resume: bool,  # Whether to resume from the file, if it exists
    ) -> None:
        self._path, self._identity = path, identity
        self._stages: dict[str, int | None] = {}
        self._arrays: dict[str, dict[str, AnyArray]] = {}
        if not resume or not Path(path).exists():
            return
        header, arrays = read_archive(path, CHECKPOINT)
        theirs = header.get("run", {})
        for what in {**identity, **theirs}:
            if identity.get(what) != theirs.get(what):
                raise OptionError(f"{path} is from a different run: its {what} differ. Restart without --resume")
        for place, (stage, batches) in enumerate(header.get("stages", {}).items()):
            self._stages[stage] = batches
            self._arrays[stage] = strip_prefix(str(place), arrays)

    def load(self, stage: str, work: Callable[[Predictions], Any]) -> tuple[int | None, Any]:
        """Return the number of completed batches of a stage (None for all) and their sum; 0 and None if new."""
        restored = getattr(work, "load", None)
        if stage not in self._stages or restored is None:
            return 0, None
        with damage_as_error(self._path):
            return self._stages[stage], restored(self._arrays[stage])

    def remove(self) -> None:
        """Remove the file at the end of the run."""
        Path(self._path).unlink(missing_ok=True)

    def save(self, stage: str, batches: int | None, total: Any) -> None:
        """Save the sum of all batches of a stage (None), or of the first ones, if the last save is old enough."""
        last = self._stages.get(stage) or 0
        is_due = batches is None or batches - last >= max(1, last // SHARE)
        arrays = total.arrays() if is_due and hasattr(total, "arrays") else None
        if arrays is None:  # A sum without arrays cannot be saved and is recomputed
            return
        self._stages[stage], self._arrays[stage] = batches, arrays
        named = {
            f"{place}.{name}": values
            for place, each in enumerate(self._stages)
            for name, values in self._arrays[each].items()
        }
        write_archive(self._path, CHECKPOINT, {"run": self._identity, "stages": self._stages}, named)
