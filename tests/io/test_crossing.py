"""Quantiles that cross are refused with their extent, or sorted and reported."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

import calcheck
from calcheck.io import arrow_columns
from calcheck.io.crossing import crossing_of
from tests.helpers.files import limited, write
from tests.helpers.shorthand import texts
from tests.io.test_long_layouts import NIXTLA, hub, read, refused, truth

CROSSED = {  # rows 1, 3 and 4 cross by 1, 4 and 2.5
    "y": [0.0] * 5,
    "q_0.1": [0.0, 1.0, 0.0, 4.0, 1.0],
    "q_0.5": [1.0, 0.0, 0.0, 2.0, 3.5],
    "q_0.9": [2.0, 2.0, 0.0, 0.0, 1.0],
}
IN_ORDER = [[0, 1, 2], [0, 1, 2], [0, 0, 0], [0, 2, 4], [1, 1, 3.5]]


def quantiles_of(source):
    predictive = source.predictions().predictive
    return predictive.values  # noqa: PD011 - these are quantiles


def test_crossing_is_the_largest_distance_below_a_lower_level():
    assert_array_equal(crossing_of(np.column_stack([CROSSED[name] for name in list(CROSSED)[1:]])), [0, 1, 0, 4, 2.5])
    assert_array_equal(crossing_of(np.array([[3.0, 2.0, 3.5, 1.0]])), [2.5])  # below 3.5, not only below its neighbor


def test_the_refusal_names_the_number_of_rows_and_the_extent(tmp_path):
    assert refused(write(tmp_path / "q.csv", pa.table(CROSSED))).endswith(
        "q.csv: quantiles (column q_0.1, q_0.5, q_0.9) must not cross, but those of 3 of 5 rows do (rows 1, 3, 4,"
        " counted from 0), by up to 4 and by 2.5 in the median of these rows, in the unit of y."
        " Pass --crossing sort to sort the quantiles of each row"
    )


def test_crossing_quantiles_are_sorted_and_reported(tmp_path):
    source = read(write(tmp_path / "q.csv", pa.table(CROSSED)), crossing="sort")
    assert_array_equal(quantiles_of(source), IN_ORDER)
    (message,) = source.warnings()
    assert message.code == "sorted-quantiles"
    assert message.text == (
        "quantiles crossed in 3 of 5 rows, by up to 4 and by 2.5 in the median of these rows, and were sorted"
        " (--crossing sort)"
    )
    assert source.explicit()[-2:] == ["--crossing", "sort"]


def test_quantiles_in_order_are_not_changed_by_sorting(tmp_path):
    path = write(tmp_path / "q.csv", pa.table(CROSSED).take([0, 2]))
    source = read(path, crossing="sort")
    assert_array_equal(quantiles_of(source), quantiles_of(read(path)))
    assert source.warnings() == ()
    assert "--crossing" not in source.explicit()


def test_rows_of_all_batches_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(arrow_columns, "BATCH_ROWS", 2)  # the real ones have 131,072 rows
    path = write(tmp_path / "q.csv", pa.table(CROSSED))
    assert "3 of 5 rows do (row 1, counted from 0), by up to 4 and by 2.5" in refused(path)
    source = read(path, crossing="sort")
    assert len(list(source.batches())) == 3
    assert source.reading.crossing.count == 3


def test_quantiles_that_are_read_again_are_sorted_again(tmp_path, monkeypatch):
    monkeypatch.setattr(arrow_columns, "BATCH_ROWS", 2)  # the real ones have 131,072 rows
    source = read(write(tmp_path / "q.csv", pa.table(CROSSED)), crossing="sort")
    predictive = limited(source, predictive_bytes=1).predictions().predictive
    assert predictive.nbytes == 0
    assert_array_equal(predictive.quantile(0.9), [2, 2, 0, 4, 3.5])


def test_rows_of_several_files_are_numbered_in_their_file(tmp_path):
    for name, rows in (("a", [0, 2]), ("b", [0, 3])):
        write(tmp_path / f"{name}.csv", pa.table(CROSSED).take(rows))
    message = refused_folder(tmp_path)
    assert "b.csv: quantiles" in message
    assert "1 of 4 rows do (row 1, counted from 0)" in message


def refused_folder(path):
    with pytest.raises(calcheck.errors.CalcheckError) as raised:
        calcheck.read(str(path)).predictions()
    return str(raised.value)


def test_missing_quantiles_are_dropped_before_rows_are_counted(tmp_path):
    columns = CROSSED | {"q_0.5": [1.0, None, 0.0, 2.0, 3.5]}
    path = write(tmp_path / "q.parquet", pa.table(columns))
    assert "2 of 4 rows do (rows 3, 4" in refused(path, nan_policy="omit")
    assert "must be finite numbers, but 1 of 5 rows is not (row 1" in refused(path, crossing="sort")
    assert len(read(path, nan_policy="omit", crossing="sort").predictions()) == 4


def test_infinite_quantiles_are_refused_also_when_rows_are_sorted(tmp_path):
    path = write(tmp_path / "q.parquet", pa.table(CROSSED | {"q_0.1": [0.0, np.inf, 0.0, 4.0, 1.0]}))
    for policy in ("raise", "sort"):
        assert "must be finite numbers" in refused(path, crossing=policy)


def test_crossing_quantiles_of_every_layout_are_sorted(tmp_path):
    crossed = hub()
    crossed["value"][0] = 99.0
    found = {"truth": write(tmp_path / "truth.csv", pa.table(truth()))}
    path = write(tmp_path / "hub.csv", pa.table(crossed))
    assert "1 of 6 rows do (row 0" in refused(path, **found)
    assert_array_equal(quantiles_of(read(path, **found, crossing="sort"))[0], [1, 2, 99])
    nixtla = write(tmp_path / "nixtla.csv", pa.table(NIXTLA | {"NHITS-lo-90": [50.0, 51.0, 52.0]}))
    assert "3 of 3 rows do" in refused(nixtla, model="NHITS")
    assert_array_equal(quantiles_of(read(nixtla, model="NHITS", crossing="sort"))[0], [12, 18, 19, 50])
    record = {"quantiles": {"0.1": [0.0, 3.0], "0.9": [2.0, 1.0]}}
    (tmp_path / "gluonts.jsonl").write_text(json.dumps(record))
    assert "1 of 2 rows do" in refused(tmp_path / "gluonts.jsonl", wanted="any")
    again = read(tmp_path / "gluonts.jsonl", wanted="any", crossing="sort")
    assert_array_equal(quantiles_of(again), [[0, 2], [1, 3]])


def test_frames_and_arrays_take_the_option_as_a_keyword():
    frame = pd.DataFrame(CROSSED)
    with pytest.raises(calcheck.errors.DataError, match=r"3 of 5 rows do"):
        calcheck.evaluate(frame, "ece")
    report = calcheck.evaluate(frame, "ece", crossing="sort", replicates=0, resamples=0)
    assert any("crossed in 3 of 5 rows" in text for text in texts(report.results[0].warnings))
    arrays = {float(name[2:]): frame[name] for name in frame.columns[1:]}
    assert_array_equal(quantiles_of(calcheck.read(y=frame["y"], quantiles=arrays, crossing="sort")), IN_ORDER)
    with pytest.raises(calcheck.errors.OptionError, match=r"crossing takes one of raise, sort, got 'keep'"):
        calcheck.read(frame, crossing="keep")
