"""Many files that are one: a folder, a pattern, partitions; in the order of their paths."""

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
from calcheck.io.files import STDIN, SUFFIXES, File, kind_of, suffix_of
from calcheck.io.object_store import is_uri, open_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from calcheck.io.object_store import StoreObject

    AnyFile: TypeAlias = File | "Files"

WILD = re.compile(r"[*?[]")
WILD_IN_URIS = re.compile(r"[*[]")  # a question mark begins their options
HIDDEN = (".", "_")
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
SHOWN = 3  # names that messages list


@dataclass(frozen=True)
class PartitionFile:
    """One of many files.

    Parameters
    ----------
    file : File
        Where it is.
    keys : dict
        What the folders around it say of all of its rows: ``{"day": "2026-11-20"}`` for ``day=2026-11-20/``.
    """

    file: File
    keys: dict[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Files:
    """Files of one format, with the same columns, that are read one after the other.

    Parameters
    ----------
    name : str
        The folder or the pattern, as given.
    members : tuple of Member
        The files, in the order in which they are read.
    schema : pyarrow.Schema, optional
        The columns, where these are a part of the files that decide on them.
    """

    name: str
    members: tuple[PartitionFile, ...]
    schema: pa.Schema | None = None

    @property
    def display_name(self) -> str:
        """How messages call them."""
        return self.name

    @property
    def count(self) -> int:
        """How many they are."""
        return len(self.members)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files, by name."""
        return tuple(member.file.name for member in self.members)

    @property
    def input_format(self) -> str | None:
        """Their format, where their names do not tell."""
        return self.members[0].file.input_format

    @property
    def format(self) -> str:
        """Their format.

        Raises
        ------
        FileError
            They differ in it.
        """
        formats: dict[str, str] = {}
        for member in self.members:
            formats.setdefault(member.file.format, member.file.name)
        if len(formats) > 1:
            told = ", ".join(f"{name} ({called})" for called, name in list(formats.items())[:SHOWN])
            msg = f"{self.name} holds files of several formats: {told}. Name those of one by a pattern, in quotes"
            raise FileError(msg)
        return next(iter(formats))

    def sha256(self) -> str:
        """Return the fingerprint of the files' fingerprints, in their order."""
        digests = "\n".join(member.file.sha256() for member in self.members)
        return hashlib.sha256(digests.encode()).hexdigest()

    def prune_partitions(self, filters: Iterable[str]) -> Self:
        """Return the files whose folders agree with filters ``KEY=VALUE``: others need not be opened.

        Raises
        ------
        FileError
            There are none.
        """
        members = self.members
        for key, value in (text.split("=", 1) for text in filters):
            kept = tuple(member for member in members if member.keys.get(key, value) == value)
            if not kept:
                known = dict.fromkeys(member.keys.get(key) or "" for member in members)
                told = named_some(known, most=SHOWN)
                msg = f"{self.name}: no file has {key}={value} (there are {told})"
                raise FileError(msg)
            members = kept
        return replace(self, members=members)


def resolve(name: str, input_format: str | None = None) -> AnyFile:
    """Find a file, or the files of a folder or a pattern; local, or in a store behind a URI.

    Hidden files and those that other tools leave beside data (``_SUCCESS``) are passed over, and, where there are files
    with endings that are known, those with others.

    Parameters
    ----------
    name : str
        A path, a pattern with ``*``, ``**``, ``?`` or ``[…]``, or a URI; ``"-"`` for standard input.
    input_format : str, optional
        The format, where names do not tell.

    Raises
    ------
    FileError
        There is none.
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
        msg += f" (hidden ones and those that begin with _ are passed over; known endings: {endings})"
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
    """Return all files below a folder, by their paths from there."""
    if is_uri(folder):
        return {**open_object(folder).below()}
    return {each.relative_to(folder).as_posix(): str(each) for each in Path(folder).rglob("*") if each.is_file()}


def _matching(pattern: str, wild: re.Pattern[str]) -> dict[str, StoreObject | str]:
    """Return the files that match a pattern or are in folders that do, by their paths from where it varies."""
    base, slash, _ = wild.split(pattern, maxsplit=1)[0].rpartition("/")
    if is_uri(pattern):
        rest, question, query = pattern[len(base) + 1 :].partition("?")
        below = _in_folder(f"{base}{question}{query}")
        return {path: place for path, place in below.items() if _matches(path.split("/"), rest.split("/"))}
    found: dict[str, StoreObject | str] = {}
    for place in glob.iglob(pattern, recursive=True):  # noqa: PTH207 - Path.glob refuses **.parquet
        path = place[len(base + slash) :]
        if Path(place).is_dir():
            found |= {PurePosixPath(path, inner).as_posix(): each for inner, each in _in_folder(place).items()}
        else:
            found[path] = place
    return found


def _matches(parts: Sequence[str], patterns: Sequence[str]) -> bool:
    """Tell whether a path matches a pattern, or is in a folder that does.

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
    """Read keys and values from the names of folders, as Hive writes them: ``day=2026-11-20``."""
    pairs = (folder.split("=", 1) for folder in folders if folder.partition("=")[0] and "=" in folder)
    return {unquote(key): None if value == NO_VALUE else unquote(value) for key, value in pairs}
