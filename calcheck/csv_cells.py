"""Protection of CSV text cells from evaluation as formulas in spreadsheets."""

from __future__ import annotations

import re

COMPUTED = r"\A('*[=+\-@\t\r\n])"
"""Start of a text that a spreadsheet evaluates, or that looks protected; a regular expression valid in Arrow too."""
PROTECTED = r"\A'('*[=+\-@\t\r\n])"
"""Start of a protected text; a regular expression."""


def protect(text: str) -> str:
    """Return a text as a cell that spreadsheets do not evaluate, with a leading apostrophe if needed.

    Examples
    --------
    >>> print(protect("=cmd|A1"), protect("'=cmd|A1"), protect("a = b"))
    '=cmd|A1 ''=cmd|A1 a = b
    """
    return re.sub(COMPUTED, r"'\1", text)
