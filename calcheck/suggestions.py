"""Suggestions for misspelled names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest_word(word: str, known: Iterable[str]) -> str:
    """Return the known word most similar to a word; an empty string if none is similar.

    Upper and lower case count as similar. Of equally similar words, one with the same letters is preferred.
    """
    from difflib import SequenceMatcher, get_close_matches

    by_lower = {each.lower(): each for each in sorted(set(known))}
    lower = word.lower()
    near = get_close_matches(lower, by_lower, n=3)
    likeness = {each: (SequenceMatcher(None, each, lower).ratio(), sorted(each) == sorted(lower)) for each in near}
    return by_lower[max(near, key=lambda each: likeness[each])] if near else ""


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return a question that names the known word most similar to a word; an empty string if none is similar.

    Examples
    --------
    >>> suggestion("zsm", ["zms", "ece"]), suggestion("PIT", ["zms", "pit"]), suggestion("banana", ["zms"])
    ("Did you mean 'zms'?", "Did you mean 'pit'?", '')
    >>> suggestion("sede", ["seed", "side"])
    "Did you mean 'seed'?"
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
