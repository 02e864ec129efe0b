"""The rule language: comparisons of values in a report, combined with ``and``, ``or`` and ``not``.

::

    rule       = either
    either     = both {"or" both}
    both       = denied {"and" denied}
    denied     = "not" denied | comparison
    comparison = operand [("<" | "<=" | ">" | ">=" | "==" | "!=") operand]
    operand    = number | 'text' | name | "abs" "(" either ")" | "(" either ")"

A name is either a metric, ``ece``, which stands for the metric's value, or the path of a field in the report,
``cce.details.dof``. Names may contain dashes.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NoReturn, cast

from calcheck.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONGEST, DEEPEST = 1000, 30  # maximum length of a rule in characters, and maximum nesting depth
QUOTED = 40  # maximum characters of a rule that a message quotes from the position of an error
TOKEN = re.compile(
    r"""
    (?P<space>\s+)
    | (?P<number>-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*(?:[-.][A-Za-z0-9_]+)*)
    | (?P<text>'[^']*'|"[^"]*")
    | (?P<comparison><=|>=|==|!=|<|>)
    | (?P<bracket>[()])
    """,
    re.VERBOSE,
)
KEYWORDS = ("and", "or", "not", "abs")
INPUT = "input"  # prefix of names that refer to the input instead of a metric
OPERAND = "expected a finite number, a name such as ece or zms.zeta, 'text', abs(...) or (...)"

Operator = Literal["<", "<=", ">", ">=", "==", "!="]


@dataclass(frozen=True)
class Constant:
    """A literal number or text in a rule."""

    value: float | str


@dataclass(frozen=True)
class Name:
    """The path of a number or text in the report, and its position in the rule."""

    path: tuple[str, ...]
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return ".".join(self.path)


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

    def metrics(self) -> tuple[str, ...]:
        """Return the metrics in the rule, without duplicates."""
        return tuple(dict.fromkeys(name.path[0] for name in self.names() if name.path[0] != INPUT))

    def comparisons(self) -> tuple[Comparison, ...]:
        """Return the comparisons in the rule."""
        return tuple(node for node in _nodes(self.condition) if isinstance(node, Comparison))

    def reject(self, at: int, problem: str) -> NoReturn:
        """Raise an error about a position in the rule.

        Raises
        ------
        OptionError
            Always; the message quotes the rule from that position.
        """
        _reject(self.text, at, problem)


def parse(text: str) -> Rule:
    """Return the rule in a text.

    Raises
    ------
    OptionError
        The text is not a valid rule; the message states the position of the error and what was expected there.

    Examples
    --------
    >>> [str(name) for name in parse("abs(zms.zeta) > 1 or ece > 0.05").names()]
    ['zms.zeta', 'ece']
    """
    text = text.strip()
    if len(text) > LONGEST:
        msg = f"a rule has at most {LONGEST:,} characters, got {len(text):,}: {text[:QUOTED]!r}…"
        raise OptionError(msg)
    rule = Rule(text, _Parser(text).rule())
    if not rule.names():
        rule.reject(0, "it contains no name from the report, so its outcome is the same for every file")
    return rule


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int


class _Parser:
    """A recursive descent parser with one method per line of the grammar."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._place = 0
        self._depth = 0

    def rule(self) -> Condition:
        read = self._condition(self._either)
        if self._next.kind == "comparison":
            self._reject("comparisons cannot be chained: combine two with and, e.g. 0.8 < coverage and coverage < 0.9")
        if self._next.kind != "end":
            self._reject("expected and, or, a comparison, or the end of the rule")
        return read

    def _either(self) -> Operand | Condition:
        return self._joined("or", self._both)

    def _both(self) -> Operand | Condition:
        return self._joined("and", self._denied)

    def _denied(self) -> Operand | Condition:
        if self._take("not"):
            return Not(self._condition(lambda: self._nested(self._denied)))
        return self._comparison()

    def _comparison(self) -> Operand | Condition:
        start = self._next
        left = self._operand()
        operator = self._next
        if operator.kind != "comparison":
            return left
        self._place += 1
        return Comparison(self._compared(left, start), cast("Operator", operator.text), self._value(self._operand))

    def _operand(self) -> Operand | Condition:
        token = self._next
        if self._take("abs"):
            if self._next.text != "(":
                self._reject("expected ( after abs")
            return Abs(self._value(self._operand))
        if self._take("("):
            read = self._nested(self._either)
            if not self._take(")"):
                self._reject("expected )")
            return read
        match token.kind:
            case "number" if math.isfinite(number := float(token.text)):
                read = Constant(number)
            case "text":
                read = Constant(token.text[1:-1])
            case "word" if token.text not in KEYWORDS:
                read = Name(tuple(token.text.split(".")), token.at)
            case _:
                self._reject(OPERAND)
        self._place += 1
        return read

    def _joined(self, word: Literal["and", "or"], part: Callable[[], Operand | Condition]) -> Operand | Condition:
        """Parse parts separated by a word; a single part is returned unchanged."""
        start = self._next
        first = part()
        if self._next.text != word:
            return first
        conditions = [self._judged(first, start)]
        while self._take(word):
            conditions.append(self._condition(part))
        return BoolOp(word, tuple(conditions))

    def _nested(self, part: Callable[[], Operand | Condition]) -> Operand | Condition:
        """Parse a part inside parentheses or after ``not``."""
        self._depth += 1
        if self._depth > DEEPEST:
            self._reject(f"a rule has at most {DEEPEST} nested parentheses")
        read = part()
        self._depth -= 1
        return read

    def _condition(self, part: Callable[[], Operand | Condition]) -> Condition:
        """Parse a condition."""
        start = self._next
        return self._judged(part(), start)

    def _value(self, part: Callable[[], Operand | Condition]) -> Operand:
        """Parse an operand."""
        start = self._next
        return self._compared(part(), start)

    def _judged(self, read: Operand | Condition, start: _Token) -> Condition:
        if isinstance(read, Operand):
            self._reject("expected a comparison, e.g. ece > 0.05", start)
        return read

    def _compared(self, read: Operand | Condition, start: _Token) -> Operand:
        if isinstance(read, Condition):
            self._reject("expected a number, a name or 'text' to compare, not a condition", start)
        return read

    @property
    def _next(self) -> _Token:
        return self._tokens[self._place]

    def _take(self, text: str) -> bool:
        """Skip the next token if it has this text, and return whether it has."""
        taken = self._next.text == text
        self._place += taken
        return taken

    def _reject(self, problem: str, token: _Token | None = None) -> NoReturn:
        _reject(self._text, (token or self._next).at, problem)


def _tokens(text: str) -> Iterator[_Token]:
    """Yield the tokens of a rule, and an end token."""
    at = 0
    while at < len(text):
        found = TOKEN.match(text, at)
        if found is None:
            problem = "unclosed quote" if text[at] in "'\"" else "unexpected character"
            allowed = "< <= > >= == != and or not abs(...) ( ) names, numbers and 'text'"
            _reject(text, at, f"{problem}; a rule consists of {allowed}")
        if found.lastgroup != "space":
            yield _Token(str(found.lastgroup), found.group(), at)
        at = found.end()
    yield _Token("end", "", at)


def _reject(text: str, at: int, problem: str) -> NoReturn:
    """Raise an error about a position in a rule."""
    rest = text[at : at + QUOTED] + ("…" if len(text) > at + QUOTED else "")
    where = f"at character {at + 1}, {rest!r}" if rest else "at the end"
    msg = f"rule {text!r}, {where}: {problem}"
    raise OptionError(msg)


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
