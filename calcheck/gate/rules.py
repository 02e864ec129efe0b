"""The language of rules: comparisons of a report's numbers and words, joined by ``and``, ``or`` and ``not``.

::

    rule       = either
    either     = both {"or" both}
    both       = denied {"and" denied}
    denied     = "not" denied | comparison
    comparison = operand [("<" | "<=" | ">" | ">=" | "==" | "!=") operand]
    operand    = number | 'text' | name | "abs" "(" either ")" | "(" either ")"

A name is a metric's, ``ece``, which means its value, or the path to a field of the report, ``cce.details.dof``; a dash
inside a name belongs to it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NoReturn, cast

from calcheck.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONGEST, DEEPEST = 1000, 30  # letters and brackets of a rule: more is no rule that a person wrote
QUOTED = 40  # letters of a rule that a message repeats from where it stopped making sense
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
INPUT = "input"  # begins names of what was read, not of a metric
OPERAND = "expected a finite number, a name such as ece or zms.zeta, 'text', abs(...) or (...)"

Operator = Literal["<", "<=", ">", ">=", "==", "!="]


@dataclass(frozen=True)
class Constant:
    """A number or a text that stands in the rule."""

    value: float | str


@dataclass(frozen=True)
class Name:
    """The path to a number or a text of the report, and where in the rule it stands."""

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
    """Two operands and what is said of them."""

    left: Operand
    operator: Operator
    right: Operand


@dataclass(frozen=True)
class Not:
    """``not ...``."""

    condition: Condition


@dataclass(frozen=True)
class BoolOp:
    """Conditions of which all must hold (``and``), or any (``or``)."""

    word: Literal["and", "or"]
    conditions: tuple[Condition, ...]


Operand = Constant | Name | Abs
Condition = Comparison | Not | BoolOp


@dataclass(frozen=True)
class Rule:
    """A rule: its text, and the condition under which it is violated."""

    text: str
    condition: Condition

    def names(self) -> tuple[Name, ...]:
        """List the names in the rule, each once, in their order."""
        return tuple(dict.fromkeys(node for node in _nodes(self.condition) if isinstance(node, Name)))

    def metrics(self) -> tuple[str, ...]:
        """List the metrics that the rule is of, each once."""
        return tuple(dict.fromkeys(name.path[0] for name in self.names() if name.path[0] != INPUT))

    def comparisons(self) -> tuple[Comparison, ...]:
        """List the comparisons in the rule."""
        return tuple(node for node in _nodes(self.condition) if isinstance(node, Comparison))

    def reject(self, at: int, problem: str) -> NoReturn:
        """Refuse the rule for what stands at a place in it.

        Raises
        ------
        OptionError
            Always; the message repeats the rule from there on.
        """
        _reject(self.text, at, problem)


def parse(text: str) -> Rule:
    """Read a rule.

    Raises
    ------
    OptionError
        It is none; the message says where it stops making sense, and what could stand there.

    Examples
    --------
    >>> [str(name) for name in parse("abs(zms.zeta) > 1 or ece > 0.05").names()]
    ['zms.zeta', 'ece']
    """
    text = text.strip()
    if len(text) > LONGEST:
        msg = f"a rule has at most {LONGEST:,} letters, got {len(text):,}: {text[:QUOTED]!r}…"
        raise OptionError(msg)
    rule = Rule(text, _Parser(text).rule())
    if not rule.names():
        rule.reject(0, "it names nothing of the report, so it says the same of every file")
    return rule


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int


class _Parser:
    """A recursive descent through the grammar, one method a line of it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._place = 0
        self._depth = 0

    def rule(self) -> Condition:
        read = self._condition(self._either)
        if self._next.kind == "comparison":
            self._reject("comparisons do not chain: join two, as in 0.8 < coverage and coverage < 0.9")
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
        """Read parts with a word between them; a single part is itself."""
        start = self._next
        first = part()
        if self._next.text != word:
            return first
        conditions = [self._judged(first, start)]
        while self._take(word):
            conditions.append(self._condition(part))
        return BoolOp(word, tuple(conditions))

    def _nested(self, part: Callable[[], Operand | Condition]) -> Operand | Condition:
        """Read what is inside brackets, or denied."""
        self._depth += 1
        if self._depth > DEEPEST:
            self._reject(f"a rule is at most {DEEPEST} brackets deep")
        read = part()
        self._depth -= 1
        return read

    def _condition(self, part: Callable[[], Operand | Condition]) -> Condition:
        """Read what holds or does not."""
        start = self._next
        return self._judged(part(), start)

    def _value(self, part: Callable[[], Operand | Condition]) -> Operand:
        """Read what can be compared."""
        start = self._next
        return self._compared(part(), start)

    def _judged(self, read: Operand | Condition, start: _Token) -> Condition:
        if isinstance(read, Operand):
            self._reject("expected a comparison, as in ece > 0.05", start)
        return read

    def _compared(self, read: Operand | Condition, start: _Token) -> Operand:
        if isinstance(read, Condition):
            self._reject("expected a number, a name or 'text' to compare, not a condition", start)
        return read

    @property
    def _next(self) -> _Token:
        return self._tokens[self._place]

    def _take(self, text: str) -> bool:
        """Step over a word or bracket if it comes next."""
        taken = self._next.text == text
        self._place += taken
        return taken

    def _reject(self, problem: str, token: _Token | None = None) -> NoReturn:
        _reject(self._text, (token or self._next).at, problem)


def _tokens(text: str) -> Iterator[_Token]:
    """Cut a rule into words, with a mark at its end."""
    at = 0
    while at < len(text):
        found = TOKEN.match(text, at)
        if found is None:
            quote = "a quote that is not closed" if text[at] in "'\"" else "nothing that a rule is made of"
            _reject(text, at, f"{quote}; rules take < <= > >= == != and or not abs(...) ( ) names, numbers and 'text'")
        if found.lastgroup != "space":
            yield _Token(str(found.lastgroup), found.group(), at)
        at = found.end()
    yield _Token("end", "", at)


def _reject(text: str, at: int, problem: str) -> NoReturn:
    """Refuse a rule for what stands at a place in it."""
    rest = text[at : at + QUOTED] + ("…" if len(text) > at + QUOTED else "")
    where = f"at its character {at + 1}, {rest!r}" if rest else "at its end"
    msg = f"rule {text!r}, {where}: {problem}"
    raise OptionError(msg)


def _nodes(node: Operand | Condition) -> Iterator[Operand | Condition]:
    """Walk through all parts of a rule, from left to right."""
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
