"""The picture of the answer: how wide intervals would have to be by level, and errors, beside the tolerance."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from math import inf, isfinite
from typing import NamedTuple

from calcheck.charts.picture import JUDGED, Axis, Bars, Mark, Panel, Picture, Points, Rule
from calcheck.core.text import percent
from calcheck.render.metric_pictures import is_wide
from calcheck.render.screen import SIGNIFICANT, screen_answer
from calcheck.reports import Report
from calcheck.reports.conclusion import Effect, WidthFactor

ROOM = 1.6  # How far axes extend at least, relative to the tolerance
NO_ERRORS = ("size", "shape", "correlation")  # Topics of which the picture has the factors
BARS = "Bars: 90 % intervals. Local errors have no upper limit: their bars begin at what they are at least."


class _Line(NamedTuple):
    """An estimate of the answer with its interval."""

    name: str
    value: float
    low: float
    high: float
    within: bool | None


def answer_picture(report: Report) -> Picture | None:
    """Return the picture of the answer: factors by level, and errors, beside the tolerance; None without estimates."""
    found = report.conclusion
    if found is None or found.tolerance is None:
        return None
    outputs = report.of_outputs() or {"": report}
    panels = tuple(chain.from_iterable(_answer_panels(each, name) for name, each in outputs.items()))
    told = screen_answer(report, found)
    title = f"{told.question} {told.answer.text}{told.answer.after}"
    return Picture(panels, title, BARS, title) if panels else None


def _answer_panels(report: Report, name: str) -> Iterator[Panel]:
    """Yield the panels of the factors and of the errors of a target, with its name if there are several."""
    found = report.conclusion
    if found is None or found.tolerance is None:
        return
    t, wide = found.tolerance, 1 + found.tolerance
    size = next((each for each in found.effects if each.topic == "size"), None)
    factors = [_factor_line(each, size if each.level == found.level else None, wide) for each in found.factors]
    shown = [each for each in found.effects if each.kind != "bias" or (each.low or 0.0) > 0]
    errors = [_error_line(each) for each in shown if each.value is not None and each.topic not in NO_ERRORS]
    tolerance, before = f"{percent(t, 1)} tolerance", f"{name} · " if name else ""
    times = Axis("times as wide", log=is_wide([each.value for each in factors]), low=wide**-ROOM, high=wide**ROOM)
    error = Axis("predicted std, or share of it", low=-ROOM * t, high=ROOM * t)
    width, mean = f"{before}needed width of intervals, by level", f"{before}mean error, and local errors"
    yield from _panel_of(factors, Bars([1 / wide], [wide], (), (), tolerance), times, 1.0, width)
    yield from _panel_of(errors, Bars([-t], [t], (), (), tolerance), error, 0.0, mean)


def _factor_line(each: WidthFactor, size: Effect | None, wide: float) -> _Line:
    """Return the line of a factor, which is beyond the tolerance if its whole interval is, or as the answer says."""
    low, high = each.low or 0.0, inf if each.high is None else each.high
    within = (False if low > wide or high < 1 / wide else each.within) if size is None else size.within
    return _Line(f"{percent(each.level)}: {each.value:.3g} ({low:.3g}–{high:.3g})", each.value, low, high, within)


def _error_line(each: Effect) -> _Line:
    """Return the line of the bias, or of a local error, which is at least something."""
    value, low = each.value or 0.0, -inf if each.low is None else each.low
    if each.topic == "bias":
        high = inf if each.high is None else each.high
        return _Line(f"bias: {value:.2g} ({low:.2g}–{high:.2g})", value, low, high, each.within)
    name = f"{each.topic}, bias" if each.kind == "bias" else each.topic
    low = low if each.p is None or each.p <= SIGNIFICANT else 0.0
    least = f"at least {low:.2g}" if low > 0 else "none shown"
    return _Line(f"{name}: {least}", max(value, 0.0), max(low, 0.0), max(value, 0.0), each.within)


def _panel_of(lines: Sequence[_Line], tolerance: Bars, axis: Axis, right: float, title: str) -> Iterator[Panel]:
    """Yield the panel of lines, if there are any; limits beyond its ends are cut."""
    if not lines:
        return
    found = [end for each in lines for end in (each.low, each.value, each.high) if isfinite(end)]
    known = [end for end in found if end > 0 or not axis.log]
    low, high = min([*known, axis.low or 0.0]), max([*known, axis.high or 0.0])
    marks: list[Mark] = [tolerance, Rule(x=right)]
    for name, within in zip(JUDGED, (True, False, None), strict=True):
        chosen = [(float(place), each) for place, each in enumerate(lines) if each.within is within]
        ends_of = [[min(max(end, low), high) for end in (each.value, each.low, each.high)] for _, each in chosen]
        values, least, most = zip(*ends_of, strict=True) if chosen else ((), (), ())
        marks += [Points(values, [place for place, _ in chosen], name, least, most, horizontal=True)] if chosen else []
    names = tuple(each.name.replace("inf", "∞") for each in lines)
    yield Panel(tuple(marks), replace(axis, low=low, high=high), Axis(names=names), title)
