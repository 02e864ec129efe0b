"""Cells, notes and legends that all tables share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.report import Gate, Input, Report, Result, Skipped

ABSENT = "–"
ALL_DIGITS_FROM, ALL_DIGITS_TO = 1e3, 1e5
COLUMNS = ("value", "interval", "if perfect", "ζ", "p", "verdict")
GATE_COLUMNS = ("rule", "outcome", "found")
ZETA_LEGEND = "ζ: distance from the score of a perfect model, relative to its limit; within ±1 they agree"
DETAILS_LEGENDS = {
    "dof": "dof: effective degrees of freedom of the kernel regression",
    "rejected": "rejected: inputs where the distributions differ significantly, at the false discovery rate --fdr",
}
"""Explanations of details, by name."""


def number(value: float | None) -> str:
    """Return a number with four significant digits.

    Examples
    --------
    >>> number(0.0612345), number(1181.0), number(None)
    ('0.06123', '1181', '–')
    """
    return ABSENT if value is None else f"{value:.4g}"


def short(value: float | None) -> str:
    """Return a number with three significant digits, and all digits before the decimal point up to 100,000.

    Examples
    --------
    >>> short(0.0612345), short(1181.4), short(None)
    ('0.0612', '1181', '–')
    """
    if value is None:
        return ABSENT
    return f"{value:.0f}" if ALL_DIGITS_FROM <= abs(value) < ALL_DIGITS_TO else f"{value:.3g}"


def cells(result: Result) -> tuple[str, str, str, str, str, str]:
    """Return the cells of a result: value, interval, reference, zeta, p-value and verdict."""
    interval = ABSENT if result.low is None else f"[{short(result.low)}, {short(result.high)}]"
    zeta = ABSENT if result.zeta is None else f"{result.zeta:.2f}"
    p = ABSENT if result.p_value is None else f"{result.p_value:.2g}"
    return number(result.value), interval, short(result.reference), zeta, p, result.verdict


def reference_text(result: Result) -> str:
    """Return what a perfect model scores on the same rows; an empty string if that is unknown."""
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
    """Return the outcome of a rule: passed, violated or warned."""
    if gate.passed:
        return "passed"
    return "violated" if gate.level == "fail" else "warned"


def headline(report: Report) -> str:
    """Return the outcome of all rules in one line."""
    violated, warned = len(report.violated("fail")), len(report.violated("warn"))
    rules = f"{len(report.gates):,} rule" + ("s" if len(report.gates) != 1 else "")
    if violated:
        return f"{violated:,} of {rules} violated" + (f", {warned:,} with a warning" if warned else "")
    return f"{warned:,} of {rules} with a warning, none violated" if warned else f"{rules} passed"


def subset_columns(results: Sequence[Result]) -> list[str]:
    """Return the names of the subset columns, which distinguish results of the same metric."""
    return list(dict.fromkeys(name for result in results for name in result.slice))


def read_in_words(read: Input) -> tuple[list[str], str]:
    """Return the file names, and a description of what was read from them."""
    names = [
        ("standard input" if file.path == "-" else file.path) + (f" ({file.files:,} files)" if file.files > 1 else "")
        for file in read.files
    ]
    told = [f"{read.n:,} row" + ("s" if read.n != 1 else "")]
    if read.layout:
        told.append(read.layout)
    if read.dropped:
        told.append(f"{read.dropped:,} dropped")
    if read.predictive:
        told.append(f"predictions: {read.predictive}")
    return names, " · ".join(told)


def notes(report: Report) -> list[tuple[str, str]]:
    """Return the notes: each warning once, with its metrics unless it applies to all, and the skipped metrics."""
    belongs: dict[str, dict[str, None]] = {}
    for result in report.results:
        for warning in result.warnings:
            belongs.setdefault(warning.text, {})[result.metric] = None
    metrics = {result.metric for result in report.results}
    told = [("" if set(names) == metrics else ", ".join(names), note) for note, names in belongs.items()]
    return told + [(f"skipped {names}", reason) for names, reason in reasons(report.skipped)]


def reasons(skipped: Sequence[Skipped]) -> list[tuple[str, str]]:
    """Return the reasons for skipped metrics: the names of the metrics, and the reason, each reason once."""
    found: dict[str, list[str]] = {}
    for each in skipped:
        found.setdefault(each.reason, []).append(each.metric)
    return [(", ".join(names), reason) for reason, names in found.items()]


def is_listed(value: Any) -> bool:
    """Return whether a detail is a list of rows, which is shown as a separate table."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def cell(value: Any) -> str:
    """Return a cell of a list of rows: floats with four significant digits, integers and keys in full."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, float) or value is None else str(value)


def legend_lines(report: Report, *, details: bool) -> list[str]:
    """Return the legend of a table, one line for each term that needs an explanation.

    Parameters
    ----------
    report : Report
        The report.
    details : bool
        Whether the details of the first result are shown.
    """
    lines = [ZETA_LEGEND] if any(result.zeta is not None for result in report.results) else []
    return lines + [text for name, text in DETAILS_LEGENDS.items() if details and name in report.results[0].details]
