"""Rows of two files are joined by shared keys only; ambiguous keys are refused."""

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from calcheck.errors import CalcheckError
from tests.helpers.files import write
from tests.io.test_long_layouts import UNITS, hub, read, refused, truth

NORMAL = {"mean": [1.0, 2.0, 3.0], "std": [1.0, 1.0, 1.0]}


def joined_targets(tmp_path, here, there, **options):
    """Write both files, and return the targets of the first that are joined from the second."""
    path = write(tmp_path / "preds.feather", pa.table(here))
    other = write(tmp_path / "truth.feather", pa.table(there))
    return read(path, truth=f"{other}{options.pop('column', '')}", **options).predictions().y


def test_predictions_and_targets_are_not_used_as_keys(tmp_path):
    """Integers in both files that are predictions in one and observations in the other."""
    here = {"item": ["a", "b", "c"], "sold": [7, 7, 7], "mean": [1, 2, 3], "std": [1, 1, 1]}
    there = {"item": ["c", "b", "a"], "mean": [8, 8, 8], "sold": [30, 20, 10]}
    assert_array_equal(joined_targets(tmp_path, here, there, column=":sold"), [10, 20, 30])


def test_targets_of_the_truth_file_take_precedence(tmp_path):
    here = {"item": ["a", "b", "c"], "y": [7.0, 7.0, 7.0], **NORMAL}
    assert_array_equal(joined_targets(tmp_path, here, {"item": ["c", "b", "a"], "y": [30.0, 20.0, 10.0]}), [10, 20, 30])


def test_an_id_is_the_only_key(tmp_path):
    here = {"id": [1, 2, 3], "fold": [0, 0, 0], **NORMAL}
    there = {"id": [3, 2, 1], "fold": [5, 6, 7], "y": [30.0, 20.0, 10.0]}
    assert_array_equal(joined_targets(tmp_path, here, there), [10, 20, 30])


def test_fractions_are_not_keys_but_whole_floats_are(tmp_path):
    """pandas writes integers as 1.0 if some are missing; inputs differ in their last digits."""
    here = {"item_id": [1, 2, 3], "age": [0.1, 0.2, 0.3], **NORMAL}
    there = {"item_id": [3.0, 2.0, 1.0], "age": [0.3, 0.2, 0.1 + 1e-17], "y": [30.0, 20.0, 10.0]}
    assert_array_equal(joined_targets(tmp_path, here, there | {"age": [0.0] * 3}), [10, 20, 30])


def test_keys_of_a_layout_may_be_floats(tmp_path):
    columns = {
        "horizon": [1.0, 1.0, 2.0, 2.0],
        "output_type": ["quantile"] * 4,
        "output_type_id": [0.1, 0.9] * 2,
        "value": [1.0, 2.0, 3.0, 4.0],
    }
    assert_array_equal(joined_targets(tmp_path, columns, {"horizon": [2.0, 1.0], "value": [20.0, 10.0]}), [10, 20])


def test_row_labels_are_keys_only_without_other_keys(tmp_path):
    """pandas' row labels have no name, or a generated one; they are ignored if rows have other keys."""
    (tmp_path / "preds.csv").write_text(",mean,std\n7,1,1\n3,2,1\n")
    (tmp_path / "truth.csv").write_text("Unnamed: 0,y\n3,30\n7,70\n")
    source = read(str(tmp_path / "preds.csv"), truth=str(tmp_path / "truth.csv"))
    assert_array_equal(source.predictions().y, [70, 30])
    assert "--join-on" not in source.explicit()  # the column has no name to pass
    for label in ("", "Unnamed: 0"):
        (tmp_path / "preds.csv").write_text(f"{label},item,mean,std\n0,a,1,1\n1,b,2,1\n")
        (tmp_path / "truth.csv").write_text(f"{label},item,y\n0,b,20\n1,a,10\n")
        found = read(str(tmp_path / "preds.csv"), truth=str(tmp_path / "truth.csv"))
        assert_array_equal(found.predictions().y, [10, 20])


def test_other_date_columns_of_the_truth_file_are_not_keys(tmp_path):
    """`as_of` is the date of the file; only the other date column contains all dates of the hub."""
    path = write(tmp_path / "hub.csv", pa.table(hub()))
    late = {"as_of": [f"2026-03-{day:02}" for day in range(1, 7)]}
    source = read(path, truth=write(tmp_path / "a.csv", pa.table(late | truth())))
    assert_array_equal(source.predictions().y, 100.0 + np.arange(6))
    assert source.explicit()[-1] == "location,target_end_date=date"
    shared = late | truth(location=0, target_end_date=1)
    source = read(path, truth=write(tmp_path / "b.csv", pa.table(shared)))
    assert_array_equal(source.predictions().y, 100.0 + np.arange(6))
    assert source.explicit()[-1] == "location,target_end_date"


def test_date_columns_are_matched_only_if_all_values_match(tmp_path):
    """Date columns are recognized by their names, including `ds`, even as text."""
    here = {"ds": ["2026-01-03", "2026-01-10"], "mean": [1.0, 2.0], "std": [1.0, 1.0]}
    there = {"date": ["2026-01-10", "2026-01-03"], "y": [2.0, 1.0]}
    assert_array_equal(joined_targets(tmp_path, here, there), [1, 2])
    with pytest.raises(CalcheckError, match=r"has all values in .* Pass --join-on "):
        joined_targets(tmp_path, here, there | {"date": ["2026-01-10", "2026-01-17"]})


def test_shared_date_columns_are_not_matched_again(tmp_path):
    """Two locations on one date: the date is joined by its name, and the other date column has no match."""
    here = {"date": ["2026-01-03"] * 2, "issue_date": ["2026-01-03"] * 2, "mean": [1.0, 2.0], "std": [1.0, 1.0]}
    there = {"date": ["2026-01-03"] * 2, "y": [1.0, 2.0]}
    with pytest.raises(CalcheckError, match=r"1 key occurs more than once"):
        joined_targets(tmp_path, here, there)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"item": ["a"], "y": [1.0], "value": [2.0]}, 1),
        ({"item": ["a"], "value": [2.0], "rate": [3.0]}, 2),
        ({"item": ["a"], "sales": [3.0]}, 3),
        ({"item": ["a"], "y": [1.0], "target": [1.0]}, None),
        ({"item": ["a"], "sales": [1.0], "rate": [1.0]}, None),
    ],
)
def test_the_target_column_is_recognized_or_ambiguous(tmp_path, columns, expected):
    """A name of targets comes first, then `value` as in hubs, then the only remaining column."""
    here = {"item": ["a"], "mean": [1.0], "std": [1.0]}
    if expected is None:
        with pytest.raises(CalcheckError, match=r"the column of targets in .* is ambiguous"):
            joined_targets(tmp_path, here, columns)
    else:
        assert joined_targets(tmp_path, here, columns) == expected


def test_keys_are_compared_column_by_column_and_must_be_present(tmp_path):
    """(ab, c) differs from (a, bc)."""
    here = {"one": ["ab", "a"], "two": ["c", "bc"], "mean": [1.0, 2.0], "std": [1.0, 1.0]}
    there = {"one": ["a", "ab"], "two": ["bc", "c"], "y": [2.0, 1.0]}
    assert_array_equal(joined_targets(tmp_path, here, there), [1, 2])
    gaps = {"one": ["a", "ab", "a", "a"], "two": ["bc", "c", None, None], "y": [2.0, 1.0, 9.0, 9.0]}
    assert_array_equal(joined_targets(tmp_path, here, gaps), [1, 2])  # targets without a key are ignored
    with pytest.raises(CalcheckError, match=r"key column 'two' is missing in 1 row, for example row 1"):
        joined_targets(tmp_path, here | {"two": ["c", None]}, there)
    with pytest.raises(CalcheckError, match=r"2 of 2 rows are not in .*, for example one='ab', two='c' "):
        joined_targets(tmp_path, here, there | {"two": ["x", "y"]})


@pytest.mark.parametrize(("wanted", "other"), [("02", "10"), ("0x", "10"), ("01", "USA")])
def test_lost_leading_zeros_are_suggested_only_if_they_explain_the_keys(tmp_path, wanted, other):
    here = {"place": [wanted], "mean": [1.0], "std": [1.0]}
    with pytest.raises(CalcheckError, match=f"its keys look like place='{other}'") as raised:
        joined_targets(tmp_path, here, {"place": [other], "y": [1.0]})
    assert "lost leading zeros" not in str(raised.value)


@pytest.mark.parametrize(
    ("here", "there"),
    [
        (pa.array([1, 2, 3]), pa.array([3.0, 2.0, 1.0])),
        (pa.array([1, 2, 3]), pa.array([3.0, 2.0, 1.0]).dictionary_encode()),
        (pa.array([1.5, -0.0, 1e300]), pa.array(["1e+300", "0", "1.5"])),
        (pa.array([2.0**60, 2.0, 3.0]), pa.array(["3", "2", "1.152921504606847e+18"])),
        (pa.array(["2026-01-03", "2026-01-04", "x"]), pa.array(["x", "2026-01-04", "2026-01-03"]).dictionary_encode()),
        (pa.array([0, 1, 2], pa.date32()), pa.array([2 * 86400, 86400, 0], pa.timestamp("s"))),
        (pa.array([0, 1, 2], pa.date32()), pa.array([2 * 86400 * 10**9, 86400 * 10**9, 0], pa.timestamp("ns"))),
        (pa.array([0, 3600, 7200], pa.timestamp("s")), pa.array([72 * 10**8, 36 * 10**8, 0], pa.timestamp("us"))),
    ],
)
def test_keys_of_different_types_are_compared_by_value(tmp_path, here, there):
    """Integers, floats, text, categories, dates, and times in any unit; an hour later is another key."""
    table = {"key_id": here, **NORMAL}
    assert_array_equal(joined_targets(tmp_path, table, {"key_id": there, "y": [30.0, 20.0, 10.0]}), [10, 20, 30])


def test_other_files_are_joined_by_rows_before_filtering(tmp_path):
    """A filter keeps two of four rows: targets and embeddings are those of rows 1 and 3."""
    here = {"split": ["a", "b", "a", "b"], "mean": [1.0] * 4, "std": [1.0] * 4}
    path = write(tmp_path / "preds.csv", pa.table(here))
    known = write(tmp_path / "truth.csv", pa.table({"y": [10.0, 11.0, 12.0, 13.0]}))
    np.save(tmp_path / "emb.npy", np.arange(8.0).reshape(4, 2))
    options = {"truth": known, "embedding": str(tmp_path / "emb.npy")}
    rows = read(path, filter=("split=b",), **options).predictions()
    assert_array_equal(rows.y, [11, 13])
    assert_array_equal(rows.x, [[2, 3], [6, 7]])
    assert_array_equal(rows.row, [1, 3])
    np.save(tmp_path / "emb.npy", np.arange(4.0).reshape(2, 2))
    assert "more rows than the 2 of" in refused(path, filter=("split=b",), **options)


def test_forecast_units_without_keys_are_joined_by_number(tmp_path):
    """Without keys the second unit, which begins at row 3 of the file, has the second target and embedding."""
    path = write(tmp_path / "hub.csv", pa.table(hub(units=UNITS[:2])))
    np.save(tmp_path / "emb.npy", np.arange(4.0).reshape(2, 2))
    known = write(tmp_path / "truth.csv", pa.table({"y": [10.0, 11.0]}))
    rows = read(path, truth=known, embedding=str(tmp_path / "emb.npy")).predictions()
    assert_array_equal(rows.y, [10, 11])
    assert_array_equal(rows.x, [[0, 1], [2, 3]])


def test_an_embedding_is_joined_by_an_id_with_another_name(tmp_path):
    path = write(tmp_path / "preds.parquet", pa.table({"smiles": ["C", "N", "O"], "y": [1.0, 2.0, 3.0], **NORMAL}))
    vectors = pa.table({"smiles": ["O", "N", "C"], "v": [[3.0], [2.0], [1.0]]})
    other = write(tmp_path / "emb.parquet", vectors)
    rows = read(path, embedding=f"{other}:v", id="smiles").predictions()
    assert_array_equal(rows.x, [[1], [2], [3]])
