"""Names and messages from files as plain text, which controls neither a terminal nor a page."""

from __future__ import annotations


def strip_control(text: str) -> str:
    r"""Return text with control characters escaped, so that names from a file cannot control the terminal.

    Examples
    --------
    >>> print(strip_control("a\x1b[2Jb"))
    a\x1b[2Jb
    """
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)
