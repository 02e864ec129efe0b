"""Archives of arrays with a JSON header."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from calcheck.errors import CalcheckError, FileError
from calcheck.io.files import File
from calcheck.storage.atomic_write import atomic_path
from calcheck.storage.report_json import SchemaError
from calcheck.typing import AnyArray

Arrays = Mapping[str, AnyArray]


STATE, MONITOR_STATE, CHECKPOINT = "state", "monitor state", "checkpoint"


def is_monitor_state(path: str) -> bool:
    """Return whether a file is the state of a monitored model."""
    return is_archive(path, MONITOR_STATE)


HEADER = "header"  # Name of the array that contains the header, JSON as bytes
KINDS = "fiubU"  # Permitted kinds of array types: numbers and text, no objects
DAMAGED = "is damaged or truncated: create it again"
UNREADABLE = (zipfile.BadZipFile, ValueError, KeyError, TypeError, EOFError, RuntimeError, MemoryError)
"""What NumPy and zipfile raise for damaged archives."""
INVALID = (SchemaError, CalcheckError, KeyError, TypeError, ValueError, IndexError, StopIteration, RecursionError)
"""What invalid content of an archive raises."""


def write_archive(path: str, kind: str, version: int, header: dict[str, Any], arrays: Arrays) -> None:
    """Write named arrays and a header; an existing file is replaced on success only. Equal arrays give equal files."""
    top = {"kind": kind, "version": version, "header": header, "arrays": list(arrays), "sha256": _digest(arrays)}
    text = json.dumps(top, allow_nan=False, indent=1).encode()
    members: dict[str, Any] = {HEADER: np.frombuffer(text, np.uint8), **arrays}
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.savez(stream, **members)


def read_archive(path: str, kind: str, version: int) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return the header and the arrays that :func:`write_archive` wrote."""
    file = File(path)
    if not file.content_starts(b"PK"):
        msg = f"{file.display_name} is not a calcheck {kind}"
        raise FileError(msg)
    try:
        with file.open() as stream, np.load(stream, allow_pickle=False) as archive:
            return _read(archive, file.display_name, kind, version)
    except UNREADABLE as error:
        msg = f"{file.display_name} {DAMAGED} ({error})"
        raise FileError(msg) from error
    except OSError as error:
        msg = f"{file.display_name} cannot be read: {error.strerror}"
        raise FileError(msg) from error


@contextmanager
def damage_as_error(path: str) -> Iterator[None]:
    """Raise a FileError for whatever is wrong with the content of an archive that is read inside."""
    try:
        with np.errstate(all="ignore"):
            yield
    except FileError:
        raise
    except INVALID as error:
        msg = f"{path} {DAMAGED} ({error})"
        raise FileError(msg) from error


def is_archive(path: str, kind: str) -> bool:
    """Return whether a file is an archive of some kind; False if it cannot be read, or is standard input."""
    try:
        file = File(path)
        if not Path(path).is_file() or not file.content_starts(b"PK"):
            return False
        with file.open() as stream, np.load(stream, allow_pickle=False) as archive:
            return HEADER in archive.files and json.loads(np.asarray(archive[HEADER]).tobytes())["kind"] == kind
    except (FileError, OSError, *UNREADABLE):
        return False


def _read(archive: Any, name: str, kind: str, version: int) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    if HEADER not in archive.files:
        msg = f"{name} is not a calcheck {kind}"
        raise FileError(msg)
    if any(member.compress_type != zipfile.ZIP_STORED for member in archive.zip.infolist()):
        msg = "its members are compressed, but calcheck writes uncompressed files"  # Prevents decompression bombs
        raise ValueError(msg)
    top = json.loads(np.asarray(archive[HEADER]).tobytes())
    if top["kind"] != kind:
        msg = f"{name} is not a calcheck {kind}, but a {top['kind']}"
        raise FileError(msg)
    if top["version"] != version:
        newer = "a newer" if top["version"] > version else "an older"
        msg = f"{name} was written by {newer} calcheck: its version is {top['version']}, this calcheck reads {version}"
        raise FileError(msg)
    arrays = {str(each): np.asarray(archive[each]) for each in top["arrays"]}  # Of bytes if it is no array
    if any(each.dtype.kind not in KINDS or not each.dtype.itemsize for each in arrays.values()):
        msg = "an array contains neither numbers nor text"
        raise ValueError(msg)
    if top["sha256"] != _digest(arrays):
        msg = "its checksum does not match"
        raise ValueError(msg)
    return dict(top["header"]), arrays


def _digest(arrays: Arrays) -> str:
    """Return the SHA-256 checksum of the content of arrays."""
    digest = hashlib.sha256()
    for values in arrays.values():
        digest.update(values.tobytes())
    return digest.hexdigest()


def require_archive_path(path: str, option: str) -> None:
    """Raise if the suffix of a path is that of a table or report, to protect such files."""
    if Path(path).suffix.lower() in {".parquet", ".csv", ".json", ".tsv", ".feather", ".arrow"}:
        msg = f"{path} has the suffix of a table or report, but {option} writes neither. Use a name such as day.state"
        raise FileError(msg)
