r"""Documents in LaTeX: tables as tabulars, which need only ``\usepackage{booktabs}``, and all else as comments."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import accumulate

from calcheck.core.text import strip_control
from calcheck.render import document as blocks

COLUMNS = 8  # maximum columns of numbers that fit the width of a page
MARKS = {"best": "bold", "second": "underlined"}
BOLD = r"\boldmath "
ALIGNED = {"left": "l", "right": "r"}
COMMANDS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "–": "--",
    "−": "$-$",
    "²": r"\textsuperscript{2}",
    "±": r"$\pm$",
    "↓": r"$\downarrow$",
    "↑": r"$\uparrow$",
    "→": r"$\rightarrow$",
    "ζ": r"$\zeta$",
}
COMMANDS |= {character: f"\\{character}" for character in "&%$#_{}"}
COMMANDS |= {character: f"{{{character}}}" for character in "[]*'`"}  # otherwise read as options of \\ or as ligatures
DASHES = re.compile("-(?=-)")  # two hyphens would be typeset as a dash
NUMBER = re.compile(r"(?<![\w.])(-?\d+(?:[.,]\d+)*)(?:e([+-]?)0*(\d+))?(?![\w.])")
LETTERS = "ßæøœÆØŒ"
ACCENTS = frozenset(
    "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327"
)  # combining accents that every LaTeX engine supports


def render(document: blocks.Document) -> str:
    """Return a document in LaTeX: best values are bold, second best values underlined."""
    first = rf"\usepackage{{booktabs}}; calcheck {document.calcheck}"
    head = _comments([first, *([document.title] if document.title else [])])
    return "\n".join([*head, *(line for block in document.blocks for line in _lines(block))]) + "\n"


def escape(text: str) -> str:
    r"""Return text with LaTeX commands, comments, cell separators and letters missing in fonts escaped.

    >>> print(escape(r"50% of a_b & \input{x}"))
    50\% of a\_b \& \textbackslash{}input\{x\}
    """
    return "-{}".join("".join(map(_letter, part)) for part in DASHES.split(strip_control(text)))


def _letter(character: str) -> str:
    if character in COMMANDS:
        return COMMANDS[character]
    parts = unicodedata.normalize("NFD", character)
    accented = parts[0].isascii() and parts[0].isalpha() and parts[1:] and parts[1:] in ACCENTS
    known = character.isascii() or accented
    return character if known or character in LETTERS else rf"\texttt{{U+{ord(character):04X}}}"


def _lines(block: blocks.Block) -> Iterator[str]:
    match block:
        case blocks.Source():
            yield from _comments([f"{', '.join(block.files)}: {block.text}"])
        case blocks.Answer():
            yield from _comments([f"{block.question} {block.answer.full_text}"])
            yield from _comments(f"{topic}: {cell.full_text}" for topic, cell in block.effects)
        case blocks.Paragraph():
            yield from _comments([block.text])
        case blocks.Details():
            yield from _comments(f"{name}: {text}" for name, text in block.items)
        case blocks.Table():
            for table in _parts(block):
                yield from ("", *_tabular(table))
        case blocks.Marks():
            yield from _comments(f"{MARKS[mark]}: {meaning}" for mark, meaning in block.meanings)
        case blocks.Legend() | blocks.Notes():
            yield from _comments(block.lines)


def _comments(lines: Iterable[str]) -> Iterator[str]:
    return (f"% {strip_control(line)}" for line in lines)


def _parts(table: blocks.Table) -> Iterator[blocks.Table]:
    """Yield the tables that show a table on pages; key columns are repeated."""
    last = len(table.columns)
    if table.overflow != "split":
        yield table
        return
    for start in range(table.keys, last, COLUMNS):
        yield blocks.select_columns(table, [*range(table.keys), *range(start, min(start + COLUMNS, last))])


def _tabular(table: blocks.Table) -> Iterator[str]:
    """Yield the lines of a tabular."""
    yield rf"\begin{{tabular}}{{{''.join(ALIGNED[column.align] for column in table.columns)}}}"
    if table.title:
        yield rf"\multicolumn{{{len(table.columns)}}}{{l}}{{{escape(table.title)}}} \\"
    yield r"\toprule"
    yield from _groups(table)
    yield _row(map(_head, table.columns))
    yield r"\midrule"
    for row in blocks.shown_rows(table):
        yield _row(map(_cell, row, table.columns))
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _groups(table: blocks.Table) -> Iterator[str]:
    """Yield the heads above columns that belong together, and the rules below them."""
    if not (groups := blocks.column_groups(table)):
        return
    yield _row(rf"\multicolumn{{{count}}}{{c}}{{{escape(name)}}}" for name, count in groups)
    ends = list(accumulate(count for _, count in groups))
    rules = zip(groups, ends, strict=True)
    yield " ".join(rf"\cmidrule(lr){{{end - count + 1}-{end}}}" for (name, count), end in rules if name)


def _row(cells: Iterable[str]) -> str:
    return rf"{' & '.join(cells)} \\"


def _head(column: blocks.Column) -> str:
    """Return the head of a column: its name, an arrow for the better values, and its unit."""
    unit = f"[{column.unit}]".replace("^2", "²") if column.unit else ""
    name = "$p$" if column.name == "p" else escape(column.name)
    return " ".join(part for part in (name, escape(column.better), escape(unit)) if part)


def _cell(cell: blocks.Cell, column: blocks.Column) -> str:
    """Return a cell; numbers in columns of numbers are typeset."""
    typeset = _typeset if column.align == "right" else escape
    text, after = typeset(cell.text), typeset(cell.after)
    match cell.emphasis:
        case "best":
            return rf"\textbf{{{BOLD if '$' in text else ''}{text}}}{after}"
        case "second":
            return rf"\underline{{{text}}}{after}"
        case _:
            return text + after


def _typeset(text: str) -> str:
    r"""Return text with its numbers typeset: with a minus sign and powers of ten.

    >>> print(_typeset("-1.2e-05"), _typeset("0.5"), _typeset("[-1, 2]"))
    $-1.2 \times 10^{-5}$ 0.5 {[}$-1$, 2{]}
    """
    parts, end = [], 0
    for found in NUMBER.finditer(text):
        parts += [escape(text[end : found.start()]), _number(*found.groups(default=""))]
        end = found.end()
    return "".join([*parts, escape(text[end:])])


def _number(digits: str, sign: str, power: str) -> str:
    if power:
        return rf"${digits} \times 10^{{{sign.replace('+', '')}{power}}}$"
    return f"${digits}$" if digits.startswith("-") else digits
