"""The gate without rules."""

from dataclasses import replace

import pytest

from calcheck.errors import INFINITE, Message
from calcheck.report import Input, Overall, Report, Result
from calcheck.studies.gate.evaluate import verdict_gates

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
    (gate,) = gates(verdict="none", value=None, warnings=(Message("no-value", "no value: it is nan"),))
    assert not gate.passed
    assert gate.missing == ("zms",)
    assert gate.message == "zms.verdict is none; zms is null (no value: it is nan)"


def test_an_infinite_value_with_a_verdict_has_one_gate():
    """Targets of probability 0 make nll infinite, and its verdict is fail."""
    (gate,) = gates(verdict="fail", value=None, p_value=0.005, warnings=(INFINITE,))
    assert not gate.passed
    assert gate.message == "zms.verdict is fail; zms is inf"
    others = [judged(name, "pass", p_value=0.4, p_value_adjusted=0.6) for name in ("zms", "bias")]
    infinite = judged("nll", "fail", value=None, p_value=0.005, p_value_adjusted=0.005, warnings=(INFINITE,))
    (gate,) = gates_of(*others, infinite, overall=together("fail", 0.005, "nll", "zms", "bias"))
    assert (gate.rule, gate.passed) == ("overall.verdict == fail", False)


def test_an_infinite_value_violates_without_replicates_and_if_the_metrics_pass_together():
    """It has no p-value, or one that few replicates keep large; it takes no part of the level of the others."""
    alone = judged("nll", "fail", value=None, warnings=(INFINITE,))
    by_interval = [judged(name, "pass", zeta=0.2) for name in ("zms", "rce")]
    found = gates_of(*by_interval, alone)
    assert [(gate.rule, gate.passed) for gate in found] == [
        ("abs(zms.zeta) > 1.14", True),
        ("abs(rce.zeta) > 1.14", True),
        ("nll.verdict == fail", False),
    ]
    joined = [judged("zms", "pass", p_value=0.4, p_value_adjusted=0.6), replace(alone, p_value_adjusted=0.2)]
    both, own = gates_of(*joined, overall=together("pass", 0.2, "nll", "zms"))
    assert (both.passed, own.rule, own.passed) == (True, "nll.verdict == fail", False)


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


def test_verdicts_that_are_not_joined_share_a_fifth_of_the_level():
    """What fails together never passes, whatever else the file has; 1 % is 2.5758 standard errors, 1.3142 * 1.9600."""
    pair = [judged(name, "pass", p_value=0.4, p_value_adjusted=0.6) for name in ("zms", "bias")]
    for p, verdict in ((0.04, "fail"), (0.06, "pass")):
        found = gates_of(*pair, judged("lrce", "fail", p_value=0.03), overall=together(verdict, p, "zms", "bias"))
        assert [gate.rule for gate in found] == ["overall.verdict == fail", "lrce.p_value <= 0.01"]
        assert [gate.passed for gate in found] == [verdict == "pass", True]
        assert found[1].message == "lrce.verdict is fail; lrce.p_value is 0.03"
    both, own = gates_of(*pair, judged("rce", "fail", zeta=-1.32), overall=together("pass", 0.3, "zms", "bias"))
    assert (both.passed, own.rule, own.passed) == (True, "abs(rce.zeta) > 1.31", False)


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
