"""The rule language: comparisons of values in a report, combined with ``and``, ``or`` and ``not``.

::

    ece > 0.05
    not 0.85 < coverage < 0.95
    abs(zms.zeta) > 1 or (zms.verdict == fail and input.n >= 1000)
    slices['sex=f'].coverage < 0.85 or slices.min_p < 0.01
    answer == no or effects.size.high > 1.3 or region.factor > 1.5
    on.answer == no or on.size.high > 1.3 or on.beyond.share > 0.1

A name is either a metric, ``ece``, which stands for the metric's value, or the path of a field in the report,
``cce.details.dof``; ``slices['sex=f']`` before it refers to a group of the rows. Names may contain dashes. A word that
is compared with a field of text is a text, with or without quotes. Precedence, chains and parentheses are those of
Python, whose parser reads the structure of a rule. Python never sees names, numbers or
texts, and evaluates nothing.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NoReturn

from calcheck.errors import OptionError

LONGEST, DEEPEST = 1000, 30  # maximum length of a rule in characters, and maximum nesting depth
QUOTED = 40  # maximum characters of a rule that a message quotes from the position of an error
NAME = r"[A-Za-z_][A-Za-z0-9_]*(?:[-.][A-Za-z0-9_]+)*"
TOKEN = re.compile(
    rf"""
    (?P<space>\s+)
    | (?P<number>-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | slices\[(?P<group>'[^']*'|"[^"]*")\]\.(?P<grouped>{NAME})
    | (?P<name>{NAME})
    | (?P<text>'[^']*'|"[^"]*")
    | (?P<comparison><=|>=|==|!=|<|>)
    | (?P<bracket>[()])
    """,
    re.VERBOSE,
)
KEYWORDS = ("and", "or", "not", "abs")
LEAVES = ("number", "name", "grouped", "text")
INPUT, OVERALL, SLICES, MONITOR = "input", "overall", "slices", "monitor"
ANSWER, QUALIFIERS, EFFECTS, REGION, ON = "answer", "qualifiers", "effects", "region", "on"
PARTS = (INPUT, OVERALL, SLICES, MONITOR, ANSWER, QUALIFIERS, EFFECTS, REGION, ON)
"""Prefixes of names that refer to a part of the report instead of a metric."""
ANSWERED = (ANSWER, QUALIFIERS, EFFECTS, REGION, ON)  # Parts that are there if the answer is asked for

LEAF = "expected a finite number, a name such as ece or zms.zeta, 'text', abs(...) or (...)"
OPERAND = (*LEAVES, "abs", "(")
AFTER_OPERAND = ("comparison", "and", "or", ")", "end")
FOLLOWERS = {
    **dict.fromkeys(("start", "(", "and", "or", "not"), (*OPERAND, "not")),
    **dict.fromkeys((*LEAVES, ")"), AFTER_OPERAND),
    "comparison": OPERAND,
    "abs": ("(",),
}  # Kinds of tokens that can follow each kind

WIDTH = 8  # columns per token in the text for Python's parser, so that a column identifies its token

Operator = Literal["<", "<=", ">", ">=", "==", "!="]
OPERATORS: dict[type[ast.cmpop], Operator] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


@dataclass(frozen=True)
class Constant:
    """A literal number or text in a rule."""

    value: float | str


@dataclass(frozen=True)
class Name:
    """The path of a number or text in the report, its position in the rule, and the group of the rows, if not all."""

    path: tuple[str, ...]
    at: int = field(default=0, compare=False)
    group: str = ""

    @property
    def head(self) -> str:
        """The metric, or the part of the report."""
        return self.path[0]

    @property
    def is_verdict(self) -> bool:
        """Whether this is the verdict of a metric, or of a part of the report."""
        return self.path[1:] == ("verdict",)

    def __str__(self) -> str:
        path = ".".join(self.path)
        return f"{SLICES}['{self.group}'].{path}" if self.group else path


@dataclass(frozen=True)
class Abs:
    """``abs(...)``."""

    operand: Operand


@dataclass(frozen=True)
class Comparison:
    """A comparison of two operands."""

    left: Operand
    operator: Operator
    right: Operand


@dataclass(frozen=True)
class Not:
    """``not ...``."""

    condition: Condition


@dataclass(frozen=True)
class BoolOp:
    """Conditions combined with ``and`` or ``or``."""

    word: Literal["and", "or"]
    conditions: tuple[Condition, ...]


Operand = Constant | Name | Abs
Condition = Comparison | Not | BoolOp


@dataclass(frozen=True)
class Rule:
    """A rule: its text, and the condition that violates it."""

    text: str
    condition: Condition

    def names(self) -> tuple[Name, ...]:
        """Return the names in the rule, without duplicates, in order."""
        return tuple(dict.fromkeys(node for node in _nodes(self.condition) if isinstance(node, Name)))

    def metrics(self, *, grouped: bool = False) -> tuple[str, ...]:
        """Return the metrics of all rows in the rule, or those of groups, without duplicates."""
        names = (name for name in self.names() if name.head not in PARTS and bool(name.group) == grouped)
        return tuple(dict.fromkeys(name.head for name in names))

    @property
    def names_groups(self) -> bool:
        """Whether the rule names a group of the rows."""
        return any(name.group for name in self.names())

    def refers_to(self, *parts: str) -> bool:
        """Return whether the rule names one of some parts of the report."""
        return any(name.head in parts for name in self.names())

    @property
    def is_sliced(self) -> bool:
        """Whether the rule refers to groups or regions of the rows."""
        return self.names_groups or self.refers_to(SLICES)

    def reject(self, at: int, problem: str) -> NoReturn:
        """Raise an error about a position in the rule."""
        raise _error(self.text, at, problem)


def parse(text: str) -> Rule:
    """Return the rule in a text.

    >>> [str(name) for name in parse("abs(zms.zeta) > 1 or ece > 0.05").names()]
    ['zms.zeta', 'ece']
    """
    text = text.strip()
    if len(text) > LONGEST:
        raise OptionError(f"a rule has at most {LONGEST:,} characters, got {len(text):,}: {text[:QUOTED]!r}…")
    tokens = list(_tokens(text))
    _require_order(text, tokens)
    source = "".join(token.source.ljust(WIDTH) for token in tokens)
    rule = Rule(text, _Builder(text, tokens).condition(ast.parse(source, mode="eval").body))
    if not rule.names():
        rule.reject(0, "it contains no name from the report, so its outcome is the same for every file")
    return rule


@dataclass(frozen=True)
class _Token:
    """A token of a rule: its kind, its text, and its position."""

    kind: str
    text: str
    at: int

    @property
    def source(self) -> str:
        """The token for Python's parser, which sees a name in place of every name, number and text."""
        return "_" if self.kind in LEAVES else self.text


def _tokens(text: str) -> Iterator[_Token]:
    """Yield the tokens of a rule, and an end token; keywords and parentheses are kinds of their own."""
    at = 0
    while at < len(text):
        found = TOKEN.match(text, at)
        if found is None:
            problem = "unclosed quote" if text[at] in "'\"" else "unexpected character"
            problem += "; a rule consists of < <= > >= == != and or not abs(...) ( ) names, numbers and 'text'"
            raise _error(text, at, "= compares nothing; equality is ==" if text[at] == "=" else problem)
        kind, word = str(found.lastgroup), found.group()
        if kind != "space":
            yield _Token(word if word in KEYWORDS or kind == "bracket" else kind, word, at)
        at = found.end()
    yield _Token("end", "", at)


def _require_order(text: str, tokens: Sequence[_Token]) -> None:
    """Raise unless each token can follow the one before it, and parentheses match and are not too deep."""
    before, opened, denied = "start", 0, 0
    for token in tokens:
        if token.kind not in FOLLOWERS[before] or (token.kind == ")" and not opened):
            expected = "expected ( after abs" if before == "abs" else LEAF
            if FOLLOWERS[before] is AFTER_OPERAND:
                expected = f"expected and, or, a comparison, or {')' if opened else 'the end of the rule'}"
            raise _error(text, token.at, expected)
        opened += (token.kind == "(") - (token.kind == ")")
        denied = denied + 1 if token.kind == "not" else 0
        if opened + denied > DEEPEST:
            raise _error(text, token.at, f"a rule has at most {DEEPEST} nested parentheses and successive nots")
        before = token.kind
    if opened:
        raise _error(text, len(text), "expected )")


@dataclass(frozen=True)
class _Builder:
    """Builds a rule from the few kinds of nodes that Python's syntax tree of a rule can have."""

    text: str
    tokens: Sequence[_Token]

    def condition(self, node: ast.expr) -> Condition:
        match node:
            case ast.BoolOp():
                word: Literal["and", "or"] = "and" if isinstance(node.op, ast.And) else "or"
                return BoolOp(word, tuple(map(self.condition, node.values)))
            case ast.UnaryOp(op=ast.Not()):
                return Not(self.condition(node.operand))
            case ast.Compare():
                return self.comparison(node)
            case _:
                raise self.error(node, "expected a comparison, e.g. ece > 0.05")

    def comparison(self, node: ast.Compare) -> Condition:
        """Return a comparison; a chain ``a < b < c`` means ``a < b and b < c``."""
        operands = [self.operand(each) for each in (node.left, *node.comparators)]
        operators = [OPERATORS[type(each)] for each in node.ops]
        links = tuple(map(Comparison, operands, operators, operands[1:]))
        return links[0] if len(links) == 1 else BoolOp("and", links)

    def operand(self, node: ast.expr) -> Operand:
        match node:
            case ast.Name():
                return self.leaf(self.token(node))
            case ast.Call(args=[argument]):  # abs: tokens in order contain no other call
                return Abs(self.operand(argument))
            case _:
                raise self.error(node, "expected a number, a name or 'text' to compare, not a condition")

    def leaf(self, token: _Token) -> Operand:
        match token.kind:
            case "number" if math.isfinite(number := float(token.text)):
                return Constant(number)
            case "text":
                return Constant(token.text[1:-1])
            case "name":
                return Name(tuple(token.text.split(".")), token.at)
            case "grouped" if found := TOKEN.fullmatch(token.text):
                return Name(tuple(found["grouped"].split(".")), token.at, found["group"][1:-1])
            case _:
                raise _error(self.text, token.at, LEAF)

    def token(self, node: ast.expr) -> _Token:
        """Return the first token of a node."""
        return self.tokens[node.col_offset // WIDTH]

    def error(self, node: ast.expr, problem: str) -> OptionError:
        return _error(self.text, self.token(node).at, problem)


def _error(text: str, at: int, problem: str) -> OptionError:
    """Return an error about a position in a rule."""
    rest = text[at : at + QUOTED] + ("…" if len(text) > at + QUOTED else "")
    where = f"at character {at + 1}, {rest!r}" if rest else "at the end"
    return OptionError(f"rule {text!r}, {where}: {problem}")


def _nodes(node: Operand | Condition) -> Iterator[Operand | Condition]:
    """Yield all parts of a rule, from left to right."""
    yield node
    match node:
        case Abs(operand=inner) | Not(condition=inner):
            yield from _nodes(inner)
        case Comparison():
            yield from _nodes(node.left)
            yield from _nodes(node.right)
        case BoolOp():
            for condition in node.conditions:
                yield from _nodes(condition)
