"""Reduction of batches: in this process, or by workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from calcheck.errors import DataError

if TYPE_CHECKING:
    from calcheck.execution.run import Run, SumT
    from calcheck.predictions import Predictions, Source

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


def map_ahead(work: Callable[[ItemT], ResultT], items: Iterable[ItemT]) -> Iterator[ResultT]:
    """Yield ``work(item)`` for each item, in order, computed one item ahead.

    This is faster if the work releases the global interpreter lock. One thread processes the items in order, so the
    results do not depend on timing.

    Examples
    --------
    >>> list(map_ahead(lambda number: number**2, [1, 2, 3]))
    [1, 4, 9]
    """
    with ThreadPoolExecutor(1) as pool:
        waiting = None
        for item in items:
            following = pool.submit(work, item)
            if waiting is not None:
                yield waiting.result()
            waiting = following
        if waiting is not None:
            yield waiting.result()


def prefetch(items: Iterable[ItemT]) -> Iterator[ItemT]:
    """Yield items, and compute the next one in a background thread meanwhile; used for reading files.

    Examples
    --------
    >>> list(prefetch(number**2 for number in [1, 2, 3]))
    [1, 4, 9]
    """
    remaining, end = iter(items), object()
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, remaining, end)
        while (item := following.result()) is not end:
            following = pool.submit(next, remaining, end)
            yield item  # type: ignore[misc]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread: other threads would spin between products, and slow down the prefetching thread."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> Any:
    """Return the controller of BLAS libraries; cached, because the search takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def reduce_batches(
    source: Source, work: Callable[[Predictions], SumT], run: Run, *, stage: str, rows: int | None = None
) -> SumT:
    """Return the sum of ``work(batch)`` over the batches of a source."""
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
