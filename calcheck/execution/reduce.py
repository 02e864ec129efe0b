"""Reduction of a source in batches: only the current batch and the sum are in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.errors import DataError
from calcheck.execution.prefetch import prefetch

if TYPE_CHECKING:
    from collections.abc import Callable

    from calcheck.execution.context import Run
    from calcheck.execution.executor import SumT
    from calcheck.predictions import Predictions, Source


def reduce_batches(
    source: Source, work: Callable[[Predictions], SumT], run: Run, *, stage: str, rows: int | None = None
) -> SumT:
    """Return the sum of ``work(batch)`` over the batches of a source.

    Parameters
    ----------
    source : Source
        The rows; they are read once, from the start.
    work : callable
        Returns a new sum for each batch. It depends on the batch only, and can be sent to another process. If it has a
        method ``load`` that restores a sum from its ``arrays()``, checkpoints save the sum.
    run : Run
        The executor, checkpoint and progress.
    stage : str
        The name of the stage, for progress and checkpoints; unique within a run.
    rows : int, optional
        The number of rows, if known, for intermediate progress.

    Raises
    ------
    DataError
        There are no rows.
    """
    run.progress(stage, 0.0)
    if run.executor is not None:
        total = run.executor.reduce(source.parts(), work, lambda share: run.progress(stage, share))
    else:
        total = reduce_locally(source, work, run, stage=stage, rows=rows)
    if total is None:
        msg = "there are no rows"
        raise DataError(msg)
    run.progress(stage, 1.0)
    return total


def reduce_locally(
    source: Source,
    work: Callable[[Predictions], SumT],
    run: Run | None = None,
    *,
    stage: str = "",
    rows: int | None = None,
) -> SumT | None:
    """Return the sum over the batches of a source in order, resumed from the last checkpoint; None without rows."""
    checkpoint = None if run is None or run.checkpoint is None else run.checkpoint
    done, total = (0, None) if checkpoint is None else checkpoint.load(stage, work)
    if done is None:
        return total
    read = 0
    for number, batch in enumerate(prefetch(source.batches()), 1):
        read += len(batch)
        if number <= done:
            continue
        part = work(batch)
        if total is None:
            total = part
        else:
            total.add(part)
        if checkpoint is not None:
            checkpoint.save(stage, number, total)
        if run is not None and rows is not None:
            run.progress(stage, read / rows)
    if checkpoint is not None:
        checkpoint.complete(stage, total)
    return total
