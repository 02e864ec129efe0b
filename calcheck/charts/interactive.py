"""Specifications of pictures for a browser: regions can be selected, and data replaced; and the scripts they need."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from calcheck.charts.image import VERSION
from calcheck.charts.vega_lite import Spec, vega_lite

if TYPE_CHECKING:
    from calcheck.charts.picture import Picture

REGION = "region"
"""Name of the signal that holds the selected region."""


def selectable(picture: Picture) -> Spec:
    """Return the specification of a picture with one panel, of which regions can be selected.

    The data of layer k are named ``"layer k"``. The signal ``"region"`` holds the limits of the selection, by the
    fields ``x`` and ``y``.
    """
    spec = replaceable(picture)
    spec["layer"][0]["params"] = [{"name": REGION, "select": {"type": "interval"}}]
    return spec


def replaceable(picture: Picture) -> Spec:
    """Return the specification of a picture with one panel; the data of layer k are named ``"layer k"``."""
    spec = vega_lite(picture)
    (panel,) = spec.pop("concat")
    whole = {name: part for name, part in spec.items() if name not in ("columns", "spacing", "resolve")}
    layers = [
        {**layer, "data": {**layer["data"], "name": f"layer {number}"}} for number, layer in enumerate(panel["layer"])
    ]
    return {**panel, **whole, "layer": layers}


def javascript() -> str:
    """Return the scripts that draw specifications: Vega, Vega-Lite and Vega-Embed, about 0.9 MB.

    They define ``vegaEmbed``. They are kept in the user's cache folder, if it is writable: bundling takes a second.
    """
    import vl_convert

    name = f"vega-{version('vl-convert-python')}.js"
    with suppress(OSError, UnicodeDecodeError, RuntimeError):
        return (_cache_folder() / name).read_text(encoding="utf-8")
    text: str = vl_convert.javascript_bundle(vl_version=VERSION)  # type: ignore[call-arg] # the snippet is optional
    with suppress(OSError, RuntimeError):
        _write(_cache_folder() / name, text)
    return text


def _cache_folder() -> Path:
    """Return the folder for files that can be made again; raise RuntimeError if the user has no home."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "calcheck"


def _write(path: Path, text: str) -> None:
    """Write a file at once, so that no other process reads a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
