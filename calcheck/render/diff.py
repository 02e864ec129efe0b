"""Changes between two reports as tables for a terminal and in Markdown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from calcheck.render.cells import ABSENT, number
from calcheck.render.console import rendered, safe_text
from calcheck.render.json import to_json
from calcheck.render.markdown import escaped, line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import RenderableType

    from calcheck.studies.diff import Change, Diff, Unmatched

PERCENT = 100
HEAD = ("old", "new", "change", "relative", "in old interval", "verdict")
COLORS = {"fail": "bold red", "pass": "green"}
SHOWN = 12  # number of characters shown of a SHA-256 hash
FINGERPRINT = 64  # length of a SHA-256 hash in hexadecimal
LONGEST, MOST = 500, 200  # maximum characters per note, and maximum notes; JSON contains all of them


def changes_to_table(diff: Diff) -> str:
    """Return changes as a table for a terminal of at least 80 columns."""
    return rendered(*_parts(diff))


def changes_to_markdown(diff: Diff) -> str:
    """Return changes in Markdown."""
    lines: list[str] = []
    if diff.changes:
        lines += [line(["metric", *HEAD]), line(["---", *["---:"] * 4, "---", "---"])]
        lines += [line([escaped(_called(change)), *map(escaped, _cells(change))]) for change in diff.changes]
    notes = [f"- {escaped(note)}" for note in _notes(diff)]
    return "\n".join([*lines, *([""] if lines and notes else []), *notes]) + "\n"


CHANGES_FORMATS: dict[str, Callable[[Diff], str]] = {
    "table": changes_to_table,
    "json": to_json,
    "markdown": changes_to_markdown,
}
"""Renderers of changes, by the name of the format."""


def _parts(diff: Diff) -> Iterator[RenderableType]:
    from rich import box
    from rich.table import Table

    if diff.changes:
        table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
        table.add_column("metric")
        for name in HEAD:
            table.add_column(name, justify="left" if name in HEAD[-2:] else "right")
        for change in diff.changes:
            style = "" if change.old_verdict == change.new_verdict else COLORS.get(change.new_verdict, "")
            *others, verdict = _cells(change)
            table.add_row(safe_text(_called(change)), *map(safe_text, others), safe_text(verdict, style=style))
        yield table
    if notes := _notes(diff):
        grid = Table.grid(padding=(0, 1))
        for note in notes:
            grid.add_row("note", safe_text(note))
        yield grid


def _cells(change: Change) -> tuple[str, str, str, str, str, str]:
    """Return the cells of a change: values, absolute and relative change, whether in the old interval, verdicts."""
    by = ABSENT if change.change is None else f"{change.change:+.4g}"
    relative = ABSENT if change.relative is None else f"{PERCENT * change.relative:+.3g} %"
    inside = {None: ABSENT, True: "yes", False: "no"}[change.inside]
    apart = ", intervals disjoint" if change.overlap is False else ""
    verdicts = (change.old_verdict, change.new_verdict)
    verdict = verdicts[0] if verdicts[0] == verdicts[1] else " → ".join(verdicts)
    return (
        number(change.old),
        number(change.new),
        "0" if change.change == 0 else by,
        "0 %" if change.relative == 0 else relative,
        inside + apart,
        verdict,
    )


def _called(told: Change | Unmatched, *, options: bool = False) -> str:
    """Return the name of a metric with its subset of rows and, if requested, its options."""
    parts = [f"{name} {value}" for name, value in told.slice.items()]
    parts += [f"{name} {value}" for name, value in told.options.items()] if options else []
    return f"{told.metric} ({', '.join(parts)})" if parts else told.metric


def _notes(diff: Diff) -> list[str]:
    """Return notes about results in only one of the reports, and about differing input, settings and versions."""
    notes = []
    for where, other, results in (("old", "new", diff.only_old), ("new", "old", diff.only_new)):
        for result in results:
            reason = f"; skipped in the {other} report: {result.reason}" if result.reason else ""
            notes.append(f"only in the {where} report: {_called(result, options=True)}, {number(result.value)}{reason}")
    differs = [f"{each.what}: {_shown(each.old)} → {_shown(each.new)}" for each in diff.differences]
    if not diff.changes and not notes:
        notes.append("neither report contains a result")
    notes += differs or ["input, settings and versions are identical"]
    shown = [note if len(note) <= LONGEST else f"{note[:LONGEST]}…" for note in notes[:MOST]]
    return shown + ([f"… {len(notes):,} notes in total: --format json shows all of them"] if len(notes) > MOST else [])


def _shown(value: Any) -> str:
    """Return the value of a setting as text; a hash is abbreviated."""
    if isinstance(value, str) and len(value) == FINGERPRINT:
        return f"{value[:SHOWN]}…"
    return ABSENT if value is None else value if isinstance(value, str) else json.dumps(value)
