"""`on=`: new inputs as a frame, an array or predictions."""

import numpy as np
import pandas as pd
import pytest

import calcheck
from calcheck import FileError, OptionError, Predictions
from calcheck.distributions import Gaussian

FEW = {"replicates": 0, "resamples": 0}


@pytest.fixture
def frame():
    x = np.random.default_rng(0).normal(size=(40, 2))
    return pd.DataFrame(x, columns=["a", "b"]).assign(mean=0.0, std=1.0, y=x[:, 0])


def test_new_inputs_are_a_frame_or_an_array(frame):
    new = pd.DataFrame({"b": [0.0, 90.0], "a": [0.1, 90.0], "name": ["near", "far"]}, index=["one", "two"])
    for on in (new, new[["a", "b"]].to_numpy()):
        report = calcheck.evaluate(frame, "zms", inputs=["a", "b"], on=on, **FEW)
        assert report.conclusion.on.rows == 2
        assert report.rows("on")["beyond"].tolist() == [False, True]
    found = calcheck.evaluate(frame, "zms", inputs=["a", "b"], on=new, **FEW).rows("on")
    assert found["name"].tolist() == ["near", "far"]
    assert found.index.tolist() == ["one", "two"]


def test_predictions_in_memory_have_new_inputs_in_memory(frame):
    x = frame[["a", "b"]].to_numpy()
    rows = Predictions(y=x[:, 0], predictive=Gaussian(np.zeros(40), np.ones(40)), x=x)
    for on in (rows.take(range(20)), x):
        assert calcheck.evaluate(rows, "zms", on=on, **FEW).conclusion.on.beyond.rows == 0


def test_what_contradicts_new_inputs_is_refused_by_its_keyword(frame):
    with pytest.raises(OptionError, match=r"^weights does not apply to new inputs \(on\)"):
        calcheck.evaluate(frame, "zms", inputs=["a", "b"], on=frame, weights="std", **FEW)
    with pytest.raises(OptionError, match="also pass inputs or embedding"):
        calcheck.evaluate(frame, "zms", on=frame.copy(), **FEW)
    for function in (calcheck.evaluate, calcheck.recalibrate):
        with pytest.raises(OptionError, match=r"^on is the data of the tested rows\. Pass other rows"):
            function(frame, inputs=["a", "b"], on=frame)
    with pytest.raises(OptionError, match=r"^the new rows \(on\) are the tested rows: all inputs and targets are"):
        calcheck.evaluate(frame, inputs=["a", "b"], on=frame.copy(), **FEW)
    with pytest.raises(OptionError, match=r"^the new rows \(on\) have 3 inputs, the tested ones 2: both must be"):
        calcheck.evaluate(frame, "zms", inputs=["a", "b"], on=np.zeros((9, 3)), **FEW)
    with pytest.raises(FileError, match=r"^on: there is no column 'b' for the inputs"):
        calcheck.evaluate(frame, "zms", inputs=["a", "b"], on=frame[["a"]], **FEW)


def test_the_files_of_new_inputs_are_not_those_of_rows_in_memory(frame, tmp_path):
    frame[["a", "b"]].to_csv(tmp_path / "new.csv", index=False)
    text = str(calcheck.evaluate(frame, "zms", inputs=["a", "b"], on=tmp_path / "new.csv", **FEW))
    assert text.startswith("40 rows")
    assert " on new.csv" in text


def test_the_check_in_python_has_a_gate_for_new_inputs(frame):
    result = calcheck.check(frame, "zms", inputs=["a", "b"], on=frame[1:], **FEW)
    assert [gate.rule for gate in result.gates] == ["answer == 'no'", "on.answer == 'no'"]


@pytest.mark.slow
def test_the_page_of_python_has_the_new_inputs(frame):
    page = calcheck.report(frame, "zms", inputs=["a", "b"], on=frame.drop(columns="y"), **FEW)
    assert "Distances from the tested inputs" in page.html
