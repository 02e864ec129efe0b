"""`calcheck check`: a gate passes files that satisfy its rules, and no others."""

import json
import re
import signal
import subprocess
import sys
from itertools import accumulate
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from calcheck.render import FORMATS, format_names
from tests.helpers.files import columns, write
from tests.helpers.schemas import validate

FEW = ("--resamples", 100)
SATISFIED, VIOLATED = "mae < 0", "mae > 0"


def predictions(spread=1.0, n=60):
    """Return predictions whose errors are the predicted ones times a factor; ZMS is the square of the factor."""
    errors = np.tile([1.0, -1.0], n // 2)
    std = np.linspace(1, 2, n)
    return {"id": np.arange(n), "y": spread * errors * std, "mean": np.zeros(n), "std": std}


@pytest.fixture
def right(tmp_path):
    """Return the path of predictions whose ZMS is 1."""
    return write(tmp_path / "right.parquet", predictions())


@pytest.fixture
def wrong(tmp_path):
    """Return the path of predictions whose ZMS is 4."""
    return write(tmp_path / "wrong.csv", predictions(spread=2))


@pytest.fixture
def calibrated(tmp_path):
    """Return the path of right predictions of 500 rows."""
    rng = np.random.default_rng(0)
    std = np.exp(0.3 * rng.normal(size=500))
    return write(tmp_path / "calibrated.parquet", {"y": rng.normal(0, std), "mean": np.zeros(500), "std": std})


@pytest.fixture
def impossible(tmp_path):
    """Return the path of predictions whose NLL is infinite: a target below 0 is impossible for a gamma distribution."""
    parts = {"y": [-1.0, 2.0, 3.0, 4.0], "a": [1.0, 2.0, 3.0, 4.0], "scale": [1.0] * 4, "dist": ["gamma:scipy"] * 4}
    return write(tmp_path / "impossible.parquet", {name: np.array(values) for name, values in parts.items()})


def test_a_satisfied_rule_passes_and_a_violated_one_fails(calcheck, right, wrong):
    rule = ("--fail-on", "zms > 1.5")
    passed, failed = calcheck("check", right, *rule, *FEW), calcheck("check", wrong, *rule, *FEW)
    assert (passed.code, passed.err) == (0, "")
    assert (failed.code, failed.err) == (1, "")
    assert "zms > 1.5  passed   zms is 1\n" in passed.out
    assert "zms > 1.5  violated  zms is 4\n" in failed.out
    assert max(map(len, failed.out.splitlines()[1:])) <= 100


def test_all_violated_rules_are_reported_and_one_is_enough_to_fail(calcheck, wrong):
    found = calcheck(
        "check", wrong, "--fail-on", SATISFIED, "--fail-on", "zms > 3", "--fail-on", "zms.n < 0 or zms > 3"
    )
    assert "zms has no field 'n'" in found.refused()
    never = calcheck("check", wrong, "--fail-on", "ece.reference_low > 1").refused()
    assert "ece has no field 'reference_low'. Did you mean 'reference'?" in never
    found = calcheck("check", wrong, "--fail-on", SATISFIED, "--fail-on", "zms > 3", "--fail-on", "rce < 0", *FEW)
    assert found.code == 1
    assert [line.split()[-4] for line in found.out.splitlines() if " is " in line][:3] == [
        "passed",
        "violated",
        "violated",
    ]


def test_only_metrics_in_rules_and_requested_ones_are_computed(calcheck, right):
    report = json.loads(
        calcheck(
            "check", right, "--fail-on", "abs(zms) > 2 or ece > 2", "--metrics", "mae", *FEW, "--format", "json"
        ).out
    )
    assert [result["metric"] for result in report["results"]] == ["zms", "ece", "mae"]
    assert report["skipped"] == []
    assert calcheck("check", right, "--fail-on", "input.n < 60").code == 0
    assert calcheck("check", right, "--fail-on", "input.n == 60", "--fail-on", "input.n > 9").code == 1


@pytest.mark.slow
def test_without_rules_the_answer_is_the_rule(calcheck, wrong, calibrated):
    found = calcheck("check", wrong, "--no-bootstrap", "--format", "json")
    report = json.loads(found.out)
    assert (found.code, found.err) == (1, "")
    validate(report)
    told = [each["text"] for each in report["conclusion"]["effects"] if each["within"] is False]
    assert report["gates"] == [
        {
            "rule": "answer == 'no'",
            "level": "fail",
            "passed": False,
            "message": "; ".join(["answer is no", *told]),
            "values": {"answer": "no"},
            "judged": True,
        }
    ]
    assert {"cce", "jmmd"} <= {skipped["metric"] for skipped in report["skipped"]}
    assert calcheck("check", wrong, "--no-bootstrap", "--exit-zero").code == 0
    assert calcheck("check", wrong, "--metrics", "width", "--no-bootstrap", "--format", "junit").code == 1
    assert calcheck("check", calibrated, "--metrics", "width", "--no-bootstrap").code == 0


@pytest.mark.slow
def test_the_tolerance_and_strictness_decide_what_passes(calcheck, calibrated):
    """A right model of 500 rows is within 20 %, and not shown to be within 8 %, which only --strict refuses."""
    options = ("--metrics", "zms", "--no-bootstrap")
    assert calcheck("check", calibrated, *options, "--strict").code == 0
    assert calcheck("check", calibrated, *options, "--tolerance", "0.08").code == 0
    strict = calcheck("check", calibrated, *options, "--tolerance", "0.08", "--strict", "--format", "json")
    report = json.loads(strict.out)
    assert (strict.code, report["settings"]["tolerance"], report["conclusion"]["answer"]) == (1, 0.08, "not-shown")
    assert report["conclusion"]["rows_needed"] > 500
    rule = ("--fail-on", "effects.size.high > 1.01")
    assert calcheck("check", calibrated, *options, *rule).code == 1
    assert calcheck("check", calibrated, *options, "--fail-on", "answer == no").code == 0


def test_without_rules_a_failure_that_many_metrics_have_by_chance_is_no_violation(calcheck, tmp_path):
    """A right model of which some verdict is fail, as in a third of data sets, and all metrics together pass."""
    rng = np.random.default_rng(1)
    std = np.exp(rng.normal(0, 0.3, 60))
    path = write(tmp_path / "right.parquet", {"y": rng.normal(0, std), "mean": np.zeros(60), "std": std})
    found = calcheck("check", path, "--no-bootstrap", "--replicates", 99, "--format", "json")
    report = json.loads(found.out)
    assert "fail" in {result["verdict"] for result in report["results"]}
    assert report["overall"]["verdict"] == "pass"
    assert found.code == 0


def test_without_rules_a_file_whose_rows_depend_on_each_other_cannot_be_judged(calcheck, tmp_path):
    """Errors of an autoregression with the coefficient 0.9, by a column of numbers that increases."""
    noise = np.sqrt(1 - 0.9**2) * np.random.default_rng(0).normal(size=300)
    errors = np.array(list(accumulate(noise, lambda error, new: 0.9 * error + new)))
    data = {"hour": np.arange(300), "y": errors, "mean": np.zeros(300), "std": np.ones(300)}
    found = calcheck("check", write(tmp_path / "hours.csv", data), "--replicates", 39, *FEW, "--format", "json")
    (gate,) = json.loads(found.out)["gates"]
    assert (found.code, gate["rule"], gate["passed"], gate["judged"]) == (3, "answer == 'no'", False, False)
    assert gate["message"].endswith("nothing is judged, since rows depend on each other by 'hour': pass --time hour")


@pytest.mark.parametrize("options", [(), ("--no-null",), ("--replicates", 19)])
@pytest.mark.parametrize("metrics", [("--metrics", "nll"), ("--metrics", "nll,zms,mae")])
def test_without_rules_impossible_targets_are_a_violation(calcheck, impossible, metrics, options):
    found = calcheck("check", impossible, "--no-bootstrap", *metrics, *options, "--format", "junit")
    assert found.code == 1
    assert 'type="violated"' in found.out
    if metrics == ("--metrics", "nll"):
        assert "answer is no; " in found.out
        assert "1 target has probability 0" in found.out


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("mae.low > 1000", "mae.low is null (no interval: the bootstrap was turned off (--no-bootstrap))"),
        ("mae.low < 1000", "mae.low is null"),
        ("not mae.low < 1000 and mae < 0", "mae.low is null"),
    ],
)
def test_a_missing_value_never_passes(calcheck, impossible, rule, message):
    found = calcheck("check", impossible, "--fail-on", rule, "--no-bootstrap")
    assert found.code == 1
    assert message in " ".join(found.out.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--metrics", "cce"), "cce needs inputs"),
        (("--fail-on", ""), "rule '', at the end"),
        (("--fail-on", "zms"), "expected a comparison"),
        (("--fail-on", SATISFIED, "--warn-on", "zms >"), "rule 'zms >', at the end"),
        (("--fail-on", "zmss > 1"), "unknown metric 'zmss'. Did you mean 'zms'?"),
        (("--fail-on", "zms.details.x > 1", *FEW), "zms.details has no field 'x'. Available fields: bootstrap"),
        (("--fail-on", "cce > 1"), "cce needs inputs to condition on (--embedding or --inputs)"),
        (("--fail-on", SATISFIED, "--metrics", "cce"), "cce needs inputs"),
        (("--fail-on", SATISFIED, "--metrics", "zmss"), "--metrics: unknown metric"),
        (("--fail-on", "ence > 1", *FEW, "--subsample", 5), "10 bins need at least 10 rows"),
        (
            ("--fail-on", SATISFIED, "--format", "xml"),
            f"--format takes one of {', '.join(format_names('rules'))}, got 'xml'",
        ),
        (("--fail-on", SATISFIED, "--target", "z"), "there is no column 'z'"),
        (("--fail-on", SATISFIED, "-o", "no/report.json"), "the folder does not exist"),
        (("--fail-on", SATISFIED, "--summary", "no/summary.md"), "the folder does not exist"),
        (("--fail-on", SATISFIED, "--rtol", "0.1"), "--rtol sets the tolerance for a comparison with a stored report"),
        (("--fail-on", SATISFIED, "--within-interval"), "--within-interval sets the tolerance"),
        (
            ("--against", "b.json", "--within-interval", "--atol", "1"),
            "--atol and --within-interval contradict each other",
        ),
        (("--against", "b.json", "--rtol", "-1"), "--rtol must be >= 0"),
        (("--against", "b.json"), "there is no file b.json"),
        (("no.csv", "--fail-on", SATISFIED), "there is no file no.csv"),
    ],
)
def test_bad_input_never_passes(calcheck, right, arguments, message):
    assert message in calcheck("check", right, *arguments).refused()
    assert message in calcheck("check", right, *arguments, "--exit-zero").refused()


def test_nan_in_the_file_never_passes(calcheck, tmp_path):
    path = write(tmp_path / "nan.parquet", predictions() | {"y": np.full(60, np.nan)})
    assert "must be finite numbers" in calcheck("check", path, "--fail-on", SATISFIED).refused()


def test_warnings_are_shown_and_do_not_fail(calcheck, wrong):
    found = calcheck("check", wrong, "--warn-on", "zms > 3", "--fail-on", SATISFIED, *FEW)
    assert found.code == 0
    assert "zms > 3  warned   zms is 4" in found.out
    assert calcheck("check", wrong, "--warn-on", "zms > 3", "--fail-on", VIOLATED, *FEW).code == 1


def test_violations_do_not_fail_with_exit_zero(calcheck, wrong, monkeypatch):
    found = calcheck("check", wrong, "--fail-on", "zms > 3", "--exit-zero", *FEW)
    assert found.code == 0
    assert "zms > 3  violated  zms is 4" in found.out
    monkeypatch.setenv("CALCHECK_CHECK_EXIT_ZERO", "1")
    assert calcheck("check", wrong, "--fail-on", "zms > 3", *FEW) == found


def test_the_report_is_written_on_violations_but_not_on_errors(calcheck, right, tmp_path):
    out, summary = tmp_path / "report.json", tmp_path / "summary.md"
    summary.write_bytes(b"before \xff\n")
    arguments = ("--format", "json", "-o", out, "--summary", summary, "--no-bootstrap")
    assert calcheck("check", right, "--fail-on", "zms.details.x > 1", *arguments).code == 2
    assert not out.exists()
    assert summary.read_bytes() == b"before \xff\n"
    found = calcheck("check", right, "--fail-on", VIOLATED, *arguments)
    assert (found.code, found.out) == (1, "")
    assert json.loads(out.read_text())["gates"][0]["passed"] is False
    assert summary.read_bytes().startswith(b"before \xff\n### calcheck: 1 of 1 rule violated\n")
    assert calcheck("check", right, "--fail-on", SATISFIED, *arguments).code == 0
    assert b"### calcheck: 1 rule passed\n" in summary.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.json", "right.parquet", "summary.md"]


def test_outputs_never_overwrite_inputs(calcheck, right, tmp_path):
    base = baseline(calcheck, right, tmp_path)
    before = Path(base).read_bytes()
    for arguments in (("-o", base), ("--summary", base), ("-o", right), ("--summary", right)):
        refused = calcheck("check", right, "--against", base, *arguments, *FEW).refused()
        assert "would overwrite" in refused
    assert Path(base).read_bytes() == before


def test_json_matches_the_schema_and_has_the_gates(calcheck, impossible):
    rules = ("--fail-on", "mae > 100", "--fail-on", "nll.value > 1 or mae.unit == 'x'", "--warn-on", "mae >= 0")
    report = json.loads(calcheck("check", impossible, *rules, "--no-bootstrap", "--format", "json").out)
    validate(report)
    mae = report["results"][1]["value"]
    assert all(gate.pop("judged") for gate in report["gates"])
    assert report["gates"] == [
        {"rule": "mae > 100", "level": "fail", "passed": True, "message": f"mae is {mae:.3g}", "values": {"mae": mae}},
        {
            "rule": "nll.value > 1 or mae.unit == 'x'",
            "level": "fail",
            "passed": False,
            "message": "nll.value is inf; mae.unit is y",
            "values": {"nll.value": None, "mae.unit": "y"},
        },
        {"rule": "mae >= 0", "level": "warn", "passed": False, "message": f"mae is {mae:.3g}", "values": {"mae": mae}},
    ]
    for wrong in ({"level": "note"}, {"passed": "yes"}, {"values": {"mae": []}}, {"more": 1}):
        with pytest.raises(jsonschema.ValidationError):
            validate(report | {"gates": [report["gates"][0] | wrong]})


@pytest.mark.defaults
@pytest.mark.slow  # test_commands.py and test_evaluate.py compare bytes of other commands
def test_the_same_command_gives_the_same_bytes_in_every_format(calcheck, wrong):
    """Twice each in processes of their own, whose sets have other orders; there, all formats one after another."""
    command = ("check", wrong, "--fail-on", "zms > 3", "--warn-on", "rce.zeta < 0", *FEW, "--format")
    code = (
        "import contextlib, sys; from calcheck import cli\n"
        f"for form in {[*FORMATS]}:\n"
        f"    sys.argv = ['calcheck', *{[*map(str, command)]}, form]\n"
        "    with contextlib.suppress(SystemExit):\n"
        "        cli.main()\n"
    )
    first, second = (subprocess.run([sys.executable, "-c", code], capture_output=True, check=True) for _ in range(2))
    assert first.stdout == second.stdout
    assert first.stdout.decode() == "".join(calcheck(*command, form).out for form in FORMATS)
    assert first.stderr == b""


def shell(command):
    """Run a command line in bash; `calcheck` is the program under test."""
    program = f'calcheck() {{ "{sys.executable}" -m calcheck "$@"; }}\n'
    return subprocess.run(["bash", "-c", program + command], capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.slow
def test_a_shell_pipeline_continues_only_if_the_gate_passes(wrong, tmp_path):
    check = "calcheck check - --input-format csv --fail-on 'zms > 1.5' --no-bootstrap --no-null -o /dev/null"
    csv = write(tmp_path / "right.csv", predictions())
    assert shell(f"cat {csv} | {check} && echo ok").stdout == "ok\n"
    ended = shell(f"cat {wrong} | {check} && echo ok")
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", "")
    ended = shell(f"head -c 0 {wrong} | {check} && echo ok")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "calcheck: standard input is empty\n"


@pytest.mark.slow  # tests/cli/test_commands.py and test_limits.py do the same with other commands
def test_a_closed_pipe_is_not_an_error_and_a_full_disk_is(right):
    """The shell sees 141, as for every program that is ended by a closed pipe."""
    command = f"calcheck check {right} --fail-on '{SATISFIED}' --no-bootstrap"
    ended = shell(f"{command} | true; echo ${{PIPESTATUS[0]}}")
    assert ended.stderr == ""
    assert ended.stdout.strip() in ("0", str(128 + signal.SIGPIPE))  # it may end before `true` does
    ended = shell(f"{command} > /dev/full")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)


@pytest.mark.slow  # tests/cli/test_commands.py does the same with another command
def test_an_interrupt_exits_with_130_and_writes_nothing(right, tmp_path):
    out = tmp_path / "report.txt"
    code = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        f"sys.argv = ['calcheck', 'check', {right!r}, '--fail-on', '{SATISFIED}', '-o', {str(out)!r}];"
        "from calcheck import cli, evaluation; evaluation.infer = lambda *a: os.kill(os.getpid(), signal.SIGINT);"
        "cli.main()"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (130, "")
    assert not out.exists()


def test_several_files_are_checked_separately(calcheck, right, wrong, tmp_path):
    rule = ("--fail-on", "zms > 1.5", "--no-bootstrap")
    found = calcheck("check", right, wrong, *rule)
    assert found.code == 1
    assert found.out.index("right.parquet") < found.out.index("passed") < found.out.index("wrong.csv")
    assert found.out.index("wrong.csv") < found.out.index("violated")
    assert calcheck("check", right, right, *rule).code == 0
    assert calcheck("check", wrong, right, *rule).code == 1
    out = tmp_path / "all.jsonl"
    assert calcheck("check", right, wrong, *rule, "--format", "jsonl", "-o", out).code == 1
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["passed"] for line in records if "rule" in line] == [True, False]
    assert (
        "--format json supports a single file, got 2"
        in calcheck("check", right, wrong, *rule, "--format", "json").refused()
    )
    assert "there is no file absent.csv" in calcheck("check", wrong, "absent.csv", *rule).refused()


@pytest.fixture
def configured(tmp_path, monkeypatch):
    """Change to a folder with a settings file, and return the function that writes it."""
    monkeypatch.delenv("CALCHECK_NO_CONFIG")
    monkeypatch.chdir(tmp_path)
    return (tmp_path / "calcheck.toml").write_text


def test_rules_are_read_from_the_settings_file(calcheck, configured, right, wrong):
    configured("no-bootstrap = true\n[gates]\nfail-on = ['zms > 1.5', 'mae < 0']\nwarn-on = 'zms > 0.5'\n")
    passed, failed = calcheck("check", right, "--format", "json"), calcheck("check", wrong, "--format", "json")
    assert (passed.code, failed.code) == (0, 1)
    assert [(gate["rule"], gate["level"], gate["passed"]) for gate in json.loads(passed.out)["gates"]] == [
        ("zms > 1.5", "fail", True),
        ("mae < 0", "fail", True),
        ("zms > 0.5", "warn", False),
    ]


def test_rules_on_the_command_line_replace_settings_of_the_same_level(calcheck, configured, wrong):
    configured("no-bootstrap = true\n[gates]\nfail-on = ['zms > 1.5']\nwarn-on = ['zms > 0.5']\n")

    def rules(*arguments):
        return [(gate["rule"], gate["level"]) for gate in json.loads(calcheck("check", wrong, *arguments).out)["gates"]]

    as_json = ("--format", "json")
    assert rules("--fail-on", "zms > 9", *as_json) == [("zms > 9", "fail"), ("zms > 0.5", "warn")]
    assert rules("--warn-on", "zms > 9", *as_json) == [("zms > 1.5", "fail"), ("zms > 9", "warn")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fail-on = 3", "calcheck.toml, [gates] fail-on must be a rule, e.g. 'ece > 0.05', or a list of rules, got 3"),
        ("fail-on = ['ece > 1', 3]", "or a list of rules, got ['ece > 1', 3]"),
        ("warn-on = 'ece >'", "calcheck.toml, [gates] warn-on: rule 'ece >', at the end"),
        ("fail-on = 'ecee > 1'", "calcheck.toml, [gates] fail-on: rule 'ecee > 1', at character 1"),
        ("fails-on = 'ece > 1'", "calcheck.toml, [gates]: unknown key 'fails-on'. Available keys: fail-on, warn-on"),
    ],
)
def test_errors_in_the_settings_file_name_it(calcheck, configured, right, text, message):
    configured(f"[gates]\n{text}\n")
    assert message in calcheck("check", right).refused()


def test_an_empty_list_of_rules_checks_the_verdicts(calcheck, configured, wrong):
    configured("no-bootstrap = true\n[gates]\nfail-on = []\n")
    assert calcheck("check", wrong, "--metrics", "zms").code == 1


def test_metrics_have_the_options_of_the_settings_file(calcheck, configured, right):
    configured("no-bootstrap = true\n[gates]\nfail-on = 'ence > 9'\n[ence]\nbins = 3\n")
    (result,) = json.loads(calcheck("check", right, "--format", "json").out)["results"]
    assert result["options"]["bins"] == 3


def baseline(calcheck, path, tmp_path):
    out = str(tmp_path / "base.json")
    command = ("evaluate", path, "--metrics", "zms,mae,ence", *FEW, "--format", "json", "-o", out)
    assert calcheck(*command).code == 0
    return out


def test_a_baseline_of_the_same_file_has_no_changes(calcheck, tmp_path):
    path, out = write(tmp_path / "noisy.parquet", columns(n=40)), tmp_path / "base.json"
    assert calcheck("evaluate", path, "--metrics", "zms,mae", *FEW, "--format", "json", "-o", out).code == 0
    for arguments in ((), ("--rtol", 0), ("--atol", 0), ("--within-interval",)):
        found = calcheck("check", path, "--against", out, *arguments, *FEW, "--format", "json")
        assert found.code == 0
        assert [gate["passed"] for gate in json.loads(found.out)["gates"]] == [True, True]


def test_changes_above_the_tolerance_are_violations(calcheck, right, tmp_path):
    """Errors that are 4 % larger raise the mean error by 4 %, and the mean square by 8.16 %."""
    base = baseline(calcheck, right, tmp_path)
    other = write(tmp_path / "other.parquet", predictions(spread=1.04))

    def passed(*arguments):
        found = calcheck("check", other, "--against", base, *FEW, *arguments, "--format", "json")
        gates = {gate["rule"].split()[0]: gate["passed"] for gate in json.loads(found.out)["gates"]}
        assert found.code == (0 if all(gates.values()) else 1)
        return gates["zms"], gates["mae"]

    assert passed() == (False, True)  # 5 %
    assert passed("--rtol", 0.0817) == (True, True)
    assert passed("--rtol", 0.03) == (False, False)
    assert passed("--atol", 0.0817) == (True, True)
    assert passed("--atol", 0.0815) == (False, True)
    assert passed("--atol", 0.05) == (False, False)
    assert passed("--atol", 0.05, "--rtol", 0.04) == (True, True)
    assert passed("--within-interval") == (False, True)  # all z² are equal, so there is no interval


def test_metrics_are_recomputed_with_their_stored_options(calcheck, right, tmp_path):
    out = tmp_path / "base.json"
    calcheck("ence", right, "--bins", 3, *FEW, "--format", "json", "-o", out)
    found = calcheck("check", right, "--against", out, "--fail-on", "ence > 9", *FEW, "--format", "json")
    report = json.loads(found.out)
    assert [result["options"]["bins"] for result in report["results"]] == [3]
    assert [gate["passed"] for gate in report["gates"]] == [True, True]


def edit(path, change):
    report = json.loads(Path(path).read_text())
    change(report)
    Path(path).write_text(json.dumps(report))


OTHER_REPORTS = [
    (lambda report: report.update(schema_version=2), "has schema version 2"),
    (lambda report: report.update(results=[]), "base.json cannot be used as a baseline: it has no results"),
    (lambda report: report["results"].append(report["results"][0]), "it has several results for one metric"),
    (
        lambda report: report["results"][0].update(slice={"removed": "3 %"}),
        "its results are for subsets of the rows",
    ),
    (lambda report: report["results"][0].update(metric="zmss"), "unknown metric 'zmss'. Did you mean 'zms'?"),
    (lambda report: report["results"][0].update(metric="picp"), "unknown metric 'picp'"),
    (lambda report: report["results"][0].update(value="1"), "results[0].value must be a number or null"),
    (lambda report: report["results"][2]["options"].update(bins=0), "--bins must be at least 1"),
    (
        lambda report: report["results"][2]["options"].update(bins=2.5),
        "'bins' of ence takes a whole number, got 2.5",
    ),
    (lambda report: report["results"][2]["options"].update(bins=None), "'bins' of ence takes a whole number, got"),
    (
        lambda report: report["results"][2]["options"].update(bin=3),
        "the options of ence differ in this version of calcheck: 'bin'",
    ),
    (
        lambda report: report["results"][2]["options"].pop("by"),
        "the options of ence differ in this version of calcheck: 'by'",
    ),
    (lambda report: report["results"][2]["options"].update(by="color"), "there is no column 'color'"),
    (
        lambda report: report["input"]["files"][0].update(role="evaluation_points"),
        "its results are evaluated at the inputs of another file",
    ),
]
"""Changes of a report that make it useless as a baseline, and why."""


def test_stored_reports_that_cannot_be_compared_are_refused(calcheck, right, tmp_path):
    base = Path(baseline(calcheck, right, tmp_path))
    stored = base.read_text()
    for change, message in OTHER_REPORTS:
        base.write_text(stored)
        edit(base, change)
        assert message in calcheck("check", right, "--against", base, *FEW).refused()


def test_a_missing_stored_value_is_a_violation(calcheck, right, tmp_path):
    base = baseline(calcheck, right, tmp_path)
    edit(
        base,
        lambda report: report["results"][1].update(
            value=None, low=None, warnings=[{"code": "no-value", "text": "no value: it is inf"}]
        ),
    )
    for arguments in ((), ("--within-interval",)):
        found = calcheck("check", right, "--against", base, *FEW, *arguments, "--format", "json")
        gate = json.loads(found.out)["gates"][1]
        assert (found.code, gate["passed"]) == (1, False)
        assert "(no value: it is inf)" in gate["message"]


def test_a_report_of_check_can_be_a_baseline(calcheck, right, tmp_path):
    base = tmp_path / "base.json"
    assert calcheck("check", right, "--fail-on", VIOLATED, *FEW, "--format", "json", "-o", base).code == 1
    assert calcheck("check", right, "--against", base, *FEW).code == 0


def test_rules_can_use_metrics_and_details_of_inputs(calcheck, tmp_path):
    path = write(tmp_path / "preds.parquet", columns(n=40))
    found = calcheck(
        "check", path, "--fail-on", "cce > 2 or cce.details.dof < 1", "--replicates", 99, "--format", "json"
    )
    assert found.code == 0
    assert json.loads(found.out)["gates"][0]["values"].keys() == {"cce", "cce.details.dof"}


def test_a_terminal_gets_colors(calcheck, right, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    found = calcheck(
        "check", right, "--fail-on", SATISFIED, "--fail-on", VIOLATED, "--warn-on", VIOLATED, "--no-bootstrap"
    )
    for word, color in (("passed", "32"), ("violated", "1;31"), ("warned", "33")):
        assert f"\x1b[{color}m{word}" in found.out


@pytest.mark.parametrize("form", FORMATS)
def test_hostile_names_of_files_columns_and_rules_are_escaped(calcheck, tmp_path, form):
    name = "=cmd() <script> ]]> \"'& | %0A::error::x \x1b[2J\n@octocat"
    path = write(tmp_path / f"{name}.parquet", predictions() | {name: np.arange(60.0)})
    rule = f'input.predictive == "{name.replace(chr(34), "")}" or zms > 3'
    found = calcheck("check", path, "--fail-on", rule, "--warn-on", VIOLATED, *FEW, "--id", name, "--format", form)
    assert (found.code, found.err) == (0, "")
    for steering in ("\x1b", "\n::error", "\n@octocat"):
        assert form == "csv" or steering not in found.out.removeprefix("::error")
    for arguments in (("--fail-on", name), ("--target", name + "z"), ("--against", tmp_path / f"{name}.json")):
        line = calcheck("check", path, "--fail-on", "mae > 0", *arguments, "--format", form).refused()
        assert not {character for character in line if not character.isprintable()} - {"\n"}


def test_a_rule_on_the_overall_verdict_computes_all_metrics(calcheck, right, wrong):
    rule = ("--fail-on", "overall.verdict != pass", "--no-bootstrap", "--replicates", 59, "--format", "json")
    named = calcheck("check", wrong, "--metrics", "zms,ece", *rule)
    assert named.code == 1
    assert json.loads(named.out)["overall"]["metrics"] == ["zms", "ece"]
    every = json.loads(calcheck("check", right, *rule).out)["overall"]
    assert {"zms", "crps", "bias"} <= set(every["metrics"])
    assert not {"sharpness", "cce", "pit-bias"} & set(every["metrics"])


def test_a_rule_on_the_overall_verdict_of_one_metric_is_violated(calcheck, right):
    found = calcheck("check", right, "--metrics", "zms", "--fail-on", "overall.p_value < 0.01", *FEW)
    assert found.code == 1
    assert "fewer than two results" in found.out


def test_a_rule_on_a_verdict_that_there_is_not_cannot_be_judged(calcheck, right, wrong):
    """Without replicates there is no verdict of mae."""
    unjudged = ("check", right, "--no-null", "--fail-on", "mae.verdict == fail")
    ended = calcheck(*unjudged)
    assert ended.code == 3
    assert re.search(r"mae\.verdict == fail +not judged +mae\.verdict is none", ended.out)
    assert calcheck(*unjudged, "--warn-on", "zms > 0").code == 3
    assert calcheck(*unjudged, "--exit-zero").code == 0
    assert calcheck("check", right, "--no-null", "--warn-on", "mae.verdict == fail").code == 0
    assert calcheck("check", right, "--no-null", "--fail-on", "mae > 100").code == 0
    assert calcheck(*unjudged, "--fail-on", "zms > 0").code == 1
    assert calcheck("check", right, wrong, "--no-null", "--fail-on", "zms > 2 or mae.verdict == fail").code == 1


def test_a_rule_on_the_verdict_of_a_metric_that_never_has_one_is_refused(calcheck, right):
    line = calcheck("check", right, "--fail-on", "cv.verdict == fail").refused()
    assert "cv.verdict is never there: cv does not test a model. Compare its value" in line
