"""Recalibration maps as JSON files, with a checksum."""

from __future__ import annotations

import json
from dataclasses import asdict
from hashlib import sha256
from typing import Any

from calcheck.errors import FileError
from calcheck.io.files import File
from calcheck.recalibration.recalibration_map import VERSION, RecalibrationMap
from calcheck.storage.atomic_write import write_text
from calcheck.storage.report_json import read_json

HOW = "calcheck recalibrate FILE --save-map MAP.json writes maps"
CHECKSUM = "checksum"


def write_map(found: RecalibrationMap, path: str) -> None:
    """Write a map as JSON; numbers are read again without loss."""
    content = asdict(found)
    write_text(path, json.dumps({**content, CHECKSUM: _checksum(content)}, indent=2, allow_nan=False) + "\n")


def read_map(path: str) -> RecalibrationMap:
    """Return a map that was written by :func:`write_map`.

    Parameters
    ----------
    path : str
        The file, or ``"-"`` for standard input.

    Raises
    ------
    FileError
        The file cannot be read, is not a map, is of another version, or was changed.
    """
    from pydantic import ValidationError

    file = File(path)
    content = read_json(file, HOW)
    if not isinstance(content, dict) or "calcheck_map" not in content:
        msg = f"{file.display_name} is not a recalibration map: it has no calcheck_map. {HOW}"
        raise FileError(msg)
    if content["calcheck_map"] != VERSION:
        version = content["calcheck_map"]
        msg = f"{file.display_name} has the map version {version!r}; this calcheck reads {VERSION}. Fit the map again"
        raise FileError(msg)
    stated = content.pop(CHECKSUM, None)
    if stated != _checksum(content):
        msg = f"{file.display_name} was changed after it was written: its checksum does not match. Fit the map again"
        raise FileError(msg)
    try:
        return _validated(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        msg = f"{file.display_name} is not a recalibration map of this calcheck: {where}: {first['msg']}"
        raise FileError(msg) from error


def _validated(content: dict[str, Any]) -> RecalibrationMap:
    from pydantic import TypeAdapter

    found: RecalibrationMap = TypeAdapter(RecalibrationMap).validate_json(json.dumps(content), strict=True)
    return found


def _checksum(content: dict[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True, allow_nan=False).encode()).hexdigest()
