"""Numbers, and facts and notes of a report in words."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from calcheck.core.text import count_of, format_p, percent
from calcheck.reports import Gate, Input, OutputConclusion, Report, Result, Skipped
from calcheck.reports.conclusion import Answered

Span: TypeAlias = tuple[float | None, float | None, float | None]  # A value with its limits

ABSENT = "–"
ADJUSTED_LEGEND = (
    "adjusted: p-value of the most extreme of all groups and metrics, by replicates of a perfect model; it decides the"
    " verdict"
)
REMOVED = "removed"  # The part of a slice that states the removed rows of a step
OF_ALL_STEPS = frozenset({"not-computed", "outside-interval"})  # Codes of warnings about all steps together
NUMBERS = re.compile(r"\d[\d,]*(?:\.\d+)?")
ALL_DIGITS_FROM, ALL_DIGITS_TO = 1e3, 1e5
LISTED = 6  # Most names of a list in words, besides the last
DIGITS = 2  # Significant digits of a number of rows
DECIDING = ("size", "bias", "correlation")  # Topics whose intervals must be within the tolerance


def number(value: float | None) -> str:
    """Return a number with three significant digits, and all digits before the decimal point up to 100,000.

    >>> number(0.0612345), number(1181.4), number(None), number(float("inf"))
    ('0.0612', '1181', '–', '∞')
    """
    if value is None:
        return ABSENT
    digits = ".0f" if ALL_DIGITS_FROM <= abs(value) < ALL_DIGITS_TO else ".3g"
    return f"{value:{digits}}".replace("inf", "∞")


def in_words(value: Any) -> str:
    """Return a detail in one line."""
    if isinstance(value, dict):
        parts = (f"{'' if name == 'of' else '· '}{name} {in_words(item)}" for name, item in value.items())
        return " ".join(parts).removeprefix("· ")
    if isinstance(value, (list, tuple)):
        return ", ".join(in_words(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else number(value)


def factor(span: Span) -> str:
    """Return a factor with its interval; neither of them if it is outside.

    >>> factor((1.331, 1.28, 1.392)), factor((10.63, 10.54, None)), factor((1.0, 1.2, 1.3))
    ('×1.33 (1.28 to 1.39)', '×10.6 (10.5 or more)', '–')
    """
    value, low, high = span
    if value is None or low is high is None or not (low or 0.0) <= value <= (math.inf if high is None else high):
        return ABSENT
    limits = f"{_factor(low or 0.0)} or more" if high is None else f"{_factor(low or 0.0)} to {_factor(high)}"
    return f"×{_factor(value)} ({limits})"


def _factor(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.3g}"  # noqa: PLR2004 - digits


def shift(span: Span) -> str:
    """Return a mean error in standard deviations with its interval; neither of them if it is outside."""
    value, low, high = span
    if value is None or low is None or high is None or not low <= value <= high:
        return ABSENT
    return f"{_signed(value)} std ({_signed(low)} to {_signed(high)})"


def _signed(value: float) -> str:
    """Return a number with its sign: two decimals, or three digits.

    >>> _signed(0.0239), _signed(-3.31), _signed(-123.4), _signed(-0.001)
    ('+0.02', '-3.31', '-123', '0.00')
    """
    text = f"{value:+.2f}" if abs(value) < 10 else f"{value:+.3g}"  # noqa: PLR2004 - digits
    return text if float(text) else text[1:]


def interval(result: Result) -> str:
    """Return the interval of a result; none that does not contain the value."""
    value, low, high = result.value, result.low, result.high
    if low is None or value is None or not low <= value <= (math.inf if high is None else high):
        return ABSENT
    return f"[{number(low)}, {number(high)}]"


def p_value(result: Result) -> str:
    """Return the p-value of a result, unless it is wrong since rows depend on each other."""
    return ABSENT if result.p_value is None or is_withheld(result) else format_p(result.p_value)


def is_withheld(result: Result) -> bool:
    """Return whether there is no verdict since it was noticed that rows depend on each other."""
    return result.verdict == "none" and any(each.code == "dependent-rows" for each in result.warnings)


def unit(result: Result) -> str:
    """Return the unit of a result; ``""`` for dimensionless values."""
    return "" if result.unit == "1" else result.unit


def name_with_unit(result: Result) -> str:
    """Return the name of a metric with its unit."""
    return f"{result.metric} [{unit(result)}]" if unit(result) else result.metric


def outcome(gate: Gate) -> str:
    """Return the outcome of a rule: passed, violated, warned, or not judged."""
    if gate.passed or not gate.judged:
        return "passed" if gate.passed else "not judged"
    return "violated" if gate.level == "fail" else "warned"


def condition(gate: Gate) -> str:
    """Return a rule: a comparison with a baseline as what must hold, another as what must not."""
    return gate.rule if "is not worse" in gate.rule else f"{gate.level}s if {gate.rule}"


def headline(report: Report) -> str:
    """Return the outcome of all rules in one line."""
    counts = {
        "violated": len(report.violated("fail")),
        "with a warning": len(report.violated("warn")),
        "cannot be judged": sum(not gate.judged for gate in report.gates),
    }
    rules = count_of(len(report.gates), "rule")
    first, *others = [(count, found) for found, count in counts.items() if count] or [(0, "")]
    if not first[0]:
        return f"{rules} passed"
    parts = [f"{first[0]:,} of {rules} {first[1]}", *(f"{count:,} {found}" for count, found in others)]
    return ", ".join(parts if counts["violated"] else [*parts, "none violated"])


def describe_input(read: Input) -> tuple[list[str], str]:
    """Return the file names, none if only new inputs are in files, and a description of what was read."""
    names = [
        ("standard input" if file.path == "-" else file.path) + (f" ({file.files:,} files)" if file.files > 1 else "")
        for file in read.files
        if read.files[0].role != "new_inputs"
    ]
    parts = [count_of(read.n, "row")]
    if read.layout:
        parts.append(read.layout)
    if read.dropped:
        parts.append(f"{read.dropped:,} dropped")
    if read.predictive:
        parts.append(f"predictions: {read.predictive}")
    return names, " · ".join(parts)


def notes(report: Report) -> list[str]:
    """Return the notes: each warning once, with its metrics unless it applies to all, and the skipped metrics."""
    belongs: dict[str, dict[str, None]] = {}
    for metric, text in _warnings(report.results):
        belongs.setdefault(text, {})[metric] = None
    metrics = {result.metric for result in report.results}
    lines = [note if set(names) == metrics else f"{', '.join(names)}: {note}" for note, names in belongs.items()]
    return lines + skipped_notes(report)


def _warnings(results: Sequence[Result]) -> Iterator[tuple[str, str]]:
    """Yield the metric and text of each warning; of steps that differ in numbers only, that with the smallest."""
    alike: dict[tuple[str, str], dict[str, list[str]]] = {}
    for result in results:
        for warning in result.warnings:
            of_step = REMOVED in result.slice and warning.code not in OF_ALL_STEPS
            kind = NUMBERS.sub("#", warning.text) if of_step else warning.text
            steps = alike.setdefault((result.metric, kind), {}).setdefault(warning.text, [])
            steps.append(str(result.slice.get(REMOVED)))
    for (metric, _), texts in alike.items():
        text = min(texts, key=_first_number)
        if len(texts) > 1:
            others = sum(map(len, texts.values())) - 1
            unit = "step" if others == 1 else "steps"
            text = f"with {texts[text][0]} removed, and similarly at {others} other {unit}: {text}"
        yield metric, text


def _first_number(text: str) -> float:
    found = NUMBERS.search(text)
    return float(found[0].replace(",", "")) if found else 0.0


def skipped_notes(report: Report) -> list[str]:
    """Return a note for each reason why metrics were skipped."""
    return [f"skipped {names}: {reason}" for names, reason in reasons(report.skipped)]


def skip_reasons(report: Report) -> str:
    """Return why metrics were skipped, in one line."""
    return "; ".join(f"{names}: {reason}" for names, reason in reasons(report.skipped))


def reasons(skipped: Sequence[Skipped]) -> list[tuple[str, str]]:
    """Return the reasons for skipped metrics: the names of the metrics, and the reason, each reason once."""
    found: dict[str, list[str]] = {}
    for each in skipped:
        found.setdefault(each.reason, []).append(each.metric)
    return [(", ".join(names), reason) for reason, names in found.items()]


def results_by(results: Iterable[Result], name: str) -> dict[str, list[Result]]:
    """Return results grouped by their metric, or by an entry of their subset."""
    found: dict[str, list[Result]] = {}
    for result in results:
        found.setdefault(result.metric if name == "metric" else str(result.slice[name]), []).append(result)
    return found


def cause_texts(conclusion: Answered, *, whole: bool = False) -> list[str]:
    """Return plausible causes: one text with the first two, or one of each with its command."""
    causes = conclusion.causes
    shares = [percent(round(each.explained, 2)) for each in causes]
    found = [f"{each.text}: explains {share}" for each, share in zip(causes, shares, strict=True)]
    if whole:
        told = ["", *(each.command for each in causes)]
        undo = [f". Undo: {each}" * (each not in told[:place]) for place, each in enumerate(told)][1:]
        return [text + end for text, end in zip(found, undo, strict=True)]
    if len(causes) > 1 and shares[0] == shares[1]:
        both = f"{causes[0].text}, or {causes[1].text}"
        return [f"{both} (each explains {shares[0]}; these rows hardly tell which)"]
    return [", or ".join(found[:2])] if found else []


def terms(conclusion: Answered) -> str:
    """Return what the answer is about: the tolerance, what limits a yes, and how many rows would show one."""
    if conclusion.tolerance is None:
        return ""
    tolerance = percent(conclusion.tolerance, 1)
    if conclusion.answer == "yes":
        level = percent(conclusion.level or 0.0)
        known = {"at-level": f"at {level}", "on-average": "on average", "as-tested": "as far as tested"}
        return ", ".join(["", f"within {tolerance}", *(known[each] for each in conclusion.qualifiers)])
    outputs: Sequence[OutputConclusion] = getattr(conclusion, "outputs", ())
    names = [each.name for each in outputs if each.answer == conclusion.answer]
    if conclusion.answer == "no":
        return f": {_listed([*names, *(each.topic for each in conclusion.effects if each.within is False)])}"
    undecided = [each for each in conclusion.effects if each.topic in DECIDING and each.within is None]
    topics = names + [each.topic for each in undecided if each.value is not None or not outputs]
    found = f": {_listed(topics)} decide{'s' * (len(topics) == 1)}" if topics else ""
    if conclusion.rows_needed is None:
        is_unknown = not outputs and any(each.value is None for each in undecided)
        is_open = any(each.value is not None and each.high is None for each in undecided)
        many = f"and more rows may not show it, as the estimate is not well within {tolerance}"
        why = "and an estimate has no upper limit" if is_open else many
        why = "which could not be tested" if is_unknown else why
        return f"{found}, {why}" if topics else ""
    unit = 10 ** max(len(str(conclusion.rows_needed)) - DIGITS, 0)
    rows = f"{-(-conclusion.rows_needed // unit) * unit:,}"  # rounded up, as they are more than there are
    return f"{found}, some {rows} rows would show it within {tolerance} if the estimates stay"


def _listed(topics: Sequence[str]) -> str:
    """Return different topics as a list in words."""
    *others, last = dict.fromkeys(topics)
    if len(others) > LISTED:
        others, last = others[:LISTED], f"{len(others) + 1 - LISTED:,} more"
    return f"{', '.join(others)} and {last}" if others else last
