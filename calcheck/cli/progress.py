"""A progress bar for long computations on a terminal."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE_SECONDS = 2.0


class _Bar:
    """A progress bar that appears on standard error after ``PATIENCE_SECONDS``."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._progress: Any = None
        self._tasks: dict[str, Any] = {}

    def __call__(self, stage: str, share: float) -> None:
        if self._progress is None:
            if time.monotonic() - self._started < PATIENCE_SECONDS:
                return
            self._progress = self._appear()
        if stage not in self._tasks:
            self._tasks[stage] = self._progress.add_task(stage, total=1.0)
        self._progress.update(self._tasks[stage], completed=share)

    @staticmethod
    def _appear() -> Any:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        progress = Progress(*columns, console=Console(stderr=True), transient=True)
        progress.start()
        return progress

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()


@contextmanager
def progress_bar() -> Iterator[Callable[[str, float], None]]:
    """Yield a callback that shows progress on a terminal after two seconds, and does nothing without a terminal."""
    if not sys.stderr.isatty():
        from calcheck.execution.context import silent

        yield silent
        return
    bar = _Bar()
    try:
        yield bar
    finally:
        bar.close()
