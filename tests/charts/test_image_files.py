"""Pictures are reproducible, and text in them is plain text."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from calcheck.charts.drawing import COLORS, GRAY, SUFFIXES, draw, require_image, svg, vega_lite
from calcheck.charts.picture import MAX_MARKS, Axis, Band, Bars, Cells, Line, Panel, Picture, Points, Rule
from calcheck.errors import OptionError

SVG = "{http://www.w3.org/2000/svg}"
NAN = float("nan")
HOSTILE = (
    "</script><script>alert(1)",
    '"><img onerror=1>',
    "{{a}}",
    "datum['a.b']",
    "a\u2028b",
    "\u202eabc",
    "x\x1b[2J\n",
)
LINE = Line([0, 10, 20], [3.0, 2.0, 1.5], "cce")
EVERY_MARK = (
    Band([0, 1, 2], [0, 0, 1], [1, 2, 3], "95 % of perfect models"),
    LINE,
    Points([0, 1], [2, 3], "points", [1, 2], [3, 4]),
    Points([0, 1], [2, 3], "more points", [-1, 0], [1, 2], horizontal=True),
    Bars([0, 1], [1, 2], [0, 0], [2, 3], "bars"),
    Cells([0, 1], [1, 2], [0, 0], [1, 1], [3, 4], "value"),
    Rule(x=1),
    Rule(y=1),
)


def picture_of(*marks, **about):
    return Picture((Panel(marks, **about),))


def texts(picture):
    return ["".join(each.itertext()) for each in ET.fromstring(svg(picture)).iter(f"{SVG}text")]  # noqa: S314 - our own


def layers(picture):
    return [layer for panel in vega_lite(picture)["concat"] for layer in panel["layer"]]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_same_picture_gives_the_same_bytes(suffix):
    picture = replace(picture_of(*EVERY_MARK, title="panel", x=Axis("x [m]")), title="all marks", expected="none")
    first = draw(picture, f"a{suffix}")
    draw(picture_of(LINE), f"other{suffix}")
    assert draw(picture, f"b{suffix.upper()}") == first
    assert b"date" not in first.lower()


def test_identifiers_of_two_pictures_differ():
    first, second = (picture_of(Line([0, end], [0, 1]), x=Axis(low=0, high=1)) for end in (1, 2))
    ids = [{each.get("id") for each in ET.fromstring(svg(one)).iter() if each.get("id")} for one in (first, second)]  # noqa: S314 - our own
    assert ids[0]
    assert not ids[0] & ids[1]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_and_labels_are_plain_text(name):
    panel = Panel(
        (Line([0, 1], [0, 1], name), Cells([0], [1], [0], [1], [3], name)),
        Axis(name),
        Axis(name, names=(name, "b")),
        name,
    )
    drawn = ET.fromstring(svg(Picture((panel,), name, name, name)))  # noqa: S314 - our own
    tags = {each.tag.removeprefix(SVG) for each in drawn.iter()}
    assert tags <= {"svg", "g", "path", "circle", "rect", "text", "line", "defs", "clipPath", "linearGradient", "stop"}
    shown = ["".join(each.itertext()) for each in drawn.iter(f"{SVG}text")]
    plain = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in name)
    assert shown.count(plain) == 8  # titles of picture, panel and both axes, expected line, both legends, tick
    assert plain in drawn.get("aria-label")


def test_fields_and_expressions_never_contain_a_name():
    name = "datum.x"
    spec = vega_lite(picture_of(Line([0, 1], [0, 1], name), x=Axis(name), y=Axis(name, names=(name, "b")), title=name))

    def fields(part):
        if isinstance(part, dict):
            yield from (part[key] for key in ("field", "expr", "calculate", "filter", "labelExpr") if key in part)
            for each in part.values():
                yield from fields(each)
        if isinstance(part, list):
            for each in part:
                yield from fields(each)

    assert set(fields(spec)) == {"x", "y"}
    json.dumps(spec, allow_nan=False)


def test_dates_in_seconds_are_drawn_in_milliseconds():
    spec = json.dumps(vega_lite(picture_of(Line([86_400.0, 172_800.0], [0, 1]), x=Axis(dates=True))))
    assert "86400000.0" in spec
    assert "172800000.0" in spec


def test_long_names_are_shortened_in_the_middle():
    (long,) = [each for each in texts(picture_of(Line([0], [0], "ab" * 500))) if "…" in each]
    assert len(long) == 61


def test_categories_that_look_alike_stay_apart():
    names = ("a" * 200, "a" * 100)
    shown = [each for each in texts(picture_of(Line([0, 1], [0, 1]), x=Axis(names=names))) if "…" in each]
    assert len(set(shown)) == 2


def test_a_name_has_one_color_in_all_panels_and_one_entry_in_the_legend():
    other = Line([0, 1], [1, 2], "std")
    picture = Picture((Panel((LINE, other)), Panel((other, LINE)), Panel((other,))))
    assert texts(picture).count("cce") == texts(picture).count("std") == 1
    drawn = svg(picture)
    assert drawn.count(f'stroke="{COLORS[0]}" stroke-width="1.8"') == 2
    assert drawn.count(f'stroke="{COLORS[1]}" stroke-width="1.8"') == 3


def test_perfect_models_are_gray():
    assert f'fill="{GRAY}"' in svg(picture_of(Band([0, 1], [0, 0], [1, 1], "95 % of perfect models")))


def test_the_eighth_line_differs_in_its_dashes():
    picture = picture_of(*(Line([0, 1], [place, place], f"m{place}") for place in range(8)))
    dashes = [layer["mark"]["strokeDash"] for layer in layers(picture)]
    assert dashes[0] == dashes[6] != dashes[7]


def test_a_missing_number_leaves_a_gap():
    whole, gap = (picture_of(Line([0, 1, 2, 3, 4], [1, 2, middle, 4, 5], "a")) for middle in (3.0, NAN))

    def pieces(picture):
        return max(each.get("d", "").count("M") for each in ET.fromstring(svg(picture)).iter(f"{SVG}path"))  # noqa: S314 - our own

    assert pieces(gap) == pieces(whole) + 1
    assert draw(picture_of(Line([0, 1], [NAN, NAN])), "a.png")


def test_tick_labels_are_plain_numbers_or_names():
    """A logarithmic axis has plain numbers, and leaves out what is not positive; names replace positions."""
    line = Line([0.001, 1.0, -1.0], [0.3, 0.7, 1.0], "a")
    assert {"0.001", "0.01", "0.1", "1"} <= set(texts(picture_of(line, x=Axis(log=True))))
    assert {"rbf", "laplace"} <= set(texts(picture_of(Line([0, 1], [1, 2]), x=Axis(names=("rbf", "laplace")))))


def test_marks_are_drawn_where_their_numbers_are():
    """In a panel of 440 by 220 pixels with limits 0 to 1, the point (0.25, 0.5) is at 110 and 110 pixels."""
    unit = Axis(low=0, high=1)
    drawn = svg(picture_of(Points([0.25], [0.5], "a"), x=unit, y=unit))
    (points,) = ET.fromstring(drawn).iter(f"{SVG}circle")  # noqa: S314 - our own
    assert (points.get("cx"), points.get("cy")) == ("110", "110")


def test_bars_extend_from_their_start_to_their_stop():
    """In a panel of 440 pixels with limits 0 to 1, a bar from 0.25 to 0.75 is 220 pixels wide."""
    unit = Axis(low=0, high=1)
    drawn = ET.fromstring(svg(picture_of(Bars([0.25], [0.75], [0.0], [0.5], "a"), x=unit, y=unit)))  # noqa: S314 - our own
    paths = [each.get("d", "") for each in drawn.iter(f"{SVG}path")]
    assert any(path.startswith("M110,110h220v110h-220Z") for path in paths), paths


def test_a_picture_of_too_many_marks_is_refused():
    many = [0.0] * (MAX_MARKS // 2 + 1)
    with pytest.raises(ValueError, match="20,002 marks"):
        picture_of(Line(many, many), Band(many, many, many))


def test_a_picture_has_a_description_for_screen_readers():
    drawn = ET.fromstring(svg(Picture((Panel((LINE,)),), description="Error & rejection")))  # noqa: S314 - our own
    assert drawn.get("aria-label") == "Error & rejection"
    assert drawn.get("role") == "graphics-document"


@pytest.mark.parametrize("path", ["plot", "plot.jpg", "plot.svgz", ".svg", "svg"])
def test_a_file_name_without_a_supported_suffix_is_refused(path):
    with pytest.raises(OptionError, match=r"must end in \.svg, \.png or \.pdf"):
        require_image(path)
