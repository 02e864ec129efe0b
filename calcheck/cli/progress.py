"""The progress bar."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

BAR_WIDTH = 16  # in characters: with a stage and the time left, a line fits 60 columns


class _Display:
    """One line for each stage in progress, on standard error, after a delay in seconds."""

    def __init__(self, delay: float) -> None:
        self._appears = time.monotonic() + delay
        self._progress: Any = None
        self._tasks: dict[str, Any] = {}

    def __call__(self, stage: str, share: float) -> None:
        if self._progress is None:
            if time.monotonic() < self._appears:
                return
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(BAR_WIDTH),
                TaskProgressColumn(),
                TimeRemainingColumn(compact=True),
                TextColumn("left"),
            )
            progress = Progress(*columns, console=Console(stderr=True), transient=True)
            progress.start()
            self._progress = progress
        if share < 1:
            if stage not in self._tasks:
                self._tasks[stage] = self._progress.add_task(stage, total=1.0)
            self._progress.update(self._tasks[stage], completed=share)
        elif stage in self._tasks:
            self._progress.remove_task(self._tasks.pop(stage))

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()


@contextmanager
def progress_bar(delay: float) -> Iterator[Callable[[str, float], None]]:
    """Yield a callback that shows progress on standard error after a delay in seconds."""
    display = _Display(delay)
    try:
        yield display
    finally:
        display.close()
