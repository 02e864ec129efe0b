"""The gate without rules."""

from dataclasses import replace

import pytest

from calcheck.gate.verdicts import verdict_gates
from calcheck.messages import Message
from calcheck.report import Input, Report, Result

ZMS = Result(metric="zms", summary="", options={}, unit="1", alternative="two-sided", value=1.25, verdict="pass")


def gates(**changes):
    read = Input(files=(), n=3, dropped=0, predictive=None, columns={})
    return verdict_gates(Report(calcheck="0", input=read, settings={}, results=(replace(ZMS, **changes),)))


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
