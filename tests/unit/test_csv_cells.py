"""Text in CSV files of calcheck is never a formula to a spreadsheet, and is read back unchanged."""

import csv
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calcheck import read
from calcheck.csv_cells import PROTECTED, protect
from calcheck.errors import DataError
from calcheck.storage.predictions_writer import write
from tests.files import columns, table
from tests.files import write as write_file

CELLS = ("=cmd|' /C calc'!A0", "+1", "-2", "@SUM(A1)", "\t=1", "\r=1", "'=1", "''=1", "'a'", "plain", "1", "a=b")


@given(st.text("'=+-@\t\r\na", max_size=6))
def test_protected_text_is_not_a_formula_and_is_restored(text):
    cell = protect(text)
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert re.sub(PROTECTED, r"\1", cell) == text


def convert_to_csv(tmp_path, ids, more=None):
    parts = columns(n=len(ids)) | {"id": pa.array(ids)} | (more or {})
    path = tmp_path / "preds.csv"
    write(
        read(write_file(tmp_path / "preds.parquet", table({k: v for k, v in parts.items() if k != "embedding"}))),
        str(path),
    )
    return path


def test_keys_in_csv_are_not_formulas_and_are_read_back(tmp_path):
    path = convert_to_csv(tmp_path, CELLS)
    with path.open(newline="") as file:
        cells = [cell for line in csv.reader(file) for cell in line]
    numbers = [cell for cell in cells if cell.startswith("-")]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@", "\t", "\r"))]
    assert numbers
    assert all(np.isfinite(float(cell)) for cell in numbers)
    assert read(str(path)).predictions().id.tolist() == list(CELLS)


def test_column_names_in_csv_are_not_formulas_and_are_read_back(tmp_path):
    parts = columns(n=2) | {"=1+1": np.array(["=2", "b"])}
    del parts["embedding"]
    source = read(write_file(tmp_path / "preds.parquet", parts))
    source.narrow = True
    write(source, str(tmp_path / "preds.csv"))
    assert "'=1+1" in (tmp_path / "preds.csv").read_text().splitlines()[0]
    again = read(str(tmp_path / "preds.csv"))
    again.narrow = True
    assert again.predictions().columns["=1+1"].tolist() == ["=2", "b"]


@pytest.mark.parametrize("ids", [["007", "008"], ["1", "2"], ["2020-01-01", "2020-01-02"], [3, 1], ["-1", "+2"]])
def test_keys_that_csv_can_represent_are_read_back(tmp_path, ids):
    found = read(str(convert_to_csv(tmp_path, ids))).predictions().id
    assert [str(key) for key in found] == [str(key) for key in ids]


@pytest.mark.parametrize("ids", [["1.50", "2.5"], ["1e3", "2e3"]])
def test_keys_that_csv_would_change_are_refused(tmp_path, ids):
    with pytest.raises(DataError, match=rf"the key '{ids[0]}' .* would be read as a different one. Write .parquet"):
        convert_to_csv(tmp_path, ids)
    assert not (tmp_path / "preds.csv").exists()
