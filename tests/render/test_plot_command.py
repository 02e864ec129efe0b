"""`--plot`: pictures of metrics and studies."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from tests.helpers.files import columns, write
from tests.helpers.schemas import validate

FEW = ("--replicates", 39, "--no-bootstrap")
HOSTILE = "</text><script>alert(1)</script>\"'{{x}}\u202e"


@pytest.fixture
def file(tmp_path):
    values = np.arange(60.0)
    return write(tmp_path / "p.parquet", columns(n=60) | {HOSTILE: values, "kind": np.where(values % 2, HOSTILE, "b")})


def texts(path):
    return ["".join(each.itertext()) for each in ET.parse(path).iter("{http://www.w3.org/2000/svg}text")]  # noqa: S314 - our own


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_in_every_format(calcheck, file, tmp_path):
    for suffix in ("svg", "png", "pdf"):
        found = []
        for seed in (0, 0, 1):
            path = tmp_path / f"ece.{suffix}"
            assert calcheck("ece", file, "--plot", path, "--seed", seed, *FEW).code == 0
            found.append(path.read_bytes())
        assert found[0] == found[1] != found[2]


def test_a_picture_has_title_expectation_and_units(calcheck, file, tmp_path):
    path = tmp_path / "crps.svg"
    value = json.loads(calcheck("crps", file, "--plot", path, "--format", "json", *FEW).out)["results"][0]["value"]
    shown = texts(path)
    assert shown.count("crps [y]") == 1
    assert any(each.startswith(f"crps [y]: {value:.3g}, expected ") for each in shown)
    assert any("right model" in each for each in shown)
    assert {"95 % of perfect models", "observed", "predicted standard deviation [y]"} <= set(shown)


@pytest.mark.slow
def test_evaluate_draws_the_answer_unless_metrics_are_named(calcheck, file, tmp_path):
    path = tmp_path / "answer.svg"
    assert calcheck("evaluate", file, "--plot", path, *FEW).code == 0
    shown = texts(path)
    assert any(each.startswith("Can the uncertainties be trusted? ") for each in shown)
    assert {"times as wide", "20 % tolerance"} <= set(shown)
    assert calcheck("evaluate", file, "--metrics", "ece", "--plot", path, *FEW).code == 0
    assert not any("tolerance" in each for each in texts(path))


@pytest.mark.parametrize("arguments", [("--plot-by", HOSTILE), ("--plot-by", "kind"), ("--plot-by", f"{HOSTILE},std")])
def test_hostile_names_are_text(calcheck, file, tmp_path, arguments):
    path = tmp_path / "zms.svg"
    assert calcheck("zms", file, *arguments, "--plot", path, *FEW).code == 0
    tags = {each.tag.rpartition("}")[2] for each in ET.parse(path).iter()}  # noqa: S314 - our own
    assert tags.isdisjoint({"script", "foreignObject", "image"})
    assert any("</text><script>" in each for each in texts(path))
    assert "\u202e" not in path.read_text()


@pytest.mark.slow
def test_reports_hold_the_curves_of_a_picture_and_match_the_schema(calcheck, file, tmp_path):
    report = json.loads(calcheck("pit", file, "--plot", tmp_path / "pit.svg", "--format", "json", *FEW).out)
    validate(report)
    assert [curve["name"] for curve in report["results"][0]["curves"]] == ["pit-histogram", "pit-difference"]
    assert '"curves"' not in calcheck("evaluate", file, "--metrics", "pit,ece", "--format", "json", *FEW).out


def test_evaluation_points_have_the_columns_of_the_picture(calcheck, file, tmp_path):
    other = write(tmp_path / "q.parquet", columns(n=30, seed=1) | {"side": np.arange(30.0)})
    path = tmp_path / "cce.svg"
    options = ("--embedding", "embedding", "--replicates", 39)
    assert calcheck("cce", file, *options, "--at", other, "--plot", path, "--plot-by", "side").code == 0
    assert "side" in texts(path)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("ece", "--plot", "a.gif"), "must end in .svg, .png or .pdf"),
        (("ece", "--plot", "a.svg", "-o", "a.svg"), "would overwrite"),
        (("ece", "--plot", "a.svg", "--save-state", "b.state"), "--plot needs all rows in memory"),
        (("ece", "--plot", "a.svg", "--plot-by", "std"), "No such option: --plot-by"),
        (("fid", "--plot", "a.svg"), "these commands do: "),
        (("zms", "--plot-by", "kind"), "--plot-by sets what the picture shows: also pass --plot FILE"),
        (("zms", "--plot", "a.svg", "--plot-by", "nothing"), "there is no column 'nothing'"),
        (("zms", "--plot", "a.svg", "--plot-by", "mean,std,kind"), "takes one or two columns, got mean, std, kind"),
        (
            ("zms", "--plot", "a.svg", "--plot-by", "kind,std"),
            "a map needs two columns of numbers, and 'kind' has none",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(calcheck, file, tmp_path, monkeypatch, command, expected):
    monkeypatch.chdir(tmp_path)
    name, *options = command
    assert expected in calcheck(name, file, *options).refused()
    assert not list(tmp_path.glob("*.svg"))


def test_prune_draws_a_panel_for_each_metric(calcheck, file, tmp_path):
    path = tmp_path / "prune.svg"
    assert calcheck("prune", file, "--metrics", "zms,crps", "--plot", path, "--replicates", 39).code == 0
    assert {"zms", "crps [y]", "removed rows [%]", "limits of perfect models"} <= set(texts(path))


def test_compare_draws_the_differences_from_the_first_model(calcheck, file, tmp_path):
    other = write(tmp_path / "wide.parquet", columns(n=60) | {"std": 2 * columns(n=60)["std"]})
    path = tmp_path / "compare.svg"
    assert calcheck("compare", file, other, "--metrics", "crps,zms", "--plot", path).code == 0
    assert {"Differences from p", "wide", "crps [y] − p", "crps, left is better"} <= set(texts(path))


def test_inspect_draws_single_predictions(calcheck, file, tmp_path):
    path = tmp_path / "predictions.svg"
    assert calcheck("inspect", file, "--plot", path, "--plot-by", "std").code == 0
    assert {"by prediction", "along std", "in order of the targets", "errors by width"} <= set(texts(path))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--plot", "a.gif"), "must end in .svg, .png or .pdf"),
        (("--plot-by", "std"), "also pass --plot FILE"),
        (("--plot", "a.svg", "--plot-by", "kind"), "column 'kind' must hold numbers"),
        (("--plot", "a.svg", "--plot-by", "nothing"), "there is no column 'nothing'"),
    ],
)
def test_predictions_that_cannot_be_drawn_are_refused(calcheck, file, tmp_path, monkeypatch, options, expected):
    monkeypatch.chdir(tmp_path)
    assert expected in calcheck("inspect", file, *options).refused()
    assert not list(tmp_path.glob("*.svg"))


def test_predictions_that_are_not_understood_are_refused_with_the_reason(calcheck, tmp_path):
    limits = {"y": np.arange(4.0), "lower": np.arange(4.0) - 1, "upper": np.arange(4.0) + 1}
    intervals = write(tmp_path / "intervals.parquet", limits)
    assert "Pass the level that was promised" in calcheck("inspect", intervals, "--plot", tmp_path / "a.svg").refused()
