"""The first screen of a report: its answer with numbers and bars, and the tables that were asked for."""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from shlex import quote

from calcheck.core.text import p_text, percent
from calcheck.render import document, new_inputs
from calcheck.render.document import Answer, Cell, Document, Emphasis
from calcheck.render.numbers_and_notes import Span, cause_texts, describe_input, factor, shift, terms
from calcheck.reports import Conclusion, Gate, Input, OutputConclusion, Report
from calcheck.reports import conclusion as answers
from calcheck.reports.conclusion import Answered, Effect, WidthFactor

HALF, LIMIT = 6, 3  # Characters of a bar from its center to its end, and to the tolerance
OUTPUTS, RULES, FOUND = 4, 4, 2  # Most targets, most rules, and most findings of a rule
COMMANDS = 2  # Most commands beside the answer at new inputs
NUMBERS = 26  # Characters of a number with its interval
ALONG = {"ranking": "by size", "inputs": "along inputs", "time": "over time", "groups": "by group"}
"""Words for what local errors are along."""
UNTESTED = "not tested: "
REGION, MEND = "one-region", ("calcheck recalibrate ", "calcheck.recalibrate(")
ABOUT = 0.1  # By how much less of a fault a second cause may explain whose command is told, too
APART = 0.02  # Least difference of the level from the coverage of right intervals, for which this is told
SIGNIFICANT = 0.05  # Maximum p-value of a local error that is shown
KINDS = {"scale": "uncertainties", "bias": "means"}


def _span(found: Effect | WidthFactor) -> Span:
    return found.value, found.low, found.high


def screen_document(report: Report, *, brief: bool = False, named: bool = False) -> Document:
    """Return the first screen of a report; ``named`` says whether its metrics were asked for."""
    return Document(tuple(_blocks(report, brief=brief, named=named)), report.calcheck)


def _blocks(report: Report, *, brief: bool, named: bool) -> Iterator[document.Block]:
    conclusion = report.conclusion
    yield _source(report.input)
    if report.gates:
        gates = sorted(report.gates, key=lambda each: each.passed) if len(report.gates) > RULES else report.gates
        yield replace(document.gates_table([replace(each, message=_short(each)) for each in gates]), most=RULES)
    if conclusion is not None:
        yield screen_answer(report, conclusion)
        for each in (conclusion, *conclusion.outputs):
            yield from document.power_tables(each)
    yield from document.note_blocks(document.doubts(report))
    if brief and conclusion is not None:
        return
    if report.overall is not None:
        yield document.Paragraph(document.describe_overall(report.overall, report, brief=not named))
    own = [each for each in report.results if "group" not in each.slice]
    if own and (named or conclusion is None):
        yield document.overview(own, whole=named)
    if groups := [each for each in report.results if "group" in each.slice]:
        yield document.group_table(groups)
    yield from (replace(each, most=0) for each in document.extreme_rows(report.results))


def _short(gate: Gate) -> str:
    """Return the first findings of a rule, and how many there are more."""
    *first, rest = gate.message.split("; ", FOUND)
    return "; ".join([*first, f"and {rest.count('; ') + 1} more" if len(first) == FOUND else rest])


def _source(read: Input) -> document.Source:
    """Return what was read and how."""
    names, text = describe_input(read)
    names_of = {role: each for role, each in read.columns.items() if role not in ("x", "id")}
    is_named = all(f"{role}: {each}" in (read.layout or "") for role, each in names_of.items())
    columns = "" if is_named else ", ".join(names_of.values())
    found = text.replace("predictions: ", "") + (f" ({columns})" if columns else "")
    return document.Source(tuple(names), found + (f" · inputs {read.columns['x']}" if "x" in read.columns else ""))


def screen_answer(report: Report, conclusion: Conclusion) -> Answer:
    """Return the answer of a report, with one line a topic: its number, its interval, a bar, and what it means."""
    tolerance = conclusion.tolerance or 0.0
    wrong = _faults(conclusion)
    rest = [each for each in conclusion.effects if each.within is not False and not _is_untested(each)]
    outputs = sorted(conclusion.outputs, key=_urgency) if len(conclusion.outputs) > OUTPUTS else conclusion.outputs
    lines = [(each.name, _output_cell(each)) for each in outputs[:OUTPUTS]]
    if others := len(outputs) - len(lines):
        lines.append(("", Cell(f"{others:,} more target{'s' * (others > 1)}: --table", "none")))
    lines += [line for each in (*wrong, *rest) for line in _lines(each, report, conclusion)]
    if report.region is not None:
        lines += _region_lines(report.region, report.input.n, tolerance)
    if not (conclusion.causes and conclusion.causes[0].cause == REGION):  # which is told as the place
        lines += (("cause", Cell(text, "strong")) for text in cause_texts(conclusion))
    lines += _limits_lines(report, conclusion) if conclusion.on is None else _new_lines(conclusion.on, report)
    after = terms(conclusion)
    named = report.settings.get("dependence") or {}
    if conclusion.rows_needed is not None and "cluster" in named:
        count = float(f"{conclusion.rows_needed * named['clusters'] / report.input.n:.2g}")
        after = after.replace(" rows would", f" rows of {count:,.0f} values of {named['cluster']!r} would")
    if wrong and not conclusion.outputs:
        leading = _leading_region(report, conclusion) or _leading(wrong[0], conclusion)
        after = f": {leading}" if leading else after
    if conclusion.on is not None and conclusion.on.answer == "no" != conclusion.answer:
        after += "; new inputs: NO"
    told = document.answer_cell(conclusion, after)
    plausible = [each for each in conclusion.causes[:2] if each.explained >= conclusion.causes[0].explained - ABOUT]
    commands = dict.fromkeys(each.command for each in plausible if each.command)
    undo = [each for each in commands if not each.startswith(MEND)]
    there = any(each.startswith(MEND) and " --on " in each for each in conclusion.next)  # the mend is for new inputs
    mends = [each for each in commands if each.startswith(MEND) and not there]
    new = tuple(f"{MEND[0]}{quote(each.path)}" for each in report.input.files if each.role == "new_inputs")
    further = [each for each in conclusion.next if each.startswith(new) or not (mends and each.startswith(MEND))]
    shown = tuple(dict.fromkeys((*undo, *mends, *further)))[: None if conclusion.on is None else COMMANDS]
    return Answer(document.QUESTION, told, tuple(lines), shown, len(undo), lined=True)


def _faults(conclusion: Answered) -> list[Effect]:
    """Return what is wrong, largest first."""
    return sorted((each for each in conclusion.effects if each.within is False), key=lambda each: -_size(each))


def _output_cell(output: OutputConclusion) -> Cell:
    """Return the answer for one of several targets: what is wrong or decides, or the size of what is right."""
    faults = [_leading(each, output) for each in _faults(output)]
    sizes = [factor(_span(each)) for each in output.effects if each.topic == "size" and each.value is not None]
    after = f": {'; '.join(faults)}" if faults else "; ".join([terms(output), *sizes])
    causes = [f"; plausible cause: {text}" for text in cause_texts(output)]
    return Cell(document.answer_cell(output, "").text + "".join([after, *causes]), "strong" if faults else "")


def _leading_region(report: Report, conclusion: Answered) -> str:
    """Return the worst region with its factor, if that of the other rows is within the tolerance; else empty."""
    region, limit = report.region, 1 + (conclusion.tolerance or 0.0)
    if region is None or region.level is None or region.value is None or region.low is None or region.high is None:
        return ""
    low, high = region.other_low, region.other_high
    is_beyond = region.low > limit or region.high < 1 / limit
    if not is_beyond or low is None or high is None or low < 1 / limit or high > limit:
        return ""
    size = factor((region.value, region.low, region.high))
    return f"{region.direction.replace('-', ' ')} where {region.where}, {size}"


def _leading(effect: Effect, conclusion: Answered) -> str:
    """Return the size of the largest fault in words; that of another level if only the factor of this one may be 1."""
    value, low = effect.value, effect.low
    if value is None or effect.topic not in ("size", "bias", *ALONG):
        return effect.topic
    if effect.topic == "size":
        other = _other_level(conclusion) if _contains_1(effect) else None
        if other is not None and not _contains_1(other):
            return _shape(other)
        return f"too {'narrow' if value > 1 else 'wide'}, {factor(_span(effect))}"
    if effect.topic == "bias":
        return f"targets are {abs(value):.2g} std {'above' if value > 0 else 'below'} predicted"
    amount = f"off by ≥ {percent(_rounded(low))}" if effect.kind == "scale" else f"means off by ≥ {low:.2g} std"
    return f"{amount} {ALONG[effect.topic]}"


def _contains_1(found: Effect | WidthFactor) -> bool:
    """Return whether the interval of a factor contains 1."""
    return (found.low or 0.0) <= 1 <= (math.inf if found.high is None else found.high)


def _shape(other: WidthFactor) -> str:
    return f"wrong shape, {percent(other.level)} intervals {factor(_span(other))}"


def _size(effect: Effect) -> float:
    """Return the size of a fault, by which faults are ordered; impossible targets are first."""
    if effect.value is None or effect.topic not in ("size", "bias", *ALONG):
        return math.inf
    if effect.topic == "size":
        return abs(math.log(effect.value)) if effect.value > 0 else math.inf
    return abs(effect.value) if effect.topic == "bias" else effect.low or 0.0


def _urgency(output: OutputConclusion) -> tuple[bool, bool, float]:
    """Return the key that sorts targets: those with the largest faults first, right ones last."""
    sizes = [_size(each) for each in output.effects if each.within is False]
    return output.answer != "no", output.answer == "yes", -max(sizes, default=0.0)


def _is_untested(effect: Effect) -> bool:
    return effect.value is None and effect.text.startswith(UNTESTED)


def _lines(effect: Effect, report: Report, conclusion: Conclusion) -> Iterator[tuple[str, Cell]]:
    """Yield the line of an effect; none for a local error of the means that is not shown."""
    tolerance, topic = conclusion.tolerance or 0.0, effect.topic
    strength: Emphasis = "strong" if effect.within is False else ""
    if topic == "shape":
        if other := _other_level(conclusion):
            yield topic, Cell(_measure(_span(other), tolerance, _tails(effect, other, conclusion)))
    elif effect.value is None or topic not in ("size", "bias", *ALONG):
        yield topic, Cell(effect.text, strength)
    elif topic == "size":
        words = _held(report, conclusion) or _within(effect, conclusion)
        yield topic, Cell(_measure(_span(effect), tolerance, words), strength)
    elif topic == "bias":
        words = f"mean error within {tolerance:g} std" if effect.within else "mean error"
        told = _with_bar(shift(_span(effect)), _scaled(effect, tolerance), words)
        yield topic, Cell(told, strength)
    elif _is_shown(effect):
        low, value = _rounded(effect.low), _rounded(effect.value)
        is_scale = effect.kind == "scale"
        number = f"≥ {percent(low)}, typical {percent(value)}" if is_scale else f"≥ {low:g} std, typical {value:g}"
        kind = KINDS[effect.kind or "scale"]
        what = kind if topic != "ranking" else "by size" if is_scale else f"{kind} by size"
        words = f"{what}, {p_text(effect.p or 0.0)}"
        yield topic, Cell(_with_bar(number, _scaled(effect, tolerance), words), strength)
    elif effect.kind == "scale" and not any(_is_shown(each) for each in conclusion.effects if each.topic == topic):
        is_judged = effect.p is not None or (effect.low or 0.0) <= 0
        text = "no error shown" if topic != "inputs" or report.region is None else "an error in one region is shown"
        yield topic, Cell(text if is_judged else "not judged: no p-value", "none")


def _is_shown(effect: Effect) -> bool:
    """Return whether a local error is significant."""
    return effect.p is not None and effect.p <= SIGNIFICANT and (effect.low or 0.0) > 0


def _rounded(value: float | None) -> float:
    return float(f"{value or 0.0:.2g}")


def _scaled(found: Effect, tolerance: float) -> Span:
    """Return value and limits of a difference in units of the tolerance."""
    return shares(_span(found), tolerance)


def shares(span: Span, tolerance: float) -> Span:
    """Return value and limits in units of the tolerance."""
    value, low, high = (None if each is None else each / tolerance for each in span)
    return value, low, high


def _other_level(conclusion: Answered) -> WidthFactor | None:
    """Return the factor of the level that differs most from that of the answer."""
    main = next((each.value for each in conclusion.factors if each.level == conclusion.level), 0.0)
    others = [each for each in conclusion.factors if each.level != conclusion.level]
    known = [each for each in others if each.value > 0 and main > 0]
    return max(known or others, key=lambda each: abs(math.log(each.value / main)) if known else 0, default=None)


def _tails(effect: Effect, other: WidthFactor, conclusion: Conclusion) -> str:
    """Return what the level of the shape is, and whether its intervals show other tails than predicted."""
    outer = other.level > (conclusion.level or 0.0)
    above = effect.low is not None and effect.low > 1
    below = effect.high is not None and effect.high < 1
    tails = "heavy tails" if (above and outer) or (below and not outer) else "light tails" if above or below else ""
    level = percent(other.level)
    return f"{level}: {tails}" if tails else f"{level} intervals"


def _held(report: Report, conclusion: Conclusion) -> str:
    """Return the coverage of the intervals of the answer, if it was computed."""
    level = conclusion.level
    found = (each for each in report.results if each.metric == "coverage" and each.options.get("level") == level)
    result = next((each for each in found if not each.slice), None)
    if result is None or result.value is None or level is None:
        return ""
    held, right = f"{percent(level)} intervals hold {percent(_rounded(result.value))}", result.reference
    is_apart = right is not None and abs(right - level) > APART
    return f"{held}, {percent(_rounded(right))} expected" if is_apart else held


def _within(effect: Effect, conclusion: Conclusion) -> str:
    tolerance = percent(conclusion.tolerance or 0.0)
    return f"within {tolerance}" if effect.within else f"not shown within {tolerance}"


def _measure(span: Span, tolerance: float, words: str) -> str:
    """Return the line of a factor."""
    return _with_bar(factor(span), logarithms(span, tolerance), words)


def logarithms(span: Span, tolerance: float) -> Span:
    """Return value and limits of a factor in units of the tolerance, on a logarithmic scale."""
    value, low, high = (None if each is None else math.log(each) if each > 0 else -math.inf for each in span)
    return shares((value, low, high), math.log1p(tolerance))


def _with_bar(number: str, span: Span, words: str) -> str:
    return f"{number.ljust(NUMBERS)} {bar(span)}  {words}"


def bar(span: Span) -> str:
    """Return a bar with an interval on a scale from no error in the center, whose limits are the tolerance, ±1.

    >>> bar((0.1, -0.5, 0.6)), bar((1.4, 1.2, None)), bar((-5.0, None, -4.0))
    ('   ├━━●━━┤   ', '   ├──┼──┤●━━', '◀  ├──┼──┤   ')
    """
    value, low, high = span
    side, middle = " " * (HALF - LIMIT), "─" * (LIMIT - 1)
    shown = list(f"{side}├{middle}┼{middle}┤{side}")
    if value is None:
        return "".join(shown)
    first, last = _place(-math.inf if low is None else low), _place(math.inf if high is None else high)
    for number in range(max(first, 0), min(last, 2 * HALF) + 1):
        shown[number] = {"├": "┿", "┤": "┿"}.get(shown[number], "━")
    place = _place(value)
    shown[min(max(place, 0), 2 * HALF)] = "◀" if place < 0 else "▶" if place > 2 * HALF else "●"
    return "".join(shown)


def _place(scaled: float) -> int:
    limited = min(max(scaled, -2.0 * HALF), 2.0 * HALF)
    return HALF + round(limited * LIMIT)


def _region_lines(region: answers.WorstRegion, n: int, tolerance: float) -> Iterator[tuple[str, Cell]]:
    """Yield the lines of the worst region: its rows, and what is wrong in them and in the others."""
    yield "where", Cell(f"{region.where}: {region.rows:,} of {n:,} rows, {p_text(region.p_value)}", "strong")
    words = region.direction.replace("-", " ")
    inside, others = (
        (region.value, region.low, region.high),
        (region.other_value, region.other_low, region.other_high),
    )
    for span, where in ((inside, f"{words} there"), (others, "elsewhere")):
        if span[0] is not None and region.level is not None:
            yield "", Cell(_measure(span, tolerance, where))
        elif span[0] is not None:
            yield "", Cell(_with_bar(shift(span), shares(span, tolerance), where))


def _new_lines(on: answers.NewInputs, report: Report) -> Iterator[tuple[str, Cell]]:
    """Yield the lines of the answer at new inputs: by how much intervals are off there, and what is known about it."""
    tolerance = on.tolerance or 0.0
    wrong = sorted((each for each in on.effects if each.within is False), key=lambda each: -_size(each))
    unknown = [each.text.removeprefix("not shown: ") for each in on.effects if each.value is None]
    after = f": {_leading(wrong[0], on)}" if wrong else f": {unknown[0]}" if unknown else terms(on)
    yield "new", document.answer_cell(on, f" on {new_inputs.name_of(report)}{after}")
    for each in on.effects:
        if each.topic == "size" and each.value is not None:
            yield "", Cell(_measure(_span(each), tolerance, f"{percent(on.level or 0.0)} intervals there"))
        elif each.topic == "bias" and each.value is not None and not each.within:
            yield "", Cell(_with_bar(shift(_span(each)), _scaled(each, tolerance), "mean error there"))
    yield "", Cell(new_inputs.rows_text(on))
    if on.inputs_differ.p <= SIGNIFICANT:
        yield "", Cell(new_inputs.differ_text(on))
    told = list(new_inputs.observed_texts(on))
    yield from (("", Cell(text)) for text, _ in [each for each in told if each[1]] or told[:1])
    if on.contradicted:
        yield "", Cell("more than inputs changed, such as the model: only new targets count")
    if on.unjudged:
        yield "", Cell(on.unjudged)
    if text := new_inputs.label_text(on):
        yield "", Cell(text)


def _limits_lines(report: Report, conclusion: Conclusion) -> Iterator[tuple[str, Cell]]:
    """Yield what the rows could have shown, and what was not tested."""
    if shown := [each for each in conclusion.power if each.sets is None]:
        told = ", ".join(f"{each.text}: {document.percent_of_sets(each)}" for each in shown)
        yield "shows", Cell(f"{told} of data sets", "none")
    effects = chain(conclusion.effects, *(each.effects for each in conclusion.outputs))
    reasons = {each.topic: each.text.removeprefix(UNTESTED) for each in effects if _is_untested(each)}
    untested = [f"{topic}: {reason.removeprefix('pass ')}" for topic, reason in reasons.items()]
    if not report.has_dependent_rows:
        untested.append("dependence: --time or --cluster")
    if untested:
        yield "untested", Cell("; ".join(untested), "none")
