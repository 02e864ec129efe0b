"""The gates of a report: rules that hold, are violated, or cannot be judged."""

import math
import operator
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from calcheck.conclusion import evidence
from calcheck.errors import OptionError
from calcheck.report import Gate, Input, Level, Monitor, Overall, Report, Result
from calcheck.studies.gate import rules
from calcheck.studies.gate.name_resolution import ByGroup, SliceSummary, format_value, format_values, results_by_group

Parts = Mapping[str, Result | Input | Overall | SliceSummary | Monitor | None]


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
        name = f"{rules.OVERALL}.verdict"
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
    found, overall = evidence.families(report), evidence.judged_overall(report)
    if overall is not None:
        yield _overall_gate(overall)
    clear, alone = evidence.clear_failures(report), overall is None and len(found) == 1
    for family in found:
        joined = overall is not None and evidence.is_joined(family)
        for each in family:
            if each.is_impossible and not (joined and overall is not None and overall.verdict == "fail"):
                yield _gate(each)
            elif not joined:
                single = alone and len(family) == 1
                yield _gate(each) if single else _level_gate(each, report, family, passed=each.metric not in clear)


def _overall_gate(overall: Overall) -> Gate:
    """Return the gate of the overall verdict."""
    values = {f"{rules.OVERALL}.{name}": getattr(overall, name) for name in ("verdict", "p_value", "leading")}
    return Gate(
        rule=f"{rules.OVERALL}.verdict == fail",
        level="fail",
        passed=overall.verdict != "fail",
        message=format_values(values, lambda _: None),
        values=values,
    )


def _level_gate(result: Result, report: Report, family: tuple[Result, ...], *, passed: bool) -> Gate:
    """Return the gate of one of several results: the level of all is divided among them."""
    name, level = str(rules.Name((result.metric,))), evidence.family_level(report, family)
    if result.p_value_adjusted is not None:
        field, rule = "p_value_adjusted", f"{name}.p_value_adjusted <= {level:.3g}"
    elif evidence.is_by_zeta(result):
        field, rule = "zeta", f"abs({name}.zeta) > {evidence.zeta_limit(level, evidence.confidence_of(report)):.3g}"
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
    name = str(rules.Name((result.metric,), group=str(result.slice.get("group", ""))))
    values: dict[str, float | str | None] = {f"{name}.verdict": result.verdict, name: result.number}
    return Gate(
        rule=f"{name}.verdict == fail",
        level="fail",
        passed=result.verdict != "fail" and not _is_missing(result),
        message=format_values(values, lambda _: result),
        values=values,
    )


COMPARED = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
EQUALITIES = ("==", "!=")  # operators that can compare two texts


def evaluate_rule(rule: rules.Rule, report: Report, *, level: Level = "fail") -> Gate:
    """Return the gate of a rule on a report.

    A rule that refers to an absent number is always violated. A rule cannot be judged if it is not violated, but would
    be with another verdict in place of one that there is not.
    """
    groups = results_by_group(report.results)
    summary = SliceSummary.from_groups({name: each for name, each in groups.items() if name})
    parts: Parts = {
        rules.INPUT: report.input,
        rules.OVERALL: report.overall,
        rules.SLICES: summary,
        rules.MONITOR: report.monitor,
    }
    names = {str(name): (name, _results_of(name, rule, groups)) for name in rule.names()}
    values = {text: _found(name, rule, {**results, **parts}) for text, (name, results) in names.items()}
    open_verdicts = {text for text, (name, _) in names.items() if name.is_verdict and values[text] in (None, "none")}
    present = {name: value for name, value in values.items() if value is not None}
    present |= dict.fromkeys(open_verdicts, "none")
    violated = len(present) < len(values) or bool(_holds(rule.condition, present, rule))
    judged = violated or _holds(rule.condition, present, rule, open_verdicts) is not None
    return Gate(
        rule=rule.text,
        level=level,
        passed=judged and not violated,
        message=format_values(values, lambda text: names[text][1].get(names[text][0].head)),
        values=values,
        judged=judged,
    )


def _results_of(name: rules.Name, rule: rules.Rule, groups: ByGroup) -> dict[str, Result]:
    """Return the results of the group that a name refers to, or of all rows, by metric."""
    if name.group not in groups:
        listed = ", ".join(repr(each) for each in groups if each)
        rule.reject(name.at, f"the report has no group {name.group!r}. Available groups: {listed or 'none'}")
    return groups[name.group]


def _found(name: rules.Name, rule: rules.Rule, parts: Parts) -> float | str | None:
    """Return the value of a name in a report; absent parts and undefined numbers are None, infinite values are inf."""
    head, *path = name.path
    if head not in parts:
        listed = ", ".join(each for each in parts if each not in rules.PARTS)
        rule.reject(name.at, f"the report has no metric {head!r}. Available metrics: {listed}")
    found: Any = parts[head]
    if found is None:
        return None
    for step in path or ([] if head in rules.PARTS else ["value"]):
        there = _entries(found)
        if step not in there:
            listed = f"Available: {', '.join(there)}" if there else "It has no entries"
            rule.reject(name.at, f"{name} is not in the report: no {step!r}. {listed}")
        found = there[step]
    part = parts[head]
    infinite = isinstance(part, Result) and part.is_infinite and path in ([], ["value"])
    if found is None or (isinstance(found, float) and not math.isfinite(found) and not infinite):
        return None
    if isinstance(found, bool) or not isinstance(found, (int, float, str)):
        there = _entries(found)
        listed = f". Use one of its entries: {', '.join(there)}" if there else ""
        rule.reject(name.at, f"{name} is neither a number nor text{listed}")
    return found


def _entries(found: Any) -> Mapping[str, Any]:
    """Return the entries of a part of the report, by name."""
    if isinstance(found, Result):
        return {declared.name: getattr(found, declared.name) for declared in fields(found)} | {"value": found.number}
    if is_dataclass(found):
        return {declared.name: getattr(found, declared.name) for declared in fields(found)}
    return found if isinstance(found, dict) else {}


def _holds(
    condition: rules.Condition, values: Mapping[str, float | str], rule: rules.Rule, unknown: Collection[str] = ()
) -> bool | None:
    """Return whether a condition holds; it does not short-circuit, so that every error in it is found.

    Comparisons of names that are unknown are None, and so is a condition whose outcome depends on them.
    """
    match condition:
        case rules.Comparison():
            left, right = _value(condition.left, values, rule), _value(condition.right, values, rule)
            texts = [isinstance(value, str) for value in (left, right)]
            if any(texts) and not (all(texts) and condition.operator in EQUALITIES):
                sides = f"{format_value(left)!r} {condition.operator} {format_value(right)!r}"
                msg = (
                    f"rule {rule.text!r} compares {sides}: compare numbers with numbers, or text with text by == or !="
                )
                raise OptionError(msg)
            named = {str(side) for side in (condition.left, condition.right) if isinstance(side, rules.Name)}
            return None if named.intersection(unknown) else bool(COMPARED[condition.operator](left, right))
        case rules.Not():
            holds = _holds(condition.condition, values, rule, unknown)
            return None if holds is None else not holds
        case rules.BoolOp():
            outcomes = [_holds(each, values, rule, unknown) for each in condition.conditions]
            decisive = condition.word == "or"  # one such outcome decides
            if decisive in outcomes:
                return decisive
            return None if None in outcomes else not decisive


def _value(operand: rules.Operand, values: Mapping[str, float | str], rule: rules.Rule) -> float | str:
    match operand:
        case rules.Constant():
            return operand.value
        case rules.Name():
            return values[str(operand)]
        case rules.Abs():
            value = _value(operand.operand, values, rule)
            if isinstance(value, str):
                msg = f"rule {rule.text!r} takes abs(...) of the text {value!r}: abs(...) needs a number"
                raise OptionError(msg)
            return abs(value)
