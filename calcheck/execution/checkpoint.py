"""The interface of checkpoints, from which an interrupted run can resume."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from calcheck.predictions import Predictions


class Checkpoint(Protocol):
    """Stores partial sums of a run."""

    def load(self, stage: str, work: Callable[[Predictions], Any]) -> tuple[int | None, Any]:
        """Return the number of completed batches of a stage (None for all) and their sum; 0 and None if new."""

    def save(self, stage: str, batches: int, total: Any) -> None:
        """Save the sum of the first batches of a stage, if the last save is old enough."""

    def complete(self, stage: str, total: Any) -> None:
        """Save the sum of all batches of a stage."""
