"""What calcheck found, as plain data: renderers and gates see these and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

SCHEMA_VERSION = 2

Verdict = Literal["pass", "fail", "undecided", "none"]
Level = Literal["fail", "warn"]
FileRole = Literal["predictions", "sample", "embedding", "truth", "evaluation_points"]

ADDED: dict[str, bool] = {"added": True}
"""Marks fields that reports stored by earlier versions of calcheck do not have."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """One metric's value with all that is known of it.

    An absent number is None, and ``warnings`` says why.

    Parameters
    ----------
    metric : str
        Its name in ``calcheck metrics``.
    summary : str
        What it says, and how to read it, in a sentence or two.
    options : dict
        The metric's options as given; they rebuild the same metric.
    slice : dict
        Which rows it is of, where it is not all: ``{"removed": "3 %", "rows": 1145}``.
    unit : str
        Unit of the value: ``"1"``, ``"y"``, ``"y^2"`` …
    value : float or None
        The number.
    low, high : float or None
        The interval's limits, in the unit of the value.
    interval : str or None
        How the interval was made.
    reference, reference_low, reference_high : float or None
        What a perfect model scores on the same data, and its limits.
    reference_kind : str or None
        Where the reference comes from.
    zeta, zeta_mc_error : float or None
        The value's distance from its reference in units of the interval, and its Monte Carlo error.
    p_value, p_value_mc_error : float or None
        How likely a perfect model scores as far out, and the Monte Carlo error of that.
    verdict : str
        ``"pass"``, ``"fail"``, ``"undecided"`` or ``"none"``.
    details : dict
        What was chosen and measured on the way: numbers, strings, lists and dicts.
    warnings : tuple of str
        What a reader should know before trusting the value.
    """

    metric: str
    summary: str
    options: dict[str, Any]
    slice: dict[str, Any] = field(default_factory=dict)
    unit: str
    value: float | None
    low: float | None = None
    high: float | None = None
    interval: str | None = None
    reference: float | None = None
    reference_low: float | None = None
    reference_high: float | None = None
    reference_kind: str | None = None
    zeta: float | None = None
    zeta_mc_error: float | None = None
    p_value: float | None = None
    p_value_mc_error: float | None = field(default=None, metadata=ADDED)
    verdict: Verdict = "none"
    details: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class InputFile:
    """A file that was read, and for what.

    Parameters
    ----------
    role : str
        What it was read for.
    path : str
        Its path as given; a folder or a pattern for many files that are one.
    sha256 : str
        The fingerprint of its bytes; of the fingerprints of many files, a line each, in their order.
    rows : int
        How many were read of it.
    files : int
        How many files it is.
    """

    role: FileRole
    path: str
    sha256: str
    rows: int
    files: int = field(default=1, metadata=ADDED)


@dataclass(frozen=True, kw_only=True)
class Input:
    """What was read: the files, the rows that count, and the roles of the columns.

    Parameters
    ----------
    files : tuple of InputFile
        Every file that was read, the predictions first.
    n : int
        Rows that the metrics used.
    dropped : int
        Rows of all files left out by ``--nan-policy omit``.
    predictive : str or None
        The family of the predictive distributions.
    columns : dict
        The column behind each role.
    options : tuple of str
        The options that say explicitly how the predictions were read.
    layout : str or None
        How the file is laid out, by the tools that write such files, and what it holds; None if a row is a unit, and
        columns have no tool's names.
    """

    files: tuple[InputFile, ...]
    n: int
    dropped: int
    predictive: str | None
    columns: dict[str, str]
    options: tuple[str, ...] = ()
    layout: str | None = None


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """A metric that could not be computed, and why."""

    metric: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Gate:
    """A rule that the results were held against: what must not be.

    Parameters
    ----------
    rule : str
        The rule, as given.
    level : str
        What a violation is: ``"fail"``, or ``"warn"`` where it is shown only.
    passed : bool
        Whether the rule is kept; one that needs a number that is absent never is.
    message : str
        What was found, in words.
    values : dict
        What was found for each name in the rule; an absent number is None.
    """

    rule: str
    level: Level
    passed: bool
    message: str
    values: dict[str, float | str | None]

    @property
    def missing(self) -> tuple[str, ...]:
        """The names whose numbers are absent."""
        return tuple(name for name, value in self.values.items() if value is None)


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything that one run found."""

    schema_version: int = SCHEMA_VERSION
    calcheck: str
    input: Input
    settings: dict[str, Any]
    results: tuple[Result, ...]
    skipped: tuple[Skipped, ...] = ()
    gates: tuple[Gate, ...] = ()

    def violated(self, level: Level) -> tuple[Gate, ...]:
        """List the gates of a level that are violated."""
        return tuple(gate for gate in self.gates if gate.level == level and not gate.passed)
