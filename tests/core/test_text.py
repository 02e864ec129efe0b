"""Text in CSV files of calcheck is never a formula to a spreadsheet, and is read back unchanged."""

import csv
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calcheck import read
from calcheck.core.text import PROTECTED, protect
from calcheck.errors import DataError
from calcheck.storage.prediction_files import write
from tests.helpers.files import columns, table
from tests.helpers.files import write as write_file

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


# quotes

HEADER, LINES = "y,mean,std,note\n", "".join(f"{row},1.1,1,a\n" for row in range(20))
WIDE_HEADER = "note,y,mean,std\n"


def y_of(tmp_path, text, name="preds.csv"):
    """Return the targets that are read from text."""
    (tmp_path / name).write_text(text, newline="")
    return read(str(tmp_path / name)).predictions().y.tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + '7,1.1,1,"abc\n' + LINES, r'begins in line 2 \("abc\) is never closed'),
        (HEADER + LINES + '7,1,1,"5 inch pipe\n' + LINES, r'line 22 \("5 inch pipe\) is never closed'),
        (HEADER + LINES + '7,1,1,"abc', "begins in line 22 .* is never closed"),
        (HEADER + '7,1,1,"5 inch\n' + LINES + '7,1,1,"6 inch\n', r"line 2 .* goes on after the quote in line 23"),
        (HEADER + '7,1,1,"5 inch\n' + LINES + '7,1,1,6"\n' + LINES, r"line 2 .*look like rows, up to line 23"),
        (WIDE_HEADER + '"5 inch,1,2,3\n6",1,2,3\na,4,5,6\n', "line 2 .*look like rows, up to line 3"),
        (HEADER.replace("\n", "\r\n") + '7,1,1,"abc\r\n8,1,1,b\r\n', "begins in line 2 .* never closed"),
        ('y,mean,std\r1,1,"1\r2,2,2\r', "begins in line 2 .* never closed"),
        ('"y,mean,std\n1,1,1\n', "begins in line 1 .* never closed"),
        (HEADER + "7,1,1,b\n" + HEADER + "7,1,1,b\n", "row 1, counted from 0, repeats the column names"),
        ("y,0.5\n1,1\ny,0.5\n2,2\n", "row 1, counted from 0, repeats the column names"),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_text_whose_rows_would_vanish_in_a_cell_is_refused(tmp_path, text, message, ending):
    """One closed quote too few hides the rows up to the next quote, or up to the end."""
    text = text.replace(",", "\t") if ending == "tsv" else text
    with pytest.raises(DataError, match=message) as error:
        y_of(tmp_path, text, f"preds.{ending}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "note",
    [
        '"one\ntwo"',
        '"one, two\r\nthree, four, five, ""six""\n\nseven"',
        '"a,b,c,d\ne,f,g,h"',  # as many cells as a row, but no numbers
        '"5"" pipe"',
        '5" pipe',
        '"5" pipe',
        '""',
    ],
)
def test_quoted_cells_with_lines_and_quotes_are_read(tmp_path, note):
    rows = [f"{row},1,1,{note}\n" for row in range(3)]
    assert y_of(tmp_path, HEADER + "".join(rows)) == [0, 1, 2]
    assert y_of(tmp_path, HEADER + "\n" + "\n".join(rows)) == [0, 1, 2]
    first = [f"{note},{row},1,1\n" for row in range(3)]
    assert y_of(tmp_path, WIDE_HEADER + "".join(first)) == [0, 1, 2]
