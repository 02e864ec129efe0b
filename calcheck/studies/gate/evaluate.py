"""The gates of a report: rules that hold, are violated, or cannot be judged."""

import math
import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, get_args

from calcheck.conclusion.answer import are_within
from calcheck.core.text import percent
from calcheck.errors import OptionError
from calcheck.reports import Gate, Input, Level, Monitor, Overall, Report, Result, results_by_group
from calcheck.reports.conclusion import Answered, NewInputs, Qualifier, effect_name
from calcheck.studies.gate import name_resolution, rules

Part = Result | Input | Overall | name_resolution.SliceSummary | Monitor | str | Mapping[str, Any] | None
Parts = Mapping[str, Part]
ANSWER = "{0}answer == 'no'"
STRICT = "{0}answer != 'yes' or {0}qualifiers.at-level == 1 or {0}qualifiers.on-average == 1"
"""Rules on the answer, and on that at new inputs."""
ANSWERS = (rules.ANSWER, f"{rules.ON}.{rules.ANSWER}")


def answer_gates(report: Report, *, strict: bool = False) -> tuple[Gate, ...]:
    """Return the gate of the answer, which must not be no; if ``strict``, it must be yes at every level and everywhere.

    The answer at new inputs has one, too. There is none if the report has no answer. It cannot be judged where rows
    depend on each other, no option says how, and the answer is not no anyway.
    """
    if report.conclusion is None:
        return ()
    rule = STRICT if strict else ANSWER
    gate = evaluate_rule(rules.parse(rule.format("")), report)
    told = [each.text for each in report.conclusion.effects if each.within is False or each.topic == "dependence"]
    for output in report.conclusion.outputs:
        told += [f"{output.name}: {each.text}" for each in output.effects if each.within is False]
    gates = [replace(gate, message="; ".join([gate.message, *told]))]
    if (on := report.conclusion.on) is not None:
        gate = evaluate_rule(rules.parse(rule.format(f"{rules.ON}.")), report)
        told = [each.text for each in on.effects if each.within is False]
        gates.append(replace(gate, message="; ".join([gate.message, *told])))
    return tuple(gates)


def group_gates(report: Report) -> tuple[Gate, ...]:
    """Return the gate of each result of groups or regions, whose verdicts are adjusted for each other."""
    tolerance = float(report.settings["tolerance"])
    groups = {name: each for name, each in results_by_group(report.results).items() if name}
    within = {name for name, each in groups.items() if are_within(each, tolerance)}
    told = (each for each in report.results if each.slice and each.verdict != "none")
    return tuple(_gate(each, tolerance, within) for each in told)


def _gate(result: Result, tolerance: float, within: Collection[str]) -> Gate:
    """Return the gate of a result; its message also states the value, and whether the group is within the tolerance."""
    group = str(result.slice["group"])
    name = str(rules.Name((result.metric,), group=group))
    values: dict[str, float | str | None] = {f"{name}.verdict": result.verdict, name: result.number}
    passed = result.verdict != "fail"
    shown = "" if passed or group not in within else f"; within {percent(tolerance, 1)}"
    return Gate(
        rule=f"{name}.verdict == fail",
        level="warn" if shown else "fail",
        passed=passed,
        message=name_resolution.format_values(values, lambda _: result) + shown,
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
    if any(_is_of_outputs(name, report) for name in rule.names()):
        return _worst_gate({name: evaluate_rule(rule, each, level=level) for name, each in report.of_outputs().items()})
    groups: name_resolution.ByGroup = {"": {}, **results_by_group(report.results)}
    parts = _parts_of(
        report, name_resolution.SliceSummary.from_groups({name: each for name, each in groups.items() if name})
    )
    names = {str(name): (name, _results_of(name, rule, groups)) for name in rule.names()}
    values = {text: _found(name, rule, {**results, **parts}) for text, (name, results) in names.items()}
    open_verdicts = {text for text, (name, _) in names.items() if name.is_verdict and values[text] in (None, "none")}
    if "dependence_noticed" in report.settings:
        open_verdicts |= {text for text, value in values.items() if text in ANSWERS and value == "not-shown"}
    present = {name: value for name, value in values.items() if value is not None}
    present |= dict.fromkeys(open_verdicts, "none")
    violated = len(present) < len(values) or bool(_holds(rule.condition, present, rule))
    judged = violated or _holds(rule.condition, present, rule, open_verdicts) is not None
    return Gate(
        rule=rule.text,
        level=level,
        passed=judged and not violated,
        message=name_resolution.format_values(values, lambda text: names[text][1].get(names[text][0].head), rule.text),
        values=values,
        judged=judged,
    )


def _is_of_outputs(name: rules.Name, report: Report) -> bool:
    """Return whether a name refers to each of several targets by itself, and to nothing of all of them together."""
    if not report.outputs or name.group or name.path[:2] == (rules.EFFECTS, "correlation"):
        return False
    if name.head in rules.PARTS:
        return name.head in (rules.EFFECTS, rules.REGION)
    return all(name.head != each.metric for each in report.results)


def _worst_gate(gates: Mapping[str, Gate]) -> Gate:
    """Return the gate of the first target that violates a rule, else of the first that is not judged, else of all."""
    wrong = [name for name, each in gates.items() if each.judged and not each.passed]
    name = (wrong or [name for name, each in gates.items() if not each.judged] or list(gates))[0]
    told = wrong or list(gates)
    return replace(gates[name], message="; ".join(f"{each}: {gates[each].message}" for each in told))


def _parts_of(report: Report, summary: name_resolution.SliceSummary) -> Parts:
    """Return the parts of a report besides metrics; of effects of several kinds, that of the bias has its own name."""
    parts: dict[str, Part] = {
        rules.INPUT: report.input,
        rules.OVERALL: report.overall,
        rules.SLICES: summary,
        rules.MONITOR: report.monitor,
        rules.REGION: None,
        **dict.fromkeys((rules.ANSWER, rules.QUALIFIERS, rules.EFFECTS, rules.ON)),
    }
    if (region := report.region) is not None:
        value = math.inf if region.value is None else region.value
        is_scale = region.direction in ("too-narrow", "too-wide")
        values = (value, 0.0, region.rows) if is_scale else (1.0, value, region.rows)
        parts[rules.REGION] = dict(zip(name_resolution.REGION_FIELDS, values, strict=True))
    elif "region_searched" in report.settings:
        parts[rules.REGION] = dict(zip(name_resolution.REGION_FIELDS, (1.0, 0.0, 0), strict=True))
    if (conclusion := report.conclusion) is not None:
        parts[rules.ANSWER] = conclusion.answer
        parts[rules.QUALIFIERS] = _qualifiers(conclusion)
        parts[rules.EFFECTS] = _effects(conclusion, name_resolution.EFFECTS)
        parts[rules.ON] = None if conclusion.on is None else _on_new_inputs(conclusion.on)
    return parts


def _qualifiers(answered: Answered) -> dict[str, int]:
    return {name: int(name in answered.qualifiers) for name in get_args(Qualifier)}


def _effects(answered: Answered, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the fields of effects by name; None for those of absent effects."""
    found = {effect_name(each.topic, each.kind): vars(each) for each in answered.effects}
    return {name: {field: found.get(name, {}).get(field) for field in name_resolution.EFFECT_FIELDS} for name in names}


def _on_new_inputs(on: NewInputs) -> dict[str, Any]:
    """Return what rules can say about new inputs."""
    return {
        **{name: getattr(on, name) for name in name_resolution.ON_FIELDS},
        "contradicted": int(on.contradicted),
        **{
            part: {name: getattr(getattr(on, part), name) for name in names}
            for part, names in name_resolution.ON_PARTS.items()
        },
        rules.QUALIFIERS: _qualifiers(on),
        **_effects(on, name_resolution.ON_EFFECTS),
    }


def _results_of(name: rules.Name, rule: rules.Rule, groups: name_resolution.ByGroup) -> dict[str, Result]:
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
    """Return whether a condition holds, None if unknown; it does not short-circuit, so that every error is found."""
    match condition:
        case rules.Comparison():
            left, right = _value(condition.left, values, rule), _value(condition.right, values, rule)
            texts = [isinstance(value, str) for value in (left, right)]
            if any(texts) and not (all(texts) and condition.operator in EQUALITIES):
                shown = [repr(name_resolution.format_value(each)) for each in (left, right)]
                sides = f" {condition.operator} ".join(shown)
                raise OptionError(
                    f"rule {rule.text!r} compares {sides}: compare numbers with numbers, or text with text by == or !="
                )
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
                raise OptionError(f"rule {rule.text!r} takes abs(...) of the text {value!r}: abs(...) needs a number")
            return abs(value)
