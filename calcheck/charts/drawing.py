"""Pictures as Vega-Lite 6 specifications, and as files: SVG, PNG and PDF, or for a browser that selects regions."""

import math
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path, PurePath
from typing import Any, assert_never

from calcheck.charts import picture as pictures
from calcheck.core.text import strip_control
from calcheck.errors import OptionError
from calcheck.execution.run import address_space_limit

Spec = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe and Ito 2008
DASHES = ((1, 0), (5, 3), (1.5, 2), (6, 2, 1.5, 2))  # of the first seven names, the next seven, …
BLACK, GRAY = COLORS[-1], "#8C8C8C"
OUTLINE = {"stroke": "white", "strokeWidth": 0.7}  # of points, which also lie on maps
FEW_POINTS = 20  # maximum points of a line that are drawn with markers
MANY_POINTS = 30  # maximum points that are large, and labeled one by one for screen readers
FAINT = {"strokeWidth": 1, "opacity": 0.45, "aria": False}  # intervals of many points
COLUMNS = 3  # maximum panels per row
WIDTH, HEIGHT, SINGLE_WIDTH = 260, 220, 440  # size of a panel, and width of a single panel, in pixels
LINE_HEIGHT = 26  # height of a line that has a name, in pixels
SYMBOL_WIDTH = 40  # width of the symbol of a legend entry and its spacing, in pixels
CHARACTER_WIDTH = 5.6  # mean width of a character of the line below the title, in pixels
PAGE_WIDTH = 300  # of a panel on a page with its labels, in pixels
MAX_HORIZONTAL_LABELS = 8  # maximum named ticks with horizontal labels
MAX_LABELED = 100  # maximum cells of a map that are labeled one by one for screen readers
LONGEST, LONGEST_TITLE = 60, 90  # maximum characters of a name, and of the title of a picture
DIGITS = 9  # significant digits of coordinates
PADDING = 8  # between marks and the ends of an axis without limits, in pixels
SPACING = 30  # between panels, in pixels
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"  # the first is a part of vl-convert
PLAIN: Spec = {"titleFontWeight": "normal"}  # fonts of one weight: vl-convert writes several in random order to PDF
CONFIG: Spec = {
    "font": FONT,
    "background": "white",
    "view": {"stroke": "transparent"},
    "scale": {"invalid": {"fill": {"value": "#d9d9d9"}}},
    "axis": {
        "gridColor": "#e6e6e6",
        "domainColor": "#595959",
        "tickColor": "#595959",
        "labelFontSize": 11,
        "titleFontSize": 12,
        **PLAIN,
    },
    "legend": {"orient": "bottom", "title": None, "labelLimit": 0, "labelFontSize": 11, "titleFontSize": 11, **PLAIN},
    "title": {
        "anchor": "start",
        "fontWeight": "normal",
        "fontSize": 15,
        "offset": 10,
        "subtitleColor": "#595959",
        "subtitleFontSize": 11,
        "subtitlePadding": 4,
    },
}


def panel_specs(picture: pictures.Picture, width: float = PAGE_WIDTH) -> list[Spec]:
    """Return the specification of each panel by itself, without titles and legend, which are text on a page."""
    style = _Style(picture, 0)
    about = {"$schema": SCHEMA, "description": strip_control(picture.description), "config": CONFIG}
    fit = {"autosize": {"type": "fit-x", "contains": "padding"}, "width": width}
    return [{**about, **fit, "height": _height(panel), "layer": _all_layers(panel, style)} for panel in picture.panels]


def legend(picture: pictures.Picture) -> dict[str, str]:
    """Return the color of each name."""
    return _Style(picture, 0).colors


def vega_lite(picture: pictures.Picture) -> Spec:
    """Return the Vega-Lite specification of a picture."""
    columns = 2 if len(picture.panels) == 4 else min(COLUMNS, len(picture.panels))  # noqa: PLR2004 - two by two
    width = SINGLE_WIDTH if columns == 1 else WIDTH
    style = _Style(picture, columns * width)
    panels: list[Spec] = []
    for panel in picture.panels:
        titled = {"title": {"text": plain_name(panel.title), "fontSize": 12, "offset": 6}} if panel.title else {}
        size = {"width": width, "height": _height(panel)}
        panels.append({**titled, "layer": _all_layers(panel, style), **size})
    expected = textwrap.wrap(strip_control(picture.expected), int(columns * (width + SPACING) / CHARACTER_WIDTH))
    title = {"text": plain_name(picture.title, LONGEST_TITLE), "subtitle": expected}
    return {
        "$schema": SCHEMA,
        "description": strip_control(picture.description),
        **({"title": title} if picture.title or picture.expected else {}),
        "concat": panels,
        "columns": columns,
        "spacing": SPACING,
        "resolve": {"scale": {"color": "shared", "fill": "independent"}},
        "config": CONFIG,
    }


def plain_name(text: str, longest: int = LONGEST) -> str:
    """Return text without control characters and of limited length."""
    shown = strip_control(text)
    return shown if len(shown) <= longest else f"{shown[: longest // 2]}…{shown[-longest // 2 :]}"


class _Style:
    """The colors of names, and the legend, which is at most ``width`` pixels wide; none for 0."""

    def __init__(self, picture: pictures.Picture, width: float) -> None:
        marks = [mark for panel in picture.panels for mark in panel.marks if _name(mark)]
        names = list(dict.fromkeys(_name(mark) for mark in marks))
        widths = [len(plain_name(name)) * CHARACTER_WIDTH + SYMBOL_WIDTH for name in names]
        symbol: Spec = {"symbolType": "square", "symbolStrokeWidth": 0}
        if all(isinstance(mark, pictures.Line) for mark in marks):
            symbol = {"symbolType": "stroke", "symbolStrokeWidth": 3}
        columns = len(names) if sum(widths) <= width else max(1, int(width / max(widths, default=1)))
        self._legend = {"columns": columns, "symbolOpacity": 1, **symbol} if width else None
        self._places = {name: place for place, name in enumerate(name for name in names if not _is_reference(name))}
        own = {name: COLORS[place % len(COLORS)] for name, place in self._places.items()}
        known = pictures.JUDGED | pictures.MARKED
        self.colors = {plain_name(name): known.get(name, own.get(name, GRAY)) for name in names}
        self._scale = {"domain": list(self.colors), "range": list(self.colors.values())}

    def color(self, name: str) -> Spec:
        """Return the encoding of the color of a mark."""
        if not name:
            return {"value": BLACK}
        return {"datum": plain_name(name), "type": "nominal", "scale": self._scale, "legend": self._legend}

    def dash(self, name: str) -> Sequence[float]:
        """Return the dashes of a line: from the eighth name on, colors repeat with other dashes."""
        return DASHES[self._places.get(name, 0) // len(COLORS) % len(DASHES)]


def _name(mark: pictures.Mark) -> str:
    return "" if isinstance(mark, pictures.Cells | pictures.Rule) else mark.name


def _is_reference(name: str) -> bool:
    return name.endswith(pictures.REFERENCES)


def _all_layers(panel: pictures.Panel, style: _Style) -> list[Spec]:
    return [layer for mark in panel.marks for layer in _layers(mark, panel, style)]


def _height(panel: pictures.Panel) -> int:
    """Return the height of a panel in pixels: that of its lines if these have names."""
    return LINE_HEIGHT * (len(panel.y.names) + 1) if panel.y.names else HEIGHT


def _layers(mark: pictures.Mark, panel: pictures.Panel, style: _Style) -> list[Spec]:
    """Return the layers of a mark."""
    match mark:
        case pictures.Line():
            return [_line(mark, panel, style)]
        case pictures.Points():
            return _points(mark, panel, style)
        case pictures.Band() | pictures.Intervals() | pictures.Bars():
            return [_extents(mark, panel, style)]
        case pictures.Cells():
            return [_cells(mark, panel)]
        case pictures.Hatching():
            x, y = _positions(panel.x), _positions(panel.y)
            ends = {"x": x(mark.x_start), "x2": x(mark.x_stop), "y": y(mark.y_start), "y2": y(mark.y_stop)}
            drawn = {"type": "rule", "strokeWidth": 1.2, "aria": False}
            return [_layer(_rows(**ends), drawn, panel, style.color(mark.name))]
        case pictures.Rule():
            data = _rows(x=[mark.x]) if mark.y is None else _rows(y=[mark.y])
            drawn = {"type": "rule", "strokeDash": [5, 4], "strokeWidth": 1.2}
            return [_layer(data, drawn, panel, {"value": BLACK})]
        case _:
            assert_never(mark)


def _extents(mark: pictures.Band | pictures.Intervals | pictures.Bars, panel: pictures.Panel, style: _Style) -> Spec:
    """Return the layer of a mark that extends from a lower to an upper limit at each position."""
    x, y = _positions(panel.x), _positions(panel.y)
    sides = {"x": x(mark.start), "x2": x(mark.stop)} if isinstance(mark, pictures.Bars) else {"x": x(mark.x)}
    drawn: Spec = {"type": "rect", "opacity": 0.3 if _is_reference(mark.name) else 0.7, "strokeWidth": 0}
    if isinstance(mark, pictures.Band):
        drawn = {"type": "area", "opacity": 0.2}
    if isinstance(mark, pictures.Intervals):
        drawn = {"type": "rule", "opacity": 0.35, "strokeWidth": 7}
    ends = {"y": y(mark.low), "y2": y(mark.high)} if mark.low else {}
    return _layer(_rows(**sides, **ends), drawn, panel, style.color(mark.name))


def _line(mark: pictures.Line, panel: pictures.Panel, style: _Style) -> Spec:
    data = _rows(x=_positions(panel.x)(mark.x), y=_positions(panel.y)(mark.y))
    points = {} if mark.dashed or len(mark.x) > FEW_POINTS else {"point": {"size": 22}}
    dash = (5, 4) if mark.dashed else style.dash(mark.name)
    drawn = {"type": "line", "strokeWidth": 1.3 if mark.dashed else 1.8, "strokeDash": list(dash), **points}
    return _layer(data, drawn, panel, style.color(mark.name))


def _points(mark: pictures.Points, panel: pictures.Panel, style: _Style) -> list[Spec]:
    x, y, color = _positions(panel.x), _positions(panel.y), style.color(mark.name)
    many = len(mark.x) > MANY_POINTS
    size, interval = (14, FAINT) if many else (34, {"strokeWidth": 1.4})
    drawn = {"type": "circle", "size": size, "opacity": 1, **OUTLINE, **({"aria": False} if many else {})}
    points = _layer(_rows(x=x(mark.x), y=y(mark.y)), drawn, panel, color)
    if not mark.low:
        return [points]
    intervals = (
        _rows(x=x(mark.low), x2=x(mark.high), y=y(mark.y))
        if mark.horizontal
        else _rows(x=x(mark.x), y=y(mark.low), y2=y(mark.high))
    )
    return [_layer(intervals, {"type": "rule", **interval}, panel, color), points]


def _cells(mark: pictures.Cells, panel: pictures.Panel) -> Spec:
    x, y = _positions(panel.x), _positions(panel.y)
    edges = {"x": x(mark.x_start), "x2": x(mark.x_stop), "y": y(mark.y_start), "y2": y(mark.y_stop)}
    scale: Spec = (
        {"scheme": "viridis"} if mark.middle is None else {"scheme": "blueorange", "domainMid": _finite(mark.middle)}
    )
    known = _bounds(mark.low, mark.high)
    scale |= {"clamp": True} | ({"domain": list(known.values())} if len(known) == 2 else known)  # noqa: PLR2004 - both
    shown = {"direction": "horizontal", "title": plain_name(mark.label), "gradientLength": HEIGHT, "format": ".3~g"}
    fill = {"field": "value", "type": "quantitative", "scale": scale, "legend": shown}
    drawn = {"type": "rect", "aria": len(mark.value) <= MAX_LABELED, "invalid": "show"}
    layer = _layer(_rows(**edges, value=[_finite(each) for each in mark.value]), drawn, panel, {})
    return {**layer, "encoding": {**layer["encoding"], "fill": fill}}


def _layer(data: list[Spec], mark: Spec, panel: pictures.Panel, color: Spec) -> Spec:
    """Return a layer with its own data; the fields x, y, x2, y2 are drawn as far as the data have them."""
    fields = data[0] if data else {"x": None, "y": None}
    encoding = {name: _channel(name, axis) for name, axis in (("x", panel.x), ("y", panel.y)) if name in fields}
    ends = {name: {"field": name} for name in ("x2", "y2") if name in fields}
    return {
        "data": {"values": data},
        "mark": {**mark, "clip": True},
        "encoding": {**encoding, **ends, **({"color": color} if color else {})},
    }


def _channel(name: str, axis: pictures.Axis) -> Spec:
    """Return the encoding of a position."""
    title = plain_name(axis.label)
    if axis.names:
        upright = {"labelAngle": 0} if len(axis.names) <= MAX_HORIZONTAL_LABELS else {}
        drawn = {"title": title, "labelLimit": 180, "grid": True, **upright}
        scale: Spec = {"type": "point", "domain": _unique(axis.names), "padding": 0.5}
        return {"field": name, "type": "ordinal", "scale": scale, "axis": drawn}
    if axis.dates:
        drawn = {"title": title, "labelFlush": False, "labelSeparation": 8, "tickCount": 6}
        return {"field": name, "type": "temporal", "scale": {"type": "utc", "padding": PADDING}, "axis": drawn}
    bounds = _bounds(axis.low, axis.high)
    room = {} if bounds else {"padding": PADDING}
    scale = {"type": "log", "nice": False} if axis.log else {"zero": False, "nice": len(bounds) < 2}  # noqa: PLR2004 - an end without a limit
    ticks = {"tickCount": 6, **({"format": ",.7~g"} if axis.log else {})}
    drawn = {"title": title, "labelFlush": False, "labelSeparation": 8, **ticks}
    return {"field": name, "type": "quantitative", "scale": {**scale, **bounds, **room}, "axis": drawn}


def _bounds(low: float | None, high: float | None) -> Spec:
    """Return the ends of a scale that are stated."""
    ends = {"domainMin": low, "domainMax": high}
    return {name: _finite(end) for name, end in ends.items() if end is not None}


def _positions(axis: pictures.Axis) -> Callable[[Sequence[float]], list[float | str | None]]:
    """Return a function that makes coordinates on an axis: numbers, None for those that cannot be shown, or names."""
    if axis.names:
        names = _unique(axis.names)
        return lambda places: [names[int(place)] for place in places]
    if axis.dates:
        return lambda seconds: [_finite(1000 * second) for second in seconds]  # milliseconds
    if axis.log:
        return lambda numbers: [_finite(number) if number > 0 else None for number in numbers]
    return lambda numbers: [_finite(number) for number in numbers]


def _unique(names: Sequence[str]) -> list[str]:
    """Return names as they are shown; those that would look alike get their number."""
    shown = [plain_name(name) for name in names]
    return [name if shown.count(name) == 1 else f"{place + 1}: {name}" for place, name in enumerate(shown)]


def _finite(number: float) -> float | None:
    """Return a number without the last digits, which depend on the machine; None if it is not finite."""
    return float(f"{number:.{DIGITS}g}") if math.isfinite(number) else None


def _rows(**columns: Sequence[Any]) -> list[Spec]:
    """Return columns as rows."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


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
    if PurePath(path).suffix.lower() not in SUFFIXES:
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
    text, suffix = svg(picture), PurePath(path).suffix.lower()
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
