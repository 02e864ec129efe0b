"""Line plots with bands, described as plain data and drawn by matplotlib (the extra ``plot``)."""

from __future__ import annotations

import io
import logging
import math
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal

from calcheck.errors import OptionError
from calcheck.plain_text import strip_control

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

PLOT_SUFFIXES = (".svg", ".png", ".pdf")
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe and Ito 2008
DASHES = ("-", "--", ":", "-.")
MARKED = 20  # maximum points of a curve that are drawn with markers
COLUMNS = 3  # maximum panels per row
WIDTH, HEIGHT, ALONE_WIDTH = 3.6, 3.0, 6.0  # panel size, and width of a single column of panels, in inches
NAMES_WIDTH = 2.0  # width of a legend entry, in inches
HAIR_SPACE = "\u200a"
LONGEST = 60  # maximum characters of a name
SHORT_LOG_AXIS = 50  # ratio of the axis limits below which a logarithmic axis also gets labels at 2 and 5
MAX_HORIZONTAL_LABELS = 8  # maximum named ticks with horizontal labels
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "font.family": "DejaVu Sans",  # included in matplotlib
    "text.parse_math": False,  # show $ literally
    "svg.fonttype": "none",
    "svg.hashsalt": "calcheck",
    "pdf.fonttype": 42,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.titlesize": "medium",
    "axes.formatter.useoffset": False,
    "grid.color": "0.9",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "lines.markersize": 3.5,
    "legend.frameon": False,
    "savefig.dpi": 150,
}
UNDATED: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": "calcheck"},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": "calcheck", "Producer": None},
}


@dataclass(frozen=True)
class Curve:
    """A line, or points.

    Parameters
    ----------
    name : str
        Name in the legend. Curves with the same name have the same color in all panels; without a name the color is
        black.
    x, y : sequence of float
        Coordinates; the line has a gap where y is not finite.
    low, high : sequence of float, optional
        Limits of a band around the line.
    style : str
        ``"line"``, ``"dashed"`` or ``"points"``.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    style: Literal["line", "dashed", "points"] = "line"


@dataclass(frozen=True)
class Panel:
    """Curves with common axes.

    Parameters
    ----------
    curves : tuple of Curve
        Curves to draw.
    title, x_label, y_label : str
        Title of the panel, and labels of its axes.
    x_log, y_log : bool
        Whether an axis is logarithmic.
    x_names : tuple of str
        Labels of the positions 0, 1, … on the x-axis, if these are categories.
    """

    curves: tuple[Curve, ...]
    title: str = ""
    x_label: str = ""
    y_label: str = ""
    x_log: bool = False
    y_log: bool = False
    x_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plot:
    """Panels in rows of at most three, with one legend.

    Parameters
    ----------
    panels : tuple of Panel
        Panels, at least one.
    title : str
        Title above the panels.
    """

    panels: tuple[Panel, ...]
    title: str = ""


def require_plot(path: str) -> None:
    """Raise, before computing, if a plot cannot be drawn to a file with this name.

    Raises
    ------
    OptionError
        The extension is not a supported format, or matplotlib is not installed.
    """
    if _format(path) not in UNDATED:
        msg = f"{path} must end in {', '.join(PLOT_SUFFIXES[:-1])} or {PLOT_SUFFIXES[-1]}, which sets the plot format"
        raise OptionError(msg)
    try:
        import matplotlib as mpl  # noqa: F401 - checks the installation
    except ImportError as error:
        msg = "plots need matplotlib. Install it: pip install 'calcheck[plot]'"
        raise OptionError(msg) from error


def draw_plot(plot: Plot, path: str) -> bytes:
    """Return a plot as bytes, in the format given by the file name; the same plot gives the same bytes."""
    form, content = _format(path), io.BytesIO()
    with _styled():
        _figure(plot).savefig(content, format=form, metadata=UNDATED[form])
    return content.getvalue()


def _format(path: str) -> str:
    return PurePath(path).suffix.lower().removeprefix(".")


@contextmanager
def _styled() -> Iterator[None]:
    """Use calcheck's matplotlib style, and suppress warnings, such as those about missing glyphs."""
    import matplotlib as mpl

    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def _figure(plot: Plot) -> Figure:
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(curve.name for panel in plot.panels for curve in panel.curves if curve.name))
    columns = 2 if len(plot.panels) == 4 else min(COLUMNS, len(plot.panels))  # noqa: PLR2004 - two by two
    lines = math.ceil(len(plot.panels) / columns)
    width = ALONE_WIDTH if columns == 1 else WIDTH * columns
    figure = Figure(figsize=(width, HEIGHT * lines + 0.7), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for each, panel in zip(axes, plot.panels, strict=False):
        _draw(each, panel, names)
    for each in axes[len(plot.panels) :]:
        each.remove()
    if plot.title:
        figure.suptitle(_text(plot.title))
    handles = {handle.get_label(): handle for each in figure.axes for handle in each.get_legend_handles_labels()[0]}
    if handles:
        fitting = max(1, int(width / NAMES_WIDTH))
        figure.legend(handles=list(handles.values()), loc="outside lower center", ncols=min(fitting, len(handles)))
    return figure


def _draw(axes: Axes, panel: Panel, names: Sequence[str]) -> None:
    for curve in panel.curves:
        _draw_curve(axes, curve, names)
    axes.set_title(_text(panel.title))
    axes.set_xlabel(_text(panel.x_label))
    axes.set_ylabel(_text(panel.y_label))
    if panel.x_log:
        axes.set_xscale("log")
        _number_powers(axes.xaxis)
    if panel.y_log:
        axes.set_yscale("log")
        _number_powers(axes.yaxis)
    if panel.x_names:
        upright = len(panel.x_names) > MAX_HORIZONTAL_LABELS
        labels = [_text(name) for name in panel.x_names]
        axes.set_xticks(range(len(labels)), labels, rotation=90 if upright else 0)


def _draw_curve(axes: Axes, curve: Curve, names: Sequence[str]) -> None:
    """Draw a curve in the color of its name; from the eighth name on, colors repeat with other dashes."""
    place = names.index(curve.name) if curve.name else len(COLORS) - 1
    dashes = "--" if curve.style == "dashed" else DASHES[place // len(COLORS) % len(DASHES)]
    points = curve.style == "points"
    color = COLORS[place % len(COLORS)]
    axes.plot(
        curve.x,
        curve.y,
        color=color,
        linestyle="none" if points else dashes,
        marker="o" if points or len(curve.x) <= MARKED else None,
        markeredgewidth=0,
        alpha=0.5 if points else None,
        label=_text(curve.name) or None,
    )
    if curve.low is not None and curve.high is not None:
        axes.fill_between(curve.x, curve.low, curve.high, color=color, alpha=0.15, linewidth=0)


def _number_powers(axis: Axis) -> None:
    """Label the powers of ten on a logarithmic axis; on a short axis, also their multiples by 2 and 5."""
    low, high = axis.get_view_interval()
    between = "25" if high < SHORT_LOG_AXIS * low else ""
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in between else "")


def _text(text: str) -> str:
    """Return text without control characters, of limited length, and not hidden from the legend by an underscore."""
    shown = f"{HAIR_SPACE}{strip_control(text)}" if text.startswith("_") else strip_control(text)
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST // 2]}…{shown[-LONGEST // 2 :]}"
