"""What is kept on the way of a long sum, so that an interrupted run can continue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from calcheck.predictions import Predictions


class Checkpoint(Protocol):
    """Keeps sums on the way."""

    def load(self, stage: str, work: Callable[[Predictions], Any]) -> tuple[int | None, Any]:
        """Return how many batches a stage has behind it, None for all, and their sum; 0 and None where it is new."""

    def save(self, stage: str, batches: int, total: Any) -> None:
        """Keep the sum of the first batches of a stage, where it is time to."""

    def complete(self, stage: str, total: Any) -> None:
        """Keep the sum of all batches of a stage."""
