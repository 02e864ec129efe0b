"""Layouts of common tools become forecast units; ambiguous or incomplete ones are refused."""

import json
import re
import sys

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calcheck import METRICS
from calcheck.distributions import Quantiles
from calcheck.errors import CalcheckError
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.io.column_names import ColumnOptions
from calcheck.io.file_source import FileSource
from calcheck.io.files import File
from tests.helpers.files import limited, write
from tests.helpers.shorthand import texts

LEVELS = (0.1, 0.5, 0.9)
UNITS = [(location, date) for date in ("2026-01-03", "2026-01-10") for location in ("01", "02", "US")]


def value_of(unit, column):
    """The value of a unit (counted from 0) in a column (counted from 0): quantiles increase."""
    return 10.0 * unit + column


def hub(kind="quantile", ids=LEVELS, *, units=UNITS, **more):
    """A hub's file: a row for each unit and each level, or draw."""
    rows = [(place, unit, column) for place, unit in enumerate(units) for column in range(len(ids))]
    return {
        "reference_date": ["2025-12-27"] * len(rows),
        "location": [unit[0] for _, unit, _ in rows],
        "target": ["wk inc flu hosp"] * len(rows),
        "target_end_date": [unit[1] for _, unit, _ in rows],
        "output_type": [kind] * len(rows),
        "output_type_id": [str(ids[column]) for *_, column in rows],
        "value": [value_of(place, column) for place, _, column in rows],
        **{name: [given] * len(rows) for name, given in more.items()},
    }


def truth(units=UNITS, **columns):
    names = columns or {"location": 0, "date": 1}
    return {
        **{name: [unit[place] for unit in units] for name, place in names.items()},
        "value": [100.0 + place for place in range(len(units))],
        "weekly_rate": [0.0] * len(units),
    }


def read(path, *, wanted="all", narrow=False, **options):
    return FileSource(File(str(path)), ColumnOptions(**options), contents=wanted, narrow=narrow)


def refused(path, **options):
    with pytest.raises(CalcheckError) as raised:
        read(str(path), **options).predictions()
    message = str(raised.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_hub_quantiles_become_units(tmp_path, ending):
    path = write(tmp_path / f"hub.{ending}", pa.table(hub()))
    source = read(path, truth=write(tmp_path / f"truth.{ending}", pa.table(truth())))
    rows = source.predictions()
    assert_array_equal(rows.predictive.levels, LEVELS)
    assert_array_equal(rows.predictive.values, [[value_of(unit, column) for column in range(3)] for unit in range(6)])
    assert_array_equal(rows.y, 100.0 + np.arange(6))
    assert_array_equal(rows.row, np.arange(6) * 3)  # the row of the file at which each unit begins
    info = source.input_info()
    assert info.layout == "hubverse, quantiles"
    assert [file.rows for file in info.files] == [18, 6]
    assert info.options[-2:] == ("--join-on", "location,target_end_date=date")


def test_the_order_of_rows_does_not_change_units(tmp_path):
    """Neither the order of rows nor that of columns in a hub's file matters."""
    whole = pa.table(hub())
    order = np.random.default_rng(0).permutation(len(whole))
    shuffled = whole.take(pa.array(order)).select(whole.schema.names[::-1])
    one = read(write(tmp_path / "a.csv", whole), wanted="any").predictions()
    other = read(write(tmp_path / "b.csv", shuffled), wanted="any").predictions()
    assert_array_equal(np.sort(other.predictive.values, axis=0), one.predictive.values)


def test_hub_samples_become_draws_in_the_order_of_their_ids(tmp_path):
    ids = [f"s{place}" for place in (10, 2, 1)]
    rows = read(write(tmp_path / "hub.csv", pa.table(hub("sample", ids))), wanted="any").predictions()
    assert_array_equal(rows.predictive.draws[0], [2.0, 1.0, 0.0])  # s1, s2, s10
    assert len(rows) == 6


def test_several_output_types_are_refused_with_their_names(tmp_path):
    both = pa.concat_tables([pa.table(hub()), pa.table(hub("sample", ["a", "b"]))])
    path = write(tmp_path / "hub.csv", both)
    assert "several output types: 'quantile', 'sample'. Pass --filter output_type=quantile" in refused(path)
    rows = read(path, filter=("output_type=sample",), wanted="any").predictions()
    assert rows.predictive.draws.shape == (6, 2)


@pytest.mark.parametrize(
    ("kind", "message"), [("median", "point forecasts only"), ("pmf", "not supported yet"), ("x", "'x'")]
)
def test_unsupported_output_types_are_refused(tmp_path, kind, message):
    assert message in refused(write(tmp_path / "hub.csv", pa.table(hub(kind))))


def test_several_models_and_targets_are_refused_with_their_names(tmp_path):
    two = pa.concat_tables([pa.table(hub(model_id="A")), pa.table(hub(model_id="B"))])
    path = write(tmp_path / "hub.csv", two)
    assert "several models: 'A', 'B'. Pass --model 'A'" in refused(path)
    assert len(read(path, model="B", wanted="any").predictions()) == 6
    assert "no row has model_id=C" in refused(path, model="C")
    other = pa.table(hub() | {"target": ["deaths"] * 18})
    path = write(tmp_path / "targets.csv", pa.concat_tables([pa.table(hub()), other]))
    assert "several targets: 'wk inc flu hosp', 'deaths'. Pass --filter target='wk inc flu hosp'" in refused(path)
    assert len(read(path, filter=("target=deaths",), wanted="any").predictions()) == 6


def test_duplicate_units_are_refused(tmp_path):
    path = write(tmp_path / "hub.csv", pa.concat_tables([pa.table(hub())] * 2))
    assert "18 rows repeat a unit and its output_type_id, for example" in refused(path)


def test_incomplete_units_are_refused_or_dropped(tmp_path):
    path = write(tmp_path / "hub.csv", pa.table(hub()).slice(1))
    message = refused(path)
    assert "1 of 6 units lack some of the 3 quantile levels" in message
    assert "location=01" in message
    source = read(path, nan_policy="omit", wanted="any")
    assert len(source.predictions()) == 5
    assert source.reading.n_dropped == 1


def test_levels_outside_0_and_1_are_refused(tmp_path):
    assert "strictly between 0 and 1" in refused(write(tmp_path / "hub.csv", pa.table(hub(ids=(0.1, 0.5, 1.0)))))


def test_targets_of_legacy_hubs_contain_the_horizon(tmp_path):
    """ "1 wk ahead inc flu hosp" is "wk inc flu hosp" at horizon 1, as in truth files; point forecasts are counted."""
    columns = hub()
    columns |= {"target": ["1 wk ahead inc flu hosp"] * 18, "type": columns.pop("output_type")}
    columns |= {"quantile": columns.pop("output_type_id")}
    points = {name: values[:2] for name, values in columns.items()} | {"type": ["point"] * 2, "quantile": ["NA"] * 2}
    path = write(tmp_path / "legacy.csv", pa.concat_tables([pa.table(columns), pa.table(points)]))
    shared = truth(location=0, target_end_date=1) | {"target": ["wk inc flu hosp"] * 6}
    source = read(path, truth=write(tmp_path / "truth.csv", pa.table(shared)))
    assert_array_equal(source.predictions().y, 100.0 + np.arange(6))
    assert texts(source.warnings()) == ("2 point forecasts beside the quantiles are not used",)


@pytest.mark.parametrize(("index", "ids"), [("quantile_level", LEVELS), ("sample_id", (1, 2, 3))])
def test_scoringutils_files_contain_targets(tmp_path, index, ids):
    columns = {
        "location": [unit for unit in "abcd" for _ in ids],
        "observed": [float(unit) for unit in range(4) for _ in ids],
        index: [id_ for _ in range(4) for id_ in ids],
        "predicted": [value_of(unit, column) for unit in range(4) for column in range(3)],
        "model": ["m"] * 12,
    }
    rows = read(write(tmp_path / "scores.csv", pa.table(columns))).predictions()
    assert_array_equal(rows.y, [0, 1, 2, 3])
    found = rows.predictive.values if index == "quantile_level" else rows.predictive.draws
    assert_array_equal(found, [[value_of(unit, column) for column in range(3)] for unit in range(4)])
    columns["observed"][1] = 9.0
    assert "different targets: 'observed' is 0 and 9" in refused(write(tmp_path / "bad.csv", pa.table(columns)))
    columns["observed"][1], columns["predicted"][1] = 0.0, None
    assert "must be finite numbers, but 1 of 4 rows" in refused(write(tmp_path / "gap.csv", pa.table(columns)))


def test_draws_in_long_form_are_grouped(tmp_path):
    """xarray's to_dataframe: chain, draw, the variable's axis, the variable."""
    grid = [(chain, draw, unit) for chain in range(2) for draw in range(3) for unit in range(4)]
    columns = {
        "chain": [chain for chain, *_ in grid],
        "draw": [draw for _, draw, _ in grid],
        "y_dim_0": [unit for *_, unit in grid],
        "y": [100.0 * chain + 10 * draw + unit for chain, draw, unit in grid],
    }
    rows = read(write(tmp_path / "draws.csv", pa.table(columns)), wanted="any").predictions()
    assert_array_equal(rows.predictive.draws[1], [1, 11, 21, 101, 111, 121])


def gluonts(h=2, paths=3):
    draws = [[float(10 * path + step) for step in range(h)] for path in range(paths)]
    return {"mean": [1.0] * h, "quantiles": {"0.1": [0.0] * h, "0.9": [2.0] * h}, "samples": draws, "item_id": "a"}


def test_gluonts_records_become_one_row_per_step(tmp_path):
    path = tmp_path / "forecasts.jsonl"
    path.write_text("\n".join(json.dumps(gluonts()) for _ in range(2)))
    rows = read(str(path), wanted="any", narrow=True).predictions()
    assert_array_equal(rows.predictive.draws, [[0, 10, 20], [1, 11, 21]] * 2)
    assert_array_equal(rows.columns["record"], [0, 0, 1, 1])
    assert_array_equal(rows.columns["step"], [1, 2, 1, 2])
    path.write_text(json.dumps({name: value for name, value in gluonts().items() if name != "samples"}))
    assert_array_equal(read(str(path), wanted="any").predictions().predictive.values, [[0, 2], [0, 2]])
    path.write_text("\n".join(json.dumps(gluonts(paths=paths)) for paths in (3, 4)))
    assert "column 'samples' is ragged: its rows have from 3 to 4 values" in refused(path)
    path.write_text(json.dumps(gluonts() | {"samples": [[1.0, 2.0], [1.0]]}))
    assert "column 'samples' is ragged: its rows have from 1 to 2 values" in refused(path)
    path.write_text(json.dumps({"quantiles": {"0.1": [0.0, 1.0], "0.9": [2.0]}}))
    assert "the lists of quantiles differ in length" in refused(path)


def test_plain_records_are_rows(tmp_path):
    path = tmp_path / "preds.jsonl"
    path.write_text("".join(json.dumps({"y": y, "mean": 0.0, "std": 1.0}) + "\n" for y in (1.0, 2.0)))
    assert_array_equal(read(str(path)).predictions().y, [1, 2])


def test_multilevel_column_names_define_quantiles_and_intervals(tmp_path):
    """Two or three header lines, and row labels by which targets are joined in any order."""
    (tmp_path / "q.csv").write_text(",y,y,y\n,0.05,0.5,0.95\n7,1,2,3\n3,4,5,6\n")
    (tmp_path / "i.csv").write_text(",y,y,y,y\n,0.5,0.5,0.9,0.9\n,lower,upper,lower,upper\n7,2,3,1,4\n3,5,6,4,7\n")
    (tmp_path / "truth.csv").write_text(",y\n3,30\n7,70\n")
    rows = read(str(tmp_path / "q.csv"), truth=str(tmp_path / "truth.csv")).predictions()
    assert_array_equal(rows.y, [70, 30])
    assert_array_equal(rows.predictive.levels, [0.05, 0.5, 0.95])
    found = read(str(tmp_path / "i.csv"), truth=str(tmp_path / "truth.csv")).predictions()
    assert_array_equal(found.predictive.levels, [0.05, 0.25, 0.75, 0.95])
    assert_array_equal(found.predictive.values, [[1, 2, 3, 4], [4, 5, 6, 7]])


NIXTLA = {
    "unique_id": ["a", "a", "b"],
    "ds": [1, 2, 1],
    "y": [1.0, 2.0, 3.0],
    **{
        f"{model}{end}": [start + step] * 3
        for model, start in (("ETS", 0.0), ("NHITS", 10.0))
        for end, step in (("", 5.0), ("-hi-90", 9.0), ("-lo-90", 1.0), ("-lo-80.0", 2.0), ("-hi-80.0", 8.0))
    },
}


def test_nixtla_intervals_are_quantiles_of_one_model(tmp_path):
    path = write(tmp_path / "cv.parquet", pa.table(NIXTLA))
    assert "several models or targets: 'ETS', 'NHITS'. Pass --model 'ETS'" in refused(path)
    source = read(path, model="NHITS")
    assert_array_equal(source.predictions().predictive.levels, [0.05, 0.1, 0.9, 0.95])
    assert_array_equal(source.predictions().predictive.values[0], [11, 12, 18, 19])
    assert source.input_info().layout == "Nixtla"
    assert "there is no model 'TFT' (models: 'ETS', 'NHITS')" in refused(path, model="TFT")
    twice = write(tmp_path / "twice.parquet", pa.table(NIXTLA | {"ds": [1, 1, 1]}))
    assert "1 key occurs more than once, for example unique_id='a', ds='1'" in refused(twice, model="ETS")


def test_neuralforecast_parameters_require_a_family(tmp_path):
    """The Poisson rate is named -loc; loc and scale do not determine a family; mixtures number their components."""
    columns = {"y": [1.0, 2.0], "M-loc": [3.0, 4.0], "M-scale": [1.0, 2.0]}
    path = write(tmp_path / "nf.csv", pa.table(columns))
    assert "Pass --dist" in refused(path)
    assert_allclose(read(path, dist="gaussian").predictions().predictive.std(), [1, 2])
    assert_allclose(read(path, dist="laplace").predictions().predictive.std(), np.sqrt(2) * np.array([1, 2]))
    counts = write(tmp_path / "counts.csv", pa.table({"y": [1.0, 2.0], "M-loc": [3.0, 4.0]}))
    assert_allclose(read(counts, dist="poisson").predictions().predictive.mean(), [3, 4])
    mixed = {"y": [1.0], **{f"M-{name}-{part}": [part] for name in ("mu", "std") for part in (1.0, 2.0)}}
    mixed = {name.removesuffix(".0"): values for name, values in mixed.items()}
    mixture = write(tmp_path / "gmm.csv", pa.table(mixed | {"M-weight-1": [0.25], "M-weight-2": [0.75]}))
    assert_allclose(read(mixture, dist="mixture").predictions().predictive.mean(), [1.75])
    logits = {"y": [1.0], "M-total_count": [4.0], "M-logits": [0.0]}
    path = write(tmp_path / "nb.csv", pa.table(logits))
    assert_allclose(read(path, dist="nbinom:logits").predictions().predictive.mean(), [4.0])


def test_darts_columns_are_samples_quantiles_or_parameters(tmp_path):
    index = {"time": [1, 2], "y": [0.0, 1.0]}
    drawn = write(tmp_path / "s.csv", pa.table(index | {f"sales_s{draw}": [draw, draw + 1.0] for draw in range(12)}))
    assert_array_equal(read(drawn).predictions().predictive.draws[0], np.arange(12))
    levels = write(tmp_path / "q.csv", pa.table(index | {"sales_q0.100": [0.0, 1.0], "sales_q0.900": [2.0, 3.0]}))
    assert_array_equal(read(levels).predictions().predictive.levels, [0.1, 0.9])
    normal = write(tmp_path / "n.csv", pa.table(index | {"sales_mu": [0.0, 1.0], "sales_sigma": [2.0, 3.0]}))
    assert "gaussian" in refused(normal)
    assert_array_equal(read(normal, dist="gaussian").predictions().predictive.std(), [2, 3])
    counts = write(tmp_path / "r.csv", pa.table(index | {"sales_r": [4.0, 4.0], "sales_p": [0.6, 0.6]}))
    assert_allclose(read(counts, dist="nbinom:torch").predictions().predictive.mean(), [6.0, 6.0])
    two = {f"{name}_s{draw}": [0.0, 1.0] for name in ("a", "b") for draw in range(2)}
    assert "several models or targets: 'a', 'b'" in refused(write(tmp_path / "two.csv", pa.table(index | two)))


@pytest.mark.parametrize("names", [("0.1", "0.5", "0.9"), ("q_0.1", "q_0.5", "q_0.9"), ("y_q0.1", "y_q0.5", "y_q0.9")])
def test_quantile_columns_are_recognized_by_their_names(tmp_path, names):
    columns = {"target": [2.0], "mean": [2.1]} | {name: [float(place)] for place, name in enumerate(names)}
    source = read(write(tmp_path / "q.parquet", pa.table(columns)))
    assert_array_equal(source.predictions().predictive.levels, LEVELS)
    explicit = source.input_info().options
    again = read(str(tmp_path / "q.parquet"), target="target", quantiles=explicit[explicit.index("--quantiles") + 1])
    assert_array_equal(again.predictions().predictive.values, [[0, 1, 2]])


def test_chemprop_files_require_the_scale_of_the_uncertainty(tmp_path):
    """`lipo_unc` is a variance, or half an interval; `lipo` is the prediction, and the target is in the test file."""
    preds = write(
        tmp_path / "preds.csv", pa.table({"smiles": ["CC", "CO"], "lipo": [1.0, 2.0], "lipo_unc": [4.0, 9.0]})
    )
    test = write(tmp_path / "test.csv", pa.table({"smiles": ["CO", "CC"], "lipo": [2.5, 0.5]}))
    rows = read(preds, mean="lipo", var="lipo_unc", truth=test).predictions()
    assert_array_equal(rows.y, [0.5, 2.5])
    assert_array_equal(rows.predictive.std(), [2, 3])
    message = refused(preds, mean="lipo", truth=f"{test}:lipo")
    assert "'lipo_unc' may be a variance or a standard deviation" in message


def test_two_forms_of_predictions_are_refused_with_both_names(tmp_path):
    columns = {"y": [1.0], "pred": [1.0], "pred_uct": [1.0], "sample_0": [0.0], "sample_1": [2.0]}
    message = refused(write(tmp_path / "uq.csv", pa.table(columns)))
    assert "mean 'pred' with std 'pred_uct', and samples 'sample_0, sample_1'" in message
    assert "Pass --mean pred --std pred_uct, or --samples 'sample_*'" in message


def test_repeated_column_names_and_rows_are_refused(tmp_path):
    """Two runs appended to one file repeat the header among the rows."""
    (tmp_path / "preds.csv").write_text("y,mean,std\n1,1,1\ny,mean,std\n1,1,1\n")
    assert "row 1, counted from 0, repeats the column names" in refused(tmp_path / "preds.csv")
    (tmp_path / "preds.csv").write_text("id,y,pred,pred_uct\n1,1,1,1\n2,1,1,1\n1,1,1,1\n")
    assert "1 value of 'id' occurs more than once" in refused(tmp_path / "preds.csv")


def test_targets_in_another_file_are_joined_or_reported_as_missing(tmp_path):
    path = write(tmp_path / "hub.csv", pa.table(hub()))
    message = refused(path, truth=write(tmp_path / "few.csv", pa.table(truth(UNITS[1:]))))
    assert "1 of 6 rows is not in" in message
    assert "location='01', target_end_date='2026-01-03'" in message
    source = read(path, truth=str(tmp_path / "few.csv"), nan_policy="omit")
    assert len(source.predictions()) == 5
    whole = truth()
    as_numbers = [(1 if unit[0] == "01" else 2, unit[1]) for unit in UNITS if unit[0] != "US"]
    message = refused(path, truth=write(tmp_path / "ints.csv", pa.table(truth(as_numbers))))
    assert "One file lost leading zeros ('01' became 1)" in message
    twice = {name: values + values[:1] for name, values in whole.items()}
    message = refused(path, truth=write(tmp_path / "twice.csv", pa.table(twice)))
    assert "1 key occurs more than once, for example" in message
    options = {"truth": write(tmp_path / "truth.csv", pa.table(whole)), "join_on": "location,target_end_date=date"}
    assert_array_equal(read(path, **options).predictions().y, 100.0 + np.arange(6))
    assert "there is no key column 'place'" in refused(path, truth=options["truth"], join_on="place")
    assert_array_equal(read(path, truth=f"{options['truth']}:weekly_rate").predictions().y, np.zeros(6))
    assert "has no column 'nothing'" in refused(path, truth=f"{options['truth']}:nothing")


def test_ambiguous_date_columns_are_refused(tmp_path):
    preds = {"issued": ["2026-01-03"] * 2, "due": ["2026-01-10", "2026-01-17"], "mean": [1.0, 2.0], "std": [1.0, 1.0]}
    days = [f"2026-01-{day:02}" for day in (3, 10, 17)]
    path = write(tmp_path / "preds.csv", pa.table(preds))
    known = write(tmp_path / "truth.csv", pa.table({"date": days, "y": [1.0, 2.0, 3.0]}))
    message = refused(path, truth=known)
    assert "--join-on issued=date or --join-on due=date" in message
    assert_array_equal(read(path, truth=known, join_on="due=date").predictions().y, [2, 3])
    late = write(tmp_path / "late.csv", pa.table({"date": days[1:], "y": [2.0, 3.0]}))
    assert_array_equal(read(path, truth=late).predictions().y, [2, 3])  # only `due` has all its values there


def test_targets_without_keys_are_joined_row_by_row(tmp_path):
    path = write(tmp_path / "preds.csv", pa.table({"mean": [1.0, 2.0], "std": [1.0, 1.0]}))
    known = write(tmp_path / "truth.csv", pa.table({"y": [3.0, 4.0]}))
    assert_array_equal(read(path, truth=known).predictions().y, [3, 4])
    longer = write(tmp_path / "long.csv", pa.table({"y": [3.0, 4.0, 5.0]}))
    assert "2 rows, not the 3 of" in refused(path, truth=longer)


def test_filters_keep_row_numbers_and_refuse_unknown_values(tmp_path):
    columns = {
        "split": ["a", "b", "b"],
        "y": [1.0, 2.0, 3.0],
        "mean": [1.0] * 3,
        "std": [1.0, 1.0, 0.0],
        "fold": [1, 2, 1],
    }
    path = write(tmp_path / "preds.csv", pa.table(columns))
    assert read(path, filter=("split=b", "fold=2")).predictions().row.tolist() == [1]
    assert "1 of 2 rows is not (row 2, counted from 0)" in refused(path, filter=("split=b",))
    assert "no row has split=c" in refused(path, filter=("split=c",))
    assert "no such column" in refused(path, filter=("nothing=c",))
    models = write(tmp_path / "models.csv", pa.table(columns | {"model": ["A", "A", "B"]}))
    assert "several models: 'A', 'B'" in refused(models)
    assert len(read(models, model="A").predictions()) == 2
    cars = write(tmp_path / "cars.csv", pa.table(columns | {"std": [1.0] * 3, "model": ["Golf", "Golf", "Polo"]}))
    assert len(read(cars, model="all").predictions()) == 3  # a column of that name may be an input


def test_tensors_in_safetensors_files_are_columns(tmp_path):
    values = np.arange(6, dtype=np.float32).reshape(3, 2)
    halves = (values.view(np.uint32) >> 16).astype(np.uint16)
    body = values.tobytes() + halves.tobytes()
    header = {
        "emb": {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 24]},
        "half": {"dtype": "BF16", "shape": [3, 2], "data_offsets": [24, 36]},
        "__metadata__": {"by": "hand"},
    }
    path = tmp_path / "emb.safetensors"

    def save(fields):
        text = json.dumps(fields).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + body)
        return str(path)

    preds = write(tmp_path / "preds.csv", pa.table({"y": [1.0] * 3, "mean": [1.0] * 3, "std": [1.0] * 3}))
    for name in ("emb", "half"):
        assert_array_equal(read(preds, embedding=f"{save(header)}:{name}").predictions().x, values)
    header["emb"]["shape"] = [4, 2]
    assert "tensor 'emb' does not match its header" in refused(preds, embedding=f"{save(header)}:emb")


def test_a_family_may_be_named_in_the_file(tmp_path):
    columns = {"y": [1.0, 2.0], "dist": ["laplace"] * 2, "loc": [0.0, 1.0], "scale": [1.0, 2.0]}
    rows = read(write(tmp_path / "preds.csv", pa.table(columns))).predictions()
    assert rows.predictive.display_name == "laplace"
    mixed = write(tmp_path / "mixed.csv", pa.table(columns | {"dist": ["laplace", "gaussian"]}))
    assert "several families of distributions: 'laplace', 'gaussian'" in refused(mixed)


def test_errors_have_the_specified_distribution(tmp_path):
    columns = {"E": [0.5, -0.5], "df": [5.0, 5.0], "scale": [1.0, 2.0]}
    path = write(tmp_path / "errors.csv", pa.table(columns))
    source = read(path, error="E", dist="student-t")
    assert_array_equal(source.predictions().predictive.mean(), [0, 0])
    assert source.input_info().predictive == "residuals, student-t"
    assert "needs a family with a location" in refused(path, error="E", dist="gamma:scipy")


def skip_reason(path, metric, **options):
    report = evaluate(read(path, **options), [METRICS[metric]()], run=Run(resamples=0, replicates=0))
    assert not report.results
    return report.skipped[0].reason


def test_metrics_that_the_predictions_do_not_support_are_skipped_with_a_reason(tmp_path):
    """One sample has no spread, quantiles no likelihood and no tails, a Cauchy distribution no mean."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=40)
    one = write(tmp_path / "one.csv", pa.table({"y": y, "sample_0": y[::-1].copy(), "x": y}))
    assert "one sample per row has no standard deviation" in skip_reason(one, "zms")
    assert evaluate(read(one, inputs="x"), [METRICS["cce"]()], run=Run(resamples=0, replicates=0)).results
    few = write(tmp_path / "few.csv", pa.table({"y": y, "0.2": y - 1, "0.8": y + 1}))
    assert "quantiles have no density" in skip_reason(few, "nll")
    report = evaluate(read(few), [METRICS["coverage"](level=0.9)], run=Run(resamples=0, replicates=0))
    assert "nothing is known beyond the quantiles 0.2 … 0.8" in report.skipped[0].reason
    assert "the standard deviation depends on the tails" in skip_reason(few, "sharpness")
    assert "the mean depends on the tails" in skip_reason(few, "rmse")
    cauchy = write(tmp_path / "cauchy.csv", pa.table({"y": y, "loc": y * 0, "scale": y * 0 + 1}))
    assert "a cauchy distribution has no standard deviation" in skip_reason(cauchy, "sharpness", dist="cauchy")
    assert "a cauchy distribution has no mean" in skip_reason(cauchy, "bias", dist="cauchy")
    assert evaluate(read(cauchy, dist="cauchy"), [METRICS["ece"]()], run=Run(resamples=0, replicates=0)).results


def test_point_forecasts_and_unnamed_columns_are_refused(tmp_path):
    points = write(tmp_path / "points.csv", pa.table({"y": [1.0], "prediction": [1.0]}))
    assert "only point forecasts, 'prediction': no column was recognized as the std" in refused(points)
    bare = write(tmp_path / "bare.csv", pa.table({"y": [1.0], "0": [1.0], "1": [-1.0]}))
    assert "Pass --mean 0 with --std 1, --var 1, --log-std 1 or --log-var 1" in refused(bare)
    rows = read(bare, mean="0", log_std="1").predictions()
    assert_allclose(rows.predictive.std(), np.exp(-1))


def test_quantile_files_are_evaluated_at_their_own_levels(tmp_path):
    """Levels 0.2 and 0.8 of 100 rows, 30 below the first and 90 below the second: ECE (0.1 + 0.1) / 2."""
    y = np.concatenate([np.full(30, -2.0), np.zeros(60), np.full(10, 2.0)])
    path = write(tmp_path / "q.csv", pa.table({"y": y, "0.2": np.full(100, -1.0), "0.8": np.full(100, 1.0)}))
    report = evaluate(read(path), [METRICS["ece"](), METRICS["coverage"]()], run=Run(resamples=0, replicates=0))
    ece, coverage = report.results
    assert coverage.options["level"] == 0.6  # that of the only interval between the quantiles
    assert_allclose(ece.value, 0.1)
    assert [point["level"] for point in ece.details["curve"]] == [0.2, 0.8]
    assert_allclose(coverage.value, 0.6)
    assert coverage.details["at_other_levels"] == []
    assert any("given by 2 quantiles, from 0.2 to 0.8" in warning for warning in texts(ece.warnings))


def test_interval_limits_between_known_quantiles_have_a_mass_error():
    """Levels 0.1, 0.5, 0.9 at 0, 1, 2: the 80 % interval is known, the 60 % interval up to the mass at its limits."""
    known = Quantiles(np.array([0.1, 0.5, 0.9]), np.tile([0.0, 1.0, 2.0], (2, 1)))
    y = np.array([0.3, 1.7])
    assert_array_equal(known.interval_mass_error(y, *known.central_interval(0.8)), [0, 0])
    assert_allclose(known.interval_mass_error(y, *known.central_interval(0.6)), [0.8, 0.8])
    counts = np.array([1.0, 2.0])  # the second is equal to the upper limit, whose own probability is unknown
    assert_array_equal(known.interval_mass_error(counts, *known.central_interval(0.8)), [0, 1])


def test_rows_with_an_index_are_not_joined_by_position(tmp_path):
    """A shuffled file and a sorted one without labels: joined by row, every target would be wrong."""
    (tmp_path / "q.csv").write_text(",y,y\n,0.1,0.9\n2,1,2\n0,3,4\n1,5,6\n")
    (tmp_path / "sorted.csv").write_text("y\n10\n11\n12\n")
    assert "the predictions have an index that is not 0, 1, … (2, 0, 1, …)" in refused(
        tmp_path / "q.csv", truth=str(tmp_path / "sorted.csv")
    )
    (tmp_path / "q.csv").write_text(",y,y\n,0.1,0.9\n0,1,2\n1,3,4\n2,5,6\n")
    source = read(tmp_path / "q.csv", truth=str(tmp_path / "sorted.csv"))
    assert_array_equal(source.predictions().y, [10, 11, 12])
    assert "targets are joined row by row" in texts(source.warnings())[0]
    assert source.input_info().columns["y"].endswith("sorted.csv:y, row by row")


def test_the_report_contains_how_targets_were_joined(tmp_path):
    path = write(tmp_path / "hub.csv", pa.table(hub()))
    source = read(path, truth=write(tmp_path / "truth.csv", pa.table(truth())))
    assert source.input_info().columns["y"].endswith("truth.csv:value, by location, target_end_date=date")
    assert texts(source.warnings()) == ()


def test_several_targets_of_a_wide_file_are_not_pooled(tmp_path):
    columns = {"item_id": ["a", "a"], "target_name": ["t", "u"], "y": [1.0, 2.0], "0.1": [0.0, 1.0], "0.9": [2.0, 3.0]}
    path = write(tmp_path / "chronos.csv", pa.table(columns))
    assert "several targets: 't', 'u'. Pass --filter target_name='t'" in refused(path)
    assert_array_equal(read(path, filter=("target_name=u",)).predictions().y, [2])


def test_rows_that_were_appended_repeatedly_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    runs = {name: np.tile(rng.uniform(1, 2, 12), 3) for name in ("y", "pred", "pred_uct")}
    message = refused(write(tmp_path / "preds.csv", pa.table(runs)))
    assert "the same 12 rows 3 times, one after the other" in message
    two = {"y1": runs["y"], "y2": runs["y"], "m1": np.arange(36.0), "m2": runs["y"], "s": runs["pred_uct"]}
    path = write(tmp_path / "two.csv", pa.table(two))  # the targets repeat, but one prediction does not
    assert len(read(path, target="y1,y2", mean="m1,m2", std="s,s").predictions()) == 36
    alike = {"y": [1.0] * 30, "mean": [1.0] * 30, "std": [1.0] * 30}  # constant rows are not reported as repeated
    assert len(read(write(tmp_path / "alike.csv", pa.table(alike))).predictions()) == 30
    series = {"item_id": ["a", "a"], "timestamp": ["t", "t"], "y": [1.0, 2.0], "0.1": [0.0, 1.0], "0.9": [2.0, 3.0]}
    assert "1 key occurs more than once, for example item_id='a', timestamp='t'" in refused(
        write(tmp_path / "series.csv", pa.table(series))
    )


def test_rows_without_a_model_count_as_another_model(tmp_path):
    half = [None] * 9 + ["B"] * 9
    assert "several models: '', 'B'" in refused(write(tmp_path / "hub.parquet", pa.table(hub() | {"model_id": half})))


def test_two_columns_of_one_level_are_refused(tmp_path):
    columns = NIXTLA | {"ETS-lo-90.0": [0.0, 0.0, 0.0]}
    assert "two columns hold the quantile 0.05: 'ETS-lo-90' and 'ETS-lo-90.0'" in refused(
        write(tmp_path / "cv.csv", pa.table(columns)), model="ETS"
    )


def test_errors_without_a_sign_give_a_warning(tmp_path):
    errors = np.abs(np.random.default_rng(0).normal(size=50))
    columns = {"error": errors, "std": np.ones(50)}
    assert "are they absolute?" in texts(read(write(tmp_path / "e.csv", pa.table(columns))).warnings())[-1]
    columns["error"] = errors * np.where(np.arange(50) % 2, 1, -1)
    assert not any(
        "absolute" in message for message in texts(read(write(tmp_path / "e.csv", pa.table(columns))).warnings())
    )


def test_mixtures_without_weights_have_equal_weights(tmp_path):
    columns = {"y": [1.0], "M-mu-1": [0.0], "M-mu-2": [3.0], "M-std-1": [1.0], "M-std-2": [1.0]}
    found = read(write(tmp_path / "gmm.csv", pa.table(columns)), dist="mixture").predictions().predictive
    assert_allclose(found.mean(), [1.5])
    del columns["M-std-1"], columns["M-std-2"]
    message = refused(write(tmp_path / "half.csv", pa.table(columns)), dist="mixture")
    assert "needs the parameter 'scale'" in message


def test_hub_targets_are_selected_by_output_type(tmp_path):
    path = write(tmp_path / "hub.csv", pa.table(hub()))
    oracle = {"location": [unit[0] for unit in UNITS], "target_end_date": [unit[1] for unit in UNITS]}
    tables = [
        pa.table(oracle | {"output_type": [kind] * 6, "output_type_id": ["x"] * 6, "oracle_value": values})
        for kind, values in (("pmf", np.zeros(6)), ("quantile", np.arange(6.0)))
    ]
    rows = read(path, truth=write(tmp_path / "oracle.csv", pa.concat_tables(tables))).predictions()
    assert_array_equal(rows.y, np.arange(6))


def test_keys_match_across_storage_types(tmp_path):
    """1 and 1.0; 2026-01-03, the same at midnight, as text, and as a time."""
    preds = {"unique_id": ["a", "a"], "ds": [1.0, 2.0], "ETS-lo-90": [0.0, 1.0], "ETS-hi-90": [2.0, 3.0]}
    known = {"unique_id": ["a", "a"], "ds": [2, 1], "y": [20.0, 10.0]}
    path = write(tmp_path / "preds.parquet", pa.table(preds))
    assert_array_equal(read(path, truth=write(tmp_path / "t.parquet", pa.table(known))).predictions().y, [10, 20])
    days = ["2026-01-03 00:00:00", "2026-01-04 06:30:00"]
    times = np.array(["2026-01-04T06:30:00", "2026-01-03T00:00:00"], dtype="datetime64[ns]")
    preds = write(tmp_path / "days.parquet", pa.table({"time": days, "mean": [1.0, 2.0], "std": [1.0, 1.0]}))
    known = write(tmp_path / "times.parquet", pa.table({"time": times, "y": [20.0, 10.0]}))
    assert_array_equal(read(preds, truth=known).predictions().y, [10, 20])
    assert_array_equal(read(preds, truth=known, filter=(f"time={days[0]}",)).predictions().y, [10])


@pytest.mark.parametrize("delimiter", [";", "|", "\t"])
def test_other_delimiters_are_detected(tmp_path, delimiter):
    path = tmp_path / "preds.csv"
    path.write_text("y,mean,std\n1.5,2,1\n2.5,3,1\n".replace(",", delimiter))
    assert_array_equal(read(path).predictions().y, [1.5, 2.5])
    path.write_text("y;mean;std\n1,5;2;1\n")
    assert "column 'y' has decimal commas, for example '1,5'. Write numbers with decimal points" in refused(path)


def test_gaps_in_another_file_are_reported_with_its_name(tmp_path):
    path = write(tmp_path / "hub.csv", pa.table(hub()))
    known = truth()
    known["value"][2] = None
    message = refused(path, truth=write(tmp_path / "gap.csv", pa.table(known)))
    assert "column 'value'" in message
    assert "gap.csv has no number in 1 row" in message
    unused = {name: [*values, None if name == "location" else values[0]] for name, values in truth().items()}
    assert len(read(path, truth=write(tmp_path / "unused.csv", pa.table(unused))).predictions()) == 6


def test_na_is_a_missing_value_and_other_text_is_refused(tmp_path):
    path = tmp_path / "preds.csv"
    path.write_text("y,mean,std\n1,1,1\nNA,1,1\n-,1,1\n")
    assert "must be numbers, but 1 of 3 rows is not (row 2, counted from 0). The first is '-'" in refused(path)


def test_rows_without_a_level_are_counted(tmp_path):
    columns = {
        "location": ["a", "a", "a", "b"],
        "observed": [1.0] * 4,
        "quantile_level": [0.1, 0.9, None, None],
        "predicted": [0.0, 2.0, 1.0, None],
    }
    source = read(write(tmp_path / "scores.csv", pa.table(columns)))
    assert len(source.predictions()) == 1
    assert texts(source.warnings()) == ("2 rows without quantile_level are not used",)


def test_every_step_of_a_record_is_shown(tmp_path):
    from calcheck.cli.inspect import first_rows

    path = tmp_path / "forecasts.jsonl"
    record = gluonts(h=3)
    path.write_text(json.dumps({"samples": record["samples"]}))
    shown = first_rows(read(str(path), wanted="any").predictions())
    assert [label for label, _ in shown] == ["row 0"] * 3
    assert shown[2][1] == "predicts 3 draws from 2 to 22"


def test_a_long_file_is_pivoted_once(tmp_path, monkeypatch):
    """Reading its lazy distributions again neither pivots nor joins targets again."""
    from calcheck.io import file_source

    path = write(tmp_path / "hub.csv", pa.table(hub("sample", range(8))))
    known = write(tmp_path / "truth.csv", pa.table(truth()))
    in_memory = read(path, truth=known).predictions().predictive
    calls = []
    pivot_long = file_source.pivot_long
    monkeypatch.setattr(file_source, "pivot_long", lambda *given: calls.append(1) or pivot_long(*given))
    lazy = limited(read(path, truth=known), predictive_bytes=1).predictions().predictive
    assert lazy.nbytes == 0
    for _ in range(3):
        assert_array_equal(lazy.mean(), in_memory.mean())
    assert len(calls) == 1


def test_records_are_filtered_by_their_fields(tmp_path):
    path = tmp_path / "forecasts.jsonl"
    path.write_text("\n".join(json.dumps(gluonts() | {"item_id": item, "model": "A"}) for item in "abc"))
    rows = read(path, filter=("item_id=c",), wanted="any", narrow=True).predictions()
    assert len(rows) == 2
    assert_array_equal(rows.columns["record"], [2, 2])
    assert_array_equal(rows.row, [2, 2])
    assert "no row has item_id=zzz" in refused(path, filter=("item_id=zzz",))
    path.write_text("\n".join(json.dumps(gluonts() | {"model": model}) for model in "AB"))
    assert "several models: 'A', 'B'" in refused(path, wanted="any")
    assert len(read(path, model="B", wanted="any").predictions()) == 2


def test_files_without_any_forecast_are_refused(tmp_path):
    columns = {
        "location": ["a", "b"],
        "observed": [1.0, 2.0],
        "quantile_level": [None, None],
        "predicted": [None, None],
    }
    path = write(tmp_path / "scores.csv", pa.table(columns))
    assert "no row has a value of quantile_level, so there are no forecasts" in refused(path)
    other = {"location": ["01"], "target_end_date": ["2026-01-03"], "output_type": ["pmf"], "oracle_value": [1.0]}
    known = write(tmp_path / "oracle.csv", pa.table(other))
    assert "has no rows whose output_type is quantile" in refused(
        write(tmp_path / "hub.csv", pa.table(hub())), truth=known
    )


def test_a_filter_selects_one_of_several_families(tmp_path):
    columns = {"y": [1.0, 2.0], "dist": ["laplace", "gaussian"], "loc": [0.0, 1.0], "scale": [1.0, 2.0]}
    path = write(tmp_path / "mixed.csv", pa.table(columns))
    for family, std in (("laplace", np.sqrt(2)), ("gaussian", 2.0)):
        found = read(path, filter=(f"dist={family}",)).predictions().predictive
        assert found.display_name == family
        assert_allclose(found.std(), [std])


def test_coverage_is_reported_only_at_levels_with_both_quantiles(tmp_path):
    y = np.random.default_rng(0).normal(size=50)
    levels = {0.05: -1.6, 0.2: -0.8, 0.5: 0.0, 0.8: 0.8, 0.99: 2.3}
    columns = {"y": y} | {f"q_{level}": np.full(50, value) for level, value in levels.items()}
    path = write(tmp_path / "q.csv", pa.table(columns))
    found = evaluate(read(path), [METRICS["coverage"](level=0.6)], run=Run(resamples=0, replicates=0)).results[0]
    assert_allclose(found.value, np.mean(np.abs(y) <= 0.8))
    assert found.details["at_other_levels"] == []


def test_netcdf_without_its_library_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)  # as if it were not installed
    path = tmp_path / "draws.nc"
    path.write_bytes(b"\x89HDF\r\n\x1a\n")
    assert "Install it: pip install 'calcheck[netcdf]'" in refused(path)


@pytest.mark.parametrize(
    ("stated", "family", "moments"),
    [
        (["Distributions.Normal{Float64}(μ=1.0, σ=2.0)", "Distributions.Normal{Float64}(μ=-1e-1, σ=0.5)"], "", 2.0),
        (["Normal(μ=1.0, σ=2.0)", "Normal(μ=-0.1, σ=0.5)"], "", 2.0),
        (["N(1, 4)", "N(-0.1, 0.25)"], "", 2.0),  # R: the second number is a variance
        (["Distributions.Poisson{Float64}(λ=1.0)", "Distributions.Poisson{Float64}(λ=2.5)"], "poisson", 1.0),
        (["Pois(1)", "Pois(2.5)"], "poisson", 1.0),
        (["LogNormal(μ=0.0, σ=1.0)", "LogNormal(μ=0.1, σ=0.5)"], "lognormal", (np.e * (np.e - 1)) ** 0.5),
    ],
)
def test_distributions_as_text_have_the_moments_that_they_state(tmp_path, stated, family, moments):
    path = tmp_path / "preds.csv"
    write(path, pa.table({"y": [1.0, 2.0], "site": ["A(1)", "B(2)"], "yhat": stated, ".mean": [9.0, 9.0]}))
    rows = read(path).predictions()
    assert rows.predictive.family == (family or "gaussian")
    assert rows.predictive.std()[0] == pytest.approx(moments)
    assert (rows.y.tolist(), rows.row_numbers().tolist()) == ([1, 2], [0, 1])


def test_texts_that_state_no_distributions_of_one_known_family_are_refused_or_left_alone(tmp_path):
    path = tmp_path / "preds.csv"
    for stated, words in (
        (["N(1, 4)", "Pois(2)"], "holds distributions of one family as text, and also 'Pois(2)'"),
        (["N(1, 4)", "sample[100]"], "and also 'sample[100]'"),
        (["N(1, 4)", "N(1, -4)"], "std"),
        (["t(5, 0, 1)", "t(5, 0, 1)"], "such as 't(5, 0, 1)', and only those of Normal, N, LogNormal, Poisson, Pois"),
    ):
        write(path, pa.table({"y": [1.0, 2.0], "yhat": stated}))
        with pytest.raises(CalcheckError, match=re.escape(words)):
            read(path).predictions()
    write(path, pa.table({"y": [1.0, 2.0], "mean": [0, 0], "std": [1, 1], "note": ["N(1, 4)", ""]}))
    assert read(path).predictions().predictive.std().tolist() == [1, 1]
