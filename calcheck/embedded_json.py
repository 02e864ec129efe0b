"""JSON in HTML pages: written so that no text ends the element, and read again."""

from __future__ import annotations

import re

DOCTYPE = "<!doctype html"
ELEMENT = '<script type="application/json" data-kind="{kind}">{content}</script>'
END = "</script>"


def embed(kind: str, content: str) -> str:
    r"""Return JSON as an element of a page.

    Parameters
    ----------
    kind : str
        What the data are: one word.
    content : str
        JSON in ASCII.

    Examples
    --------
    >>> print(embed("example", '["</script>"]'))
    <script type="application/json" data-kind="example">["\u003c/script>"]</script>
    """
    return ELEMENT.format(kind=kind, content=content.replace("<", "\\u003c"))


def extract(page: str, kind: str) -> list[str]:
    """Return the JSON of each element of a kind.

    Examples
    --------
    >>> extract(embed("one", "[1]") + embed("two", "[2]") + embed("one", "[3]"), "one")
    ['[1]', '[3]']
    """
    start = re.escape(ELEMENT.split("{content}", maxsplit=1)[0].format(kind=kind))
    return [part.split(END, 1)[0] for part in re.split(start, page)[1:]]


def is_page(text: str) -> bool:
    """Return whether a text is an HTML page."""
    return text[: len(DOCTYPE)].lower() == DOCTYPE
