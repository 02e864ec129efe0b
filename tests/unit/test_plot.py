"""Plots are reproducible, and text in them is plain text."""

import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from calcheck.errors import OptionError
from calcheck.render.plot import COLORS, PLOT_SUFFIXES, Curve, Panel, Plot, draw_plot, require_plot

SVG = "{http://www.w3.org/2000/svg}"
NAN = float("nan")


def plot_of(*curves, **about):
    return Plot((Panel(curves, **about),))


def svg_of(plot):
    return ET.fromstring(draw_plot(plot, "plot.svg"))  # noqa: S314 - our own


def texts(plot):
    return ["".join(each.itertext()) for each in svg_of(plot).iter(f"{SVG}text")]


def strokes(plot):
    """Return the colors of curves with names, in order; axes are black."""
    styles = [each.get("style", "") for each in svg_of(plot).iter(f"{SVG}path")]
    lines = [style for style in styles if "fill: none" in style]
    return [color for style in lines for color in COLORS[:-1] if f"stroke: {color.lower()}" in style]


LINE = Curve("cce", [0, 10, 20], [3.0, 2.0, 1.5], [2.5, 1.5, 1.0], [3.5, 2.5, 2.0])


@pytest.mark.parametrize("suffix", PLOT_SUFFIXES)
def test_plots_are_reproducible_and_do_not_depend_on_the_users_style(suffix):
    import matplotlib as mpl

    plot = plot_of(LINE, Curve("random", [0, 20], [3, 3], style="dashed"), title="mae", x_label="removed [%]")
    first = draw_plot(plot, f"a{suffix}")
    with mpl.rc_context({"lines.linewidth": 9.0, "font.size": 20.0, "svg.hashsalt": None}):
        assert draw_plot(plot, f"b{suffix.upper()}") == first
        assert mpl.rcParams["font.size"] == 20.0  # the user's style is unchanged
    assert b"date" not in first.lower()


def test_names_and_labels_are_plain_text():
    names = ("$x_1$ \\alpha", "<script>&amp;", "_first", "a\x1b[2J\nb", "模型")
    plot = plot_of(*(Curve(name, [0, 1], [place, 1]) for place, name in enumerate(names)), title="$t$", y_label="$")
    assert {"$x_1$ \\alpha", "<script>&amp;", "\u200a_first", "a\\x1b[2J\\nb", "模型", "$t$", "$"} <= set(texts(plot))
    (long,) = [each for each in texts(plot_of(Curve("ab" * 500, [0], [0]))) if "…" in each]
    assert len(long) == 61


def test_a_name_has_one_color_in_all_panels_and_one_line_in_the_legend():
    other = Curve("std", [0, 1], [1, 2])
    plot = Plot((Panel((LINE, other)), Panel((other, LINE)), Panel((other,))))
    assert texts(plot).count("cce") == texts(plot).count("std") == 1
    found = strokes(plot)
    assert found[:5] == [COLORS[0], COLORS[1], COLORS[1], COLORS[0], COLORS[1]]


def test_the_eighth_curve_differs_in_its_dashes():
    plot = plot_of(*(Curve(f"m{place}", [0, 1], [place, place]) for place in range(8)))
    lines = [each.get("style") for each in svg_of(plot).iter(f"{SVG}path") if "stroke: #" in (each.get("style") or "")]
    first, last = [style for style in lines if COLORS[0].lower() in style][:2]
    assert "dasharray" not in first
    assert "dasharray" in last


def test_a_missing_number_leaves_a_gap():
    whole = plot_of(Curve("a", [0, 1, 2, 3, 4], [1, 2, 3, 4, 5]))
    gap = plot_of(Curve("a", [0, 1, 2, 3, 4], [1, 2, NAN, 4, 5]))
    moves = [max(each.get("d", "").count("M") for each in svg_of(plot).iter(f"{SVG}path")) for plot in (whole, gap)]
    assert moves[1] == moves[0] + 1
    assert draw_plot(plot_of(Curve("", [0, 1], [NAN, NAN])), "a.png")


def test_tick_labels_are_plain_numbers_or_names():
    """A logarithmic axis has plain numbers, also within one power of ten; names replace positions."""
    curve = Curve("a", [0.001, 1.0], [0.3, 0.7])
    assert {"0.001", "0.01", "0.1", "1"} <= set(texts(plot_of(curve, x_log=True)))
    assert "0.5" in texts(plot_of(curve, x_log=True, y_log=True))
    assert {"rbf", "laplace"} <= set(texts(plot_of(replace(curve, x=[0, 1]), x_names=("rbf", "laplace"))))
    assert not any("math" in each for each in texts(plot_of(curve, x_log=True, y_log=True)))


@pytest.mark.parametrize("path", ["plot", "plot.jpg", "plot.svgz", ".svg", "svg"])
def test_a_name_without_a_supported_suffix_is_refused(path):
    with pytest.raises(OptionError, match=r"must end in \.svg, \.png or \.pdf"):
        require_plot(path)


def test_without_matplotlib_the_error_explains_how_to_install_it(monkeypatch):
    require_plot("plot.svg")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(OptionError, match=r"pip install 'calcheck\[plot\]'"):
        require_plot("plot.svg")
