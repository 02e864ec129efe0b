"""Archives of named arrays with a header and a checksum, for states and checkpoints."""

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
KINDS = "fiubU"  # Permitted kinds of array types: numbers and text, no objects
MAX_HEADER_BYTES = 1 << 26  # Maximum size of the header
EPOCH = (1980, 1, 1, 0, 0, 0)  # A fixed timestamp, so that equal arrays give equal files
DAMAGED = "is damaged or truncated: create it again"


def write_archive(path: str, kind: str, version: int, header: dict[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write named arrays and a header; an existing file is replaced on success only.

    Parameters
    ----------
    path : str
        The file.
    kind, version : str, int
        The kind of archive, and the version of its format.
    header : dict
        A header that JSON can represent.
    arrays : mapping
        Arrays of numbers or text, of any shape.
    """
    top = {"kind": kind, "version": version, "header": header, "arrays": list(arrays)}
    text = json.dumps(top, allow_nan=False, indent=1).encode()
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
    """Return the header and the arrays that :func:`write_archive` wrote.

    Raises
    ------
    FileError
        The file cannot be read, is of another kind or version, or is damaged.
    """
    file = File(path)
    if not file.content_starts(b"PK"):
        msg = f"{file.display_name} is not a calcheck {kind}"
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
        msg = f"{name} is not a calcheck {kind}"
        raise FileError(msg)
    if any(member.compress_type != zipfile.ZIP_STORED for member in members.values()):
        msg = "its members are compressed, but calcheck writes uncompressed files"  # Prevents decompression bombs
        raise ValueError(msg)
    if members[HEADER].file_size > MAX_HEADER_BYTES:
        msg = "its header is too large"
        raise ValueError(msg)
    text = archive.read(HEADER)
    top = json.loads(text)
    if top["kind"] != kind:
        msg = f"{name} is not a calcheck {kind}, but a {top['kind']}"
        raise FileError(msg)
    if top["version"] != version:
        newer = "a newer" if top["version"] > version else "an older"
        msg = f"{name} was written by {newer} calcheck: its version is {top['version']}, this calcheck reads {version}"
        raise FileError(msg)
    digest, arrays = hashlib.sha256(text), {}
    for number, array in enumerate(top["arrays"]):
        content = archive.read(f"{number}.npy")
        digest.update(content)
        arrays[str(array)] = _array(content)
    if archive.read(CHECKSUM).decode() != digest.hexdigest():
        msg = "its checksum does not match"
        raise ValueError(msg)
    return dict(top["header"]), arrays


def _array(content: bytes) -> NDArray[Any]:
    """Return an array from its bytes; sizes and types in its header are validated."""
    stream = BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        msg = "an array has an unknown format version"
        raise ValueError(msg)
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(stream)
    start = stream.tell()
    if dtype.kind not in KINDS or by_columns or prod(shape) * dtype.itemsize != len(content) - start:
        msg = "an array does not match its header"
        raise ValueError(msg)
    if not dtype.itemsize:
        return np.zeros(shape, dtype)
    return np.frombuffer(content, dtype, offset=start).reshape(shape)


def require_archive_path(path: str, option: str) -> None:
    """Raise if the suffix of a path is that of a table or report, to protect such files.

    Raises
    ------
    FileError
        It is.
    """
    if Path(path).suffix.lower() in {".parquet", ".csv", ".json", ".tsv", ".feather", ".arrow"}:
        msg = f"{path} has the suffix of a table or report, but {option} writes neither. Use a name such as day.state"
        raise FileError(msg)
