"""What is wrong with the predictions of a group or a region, in words."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from math import sqrt
from typing import TYPE_CHECKING

from calcheck.regions.binning import COMPUTED

if TYPE_CHECKING:
    from calcheck.core.conditions import Condition
    from calcheck.report import Result

DIRECTIONS = {"too-narrow": "overconfident", "too-wide": "underconfident"}


def describe_faults(results: Mapping[str, Result]) -> str:
    """Return what is wrong in a group, given its results by metric; empty if no verdict is a failure.

    Examples
    --------
    ``overconfident: uncertainties should be 1.5 times as large; 90 % intervals hold 71 %``
    """
    failed = {name: result for name, result in results.items() if result.verdict == "fail"}
    if not failed:
        return ""
    directions = [DIRECTIONS[str(each.direction)] for each in failed.values() if each.direction in DIRECTIONS]
    words = [f"{directions[0]}{_factor(results, directions[0])}"] if len(set(directions)) == 1 else []
    if "coverage" in failed:
        words.append(coverage_text(failed["coverage"]))
    words += [text for name, each in failed.items() if (text := _location(name, each))]
    if "cce" in failed:
        words.append("predicted distributions differ from those of the targets at the same inputs")
    if words:
        return "; ".join(words)
    return f"{', '.join(failed)} {'fails' if len(failed) == 1 else 'fail'}"


def _factor(results: Mapping[str, Result], direction: str) -> str:
    """Return by how much uncertainties should be scaled, if the mean squared z-score agrees with the direction."""
    zms = results.get("zms")
    if zms is None or not zms.value:
        return ""
    factor = sqrt(zms.value)
    if (factor > 1) != (direction == "overconfident"):
        return ""
    return f": uncertainties should be {factor:.2g} times as large"


def coverage_text(result: Result) -> str:
    """Return a coverage in words, beside the level of the intervals."""
    level = result.options.get("level")
    share = f"{100 * (result.value or 0):.3g} %"
    return f"intervals hold {share}" if level is None else f"{100 * level:g} % intervals hold {share}"


def _location(name: str, result: Result) -> str:
    """Return a bias in words; empty for other metrics."""
    if result.direction not in ("predictions-too-low", "predictions-too-high"):
        return ""
    side = "above" if result.direction == "predictions-too-low" else "below"
    size = f" by {abs(result.value):.3g} on average" if name == "bias" and result.value is not None else ""
    return f"biased: targets are {side} the predictions{size}"


def sentence(label: str, rows: int, faults: str) -> str:
    """Return a finding about some rows."""
    return f"{label} ({rows:,} rows): {faults}"


def filter_options(conditions: Sequence[Condition]) -> str:
    """Return conditions as options that select the same rows, to be pasted into a shell; empty if no option can."""
    if any(each.column.startswith(f"{COMPUTED} ") or not each.is_option for each in conditions):
        return ""
    return " ".join(f"--filter {shlex.quote(str(each))}" for each in conditions)
