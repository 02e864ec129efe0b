"""Text that is safe in a terminal, in a CSV cell and in HTML."""

import re

DOCTYPE = "<!doctype html"
ELEMENT = '<script type="application/json" data-kind="{kind}">{content}</script>'
END = "</script>"


def strip_control(text: str) -> str:
    r"""Return text with control characters escaped, so that names from a file cannot control the terminal.

    >>> print(strip_control("a\x1b[2Jb"))
    a\x1b[2Jb
    """
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


COMPUTED = r"\A('*[=+\-@\t\r\n])"
"""Start of a text that a spreadsheet evaluates, or that looks protected; a regular expression valid in Arrow too."""
PROTECTED = r"\A'('*[=+\-@\t\r\n])"  # Start of a protected text; a regular expression


def protect(text: str) -> str:
    """Return a text as a cell that spreadsheets do not evaluate, with a leading apostrophe if needed.

    >>> print(protect("=cmd|A1"), protect("'=cmd|A1"), protect("a = b"))
    '=cmd|A1 ''=cmd|A1 a = b
    """
    return re.sub(COMPUTED, r"'\1", text)


def embed(kind: str, content: str) -> str:
    r"""Return JSON as an element of a page.

    >>> print(embed("example", '["</script>"]'))
    <script type="application/json" data-kind="example">["\u003c/script>"]</script>
    """
    return ELEMENT.format(kind=kind, content=content.replace("<", "\\u003c"))


def extract(page: str, kind: str) -> list[str]:
    """Return the JSON of each element of a kind.

    >>> extract(embed("one", "[1]") + embed("two", "[2]") + embed("one", "[3]"), "one")
    ['[1]', '[3]']
    """
    start = re.escape(ELEMENT.split("{content}", maxsplit=1)[0].format(kind=kind))
    return [part.split(END, 1)[0] for part in re.split(start, page)[1:]]


def is_page(text: str) -> bool:
    """Return whether a text is an HTML page."""
    return text[: len(DOCTYPE)].lower() == DOCTYPE
