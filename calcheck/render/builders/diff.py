"""Documents of the changes between two reports."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from calcheck.render.builders.parts import note_blocks
from calcheck.render.cells import ABSENT, number
from calcheck.render.document import Block, Cell, Column, Document, Table, row_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calcheck.studies.diff import Change, Diff, Unmatched

PERCENT = 100
NUMBERS, TEXTS = ("old", "new", "change", "relative"), ("in old interval", "verdict")
RANKS = {"change": 2, "relative": 1}
"""Columns that a narrow terminal lacks, the least important with the highest rank."""
SHOWN = 12  # number of characters shown of a SHA-256 hash
FINGERPRINT = 64  # length of a SHA-256 hash in hexadecimal
LONGEST, MOST = 500, 200  # maximum characters per note, and maximum notes; JSON contains all of them


def diff_document(diff: Diff) -> Document:
    """Return the document of the changes between two reports."""
    return Document(tuple(_blocks(diff)), diff.calcheck)


def _blocks(diff: Diff) -> Iterator[Block]:
    if diff.changes:
        columns = (*(Column(name, "right", rank=RANKS.get(name, 0)) for name in NUMBERS), *map(Column, TEXTS))
        rows = tuple(map(_row, diff.changes))
        yield Table((Column("metric"), *columns), rows, overflow="omit", keys=1, remedy="--format json")
    yield from note_blocks(_notes(diff))


def _row(change: Change) -> tuple[Cell, ...]:
    """Return the cells of a change: values, absolute and relative change, whether in the old interval, verdicts."""
    by = ABSENT if change.change is None else f"{change.change:+.4g}"
    relative = ABSENT if change.relative is None else f"{PERCENT * change.relative:+.3g} %"
    inside = {None: ABSENT, True: "yes", False: "no"}[change.inside]
    disjoint = ", intervals disjoint" if change.overlap is False else ""
    texts = row_of(
        _called(change),
        number(change.old),
        number(change.new),
        "0" if change.change == 0 else by,
        "0 %" if change.relative == 0 else relative,
        inside + disjoint,
    )
    if change.old_verdict == change.new_verdict:
        return (*texts, Cell(change.new_verdict))
    return (*texts, Cell(f"{change.old_verdict} → {change.new_verdict}", change.new_verdict))


def _called(result: Change | Unmatched, *, options: bool = False) -> str:
    """Return the name of a metric with its subset of rows and, if requested, its options."""
    parts = [f"{name} {value}" for name, value in result.slice.items()]
    given = {name: value for name, value in result.options.items() if value is not None} if options else {}
    parts += [f"{name} {_option(value)}" for name, value in given.items()]
    return f"{result.metric} ({', '.join(parts)})" if parts else result.metric


def _option(value: Any) -> str:
    """Return the value of an option as text; lists as on the command line."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _notes(diff: Diff) -> list[str]:
    """Return notes about results in only one of the reports, and about differing input, settings and versions."""
    notes = []
    for where, other, results in (("old", "new", diff.only_old), ("new", "old", diff.only_new)):
        for result in results:
            reason = f"; skipped in the {other} report: {result.reason}" if result.reason else ""
            notes.append(f"only in the {where} report: {_called(result, options=True)}, {number(result.value)}{reason}")
    differs = [f"{each.path}: {_shown(each.old)} → {_shown(each.new)}" for each in diff.differences]
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
