"""Rows of long and nested files become forecast units with the right row numbers."""

import json

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from tests.helpers.files import limited, write
from tests.io.test_long_layouts import UNITS, hub, read, refused, truth


def test_units_keep_the_row_numbers_of_the_file(tmp_path):
    """Six units of three quantiles, then six of two draws: the draws begin at row 18, and a batch has five rows."""
    both = pa.concat_tables([pa.table(hub()), pa.table(hub("sample", ["a", "b"]))])
    source = read(write(tmp_path / "hub.parquet", both), filter=("output_type=sample",), wanted="any")
    source = limited(source, batch_bytes=1, batch_rows=5)
    assert_array_equal(source.predictions().row, 18 + 2 * np.arange(6))
    assert_array_equal(source.predictions().predictive.draws[5], [50, 51])
    assert source.input_info().files[0].rows == 30


def legacy(targets, **more):
    """A legacy hub's file: a unit of two quantiles for each target."""
    rows = [(place, target, level) for place, target in enumerate(targets) for level in (0.1, 0.9)]
    return {
        "forecast_date": ["2022-11-14"] * len(rows),
        "location": ["01"] * len(rows),
        "target": [target for _, target, _ in rows],
        "type": ["quantile"] * len(rows),
        "quantile": [str(level) for *_, level in rows],
        "value": [place + level for place, _, level in rows],
        **more,
    }


def test_horizons_distinguish_units_of_legacy_hubs(tmp_path):
    columns = legacy(["1 wk ahead inc death", "2 wk ahead inc death"])
    rows = read(write(tmp_path / "a.csv", pa.table(columns)), wanted="any", narrow=True).predictions()
    assert_array_equal(rows.predictive.values, [[0.1, 0.9], [1.1, 1.9]])
    assert_array_equal(rows.columns["horizon"], [1, 2])
    assert rows.columns["target"].tolist() == ["wk inc death"] * 2
    given = legacy(["1 wk ahead inc death"], horizon=[7, 7])  # an existing horizon is kept
    rows = read(write(tmp_path / "b.csv", pa.table(given)), wanted="any", narrow=True).predictions()
    assert_array_equal(rows.columns["horizon"], [7])
    assert rows.columns["target"].tolist() == ["1 wk ahead inc death"]


def test_targets_with_and_without_a_horizon_are_not_merged(tmp_path):
    path = write(tmp_path / "mixed.csv", pa.table(legacy(["1 wk ahead inc death", "inc flu hosp"])))
    assert "several targets: '1 wk ahead inc death', 'inc flu hosp'" in refused(path)


def test_point_forecasts_do_not_shift_the_row_numbers_of_quantiles(tmp_path):
    columns = {name: values[:1] for name, values in legacy(["inc death"]).items()}
    points = columns | {"type": ["point"], "quantile": ["NA"]}
    path = write(tmp_path / "p.csv", pa.concat_tables([pa.table(points), pa.table(legacy(["inc death"]))]))
    assert_array_equal(read(path, wanted="any").predictions().row, [1])
    third = pa.table(columns | {"type": ["sample"], "quantile": ["1"]})
    path = write(tmp_path / "s.csv", pa.concat_tables([pa.table(points), pa.table(legacy(["inc death"])), third]))
    assert "several output types: 'point', 'quantile', 'sample'" in refused(path)


def test_a_missing_key_distinguishes_units(tmp_path):
    """Keys (A, s), (B, missing), (B, s) are three units."""
    keys = [("A", "s"), ("B", None), ("B", "s")]
    columns = {
        "place": [key[0] for key in keys for _ in range(2)],
        "part": [key[1] for key in keys for _ in range(2)],
        "observed": [float(unit) for unit in range(3) for _ in range(2)],
        "quantile_level": [0.1, 0.9] * 3,
        "predicted": [10.0 * unit + side for unit in range(3) for side in (0, 1)],
    }
    rows = read(write(tmp_path / "keys.parquet", pa.table(columns))).predictions()
    assert_array_equal(rows.predictive.values, [[0, 1], [10, 11], [20, 21]])
    assert_array_equal(rows.y, [0, 1, 2])


def scores(**changed):
    """A file of scoringutils: three units of two quantiles."""
    return {
        "location": [unit for unit in "abc" for _ in range(2)],
        "target_type": ["Cases"] * 6,
        "observed": [float(unit) for unit in range(3) for _ in range(2)],
        "quantile_level": [0.3, 0.6] * 3,
        "predicted": [10.0 * unit + side for unit in range(3) for side in (0, 1)],
        **changed,
    }


def test_target_types_are_treated_as_targets(tmp_path):
    path = write(tmp_path / "types.csv", pa.table(scores(target_type=["Cases"] * 2 + ["Deaths"] * 4)))
    assert "several targets: 'Cases', 'Deaths'. Pass --filter target_type='Cases'" in refused(path)


def test_units_without_a_target_are_dropped_on_request(tmp_path):
    path = write(tmp_path / "gap.csv", pa.table(scores(observed=[0.0, 0.0, None, None, 2.0, 2.0])))
    assert "y must be finite numbers, but 1 of 3 rows is not (row 2, counted from 0" in refused(path)
    source = read(path, nan_policy="omit")
    assert_array_equal(source.predictions().y, [0, 2])
    assert source.reading.n_dropped == 1


def test_levels_that_differ_by_rounding_are_merged(tmp_path):
    """0.1 + 0.2 is 0.30000000000000004."""
    path = write(tmp_path / "levels.parquet", pa.table(scores(quantile_level=[0.3, 0.6, 0.1 + 0.2, 0.6, 0.3, 0.6])))
    rows = read(path).predictions()
    assert_array_equal(rows.predictive.levels, [0.3, 0.6])
    assert_array_equal(rows.predictive.values[1], [10, 11])


def test_rows_without_a_level_are_not_quantiles(tmp_path):
    """scoringutils writes point forecasts this way; the values at other levels are not shifted."""
    columns = scores()
    point = {name: [values[0]] for name, values in columns.items()} | {"quantile_level": [None], "predicted": [99.0]}
    whole = pa.concat_tables([pa.table(point).cast(pa.table(columns).schema), pa.table(columns)])
    rows = read(write(tmp_path / "one.parquet", whole)).predictions()
    assert_array_equal(rows.predictive.values, [[0, 1], [10, 11], [20, 21]])
    assert_array_equal(rows.row, [1, 3, 5])  # the point is row 0


@pytest.mark.parametrize("level", ["0", "1.5"])
def test_levels_outside_0_and_1_are_refused(tmp_path, level):
    message = refused(write(tmp_path / "hub.csv", pa.table(hub(ids=(level, 0.5, 0.9)))))
    assert f"column 'output_type_id' must hold levels strictly between 0 and 1, got {level}" in message


def test_duplicate_and_unnamed_draws_are_refused(tmp_path):
    whole = pa.table(hub("sample", ["a", "b"]))
    path = write(tmp_path / "twice.csv", pa.concat_tables([whole, whole]))
    assert "12 rows repeat a unit and its output_type_id, for example" in refused(path)
    unnamed = hub("sample", ["a", "b"])
    unnamed["output_type_id"][3] = None
    path = write(tmp_path / "unnamed.parquet", pa.table(unnamed))
    assert "'output_type_id', which identifies draws, is empty in 1 row" in refused(path)


def records(**changed):
    """Two records of GluonTS: two steps, three paths."""
    return [
        {
            "item_id": name,
            "target": "sales",  # a label, not an observation
            "mean": [0.0, 0.0],
            "samples": [[start + 10.0 * path + step for step in range(2)] for path in range(3)],
        }
        | changed
        for start, name in ((0.0, "a"), (100.0, "b"))
    ]


def save(path, lines):
    path.write_text("\n".join(map(json.dumps, lines)))
    return str(path)


def test_steps_keep_the_fields_of_their_record(tmp_path):
    path = save(tmp_path / "forecasts.jsonl", records())
    source = read(path, wanted="any", narrow=True)
    rows = source.predictions()
    assert_array_equal(rows.predictive.draws, [[0, 10, 20], [1, 11, 21], [100, 110, 120], [101, 111, 121]])
    assert rows.columns["item_id"].tolist() == ["a", "a", "b", "b"]
    assert_array_equal(rows.row, [0, 0, 1, 1])  # row numbers are those of records
    assert source.input_info().files[0].rows == 2
    assert rows.y is None
    known = {"item_id": ["b", "b", "a", "a"], "step": [1, 2, 1, 2], "y": [3.0, 4.0, 1.0, 2.0]}
    joined = read(path, truth=write(tmp_path / "truth.csv", pa.table(known)))
    assert_array_equal(joined.predictions().y, [1, 2, 3, 4])
    assert joined.explicit()[-1] == "item_id,step"


def test_steps_of_one_record_keep_its_row_number(tmp_path):
    """The second record has two steps, as many as there are records up to it."""
    source = read(save(tmp_path / "forecasts.jsonl", records()), wanted="any", filter=("item_id=b",))
    assert_array_equal(source.predictions().row, [1, 1])


def test_records_without_samples_are_refused(tmp_path):
    assert "'samples'" in refused(save(tmp_path / "empty.jsonl", records(samples=[[]])), wanted="any")


def test_filtered_units_are_joined_with_their_own_targets(tmp_path):
    """A filter keeps the last three units, which are joined with their own targets."""
    path = write(tmp_path / "hub.csv", pa.table(hub()))
    known = write(tmp_path / "truth.csv", pa.table(truth()))
    source = read(path, truth=known, filter=(f"target_end_date={UNITS[3][1]}",))
    assert_array_equal(source.predictions().y, [103, 104, 105])
    assert_array_equal(source.predictions().row, [9, 12, 15])
