"""Suggestions for misspelled names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest_word(word: str, known: Iterable[str]) -> str:
    """Return the known word most similar to a word; an empty string if none is similar.

    Upper and lower case count as similar.
    """
    from difflib import get_close_matches

    by_lower = {each.lower(): each for each in sorted(set(known))}
    return "".join(by_lower[near] for near in get_close_matches(word.lower(), by_lower, n=1))


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return a question that names the known word most similar to a word; an empty string if none is similar.

    Examples
    --------
    >>> suggestion("zsm", ["zms", "ece"]), suggestion("PIT", ["zms", "pit"]), suggestion("banana", ["zms"])
    ("Did you mean 'zms'?", "Did you mean 'pit'?", '')
    """
    near = nearest_word(word, known)
    return f"Did you mean '{near}'?" if near else ""


def with_suggestion(message: str, word: str, known: Iterable[str]) -> str:
    """Return a message, followed by a suggestion for a misspelled word in it if there is one.

    Examples
    --------
    >>> with_suggestion("there is no metric 'zsm'", "zsm", ["zms", "ece"])
    "there is no metric 'zsm'. Did you mean 'zms'?"
    """
    return ". ".join(filter(None, [message, suggestion(word, known)]))
