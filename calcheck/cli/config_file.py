"""The settings file: the nearest `calcheck.toml`, or `[tool.calcheck]` in `pyproject.toml`."""

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
    """The content of a settings file, not yet validated against the options.

    Parameters
    ----------
    path : str or None
        Path of the file as shown in messages; None without a file.
    settings : mapping
        Option values for every command, by the option names as spelled in the file.
    commands : mapping
        Option values for single commands and metrics, by their names.
    gates : mapping
        Rules of ``calcheck check``.
    """

    path: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    commands: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    gates: Mapping[str, Any] = field(default_factory=dict)


def find_config(start: Path) -> Config:
    """Return the nearest settings file in a folder or its parents; ``calcheck.toml`` has priority in each folder.

    Parameters
    ----------
    start : Path
        Folder where the search starts.

    Raises
    ------
    FileError
        The nearest file cannot be read or is not valid TOML.
    """
    for folder in (start.absolute(), *start.absolute().parents):
        for name in (OWN, SHARED):
            if _is_file(folder / name) and (found := _read(folder / name)) is not None:
                return found
    return Config()


def read_config(path: Path) -> Config:
    """Return the settings of one file; of a ``pyproject.toml``, those in ``[tool.calcheck]``.

    Raises
    ------
    FileError
        The file cannot be read, is not valid TOML, or is a ``pyproject.toml`` without that table.
    """
    found = _read(path)
    if found is None:
        msg = f"{_called(path)} has no table [{TABLE}]"
        raise FileError(msg)
    return found


def _read(path: Path) -> Config | None:
    """Return the settings of a file; None for a ``pyproject.toml`` without ``[tool.calcheck]``."""
    shared = path.name == SHARED
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            msg = f"{_called(path)} is larger than {LARGEST_BYTES >> 20} MiB, the maximum size of a settings file"
            raise FileError(msg)
        text = content.decode("utf-8")
    except OSError as error:
        msg = f"cannot read the settings in {_called(path)}: {error.strerror}"
        raise FileError(msg) from error
    except UnicodeDecodeError as error:
        msg = f"{_called(path)} is not valid TOML: it is not encoded in UTF-8"
        raise FileError(msg) from error
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also raised for very long numbers and deeply nested lists
        if shared and TABLE not in text:
            return None
        msg = f"{_called(path)} is not valid TOML: {error}. To ignore settings files, pass --no-config"
        raise FileError(msg) from error
    if shared:
        tools = document.get("tool")
        if not isinstance(tools, dict) or "calcheck" not in tools:
            return None
        document = _table(path, TABLE, tools["calcheck"])
    tables = {name: value for name, value in document.items() if isinstance(value, dict)}
    return Config(
        path=_called(path),
        settings={name: value for name, value in document.items() if name not in tables and name != GATES},
        commands={name: value for name, value in tables.items() if name != GATES},
        gates=_table(path, GATES, document.get(GATES, {})),
    )


def _table(path: Path, name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        msg = f"{_called(path)}: {name} must be a table [{name}], got {value!r}"
        raise FileError(msg)
    return value


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a parent folder without read permission
        return False


def _called(path: Path) -> str:
    """Return the path of a file, relative to the working directory if that is shorter."""
    try:
        return min(os.path.relpath(path), str(path), key=len)
    except (OSError, ValueError):  # the working directory was deleted or is on another drive
        return str(path)
