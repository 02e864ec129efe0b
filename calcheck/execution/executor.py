"""The interface of executors that reduce batches on other workers; it keeps Dask out of the run context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from calcheck.predictions import Predictions, Source


class Accumulator(Protocol):
    """A sum over batches, which can be added in any order."""

    def add(self, other: Self) -> None:
        """Add the sum over other batches, in place."""


SumT = TypeVar("SumT", bound=Accumulator)


class Executor(Protocol):
    """Workers that reduce partitions of sources."""

    def reduce(
        self, parts: Sequence[Source], work: Callable[[Predictions], SumT], progress: Callable[[float], None]
    ) -> SumT | None:
        """Return the sum of ``work(batch)`` over the batches of all partitions; None without rows."""
