"""Clear failures: those that right models have in few data sets, however many verdicts there are.

Metrics whose p-values are adjusted for each other are a family. Each other metric that is judged, by its own p-value or
by zeta, is a family of its own. If there is an overall verdict, the joined metrics have the level of the report, 5 %,
and the others share a fifth of it, 1 %, in addition. Else the level is divided by the number of families (Bonferroni).
Targets with probability 0 are a clear failure at any level.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calcheck.report import Overall, Report, Result

CONFIDENCE = 0.95  # Of reports that do not state theirs
OTHERS = 0.2  # Share of the level that metrics beside those of the overall verdict have in addition
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


def judged_overall(report: Report) -> Overall | None:
    """Return the overall verdict of a report; None if there is none."""
    return None if report.overall is None or report.overall.verdict == "none" else report.overall


def family_level(report: Report, family: tuple[Result, ...]) -> float:
    """Return the level at which a family is tested."""
    level, random = 1 - confidence_of(report), [each for each in families(report) if not each[0].is_impossible]
    if judged_overall(report) is None:
        return level / max(1, len(random))
    return level if is_joined(family) else OTHERS * level / max(1, sum(not is_joined(each) for each in random))


def is_joined(family: tuple[Result, ...]) -> bool:
    """Return whether a family is that of the p-values that are adjusted for each other."""
    return family[0].p_value_adjusted is not None


def clear_failures(report: Report) -> frozenset[str]:
    """Return the names of the metrics that fail clearly."""
    confidence = confidence_of(report)
    return frozenset(
        each.metric
        for family in families(report)
        for each in family
        if each.verdict == "fail" and _p_value(each, confidence) <= family_level(report, family) * (1 + TIED)
    )


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
    return result.p_value is not None or result.zeta is not None or result.is_impossible


def _p_value(result: Result, confidence: float) -> float:
    """Return the p-value of a result within its family; that of zeta for normal errors, if zeta decides."""
    from statistics import NormalDist

    if result.is_impossible:
        return 0.0
    if result.p_value_adjusted is not None:
        return result.p_value_adjusted
    if result.p_value is not None and not is_by_zeta(result):
        return result.p_value
    limit = -NormalDist().inv_cdf((1 - confidence) / 2)
    return math.erfc(abs(result.zeta or 0.0) * limit / math.sqrt(2))
