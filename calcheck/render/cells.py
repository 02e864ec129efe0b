"""What tables of every kind say of a report, in words and cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.report import Gate, Input, Report, Result, Skipped

ABSENT = "–"
ALL_DIGITS_FROM, ALL_DIGITS_TO = 1e3, 1e5
COLUMNS = ("value", "interval", "perfect", "ζ", "p", "verdict")
GATE_COLUMNS = ("rule", "outcome", "found")


def number(value: float | None) -> str:
    """Write a number to four digits.

    Examples
    --------
    >>> number(0.0612345), number(1181.0), number(None)
    ('0.06123', '1181', '–')
    """
    return ABSENT if value is None else f"{value:.4g}"


def short(value: float | None) -> str:
    """Write a number to three digits, and all of those before the point.

    Examples
    --------
    >>> short(0.0612345), short(1181.4), short(None)
    ('0.0612', '1181', '–')
    """
    if value is None:
        return ABSENT
    return f"{value:.0f}" if ALL_DIGITS_FROM <= abs(value) < ALL_DIGITS_TO else f"{value:.3g}"


def cells(result: Result) -> tuple[str, str, str, str, str, str]:
    """Write value, interval, reference, zeta, p-value and verdict."""
    interval = ABSENT if result.low is None else f"[{short(result.low)}, {short(result.high)}]"
    zeta = ABSENT if result.zeta is None else f"{result.zeta:.2f}"
    p = ABSENT if result.p_value is None else f"{result.p_value:.2g}"
    return number(result.value), interval, short(result.reference), zeta, p, result.verdict


def reference_text(result: Result) -> str:
    """Say what a perfect model scores on the same rows; nothing where that is not known."""
    if result.reference is None:
        return ""
    told = [f"{number(result.reference)}, {'exactly' if result.reference_kind == 'exact' else 'on average'}"]
    low, high = result.reference_low, result.reference_high
    if low is not None and high is not None:
        told.append(f"mostly from {number(low)} to {number(high)}")
    elif high is not None:
        told.append(f"mostly below {number(high)}")
    elif low is not None:
        told.append(f"mostly above {number(low)}")
    return " · ".join(told)


def outcome(gate: Gate) -> str:
    """Say in a word what became of a rule."""
    if gate.passed:
        return "passed"
    return "violated" if gate.level == "fail" else "warned"


def headline(report: Report) -> str:
    """Say in a line what became of all rules."""
    violated, warned = len(report.violated("fail")), len(report.violated("warn"))
    rules = f"{len(report.gates):,} rule" + ("s" if len(report.gates) != 1 else "")
    if violated:
        return f"{violated:,} of {rules} violated" + (f", {warned:,} warned of" if warned else "")
    return f"{warned:,} of {rules} warned of, none violated" if warned else f"{rules} passed"


def subset_columns(results: Sequence[Result]) -> list[str]:
    """List what tells results of the same metric apart."""
    return list(dict.fromkeys(name for result in results for name in result.slice))


def read_in_words(read: Input) -> tuple[list[str], str]:
    """Name the files, and say what was read in them."""
    names = [
        ("standard input" if file.path == "-" else file.path) + (f" ({file.files:,} files)" if file.files > 1 else "")
        for file in read.files
    ]
    told = [f"{read.n:,} row" + ("s" if read.n != 1 else "")]
    if read.layout:
        told.append(read.layout)
    if read.dropped:
        told.append(f"{read.dropped:,} left out")
    if read.predictive:
        told.append(f"predictions: {read.predictive}")
    return names, " · ".join(told)


def notes(report: Report) -> list[tuple[str, str]]:
    """Gather what a reader should know: each note once, with the metrics it belongs to, if that is not all of them."""
    belongs: dict[str, dict[str, None]] = {}
    for result in report.results:
        for warning in result.warnings:
            belongs.setdefault(warning, {})[result.metric] = None
    metrics = {result.metric for result in report.results}
    told = [("" if set(names) == metrics else ", ".join(names), note) for note, names in belongs.items()]
    return told + [(f"skipped {names}", reason) for names, reason in reasons(report.skipped)]


def reasons(skipped: Sequence[Skipped]) -> list[tuple[str, str]]:
    """Gather why metrics were skipped: the metrics, and the reason, each once."""
    found: dict[str, list[str]] = {}
    for each in skipped:
        found.setdefault(each.reason, []).append(each.metric)
    return [(", ".join(names), reason) for reason, names in found.items()]


def is_listed(value: Any) -> bool:
    """Tell whether a detail is a list of rows, which has a table of its own."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def cell(value: Any) -> str:
    """Write a cell of such a table: numbers to four digits, keys and other whole numbers in full."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, float) or value is None else str(value)
