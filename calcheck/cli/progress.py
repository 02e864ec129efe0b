"""The progress bar."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

BAR_WIDTH = 16  # in characters: with a stage and the time left, a line fits 60 columns


@contextmanager
def progress_bar(delay: float) -> Iterator[Callable[[str, float], None]]:
    """Yield a callback that shows a line for each stage in progress on standard error, after a delay in seconds."""
    appears = time.monotonic() + delay
    progress: Any = None
    tasks: dict[str, Any] = {}

    def show(stage: str, share: float) -> None:
        nonlocal progress
        if progress is None:
            if time.monotonic() < appears:
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
            shown = Progress(*columns, console=Console(stderr=True), transient=True)
            shown.start()
            progress = shown
        if share < 1:
            if stage not in tasks:
                tasks[stage] = progress.add_task(stage, total=1.0)
            progress.update(tasks[stage], completed=share)
        elif stage in tasks:
            progress.remove_task(tasks.pop(stage))

    try:
        yield show
    finally:
        if progress is not None:
            progress.stop()
