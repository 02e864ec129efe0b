"""Pictures as files: SVG, PNG and PDF. The same picture gives the same bytes, and nothing is loaded from a network."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import PurePath
from typing import TYPE_CHECKING

from calcheck.charts.vega_lite import vega_lite
from calcheck.core.text import strip_control
from calcheck.errors import OptionError
from calcheck.execution.machine import address_space_limit

if TYPE_CHECKING:
    from calcheck.charts.picture import Picture

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


def require_image(path: str) -> None:
    """Raise, before computing, if no picture can be drawn to a file with this name."""
    if _suffix(path) not in SUFFIXES:
        msg = f"{path} must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, which sets the format of the picture"
        raise OptionError(msg)


@cache
def engine_starts() -> bool:
    """Return whether pictures can be drawn; tried in a child process if there is a limit on memory.

    The engine reserves 64 GiB of addresses, and ends the process if it cannot.
    """
    if address_space_limit() is None:
        return True
    probe = [sys.executable, "-c", PROBE]
    return subprocess.run(probe, check=False, capture_output=True).returncode == 0  # noqa: S603 - of this file


def draw(picture: Picture, path: str) -> bytes:
    """Return a picture as bytes, in the format given by the file name."""
    return CONVERTERS[_suffix(path)](svg(picture))


def svg(picture: Picture) -> str:
    """Return a picture as SVG, with its description for screen readers.

    Its identifiers occur in no other picture, so that several pictures fit in one page.
    """
    if not engine_starts():
        raise OptionError(NO_ENGINE)
    import vl_convert

    text: str = vl_convert.vegalite_to_svg(vega_lite(picture), vl_version=VERSION, allowed_base_urls=[])
    label = escape(strip_control(picture.description or picture.title))
    return _with_own_identifiers(_compact(text)).replace(
        "<svg ", f'<svg role="graphics-document" aria-label="{label}" ', 1
    )


def _compact(text: str) -> str:
    """Return SVG without empty paths, with circles, whose coordinates have two decimals, a hundredth of a pixel."""
    short = COORDINATES.sub(lambda found: DECIMALS.sub(r"\1", found[0]), EMPTY.sub("", text))
    return CIRCLE.sub(r'<circle\1 cx="\2" cy="\3" r="\4"', short)


def _with_own_identifiers(text: str) -> str:
    """Return SVG whose identifiers depend on its content only; vl-convert counts them from picture to picture."""
    numbers: dict[str, int] = {}

    def numbered(match: re.Match[str]) -> str:
        return f"{match[1]}{numbers.setdefault(match[2], len(numbers))}{match[3]}"

    counted = IDENTIFIER.sub(numbered, text)
    digest = sha256(counted.encode()).hexdigest()[:12]
    return IDENTIFIER_NUMBER.sub(rf"\1p{digest}-\2\3", counted)


def _png(text: str) -> bytes:
    import vl_convert

    return bytes(vl_convert.svg_to_png(text, scale=SCALE))


def _pdf(text: str) -> bytes:
    """Return SVG as PDF; vl-convert lists the resources of a page in random order."""
    import vl_convert

    content = bytes(vl_convert.svg_to_pdf(text))
    return RESOURCES.sub(lambda match: b"".join(sorted(match[0].splitlines(keepends=True))), content)


CONVERTERS: dict[str, Callable[[str], bytes]] = {".svg": str.encode, ".png": _png, ".pdf": _pdf}


def _suffix(path: str) -> str:
    return PurePath(path).suffix.lower()
