"""Sources whose rows are in several batches or files."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calcheck.io import read
from calcheck.predictions import InMemory, Predictions, Source


@dataclass(frozen=True, eq=False)
class Batches(Source):
    """Rows in memory that are read in batches."""

    rows: Predictions
    count: int = 7

    def batches(self):
        for part in np.array_split(np.arange(len(self.rows)), self.count):
            yield self.rows.take(part)

    def predictions(self):
        raise AssertionError("all rows were requested at once")

    def input_info(self):
        return InMemory(self.rows).input_info()

    def parts(self):
        return [InMemory(batch) for batch in self.batches()]


@dataclass(frozen=True)
class Files(Source):
    """Several files in order; while the file ``deadly`` does not exist, reading the second file kills the process."""

    paths: tuple[str, ...]
    deadly: str | None = None

    def batches(self):
        for place, path in enumerate(self.paths):
            self._die(place)
            yield from read(path).batches()

    def _die(self, place):
        if self.deadly is not None and place == 1 and not Path(self.deadly).exists():
            Path(self.deadly).write_text("killed")
            os.kill(os.getpid(), signal.SIGKILL)

    def input_info(self):
        return InMemory(next(self.batches())).input_info()

    def parts(self):
        return [BatchSums(self, place) for place in range(len(self.paths))]


@dataclass(frozen=True)
class BatchSums(Source):
    """One of several files."""

    whole: Files
    place: int

    def batches(self):
        self.whole._die(self.place)
        yield from read(self.whole.paths[self.place]).batches()

    def input_info(self):
        return self.whole.input_info()
