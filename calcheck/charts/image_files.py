"""Pictures as files: SVG, PNG and PDF, or for a browser that selects regions."""

import os
import re
import subprocess
import sys
from contextlib import suppress
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path, PurePath

from calcheck.charts import picture as pictures
from calcheck.charts.drawing import Spec, vega_lite
from calcheck.core.text import strip_control
from calcheck.errors import OptionError
from calcheck.execution.run import address_space_limit

SUFFIXES = (".svg", ".png", ".pdf")
VERSION = "6.4"  # of Vega-Lite, in vl-convert
PROBE = f"import vl_convert; vl_convert.vegalite_to_svg({{'data': {{'values': []}}, 'mark': 'point'}}, '{VERSION}')"
NO_ENGINE = "pictures cannot be drawn: their engine does not start within the limit on memory (ulimit -v)"
SCALE = 2.0  # of pixels in PNG
IDENTIFIER = re.compile(r'((?:id="|url\(#|href="#))([a-z]+_?\d+)([")])')
IDENTIFIER_NUMBER = re.compile(r'((?:id="|url\(#|href="#))(\d+)([")])')
COORDINATES = re.compile(r'\s(?:d|transform|x|y|x1|y1|x2|y2|width|height)="[^"]*"')
EMPTY = re.compile(r'<path class="(?:background|foreground)"[^>]* d="(?:M0,0h0v0h0Z)?"[^>]*/>')
CIRCLE = re.compile(
    r'<path((?: aria-\w+="[^"]*"| role="[^"]*")*) transform="translate\(([\d.-]+),([\d.-]+)\)"'
    r' d="M([\d.]+),0A\4,\4,0,1,1,-\4,0A\4,\4,0,1,1,\4,0"'
)
DECIMALS = re.compile(r"(\.\d\d)\d+(?![\de])")
RESOURCES = re.compile(rb"(?:^ +/[A-Za-z]+\d+ \d+ 0 R\n)+", re.MULTILINE)  # of a page in PDF
REGION = "region"  # Name of the signal that holds the selected region


def require_image(path: str) -> None:
    """Raise, before computing, if no picture can be drawn to a file with this name."""
    if _suffix(path) not in SUFFIXES:
        msg = f"{path} must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, which sets the format of the picture"
        raise OptionError(msg)


@cache
def engine_starts() -> bool:
    """Return whether pictures can be drawn; tried in a child process if there is a limit on memory."""
    if address_space_limit() is None:
        return True
    # The engine reserves 64 GiB of addresses, and ends the process if it cannot
    probe = [sys.executable, "-c", PROBE]
    return subprocess.run(probe, check=False, capture_output=True).returncode == 0  # noqa: S603 - of this file


def draw(picture: pictures.Picture, path: str) -> bytes:
    """Return a picture as bytes, in the format given by the file name."""
    text, suffix = svg(picture), _suffix(path)
    if suffix == ".svg":
        return text.encode()
    import vl_convert

    if suffix == ".png":
        return bytes(vl_convert.svg_to_png(text, scale=SCALE))
    content = bytes(vl_convert.svg_to_pdf(text))  # with the resources of a page in random order
    return RESOURCES.sub(lambda match: b"".join(sorted(match[0].splitlines(keepends=True))), content)


def svg(picture: pictures.Picture) -> str:
    """Return a picture as SVG with its description; its identifiers occur in no other picture of a page."""
    return draw_spec(vega_lite(picture), picture.description or picture.title)


def draw_spec(spec: Spec, description: str) -> str:
    """Return what a specification describes as SVG."""
    if not engine_starts():
        raise OptionError(NO_ENGINE)
    import vl_convert

    text: str = vl_convert.vegalite_to_svg(spec, vl_version=VERSION, allowed_base_urls=[])
    label = escape(strip_control(description))
    # Two decimals are a hundredth of a pixel
    short = COORDINATES.sub(lambda found: DECIMALS.sub(r"\1", found[0]), EMPTY.sub("", text))
    circles = CIRCLE.sub(r'<circle\1 cx="\2" cy="\3" r="\4"', short)
    described = f'<svg role="graphics-document" aria-label="{label}" '
    return _with_own_identifiers(circles).replace("<svg ", described, 1)


def _with_own_identifiers(text: str) -> str:
    """Return SVG whose identifiers depend on its content only; vl-convert counts them from picture to picture."""
    numbers: dict[str, int] = {}

    def numbered(match: re.Match[str]) -> str:
        return f"{match[1]}{numbers.setdefault(match[2], len(numbers))}{match[3]}"

    counted = IDENTIFIER.sub(numbered, text)
    digest = sha256(counted.encode()).hexdigest()[:12]
    return IDENTIFIER_NUMBER.sub(rf"\1p{digest}-\2\3", counted)


def _suffix(path: str) -> str:
    return PurePath(path).suffix.lower()


def selectable(spec: Spec) -> Spec:
    """Return the specification of a panel whose signal ``"region"`` holds the limits of a selection in x and y."""
    spec = replaceable(spec)
    spec["layer"][0]["params"] = [{"name": REGION, "select": {"type": "interval"}}]
    return spec


def replaceable(spec: Spec) -> Spec:
    """Return the specification of a panel; the data of layer k are named ``"layer k"``."""
    layers = enumerate(spec["layer"])
    named = [{**layer, "data": {**layer["data"], "name": f"layer {number}"}} for number, layer in layers]
    return {**spec, "layer": named}


def javascript() -> str:
    """Return the scripts of Vega, Vega-Lite and Vega-Embed, 0.9 MB, from the user's cache folder if they are there."""
    from importlib.metadata import version

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
    import tempfile

    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
