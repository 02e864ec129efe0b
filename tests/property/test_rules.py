"""Laws of the language of rules.

1. Whatever is written, it is a rule or refused: nothing else is ever raised.
2. A rule is what was meant, however it is spaced and bracketed.
3. A rule holds when Python, whose grammar ours is a part of, says so.
4. A rule with an absent number is violated.
"""

import contextlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calcheck.errors import OptionError
from calcheck.gate.evaluate import evaluate_rule, validate_rule
from calcheck.gate.rules import Abs, BoolOp, Comparison, Constant, Name, Not, parse
from calcheck.report import Input, Report, Result

METRICS = ("zms", "rce", "interval-score")
OPERATORS = ("<", "<=", ">", ">=", "==", "!=")
WORDS = [*OPERATORS, *METRICS, "zms.zeta", "abs", "(", ")", "and", "or", "not", "1", "-2.5e-3", "'x'", '"', "zms.unit"]
# how long making an example takes says how busy the machine is, not whether a law holds
quick = settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])

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


def written(node, space):
    """Write a rule down; what is joined or denied is bracketed, as no precedence is relied on."""
    match node:
        case Constant():
            return repr(node.value)
        case Name():
            return str(node)
        case Abs():
            return f"abs({space}{written(node.operand, space)}{space})"
        case Comparison():
            return f"{written(node.left, space)}{space}{node.operator}{space}{written(node.right, space)}"
        case Not():
            return f"not ({written(node.condition, space)})"
        case BoolOp():
            return f" {node.word} ".join(f"({space}{written(each, space)})" for each in node.conditions)


def named(node):
    return any(f"{name}" in written(node, " ") for name in METRICS)


@quick
@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)))
def test_whatever_is_written_is_a_rule_or_refused(text):
    with contextlib.suppress(OptionError):
        rule = parse(text)
        validate_rule(rule, dict.fromkeys(METRICS, ("value", "zeta", "unit")))
        evaluate_rule(rule, report_of({"zms": 1.0, "rce": 0.0, "interval-score": None}))


@quick
@given(conditions.filter(named), st.sampled_from(["", " ", "  \t\n"]))
def test_a_rule_is_what_was_meant(condition, space):
    assert parse(written(condition, space)).condition == condition


@quick
@given(
    st.lists(
        st.tuples(st.sampled_from(["and", "or"]), st.sampled_from(["", "not ", "not not "]), comparisons),
        min_size=1,
        max_size=5,
    ).filter(lambda parts: any(named(part) for *_, part in parts)),
    st.tuples(small, small, small),
)
def test_a_rule_holds_when_python_says_so(parts, values):
    """Without any brackets: it is precedence that is compared."""
    text = " ".join(f"{joint} {denial}{written(part, ' ')}" for joint, denial, part in parts)
    text = text.removeprefix("and ").removeprefix("or ")
    found = dict(zip(METRICS, values, strict=True))
    expected = eval(text.replace("interval-score", "score"), {}, {**found, "score": values[-1]})  # noqa: S307
    assert evaluate_rule(parse(text), report_of(found)).passed is not expected


@quick
@given(conditions.filter(named))
def test_a_rule_with_an_absent_number_is_violated(condition):
    gate = evaluate_rule(parse(written(condition, " ")), report_of(dict.fromkeys(METRICS)))
    assert not gate.passed
    assert gate.missing == tuple(gate.values)


@pytest.mark.parametrize("text", ["(" * 10**5, "not " * 10**4, "1e" + "9" * 900 + " > zms", "9" * 900 + "> zms"])
def test_what_would_overflow_is_refused(text):
    with pytest.raises(OptionError):
        parse(text)
