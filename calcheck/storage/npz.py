"""Named arrays in one file, with a header and a checksum: what was summed, to be read by another run."""

from __future__ import annotations

import hashlib
import json
import zipfile
from io import BytesIO
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import FileError
from calcheck.io.files import File
from calcheck.storage.atomic_write import atomic_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[Any]]

HEADER, CHECKSUM = "header.json", "sha256"
KINDS = "fiubU"  # of arrays: numbers and text, no objects
LARGEST_HEADER = 1 << 26
EPOCH = (1980, 1, 1, 0, 0, 0)  # the same sums make the same bytes
DAMAGED = "is damaged or was cut short: make it again"


def write_archive(path: str, kind: str, version: int, header: dict[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write named arrays and a header, replacing what was there only on success.

    Parameters
    ----------
    path : str
        Where.
    kind, version : str, int
        What it is, and in which version of its format.
    header : dict
        What JSON can hold.
    arrays : mapping
        Numbers and text, of any shape.
    """
    told = {"kind": kind, "version": version, "header": header, "arrays": list(arrays)}
    text = json.dumps(told, allow_nan=False, indent=1).encode()
    digest = hashlib.sha256(text)
    with atomic_path(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        archive.writestr(zipfile.ZipInfo(HEADER, EPOCH), text)
        for number, values in enumerate(arrays.values()):
            stream = BytesIO()
            np.lib.format.write_array(
                stream, np.ascontiguousarray(values).reshape(np.shape(values)), allow_pickle=False
            )
            content = stream.getbuffer()
            digest.update(content)
            archive.writestr(zipfile.ZipInfo(f"{number}.npy", EPOCH), content)
        archive.writestr(zipfile.ZipInfo(CHECKSUM, EPOCH), digest.hexdigest())


def read_archive(path: str, kind: str, version: int) -> tuple[dict[str, Any], Arrays]:
    """Read what :func:`write_archive` wrote.

    Raises
    ------
    FileError
        It cannot be read, is something else, of a newer version, or damaged.
    """
    file = File(path)
    if not file.content_starts(b"PK"):
        msg = f"{file.display_name} is no {kind} of calcheck"
        raise FileError(msg)
    try:
        with file.open() as stream, zipfile.ZipFile(stream) as archive:
            return _read(archive, file.display_name, kind, version)
    except (zipfile.BadZipFile, ValueError, KeyError, TypeError, EOFError, NotImplementedError, RuntimeError) as error:
        msg = f"{file.display_name} {DAMAGED} ({error})"
        raise FileError(msg) from error
    except OSError as error:
        msg = f"{file.display_name} cannot be read: {error.strerror}"
        raise FileError(msg) from error


def _read(archive: zipfile.ZipFile, name: str, kind: str, version: int) -> tuple[dict[str, Any], Arrays]:
    members = {member.filename: member for member in archive.infolist()}
    if HEADER not in members or CHECKSUM not in members:
        msg = f"{name} is no {kind} of calcheck"
        raise FileError(msg)
    if any(member.compress_type != zipfile.ZIP_STORED for member in members.values()):
        msg = "its parts are compressed, which calcheck does not do"  # nothing small can grow large
        raise ValueError(msg)
    if members[HEADER].file_size > LARGEST_HEADER:
        msg = "its header is too large"
        raise ValueError(msg)
    text = archive.read(HEADER)
    told = json.loads(text)
    if told["kind"] != kind:
        msg = f"{name} is no {kind} of calcheck, but a {told['kind']}"
        raise FileError(msg)
    if told["version"] != version:
        newer = "a newer" if told["version"] > version else "an older"
        msg = f"{name} was written by {newer} calcheck: it is of version {told['version']}, this one reads {version}"
        raise FileError(msg)
    digest, arrays = hashlib.sha256(text), {}
    for number, array in enumerate(told["arrays"]):
        content = archive.read(f"{number}.npy")
        digest.update(content)
        arrays[str(array)] = _array(content)
    if archive.read(CHECKSUM).decode() != digest.hexdigest():
        msg = "its checksum is another"
        raise ValueError(msg)
    return dict(told["header"]), arrays


def _array(content: bytes) -> NDArray[Any]:
    """Read an array, without trusting what its header says of sizes and types."""
    stream = BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        msg = "an array is of an unknown version"
        raise ValueError(msg)
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(stream)
    start = stream.tell()
    if dtype.kind not in KINDS or by_columns or prod(shape) * dtype.itemsize != len(content) - start:
        msg = "an array is not what its header says"
        raise ValueError(msg)
    if not dtype.itemsize:
        return np.zeros(shape, dtype)
    return np.frombuffer(content, dtype, offset=start).reshape(shape)


def require_archive_path(path: str, option: str) -> None:
    """Raise if a path ends like a file of rows, which it would replace.

    Raises
    ------
    FileError
        It does.
    """
    if Path(path).suffix.lower() in {".parquet", ".csv", ".json", ".tsv", ".feather", ".arrow"}:
        msg = f"{path} ends like a table or a report, and {option} writes neither. Take another name, as in day.state"
        raise FileError(msg)
