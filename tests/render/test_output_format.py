"""The suffix of the output file selects the format of a report."""

import json

import pytest

STARTS = {
    "json": "{\n",
    "jsonl": '{"',
    "csv": "file,",
    "md": "**",
    "html": "<!DOCTYPE html>",
    "HTM": "<!DOCTYPE html>",
    "tex": "% ",
    "txt": "/",
    "dat": "/",
}
FAST = ("--no-null", "--no-bootstrap")


@pytest.fixture
def written(calcheck, preds, tmp_path):
    """Run `calcheck mae` and return what it writes to a file of this name."""

    def run(name, *arguments):
        ended = calcheck("mae", preds, "-o", tmp_path / name, *FAST, *arguments)
        assert (ended.code, ended.out, ended.err) == (0, "", "")
        return (tmp_path / name).read_text()

    return run


@pytest.mark.parametrize(("suffix", "start"), STARTS.items())
def test_the_suffix_selects_the_format(written, suffix, start):
    assert written(f"report.{suffix}").startswith(start)


def test_a_name_without_a_known_suffix_keeps_the_given_format(written):
    for name in ("report", "report.dat", "json"):
        assert written(name, "--format", "csv").startswith("file,")


def test_a_format_may_be_given_with_its_own_suffix(written):
    assert json.loads(written("report.json", "--format", "json"))["results"][0]["metric"] == "mae"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--format", "json", "-o", "report.md"),
            "--format json and --output report.md contradict each other: its extension selects markdown. Omit --format",
        ),
        (("--format", "table", "-o", "report.json"), "its extension selects json"),
        (
            ("-o", "report.xml"),
            "selects the format junit, which calcheck mae does not have. Its formats: table, json, ",
        ),
        (("--format", "html", "-o", "report.xml"), "its extension selects junit"),
    ],
)
def test_a_suffix_that_contradicts_is_refused(calcheck, preds, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in calcheck("mae", preds, *arguments).refused()
    assert [path.name for path in tmp_path.iterdir()] == ["preds.parquet"]


def test_the_suffix_overrides_a_configured_format(written, tmp_path, monkeypatch):
    (tmp_path / "calcheck.toml").write_text('format = "json"')
    monkeypatch.delenv("CALCHECK_NO_CONFIG")
    monkeypatch.chdir(tmp_path)
    assert written("report").startswith("{")
    assert written("report.csv").startswith("file,")
    monkeypatch.setenv("CALCHECK_MAE_FORMAT", "html")
    assert written("report").startswith("<!DOCTYPE")
    assert written("report.csv").startswith("file,")


def test_an_output_that_a_variable_sets_selects_the_format_too(calcheck, preds, tmp_path, monkeypatch):
    monkeypatch.setenv("CALCHECK_MAE_OUTPUT", str(tmp_path / "report.json"))
    assert calcheck("mae", preds, *FAST).code == 0
    assert json.loads((tmp_path / "report.json").read_text())["results"][0]["metric"] == "mae"
    assert "contradict each other" in calcheck("mae", preds, *FAST, "--format", "csv").refused()


def test_gates_are_written_as_junit_or_for_github(calcheck, preds, tmp_path):
    for name, start, given in (
        ("r.xml", "<?xml", ()),
        ("r.txt", "::error", ("--format", "github")),
        ("r.txt", "/", ()),
    ):
        rule = ("--fail-on", "mae > 0")
        assert calcheck("check", preds, *rule, *FAST, "-o", tmp_path / name, *given).code == 1
        assert (tmp_path / name).read_text().startswith(start)


def test_changes_follow_the_suffix_too(calcheck, written, tmp_path):
    written("a.json")
    pair = (tmp_path / "a.json", tmp_path / "a.json")
    assert calcheck("diff", *pair, "-o", tmp_path / "d.json").code == 0
    assert json.loads((tmp_path / "d.json").read_text())["changes"]
    assert "which calcheck diff does not have" in calcheck("diff", *pair, "-o", "d.csv").refused()


def test_csv_by_its_suffix_cannot_list_rows_either(calcheck, preds, tmp_path):
    assert "cannot show --worst" in calcheck("mae", preds, "--worst", 2, "-o", tmp_path / "report.csv").refused()
