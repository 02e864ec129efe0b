"""The gate without rules: the metrics together must not fail, nor a group of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.clear_failures import (
    clear_failures,
    confidence_of,
    families,
    family_level,
    is_by_zeta,
    is_joined,
    judged_overall,
    zeta_limit,
)
from calcheck.gate.messages import format_values
from calcheck.gate.rules import OVERALL, Name
from calcheck.report import Gate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calcheck.report import Overall, Report, Result


def verdict_gates(report: Report) -> tuple[Gate, ...]:
    """Return the gates of the verdicts, of which a right model violates any in few data sets.

    The overall verdict stands for the metrics that it joins: a right model violates its gate in at most 5 % of data
    sets. Any other metric that has a verdict has a gate of its own; a right model violates any of these in at most 1 %
    more, or, if there is no overall verdict, in 5 %. Targets with probability 0 violate always. Groups and regions have
    verdicts that are adjusted for each other already, and a gate for each result.

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
    found, overall = families(report), judged_overall(report)
    if overall is not None:
        yield _overall_gate(overall)
    clear, alone = clear_failures(report), overall is None and len(found) == 1
    for family in found:
        joined = overall is not None and is_joined(family)
        for each in family:
            if each.is_impossible and not (joined and overall is not None and overall.verdict == "fail"):
                yield _gate(each)
            elif not joined:
                single = alone and len(family) == 1
                yield _gate(each) if single else _level_gate(each, report, family, passed=each.metric not in clear)


def _overall_gate(overall: Overall) -> Gate:
    """Return the gate of the overall verdict."""
    values = {f"{OVERALL}.{name}": getattr(overall, name) for name in ("verdict", "p_value", "leading")}
    return Gate(
        rule=f"{OVERALL}.verdict == fail",
        level="fail",
        passed=overall.verdict != "fail",
        message=format_values(values, lambda _: None),
        values=values,
    )


def _level_gate(result: Result, report: Report, family: tuple[Result, ...], *, passed: bool) -> Gate:
    """Return the gate of one of several results: the level of all is divided among them."""
    name, level = str(Name((result.metric,))), family_level(report, family)
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
    values: dict[str, float | str | None] = {f"{name}.verdict": result.verdict, name: result.number}
    return Gate(
        rule=f"{name}.verdict == fail",
        level="fail",
        passed=result.verdict != "fail" and not _is_missing(result),
        message=format_values(values, lambda _: result),
        values=values,
    )
