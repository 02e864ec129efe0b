"""Laws of the language of rules.

1. Any text is a rule or raises an OptionError.
2. Parsing a formatted rule restores it, for any spaces and parentheses.
3. A rule evaluates as in Python, whose grammar includes that of rules.
4. A rule with a missing number is violated.
"""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calcheck.errors import OptionError
from calcheck.reports import Input, Report, Result
from calcheck.studies.gate.evaluate import evaluate_rule
from calcheck.studies.gate.name_resolution import resolve_rule
from calcheck.studies.gate.rules import Abs, BoolOp, Comparison, Constant, Name, Not, parse
from tests.helpers.simulations import examples

METRICS = ("zms", "rce", "interval-score")
OPERATORS = ("<", "<=", ">", ">=", "==", "!=")
WORDS = [*OPERATORS, *METRICS, "zms.zeta", "abs", "(", ")", "and", "or", "not", "1", "-2.5e-3", "'x'", '"', "zms.unit"]
law = examples(300)

small = st.integers(-3, 3).map(float)
operands = st.one_of(small.map(Constant), st.sampled_from(METRICS).map(lambda name: Name((name,))))
operands = st.one_of(operands, operands.map(Abs))
comparisons = st.builds(Comparison, operands, st.sampled_from(OPERATORS), operands)
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        inner.map(Not),
        st.builds(BoolOp, st.sampled_from(("and", "or")), st.lists(inner, min_size=2, max_size=3).map(tuple)),
    ),
    max_leaves=8,
)


def report_of(values):
    results = [Result(metric=name, summary="", options={}, unit="1", value=value) for name, value in values.items()]
    read = Input(files=(), n=1, dropped=0, predictive=None, columns={})
    return Report(calcheck="0", input=read, settings={}, results=tuple(results))


def format_rule(node, space):
    """Return the text of a rule, with parentheses in place of precedence."""
    match node:
        case Constant():
            return repr(node.value)
        case Name():
            return str(node)
        case Abs():
            return f"abs({space}{format_rule(node.operand, space)}{space})"
        case Comparison():
            return f"{format_rule(node.left, space)}{space}{node.operator}{space}{format_rule(node.right, space)}"
        case Not():
            return f"not ({format_rule(node.condition, space)})"
        case BoolOp():
            return f" {node.word} ".join(f"({space}{format_rule(each, space)})" for each in node.conditions)


def has_name(node):
    return any(f"{name}" in format_rule(node, " ") for name in METRICS)


def chained(first, links):
    """Write a comparison of two or more operands."""
    return " ".join(
        [format_rule(first, " "), *(f"{operator} {format_rule(operand, ' ')}" for operator, operand in links)]
    )


chains = st.builds(chained, operands, st.lists(st.tuples(st.sampled_from(OPERATORS), operands), min_size=1, max_size=3))


@law
@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)))
def test_any_text_is_a_rule_or_refused(text):
    with contextlib.suppress(OptionError):
        rule = resolve_rule(parse(text), {name: {"value": {}, "zeta": {}, "unit": {}} for name in METRICS})
        evaluate_rule(rule, report_of({"zms": 1.0, "rce": 0.0, "interval-score": None}))


@law
@given(conditions.filter(has_name), st.sampled_from(["", " ", "  \t\n"]))
def test_parsing_restores_a_formatted_rule(condition, space):
    assert parse(format_rule(condition, space)).condition == condition


@law
@given(
    st.lists(
        st.tuples(st.sampled_from(["and", "or"]), st.sampled_from(["", "not ", "not not "]), chains),
        min_size=1,
        max_size=5,
    ).filter(lambda parts: any(name in part for *_, part in parts for name in METRICS)),
    st.tuples(small, small, small),
)
def test_rules_agree_with_python(parts, values):
    """Without parentheses, so that precedence is compared."""
    text = " ".join(f"{joint} {denial}{part}" for joint, denial, part in parts)
    text = text.removeprefix("and ").removeprefix("or ")
    found = dict(zip(METRICS, values, strict=True))
    expected = eval(text.replace("interval-score", "score"), {}, {**found, "score": values[-1]})  # noqa: S307
    assert evaluate_rule(parse(text), report_of(found)).passed is not expected


@law
@given(conditions.filter(has_name))
def test_a_rule_with_a_missing_number_is_violated(condition):
    gate = evaluate_rule(parse(format_rule(condition, " ")), report_of(dict.fromkeys(METRICS)))
    assert not gate.passed
    assert gate.missing == tuple(gate.values)


@pytest.mark.parametrize("text", ["(" * 10**5, "not " * 10**4, "1e" + "9" * 900 + " > zms", "9" * 900 + "> zms"])
def test_rules_that_would_overflow_are_refused(text):
    with pytest.raises(OptionError):
        parse(text)
