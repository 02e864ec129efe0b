"""Conditions on the values of a column, as in `age>60` or `sex=f`: how they are written."""

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from calcheck.errors import OptionError

Comparison = Callable[[Any, Any], bool]

OPERATOR = re.compile(r"<=|>=|!=|[=<>]")
EQUAL, DIFFERENT = "=", "!="
ORDER: dict[str, Comparison] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass(frozen=True)
class Condition:
    """Condition that a value equals another one, differs from it, or lies on one side of it."""

    is_option: ClassVar[bool] = True  # Whether ``--filter`` can state the condition
    column: str
    operator: str
    value: str  # The value, as text; empty for `=` and `!=` stands for a missing value

    @classmethod
    def parse(cls, text: str, columns: Sequence[str] = ()) -> "Condition":
        """Return the condition that a text states: its operator is the first one after the name of a column."""
        found = [cls(text[: match.start()], match[0], text[match.end() :]) for match in OPERATOR.finditer(text)]
        found = [each for each in found if each.column.strip()]
        if not found:
            raise OptionError(f"--filter must be COLUMN=VALUE, or have one of != < <= > >= instead of =, got {text!r}")
        exact = (each for each in found if each.column in columns)
        stripped = (cls(each.column.strip(), each.operator, each.value.strip()) for each in found)
        return next(exact, next((each for each in stripped if each.column in columns), found[0]))

    def opposite(self) -> "Condition":
        """Return the condition of the other rows, for one with ``=`` or ``!=``."""
        return replace(self, operator={EQUAL: DIFFERENT, DIFFERENT: EQUAL}[self.operator])

    def __str__(self) -> str:
        """Return the condition as it is written."""
        return f"{self.column}{self.operator}{self.value}"

    def holds_for(self, text: str | None) -> bool:
        """Return whether a value given as text, or a missing one, meets the condition, as numbers if both are."""
        if self.operator in (EQUAL, DIFFERENT):
            return ((text or "") == self.value) == (self.operator == EQUAL)
        if not text:
            return False
        try:
            return ORDER[self.operator](float(text), float(self.value))
        except ValueError:
            return ORDER[self.operator](text, self.value)
