"""Messages of reports: warnings and notes with a stable code and a text."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

Code = Literal[
    # why a number is absent
    "no-value",
    "infinite-value",
    "no-interval",
    "no-verdict",
    "no-p-value",
    "no-difference",
    "no-reference",
    "undecided",
    # what a verdict and a p-value are based on
    "verdict-basis",
    "exchangeability-assumed",
    "permutations-approximate",
    "permutations-partial",
    # intervals
    "interval-shows-spread",
    "few-rows",
    "few-resamples",
    "few-effective-rows",
    "heavy-tail",
    # rows that depend on each other
    "dependence",
    "dependent-rows",
    "ordered-rows",
    "few-clusters",
    # bins
    "few-rows-per-bin",
    "tied-bins",
    # kernels
    "approximation",
    "low-dof",
    "narrow-kernel",
    "feature-residual",
    "low-rank-error",
    "rounding",
    "targets-moved",
    "inputs-moved",
    # data and distributions
    "layout",
    "clipped-std",
    "sorted-quantiles",
    "targets-joined-by-row",
    "unknown-shape",
    "no-negative-error",
    "interpolated-distributions",
    "unpaired-levels",
    "coverage-outcome",
    "grouped-rows",
    "impossible-targets",
    "weighted",
    "biased-estimator",
    # studies
    "different-inputs",
    "values-compared",
    "in-hindsight",
    "criterion-missing",
    "outside-interval",
    "not-computed",
    "tied-uncertainties",
    "matched-without-targets",
    "ranking-changes",
    "streamed",
    "outside-range",
    "sampled-rows",
]
"""Codes of messages. Their texts may change between versions; the codes do not."""


@dataclass(frozen=True)
class Message:
    """A warning or a note.

    Parameters
    ----------
    code : str
        What the message is about, for programs.
    text : str
        The message, for readers.
    """

    code: Code
    text: str

    @classmethod
    def of_absence(cls, code: Literal["no-value", "no-interval", "no-verdict"], reason: str) -> Message:
        """Return the message that something is absent, with the reason."""
        return cls(code, f"{_words(code)}: {reason}")

    @property
    def reason(self) -> str:
        """The text without what the code says already."""
        return self.text.removeprefix(f"{_words(self.code)}: ")

    def prefixed(self, prefix: str) -> Message:
        """Return the message with a text in front."""
        return replace(self, text=prefix + self.text)


def _words(code: Code) -> str:
    return code.replace("-", " ")


INFINITE = Message("infinite-value", "the value is infinite, and null in JSON")


def absent_value(value: float) -> Message:
    """Return the message about a value that is not finite."""
    return INFINITE if value == math.inf else Message.of_absence("no-value", f"it is {value}")


AT_QUANTILES = Message(
    "verdict-basis",
    "some targets are equal to quantiles or limits of intervals, as for counts: they count on the side that favors the"
    " model, and the verdict is conservative",
)
