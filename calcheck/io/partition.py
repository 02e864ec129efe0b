"""Partition of files into independent parts, for several processes or machines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from calcheck.io.files import File, Files
from calcheck.io.tables.formats import ConcatTable
from calcheck.io.tables.parquet import ParquetTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calcheck.io.files import AnyFile
    from calcheck.io.limits import ReadLimits
    from calcheck.io.tables.formats import Table


def parts_of(file: AnyFile, table: Table) -> Iterator[tuple[AnyFile, int]]:
    """Yield the partitions of one or several files in row order, each with the number of its first row.

    A table in memory is one partition.
    """
    if isinstance(table, ConcatTable) and isinstance(file, Files):
        for member, member_table, start in zip(file.members, table.tables, table.starts[:-1], strict=True):
            for part, place in _of_one(member.file, member_table):
                yield Files(file.name, (replace(member, file=part),), table.schema), start + place
    elif isinstance(file, File):
        yield from _of_one(file, table)
    else:
        yield file, 0


def _of_one(file: File, table: Table) -> Iterator[tuple[File, int]]:
    """Yield runs of row groups of a Parquet file, with their first rows; other files whole."""
    if not isinstance(table, ParquetTable):
        yield file, 0
        return
    place = 0
    for groups in _runs(table, file.limits):
        yield replace(file, groups=groups), place
        place += sum(rows for rows, _ in map(table.group, groups))


def _runs(table: ParquetTable, limits: ReadLimits) -> list[tuple[int, ...]]:
    """Return runs of consecutive row groups of the minimum size; a smaller remainder joins the last run."""
    runs: list[tuple[int, ...]] = []
    groups: tuple[int, ...] = ()
    for group in table.groups:
        groups = (*groups, group)
        rows, size = map(sum, zip(*map(table.group, groups), strict=True))
        if rows >= limits.partition_rows or size >= limits.partition_bytes:
            runs.append(groups)
            groups = ()
    return [*runs[:-1], (*(runs[-1] if runs else ()), *groups)]
