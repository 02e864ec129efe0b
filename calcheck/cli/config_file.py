"""The nearest file of settings: `calcheck.toml`, or `[tool.calcheck]` in `pyproject.toml`."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from calcheck.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

OWN, SHARED, TABLE = "calcheck.toml", "pyproject.toml", "tool.calcheck"
GATES = "gates"
LARGEST_BYTES = 1 << 20


@dataclass(frozen=True)
class Config:
    """What a file of settings says, as it says it: which options there are is not known here.

    Parameters
    ----------
    path : str or None
        The file, as messages call it; None if there is none.
    settings : mapping
        What it says to every command: values of options by name, as they are spelled there.
    commands : mapping
        What it says to single commands and metrics, by their names.
    gates : mapping
        The rules of ``calcheck check``.
    """

    path: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    commands: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    gates: Mapping[str, Any] = field(default_factory=dict)


def find_config(start: Path) -> Config:
    """Read the nearest file of settings, in a folder or above it; ``calcheck.toml`` comes first in each.

    Parameters
    ----------
    start : Path
        The folder.

    Raises
    ------
    FileError
        The nearest file cannot be read, or is no TOML.
    """
    for folder in (start.absolute(), *start.absolute().parents):
        for name in (OWN, SHARED):
            if _is_file(folder / name) and (found := _read(folder / name)) is not None:
                return found
    return Config()


def read_config(path: Path) -> Config:
    """Read one file of settings; of a ``pyproject.toml``, its table.

    Raises
    ------
    FileError
        It cannot be read, is no TOML, or is a ``pyproject.toml`` without the table.
    """
    found = _read(path)
    if found is None:
        msg = f"{_called(path)} has no table [{TABLE}]"
        raise FileError(msg)
    return found


def _read(path: Path) -> Config | None:
    """Read a file of settings; None for a ``pyproject.toml`` that is not about calcheck."""
    shared = path.name == SHARED
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            msg = f"{_called(path)} is larger than {LARGEST_BYTES >> 20} MiB, which no file of settings is"
            raise FileError(msg)
        text = content.decode("utf-8")
    except OSError as error:
        msg = f"the settings in {_called(path)} cannot be read: {error.strerror}"
        raise FileError(msg) from error
    except UnicodeDecodeError as error:
        msg = f"{_called(path)} is no TOML: it is not in UTF-8"
        raise FileError(msg) from error
    try:
        told = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # numbers of any length, lists in lists in lists
        if shared and TABLE not in text:
            return None
        msg = f"{_called(path)} is no TOML: {error}. To do without settings, calcheck --no-config"
        raise FileError(msg) from error
    if shared:
        tools = told.get("tool")
        if not isinstance(tools, dict) or "calcheck" not in tools:
            return None
        told = _table(path, TABLE, tools["calcheck"])
    tables = {name: value for name, value in told.items() if isinstance(value, dict)}
    return Config(
        path=_called(path),
        settings={name: value for name, value in told.items() if name not in tables and name != GATES},
        commands={name: value for name, value in tables.items() if name != GATES},
        gates=_table(path, GATES, told.get(GATES, {})),
    )


def _table(path: Path, name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        msg = f"{_called(path)}: {name} must be a table, [{name}], got {value!r}"
        raise FileError(msg)
    return value


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder above ours that is closed to us
        return False


def _called(path: Path) -> str:
    """Name a file from where we are."""
    try:
        return min(os.path.relpath(path), str(path), key=len)
    except (OSError, ValueError):  # our folder is gone, or on another drive
        return str(path)
