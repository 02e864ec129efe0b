"""Sums over the rows of a source, a batch at a time: what is added up is all that stays in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.errors import DataError
from calcheck.execution.prefetch import prefetched

if TYPE_CHECKING:
    from collections.abc import Callable

    from calcheck.execution.context import Run
    from calcheck.execution.executor import SumT
    from calcheck.predictions import Predictions, Source


def reduce_batches(
    source: Source, work: Callable[[Predictions], SumT], run: Run, *, stage: str, rows: int | None = None
) -> SumT:
    """Add up what ``work`` makes of each batch of rows.

    Parameters
    ----------
    source : Source
        The rows; they are read once, from the start.
    work : callable
        Makes a sum of its own of each batch; a function of the batch alone, which can be sent to another process.
        Where it has a method ``restored``, which makes a sum of that sum's ``arrays()``, checkpoints keep it.
    run : Run
        Where it runs, and who is told how far it has come.
    stage : str
        What is being done, as progress shows it; checkpoints know a sum by it, so no two of a run share it.
    rows : int, optional
        How many there are, if it is known: then progress is shown on the way.

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
    """Add up the batches of a source in their order, from the last checkpoint on; None where there are none."""
    checkpoint = None if run is None or run.checkpoint is None else run.checkpoint
    done, total = (0, None) if checkpoint is None else checkpoint.load(stage, work)
    if done is None:
        return total
    read = 0
    for number, batch in enumerate(prefetched(source.batches()), 1):
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
