"""Suggestions of reports in Python are calls that can be made, where ``...`` stands for the other arguments."""

import re

import numpy as np
import pandas as pd
import pytest

import calcheck

pytestmark = pytest.mark.slow
FEW = {"replicates": 19, "resamples": 0}
N = 120
FORMS = ("frame", "path", "position", "keywords")


def suggested(data, given):
    """Make all calls that a report suggests, and return it with them: the command of its cause, and the next."""
    report = calcheck.evaluate(*data, **given, **FEW)
    undo, following = [each.command for each in report.conclusion.causes[:1]], report.conclusion.next
    for call in filter(None, (*undo, *following)):
        others = {name: value for name, value in (given | FEW).items() if not re.search(rf"\b{name}=", call)}
        names = {"calcheck": calcheck, "report": report, "data": data, "others": others}
        exec(call.replace("...", "*data, **others"), names)  # noqa: S102 - calls of this package
    return report, undo, following


def arguments(frame, form, inputs):
    """Return the arguments by position and by keyword that hand over a frame in a form, with inputs x or without."""
    y, mean, std = (frame[name] for name in ("y", "mean", "std"))
    if form in ("frame", "path"):
        frame.to_csv("preds.csv", index=False)
        return [frame if form == "frame" else "preds.csv"], {"inputs": "x"} if inputs else {}
    if form == "position":
        return [y, mean, std], {"inputs": frame[["x"]].to_numpy()} if inputs else {}
    return [], {"y": y, "mean": mean, "std": std} | ({"inputs": frame[["x"]]} if inputs else {})


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def frame():
    """Rows whose errors have the given std; x is a further column."""
    rng = np.random.default_rng(0)
    std, x = np.exp(rng.normal(-1, 0.7, N)), rng.normal(size=N)
    return pd.DataFrame({"y": std * rng.normal(size=N), "mean": 0.0, "std": std, "x": x})


@pytest.mark.parametrize("inputs", [False, True], ids=["bare", "inputs"])
@pytest.mark.parametrize("form", FORMS)
def test_a_std_that_is_a_variance_is_undone_by_a_call_and_not_corrected(frame, form, inputs):
    """Arrays would have to be another argument, which only the user can name."""
    data, given = arguments(frame.assign(std=frame["std"] ** 2), form, inputs)
    report, undo, following = suggested(data, given)
    call = "calcheck.evaluate(..., var='std')" if form in ("frame", "path") else ""
    assert (report.conclusion.causes[0].cause, undo) == ("variance-as-std", [call])
    assert f"  undo     {call}" in repr(report) or not call
    assert not any("recalibrate" in each for each in following)
    assert not re.search(r"calcheck evaluate|recalibrate|\\", repr(report))


@pytest.mark.parametrize("form", FORMS)
def test_errors_along_inputs_are_shown_and_corrected_by_calls(frame, form):
    y = frame["y"] / frame["std"] * np.exp(0.8 * frame["x"])
    data, given = arguments(frame.assign(y=y, std=1.0), form, inputs=True)
    report, undo, following = suggested(data, given)
    assert undo == ["calcheck.recalibrate(...)"]
    assert "calcheck.recalibrate(...)" in following
    assert repr(report).count("calcheck.recalibrate(...)") == 1
    extremes = "calcheck.evaluate(..., metrics='cce', worst=5)"  # The array has no columns to search
    assert following[0] == (extremes if form == "position" else "calcheck.slices(...)")


def test_a_role_that_was_named_is_taken_back(frame):
    data, given = arguments(frame.assign(std=frame["std"] ** 2), "frame", inputs=False)
    assert suggested(data, {**given, "std": "std"})[1] == ["calcheck.evaluate(..., std=None, var='std')"]


def test_an_edit_of_a_file_is_python_code(frame):
    """The file that it writes has the right std."""
    data, given = arguments(frame.assign(std=1000 * frame["std"]), "path", inputs=False)
    _, (code,), following = suggested(data, given)
    assert code.startswith("import pandas as pd; f = ")
    np.testing.assert_allclose(pd.read_csv("mended.csv")["std"], frame["std"])
    assert not any("recalibrate" in each for each in following)


def test_limits_of_targets_are_suggested_once(frame):
    report, undo, following = suggested([frame.assign(y=frame["y"].clip(-0.2, 0.3))], {})
    assert undo == ["calcheck.evaluate(..., clip='-0.2,0.3')"]
    assert repr(report).count(undo[0]) == 1 == following.count(undo[0])


def test_a_column_joins_named_inputs_and_no_array(frame):
    step = np.sort(np.random.default_rng(1).uniform(0, 1000, N))
    dependent = frame.assign(y=3 * np.sin(9e-3 * step) + frame["y"] / frame["std"], std=1.0, step=step)
    time, joined = "calcheck.evaluate(..., time='step')", "calcheck.evaluate(..., inputs='x,step')"
    assert suggested([dependent], {"inputs": "x"})[2] == (time, joined)
    assert suggested([dependent], {"inputs": frame[["x"]].to_numpy()})[2] == (time,)
