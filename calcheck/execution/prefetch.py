"""Prefetching: work in a background thread while the previous result is used, and a limit on BLAS threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

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
