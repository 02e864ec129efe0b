"""Options for streaming: the state file, the checkpoint and the cluster."""

from __future__ import annotations

from dataclasses import dataclass

from calcheck.cli.options import OVERWRITTEN
from calcheck.errors import OptionError
from calcheck.options import option


@dataclass(frozen=True)
class StateOptions:
    """Options for streaming, where memory does not grow with the number of rows and states can be merged."""

    save_state: str | None = option(
        None,
        "Read the rows in batches, and save the accumulated state to a file, which calcheck evaluate combines with "
        "other states.",
        metavar="FILE",
        by_hand=OVERWRITTEN,
    )
    settings_from: str | None = option(
        None,
        "Use the settings of a saved state, so that the two can be merged: its metrics, options, bin edges and "
        "landmarks.",
        metavar="STATE",
    )
    dask: str | None = option(
        None,
        "Process the batches on a Dask cluster: tcp://host:8786, or local:N for N processes on this machine. Requires "
        "distributed, the extra dask.",
        metavar="ADDRESS",
    )
    checkpoint: str | None = option(
        None,
        "Save the progress of this run to a file, which is removed when the run completes.",
        metavar="FILE",
        by_hand=OVERWRITTEN,
    )
    resume: bool = option(default=False, text="Continue an interrupted run from its --checkpoint file, if that exists.")

    def __post_init__(self) -> None:
        if self.resume and self.checkpoint is None:
            msg = "--resume needs the checkpoint file of the interrupted run: also pass --checkpoint FILE"
            raise OptionError(msg)
        if self.checkpoint is not None and self.dask is not None:
            msg = (
                "--checkpoint and --dask cannot be combined: a checkpoint is for a single machine, and a cluster"
                " continues when a worker fails. Omit one of them"
            )
            raise OptionError(msg)


@dataclass(frozen=True)
class MergeOptions:
    """Options for the output of merged states."""

    save_state: str | None = option(None, "Save the merged state to a file.", metavar="FILE", by_hand=OVERWRITTEN)
