"""Pictures of the answer and of metrics, and marks that pictures of several studies share."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import inf, isfinite
from typing import NamedTuple

from calcheck.charts.picture import (
    EQUAL,
    JUDGED,
    PERFECT,
    Axis,
    Band,
    Bars,
    Cells,
    Intervals,
    Line,
    Mark,
    Panel,
    Picture,
    Points,
    Rule,
)
from calcheck.core.text import p_text, percent
from calcheck.errors import DataError
from calcheck.render.numbers_and_notes import ABSENT, factor, is_withheld, name_with_unit, number, p_value, shift
from calcheck.render.screen import SIGNIFICANT, screen_answer
from calcheck.reports import SPREAD, WIDTH, Conclusion, Curve, CurveName, Input, Report, Result
from calcheck.reports.conclusion import Effect, WidthFactor, WorstRegion

NAN = float("nan")
CLEAR = 4.0  # Deviation in standard errors that has the darkest color


def numbers(values: Iterable[float | None]) -> list[float]:
    """Return numbers; absent ones are NaN, which leaves a gap."""
    return [NAN if value is None else value for value in values]


def curve(
    name: str,
    x: Sequence[float],
    y: Sequence[float],
    limits: tuple[Sequence[float], Sequence[float]] | None = None,
    *,
    dashed: bool = False,
) -> list[Mark]:
    """Return a line, above a band of the same color if there are limits."""
    band: list[Mark] = [] if limits is None else [Band(x, *limits, name)]
    return [*band, Line(x, y, name, dashed=dashed)]


def outline(left: float, right: float, low: float, high: float) -> list[Line]:
    """Return the sides of a region of a map."""
    sides = [((left, right), (each, each)) for each in (low, high)]
    return [Line(x, y, dashed=True) for x, y in [*sides, *(((each, each), (low, high)) for each in (left, right))]]


def expected_marks(results: Sequence[Result], x: Sequence[float]) -> list[Mark]:
    """Return the expected values at positions x, in the limits of perfect models if both are known."""
    expected = numbers(result.reference for result in results)
    low, high = (numbers(getattr(result, f"reference_{side}") for result in results) for side in ("low", "high"))
    line = curve("", x, expected, dashed=True)
    if all(result.reference_low is None or result.reference_high is None for result in results):
        return line
    return [Band(x, low, high, f"limits of {PERFECT}"), *line]


OBSERVED = "observed"
SPREADS = (SPREAD, WIDTH)
LOG_FROM = 10  # minimum ratio of the largest to the smallest value for a logarithmic axis
BIN_LABELS = {
    "lzms": "mean squared z-score",
    "lrce": "relative calibration error",
    "stratified-coverage": "share of targets inside the interval",
    "local-scale": "local factor",
    "local-bias": "local bias in predicted standard deviations",
}
LEVEL, PIT = Axis("level", low=0, high=1), Axis("PIT", low=0, high=1)
EXPECTED: dict[CurveName, str] = {
    "reliability": "A right model has the share p of the targets below its quantiles at level p: the line follows the"
    " diagonal, and the difference is 0.",
    "pit-histogram": "A right model has a flat histogram. U-shaped: too narrow; hump-shaped: too wide; sloped: biased.",
    "coverage": "A right model has the share p of the targets inside its intervals at level p. Below the diagonal, the"
    " intervals are too narrow.",
    "spread": "A right model has errors as large as predicted in each bin: the points follow the diagonal.",
    "correction": "The targets of a right model have the predicted means: the line follows the diagonal, up to noise.",
    "bins": "A right model agrees with the dashed line in each bin, up to noise.",
    "along": "A right model stays inside the band wherever rows are.",
    "map": "A right model scores like perfect models in each cell, and no cell is outside their band.",
    "confidence": "A right model stays inside the band. The oracle removes the rows with the largest errors first.",
}  # What a right model would look like, by the first curve of a picture
EXPECTED_OF_SAMPLES = "Equal distributions of both samples: the distance stays inside the band at all inputs."
NO_EVIDENCE = "The values depend on the predictions only, so they are no evidence for or against a model."


def metric_picture(report: Report, result: Result) -> Picture | None:
    """Return the picture of a result of a report; None if it has no curves."""
    if not result.curves:
        return None
    band = f"{percent(report.settings['confidence'])} of {_compared(report)}"
    curves = tuple(_with_input_names(curve, report.input) for curve in result.curves)
    if is_withheld(result):
        curves = tuple(replace(curve, p_value=None) for curve in curves)
    result = replace(result, curves=curves)
    drawn = (PANELS[curve.name](result, curve, band) for curve in curves if curve.name in PANELS)
    panels = tuple(chain.from_iterable(drawn))
    expected = [] if result.reference is None else [f"expected {number(result.reference)}"]
    p = [] if p_value(result) == ABSENT else [f"p {p_value(result)}"]
    verdict = [] if result.verdict == "none" else [result.verdict]
    title = ", ".join([f"{name_with_unit(result)}: {number(result.number)}", *expected, *p, *verdict])
    return Picture(panels, title, _expected(report, result), f"{title}. {result.summary}")


def metric_pictures(report: Report) -> tuple[Picture, ...]:
    """Return the pictures of all results that have curves."""
    pictures = (metric_picture(report, result) for result in report.results)
    return tuple(picture for picture in pictures if picture is not None)


def report_picture(report: Report) -> Picture:
    """Return one picture of all results that have curves, each panel with the name of its metric."""
    drawn = [(result, picture) for result in report.results if (picture := metric_picture(report, result)) is not None]
    if not drawn:
        raise DataError("none of the metrics has a picture: omit --plot, or name one that has, such as coverage")
    if len(drawn) == 1:
        return drawn[0][1]
    panels = tuple(
        panel
        if panel.title.startswith(result.metric)
        else replace(panel, title=" · ".join(filter(None, (result.metric, panel.title))))
        for result, picture in drawn
        for panel in picture.panels
    )
    return Picture(panels, description="; ".join(picture.title for _, picture in drawn))


def joined_pictures(pictures: Mapping[str, Sequence[Picture]]) -> tuple[Picture, ...]:
    """Return the pictures of each target as one each, whose panels have the name of their target."""
    found = []
    for drawn in zip(*pictures.values(), strict=False):
        named = zip(pictures, drawn, strict=True)
        panels = ((name, panel) for name, own in named for panel in own.panels)
        titled = (replace(panel, title=" · ".join(filter(None, (name, panel.title)))) for name, panel in panels)
        found.append(replace(drawn[0], panels=tuple(titled)))
    return tuple(found)


def _expected(report: Report, result: Result) -> str:
    """Return what a right model would look like, or why that is not shown."""
    if result.alternative == "none":
        return NO_EVIDENCE
    compared = _compared(report)
    expected = EXPECTED[result.curves[0].name] if compared == PERFECT else EXPECTED_OF_SAMPLES
    if any(curve.low for curve in result.curves):
        return expected
    if "dependence" in report.settings:
        return f"{expected} There is no band: bands are of {compared} with independent rows, and these rows are not."
    return f"{expected} There is no band of {compared}, as there are no or too few replicates."


def _compared(report: Report) -> str:
    """Return what the band is made of: perfect models, or samples of equal distributions if nothing is predicted."""
    return EQUAL if report.input.predictive is None else PERFECT


def _with_input_names(curve: Curve, read: Input) -> Curve:
    """Return a curve or a map with the names of the inputs, if these are what it shows."""
    if curve.name not in ("along", "map") or curve.x_name:
        return curve
    inputs = read.columns.get("x", "inputs")
    first, *second = inputs.split(", ") if curve.x2 and inputs.count(", ") == 1 else (inputs,)
    return replace(curve, x_name=first, x2_name=second[0] if second else f"{inputs}, second column")


def _titled(text: str, curve: Curve) -> str:
    """Return the title of a panel, with the p-value of its curve."""
    return text if curve.p_value is None else f"{text}, {p_text(curve.p_value)}"


def _bin_sizes(curve: Curve) -> str:
    """Return the number of bins, and of their rows."""
    least, most = (f"{rows:,.0f}" for rows in (min(curve.rows), max(curve.rows)))
    return f"{len(curve.rows)} bins of {least if least == most else f'{least} to {most}'} rows"


def _shares(curve: Curve, band: str, title: str, y_label: str) -> list[Panel]:
    """Return the panel of shares against levels, and that of their differences."""
    x, y = _positions(curve), numbers(curve.y)
    gaps = [value - level for value, level in zip(y, x, strict=True)]
    shares = (*_band(curve, band), Line([0, 1], [0, 1], dashed=True), Line(x, y, OBSERVED))
    differences = (*_band(curve, band, x), Rule(y=0), Line(x, gaps, OBSERVED))
    return [
        Panel(shares, LEVEL, Axis(y_label, low=0, high=1), _titled(title, curve)),
        Panel(differences, LEVEL, Axis("share − level"), "difference from the level"),
    ]


def _pit_histogram(_: Result, curve: Curve, band: str) -> list[Panel]:
    bars = _bars(curve, numbers(curve.y), OBSERVED)
    limits = [Bars(bars.start, bars.stop, numbers(curve.low), numbers(curve.high), band)] if curve.low else []
    return [Panel((bars, *limits, Rule(y=1)), PIT, Axis("density", low=0), _titled("histogram of the PIT", curve))]


def _pit_difference(_: Result, curve: Curve, band: str) -> list[Panel]:
    marks = (*_band(curve, band), Rule(y=0), Line(_positions(curve), numbers(curve.y), OBSERVED))
    return [Panel(marks, PIT, Axis("share of rows below − PIT"), _titled("distribution of the PIT", curve))]


def _spread(result: Result, curve: Curve, band: str) -> list[Panel]:
    x = _positions(curve)
    own = [each for each in result.curves if each.name == "spread-intervals"]
    sides = (numbers(own[0].low), numbers(own[0].high)) if own else ((), ())
    ends, log = [min(x), max(x)], is_wide(x)
    limits: list[Mark] = [Intervals(x, numbers(curve.low), numbers(curve.high), band)] if curve.low else []
    marks = (*limits, Line(ends, ends, dashed=True), Points(x, numbers(curve.y), OBSERVED, *sides))
    predicted, observed = (
        Axis("root mean predicted variance [y]", log=log),
        Axis("root mean squared error [y]", log=log),
    )
    return [Panel(marks, predicted, observed, _titled(f"spread in {_bin_sizes(curve)}", curve))]


def _spread_histogram(_: Result, curve: Curve, __: str) -> list[Panel]:
    bars = _bars(curve, numbers(curve.y), OBSERVED)
    x = Axis(_x_label(curve), log=is_wide([*bars.start, *bars.stop]))
    return [Panel((bars,), x, Axis("rows", low=0), "predicted standard deviations")]


def _correction(_: Result, curve: Curve, band: str) -> list[Panel]:
    """Return the panel of corrected means against predicted ones, and that of their differences."""
    x, y = _positions(curve), numbers(curve.y)
    axis = Axis("predicted mean [y]")
    corrected = (*_band(curve, band), Line(x, x, dashed=True), Line(x, y, OBSERVED))
    gaps = [value - mean for value, mean in zip(y, x, strict=True)]
    differences = (*_band(curve, band, x), Rule(y=0), Line(x, gaps, OBSERVED))
    return [
        Panel(corrected, axis, Axis("mean of the targets [y]"), _titled("isotonic regression", curve)),
        Panel(differences, axis, Axis("mean of the targets − prediction [y]"), "difference from the prediction"),
    ]


def _mean_histogram(_: Result, curve: Curve, __: str) -> list[Panel]:
    bars = _bars(curve, numbers(curve.y), OBSERVED)
    return [Panel((bars,), Axis("predicted mean [y]"), Axis("rows", low=0), "predicted means")]


def _bins(result: Result, curve: Curve, band: str) -> list[Panel]:
    """Return the panel of bins, with their intervals if the metric has computed these."""
    low, high = (numbers(each.get(end) for each in result.details["bins"]) for end in ("low", "high"))
    has_limits = "low" in result.details["bins"][0]
    x, y = _positions(curve), numbers(curve.y)
    points = Points(x, y, OBSERVED, low, high) if has_limits else Points(x, y, OBSERVED)
    zeta = "" if result.zeta is None else f", ζ {number(result.zeta)}"
    title = _titled(f"{_bin_sizes(curve)}{zeta}", curve)
    return [
        Panel((*_band(curve, band), *_reference(curve), points), _x_axis(curve), Axis(BIN_LABELS[result.metric]), title)
    ]


def _along(result: Result, curve: Curve, band: str) -> list[Panel]:
    x, y = _positions(curve), numbers(curve.y)
    observed = Points(x, y, OBSERVED) if _has_names(curve) else Line(x, y, OBSERVED)
    worst: list[Mark] = [
        Points(_positions(each), numbers(each.y), "largest") for each in result.curves if each.name == "worst"
    ]
    title = _titled(f"{result.metric} in {_bin_sizes(curve)}", curve)
    return [
        Panel(
            (*_band(curve, band), *_reference(curve), observed, *worst),
            _x_axis(curve),
            Axis(BIN_LABELS.get(result.metric, name_with_unit(result))),
            title,
        )
    ]


def _map(result: Result, curve: Curve, band: str) -> list[Panel]:
    """Return the map of a metric, that of perfect models if they differ by cell, and that of cells outside the band."""
    values, expected = numbers(curve.y), numbers(curve.expected)
    worst: list[Mark] = [Points(_positions(each), list(each.x2)) for each in result.curves if each.name == "worst"]
    marked = ", points: largest values" if worst else ""
    maps = [_cells(result, curve, values, worst, _titled(f"{result.metric}{marked}", curve))]
    if len(set(expected)) > 1:
        maps.append(_cells(result, curve, expected, [], EQUAL if band.endswith(EQUAL) else PERFECT))
    limits = zip(numbers(curve.y), numbers(curve.low), numbers(curve.high), strict=False)
    outside = [value if value < low or value > high else NAN for value, low, high in limits]
    if any(isfinite(value) for value in outside):
        maps.append(_cells(result, curve, outside, [], f"outside {band}"))
    return maps


def _cells(result: Result, curve: Curve, values: Sequence[float], points: Sequence[Mark], title: str) -> Panel:
    """Return a panel with values in the cells of a map; all panels of a map have the same colors and axes."""
    known = [value for value in [*numbers(curve.y), *numbers(curve.expected)] if isfinite(value)] or [0.0]
    middle = known[-1] if len(set(curve.expected)) == 1 else None
    edges = _positions(curve), list(curve.stop), list(curve.x2), list(curve.stop2)
    cells = Cells(*edges, values, BIN_LABELS.get(result.metric, name_with_unit(result)), min(known), max(known), middle)
    x = Axis(curve.x_name, low=min(edges[0]), high=max(edges[1]))
    y = Axis(curve.x2_name, low=min(edges[2]), high=max(edges[3]))
    return Panel((cells, *points), x, y, title)


def _confidence(result: Result, curve: Curve, band: str) -> list[Panel]:
    """Return the panel of the confidence curve and its oracle, which follows it in the result."""
    oracle = next(each for each in result.curves if each.name == "oracle")
    x = [100 * share for share in _positions(curve)]
    shown = replace(curve, x=tuple(x))
    lines = (Line(x, numbers(curve.y), OBSERVED), Line(x, numbers(oracle.y), "oracle", dashed=True))
    y = Axis(f"{result.options['score']} of the remaining rows [y]")
    return [
        Panel(
            (*_band(shown, band), *lines),
            Axis("removed rows [%]", low=0, high=100),
            y,
            _titled("confidence curve", curve),
        )
    ]


PANELS: dict[CurveName, Callable[[Result, Curve, str], list[Panel]]] = {
    "reliability": lambda _, curve, band: _shares(
        curve, band, "quantile reliability", "share of targets below the quantile"
    ),
    "coverage": lambda _, curve, band: _shares(
        curve, band, "coverage by level", "share of targets inside the interval"
    ),
    "pit-histogram": _pit_histogram,
    "pit-difference": _pit_difference,
    "spread": _spread,
    "spread-histogram": _spread_histogram,
    "correction": _correction,
    "mean-histogram": _mean_histogram,
    "bins": _bins,
    "along": _along,
    "map": _map,
    "confidence": _confidence,
}  # Functions that make the panels of a curve; other curves are drawn with these


def _positions(curve: Curve) -> list[float]:
    """Return the positions of a curve: categories are at 0, 1 and so on."""
    return [place if isinstance(x, str) else x for place, x in enumerate(curve.x)]


def _has_names(curve: Curve) -> bool:
    """Return whether the positions are names, of categories or of ranges of dates, which no line joins."""
    return isinstance(curve.x[0], str)


def _x_axis(curve: Curve) -> Axis:
    """Return the axis of a curve along predictions or a column."""
    names = tuple(x for x in curve.x if isinstance(x, str))
    return Axis(_x_label(curve), log=curve.x_name in SPREADS and is_wide(_positions(curve)), names=names)


def _x_label(curve: Curve) -> str:
    """Return what the positions are, with the unit if it is known."""
    return f"{curve.x_name} [y]" if curve.x_name in SPREADS else curve.x_name


def is_wide(values: Sequence[float]) -> bool:
    """Return whether positive values need a logarithmic axis."""
    return bool(values) and 0 < LOG_FROM * min(values) <= max(values)


def _band(curve: Curve, name: str, subtracted: Sequence[float] = ()) -> list[Mark]:
    """Return the band of perfect models, minus the given values; none if there were no replicates."""
    if not curve.low:
        return []
    away = subtracted or [0.0] * len(curve.x)
    low, high = (
        [limit - each for limit, each in zip(numbers(side), away, strict=True)] for side in (curve.low, curve.high)
    )
    kind = Intervals if _has_names(curve) or len(curve.x) == 1 else Band
    return [kind(_positions(curve), low, high, name)]


def _reference(curve: Curve) -> list[Mark]:
    """Return the dashed line of a right model; none if it is unknown."""
    return [Line(_positions(curve), numbers(curve.expected), dashed=True)] if curve.expected else []


def _bars(curve: Curve, high: Sequence[float], name: str) -> Bars:
    return Bars(_positions(curve), list(curve.stop), [0.0] * len(high), high, name)


MARGIN = 1.6  # How far axes extend at least, relative to the tolerance
ROOM = 0.05  # Beyond the outermost mark, as a share of the axis
NO_ERRORS = ("size", "shape", "correlation")  # Topics of which the picture has the factors
ANSWER_BARS = "Bars: 90 % intervals. Local errors have no upper limit: their bars begin at what they are at least."


class _Estimate(NamedTuple):
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
    title = f"{told.question} {told.answer.full_text}"
    return Picture(panels, title, ANSWER_BARS, title) if panels else None


def _answer_panels(report: Report, name: str) -> Iterator[Panel]:
    """Yield the panels of the factors and of the errors of a target, with its name if there are several."""
    found = report.conclusion
    if found is None or found.tolerance is None:
        return
    t, wide = found.tolerance, 1 + found.tolerance
    size = next((each for each in found.effects if each.topic == "size"), None)
    factors = [_factor(each, size if each.level == found.level else None, wide) for each in found.factors]
    shown = [each for each in found.effects if each.kind != "bias" or (each.low or 0.0) > 0]
    errors = [_error(each) for each in shown if each.value is not None and each.topic not in NO_ERRORS]
    tolerance, before = f"{percent(t, 1)} tolerance", f"{name} · " if name else ""
    region, is_factor = report.region, report.region is not None and report.region.level is not None
    places = [] if region is None else list(_places(region, found, t))
    known = [each.value for each in (*factors, *places * is_factor)]
    times = Axis("times as wide", log=is_wide(known), low=wide**-MARGIN, high=wide**MARGIN)
    error = Axis("predicted std, or share of it", low=-MARGIN * t, high=MARGIN * t)
    width, mean = f"{before}needed width of intervals, by level", f"{before}mean error, and local errors"
    factor_scale = Bars([1 / wide], [wide], (), (), tolerance), times, 1.0
    error_scale = Bars([-t], [t], (), (), tolerance), error, 0.0
    yield from _panel_of(factors, *factor_scale, width)
    yield from _panel_of(errors, *error_scale, mean)
    if region is not None:
        yield from _panel_of(places, *(factor_scale if is_factor else error_scale), f"{before}where {region.where}")


def _places(region: WorstRegion, found: Conclusion, tolerance: float) -> Iterator[_Estimate]:
    """Yield the estimates of the rows of the worst region, and of the others."""
    first, last = (-tolerance, tolerance) if region.level is None else (1 / (1 + tolerance), 1 + tolerance)
    sides = (region.value, region.low, region.high), (region.other_value, region.other_low, region.other_high)
    for name, (value, least, most) in zip(("there", "elsewhere"), sides, strict=True):
        if value is not None:
            low, high = -inf if least is None else least, inf if most is None else most
            is_no = found.answer == "no" and (high < first or low > last)
            within = True if first <= low and high <= last else False if is_no else None
            text = (shift if region.level is None else factor)((value, least, most)).replace(" std", "")
            yield _Estimate(f"{name}: {text}", value, low, high, within)


def _factor(each: WidthFactor, size: Effect | None, wide: float) -> _Estimate:
    """Return a factor, which is beyond the tolerance if its whole interval is, or as the answer says."""
    low, high = each.low or 0.0, inf if each.high is None else each.high
    within = (False if low > wide or high < 1 / wide else each.within) if size is None else size.within
    text = factor((each.value, each.low, each.high))
    return _Estimate(f"{percent(each.level)}: {text}", each.value, low, high, within)


def _error(each: Effect) -> _Estimate:
    """Return the bias, or a local error, which is at least something."""
    value, low = each.value or 0.0, -inf if each.low is None else each.low
    if each.topic == "bias":
        high = inf if each.high is None else each.high
        text = shift((value, each.low, each.high)).replace(" std", "")
        return _Estimate(f"bias: {text}", value, low, high, each.within)
    name = f"{each.topic}, bias" if each.kind == "bias" else each.topic
    low = low if each.p is None or each.p <= SIGNIFICANT else 0.0
    least = f"at least {low:#.2g}" if low > 0 else "none shown"
    return _Estimate(f"{name}: {least}", max(value, 0.0), max(low, 0.0), max(value, 0.0), each.within)


def _panel_of(lines: Sequence[_Estimate], tolerance: Bars, axis: Axis, right: float, title: str) -> Iterator[Panel]:
    """Yield the panel of estimates, if there are any, with room for their marks; infinite limits are cut."""
    if not lines:
        return
    found = [end for each in lines for end in (each.low, each.value, each.high) if isfinite(end)]
    known = [end for end in found if end > 0 or not axis.log]
    least, most = axis.low or 0.0, axis.high or 0.0
    low, high = min([*known, least]), max([*known, most])
    room = (high / low) ** ROOM if axis.log else ROOM * (high - low)
    if low < least:
        low = low / room if axis.log else low - room
    if high > most:
        high = high * room if axis.log else high + room
    marks: list[Mark] = [tolerance, Rule(x=right)]
    for name, within in zip(JUDGED, (True, False, None), strict=True):
        chosen = [(float(place), each) for place, each in enumerate(lines) if each.within is within]
        ends_of = [[min(max(end, low), high) for end in (each.value, each.low, each.high)] for _, each in chosen]
        values, lows, highs = zip(*ends_of, strict=True) if chosen else ((), (), ())
        marks += [Points(values, [place for place, _ in chosen], name, lows, highs, horizontal=True)] if chosen else []
    yield Panel(tuple(marks), replace(axis, low=low, high=high), Axis(names=tuple(each.name for each in lines)), title)
