"""Options are set by variables and files where the command line is silent."""

import json

import pytest

from calcheck.metrics import METRICS


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Stand in a folder whose file of settings counts."""
    monkeypatch.delenv("CALCHECK_NO_CONFIG")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "calcheck.toml").write_text("")
    return tmp_path


@pytest.fixture
def settle(home, calcheck, preds):
    """Run a command with a file of settings, and return its report."""

    def run(text, *arguments):
        (home / "calcheck.toml").write_text(text)
        ended = calcheck(*(preds if part == "preds" else part for part in arguments), "--format", "json")
        assert (ended.code, ended.err) == (0, "")
        return json.loads(ended.out)

    return run


@pytest.fixture
def refuse(home, calcheck, preds):
    """Run a command with a file of settings, and return why it is refused."""

    def run(text, *arguments):
        (home / "calcheck.toml").write_text(text)
        return calcheck(*(preds if part == "preds" else part for part in arguments)).refused()

    return run


def test_the_command_line_comes_before_variables_and_these_before_the_file(settle, monkeypatch):
    assert settle("", "zms", "preds")["settings"]["seed"] == 0
    assert settle("seed = 1", "zms", "preds")["settings"]["seed"] == 1
    assert settle("seed = 1\n[zms]\nseed = 2", "zms", "preds")["settings"]["seed"] == 2
    assert settle("seed = 1\n[rce]\nseed = 2", "zms", "preds")["settings"]["seed"] == 1
    monkeypatch.setenv("CALCHECK_ZMS_SEED", "3")
    assert settle("seed = 1\n[zms]\nseed = 2", "zms", "preds")["settings"]["seed"] == 3
    assert settle("seed = 1", "zms", "preds", "--seed", "4")["settings"]["seed"] == 4


def test_zero_is_a_value_as_any_other(settle):
    assert settle("seed = 1", "zms", "preds", "--seed", "0")["settings"]["seed"] == 0
    assert settle("worst = 2", "zms", "preds", "--worst", "0")["results"][0]["details"].get("worst") is None


def test_options_are_named_with_dashes_or_underscores(settle):
    for name in ("no-bootstrap", "no_bootstrap"):
        assert settle(f"{name} = true", "zms", "preds")["settings"]["resamples"] == 0
    assert settle("nan-policy = 'omit'\nconfidence = 0.9", "zms", "preds")["settings"]["confidence"] == 0.9


def test_what_is_said_of_columns_counts_for_every_command(home, calcheck, preds):
    (home / "calcheck.toml").write_text('target = "std"\nembedding = "embedding"\n')
    found = calcheck("inspect", preds)
    assert found.code == 0
    told = " ".join(found.out.split())
    assert "y std" in told
    assert "settings --target by target in calcheck.toml, --embedding by embedding in calcheck.toml" in told
    assert "settings" not in calcheck("--no-config", "inspect", preds).out


def test_inspect_says_explicitly_what_was_set(home, calcheck, preds):
    (home / "calcheck.toml").write_text('target = "std"')
    set_, said = calcheck("cce", preds).out, calcheck("inspect", preds).out.splitlines()[-1].split()
    (home / "calcheck.toml").write_text("")
    assert calcheck("cce", preds, *said).out == set_


def test_lists_are_what_commas_separate_or_what_is_repeated(settle):
    report = settle('metrics = ["zms", "rce"]', "evaluate", "preds")
    assert [result["metric"] for result in report["results"]] == ["zms", "rce"]
    assert settle('filter = ["topic=news"]', "zms", "preds")["input"]["n"] == 20


@pytest.mark.parametrize(
    "command", [("ece",), ("evaluate", "--metrics", "ece"), ("prune", "--metrics", "ece", "--max-percent", "10")]
)
def test_the_options_of_metrics_count_wherever_these_are_computed(settle, monkeypatch, command):
    def levels(text):
        return settle(text, command[0], "preds", *command[1:])["results"][0]["options"]["n_levels"]

    assert levels("") == 99
    assert levels("[ece]\nn-levels = 9") == 9
    assert levels("n-levels = 9") == 9
    assert levels("n-levels = 9\n[ece]\nn-levels = 19") == 19
    monkeypatch.setenv("CALCHECK_ECE_N_LEVELS", "29")
    assert levels("n-levels = 9") == 29


def test_what_is_set_for_all_metrics_counts_for_those_whose_choices_admit_it(settle):
    results = settle('solver = "nystroem"', "evaluate", "preds", "--metrics", "cce,cmmd", "--no-null")["results"]
    found = {result["metric"]: result["options"]["solver"] for result in results}
    assert found == {"cce": "nystroem", "cmmd": "auto"}


def test_a_variable_of_a_metric_counts_wherever_the_metric_is_computed(settle, monkeypatch):
    monkeypatch.setenv("CALCHECK_CRPS_ENSEMBLE", "biased")
    monkeypatch.setenv("CALCHECK_INTERVAL_SCORE_LEVEL", "0.5")
    monkeypatch.setenv("CALCHECK_CMMD_LAMBDA", "0.5")
    report = settle("", "evaluate", "preds", "--metrics", "crps,interval-score,cmmd,cce", "--no-null")
    options = {result["metric"]: result["options"] for result in report["results"]}
    assert options["crps"]["ensemble"] == "biased"
    assert options["interval-score"]["level"] == 0.5
    assert (options["cmmd"]["lambda"], options["cce"]["lambda"]) == (0.5, 0.1)
    assert settle("", "crps", "preds")["results"][0]["options"]["ensemble"] == "biased"


def test_a_variable_of_another_command_does_not_count(settle, monkeypatch):
    monkeypatch.setenv("CALCHECK_RCE_SEED", "3")
    monkeypatch.setenv("CALCHECK_EVALUATE_SEED", "4")
    assert settle("", "zms", "preds")["settings"]["seed"] == 0
    assert settle("", "evaluate", "preds", "--metrics", "rce")["settings"]["seed"] == 4


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("ESTIMATOR", "CALCHECK_CCE_ESTIMATOR"),
        ("SEED", "CALCHECK_EVALUATE_SEED"),
        ("SEDE", "CALCHECK_EVALUATE_SEED"),
        ("N_LEVELS", "CALCHECK_ECE_N_LEVELS"),
    ],
)
def test_a_variable_without_a_command_does_not_end_the_run(calcheck, preds, monkeypatch, variable, meant):
    monkeypatch.setenv(f"CALCHECK_{variable}", "fair")
    found = calcheck("evaluate", preds, "--metrics", "crps,cce", "--no-null", "--no-bootstrap")
    assert found.code == 0
    assert found.err.endswith(f"is ignored. Variables are per command. Did you mean {meant}?\n")


def test_what_no_metric_admits_is_refused(refuse, monkeypatch):
    assert "solver in calcheck.toml takes one of" in refuse('solver = "nope"', "evaluate", "preds")
    monkeypatch.setenv("CALCHECK_CCE_SOLVER", "nope")
    assert "CALCHECK_CCE_SOLVER takes one of" in refuse("", "evaluate", "preds")


def test_a_table_of_a_metric_sets_no_more_than_the_metric_elsewhere(settle):
    text = "[cce]\nlambda = 0.5\nseed = 9\n[evaluate]\nconfidence = 0.8\n"
    report = settle(text, "evaluate", "preds", "--metrics", "cce,zms")
    assert (report["settings"]["seed"], report["settings"]["confidence"]) == (0, 0.8)
    assert report["results"][0]["options"]["lambda"] == 0.5
    assert settle(text, "cce", "preds")["settings"]["seed"] == 9


def test_metrics_are_named_as_their_commands_or_with_underscores(settle):
    for name in ("interval-score", "interval_score"):
        assert settle(f"[{name}]\nlevel = 0.5", "interval-score", "preds")["results"][0]["options"]["level"] == 0.5


def test_a_setting_that_a_command_does_not_have_is_not_for_it(settle):
    settle(
        'worst = 3\nmax-percent = 5\nlambda = 0.1\nfilter = ["topic=news"]\n[gates]\nfail-on = ["ece > 1"]',
        "zms",
        "preds",
    )


def test_options_of_the_command_line_replace_what_was_set_in_their_place(settle, monkeypatch):
    assert settle('embedding = "embedding"', "cce", "preds", "--inputs", "mean")["input"]["columns"]["x"] == "mean"
    assert settle("no-bootstrap = true", "zms", "preds", "--resamples", "200")["settings"]["resamples"] == 200
    assert settle("replicates = 99", "zms", "preds", "--no-null")["settings"]["replicates"] == 0
    assert settle("no-null = true", "zms", "preds", "--replicates", "99")["settings"]["replicates"] == 99
    read = settle(
        'error-dist = "t6"', "zms", "preds", "--dist", "gaussian", "--param", "loc=mean", "--param", "scale=std"
    )
    assert read["input"]["predictive"] == "gaussian"
    settle('samples = "s*"', "zms", "preds", "--mean", "mean", "--std", "std")
    settle('mean = "absent"\nstd = "std"', "zms", "preds", "--mean", "mean")
    settle('var = "absent"', "zms", "preds", "--std", "std")
    monkeypatch.setenv("CALCHECK_ZMS_NO_BOOTSTRAP", "off")
    assert settle("no-bootstrap = true", "zms", "preds")["settings"]["resamples"] is None


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
            "CALCHECK_EVALUATE_FORMAT takes one of table, json, jsonl, csv, markdown, got 'xml'",
        ),
        ("EVALUATE_NO_BOOTSTRAP", "maybe", "CALCHECK_EVALUATE_NO_BOOTSTRAP takes true or false, got 'maybe'"),
        ("EVALUATE_CONFIDENCE", "2", "got 2.0 (--confidence is set by CALCHECK_EVALUATE_CONFIDENCE)"),
        ("EVALUATE_STD", "spread", "(--std is set by CALCHECK_EVALUATE_STD)"),
        ("CCE_LAMBDA", "-1", "got -1.0 (--lambda is set by CALCHECK_CCE_LAMBDA)"),
        ("CONFIG", "absent.toml", "cannot read the settings in absent.toml: No such file"),
        ("NO_CONFIG", "perhaps", "CALCHECK_NO_CONFIG takes true or false, got 'perhaps'"),
    ],
)
def test_mistakes_in_variables_name_them(calcheck, preds, monkeypatch, variable, value, message):
    monkeypatch.setenv(f"CALCHECK_{variable}", value)
    assert message in calcheck("evaluate", preds, "--embedding", "embedding").refused()


@pytest.mark.usefixtures("home")
def test_variables_that_set_nothing_are_told_and_end_nothing(calcheck, preds, monkeypatch):
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
        ("sede = 1", "sede in calcheck.toml is not an option. Did you mean seed"),
        ("quux = 1", "quux in calcheck.toml is not an option. Available: "),
        ("[cce]\nlamda = 1", "lamda in [cce] of calcheck.toml is not an option. Did you mean lambda"),
        ("[zms]\nlambda = 1", "lambda in [zms] of calcheck.toml is not an option. Available: target, "),
        ("[metrics]\nseed = 1", "seed in [metrics] of calcheck.toml is not an option. None are available."),
        ("[evaluat]\nseed = 1", "calcheck.toml: [evaluat] is not a command, a metric or gates. Did you mean evaluate"),
        ("[zzz]\nseed = 1", "calcheck.toml: [zzz] is not a command, a metric or gates. Available: evaluate, "),
        ("[gate]\na = 1", "Did you mean gates"),
        ('seed = "3"', "seed in calcheck.toml takes a whole number, got the text '3'"),
        ("seed = 1.5", "seed in calcheck.toml takes a whole number, got 1.5"),
        ("seed = true", "seed in calcheck.toml takes a whole number, got true"),
        ("confidence = nan", "confidence in calcheck.toml takes a number, got 'nan'"),
        ("no-bootstrap = 1", "no-bootstrap in calcheck.toml takes true or false, got 1"),
        ("target = 3", "target in calcheck.toml takes text, got 3"),
        ("target = ''", "target in calcheck.toml takes text, got the text ''"),
        ("target = []", "target in calcheck.toml takes text, got the list []"),
        ("target = 2020-01-01", "target in calcheck.toml takes text, got 2020-01-01"),
        ("filter = 'a=b'", "filter in calcheck.toml takes a list of texts, got the text 'a=b'"),
        ("[evaluate.seed]\na = 1", "seed in [evaluate] of calcheck.toml takes a whole number, got a table"),
        ("no-bootstrap = true\nno_bootstrap = true", "no_bootstrap in calcheck.toml is set twice"),
        (
            "output = 'x'",
            "output in calcheck.toml is not allowed: the name of an output file cannot be set in a file. Pass --output",
        ),
        (
            "exit-zero = true",
            "Pass --exit-zero on the command line, or set CALCHECK_CHECK_EXIT_ZERO",
        ),
        ("[check]\nexit_zero = false", "exit_zero in [check] of calcheck.toml is not allowed"),
        ("[zms]\npointwise = 'x.csv'", "pointwise in [zms] of calcheck.toml is not allowed"),
        ("[convert]\noutput = 'x.csv'", "output in [convert] of calcheck.toml is not allowed"),
        ("confidence = 2.0", "got 2.0 (--confidence is set by confidence in calcheck.toml)"),
        ("target = 'absent'", "(--target is set by target in calcheck.toml)"),
        ("gates = 3", "calcheck.toml: gates must be a table"),
        ("[interval-score]\n[interval_score]", "calcheck.toml: [interval_score] is given twice"),
    ],
)
def test_mistakes_in_files_name_file_and_key(refuse, text, message):
    assert message in refuse(text, "zms", "preds")


def test_mistakes_in_tables_of_metrics_are_told_where_these_are_computed(refuse):
    line = refuse("[ece]\nn-levels = 0", "evaluate", "preds")
    assert "(--n-levels is set by n-levels in [ece] of calcheck.toml)" in line


def test_a_value_that_only_some_commands_take_is_refused_by_the_others(settle, refuse):
    settle('solver = "nystroem"', "cce", "preds")
    line = refuse('solver = "nystroem"', "cmmd", "preds")
    assert "solver in calcheck.toml takes one of" in line
    assert "solver in calcheck.toml takes one of" in refuse('solver = "nyström"', "zms", "preds")


def test_another_file_or_none_is_named_before_the_command(home, calcheck, preds):
    (home / "calcheck.toml").write_text("seed = 1")
    (home / "other.toml").write_text("seed = 2")

    def seed(*arguments):
        return json.loads(calcheck(*arguments, "zms", preds, "--format", "json").out)["settings"]["seed"]

    assert (seed(), seed("--config", "other.toml"), seed("--no-config")) == (1, 2, 0)
    assert "contradict each other" in calcheck("--config", "other.toml", "--no-config", "zms", preds).refused()
    assert "--config needs a value, got none" in calcheck("--config", "", "zms", preds).refused()
    assert "cannot read the settings in absent.toml" in calcheck("--config", "absent.toml", "zms", preds).refused()
    assert "Put this option before the command" in calcheck("zms", preds, "--config", "other.toml").refused()


def test_variables_name_another_file_or_none(home, calcheck, preds, monkeypatch):
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


def test_names_in_files_cannot_break_the_terminal(refuse):
    line = refuse('"\\u001b[2Jx" = 1', "zms", "preds")
    assert "\x1b" not in line


def test_commands_without_options_read_no_settings(home, calcheck):
    (home / "calcheck.toml").write_text("broken")
    assert calcheck("metrics").code == 0
    assert calcheck("zms", "--help").code == 0


def test_every_metric_takes_its_options_from_files(home, calcheck, preds):
    """As a report says them, so that a file can be made of one."""
    from calcheck.options import options_of

    for name, metric in METRICS.items():
        told = {option.name: getattr(metric(), option.field) for option in options_of(metric)}
        lines = [f"{key} = {json.dumps(value)}" for key, value in told.items() if value is not None]
        (home / "calcheck.toml").write_text("\n".join([f"[{name}]", *lines]))
        assert calcheck("evaluate", preds, "--metrics", "zms").code == 0
