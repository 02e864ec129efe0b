"""Rendering of tables to text, for a terminal or a pipe."""

from __future__ import annotations

import io
import os
import shutil
import sys

from rich.console import RenderableType
from rich.text import Text

from calcheck.core.text import strip_control

NARROW, WIDE = 60, 100


def safe_text(text: str, style: str = "") -> Text:
    """Return text without markup and control characters."""
    from rich.text import Text

    return Text(strip_control(text), style=style)


def page_width() -> int:
    """Return the width of lines, in characters: that of the terminal, from 60 to 100; 100 in a pipe."""
    return min(WIDE, max(NARROW, shutil.get_terminal_size((WIDE, 24)).columns)) if _is_terminal() else WIDE


def _is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def render_text(*parts: RenderableType) -> str:
    """Return parts as text, with an empty line between them.

    Colors are used on terminals unless ``NO_COLOR`` is set. Lines are at most as wide as the page.
    """
    from rich.console import Console
    from rich.text import Text

    terminal = _is_terminal()
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=page_width(),
        force_terminal=terminal,
        no_color=not terminal or bool(os.environ.get("NO_COLOR")),
        legacy_windows=False,
        emoji=False,
        highlight=False,
    )
    for number, part in enumerate(parts):
        if number:
            console.print()
        console.print(part, soft_wrap=isinstance(part, Text) and bool(part.no_wrap))  # file names are not wrapped
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"
