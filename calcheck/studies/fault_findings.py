"""What is wrong in which groups or regions of the rows, as findings of a report."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from calcheck.regions.sentences import describe_faults, sentence
from calcheck.report import Conclusion, Finding
from calcheck.statistics.log_likelihoods import describe_impossible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from calcheck.report import Result


def conclude_groups(results: Sequence[Result], impossible: Mapping[str, int]) -> Conclusion | None:
    """Return what is wrong in which groups; None if no group is judged.

    Parameters
    ----------
    results : sequence of Result
        Metrics of groups.
    impossible : mapping
        The number of targets with probability 0 in each group that has any, by label.
    """
    if all(result.verdict == "none" for result in results) and not impossible:
        return None
    others = [result for result in results if not result.is_impossible]
    findings = (*map(_impossible, impossible.items()), *fault_findings(others))
    if findings:
        return Conclusion(answer="no", findings=findings)
    text = "no group differs from a perfect model by more than chance"
    return Conclusion(answer="yes", findings=(Finding(topic="where", state="right", text=text),))


def _impossible(group: tuple[str, int]) -> Finding:
    label, count = group
    text = f"{label}: {describe_impossible(count)}"
    return Finding(topic="where", state="fault", fault="worse-than-promised", text=text)


def fault_findings(results: Sequence[Result]) -> tuple[Finding, ...]:
    """Return what is wrong in each group or region that fails."""
    groups = by_group(results).items()
    return tuple(_finding(label, by_metric) for label, by_metric in groups if describe_faults(by_metric))


def by_group(results: Sequence[Result]) -> dict[str, dict[str, Result]]:
    """Return results by group and metric."""
    found: dict[str, dict[str, Result]] = {}
    for result in results:
        found.setdefault(str(result.slice["group"]), {})[result.metric] = result
    return found


def _finding(label: str, results: Mapping[str, Result]) -> Finding:
    first = next(each for each in results.values() if each.verdict == "fail")
    text = sentence(label, int(first.slice["rows"]), describe_faults(results))
    return Finding(topic="where", state="fault", fault=first.direction, text=text)


def with_p_values(findings: Sequence[Finding], results: Sequence[Result], count: str) -> tuple[Finding, ...]:
    """Return findings with the p-values of their regions; ``count`` says over what."""
    p_values = [each.p_value_adjusted for each in _first_failures(results)]
    return tuple(
        replace(finding, text=f"{finding.text}; p = {p_value:.2g} over {count}")
        for finding, p_value in zip(findings, p_values, strict=True)
    )


def _first_failures(results: Sequence[Result]) -> list[Result]:
    """Return the first failure of each region."""
    found: dict[str, Result] = {}
    for result in results:
        if result.verdict == "fail":
            found.setdefault(str(result.slice["group"]), result)
    return list(found.values())
