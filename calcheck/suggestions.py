"""Suggestions for misspelled names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return a question that names the known word most similar to a word; an empty string if none is similar.

    Upper and lower case count as similar.

    Examples
    --------
    >>> suggestion("zsm", ["zms", "ece"]), suggestion("PIT", ["zms", "pit"]), suggestion("banana", ["zms"])
    ("Did you mean 'zms'?", "Did you mean 'pit'?", '')
    """
    from difflib import get_close_matches

    by_lower = {each.lower(): each for each in sorted(set(known))}
    near = get_close_matches(word.lower(), by_lower, n=1)
    return f"Did you mean '{by_lower[near[0]]}'?" if near else ""
