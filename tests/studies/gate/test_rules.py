"""Rules on results: their language, their evaluation, and comparisons with a baseline."""

import math
import re
from dataclasses import fields, replace

import pytest

from calcheck.errors import Message, OptionError
from calcheck.render.numbers_and_notes import outcome
from calcheck.reports import Gate, Input, Overall, Report, Result
from calcheck.studies.gate.baseline import StoredInterval, Tolerance, compare_with_baseline
from calcheck.studies.gate.evaluate import evaluate_rule
from calcheck.studies.gate.name_resolution import UNKNOWN, SliceSummary, format_values, resolve_rule
from calcheck.studies.gate.rules import DEEPEST, LONGEST, parse

METRICS = ("zms", "ece", "interval-score", "cce", "nll")
FREE = ("details", "options", "slice")
FIELDS = {each.name: None if each.name in FREE else {} for each in fields(Result)}
KNOWN = dict.fromkeys(METRICS, FIELDS) | {
    "cce": {"value": {}, "zeta": {}, "details": {"dof": {}, "reach": {"unit": {}}}}
}
COLUMNS = {"y": "target", "class": "y-1", "pred-1": "[0]", "0x": "first"}
ZMS = Result(
    metric="zms",
    summary="",
    options={"alpha": 0.1},
    unit="1",
    value=1.25,
    low=1.0,
    high=1.5,
    interval="bca",
    reference=1.0,
    zeta=-2.0,
    verdict="fail",
    details={"dof": 27, "kernel": {"name": "rbf", "on": True}, "bins": [{"n": 1}], "nan": math.nan},
    warnings=(Message("few-rows", "12 rows are few"), Message("no-p-value", "no p-value: it was not asked for")),
)
ECE = Result(metric="ece", summary="", options={}, unit="1", value=0.05)
SCORE = Result(metric="interval-score", summary="", options={}, unit="y", value=-3.0)
NLL = Result(
    metric="nll",
    summary="",
    options={},
    unit="1",
    value=None,
    warnings=(Message("no-value", "no value: it is inf"), Message("heavy-tail", "heavy tails")),
)
REPORT = Report(
    calcheck="0",
    input=Input(files=(), n=442, dropped=3, predictive="gaussian", columns=COLUMNS),
    settings={},
    results=(ZMS, ECE, SCORE, NLL),
    overall=Overall(
        verdict="fail",
        p_value=0.005,
        method="maximum relative to limits",
        replicates=199,
        metrics=("zms", "ece"),
        leading="zms",
    ),
)


def evaluate_text(text):
    return evaluate_rule(resolve_rule(parse(text), KNOWN), REPORT)


def violated(text):
    gate = evaluate_text(text)
    assert not gate.missing
    return not gate.passed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ece > 0.05", False),
        ("ece >= 0.05", True),
        ("ece < 0.05", False),
        ("ece <= 5e-2", True),
        ("ece == .05", True),
        ("ece != 0.05", False),
        ("0.04<ece", True),
        ("interval-score < -2.", True),
        ("interval-score > -2", False),
        ("zms.value == 1.25", True),
        ("zms.zeta < -1", True),
        ("abs(zms.zeta) > 1", True),
        ("abs(abs(-2)) == abs( zms.zeta )", True),
        ("zms.low > ece", True),
        ("zms.details.dof < 28", True),
        ("zms.details.kernel.name == 'rbf'", True),
        ('zms.verdict != "fail"', False),
        ("zms.verdict == 'fail'", True),
        ("'fail' == zms.verdict", True),
        ("zms.verdict == fail", True),
        ("fail == zms.verdict", True),
        ("zms.verdict == pass", False),
        ("zms.verdict != none", True),
        ("zms.verdict == undecided or zms.verdict == pass", False),
        ("not zms.verdict == fail", False),
        ("zms.verdict == fail == zms.verdict", True),
        ("zms.interval == bca and zms.unit != y", True),
        ("zms.orientation == none", True),
        ("input.predictive == gaussian", True),
        ("input.columns.class == y-1", True),
        ("zms.details.kernel.name == rbf", True),
        ("zms.options.alpha == 1E-1", True),
        ("zms.unit == 'and'", False),
        ("overall.verdict != pass", True),
        ("overall.p_value < 0.01 and overall.replicates == 199", True),
        ("overall.leading == 'ece'", False),
        ("input.n > 441", True),
        ("input.dropped > 3", False),
        ("input.columns.y == 'target'", True),
        ("(ece > 0.01)", True),
        ("((ece)) > (0.01)", True),
        ("  ece > 0.01\n", True),
        ("ece > 0\n\tor zms > 9", True),
        ("ece > 0or zms > 9", True),
        ("'fail'==zms.verdict and'1'==zms.unit", True),
        ("zms.unit != '\\' and zms.unit != '#' and zms.unit != 'ä'", True),
        ("0.04 < ece < 0.06", True),
        ("0.04 < ece < 0.05", False),
        ("not 1 <= zms.low <= zms <= zms.high <= 1.4", True),
        ("-2 <= ece <= 2 == abs(zms.zeta)", True),
        ("input.columns.class == 'y-1'", True),
        ("input.columns.pred-1 == '[0]'", True),
        ("input.columns.0x == 'first'", True),
    ],
)
def test_a_rule_is_violated_if_its_condition_is_true(text, expected):
    assert violated(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ece > 1 and ece > 1 or ece > 0", True),  # and binds tighter than or, on either side of it
        ("ece > 0 or ece > 1 and ece > 1", True),
        ("(ece > 0 or ece > 1) and ece > 1", False),
        ("not ece > 1 or ece > 0", True),  # not binds tighter than both
        ("not (ece > 1 or ece > 0)", False),
        ("not ece > 0 and ece > 1", False),
        ("not not ece > 0", True),
        ("ece > 1 or ece > 2 or ece > 0", True),
        ("ece > 0 and zms > 0 and input.n > 0", True),
        ("ece > 0 and zms > 0 and input.n < 0", False),
    ],
)
def test_not_binds_tighter_than_and_and_that_tighter_than_or(text, expected):
    assert violated(text) is expected


@pytest.mark.parametrize(
    ("text", "outcome_"),
    [
        ("ece.verdict == fail", "not judged"),
        ("not ece.verdict == none and ece.verdict == fail", "not judged"),
        ("ece.verdict == undecided or ece > 0.06", "not judged"),
        ("ece.verdict == fail and input.n > 10", "not judged"),
        ("ece.verdict == fail and input.n > 1000", "passed"),
        ("ece > 0.06", "passed"),
        ("ece.verdict == fail or zms.verdict == fail", "violated"),
        ("ece.verdict != pass", "violated"),
        ("ece.verdict == none", "violated"),
        ("ece.verdict == fail or nll > 3", "violated"),
    ],
)
def test_a_rule_cannot_be_judged_if_it_depends_on_a_verdict_that_there_is_not(text, outcome_):
    assert outcome(evaluate_text(text)) == outcome_


def test_a_rule_on_an_absent_overall_verdict_cannot_be_judged():
    rule = resolve_rule(parse("overall.verdict == fail"), KNOWN)
    gate = evaluate_rule(rule, replace(REPORT, overall=None))
    assert (gate.judged, gate.passed) == (False, False)
    assert "fewer than two results" in gate.message


def test_a_gate_reports_its_values():
    assert evaluate_text(" abs(zms.zeta) > 1 and ece > 1 ") == Gate(
        rule="abs(zms.zeta) > 1 and ece > 1",
        level="fail",
        passed=True,
        message="zms.zeta is -2; ece is 0.05",
        values={"zms.zeta": -2.0, "ece": 0.05},
    )
    assert evaluate_rule(parse("ece > 0"), REPORT, level="warn").level == "warn"


@pytest.mark.parametrize(
    ("text", "absent"),
    [
        ("nll > 5", ("nll",)),
        ("nll < 5", ("nll",)),
        ("not nll > 5", ("nll",)),
        ("ece > 0 or nll > 5", ("nll",)),
        ("ece > 1 and nll > 5", ("nll",)),
        ("abs(nll.low) != nll.high", ("nll.low", "nll.high")),
        ("zms.p_value < 0.01", ("zms.p_value",)),
        ("zms.details.nan > 1", ("zms.details.nan",)),
        ("ece.interval == 'bca'", ("ece.interval",)),
        ("input.layout == 'x'", ("input.layout",)),
    ],
)
def test_a_missing_number_violates_the_rule_regardless_of_the_rest(text, absent):
    gate = evaluate_text(text)
    assert not gate.passed
    assert gate.missing == absent
    assert all(f"{name} is null" in gate.message for name in absent)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_count_as_missing(value):
    gate = evaluate_rule(parse("ece < 1"), replace(REPORT, results=(replace(ECE, value=value),)))
    assert (gate.passed, gate.values) == (False, {"ece": None})


def test_a_missing_number_is_reported_with_its_reason():
    assert evaluate_text("nll > 5").message == "nll is null (no value: it is inf)"
    assert evaluate_text("zms.p_value < 1").message == "zms.p_value is null (no p-value: it was not asked for)"
    no_interval = replace(
        NLL,
        warnings=(
            *NLL.warnings,
            Message("no-interval", "no interval: one row"),
            Message("no-verdict", "no verdict without an interval"),
        ),
    )
    whys = {"nll": "no value: it is inf", "nll.value": "no value: it is inf", "base.nll.high": "no interval: one row"}
    for name, why in whys.items():
        assert format_values({name: None}, lambda _: no_interval) == f"{name} is null ({why})"
    assert format_values({"nll.zeta": None}, lambda _: no_interval).endswith(
        "no interval: one row; no verdict without an interval)"
    )
    assert evaluate_text("ece.low < 1").message == "ece.low is null (there is no interval)"
    assert evaluate_text("ece.p_value < 1").message == "ece.p_value is null (the null distribution was not simulated)"
    assert evaluate_text("input.layout != 'x'").message == f"input.layout is null ({UNKNOWN})"
    assert (
        format_values(
            {"a": None}, lambda _: replace(ECE, warnings=(Message("layout", "odd"), Message("layout", "strange")))
        )
        == "a is null (odd; strange)"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at the end: expected a finite number, a name such as ece or zms.zeta, 'text', abs(...) or (...)"),
        ("ece", "character 1, 'ece': expected a comparison, e.g. ece > 0.05"),
        ("ece >", "at the end: expected a finite number"),
        ("> 1", "character 1, '> 1': expected a finite number"),
        ("ece > > 1", "character 7, '> 1': expected a finite number"),
        ("ece = 1", "character 5, '= 1': = compares nothing; equality is =="),
        ("ece > 1 && zms > 1", "character 9, '&& zms > 1': unexpected character; a rule consists of < <="),
        ("ece > 1; import os", "character 8"),
        ("__import__('os')", "character 11, \"('os')\": expected and, or, a comparison"),
        ("ece.__class__ > 1 if", "character 19"),
        ("ece > 1 zms", "character 9, 'zms': expected and, or, a comparison, or the end of the rule"),
        ("ece > 1 and", "at the end"),
        ("ece > 1 and zms", "character 13, 'zms': expected a comparison"),
        ("ece and zms > 1", "character 1, 'ece and zms > 1': expected a comparison"),
        ("not ece", "character 5, 'ece': expected a comparison"),
        ("not", "at the end"),
        ("(ece > 1) > 0", "character 2, 'ece > 1) > 0': expected a number, a name or 'text' to compare"),
        ("0 < (ece > 1)", "character 6, 'ece > 1)': expected a number, a name or 'text' to compare"),
        ("abs(ece > 1) > 0", "character 5, 'ece > 1) > 0': expected a number, a name or 'text' to compare"),
        ("abs ece > 1", "character 5, 'ece > 1': expected ( after abs"),
        ("abs > 1", "character 5, '> 1': expected ( after abs"),
        ("abs() > 1", "character 5, ') > 1': expected a finite number"),
        ("(ece > 1", "at the end: expected )"),
        ("(ece > 1 zms", "character 10, 'zms': expected and, or, a comparison, or )"),
        ("ece > not zms", "character 7, 'not zms': expected a finite number"),
        ("zms(ece) > 1", "character 4, '(ece) > 1': expected and, or, a comparison"),
        ("(ece > 1)(zms)", "character 10, '(zms)': expected and, or"),
        ("()", "character 2, ')': expected a finite number"),
        ("ece > 1_000", "character 8, '_000': expected and, or"),
        ("ece > 0x10", "character 8, 'x10': expected and, or"),
        ("ece > f'{zms}'", "character 8, \"'{zms}'\": expected and, or"),
        ("ece > zms[0]", "character 10, '[0]': unexpected character"),
        ("ece > 1 # zms", "character 9, '# zms': unexpected character"),
        ("zms.unit == '1\\'' > 0", 'character 17, "\' > 0": unclosed quote'),
        ("lambda > 1", "unknown metric 'lambda'"),
        ("abs(not ece > 1) > 0", "character 5, 'not ece > 1) > 0': expected a number, a name or 'text' to compare"),
        ("0 < ece < zms > 1 and zms", "character 23, 'zms': expected a comparison"),
        ("0 < ece < (zms > 1)", "character 12, 'zms > 1)': expected a number, a name or 'text' to compare"),
        ("ece > 1)", "character 8, ')': expected and, or"),
        ("ece > - 1", "character 7, '- 1': unexpected character"),
        ("ece > 1e999", "character 7, '1e999': expected a finite number"),
        ("ece > 1e", "character 8, 'e': expected and, or"),
        ("ece > nan", "unknown metric 'nan'"),
        ("zms == fail", "'fail' is a verdict: compare a field with it, e.g. zms.verdict == fail"),
        ("ece > ٣", "character 7"),
        ("ece == 'x", 'character 8, "\'x": unclosed quote'),
        ("and > 1", "character 1, 'and > 1': expected a finite number"),
        ("1 > 2", "it contains no name from the report"),
        ("'a' == 'b'", "it contains no name from the report"),
        ("(" * (DEEPEST + 1) + "ece > 1" + ")" * (DEEPEST + 1), f"at most {DEEPEST} nested parentheses"),
        ("not " * (DEEPEST + 1) + "ece > 1", f"at most {DEEPEST} nested parentheses"),
        ("abs(" * (DEEPEST + 1) + "ece" + ")" * (DEEPEST + 1) + " > 1", f"at most {DEEPEST} nested parentheses"),
        ("x" * (LONGEST + 1), "a rule has at most 1,000 characters, got 1,001: 'xxxx"),
        ("ecee > 1", "character 1, 'ecee > 1': unknown metric 'ecee'. Did you mean 'ece'?"),
        ("ece > 1 or zms > crps", "character 18, 'crps': unknown metric 'crps'"),
        ("ece-1 > 0", "unknown metric 'ece-1'"),
        ("value > 1", "unknown metric 'value'"),
        ("zms.zetta > 1", "zms has no field 'zetta'. Did you mean 'zeta'?"),
        (
            "ece > 1 or cce.low > 1",
            "character 12, 'cce.low > 1': cce has no field 'low'. Available fields: value, zeta",
        ),
        ("zms.violated > 1", "zms has no field 'violated'"),
        ("input.rows > 1", "input has no field 'rows'. Available fields: files, n, dropped"),
        ("input > 1", "input is neither a number nor text. Use one of its entries: files, n"),
        ("cce > 1", "the report has no metric 'cce'. Available metrics: zms, ece"),
        ("zms.details > 1", "zms.details is neither a number nor text. Use one of its entries: dof, kernel, bins"),
        ("zms.details.edf > 1", "zms.details.edf is not in the report: no 'edf'. Available: dof, kernel, bins, nan"),
        ("zms.details.bins > 1", "zms.details.bins is neither a number nor text"),
        ("zms.details.bins.n > 1", "no 'n'. It has no entries"),
        ("zms.value.real > 1", "zms.value has no field 'real'. It has no fields"),
        ("zms.details.kernel.on == 1", "zms.details.kernel.on is neither a number nor text"),
        ("zms.warnings == 'x'", "zms.warnings is neither a number nor text"),
        ("zms.verdict == 'failed'", "zms.verdict is never 'failed'. Did you mean 'fail'?"),
        ("ece > 1 or 'bad' == zms.verdict", "zms.verdict is never 'bad'. Available: pass, fail, undecided, none"),
        ("zms.pvalue < 1", "zms has no field 'pvalue'. Did you mean 'p_value'?"),
        ("zsm > 1", "unknown metric 'zsm'. Did you mean 'zms'?"),
        ("banana > 1", "unknown metric 'banana'. Available: zms, ece, interval-score, cce, nll, input"),
        ("fail == pass", "'fail' is a verdict"),
        ("ece == fail or zms.verdict == fail", "'fail' is a verdict"),
        ("zms.verdict == failing", "zms.verdict is never 'failing'. Did you mean 'fail'?"),
        ("zms.verdict != zsm", "zms.verdict is never 'zsm'. Available: pass, fail, undecided, none"),
        ("zms.interval == bcaa", "zms.interval is never 'bcaa'. Did you mean 'bca'?"),
        ("simulate == zms.reference_kind", "zms.reference_kind is never 'simulate'. Did you mean 'simulated'?"),
        ("zms.p_value == small", "unknown metric 'small'"),
        ("zms.unit == ece.unitt", "ece has no field 'unitt'. Did you mean 'unit'?"),
        ("zms.verdict > fail", "compares 'fail' > 'fail'"),
        ("zms.unit > 1", "compares '1' > '1'"),
        ("zms.unit == 1", "compares '1' == '1': compare numbers with numbers, or text with text by == or !="),
        ("zms.unit < 'y'", "compares '1' < 'y'"),
        ("ece > 0 or zms.unit > 1", "compares"),
        ("ece > 1 and zms.unit > 1", "compares"),
        ("not zms.unit > 1", "compares"),
        ("abs(zms.unit) > 1", "takes abs(...) of the text '1'"),
    ],
)
def test_rules_that_do_not_apply_to_the_report_are_refused(text, message):
    with pytest.raises(OptionError) as refused:
        evaluate_text(text)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_rule_of_maximal_depth_is_parsed():
    deep = "(" * DEEPEST + "ece > 1" + ")" * DEEPEST
    assert parse(deep).condition == parse("ece > 1").condition
    assert violated(" or ".join(["(ece>1)"] * 90) + " or ece > 0")


def test_a_rule_lists_its_metrics_each_once():
    found = parse("ece > 0 or abs(zms.zeta) > zms.high or not input.n < ece.low")
    assert found.metrics() == ("ece", "zms")
    assert [str(name) for name in found.names()] == ["ece", "zms.zeta", "zms.high", "input.n", "ece.low"]


def baseline_gate(value, *, allowed=None, stored=ZMS):
    (gate,) = compare_with_baseline(replace(REPORT, results=(replace(ZMS, value=value),)), [stored], allowed)
    assert gate.level == "fail"
    return gate


@pytest.mark.parametrize(
    ("rtol", "atol", "value", "passed"),
    [
        (0.2, 0.0, 1.5, True),  # 1.25 ± 0.25
        (0.2, 0.0, 1.0, True),
        (0.2, 0.0, 1.50001, False),
        (0.2, 0.0, 0.99999, False),
        (0.0, 0.25, 1.5, True),
        (0.0, 0.25, 1.51, False),
        (0.1, 0.125, 1.5, True),
        (0.0, 0.0, 1.25, True),
    ],
)
def test_a_change_beyond_both_tolerances_violates(rtol, atol, value, passed):
    gate = baseline_gate(value, allowed=Tolerance(rtol=rtol, atol=atol))
    assert gate.passed is passed
    assert gate.values == {"zms": value, "base.zms.value": 1.25}


def test_the_relative_tolerance_refers_to_the_stored_magnitude():
    stored = replace(ZMS, value=-1.25)
    assert baseline_gate(-1.5, stored=stored, allowed=Tolerance(rtol=0.2, atol=0)).passed
    assert not baseline_gate(1.25, stored=stored, allowed=Tolerance(rtol=0.2, atol=0)).passed


@pytest.mark.parametrize(("value", "passed"), [(1.0, True), (1.5, True), (0.9999, False), (1.5001, False)])
def test_a_value_outside_the_stored_interval_violates(value, passed):
    gate = baseline_gate(value, allowed=StoredInterval())
    assert gate.passed is passed
    assert gate.rule == "zms is within [1, 1.5]"
    assert gate.values == {"zms": value, "base.zms.low": 1.0, "base.zms.high": 1.5}


@pytest.mark.parametrize(
    ("value", "stored", "allowed", "message"),
    [
        (None, ZMS, Tolerance(1, 1), "zms is null (no p-value: it was not asked for)"),
        (None, ZMS, StoredInterval(), "zms is null (no p-value: it was not asked for)"),
        (1, replace(ZMS, value=None, warnings=()), Tolerance(1, 1), "zms is 1; base.zms.value is null (the report"),
        (
            1,
            replace(ZMS, low=None, warnings=(Message("no-interval", "no interval"),)),
            StoredInterval(),
            "base.zms.low is null (no interval)",
        ),
        (1, replace(ZMS, high=None), StoredInterval(), "base.zms.high is null"),
    ],
)
def test_a_value_that_is_missing_now_or_in_the_baseline_violates(value, stored, allowed, message):
    gate = baseline_gate(value, stored=stored, allowed=allowed)
    assert not gate.passed
    assert gate.missing
    assert message in gate.message


def test_a_stored_interval_that_excludes_its_own_value_is_reported():
    gate = baseline_gate(0.9, stored=replace(ZMS, value=0.9), allowed=StoredInterval())
    assert not gate.passed
    assert gate.message == "zms is 0.9; the stored value 0.9 is also outside its interval: compare zms with --rtol"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cce.details.dofs > 1", "cce.details has no field 'dofs'. Did you mean 'dof'?"),
        ("cce.details.bins > 1", "cce.details has no field 'bins'. Available fields: dof, reach"),
        ("cce.details.reach.miles > 1", "cce.details.reach has no field 'miles'. Available fields: unit"),
        ("cce.details.dof.value > 1", "cce.details.dof has no field 'value'. It has no fields"),
    ],
)
def test_a_rule_on_a_detail_that_cannot_exist_is_refused_before_computing(text, message):
    with pytest.raises(OptionError, match=re.escape(message)):
        resolve_rule(parse(text), KNOWN)


def test_a_rule_on_an_absent_overall_verdict_is_violated_with_the_reason():
    rule = resolve_rule(parse("overall.p_value < 0.01"), KNOWN)
    gate = evaluate_rule(rule, replace(REPORT, overall=None))
    assert not gate.passed
    assert gate.message == "overall.p_value is null (fewer than two results have p-values from the same replicates)"
    assert rule.metrics() == ()
    assert rule.refers_to("overall")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("overall > 1", "overall is neither a number nor text. Use one of its entries: verdict, p_value"),
        ("overall.metrics == zms", "overall.metrics is neither a number nor text"),
        ("overall.p < 0.01", "overall has no field 'p'"),
        ("overall.verdict == wrong", "overall.verdict is never 'wrong'"),
    ],
)
def test_a_rule_on_something_else_of_the_overall_verdict_is_refused(text, expected):
    with pytest.raises(OptionError, match=re.escape(expected)):
        evaluate_text(text)


def test_the_summary_of_groups_counts_those_in_which_a_metric_fails():
    def group(*verdicts, p=None):
        return {str(place): replace(ZMS, verdict=each, p_value_adjusted=p) for place, each in enumerate(verdicts)}

    groups = {"a": group("pass", "fail", p=0.02), "b": group("pass", p=0.3), "c": group("none"), "d": group("pass")}
    assert SliceSummary.from_groups(groups) == SliceSummary(min_p=0.02, groups=4, failed=1)
    assert SliceSummary.from_groups({"c": group("none")}) == SliceSummary(min_p=None, groups=1, failed=0)
