r"""Comparisons of models as LaTeX tabulars, which need only ``\usepackage{booktabs}``."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from calcheck.render.cells import ABSENT, number
from calcheck.render.comparison_model import Column, columns_of, differences_of, format_p, models_of, notes_of
from calcheck.render.console import strip_control

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from calcheck.report import Report, Result

METRICS_PER_TABLE = 8  # maximum metrics that fit the width of a page
ARROWS = {"smaller": r"$\downarrow$", "larger": r"$\uparrow$", "": ""}
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
}
COMMANDS |= {character: f"\\{character}" for character in "&%$#_{}"}
COMMANDS |= {character: f"{{{character}}}" for character in "[]*'`"}  # otherwise read as options of \\ or as ligatures
DASHES = re.compile("-(?=-)")  # two hyphens would be typeset as a dash
POWER = re.compile(r"e([+-]?)0*(\d+)$")
LETTERS = "ßæøœÆØŒ"
ACCENTS = frozenset(
    "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327"
)  # combining accents that every LaTeX engine supports


def comparison_to_latex(report: Report) -> str:
    """Return a comparison as tabulars: the best value bold, the second best underlined; then the differences."""
    models, columns = models_of(report), columns_of(report)
    lines = [rf"% \usepackage{{booktabs}}; calcheck {report.calcheck}, {report.input.n} rows"]
    for start in range(0, len(columns), METRICS_PER_TABLE):
        lines += [*_values(models, columns[start : start + METRICS_PER_TABLE]), ""]
    lines += _differences(differences_of(report))
    lines += [f"% {strip_control(note)}" for note in notes_of(report)]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    r"""Return text with LaTeX commands, comments, cell separators and letters missing in fonts escaped.

    Examples
    --------
    >>> print(escaped(r"50% of a_b & \input{x}"))
    50\% of a\_b \& \textbackslash{}input\{x\}
    """
    return DASHES.sub("-{}", "".join(map(_letter, strip_control(text))))


def _letter(character: str) -> str:
    if character in COMMANDS:
        return COMMANDS[character]
    parts = unicodedata.normalize("NFD", character)
    accented = parts[0].isascii() and parts[0].isalpha() and parts[1:] and parts[1:] in ACCENTS
    known = character.isascii() or accented
    return character if known or character in LETTERS else rf"\texttt{{U+{ord(character):04X}}}"


def _values(models: Sequence[str], columns: Sequence[Column]) -> Iterator[str]:
    """Yield the lines of a tabular with models as rows and metrics as columns."""
    yield rf"\begin{{tabular}}{{l{'r' * len(columns)}}}"
    yield r"\toprule"
    yield _row(["Model", *(_head(column) for column in columns)])
    yield r"\midrule"
    for place, model in enumerate(models):
        yield _row([escaped(model), *(_marked(column.results[place]) for column in columns)])
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _differences(results: Sequence[Result]) -> Iterator[str]:
    """Yield the lines of a tabular with one difference per row."""
    yield r"\begin{tabular}{llrrr}"
    yield r"\toprule"
    yield _row(["Difference", "Metric", "Value", "Interval", "$p$"])
    yield r"\midrule"
    for result in results:
        models = rf"{escaped(str(result.slice['model']))} $-$ {escaped(str(result.slice['minus']))}"
        limits = ABSENT if result.low is None else f"{{[}}{_number(result.low)}, {_number(result.high)}{{]}}"
        chance = format_p(result)
        told = [_number(result.value), limits.replace(ABSENT, "--"), "--" if chance == ABSENT else _typeset(chance)]
        yield _row([models, escaped(result.metric), *told])
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _row(cells: Sequence[str]) -> str:
    return rf"{' & '.join(cells)} \\"


def _head(column: Column) -> str:
    """Return the column head: the metric, an arrow for the better values, and the unit."""
    better = ARROWS.get(column.better) if column.better in ARROWS else rf"$\rightarrow$ {escaped(column.better)}"
    unit = f"[{column.unit}]" if column.unit else ""
    return " ".join(part for part in (escaped(column.metric), better, _unit(unit)) if part)


def _unit(unit: str) -> str:
    """Return a unit, with y^2 as a superscript."""
    return escaped(unit.replace("^2", "²"))


def _marked(result: Result) -> str:
    """Return a value: the best is bold, the second best underlined."""
    text = _number(result.value)
    match result.details.get("rank"):
        case 1:
            return rf"\textbf{{\boldmath {text}}}" if "$" in text else rf"\textbf{{{text}}}"
        case 2:
            return rf"\underline{{{text}}}"
        case _:
            return text


def _number(value: float | None) -> str:
    return "--" if value is None else _typeset(number(value))


def _typeset(text: str) -> str:
    r"""Return a number in LaTeX, with a minus sign and powers of ten.

    Examples
    --------
    >>> print(_typeset("-1.2e-05"), _typeset("0.5"))
    $-1.2 \times 10^{-5}$ 0.5
    """
    power = POWER.search(text)
    if power is None:
        return f"${text}$" if text.startswith("-") else text
    sign = power[1].replace("+", "")
    return rf"${text[: power.start()]} \times 10^{{{sign}{power[2]}}}$"
