"""The gate without rules: the metrics together must not fail, nor a group of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.clear_failures import clear_failures, confidence_of, families, family_level, is_by_zeta, zeta_limit
from calcheck.gate.messages import format_values
from calcheck.gate.rules import OVERALL, Name
from calcheck.report import Gate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calcheck.report import Overall, Report, Result


def verdict_gates(report: Report) -> tuple[Gate, ...]:
    """Return the gates of the verdicts, of which a right model violates any in at most 5 % of data sets.

    The overall verdict stands for the metrics that it joins. Any other metric that has a verdict has a gate of its own,
    at a level divided by the number of all of these. Groups and regions have verdicts that are adjusted for each other
    already, and a gate for each result.

    A verdict ``"undecided"`` is no violation. A metric that tests the model but has no value violates its gate, as in
    rules. Where rows depend on each other and no option says how, the overall verdict cannot be judged. Other results
    without a verdict have no gate.
    """
    others = [each for each in report.results if (each.slice and each.verdict != "none") or _is_missing(each)]
    return (*_of_all_rows(report), *map(_gate, others), *_withheld_gate(report))


def _withheld_gate(report: Report) -> Iterator[Gate]:
    """Yield the gate of verdicts that are withheld since it was noticed that rows depend on each other."""
    if (noticed := report.settings.get("dependence_noticed")) is not None:
        name = f"{OVERALL}.verdict"
        yield Gate(
            rule=f"{name} == fail",
            level="fail",
            passed=False,
            judged=False,
            message=f"nothing is judged, since {noticed['reason']}",
            values={name: None},
        )


def _of_all_rows(report: Report) -> Iterator[Gate]:
    """Yield the gates of the results for all rows that have a verdict."""
    found, clear = families(report), clear_failures(report)
    for family in found:
        if len(family) > 1 and report.overall is not None and report.overall.verdict != "none":
            yield _overall_gate(report.overall, family_level(report), alone=len(found) == 1)
        elif len(found) == len(family) == 1:
            yield _gate(*family)
        else:
            yield from (_level_gate(each, report, passed=each.metric not in clear) for each in family)


def _overall_gate(overall: Overall, level: float, *, alone: bool) -> Gate:
    """Return the gate of the overall verdict; by its p-value if there are verdicts that it does not join."""
    values = {f"{OVERALL}.{name}": getattr(overall, name) for name in ("verdict", "p_value", "leading")}
    rule = f"{OVERALL}.verdict == fail" if alone else f"{OVERALL}.p_value <= {level:.3g}"
    return Gate(
        rule=rule,
        level="fail",
        passed=overall.verdict != "fail" if alone else overall.p_value > level,
        message=format_values(values, lambda _: None),
        values=values,
    )


def _level_gate(result: Result, report: Report, *, passed: bool) -> Gate:
    """Return the gate of one of several results: the level of all is divided among them."""
    name, level = str(Name((result.metric,))), family_level(report)
    if result.p_value_adjusted is not None:
        field, rule = "p_value_adjusted", f"{name}.p_value_adjusted <= {level:.3g}"
    elif is_by_zeta(result):
        field, rule = "zeta", f"abs({name}.zeta) > {zeta_limit(level, confidence_of(report)):.3g}"
    else:
        field, rule = "p_value", f"{name}.p_value <= {level:.3g}"
    values = {f"{name}.verdict": result.verdict, f"{name}.{field}": getattr(result, field)}
    message = format_values(values, lambda _: result)
    return Gate(rule=rule, level="fail", passed=passed, message=message, values=values)


def _is_missing(result: Result) -> bool:
    """Return whether a metric that tests the model has no value; not if it could not have a verdict anyway."""
    untested = any(message.code == "no-verdict" for message in result.warnings)
    return result.value is None and result.verdict == "none" and result.alternative != "none" and not untested


def _gate(result: Result) -> Gate:
    """Return the gate of a result; its message also states the value."""
    name = str(Name((result.metric,), group=str(result.slice.get("group", ""))))
    values: dict[str, float | str | None] = {f"{name}.verdict": result.verdict, name: result.value}
    return Gate(
        rule=f"{name}.verdict == fail",
        level="fail",
        passed=result.verdict != "fail" and not _is_missing(result),
        message=format_values(values, lambda _: result),
        values=values,
    )
