"""Checkpoint files: partial sums of a long run, from which an interrupted run can resume."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from calcheck.errors import OptionError
from calcheck.storage.archive_kinds import CHECKPOINT
from calcheck.storage.npz import damage_as_error, read_archive, write_archive
from calcheck.streaming.codec import strip_prefix

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from calcheck.predictions import Predictions

VERSION = 1
SHARE = 8  # A stage is saved again after 1/SHARE more batches, which bounds the time spent on saving


class FileCheckpoint:
    """A checkpoint file that is written regularly, and removed at the end of the run.

    Parameters
    ----------
    path : str
        The file.
    identity : dict
        Description of the run: files, options, metrics. A checkpoint of a different run is rejected.
    resume : bool
        Whether to resume from the file, if it exists.

    Raises
    ------
    FileError
        The file is not a checkpoint, or is damaged.
    OptionError
        The checkpoint is from a different run.
    """

    def __init__(self, path: str, identity: dict[str, str], *, resume: bool) -> None:
        self._path, self._identity = path, identity
        self._stages: dict[str, int | None] = {}
        self._arrays: dict[str, dict[str, NDArray[Any]]] = {}
        if resume and Path(path).exists():
            self._read()

    def _read(self) -> None:
        header, arrays = read_archive(self._path, CHECKPOINT, VERSION)
        theirs = header.get("run", {})
        for what in {**self._identity, **theirs}:
            if self._identity.get(what) != theirs.get(what):
                msg = f"{self._path} is from a different run: its {what} differ. Restart without --resume"
                raise OptionError(msg)
        for place, (stage, batches) in enumerate(header.get("stages", {}).items()):
            self._stages[stage] = batches
            self._arrays[stage] = strip_prefix(str(place), arrays)

    def load(self, stage: str, work: Callable[[Predictions], Any]) -> tuple[int | None, Any]:
        """Return the number of completed batches of a stage (None for all) and their sum; 0 and None if new."""
        restored = getattr(work, "load", None)
        if stage not in self._stages or restored is None:
            return 0, None
        with damage_as_error(self._path):
            return self._stages[stage], restored(self._arrays[stage])

    def save(self, stage: str, batches: int, total: Any) -> None:
        """Save the sum of the first batches of a stage, if the last save is old enough."""
        last = self._stages.get(stage) or 0
        if batches - last >= max(1, last // SHARE):
            self._write(stage, batches, total)

    def complete(self, stage: str, total: Any) -> None:
        """Save the sum of all batches of a stage."""
        self._write(stage, None, total)

    def remove(self) -> None:
        """Remove the file at the end of the run."""
        Path(self._path).unlink(missing_ok=True)

    def _write(self, stage: str, batches: int | None, total: Any) -> None:
        arrays = total.arrays() if hasattr(total, "arrays") else None
        if arrays is None:  # A sum without arrays cannot be saved and is recomputed
            return
        self._stages[stage], self._arrays[stage] = batches, arrays
        named = {
            f"{place}.{name}": values
            for place, each in enumerate(self._stages)
            for name, values in self._arrays[each].items()
        }
        write_archive(self._path, CHECKPOINT, VERSION, {"run": self._identity, "stages": self._stages}, named)
