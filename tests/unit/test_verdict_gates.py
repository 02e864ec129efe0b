"""The gate without rules."""

from dataclasses import replace

import pytest

from calcheck.gate.verdicts import verdict_gates
from calcheck.messages import Message
from calcheck.report import Input, Overall, Report, Result

ZMS = Result(metric="zms", summary="", options={}, unit="1", alternative="two-sided", value=1.25, verdict="pass")


def gates_of(*results, overall=None):
    read = Input(files=(), n=3, dropped=0, predictive=None, columns={})
    return verdict_gates(Report(calcheck="0", input=read, settings={}, results=results, overall=overall))


def gates(**changes):
    return gates_of(replace(ZMS, **{"p_value": 0.5} | changes))


def judged(metric, verdict, **fields):
    return replace(ZMS, metric=metric, verdict=verdict, **fields)


def together(verdict, p, *metrics):
    return Overall(verdict=verdict, p_value=p, method="maximum", replicates=199, metrics=metrics, leading=metrics[0])


@pytest.mark.parametrize(("verdict", "passed"), [("pass", True), ("undecided", True), ("fail", False)])
def test_only_the_verdict_fail_violates(verdict, passed):
    (gate,) = gates(verdict=verdict)
    assert gate.passed is passed
    assert gate.level == "fail"
    assert gate.message == f"zms.verdict is {verdict}; zms is 1.25"


def test_a_result_without_a_verdict_has_no_gate():
    assert gates(verdict="none") == ()
    assert gates(verdict="none", alternative="none", value=None) == ()


def test_a_missing_value_violates_although_there_is_no_verdict():
    (gate,) = gates(verdict="none", value=None, warnings=(Message("no-value", "no value: it is inf"),))
    assert not gate.passed
    assert gate.missing == ("zms",)
    assert gate.message == "zms.verdict is none; zms is null (no value: it is inf)"


def test_an_infinite_value_with_a_verdict_has_one_gate():
    """Targets of probability 0 make nll infinite, and its verdict is fail."""
    (gate,) = gates(verdict="fail", value=None, p_value=0.005, warnings=(Message("no-value", "no value: it is inf"),))
    assert not gate.passed
    assert gate.message == "zms.verdict is fail; zms is null (no value: it is inf)"
    others = [judged(name, "pass", p_value=0.4, p_value_adjusted=0.6) for name in ("zms", "bias")]
    infinite = judged("nll", "fail", value=None, p_value=0.005, p_value_adjusted=0.005)
    (gate,) = gates_of(*others, infinite, overall=together("fail", 0.005, "nll", "zms", "bias"))
    assert (gate.rule, gate.passed) == ("overall.verdict == fail", False)


def test_the_overall_verdict_stands_for_the_metrics_that_it_joins():
    """One of two verdicts fails at 5 %, as by chance: the gate is that of both together."""
    pair = (
        judged("zms", "fail", p_value=0.03, p_value_adjusted=0.06),
        judged("bias", "pass", p_value=0.4, p_value_adjusted=0.6),
    )
    (gate,) = gates_of(*pair, overall=together("pass", 0.06, "zms", "bias"))
    assert (gate.rule, gate.passed) == ("overall.verdict == fail", True)
    assert gate.message == "overall.verdict is pass; overall.p_value is 0.06; overall.leading is zms"
    (gate,) = gates_of(*pair, overall=together("fail", 0.04, "zms", "bias"))
    assert not gate.passed


def test_verdicts_that_are_not_joined_share_the_level():
    pair = [judged(name, "pass", p_value=0.4, p_value_adjusted=0.6) for name in ("zms", "bias")]
    alone = judged("cce", "fail", p_value=0.03)
    both, own = gates_of(*pair, alone, overall=together("fail", 0.04, "zms", "bias"))
    assert (both.rule, both.passed) == ("overall.p_value <= 0.025", True)
    assert (own.rule, own.passed, own.message) == (
        "cce.p_value <= 0.025",
        True,
        "cce.verdict is fail; cce.p_value is 0.03",
    )
    both, own = gates_of(*pair, replace(alone, p_value=0.02), overall=together("fail", 0.02, "zms", "bias"))
    assert not both.passed
    assert not own.passed


def test_verdicts_of_intervals_share_the_level():
    """Two of them have 2.5 % each: 2.2414 standard errors, which is 1.1436 times 1.9600."""
    for zeta, passed in ((1.13, True), (-1.16, False)):
        gates = gates_of(judged("zms", "fail", zeta=zeta), judged("rce", "pass", zeta=0.2))
        assert [gate.rule for gate in gates] == ["abs(zms.zeta) > 1.14", "abs(rce.zeta) > 1.14"]
        assert [gate.passed for gate in gates] == [passed, True]


def test_without_an_overall_verdict_each_metric_is_judged_by_its_adjusted_p_value():
    found = gates_of(
        judged("zms", "fail", p_value=0.03, p_value_adjusted=0.04),
        judged("bias", "fail", p_value=0.04, p_value_adjusted=0.06),
    )
    assert [(gate.rule, gate.passed) for gate in found] == [
        ("zms.p_value_adjusted <= 0.05", False),
        ("bias.p_value_adjusted <= 0.05", True),
    ]


def test_verdicts_of_groups_are_adjusted_already_and_keep_their_gates():
    groups = [judged("zms", verdict, slice={"group": name}) for name, verdict in (("g=a", "fail"), ("g=b", "pass"))]
    assert [gate.passed for gate in gates_of(*groups)] == [False, True]
