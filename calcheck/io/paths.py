"""Resolve a path, folder or pattern to one file or several, sorted by path; with Hive partition keys."""

from __future__ import annotations

import glob
import hashlib
import re
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Self, TypeAlias
from urllib.parse import unquote

from calcheck.errors import FileError, named_some
from calcheck.io.files import STDIN, SUFFIXES, File, is_uri, kind_of, open_object, suffix_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from calcheck.io.files import StoreObject
    from calcheck.io.frames import TableInMemory

    AnyFile: TypeAlias = File | "Files" | TableInMemory

WILD = re.compile(r"[*?[]")
WILD_IN_URIS = re.compile(r"[*[]")  # in a URI, a question mark starts the query
HIDDEN = (".", "_")
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # Hive's folder name for a null
MAX_SHOWN = 3  # Maximum names listed in a message


@dataclass(frozen=True)
class PartitionFile:
    """One file of several.

    Parameters
    ----------
    file : File
        The file.
    keys : dict
        Partition keys from its folder names: ``{"day": "2026-11-20"}`` for ``day=2026-11-20/``.
    """

    file: File
    keys: dict[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Files:
    """Several files with the same format and columns, read one after the other.

    Parameters
    ----------
    name : str
        The folder or the pattern, as given.
    members : tuple of PartitionFile
        The files, in the order in which they are read.
    schema : pyarrow.Schema, optional
        The columns of all files, if these are only a part of them.
    """

    name: str
    members: tuple[PartitionFile, ...]
    schema: pa.Schema | None = None

    @property
    def display_name(self) -> str:
        """The name in messages."""
        return self.name

    @property
    def count(self) -> int:
        """The number of files."""
        return len(self.members)

    @property
    def paths(self) -> tuple[str, ...]:
        """The names of the files."""
        return tuple(member.file.name for member in self.members)

    @property
    def input_format(self) -> str | None:
        """The format given by the user, if any."""
        return self.members[0].file.input_format

    @property
    def format(self) -> str:
        """The format of the files.

        Raises
        ------
        FileError
            The files have several formats.
        """
        formats: dict[str, str] = {}
        for member in self.members:
            formats.setdefault(member.file.format, member.file.name)
        if len(formats) > 1:
            examples = ", ".join(f"{name} ({kind})" for kind, name in list(formats.items())[:MAX_SHOWN])
            msg = f"{self.name} holds files of several formats: {examples}. Select one format with a pattern, in quotes"
            raise FileError(msg)
        return next(iter(formats))

    def sha256(self) -> str:
        """Return the SHA-256 hash of the hashes of the files, in order."""
        digests = "\n".join(member.file.sha256() for member in self.members)
        return hashlib.sha256(digests.encode()).hexdigest()

    def prune_partitions(self, filters: Iterable[str]) -> Self:
        """Return only the files whose partition keys match the filters ``KEY=VALUE``.

        Raises
        ------
        FileError
            No file matches.
        """
        members = self.members
        for key, value in (text.split("=", 1) for text in filters):
            matching = tuple(member for member in members if member.keys.get(key, value) == value)
            if not matching:
                known = dict.fromkeys(member.keys.get(key) or "" for member in members)
                shown = named_some(known, most=MAX_SHOWN)
                msg = f"{self.name}: no file has {key}={value} (values found: {shown})"
                raise FileError(msg)
            members = matching
        return replace(self, members=members)


def resolve(name: str, input_format: str | None = None) -> AnyFile:
    """Return the file, or the files of a folder or a pattern; local, or in an object store.

    Hidden files and marker files of other tools (``_SUCCESS``) are skipped. If some files have a known extension, files
    with other extensions are skipped too.

    Parameters
    ----------
    name : str
        A path, a pattern with ``*``, ``**``, ``?`` or ``[…]``, or a URI; ``"-"`` for standard input.
    input_format : str, optional
        The format, if the names do not imply it.

    Raises
    ------
    FileError
        There is no such file.
    """
    if name == STDIN:
        return File(name, input_format)
    kind = kind_of(name) if not is_uri(name) or WILD_IN_URIS.search(name) is None else "nothing"
    wild = WILD_IN_URIS if is_uri(name) else WILD
    if kind == "file" or (kind == "nothing" and wild.search(name) is None):
        return File(name, input_format)
    found = _in_folder(name) if kind == "folder" else _matching(name, wild)
    seen = {path: place for path, place in found.items() if not any(map(_is_hidden, PurePosixPath(path).parts))}
    known = {path: place for path, place in seen.items() if input_format or suffix_of(path) in SUFFIXES}
    if not seen:
        endings = ", ".join(SUFFIXES)
        msg = f"there is no file in {name}" if kind == "folder" else f"no file matches {name}"
        msg += f" (hidden files and names that begin with _ are skipped; known extensions: {endings})"
        raise FileError(msg)
    outer = _keys(PurePosixPath(wild.split(name)[0].rpartition("/")[0] if kind == "nothing" else name).parts)
    members = tuple(
        PartitionFile(_file(place, input_format), outer | _keys(PurePosixPath(path).parts[:-1]))
        for path, place in sorted((known or seen).items())
    )
    return Files(name, members)


def _file(place: StoreObject | str, input_format: str | None) -> File:
    return File(place, input_format) if isinstance(place, str) else File(place.name, input_format, place=place)


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

    Examples
    --------
    >>> _matches(["day=1", "part-0.parquet"], ["day=*"]), _matches(["a", "b", "c.csv"], ["**", "*.csv"])
    (True, True)
    """
    if not patterns:
        return True
    if patterns[0] == "**":
        return any(_matches(parts[skip:], patterns[1:]) for skip in range(len(parts)))
    return bool(parts) and fnmatchcase(parts[0], patterns[0]) and _matches(parts[1:], patterns[1:])


def _is_hidden(part: str) -> bool:
    return part.startswith(HIDDEN) and "=" not in part


def _keys(folders: Sequence[str]) -> dict[str, str | None]:
    """Return the Hive partition keys in folder names, such as ``day=2026-11-20``."""
    pairs = (folder.split("=", 1) for folder in folders if folder.partition("=")[0] and "=" in folder)
    return {unquote(key): None if value == NO_VALUE else unquote(value) for key, value in pairs}
