"""Files taken apart where their rows do not need each other: for several processes, or machines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from calcheck.io.files import File
from calcheck.io.paths import Files
from calcheck.io.tables.concat import ConcatTable
from calcheck.io.tables.parquet import ParquetTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calcheck.io.paths import AnyFile
    from calcheck.io.tables.formats import Table

LEAST_ROWS = 1 << 16  # of a part of a file, unless they are
LEAST_BYTES = 1 << 26  # so many


def parts_of(file: AnyFile, table: Table) -> Iterator[tuple[AnyFile, int]]:
    """Yield the parts of a file, or of many, in the order of their rows, and where the first row of each is."""
    if isinstance(table, ConcatTable) and isinstance(file, Files):
        for member, own, start in zip(file.members, table.tables, table.starts[:-1], strict=True):
            for part, place in _of_one(member.file, own):
                yield Files(file.name, (replace(member, file=part),), table.schema), start + place
    elif isinstance(file, File):
        yield from _of_one(file, table)


def _of_one(file: File, table: Table) -> Iterator[tuple[File, int]]:
    """Yield runs of row groups of a Parquet file; other files as they are."""
    if not isinstance(table, ParquetTable):
        yield file, 0
        return
    place = 0
    for groups in _runs(table):
        yield replace(file, groups=groups), place
        place += sum(rows for rows, _ in map(table.group, groups))


def _runs(table: ParquetTable) -> list[tuple[int, ...]]:
    """Gather row groups until they are large enough; too small a rest belongs to those before."""
    runs: list[tuple[int, ...]] = []
    groups: tuple[int, ...] = ()
    for group in table.groups:
        groups = (*groups, group)
        rows, size = map(sum, zip(*map(table.group, groups), strict=True))
        if rows >= LEAST_ROWS or size >= LEAST_BYTES:
            runs.append(groups)
            groups = ()
    return [*runs[:-1], (*(runs[-1] if runs else ()), *groups)]
