"""Options that the command line does not set come from environment variables and settings files."""

import json

import pytest

from calcheck.metrics import METRICS


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Change to a folder with an empty settings file."""
    monkeypatch.delenv("CALCHECK_NO_CONFIG")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "calcheck.toml").write_text("")
    return tmp_path


@pytest.fixture
def report_with(home, calcheck, preds):
    """Run a command with a settings file, and return its report."""

    def run(text, *arguments):
        (home / "calcheck.toml").write_text(text)
        ended = calcheck(*(preds if part == "preds" else part for part in arguments), "--format", "json")
        assert (ended.code, ended.err) == (0, "")
        return json.loads(ended.out)

    return run


@pytest.fixture
def error_with(home, calcheck, preds):
    """Run a command with a settings file, and return the error."""

    def run(text, *arguments):
        (home / "calcheck.toml").write_text(text)
        return calcheck(*(preds if part == "preds" else part for part in arguments)).refused()

    return run


def test_the_command_line_overrides_variables_and_variables_override_the_file(report_with, monkeypatch):
    assert report_with("", "zms", "preds")["settings"]["seed"] == 0
    assert report_with("seed = 1", "zms", "preds")["settings"]["seed"] == 1
    assert report_with("seed = 1\n[zms]\nseed = 2", "zms", "preds")["settings"]["seed"] == 2
    assert report_with("seed = 1\n[rce]\nseed = 2", "zms", "preds")["settings"]["seed"] == 1
    monkeypatch.setenv("CALCHECK_ZMS_SEED", "3")
    assert report_with("seed = 1\n[zms]\nseed = 2", "zms", "preds")["settings"]["seed"] == 3
    assert report_with("seed = 1", "zms", "preds", "--seed", "4")["settings"]["seed"] == 4


def test_zero_on_the_command_line_overrides_the_file(report_with):
    assert report_with("seed = 1", "zms", "preds", "--seed", "0")["settings"]["seed"] == 0
    assert report_with("worst = 2", "zms", "preds", "--worst", "0")["results"][0]["details"].get("worst") is None


def test_options_are_named_with_dashes_or_underscores(report_with):
    for name in ("no-bootstrap", "no_bootstrap"):
        assert report_with(f"{name} = true", "zms", "preds")["settings"]["resamples"] == 0
    assert report_with("nan-policy = 'omit'\nconfidence = 0.9", "zms", "preds")["settings"]["confidence"] == 0.9


def test_columns_are_set_for_every_command(home, calcheck, preds):
    (home / "calcheck.toml").write_text('target = "id"\nembedding = "embedding"\n')
    found = calcheck("inspect", preds)
    assert found.code == 0
    output = " ".join(found.out.split())
    assert "y id" in output
    assert "settings --target by target in calcheck.toml, --embedding by embedding in calcheck.toml" in output
    assert "settings" not in calcheck("--no-config", "inspect", preds).out


@pytest.mark.slow
def test_inspect_prints_options_that_come_from_settings(home, calcheck, preds):
    (home / "calcheck.toml").write_text('target = "id"')
    expected, options = calcheck("cce", preds).out, calcheck("inspect", preds).out.splitlines()[-1].split()
    (home / "calcheck.toml").write_text("")
    assert calcheck("cce", preds, *options).out == expected


def test_lists_set_comma_separated_and_repeated_options(report_with):
    report = report_with('metrics = ["zms", "rce"]', "evaluate", "preds")
    assert [result["metric"] for result in report["results"]] == ["zms", "rce"]
    assert report_with('filter = ["topic=news"]', "zms", "preds")["input"]["n"] == 20


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [("ece",), ("evaluate", "--metrics", "ece"), ("prune", "--metrics", "ece", "--max-percent", "10")]
)
def test_options_of_a_metric_apply_to_every_command_that_computes_it(report_with, monkeypatch, command):
    def levels(text):
        return report_with(text, command[0], "preds", *command[1:])["results"][0]["options"]["n_levels"]

    assert levels("") == 99
    assert levels("[ece]\nn-levels = 9") == 9
    assert levels("n-levels = 9") == 9
    assert levels("n-levels = 9\n[ece]\nn-levels = 19") == 19
    monkeypatch.setenv("CALCHECK_ECE_N_LEVELS", "29")
    assert levels("n-levels = 9") == 29


def test_a_setting_for_all_metrics_applies_to_those_that_support_it(report_with):
    results = report_with('solver = "nystroem"', "evaluate", "preds", "--metrics", "cce,cmmd", "--no-null")["results"]
    found = {result["metric"]: result["options"]["solver"] for result in results}
    assert found == {"cce": "nystroem", "cmmd": "auto"}


def test_a_variable_of_a_metric_counts_wherever_the_metric_is_computed(report_with, monkeypatch):
    monkeypatch.setenv("CALCHECK_CRPS_ENSEMBLE", "biased")
    monkeypatch.setenv("CALCHECK_INTERVAL_SCORE_LEVEL", "0.5")
    monkeypatch.setenv("CALCHECK_CMMD_LAMBDA", "0.5")
    report = report_with("", "evaluate", "preds", "--metrics", "crps,interval-score,cmmd,cce", "--no-null")
    options = {result["metric"]: result["options"] for result in report["results"]}
    assert options["crps"]["ensemble"] == "biased"
    assert options["interval-score"]["level"] == 0.5
    assert (options["cmmd"]["lambda"], options["cce"]["lambda"]) == (0.5, 0.1)
    assert report_with("", "crps", "preds")["results"][0]["options"]["ensemble"] == "biased"


def test_a_variable_of_another_command_does_not_count(report_with, monkeypatch):
    monkeypatch.setenv("CALCHECK_RCE_SEED", "3")
    monkeypatch.setenv("CALCHECK_EVALUATE_SEED", "4")
    assert report_with("", "zms", "preds")["settings"]["seed"] == 0
    assert report_with("", "evaluate", "preds", "--metrics", "rce")["settings"]["seed"] == 4


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("ESTIMATOR", "CALCHECK_CCE_ESTIMATOR"),
        ("SEED", "CALCHECK_EVALUATE_SEED"),
        ("SEEED", "CALCHECK_EVALUATE_SEED"),
        ("N_LEVELS", "CALCHECK_ECE_N_LEVELS"),
    ],
)
def test_a_variable_without_a_command_does_not_end_the_run(calcheck, preds, monkeypatch, variable, meant):
    monkeypatch.setenv(f"CALCHECK_{variable}", "fair")
    found = calcheck("evaluate", preds, "--metrics", "crps,cce", "--no-null", "--no-bootstrap")
    assert found.code == 0
    assert found.err.endswith(f"is ignored. Variables are per command. Did you mean {meant}?\n")


def test_values_that_no_metric_accepts_are_refused(error_with, monkeypatch):
    assert "solver in calcheck.toml takes one of" in error_with('solver = "nope"', "evaluate", "preds")
    monkeypatch.setenv("CALCHECK_CCE_SOLVER", "nope")
    assert "CALCHECK_CCE_SOLVER takes one of" in error_with("", "evaluate", "preds")


def test_a_table_of_a_metric_sets_only_the_metric_in_other_commands(report_with):
    text = "[cce]\nlambda = 0.5\nseed = 9\n[evaluate]\nconfidence = 0.8\n"
    report = report_with(text, "evaluate", "preds", "--metrics", "cce,zms")
    assert (report["settings"]["seed"], report["settings"]["confidence"]) == (0, 0.8)
    assert report["results"][0]["options"]["lambda"] == 0.5
    assert report_with(text, "cce", "preds")["settings"]["seed"] == 9


def test_tables_of_metrics_are_named_with_dashes_or_underscores(report_with):
    for name in ("interval-score", "interval_score"):
        assert report_with(f"[{name}]\nlevel = 0.5", "interval-score", "preds")["results"][0]["options"]["level"] == 0.5


def test_settings_of_options_that_a_command_lacks_are_ignored(report_with):
    report_with(
        'worst = 3\nmax-percent = 5\nlambda = 0.1\nfilter = ["topic=news"]\n[gates]\nfail-on = ["ece > 1"]',
        "zms",
        "preds",
    )


@pytest.mark.slow
def test_options_on_the_command_line_replace_conflicting_settings(report_with, monkeypatch):
    assert report_with('embedding = "embedding"', "cce", "preds", "--inputs", "mean")["input"]["columns"]["x"] == "mean"
    assert report_with("no-bootstrap = true", "zms", "preds", "--resamples", "200")["settings"]["resamples"] == 200
    assert report_with("resamples = 200", "zms", "preds", "--no-bootstrap")["settings"]["resamples"] == 0
    assert report_with("replicates = 99", "zms", "preds", "--no-null")["settings"]["replicates"] == 0
    assert report_with("no-null = true", "zms", "preds", "--replicates", "99")["settings"]["replicates"] == 99
    read = report_with(
        'error-dist = "t6"', "zms", "preds", "--dist", "gaussian", "--param", "loc=mean", "--param", "scale=std"
    )
    assert read["input"]["predictive"] == "gaussian"
    report_with('samples = "s*"', "zms", "preds", "--mean", "mean", "--std", "std")
    report_with('mean = "absent"\nstd = "std"', "zms", "preds", "--mean", "mean")
    report_with('var = "absent"', "zms", "preds", "--std", "std")
    monkeypatch.setenv("CALCHECK_ZMS_NO_BOOTSTRAP", "off")
    assert report_with("no-bootstrap = true", "zms", "preds")["settings"]["resamples"] is None


def test_variables_set_flags_repeated_options_and_formats(home, calcheck, preds, monkeypatch):
    monkeypatch.setenv("CALCHECK_ZMS_FORMAT", "json")
    monkeypatch.setenv("CALCHECK_ZMS_NO_BOOTSTRAP", "1")
    monkeypatch.setenv("CALCHECK_ZMS_FILTER", "topic=news\nid=100\n")
    monkeypatch.setenv("CALCHECK_ZMS_SEED", "")  # as good as absent
    report = json.loads(calcheck("zms", preds).out)
    assert report["settings"]["resamples"] == 0
    assert report["input"]["n"] == 1
    monkeypatch.setenv("CALCHECK_ZMS_OUTPUT", "report.json")
    assert calcheck("zms", preds).out == ""
    assert json.loads((home / "report.json").read_text()) == report


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("EVALUATE_SEED", "x", "CALCHECK_EVALUATE_SEED takes a whole number, got 'x'"),
        (
            "EVALUATE_FORMAT",
            "xml",
            "CALCHECK_EVALUATE_FORMAT takes one of table, json, jsonl, csv, markdown, latex, page, html, got 'xml'",
        ),
        ("EVALUATE_NO_BOOTSTRAP", "maybe", "CALCHECK_EVALUATE_NO_BOOTSTRAP takes true or false, got 'maybe'"),
        ("EVALUATE_CONFIDENCE", "2", "got 2: did you mean 0.02? (--confidence is set by CALCHECK_EVALUATE_CONFIDENCE)"),
        ("EVALUATE_STD", "spread", "(--std is set by CALCHECK_EVALUATE_STD)"),
        ("CCE_LAMBDA", "-1", "got -1.0 (--lambda is set by CALCHECK_CCE_LAMBDA)"),
        ("CONFIG", "absent.toml", "cannot read the settings in absent.toml: No such file"),
        ("NO_CONFIG", "perhaps", "CALCHECK_NO_CONFIG takes true or false, got 'perhaps'"),
    ],
)
def test_errors_in_variables_name_the_variable(calcheck, preds, monkeypatch, variable, value, message):
    monkeypatch.setenv(f"CALCHECK_{variable}", value)
    assert message in calcheck("evaluate", preds, "--embedding", "embedding").refused()


@pytest.mark.usefixtures("home")
def test_unknown_variables_cause_only_a_warning(calcheck, preds, monkeypatch):
    monkeypatch.setenv("CALCHECK_ZMS_SEDE", "3")
    found = calcheck("zms", preds, "--format", "json")
    assert found.code == 0
    assert json.loads(found.out)["settings"]["seed"] == 0
    assert found.err == (
        "calcheck: the environment variable CALCHECK_ZMS_SEDE does not set any option and is ignored."
        " Did you mean CALCHECK_ZMS_SEED?\n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed = ", "calcheck.toml is not valid TOML"),
        ("sede = 1", "sede in calcheck.toml is not an option. Did you mean 'seed'?"),
        ("quux = 1", "quux in calcheck.toml is not an option. Available: "),
        ("[cce]\nlamda = 1", "lamda in [cce] of calcheck.toml is not an option. Did you mean 'lambda'?"),
        ("[zms]\nlambda = 1", "lambda in [zms] of calcheck.toml is not an option. Available: subsample, "),
        (
            "[cce]\ntolerance = 0.01",
            "tolerance in [cce] of calcheck.toml is not an option. Its name is 'landmark-error' now.",
        ),
        ("[metrics]\nseed = 1", "seed in [metrics] of calcheck.toml is not an option. None are available."),
        (
            "[evaluat]\nseed = 1",
            "calcheck.toml: [evaluat] is not a command, a metric or gates. Did you mean 'evaluate'?",
        ),
        ("[zzz]\nseed = 1", "calcheck.toml: [zzz] is not a command, a metric or gates. Available: evaluate, "),
        ("[gate]\na = 1", "Did you mean 'gates'?"),
        ('seed = "3"', "seed in calcheck.toml takes a whole number, got the text '3'"),
        ("seed = 1.5", "seed in calcheck.toml takes a whole number, got 1.5"),
        ("seed = true", "seed in calcheck.toml takes a whole number, got true"),
        ("confidence = nan", "confidence in calcheck.toml takes a number, got 'nan'"),
        ("no-bootstrap = 1", "no-bootstrap in calcheck.toml takes true or false, got 1"),
        ("target = 3", "target in calcheck.toml takes the name of a column, got 3"),
        ("target = ''", "target in calcheck.toml takes the name of a column, got the text ''"),
        ("target = []", "target in calcheck.toml takes the name of a column, got the list []"),
        ("target = 2020-01-01", "target in calcheck.toml takes the name of a column, got 2020-01-01"),
        ("filter = 'a=b'", "filter in calcheck.toml takes a list of texts, got the text 'a=b'"),
        ("[evaluate.seed]\na = 1", "seed in [evaluate] of calcheck.toml takes a whole number, got a table"),
        ("no-bootstrap = true\nno_bootstrap = true", "no_bootstrap in calcheck.toml is set twice"),
        (
            "output = 'x'",
            "output in calcheck.toml is not allowed: the name of an output file cannot be set in a file. Pass --output",
        ),
        (
            "exit-zero = true",
            "Pass --exit-zero on the command line, or set CALCHECK_EVALUATE_EXIT_ZERO",
        ),
        ("[check]\nexit_zero = false", "exit_zero in [check] of calcheck.toml is not allowed"),
        ("[zms]\npointwise = 'x.csv'", "pointwise in [zms] of calcheck.toml is not allowed"),
        ("[convert]\noutput = 'x.csv'", "output in [convert] of calcheck.toml is not allowed"),
        ("confidence = 2.0", "got 2: did you mean 0.02? (--confidence is set by confidence in calcheck.toml)"),
        ("target = 'absent'", "(--target is set by target in calcheck.toml)"),
        ("gates = 3", "calcheck.toml: gates must be a table"),
        ("[interval-score]\n[interval_score]", "calcheck.toml: [interval_score] is given twice"),
    ],
)
def test_errors_in_files_name_the_file_and_the_key(error_with, text, message):
    assert message in error_with(text, "zms", "preds")


def test_errors_in_tables_of_metrics_are_reported_when_these_are_computed(error_with):
    line = error_with("[ece]\nn-levels = 0", "evaluate", "preds")
    assert "(--n-levels is set by n-levels in [ece] of calcheck.toml)" in line


def test_a_value_that_only_some_commands_support_is_refused_by_the_others(report_with, error_with):
    report_with('solver = "nystroem"', "cce", "preds")
    line = error_with('solver = "nystroem"', "cmmd", "preds")
    assert "solver in calcheck.toml takes one of" in line
    assert "solver in calcheck.toml takes one of" in error_with('solver = "nyström"', "zms", "preds")


def test_another_file_or_none_is_selected_before_the_command(home, calcheck, preds):
    (home / "calcheck.toml").write_text("seed = 1")
    (home / "other.toml").write_text("seed = 2")

    def seed(*arguments):
        return json.loads(calcheck(*arguments, "zms", preds, "--format", "json").out)["settings"]["seed"]

    assert (seed(), seed("--config", "other.toml"), seed("--no-config")) == (1, 2, 0)
    assert "contradict each other" in calcheck("--config", "other.toml", "--no-config", "zms", preds).refused()
    assert "--config needs a value, got none" in calcheck("--config", "", "zms", preds).refused()
    assert "cannot read the settings in absent.toml" in calcheck("--config", "absent.toml", "zms", preds).refused()
    assert "Put this option before the command" in calcheck("zms", preds, "--config", "other.toml").refused()


def test_variables_select_another_file_or_none(home, calcheck, preds, monkeypatch):
    (home / "calcheck.toml").write_text("seed = 1")
    (home / "other.toml").write_text("seed = 2")

    def seed(*arguments):
        return json.loads(calcheck(*arguments, "zms", preds, "--format", "json").out)["settings"]["seed"]

    monkeypatch.setenv("CALCHECK_CONFIG", "other.toml")
    assert (seed(), seed("--no-config")) == (2, 0)
    monkeypatch.setenv("CALCHECK_NO_CONFIG", "1")
    assert "contradict each other" in calcheck("zms", preds).refused()
    assert seed("--config", "other.toml") == 2
    monkeypatch.delenv("CALCHECK_CONFIG")
    assert seed() == 0


def test_names_in_files_cannot_break_the_terminal(error_with):
    line = error_with('"\\u001b[2Jx" = 1', "zms", "preds")
    assert "\x1b" not in line


def test_commands_without_options_read_no_settings(home, calcheck):
    (home / "calcheck.toml").write_text("broken")
    assert calcheck("metrics").code == 0
    assert calcheck("zms", "--help").code == 0


@pytest.mark.slow
def test_every_metric_accepts_its_options_from_files(home, calcheck, preds):
    """In the form that reports give them, so that a report can be turned into a file."""
    from calcheck.options import options_of

    for name, metric in METRICS.items():
        options = {option.name: getattr(metric(), option.field) for option in options_of(metric)}
        lines = [f"{key} = {json.dumps(value)}" for key, value in options.items() if value is not None]
        (home / "calcheck.toml").write_text("\n".join([f"[{name}]", *lines]))
        assert calcheck("evaluate", preds, "--metrics", "zms", "--no-null", "--no-bootstrap").code == 0
