"""Clear failures: those that some verdict of a right model has in at most 5 % of data sets, however many there are.

Metrics whose p-values are adjusted for each other are a family. Each other metric that is judged, by its own p-value or
by zeta, is a family of its own. The level is divided by the number of families (Bonferroni).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calcheck.report import Report, Result

CONFIDENCE = 0.95  # Of reports that do not state theirs
TIED = 1e-12  # Relative tolerance for rounding errors


def confidence_of(report: Report) -> float:
    """Return the confidence of the verdicts of a report."""
    return float(report.settings.get("confidence", CONFIDENCE))


def families(report: Report) -> list[tuple[Result, ...]]:
    """Return the results for all rows that have a verdict and a p-value or zeta, by family."""
    judged = [each for each in report.results if not each.slice and each.verdict != "none" and _is_measured(each)]
    together = tuple(each for each in judged if each.p_value_adjusted is not None)
    alone = [(each,) for each in judged if each.p_value_adjusted is None]
    return [*([together] if together else []), *alone]


def family_level(report: Report) -> float:
    """Return the level at which each family is tested, so that all of them together have that of the report."""
    return (1 - confidence_of(report)) / max(1, len(families(report)))


def clear_failures(report: Report) -> frozenset[str]:
    """Return the names of the metrics that fail clearly."""
    level, confidence = family_level(report), confidence_of(report)
    failed = [each for family in families(report) for each in family if each.verdict == "fail"]
    return frozenset(each.metric for each in failed if _p_value(each, confidence) <= level * (1 + TIED))


def zeta_limit(level: float, confidence: float) -> float:
    """Return the absolute zeta whose p-value is the level; 1 if that is 1 - confidence.

    Examples
    --------
    >>> round(zeta_limit(0.025, 0.95), 3)
    1.144
    """
    from statistics import NormalDist

    return NormalDist().inv_cdf(level / 2) / NormalDist().inv_cdf((1 - confidence) / 2)


def is_by_zeta(result: Result) -> bool:
    """Return whether zeta decides, and not the p-value of replicates or of an exact test."""
    return result.p_value is None or (
        result.zeta is not None and any(message.code == "verdict-basis" for message in result.warnings)
    )


def _is_measured(result: Result) -> bool:
    return result.p_value is not None or result.zeta is not None


def _p_value(result: Result, confidence: float) -> float:
    """Return the p-value of a result within its family; that of zeta for normal errors, if zeta decides."""
    from statistics import NormalDist

    if result.p_value_adjusted is not None:
        return result.p_value_adjusted
    if result.p_value is not None and not is_by_zeta(result):
        return result.p_value
    limit = -NormalDist().inv_cdf((1 - confidence) / 2)
    return math.erfc(abs(result.zeta or 0.0) * limit / math.sqrt(2))
