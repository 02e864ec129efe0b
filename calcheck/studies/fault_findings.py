"""What is wrong in which groups or regions of the rows, as findings of a report."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from calcheck.regions.sentences import describe_faults, sentence
from calcheck.report import Conclusion, Finding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from calcheck.report import Result


def conclude_groups(results: Sequence[Result]) -> Conclusion | None:
    """Return what is wrong in which groups; None if no group is judged."""
    if all(result.verdict == "none" for result in results):
        return None
    findings = fault_findings(results)
    if findings:
        return Conclusion(answer="no", findings=findings)
    text = "no group differs from a perfect model by more than chance"
    return Conclusion(answer="yes", findings=(Finding(topic="where", state="right", text=text),))


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
