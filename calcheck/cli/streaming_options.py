"""Options of sums: what is kept of them, and where they run."""

from __future__ import annotations

from dataclasses import dataclass

from calcheck.cli.options import OVERWRITTEN
from calcheck.errors import OptionError
from calcheck.options import option


@dataclass(frozen=True)
class StateOptions:
    """What is summed batch by batch: memory does not grow with the rows, and sums of several days add up."""

    save_state: str | None = option(
        None,
        "Read rows batch by batch, and write their sums to a file, for calcheck merge with those of other days.",
        metavar="FILE",
        by_hand=OVERWRITTEN,
    )
    settings_from: str | None = option(
        None, "Sum as a state was summed: the same metrics, options, edges of bins, centres.", metavar="STATE"
    )
    dask: str | None = option(
        None,
        "Sum on a cluster of Dask, batch by batch: tcp://host:8786, or local:N for N processes here. "
        "Needs the extra dask.",
        metavar="ADDRESS",
    )
    checkpoint: str | None = option(
        None,
        "Keep the sums of the rows so far in a file, removed at the end.",
        metavar="FILE",
        by_hand=OVERWRITTEN,
    )
    resume: bool = option(
        default=False, text="Continue from the --checkpoint of a run that was interrupted, if it is there."
    )

    def __post_init__(self) -> None:
        if self.resume and self.checkpoint is None:
            msg = "--resume continues from a file: name it, --checkpoint FILE"
            raise OptionError(msg)
        if self.checkpoint is not None and self.dask is not None:
            msg = "--checkpoint is for a single machine: a cluster goes on when workers die. Leave out one of them"
            raise OptionError(msg)


@dataclass(frozen=True)
class MergeOptions:
    """What becomes of merged states."""

    save_state: str | None = option(None, "Write the merged state to a file.", metavar="FILE", by_hand=OVERWRITTEN)
