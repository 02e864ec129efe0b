"""The gate without rules, and rules on the answer and its effects."""

from dataclasses import replace

import pytest

from calcheck.reports import Conclusion, Input, Report, Result
from calcheck.reports.conclusion import Effect, WorstRegion
from calcheck.studies.gate.evaluate import answer_gates, evaluate_rule, group_gates
from calcheck.studies.gate.rules import parse

SIZE = Effect(topic="size", value=1.1, low=1.0, high=1.19, within=True, p=0.03, text="10 % too narrow")
LOCAL = Effect(topic="inputs", kind="scale", value=0.1, low=0.05, p=0.01, text="off")
MEANS = Effect(topic="inputs", kind="bias", value=0.3, low=0.15, p=0.01, text="off")
GROUP = Result(metric="zms", summary="", options={}, unit="1", value=1.2, slice={"group": "sex=f"}, verdict="pass")


def report_of(answer="yes", *qualifiers, effects=(SIZE, LOCAL, MEANS), **fields):
    read = Input(files=(), n=400, dropped=0, predictive="gaussian", columns={})
    found = Conclusion(answer=answer, qualifiers=qualifiers, tolerance=0.2, level=0.9, effects=effects)
    return Report(
        calcheck="0", input=read, **{"settings": {"tolerance": 0.2}, "results": (), "conclusion": found} | fields
    )


def outcome(rule, report):
    gate = evaluate_rule(parse(rule), report)
    return gate.passed, gate.judged


@pytest.mark.parametrize(
    ("answer", "qualifiers", "passed", "strictly"),
    [
        ("yes", (), True, True),
        ("yes", ("as-tested",), True, True),
        ("yes", ("at-level",), True, False),
        ("yes", ("on-average", "as-tested"), True, False),
        ("not-shown", (), True, False),
        ("no", (), False, False),
    ],
)
def test_a_no_violates_and_strictly_all_but_a_yes_at_every_level_and_everywhere(answer, qualifiers, passed, strictly):
    report = report_of(answer, *qualifiers)
    for strict, expected in ((False, passed), (True, strictly)):
        (gate,) = answer_gates(report, strict=strict)
        assert (gate.passed, gate.judged, gate.level) == (expected, True, "fail")
        assert f"answer is {answer}" in gate.message


def test_a_report_without_an_answer_has_no_gate():
    assert answer_gates(report_of(conclusion=None)) == ()


def test_the_answer_cannot_be_judged_where_dependence_was_only_noticed_unless_it_is_no():
    noticed = {"dependence_noticed": {"reason": "neighbouring rows are alike"}}
    (gate,) = answer_gates(report_of("not-shown", settings=noticed))
    assert (gate.passed, gate.judged) == (False, False)
    (gate,) = answer_gates(report_of("no", settings=noticed))
    assert (gate.passed, gate.judged) == (False, True)


@pytest.mark.parametrize(
    ("rule", "passed"),
    [
        ("answer == 'no'", True),
        ("answer != 'yes'", True),
        ("effects.size.high > 1.3", True),
        ("effects.size.high > 1.18", False),
        ("effects.size.p < 0.05", False),
        ("effects.inputs.low > 0.04", False),
        ("effects.inputs-bias.low > 0.14", False),
        ("effects.ranking.low > 0", False),
        ("qualifiers.on-average == 1", True),
    ],
)
def test_rules_take_the_numbers_of_effects_and_an_absent_one_violates(rule, passed):
    assert outcome(rule, report_of()) == (passed, True)


WORST = WorstRegion(
    where="a>1",
    filter="",
    rows=60,
    direction="too-narrow",
    value=1.6,
    low=1.4,
    high=1.9,
    other_value=1.0,
    level=0.9,
    p_value=0.005,
    text="a>1",
)


@pytest.mark.parametrize(
    ("region", "passed"),
    [
        (WORST, (False, True, False)),
        (replace(WORST, direction="predictions-too-low", value=0.4), (True, False, False)),
        (None, (True, True, True)),
    ],
)
def test_rules_take_the_factor_or_the_bias_of_the_worst_region(region, passed):
    searched = report_of(region=region, settings={"region_searched": True})
    rules = ("region.factor > 1.5", "region.bias > 0.2", "region.rows > 0")
    assert tuple(outcome(rule, searched)[0] for rule in rules) == passed
    if region is None:
        assert not any(outcome(rule, report_of())[0] for rule in rules)


def test_groups_keep_a_gate_each():
    results = (GROUP, replace(GROUP, slice={"group": "sex=m"}, verdict="fail"), replace(GROUP, verdict="none"))
    gates = group_gates(report_of(results=results))
    assert [(each.rule, each.passed) for each in gates] == [
        ("slices['sex=f'].zms.verdict == fail", True),
        ("slices['sex=m'].zms.verdict == fail", False),
    ]
