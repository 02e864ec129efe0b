"""Text that is safe in a terminal, in a CSV cell and in HTML; numbers as text."""

import math
import re
import sys

DOCTYPE = "<!doctype html"
ELEMENT = '<script type="application/json" data-kind="{kind}">{content}</script>'
END = "</script>"
DIGITS = 17  # Digits that state any number exactly
SMALLEST, LARGEST = map(math.log, (sys.float_info.min, sys.float_info.max))


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


def exponential(logarithm: float) -> str:
    """Return the number with a natural logarithm, with three significant digits, also if it is too large for a float.

    The largest float, and numbers above it, stand for the logarithm of infinity.

    >>> exponential(0.0), exponential(1000.0), exponential(-1000.0), exponential(sys.float_info.max)
    ('1', '1.97e+434', '5.08e-435', '∞')
    """
    if logarithm >= sys.float_info.max:
        return "∞"
    if SMALLEST <= logarithm <= LARGEST or not math.isfinite(logarithm):
        return f"{math.exp(logarithm):.3g}"
    power, rest = divmod(logarithm / math.log(10), 1)
    mantissa, _, carried = f"{10**rest:.2e}".partition("e")
    return f"{float(mantissa):g}e{int(power) + int(carried):+d}"


def format_p(p: float) -> str:
    """Return a p-value as tables show it; 199 replicates, the default, do not resolve smaller ones than 0.01.

    >>> format_p(0.0421), format_p(0.005)
    ('0.042', '< 0.01')
    """
    return "< 0.01" if p < 0.01 else f"{p:.2g}"  # noqa: PLR2004 - see above


def p_text(p: float) -> str:
    """Return a p-value for a sentence."""
    return f"p {format_p(p)}"


def percent(share: float, digits: int = 0) -> str:
    """Return a share in percent, without trailing zeros.

    >>> percent(0.9), percent(0.8925, 1), percent(0.995)
    ('90 %', '89.2 %', '99.5 %')
    """
    shown = round(100 * share, digits) if digits else 100 * share
    return f"{shown:.4g} %"


def count_of(count: int, one: str, many: str = "") -> str:
    """Return a count with what it counts, in the singular for 1.

    >>> count_of(1, "row"), count_of(1200, "row"), count_of(1, "row is", "rows are")
    ('1 row', '1,200 rows', '1 row is')
    """
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def shortest_number(low: float, high: float) -> str:
    """Return the shortest text of a number in [low, high)."""
    middle = low + (high - low) / 2
    shortest = (float(f"{value:.{digits}g}") for digits in range(1, DIGITS + 1) for value in (low, middle))
    edge = next((each for each in shortest if low <= each < high), float(low))
    return str(int(edge)) if edge.is_integer() and abs(edge) < 2.0**53 else repr(edge)
