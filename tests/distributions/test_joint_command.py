"""Joint normal distributions in files: commands read, show, use and write them."""

import json
import shlex

import pytest

from tests.distributions.test_joint_golden import forecasts, frame

COLUMNS = ("--target", "y1,y2", "--dist", "joint-gaussian:cholesky", "--param", "loc=m1,m2")
FACTOR = ("--param", "cholesky=l11,l21,l22")


@pytest.fixture
def joint(tmp_path):
    """Return a file of joint normal forecasts with named columns."""
    frame(forecasts(0, 0.5, 0.5, 60)).to_parquet(tmp_path / "joint.parquet")
    return tmp_path / "joint.parquet"


def values(ended):
    assert ended.code == 0, ended.err
    return {each["metric"]: each["value"] for each in json.loads(ended.out)["results"]}


def test_metrics_are_those_of_the_converted_file(joint, calcheck, tmp_path):
    written = tmp_path / "out.parquet"
    assert calcheck("convert", joint, *COLUMNS, *FACTOR, "-o", written).code == 0
    options = ("--no-null", "--no-bootstrap", "--format", "json")
    named = values(calcheck("evaluate", joint, *COLUMNS, *FACTOR, *options))
    assert set(named) == {"pit", "crps", "nll", "ammd"}  # no inputs
    assert values(calcheck("evaluate", written, *options)) == named
    energy = values(calcheck("crps", joint, *COLUMNS, *FACTOR, *options))["crps"]
    assert energy == named["crps"]
    assert values(calcheck("pit", written, "--pre-rank", "variogram", *options))["pit"] == named["pit"]


@pytest.mark.slow
def test_the_suggested_recalibration_of_several_targets_takes_place(joint, calcheck, tmp_path):
    """Errors twice as large as predicted are a fault, in columns and in a column of lists."""
    wide = frame(forecasts(0, 0.5, 0.5, 60))
    wide[["y1", "y2"]] = wide[["m1", "m2"]] + 4 * (wide[["y1", "y2"]].to_numpy() - wide[["m1", "m2"]].to_numpy())
    wide.to_parquet(joint)
    written = tmp_path / "out.parquet"
    assert calcheck("convert", joint, *COLUMNS, *FACTOR, "-o", written).code == 0
    for arguments in ((joint, *COLUMNS, *FACTOR), (written,)):
        ended = calcheck("evaluate", *arguments, "--metrics", "pit,crps,nll", "--no-bootstrap", "--format", "json")
        conclusion = json.loads(ended.out)["conclusion"]
        assert conclusion["answer"] == "no"
        (command,) = (each for each in conclusion["next"] if each.startswith("calcheck recalibrate "))
        assert calcheck(*shlex.split(command)[1:], "--resamples", 100).code == 0


def test_inspect_shows_correlations_and_keeps_the_order_of_columns(joint, calcheck):
    ended = calcheck("inspect", joint, *COLUMNS, *FACTOR)
    assert "cholesky     l11, l21, l22" in ended.out
    assert "; correlation 0.5, observed" in ended.out
    assert "--param 'cholesky=l*'" in ended.out
    turned = calcheck(
        "inspect", joint, "--target", "y2,y1", *COLUMNS[2:5], "loc=m2,m1", "--param", "cholesky=l22,l21,l11"
    )
    assert "--param loc=m2,m1 --param cholesky=l22,l21,l11" in turned.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*COLUMNS, "--param", "cholesky=l11,l21"), "cholesky has 2 numbers per row, and loc has 2: cholesky needs 3"),
        (
            (*COLUMNS, "--param", "cholesky=m1,l11,l22"),
            "cholesky (column m1, l11, l22) must have a positive diagonal, but",
        ),
        (("--target", "y1", *COLUMNS[2:], *FACTOR), "y has 1 target column, the predictions have 2"),
        (COLUMNS, "needs the parameter 'cholesky'"),
    ],
)
def test_mistakes_end_with_one_line(joint, calcheck, arguments, message):
    ended = calcheck("crps", joint, *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert ended.err.count("\n") == 1


def test_a_file_for_spreadsheets_is_refused(joint, calcheck, tmp_path):
    ended = calcheck("convert", joint, *COLUMNS, *FACTOR, "-o", tmp_path / "out.csv")
    assert (ended.code, (tmp_path / "out.csv").exists()) == (2, False)
    assert "CSV cannot represent several targets per row: write .parquet" in ended.err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("nll", "--discretise"), "masses of whole numbers are for one target, and there are 2: omit --discretise"),
        (
            ("crps", "--plot", "out.svg"),
            "rows of 2 targets have no single uncertainty to be drawn along: pass --plot-by",
        ),
    ],
)
def test_what_needs_one_target_refuses_several(joint, calcheck, monkeypatch, tmp_path, command, message):
    monkeypatch.chdir(tmp_path)
    assert message in calcheck(command[0], joint, *COLUMNS, *FACTOR, *command[1:]).refused()


@pytest.mark.slow
def test_a_series_of_several_targets_has_blocks_and_a_picture_along_a_column(joint, calcheck, tmp_path):
    ended = calcheck("nll", joint, *COLUMNS, *FACTOR, "--time", "m1", "--plot", tmp_path / "p.svg", "--plot-by", "m2")
    assert ended.code == 0, ended.err
    assert "are a series" in ended.out
    assert (tmp_path / "p.svg").stat().st_size > 1000
