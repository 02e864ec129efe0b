"""Files to read, also compressed: one, or several of a folder or a pattern, sorted by path, with partition keys."""

import bz2
import glob
import gzip
import hashlib
import io
import lzma
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import product
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal, Self, TypeAlias, cast
from urllib.parse import unquote

import pyarrow as pa

from calcheck.core.filter_conditions import Condition
from calcheck.errors import DataError, FileError, MissingFileError, OptionError, named_some
from calcheck.execution.run import available_memory
from calcheck.io.arrow_columns import ReadLimits
from calcheck.io.dataframes import TableInMemory
from calcheck.io.object_store import StoreObject, open_object

COMPRESSED = (".gz", ".bz2", ".xz", ".zst")  # Suffixes
COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}  # By their first bytes
COMPRESSIONS |= dict.fromkeys(map(b"BZh%d%b".__mod__, product(range(1, 10), (b"1AY&SY", b"\x17rE8P\x90"))), "bz2")
DECOMPRESSION_ERRORS = OSError, EOFError, ValueError, DataError, lzma.LZMAError, zlib.error
COMPRESSED_CHUNK = 1 << 20  # Bytes read or decompressed at a time
CHUNK = 1 << 24  # Bytes read at a time
COPIES = 3  # Peak number of copies in memory

URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
ANY_JSON = ".json"  # also of reports and of metadata, so it is no extension of tables alone
UNSAFE_SUFFIXES = frozenset({".pkl", ".pickle", ".pt", ".pth", ".joblib", ".dill"})
SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".feather": "arrow",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
    ".npy": "npy",
    ".npz": "npz",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".safetensors": "safetensors",
    ".nc": "netcdf",
    ".xlsx": "excel",
}
KNOWN = f"{', '.join((*SUFFIXES, ANY_JSON))}; also compressed: {', '.join(COMPRESSED)}"
TEXT = ("csv", "tsv", "jsonl")
MAGIC = {
    b"PAR1": "parquet",
    b"PARE": "parquet",
    b"ARROW1": "arrow",
    b"FEA1": "arrow",
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
    b"\x89HDF\r\n\x1a\n": "netcdf",
}
FOREIGN_MAGIC = {
    b"\x80": "a pickle, unsafe to load: it can run any code. Export to Parquet",
    b"\xff\xfe\x00\x00": "text in UTF-32. Save it as UTF-8",
    b"\x00\x00\xfe\xff": "text in UTF-32. Save it as UTF-8",
    b"\xff\xfe": "text in UTF-16. Save it as UTF-8",
    b"\xfe\xff": "text in UTF-16. Save it as UTF-8",
}
NULS = {  # which of the first bytes of Latin text without a byte order mark are 0
    (0, 1, 2, 4, 5, 6): "UTF-32",
    (1, 2, 3, 5, 6, 7): "UTF-32",
    (0, 2, 4, 6): "UTF-16",
    (1, 3, 5, 7): "UTF-16",
}
STDIN = "-"
MAX_MAGIC = 10  # Length of the longest magic number, in bytes
KEPT_BYTES = 1 << 23  # Maximum size of a file that is read once and kept in memory
WILD = re.compile(r"[*?[]")
WILD_IN_URIS = re.compile(r"[*[]")  # in a URI, a question mark starts the query
HIDDEN = (".", "_")
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # Hive's folder name for a null
MAX_SHOWN = 3  # Maximum names listed in a message


@dataclass(frozen=True)
class File:
    """A file, or a pipe that is buffered in memory."""

    name: str  # The path as given, a URI, or "-" for standard input
    input_format: str | None = None  # The format, if the name does not imply it
    groups: tuple[int, ...] | None = None  # The row groups of a Parquet file to read; by default all
    # Its object in a store; by default found by the URI
    place: StoreObject | None = field(default=None, compare=False, repr=False)
    # Sizes of batches and partitions, and of what stays in memory
    limits: ReadLimits = field(default_factory=ReadLimits, repr=False)
    # Whether its bytes stay in memory if they are few; not those of one of many files, or of a part of a file
    in_memory: bool = field(default=True, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.name == STDIN:
            return
        if is_uri(self.name) and self.place is None:
            object.__setattr__(self, "place", open_object(self.name))
        found = self.place.kind() if self.place else kind_of(self.name)
        if found == "folder":
            raise FileError(f"{self.name} is a folder. Give a file")
        if found == "nothing":
            raise MissingFileError(self.name)
        if suffix_of(self.name) in UNSAFE_SUFFIXES:
            msg = f"{self.name} is a pickle-based file, unsafe to load: it can run any code. Export to Parquet"
            raise FileError(msg)

    @property
    def display_name(self) -> str:
        """The name in messages."""
        return "standard input" if self.name == STDIN else shown_path(self.name)

    @property
    def paths(self) -> tuple[str, ...]:
        """The names of the files."""
        return (self.name,)

    @cached_property
    def buffered(self) -> bytes | None:
        """The bytes of a pipe, which can be read only once, and of a small file; None for others."""
        if self.name == STDIN:
            if sys.stdin is None:
                raise FileError("standard input is closed")
            return read_pipe(self.display_name, sys.stdin.buffer)
        if self.place:
            return None
        path = Path(self.name)
        if path.is_file():
            return path.read_bytes() if self.in_memory and path.stat().st_size <= KEPT_BYTES else None
        with path.open("rb") as stream:
            return read_pipe(self.display_name, stream)

    def require_content(self) -> None:
        """Raise if the file is empty, unreadable or obviously of another format."""
        start = self._start()
        if not start:
            raise FileError(f"{self.display_name} is empty")
        for magic, what in FOREIGN_MAGIC.items():
            if start.startswith(magic):
                raise FileError(f"{self.display_name} is {what}")
        found = _by_magic(start)
        zeros = tuple(place for place, byte in enumerate(start[:8]) if not byte)
        if self.format in TEXT and zeros in NULS:
            raise FileError(f"{self.display_name} is text in {NULS[zeros]}. Save it as UTF-8")
        if found and self.format in TEXT:
            raise FileError(f"{self.display_name} is not a {self.format} file but {found}. Pass --input-format {found}")

    def content(self) -> bytes:
        """Return all bytes."""
        with self.open() as stream:
            content = stream.read()
        if self._compression is None and "sha256" not in vars(self):
            vars(self)["sha256"] = hashlib.sha256(content).hexdigest()  # large files are read once, too
        return content

    def open(self) -> io.BufferedIOBase:
        """Return the decompressed bytes as a stream; the caller closes it."""
        if self._compression is None:
            return self._stored()
        with self._decompressed() as stream:
            return io.BytesIO(read_pipe(self.display_name, stream))

    def stream(self) -> str | io.BufferedIOBase:
        """Return what library readers take: the path if it is UTF-8, or a stream for other files than plain ones."""
        if self._compression is not None or self.place is not None:
            return self.open()
        if self.buffered is not None:
            return cast("io.BufferedIOBase", pa.BufferReader(self.buffered))
        if self.name == shown_path(self.name):
            return self.name
        return cast("io.BufferedIOBase", pa.OSFile(os.fsencode(self.name)))

    def _stored(self) -> io.BufferedIOBase:
        """Return the bytes as they are stored."""
        if self.buffered is not None:
            return io.BytesIO(self.buffered)
        return self.place.open() if self.place else Path(self.name).open("rb")

    @cached_property
    def _magic(self) -> bytes:
        """The first bytes as they are stored."""
        with self._stored() as stream:
            return stream.read(MAX_MAGIC)

    @property
    def _compression(self) -> str | None:
        return _by_magic(self._magic, COMPRESSIONS)

    @contextmanager
    def _decompressed(self) -> Iterator[BinaryIO]:
        """Open the compressed file; errors in it name the compression."""
        kind = self._compression or ""
        try:
            with self._stored() as stored, decompressed(cast("BinaryIO", stored), kind) as stream:
                yield stream
        except DECOMPRESSION_ERRORS as error:
            raise FileError(f"{self.display_name} cannot be decompressed ({kind}: {error})") from error

    @property
    def format(self) -> str:
        """The name of the format: as given, by the extension, or by the first bytes."""
        if self.input_format:
            return self.input_format
        suffix = suffix_of(self.name)
        if suffix in SUFFIXES or suffix == ANY_JSON:
            return SUFFIXES.get(suffix, "jsonl")
        if self.name == STDIN:
            formats = "|".join(dict.fromkeys(SUFFIXES.values()))
            raise OptionError(f"the format of standard input is unknown. Pass --input-format {formats}")
        start = self._start()
        if (found := _by_magic(start)) is not None:
            return found
        if any(start.startswith(magic) for magic in FOREIGN_MAGIC):
            return "unknown"  # require_content raises the error
        raise OptionError(f"the format of {self.name} is unknown (known extensions: {KNOWN}). Pass --input-format")

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 hash of the bytes."""
        with self._stored() as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def content_starts(self, magic: bytes) -> bool:
        """Return whether the file starts with these bytes."""
        return self._start().startswith(magic)

    def _start(self) -> bytes:
        """Return the first bytes."""
        try:
            if self._compression is None:
                return self._magic
            with self._decompressed() as compressed:
                return compressed.read(MAX_MAGIC)
        except OSError as error:
            raise FileError(f"{self.name} cannot be read: {error.strerror}") from error


@dataclass(frozen=True)
class PartitionFile:
    """One file of several."""

    file: File
    # Partition keys from its folder names: `{"day": "2026-11-20"}` for `day=2026-11-20/`
    keys: dict[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Files:
    """Several files with the same format and columns, read one after the other."""

    name: str  # The folder or the pattern, as given
    members: tuple[PartitionFile, ...]  # The files, in the order in which they are read
    schema: pa.Schema | None = None  # The columns of all files, if these are only a part of them

    @property
    def display_name(self) -> str:
        """The name in messages."""
        return self.name

    @property
    def paths(self) -> tuple[str, ...]:
        """The names of the files."""
        return tuple(member.file.name for member in self.members)

    @property
    def input_format(self) -> str | None:
        """The format given by the user, if any."""
        return self.members[0].file.input_format

    @property
    def limits(self) -> ReadLimits:
        """The limits with which the files are read."""
        return self.members[0].file.limits

    @property
    def format(self) -> str:
        """The format of the files."""
        formats: dict[str, str] = {}
        for member in self.members:
            formats.setdefault(member.file.format, member.file.name)
        if len(formats) > 1:
            examples = ", ".join(f"{name} ({kind})" for kind, name in list(formats.items())[:MAX_SHOWN])
            msg = f"{self.name} holds files of several formats: {examples}. Select one format with a pattern, in quotes"
            raise FileError(msg)
        return next(iter(formats))

    @property
    def sha256(self) -> str:
        """The SHA-256 hash of the hashes of the files, in order."""
        digests = "\n".join(member.file.sha256 for member in self.members)
        return hashlib.sha256(digests.encode()).hexdigest()

    def prune_partitions(self, filters: Iterable[str]) -> Self:
        """Return only the files whose partition keys meet the filters, such as ``KEY=VALUE``."""
        members = self.members
        columns = list(dict.fromkeys(key for one in members for key in one.keys))
        for condition in (Condition.parse(text, columns) for text in filters):
            key = condition.column
            matching = tuple(one for one in members if key not in one.keys or condition.holds_for(one.keys[key]))
            if not matching:
                known = dict.fromkeys(member.keys.get(key) or "" for member in members)
                shown = named_some(known, most=MAX_SHOWN)
                raise FileError(f"{self.name}: no file has {condition} (values found: {shown})")
            members = matching
        return replace(self, members=members)


def resolve(name: str, input_format: str | None = None, *, in_memory: bool = True) -> "AnyFile":
    """Return the file, or the files of a folder or a pattern without hidden ones, markers and unknown extensions."""
    if name == STDIN:
        return File(name, input_format)
    if not name:
        raise FileError("the name of a file is empty: pass . for the files of the current folder")
    kind = kind_of(name) if not is_uri(name) or WILD_IN_URIS.search(name) is None else "nothing"
    wild = WILD_IN_URIS if is_uri(name) else WILD
    if kind == "file" or (kind == "nothing" and wild.search(name) is None):
        return File(name, input_format, in_memory=in_memory)
    found = _in_folder(name) if kind == "folder" else _matching(name, wild)
    seen = {
        path: place
        for path, place in found.items()
        if not any(part.startswith(HIDDEN) and "=" not in part for part in PurePosixPath(path).parts)
    }
    known = {path: place for path, place in seen.items() if input_format or suffix_of(path) in SUFFIXES}
    if not seen:
        msg = f"there is no file in {name}" if kind == "folder" else f"no file matches {name}"
        msg += f" (hidden files and names that begin with _ are skipped; known extensions: {KNOWN})"
        raise FileError(msg)
    outer = _keys(PurePosixPath(wild.split(name)[0].rpartition("/")[0] if kind == "nothing" else name).parts)
    members = tuple(
        PartitionFile(_file(place, input_format), outer | _keys(PurePosixPath(path).parts[:-1]))
        for path, place in sorted((known or seen).items())
    )
    return Files(name, members)


def resolve_all(names: Sequence[str], input_format: str | None = None) -> "AnyFile":
    """Return the files of several paths, patterns or folders as one table, in their order."""
    members: list[PartitionFile] = []
    for found in (resolve(name, input_format, in_memory=False) for name in names):
        members += found.members if isinstance(found, Files) else [PartitionFile(cast("File", found))]
    paths = [member.file.name for member in members]
    if repeated := [path for path in dict.fromkeys(paths) if paths.count(path) > 1]:
        raise FileError(f"{repeated[0]} is named twice, so its rows would count twice")
    more = f", … {len(paths):,} in all" if len(paths) > MAX_SHOWN else ""
    return Files(", ".join(paths[:MAX_SHOWN]) + more, tuple(members))


def _file(place: StoreObject | str, input_format: str | None) -> File:
    if isinstance(place, str):
        return File(place, input_format, in_memory=False)
    return File(place.name, input_format, place=place)


def _in_folder(folder: str) -> dict[str, StoreObject | str]:
    """Return all files below a folder, keyed by relative path."""
    if is_uri(folder):
        return {**open_object(folder).below()}
    return {file.relative_to(folder).as_posix(): str(file) for file in Path(folder).rglob("*") if file.is_file()}


def _matching(pattern: str, wild: re.Pattern[str]) -> dict[str, StoreObject | str]:
    """Return the files that match a pattern, or are in matching folders, keyed by path relative to its fixed part."""
    base, slash, _ = wild.split(pattern, maxsplit=1)[0].rpartition("/")
    if is_uri(pattern):
        rest, question, query = pattern[len(base) + 1 :].partition("?")
        below = _in_folder(f"{base}{question}{query}")
        return {path: place for path, place in below.items() if _matches(path.split("/"), rest.split("/"))}
    found: dict[str, StoreObject | str] = {}
    for place in glob.iglob(pattern, recursive=True):  # noqa: PTH207 - Path.glob refuses **.parquet
        path = place[len(base + slash) :]
        if Path(place).is_dir():
            found |= {PurePosixPath(path, inner).as_posix(): file for inner, file in _in_folder(place).items()}
        else:
            found[path] = place
    return found


def _matches(parts: Sequence[str], patterns: Sequence[str]) -> bool:
    """Return whether a path, or a folder that contains it, matches a pattern.

    >>> _matches(["day=1", "part-0.parquet"], ["day=*"]), _matches(["a", "b", "c.csv"], ["**", "*.csv"])
    (True, True)
    """
    if not patterns:
        return True
    if patterns[0] == "**":
        return any(_matches(parts[skip:], patterns[1:]) for skip in range(len(parts)))
    return bool(parts) and fnmatchcase(parts[0], patterns[0]) and _matches(parts[1:], patterns[1:])


def _keys(folders: Sequence[str]) -> dict[str, str | None]:
    """Return the Hive partition keys in folder names, such as ``day=2026-11-20``."""
    pairs = (folder.split("=", 1) for folder in folders if folder.partition("=")[0] and "=" in folder)
    return {unquote(key): None if value == NO_VALUE else unquote(value) for key, value in pairs}


def is_uri(name: str) -> bool:
    """Return whether a name is a URI and not a path.

    >>> is_uri("s3://bucket/preds.parquet"), is_uri("preds.parquet:embedding")
    (True, False)
    """
    return URI.match(name) is not None


def kind_of(name: str) -> Literal["file", "folder", "nothing"]:
    """Return what a path or URI names; whatever exists and is not a folder is a file."""
    if is_uri(name):
        return open_object(name).kind()
    try:
        path = Path(name)
        return "folder" if path.is_dir() else "file" if path.exists() else "nothing"
    except (OSError, ValueError) as error:
        raise FileError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def suffix_of(name: str) -> str:
    """Return the extension of a path or URI, in lower case, without that of a compression.

    >>> suffix_of("s3://bucket/preds.PARQUET?region=eu-west-1"), suffix_of("preds.csv.gz")
    ('.parquet', '.csv')
    """
    path = Path(name.partition("?")[0] if is_uri(name) else name)
    return (path.with_suffix("") if path.suffix.lower() in COMPRESSED else path).suffix.lower()


def shown_path(name: str) -> str:
    """Return a path as text that can be printed, also if it is not in UTF-8."""
    return name.encode(errors="surrogateescape").decode(errors="replace")


@contextmanager
def file_named(name: str) -> Iterator[None]:
    """Add the file name to data errors."""
    try:
        yield
    except FileError:
        raise
    except DataError as error:
        raise FileError(f"{name}: {error}") from error


def _by_magic(start: bytes, known: dict[bytes, str] = MAGIC) -> str | None:
    """Return the format, or the compression, whose magic number the bytes start with."""
    return next((found for magic, found in known.items() if start.startswith(magic)), None)


def decompressed(stream: BinaryIO, kind: str) -> BinaryIO:
    """Return a stream of all decompressed members and frames; bytes that are cut, or of other kinds, raise an error."""
    if kind == "gzip":
        return cast("BinaryIO", gzip.GzipFile(fileobj=stream))
    if kind == "zstd":
        return cast("BinaryIO", pa.CompressedInputStream(pa.PythonFile(stream, "r"), "zstd"))
    return cast("BinaryIO", io.BufferedReader(_Streams(stream, kind), COMPRESSED_CHUNK))


class _Streams(io.RawIOBase):
    """The bytes of bz2 or xz streams in a row; modules bz2 and lzma ignore what follows the first, if it is damaged."""

    def __init__(self, stream: BinaryIO, kind: str) -> None:
        self._stream, self._kind = stream, kind
        self._decoder = self._new()
        self._left = b""

    def _new(self) -> bz2.BZ2Decompressor | lzma.LZMADecompressor:
        return bz2.BZ2Decompressor() if self._kind == "bz2" else lzma.LZMADecompressor(lzma.FORMAT_XZ)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        data = b""
        while not data:
            if self._decoder.eof:
                self._left = self._decoder.unused_data or self._stream.read(COMPRESSED_CHUNK)
                if not self._left:
                    return 0
                self._decoder = self._new()
            elif self._decoder.needs_input:
                self._left = self._stream.read(COMPRESSED_CHUNK)
                if not self._left:
                    raise DataError("the compressed data are truncated")
            data = self._decoder.decompress(self._left, len(view))
            self._left = b""
        view[: len(data)] = data
        return len(data)


def read_pipe(name: str, stream: BinaryIO) -> bytes:
    """Return all bytes of a pipe."""
    if _is_device(stream) and stream.read(1):
        raise FileError(f"{name} is a device that never ends. Give a file")
    room = available_memory() // COPIES
    parts, size = [], 0
    while part := stream.read(CHUNK):
        parts.append(part)
        size += len(part)
        if size > room:
            raise FileError(f"{name} holds more than {room:,} bytes, the limit by free memory. Pass a file")
    return b"".join(parts)


def _is_device(stream: BinaryIO) -> bool:
    """Return whether a stream is a character device but no terminal, such as /dev/zero."""
    try:
        return stat.S_ISCHR(os.fstat(stream.fileno()).st_mode) and not stream.isatty()
    except (OSError, ValueError):  # an in-memory stream
        return False


APPENDED = "other bytes precede the file that its footer describes. Were files appended? Pass them as two files"

AnyFile: TypeAlias = File | Files | TableInMemory
