"""The answer to whether the uncertainties can be trusted, with the sentences behind it.

Each sentence follows from values, verdicts and details of the results. A fault is stated where a verdict fails clearly:
it fails at a level that all verdicts of a right model together exceed in 5 % of data sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from calcheck.conclusion.evidence import Evidence
from calcheck.conclusion.sentences import (
    describe_bias,
    describe_impossible,
    describe_inputs,
    describe_others,
    describe_ranking,
    describe_shape,
    describe_size,
)
from calcheck.report import Conclusion, Finding, Report

MIN_VERDICTS, MANY_RESULTS = 2, 8  # Minimum number of verdicts, or of results, for a conclusion
MIN_ROWS = 30  # Minimum number of rows for the answer yes
TOPICS = (describe_bias, describe_size, describe_shape, describe_ranking, describe_inputs, describe_impossible)
"""Functions that return the finding about a topic, in the order of the conclusion."""


def conclude(report: Report) -> Report:
    """Return a report with its conclusion; unchanged if it has few results and fewer than two verdicts."""
    if (unjudged := unjudged_conclusion(report.settings)) is not None:
        return replace(report, conclusion=unjudged) if len(report.results) >= MIN_VERDICTS else report
    verdicts = sum(result.verdict != "none" for result in report.results)
    if verdicts < MIN_VERDICTS and len(report.results) < MANY_RESULTS:
        return report
    findings = _findings(Evidence(report))
    answer = _answer(findings, report.input.n)
    return replace(report, conclusion=Conclusion(answer=answer, findings=findings))


def unjudged_conclusion(settings: Mapping[str, Any], further: str = "") -> Conclusion | None:
    """Return the conclusion if it was noticed that rows depend on each other, so that nothing is judged; else None."""
    noticed = settings.get("dependence_noticed")
    if noticed is None:
        return None
    text = f"nothing is judged, since {noticed['reason']}{further}"
    return Conclusion(answer="unclear", findings=(Finding(topic="dependence", state="untested", text=text),))


def _findings(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings in the order of the conclusion; failures that none of them explains come last."""
    found = [finding for describe in TOPICS if (finding := describe(evidence)) is not None]
    if all(finding.state != "fault" for finding in found):
        found += describe_others(evidence)
    return tuple(found)


def _answer(findings: Sequence[Finding], n: int) -> Literal["yes", "no", "unclear"]:
    """Return whether the uncertainties can be trusted, given n rows."""
    states = {finding.topic: finding.state for finding in findings}
    if "fault" in states.values():
        return "no"
    right = states.get("size") == "right" and states.get("others") != "untested"
    return "yes" if right and n >= MIN_ROWS else "unclear"
