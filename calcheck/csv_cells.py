"""Cells of text in CSV, which spreadsheets must not compute."""

from __future__ import annotations

import re

COMPUTED = r"\A('*[=+\-@\t\r\n])"
"""What a spreadsheet would compute, or take for protected, starts so; a regular expression for Arrow too."""
PROTECTED = r"\A'('*[=+\-@\t\r\n])"
"""What was protected starts so."""


def protected(text: str) -> str:
    """Write a text as a cell that no spreadsheet computes: with an apostrophe before it, if it needs one.

    Examples
    --------
    >>> print(protected("=cmd|A1"), protected("'=cmd|A1"), protected("a = b"))
    '=cmd|A1 ''=cmd|A1 a = b
    """
    return re.sub(COMPUTED, r"'\1", text)


def unprotected(text: str) -> str:
    """Return the text of a cell: without the apostrophe of :func:`protected`.

    Examples
    --------
    >>> unprotected("'=cmd|A1"), unprotected("'a'")
    ('=cmd|A1', "'a'")
    """
    return re.sub(PROTECTED, r"\1", text)
