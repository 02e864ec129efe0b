"""What reduces batches of rows elsewhere: an interface, so that settings of a run need not know Dask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from calcheck.predictions import Predictions, Source


class Accumulator(Protocol):
    """Something that batches of rows add up to, in any order."""

    def add(self, other: Self) -> None:
        """Add what other rows add up to, in place."""


SumT = TypeVar("SumT", bound=Accumulator)


class Executor(Protocol):
    """Workers that sum parts of sources."""

    def reduce(
        self, parts: Sequence[Source], work: Callable[[Predictions], SumT], progress: Callable[[float], None]
    ) -> SumT | None:
        """Add up what ``work`` makes of the batches of all parts; None where there are no rows."""
