"""Tables as text, for a terminal or a pipe."""

from __future__ import annotations

import io
import os
import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

NARROW, WIDE = 80, 100


def rendered(*parts: RenderableType) -> str:
    """Lay parts out below each other.

    Colour is for terminals, without ``NO_COLOR``; lines are as wide as the terminal, 80 to 100 columns.
    """
    from rich.console import Console

    terminal = sys.stdout.isatty()
    width = min(WIDE, max(NARROW, shutil.get_terminal_size((NARROW, 24)).columns)) if terminal else NARROW
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=width,
        force_terminal=terminal,
        no_color=not terminal or bool(os.environ.get("NO_COLOR")),
        legacy_windows=False,
        emoji=False,
        highlight=False,
    )
    for part in parts:
        console.print(part)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"
