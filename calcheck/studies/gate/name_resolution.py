"""What the names of a rule mean in a report, and what a missing value means."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args, get_origin, get_type_hints

from calcheck.conclusion.answer import AVERAGE, LOCAL
from calcheck.errors import Code, suggestion
from calcheck.metrics import ALIASES, METRICS
from calcheck.reports import Conclusion, Input, Monitor, Overall, Result, Verdict
from calcheck.reports.conclusion import Qualifier, effect_name
from calcheck.result_details import FieldTree
from calcheck.studies.gate import rules

Value = float | str | None
ByGroup = dict[str, dict[str, Result]]
INTERVAL_FIELDS = ("low", "high", "interval")

TOPICS: dict[str, tuple[Code, ...]] = {
    "value": ("no-value",),
    **dict.fromkeys(INTERVAL_FIELDS, ("no-interval",)),
}  # Codes of warnings that state why a field is absent
ABSENCES: tuple[Code, ...] = ("no-value", "no-interval", "no-verdict", "no-p-value", "no-difference", "no-reference")
"""Codes of warnings that may state why any other field is absent."""

FIELDS = {
    **dict.fromkeys(INTERVAL_FIELDS, "there is no interval"),
    **dict.fromkeys(("reference", "reference_kind"), "the score of a perfect model is unknown"),
    **dict.fromkeys(
        ("reference_low", "reference_high"), "only simulated references have limits, on the side that the test uses"
    ),
    "zeta": "there is no reference, or its distance to its limit is zero or unknown",
    "zeta_mc_error": "only a zeta estimated by resampling has a Monte Carlo error",
    "p_value": "the null distribution was not simulated",
    "p_value_mc_error": "only a p-value estimated from replicates has a Monte Carlo error",
    "p_value_adjusted": "fewer than two results have p-values from the same replicates",
}  # Reasons for absent fields that no warning explains
DIGITS = 6  # Significant digits of a value, at most
NUMBER = re.compile(r"(?<![\w.])-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])")
UNKNOWN = "the report has no value, and states no reason"
EFFECT_FIELDS = ("value", "low", "high", "p")  # Fields of effects in rules


def format_values(values: Mapping[str, Value], result_of: Callable[[str], Result | None], rule: str = "") -> str:
    """Return the value of each name as text, beside the numbers in a rule; for an absent number, with the reason."""
    limits = [float(each) for each in NUMBER.findall(rule)]
    return "; ".join(
        f"{name} is {format_value(value, limits)}" + (f" ({_because(name, result_of(name))})" if value is None else "")
        for name, value in values.items()
    )


def format_value(value: Value, limits: Sequence[float] = ()) -> str:
    """Return a value as text; numbers have three significant digits, or up to six to be on their side of limits.

    >>> format_value(0.0123456789), format_value(1181), format_value("pass"), format_value(None)
    ('0.0123', '1181', 'pass', 'null')
    >>> format_value(1.2004, [1.2, 3])
    '1.2004'
    """
    if value is None or isinstance(value, str):
        return value or "null"
    for digits in range(3, DIGITS):
        shown = float(text := f"{value:.{digits}g}")
        if "e+" not in text and all((shown < each, shown > each) == (value < each, value > each) for each in limits):
            return text
    return f"{value:.{DIGITS}g}"


def _because(name: str, result: Result | None) -> str:
    """Return why a number is absent: a matching warning of its metric, else the field's reason, else all warnings."""
    field = name.rpartition(".")[2] if "." in name else "value"
    if name.startswith(f"{rules.OVERALL}."):
        return FIELDS["p_value_adjusted"]
    if name.startswith(f"{rules.REGION}."):
        return "no region was searched: it needs inputs, independent rows, and the whole distribution of each"
    if name.startswith(f"{rules.ON}."):
        return "too little is known at the new inputs, or --on named none"
    warnings = () if result is None else result.warnings
    for codes in (TOPICS.get(field, ABSENCES), ABSENCES):
        if texts := [warning.text for warning in warnings if warning.code in codes]:
            return "; ".join(texts)
    return FIELDS.get(field) or "; ".join(warning.text for warning in warnings) or UNKNOWN


@dataclass(frozen=True)
class SliceSummary:
    """What rules can say about all groups or regions together."""

    min_p: float | None  # Smallest p-value, adjusted for the number of groups and metrics, or of regions
    groups: int  # Number of groups, or of regions in the report
    failed: int  # Number of these that fail

    @classmethod
    def from_groups(cls, groups: ByGroup) -> "SliceSummary":
        """Return the summary of the results of each group by metric."""
        results = [result for each in groups.values() for result in each.values()]
        p_values = [result.p_value_adjusted for result in results if result.p_value_adjusted is not None]
        failed = sum(any(result.verdict == "fail" for result in each.values()) for each in groups.values())
        return cls(min(p_values, default=None), len(groups), failed)


EFFECTS = (*AVERAGE, "shape", *LOCAL, *(effect_name(topic, "bias") for topic in LOCAL))  # Names of effects in rules
REGION_FIELDS = ("factor", "bias", "rows")  # What rules can say about the worst region
ON_EFFECTS = ("size", "bias", "shape", "inputs", "inputs-bias")  # Effects at new inputs in rules
ON_FIELDS = (rules.ANSWER, "rows", "rows_needed", "effective_rows", "coverage", "labelled", "contradicted")
ON_PARTS = {"beyond": ("share", "low", "high", "rows"), "inputs_differ": ("p",)}
OPEN = ("columns", "components")  # Fields whose entries have any names
PARTS = {rules.INPUT: Input, rules.OVERALL: Overall, rules.SLICES: SliceSummary, rules.MONITOR: Monitor}
PART_TYPES = {part: get_type_hints(kind) for part, kind in PARTS.items()}
PART_FIELDS: dict[str, FieldTree] = {
    rules.ANSWER: {},
    rules.QUALIFIERS: {name: {} for name in get_args(Qualifier)},
    rules.REGION: {name: {} for name in REGION_FIELDS},
    rules.EFFECTS: {name: {field: {} for field in EFFECT_FIELDS} for name in EFFECTS},
    rules.ON: {
        **{name: {} for name in ON_FIELDS},
        rules.QUALIFIERS: {name: {} for name in get_args(Qualifier)},
        **{name: {field: {} for field in names} for name, names in ON_PARTS.items()},
        **{name: {field: {} for field in EFFECT_FIELDS} for name in ON_EFFECTS},
    },
    **{part: {name: None if name in OPEN else {} for name in hints} for part, hints in PART_TYPES.items()},
}
RESULT_TYPES = get_type_hints(Result)


def read_rule(text: str) -> rules.Rule:
    """Return the rule in a text, whose names are those of reports."""
    known = {name: metric.info.result_fields() for name, metric in METRICS.items()}
    for name, metric in METRICS.items():
        if metric.info.alternative == "none":
            known[name].pop("verdict")  # it is always none
    return resolve_rule(rules.parse(text), known, {name: alias.metric for name, alias in ALIASES.items()})


def resolve_rule(
    rule: rules.Rule, known: Mapping[str, FieldTree], aliases: Mapping[str, str] | None = None
) -> rules.Rule:
    """Return a rule of names of the report and constants, without aliases; raise if a name can be in no report."""
    resolver = _Resolver(rule, known, aliases or {})
    return rules.Rule(rule.text, resolver.condition(rule.condition))


@dataclass(frozen=True)
class _Resolver:
    """Resolves the names of one rule."""

    rule: rules.Rule
    known: Mapping[str, FieldTree]
    aliases: Mapping[str, str]

    def condition(self, node: rules.Condition) -> rules.Condition:
        match node:
            case rules.Not():
                return rules.Not(self.condition(node.condition))
            case rules.BoolOp():
                return rules.BoolOp(node.word, tuple(map(self.condition, node.conditions)))
            case rules.Comparison():
                return self.comparison(node)

    def comparison(self, node: rules.Comparison) -> rules.Comparison:
        left, right = self.operand(node.left, node.right), self.operand(node.right, node.left)
        for side, other in ((left, right), (right, left)):  # A comparison with a text that a field never has
            texts, text = texts_of(side), other.value if isinstance(other, rules.Constant) else None
            if isinstance(side, rules.Name) and texts and isinstance(text, str) and text not in texts:
                self.rule.reject(side.at, f"{side} is never {text!r}. {_similar(text, texts, 'Available')}")
        return rules.Comparison(left, node.operator, right)

    def operand(self, node: rules.Operand, other: rules.Operand) -> rules.Operand:
        """Return a resolved side of a comparison; a word is a text if the other side is a field of text."""
        match node:
            case rules.Abs():
                return rules.Abs(self.operand(node.operand, node))
            case rules.Name(path=(word,), group="") if not self.is_known(word) and texts_of(other) is not None:
                return rules.Constant(word)
            case rules.Name():
                return self.name(node)
            case rules.Constant():
                return node

    def is_known(self, word: str) -> bool:
        return word in self.known or word in self.aliases or word in rules.PARTS

    def name(self, node: rules.Name) -> rules.Name:
        """Return a name that a report can have, with the name of the metric in place of an alias."""
        head, *steps = node.path
        if not self.is_known(head) or (node.group and head in rules.PARTS):
            known = (*self.known, *self.aliases, *rules.PARTS)
            problem = f"unknown metric {head!r}. {_similar(head, known, 'Available')}"
            if head in get_args(Verdict):
                problem = f"{head!r} is a verdict: compare a field with it, e.g. {known[0]}.verdict == {head}"
            self.rule.reject(node.at, problem)
        metric = self.aliases.get(head, head)
        name = rules.Name((metric, *steps), node.at, node.group)
        there: FieldTree | None = PART_FIELDS[metric] if metric in rules.PARTS else self.known[metric]
        for depth, step in enumerate(steps, start=1):
            if there is None:
                break
            if step == "verdict" and step not in there:
                self.rule.reject(name.at, f"{name} is never there: {metric} does not test a model. Compare its value")
            if step not in there:
                similar = _similar(step, there, "Available fields") if there else "It has no fields"
                self.rule.reject(name.at, f"{'.'.join(name.path[:depth])} has no field {step!r}. {similar}")
            there = there[step]
        return name


def texts_of(operand: rules.Operand) -> tuple[str, ...] | None:
    """Return the texts that a field can have, or none if it can have any; None if the operand is no field of text.

    >>> [texts_of(rules.Name(("zms", field))) for field in ("reference_kind", "unit", "low")]
    [('exact', 'simulated'), (), None]
    """
    if operand in (rules.Name((rules.ANSWER,)), rules.Name((rules.ON, rules.ANSWER))):
        return get_args(get_type_hints(Conclusion)["answer"])
    if (
        not isinstance(operand, rules.Name)
        or len(operand.path) == 1
        or operand.head in (rules.QUALIFIERS, rules.EFFECTS, rules.REGION, rules.ON)
    ):
        return None
    head, field, *deeper = operand.path
    hint = PART_TYPES.get(head, RESULT_TYPES).get(field)
    kinds = (hint,) if get_origin(hint) is Literal else (get_args(hint) or (hint,))
    for kind in kinds:
        if get_origin(kind) is Literal:
            return get_args(kind)
    return () if deeper or str in kinds else None


def _similar(word: str, names: Iterable[str], label: str) -> str:
    """Return a question about a similar name, else all names."""
    names = list(names)
    return suggestion(word, names) or f"{label}: {', '.join(names)}"
