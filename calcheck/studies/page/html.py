"""Pages as one HTML file that loads nothing: pictures are there without scripts, which link maps and sort tables."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from calcheck.charts.drawing import NO_ENGINE, engine_starts, javascript, replaceable, selectable, svg
from calcheck.core.text import embed
from calcheck.render.html import PAGE, STYLE, block_lines, element, escape
from calcheck.studies.page.blocks import Data, Figure, Folded, LinkedMap, Page, PageBlock, Row, Section

if TYPE_CHECKING:
    from calcheck.charts.picture import Picture

ASSETS = Path(__file__).with_name("assets")
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
MAX_HEADING = 6


def render(page: Page) -> str:
    """Return a page as HTML."""
    lines = [element("h1", escape(page.title)), *(line for block in page.blocks for line in _lines(block, 2))]
    lines += [_library(javascript())] if engine_starts() and any(map(_has_map, page.blocks)) else []
    lines += [f"<script>{_asset('page.js')}</script>"]
    return PAGE.format(
        generator=escape(f"calcheck {page.calcheck}"),
        title=escape(page.title),
        policy=POLICY,
        style=STYLE + "\n" + _asset("page.css"),
        body="\n".join(lines),
    )


def _library(script: str) -> str:
    """Return a script as compressed data, a third of its size, which the script of the page runs."""
    packed = b64encode(gzip.compress(script.encode(), mtime=0)).decode()
    return f'<script type="text/plain" id="library">{packed}</script>'


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8").rstrip()


def _has_map(block: PageBlock) -> bool:
    """Return whether a block is or contains a map."""
    return isinstance(block, LinkedMap) or (
        isinstance(block, Folded | Section | Row) and any(map(_has_map, block.blocks))
    )


def _lines(block: PageBlock, level: int) -> Iterator[str]:
    """Yield the lines of a block; its headings are of a level."""
    match block:
        case Section():
            yield "<section>"
            yield element(f"h{min(level, MAX_HEADING)}", escape(block.title))
            yield from _all(block.blocks, level + 1)
            yield "</section>"
        case Row():
            yield '<div class="row">'
            yield from _all(block.blocks, level)
            yield "</div>"
        case Folded():
            yield "<details>"
            yield element("summary", escape(block.title))
            yield from _all(block.blocks, level)
            yield "</details>"
        case Figure():
            yield "<figure>"
            yield _drawn(block.picture)
            yield from _lines(Folded("Numbers", block.numbers), level) if block.numbers else ()
            yield "</figure>"
        case LinkedMap():
            yield from _linked_map(block)
        case Data():
            yield embed(block.kind, block.content)
        case _:
            yield from block_lines(block)


def _all(blocks: tuple[PageBlock, ...], level: int) -> Iterator[str]:
    for block in blocks:
        yield from _lines(block, level)


def _drawn(picture: Picture) -> str:
    """Return a picture, or why there is none."""
    return svg(picture) if engine_starts() else element("p", escape(NO_ENGINE))


def _linked_map(block: LinkedMap) -> Iterator[str]:
    """Yield a map: its pictures and its table for all rows, which the script of the page replaces."""
    specs = {"map": selectable(block.picture)}
    specs["map"]["layer"][0]["data"].pop("values")  # The script takes them from the data
    pictures = {"map": block.picture}
    if block.histogram is not None:
        specs["histogram"] = replaceable(block.histogram)
        pictures["histogram"] = block.histogram
    yield '<div class="linked-map">'
    yield '<p class="choice" hidden><label>Region: <select></select></label> or drag over the map</p>'
    yield '<div class="row">'
    yield from (element("figure", _drawn(picture), name) for name, picture in pictures.items())
    yield '<div class="region" aria-live="polite">'
    yield '<p class="region-name">All rows</p>'
    yield from block_lines(block.table)
    yield "</div>"
    yield "</div>"
    content = json.dumps({**block.data, "specs": specs}, allow_nan=False, separators=(",", ":"))
    yield embed("map", content)
    yield "</div>"
