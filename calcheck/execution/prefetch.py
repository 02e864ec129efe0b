"""Work that is done in a thread of its own while its last result is used, and a processor that is free for it."""

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
    """Yield ``work(item)`` for each item, in order, one item ahead of its use.

    It pays where the work does not hold the interpreter's lock. Results do not depend on timing: one thread takes the
    items in their order.

    Examples
    --------
    >>> list(ahead(lambda number: number**2, [1, 2, 3]))
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


def prefetched(items: Iterable[ItemT]) -> Iterator[ItemT]:
    """Yield items, the next one made in a thread of its own while the last is used: files are read so.

    Examples
    --------
    >>> list(prefetched(number**2 for number in [1, 2, 3]))
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
    """Keep products of matrices to one thread: others would spin between them, on the processor that works ahead."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> Any:
    """Look for the libraries once: it takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
