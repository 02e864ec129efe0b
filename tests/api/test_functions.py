"""The functions of Python and notebooks: frames, arrays and names of metrics go in, frames and HTML come out."""

import json
import pickle
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import calcheck
from calcheck.api.arguments import require_results
from calcheck.core.text import extract
from calcheck.errors import CalcheckError, DataError, OptionError, with_keywords
from calcheck.io.column_names import ColumnOptions
from calcheck.io.python_arguments import SYNONYMS, ColumnArguments
from calcheck.render.data import NUMBERS
from calcheck.render.data import render_json as to_json
from calcheck.reports import Input, Report, Skipped
from calcheck.studies.next_steps import REFUSED

ROOT = Path(__file__).parents[2]
DIABETES = str(ROOT / "examples" / "diabetes.parquet")
LINEAR = str(ROOT / "examples" / "diabetes_linear.parquet")
INPUTS = ["bmi", "bp", "s5"]
N = 60
BARE = {"resamples": 0, "replicates": 0}


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    mean = rng.normal(size=N)
    return pd.DataFrame({"y": mean + rng.normal(size=N), "mean": mean, "std": np.full(N, 0.5)})


def value(*data, metric="zms", **options):
    """Return the value of one metric, without inference."""
    (result,) = calcheck.evaluate(*data, metrics=metric, **BARE, **options).results
    return result.value


def by_hand(frame):
    """Return the mean squared z-score."""
    return np.mean(((frame["y"] - frame["mean"]) / frame["std"].astype(float)) ** 2)


# a frame is read as its file is


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["parquet", "csv", "feather"])
def test_a_frame_gives_the_numbers_of_its_file_to_the_last_digit(tmp_path, ending):
    frame, path = pd.read_parquet(DIABETES), tmp_path / f"preds.{ending}"
    getattr(frame, f"to_{ending}")(path, **({"index": False} if ending == "csv" else {}))
    metrics, options = ["zms", "ence", "cce", "crps", "jmmd"], {"inputs": INPUTS, "replicates": 39, "resamples": 100}
    of_frame, of_file = (calcheck.evaluate(data, metrics, **options) for data in (frame, path))
    assert of_frame.results == of_file.results
    assert len(of_frame.results) == len(metrics)
    assert of_frame.input.files == ()
    for metric in ("zms", "cce"):
        pd.testing.assert_frame_equal(of_frame.rows(metric), of_file.rows(metric).rename_axis(None), check_exact=True)


def test_a_frame_gives_the_numbers_of_the_command(tmp_path):
    command = f"-m calcheck evaluate {DIABETES} --metrics zms,cce --inputs bmi,bp,s5 --replicates 39 --resamples 400"
    outputs = ["--format", "json", "-o", tmp_path / "report.json", "--pointwise", tmp_path / "rows.parquet"]
    subprocess.run([sys.executable, *command.split(), *outputs], check=True)
    report = calcheck.evaluate(pd.read_parquet(DIABETES), ["zms", "cce"], inputs=INPUTS, replicates=39, resamples=400)
    theirs = json.loads((tmp_path / "report.json").read_text())["results"]
    for ours, result in zip(report.to_frame().to_dict("records"), theirs, strict=True):
        assert {name: None if np.isnan(ours[name]) else ours[name] for name in NUMBERS} == {
            name: result[name] for name in NUMBERS
        }
        assert ours["verdict"] == result["verdict"]
    rows = pd.read_parquet(tmp_path / "rows.parquet")
    assert_array_equal(report.rows("cce")["cce"], rows["cce"])
    assert_array_equal(report.rows("zms")["z2"], rows["z2"])


def test_list_columns_are_embeddings_and_samples(frame):
    rng = np.random.default_rng(1)
    samples, embedding = rng.normal(size=(N, 7)), rng.normal(size=(N, 3)).astype(np.float32)
    cells = pd.DataFrame({"y": frame["y"], "samples": list(samples), "embedding": embedding.tolist()})
    rows = calcheck.read(cells.assign(embedding=list(embedding))).predictions()
    assert_array_equal(rows.predictive.draws, samples)
    assert_array_equal(rows.x, embedding)
    assert rows.x.dtype == np.float32
    assert_array_equal(calcheck.read(cells).predictions().x, embedding)
    assert_array_equal(calcheck.read(cells.assign(embedding=list(torch.tensor(embedding)))).predictions().x, embedding)


def test_matrices_in_cells_are_vectors(frame):
    rows = calcheck.read(frame.assign(embedding=[np.arange(4.0).reshape(2, 2)] * N)).predictions()
    assert_array_equal(rows.x, np.tile(np.arange(4.0), (N, 1)))


@pytest.mark.parametrize(
    "std",
    [
        pd.array([1, 2] * (N // 2), dtype="Int64"),
        pd.array([1, 2] * (N // 2), dtype="Float64"),
        pd.array([1, 2] * (N // 2), dtype="float32[pyarrow]"),
        pd.Categorical([1, 2] * (N // 2)),
        pd.arrays.SparseArray([1.0, 2.0] * (N // 2)),
        pd.Series([1, np.float32(2)] * (N // 2), dtype=object),
        pd.Series([1, "2.0"] * (N // 2), dtype=object),
        pd.Series(["1", "2"] * (N // 2), dtype="string"),
        np.array([1, 2] * (N // 2), dtype=">i4"),
        np.array([1, 2] * (N // 2), dtype=np.longdouble),
    ],
    ids=["Int64", "Float64", "arrow", "category", "sparse", "objects", "mixed", "string", "big-endian", "long"],
)
def test_numbers_of_every_dtype_are_numbers(frame, std):
    frame["std"] = std
    assert_allclose(value(frame), by_hand(frame.assign(std=[1.0, 2.0] * (N // 2))), rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float64", "Float64", "object"])
def test_missing_numbers_are_refused_or_omitted_as_in_files(frame, dtype):
    gaps = frame.assign(std=frame["std"].astype(dtype).where(frame.index != 3, pd.NA if dtype != "float64" else np.nan))
    with pytest.raises(DataError, match=r"DataFrame: std .* 1 of 60 rows is not \(row 3, .*nan_policy='omit'"):
        value(gaps)
    report = calcheck.evaluate(gaps, "zms", nan_policy="omit", **BARE)
    assert report.results[0].value == value(frame.drop(index=3))
    assert report.input.dropped == 1
    assert 3 not in report.rows("zms").index


def test_a_missing_list_is_refused_or_omitted(frame):
    cells = frame.assign(embedding=[[1.0, float(row)] for row in range(N)])
    cells.loc[5, "embedding"] = None
    with pytest.raises(DataError, match="row 5"):
        calcheck.evaluate(cells, "cce", replicates=0)
    assert calcheck.evaluate(cells, "cce", nan_policy="omit", replicates=0).input.n == N - 1


def test_text_among_numbers_is_refused_with_its_row(frame):
    frame["std"] = pd.Series([1, "one"] + [1] * (N - 2), dtype=object)
    with pytest.raises(DataError, match=r"column 'std' must be numbers, but 1 of 60 rows is not \(row 1, .*'one'"):
        value(frame)


def test_duplicate_column_names_are_refused(frame):
    with pytest.raises(DataError, match=r"DataFrame has 1 duplicate column name: 'y'\. Rename them"):
        calcheck.read(pd.concat([frame, frame["y"]], axis=1))
    with pytest.raises(DataError, match="duplicate column name: '0'"):
        calcheck.read(pd.DataFrame([[1, 2]], columns=[0, "0"]))


def test_columns_of_several_levels_are_read_as_in_csv_files():
    rng = np.random.default_rng(2)
    levels, quantiles = [0.05, 0.5, 0.95], np.sort(rng.normal(size=(N, 3)))
    frame = pd.DataFrame(quantiles, columns=pd.MultiIndex.from_product([["sales"], levels]))
    frame["y", ""] = rng.normal(size=N)
    by_level = dict(zip(levels, quantiles.T, strict=True))
    assert value(frame) == value(y=frame["y"].to_numpy(), quantiles=by_level)
    with pytest.raises(DataError, match=r"no columns were recognized.*\('a', 'mean'\)"):
        calcheck.read(pd.DataFrame({("a", "y"): [1.0], ("a", "mean"): [1.0]})).predictions()


def test_columns_with_numbers_as_names_are_quantiles():
    frame = pd.DataFrame({"y": [0.0, 1.0], 0.1: [-1.0, 0.0], 0.9: [1.0, 2.0]})
    assert_allclose(calcheck.read(frame).predictions().predictive.quantile_levels, [0.1, 0.9])


# the index


def test_worst_and_best_rows_and_subsamples_are_counted(frame):
    report = calcheck.evaluate(frame, "zms", worst=3, best=2, subsample=40, **BARE)
    details = report.results[0].details
    assert (report.input.n, len(details["worst"]), len(details["best"])) == (40, 3, 2)


def test_rows_keep_their_columns_if_others_are_dropped(frame):
    """In the frame with a gap in row 3, rows after it are one place earlier than their numbers."""
    gaps = frame.assign(kind=[f"k{row}" for row in range(N)], std=frame["std"].where(frame.index != 3))
    rows = calcheck.evaluate(gaps, "zms", nan_policy="omit", **BARE).rows("zms")
    assert rows["kind"].tolist() == [f"k{row}" for row in rows.index]


def test_the_level_of_an_alarm_is_its_threshold(frame):
    dated = frame.assign(day=pd.date_range("2026-01-01", periods=N))
    assert calcheck.monitor(dated, "day", alarm_level=0.01).monitor.threshold == pytest.approx(100)


def test_a_named_index_identifies_rows(frame):
    names = pd.Index([f"p{row}" for row in range(N)], name="patient")
    source = calcheck.read(frame.set_index(names))
    assert source.predictions().id_name == "patient"
    assert source.predictions().id.tolist() == names.tolist()
    assert source.input_info().columns["id"] == "patient"
    rows = calcheck.evaluate(source, "zms", **BARE).rows("zms")
    pd.testing.assert_index_equal(rows.index, names)
    assert "patient" not in rows.columns


def test_an_id_that_is_named_takes_the_place_of_the_index(frame):
    keyed = frame.assign(key=range(N)).set_index(pd.Index(range(N), name="patient"))
    assert calcheck.read(keyed, id="key").predictions().id_name == "key"


def test_a_named_index_with_duplicates_is_a_column_only(frame):
    grouped = frame.set_index(pd.Index([0, 1] * (N // 2), name="group"))
    assert calcheck.read(grouped).predictions().id is None
    assert value(grouped, metric=calcheck.metric("ence", bins=2, by="group")) > 0


def test_an_unnamed_index_labels_results_only(frame):
    shuffled = frame.sample(frac=1, random_state=0)
    report = calcheck.evaluate(shuffled, "zms", **BARE)
    assert calcheck.read(shuffled).predictions().id is None
    pd.testing.assert_index_equal(report.rows("zms").index, shuffled.index)
    joined = frame.join(report.rows("zms")[["z2"]])
    assert_allclose(joined["z2"], ((frame["y"] - frame["mean"]) / frame["std"]) ** 2)


def test_an_index_that_is_a_column_too_is_read_once(frame):
    assert value(frame.assign(key=range(N)).set_index("key", drop=False)) == value(frame)
    with pytest.raises(DataError, match="duplicate column name: 'y'"):
        calcheck.read(frame.set_index(pd.Index(range(N), name="y")))


def test_levels_of_an_index_are_columns(frame):
    levels = pd.MultiIndex.from_product([range(N // 2), ["a", "b"]], names=["item", None])
    source = calcheck.read(frame.set_index(levels))
    assert source.predictions().id is None
    assert "item" in source.table.schema.names


# arrays by keyword


@pytest.mark.parametrize(
    "convert",
    [
        lambda column: column,
        lambda column: column.to_numpy(),
        lambda column: column.tolist(),
        lambda column: torch.tensor(column.to_numpy(), requires_grad=True),
        lambda column: [torch.tensor(each, dtype=torch.float64, requires_grad=True) for each in column],
        lambda column: torch.tensor(column.to_numpy()).to(torch.float64)[:, None][:, 0],
        lambda column: np.ma.masked_array(column.to_numpy()),
        lambda column: column.astype("Float64"),
    ],
    ids=["Series", "numpy", "list", "tensor", "tensors", "view", "masked", "nullable"],
)
def test_arrays_of_every_kind_give_the_numbers_of_the_frame(frame, convert):
    assert value(y=convert(frame["y"]), mean=convert(frame["mean"]), std=convert(frame["std"])) == value(frame)


def test_a_tensor_in_bfloat16_is_read(frame):
    std = torch.full((N,), 0.5, dtype=torch.bfloat16, requires_grad=True)
    assert value(y=frame["y"], mean=frame["mean"], std=std) == value(frame)
    embedding = torch.ones(N, 2, dtype=torch.float16)
    assert calcheck.read(frame, embedding=embedding).predictions().x.dtype == np.float32


def test_an_array_takes_the_place_of_a_column(frame):
    assert_allclose(value(frame, std=2 * frame["std"]), value(frame) / 4, rtol=1e-14)
    assert value(frame.rename(columns={"std": "sigma"}), std=2 * frame["std"]) == value(frame, std=2 * frame["std"])


def test_several_targets_are_columns_of_arrays():
    rng = np.random.default_rng(3)
    y, mean, samples = rng.normal(size=(N, 2)), rng.normal(size=(N, 2)), rng.normal(size=(N, 9, 2))
    rows = calcheck.read(y=y, mean=mean, std=np.ones((N, 2))).predictions()
    assert_array_equal(rows.y, y)
    assert_array_equal(rows.predictive.mean(), mean)
    assert_array_equal(calcheck.read(y=y, samples=torch.tensor(samples)).predictions().predictive.draws, samples)


def test_quantiles_and_parameters_are_mappings():
    rng = np.random.default_rng(4)
    y = rng.poisson(3.0, size=N)
    quantiles = {0.95: y + 1.0, 0.05: y - 1.0}
    rows = calcheck.read(y=y, quantiles=quantiles).predictions()
    assert_array_equal(rows.predictive.quantile_levels, [0.05, 0.95])
    assert_array_equal(rows.predictive.values, np.stack([y - 1.0, y + 1.0], axis=1))
    of_frame = calcheck.read(y=y, quantiles=pd.DataFrame(quantiles)).predictions()
    assert_array_equal(of_frame.predictive.values, rows.predictive.values)
    rate = np.full(N, 3.0)
    by_array = value(y=y, dist="poisson", param={"rate": rate}, metric="crps")
    assert value(pd.DataFrame({"y": y, "lam": rate}), dist="poisson", param={"rate": "lam"}, metric="crps") == by_array


def test_inputs_are_columns_an_array_or_a_frame(frame):
    x = np.random.default_rng(5).normal(size=(N, 2))
    places = pd.DataFrame(x, columns=["lat", "lon"])
    by_name = calcheck.read(frame.join(places), inputs=["lat", "lon"])
    for source in (calcheck.read(frame, inputs=x), calcheck.read(frame, inputs=places), by_name):
        rows = source.predictions()
        assert_array_equal(rows.x, x)
        assert not rows.has_embedding
    assert calcheck.read(frame, inputs=x[:, 0]).predictions().x.shape == (N, 1)


def test_tables_of_other_libraries_are_read(frame):
    assert value(pa.table(frame)) == value(frame.to_dict("list")) == value(frame)
    twice = pa.table([[1.0], [2.0]], names=["y", "y"])
    with pytest.raises(DataError, match="Table has 1 duplicate column name"):
        calcheck.read(twice)


def test_filters_are_mappings(frame):
    both = pd.concat([frame.assign(horizon=1), frame.assign(horizon=2, std=9.0)])
    assert value(both, filter={"horizon": 1}) == value(frame)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"std": 1.0}, "std takes a column name, or an array with one value per row, got 1.0"),
        ({"std": np.float64(1.0)}, "std takes a column name, or an array with one value per row, got"),
        ({"std": torch.tensor(1.0)}, "std must have one value per row, got a single Tensor"),
        ({"std": np.ones(N - 1)}, "row counts differ: y has 60, std has 59"),
        ({"std": np.ones(N) * 1j}, "std must hold real numbers, got complex128"),
        ({"std": np.ones((N, 0))}, r"std has no values per row: its shape is \(60, 0\)"),
        ({"target": np.ones(N)}, "target takes text, got ndarray. Pass an array as y"),
        ({"y": "z"}, "y takes an array with one value per row, got the text 'z'. Name columns with target"),
        ({"samples": ["s0", "s1"]}, r"samples takes a pattern .* pass frame\[names\]"),
        ({"samples": [[1.0], [1.0, 2.0]] * (N // 2)}, "column 'samples' is ragged: its rows have from 1 to 2 values"),
        ({"inputs": pd.DataFrame(np.ones((N, 2)), columns=["a", "a"])}, "inputs has 1 duplicate column name: 'a'"),
        ({"quantiles": {"low": np.ones(N)}}, "quantiles are a mapping from levels such as 0.05 to arrays, got 'low'"),
        ({"quantiles": np.ones((N, 3))}, "quantiles has 3 columns, and 0 levels are given"),
        ({"inputs": []}, "inputs is an empty list. Name at least one column"),
        ({"inputs": ["a,b", "c"]}, "the column name 'a,b' has a comma or outer spaces"),
        ({"input": ["a"]}, "there is no argument 'input'"),
        ({"resample": 0}, r"there is no argument 'resample'\. Did you mean 'resamples'\?"),
        ({"clusters": "y"}, r"there is no argument 'clusters'\. Did you mean 'cluster'\?"),
        ({"weight": "y"}, r"there is no argument 'weight'\. Did you mean 'weights'\?"),
        ({"weights": np.ones(N)}, r"weights takes the name of a column, got the list \[1.0, 1.0, 1.0, 1.0.*…$"),
        ({"nan_policy": "drop"}, "nan_policy takes one of raise, omit, got 'drop'"),
        ({"min_std": "small"}, "min_std takes a number, got the text 'small'"),
        ({"seed": 1.5}, "seed takes a whole number, got 1.5"),
        ({"seed": None}, "seed takes a whole number, got None"),
        ({"confidence": "high"}, "confidence takes a number, got the text 'high'"),
        ({"precision": "half"}, "precision takes one of float64, float32, got 'half'"),
        ({"memory": 1.5}, "memory takes text or a whole number, got 1.5"),
        ({"worst": -1}, "worst must be >= 0, got -1"),
        ({"best": 1.5}, "best takes a whole number, got 1.5"),
        ({"subsample": "all"}, "subsample takes a whole number, got the text 'all'"),
        ({"filter": 3}, "filter takes a mapping, or a list of texts such as 'NAME=VALUE', got 3"),
    ],
)
def test_a_wrong_argument_is_refused_in_one_line(frame, keywords, message):
    with pytest.raises(CalcheckError, match=message) as caught:
        calcheck.evaluate(frame, ["zms"], **BARE, **keywords)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"step": "a"}, "step takes a number, got the text 'a'"),
        ({"step": 100}, r"step must be above 0 and at most max_percent \(90\), got 100"),
        ({"coverage": "half"}, "coverage takes a number, got the text 'half'"),
        ({"criteria": 5}, "criteria takes a list of names, got the list"),
        ({"cce": "cce"}, r'cce is calcheck.metric\("cce", …\), got \'cce\''),
    ],
)
def test_a_wrong_argument_of_a_rejection_is_refused(frame, keywords, message):
    with pytest.raises(OptionError, match=message):
        calcheck.reject(frame, "mae", **BARE, **keywords)


def test_messages_name_keywords_in_python():
    """A flag with a hyphen, one that is a keyword of Python, one that has another name, and one that has none."""
    text = "Pass --nan-policy omit, another --lambda or --no-null (--help)"
    assert with_keywords(text) == "Pass nan_policy='omit', another lambda_ or replicates=0 (--help)"
    text = "Pass --level 0.9, --samples 's*', --param scale=s, --min-std X, --by COLUMN. More: --table, --format csv"
    assert with_keywords(text) == (
        "Pass level=0.9, samples='s*', param='scale=s', min_std=X, by='COLUMN'. More: to_frame(), to_frame()"
    )
    assert with_keywords("columns a--b and --") == "columns a--b and --"
    assert with_keywords("if of 90 %, calcheck '' --lower 0 --level 0.9") == "if of 90 %, pass lower=0 level=0.9"
    skipped = calcheck.evaluate({"y": [1.0, 2.0], "mean": [1.0, 2.0], "std": [1.0, 1.0]}, ["zms", "cce"], **BARE)
    with pytest.raises(OptionError, match=r"cce was skipped: needs inputs to condition on \(embedding or inputs\)"):
        skipped.rows("cce")
    with pytest.raises(DataError, match=r"the target. Pass target='COLUMN', or truth='FILE'"):
        calcheck.evaluate({"mean": [1.0, 2.0], "std": [1.0, 1.0]}, "zms")


def test_errors_are_public():
    with pytest.raises(calcheck.OptionError):
        calcheck.metric("absent")
    for error in (calcheck.DataError, calcheck.FileError, calcheck.OptionError, calcheck.NumericalError):
        assert issubclass(error, calcheck.CalcheckError)


def test_a_list_of_levels_may_be_a_list_or_a_single_number():
    assert calcheck.metric("pinball", levels=0.9) == calcheck.metric("pinball", levels=[0.9])
    pinball = calcheck.METRICS["pinball"]
    assert hash(pinball(levels=[0.1, 0.9])) == hash(pinball(levels=(0.1, 0.9)))


def test_a_series_with_another_index_is_refused(frame):
    with pytest.raises(DataError, match=r"the index of std differs from that of the DataFrame\. Align them"):
        calcheck.read(frame, std=frame["std"].sample(frac=1, random_state=0))
    with pytest.raises(DataError, match="the index of mean differs from that of y"):
        calcheck.read(y=frame["y"], mean=frame["mean"][::-1], std=frame["std"])


@pytest.mark.parametrize("data", [[1.0], np.ones((3, 2)), pd.Series([1.0]), 3, pa.array([1.0])], ids=type)
def test_data_of_another_kind_are_refused(data):
    with pytest.raises(DataError, match=r"predictions are a path, a DataFrame|is not a table of columns"):
        calcheck.read(data)


def test_no_data_are_refused():
    for make in (calcheck.read, lambda: calcheck.read(pd.DataFrame()), lambda: calcheck.read({})):
        with pytest.raises(DataError, match="there are no predictions"):
            make()
    with pytest.raises(DataError, match="there are no rows"):
        calcheck.read(y=[], mean=np.array([]), std=np.array([])).predictions()


def test_a_frame_is_joined_to_files_and_written_as_one(frame, tmp_path):
    embedding = np.random.default_rng(7).normal(size=(N, 3))
    np.save(tmp_path / "embedding.npy", embedding)
    frame[["y"]].to_csv(tmp_path / "truth.csv", index=False)
    embedded = calcheck.read(frame, embedding=str(tmp_path / "embedding.npy"))
    assert_array_equal(embedded.predictions().x, embedding)
    assert value(frame.drop(columns="y"), truth=str(tmp_path / "truth.csv")) == value(frame)
    calcheck.write(calcheck.read(frame), str(tmp_path / "written.parquet"))
    assert value(tmp_path / "written.parquet") == value(frame)
    with pytest.raises(OptionError, match=r"write takes predictions as calcheck\.read returns them, got DataFrame"):
        calcheck.write(frame, tmp_path / "unread.parquet")


def test_frames_as_arrays_keep_missing_numbers(frame):
    places = pd.DataFrame({"lat": pd.array([1.0, pd.NA] * (N // 2), dtype="Float64"), "lon": 2})
    for role in ("embedding", "inputs"):
        with pytest.raises(DataError, match="30 of 60 rows"):
            calcheck.read(frame, **{role: places}).predictions()
        assert len(calcheck.read(frame, nan_policy="omit", **{role: places}).predictions()) == N // 2


def test_arrays_do_not_join_a_file():
    with pytest.raises(OptionError, match=r"std is an array, but the other columns are in a file\. Pass a DataFrame"):
        calcheck.read(DIABETES, std=np.ones(442))


def test_keywords_are_the_options_of_reading():
    assert set(ColumnArguments.__annotations__) == {"y", *SYNONYMS, *(each.name for each in fields(ColumnOptions))}


# metrics by name


def test_metrics_are_named_with_options():
    assert calcheck.metric("cce", lambda_=0.1) == calcheck.metric("cce", **{"lambda": 0.1})
    assert calcheck.metric("cce", lambda_=np.float64(0.1)).options()["lambda"] == 0.1
    levels = calcheck.metric("pinball", levels=[0.02, 0.5])
    for given in (np.array([0.02, 0.5]), [np.float64(0.02), np.float64(0.5)], (np.float64(0.02), 0.5)):
        assert calcheck.metric("pinball", levels=given) == levels
    built = calcheck.metric("cce", lambda_=0.1, estimator="unbiased")
    assert calcheck.metric("cce", **built.options()) == built


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: calcheck.metric("cces"), "unknown metric 'cces'. Did you mean 'cce'?"),
        (lambda: calcheck.metric("ence", bin=3), r"ence has no option 'bin' \(options: bins, by, norm\)"),
        (lambda: calcheck.metric("zms", bins=3), r"zms has no option 'bins' \(options: none\)"),
        (lambda: calcheck.metric("ence", bins="three"), "ence: bins takes a whole number, got the text 'three'"),
        (lambda: calcheck.metric("ence", bins=0), "^bins must be at least 1, got 0"),
        (lambda: calcheck.metric("ence", bins=None), "ence: bins takes a whole number"),
        (lambda: calcheck.evaluate(DIABETES, []), "there are no metrics to compute"),
        (lambda: calcheck.evaluate(DIABETES, [3]), r"metrics are names or calcheck.metric\(name, …\), got 3"),
        (lambda: calcheck.evaluate(DIABETES, 3), r"metrics are names or calcheck.metric\(name, …\), got 3"),
    ],
)
def test_a_wrong_metric_is_refused_in_one_line(make, message):
    with pytest.raises(OptionError, match=message):
        make()


def test_all_metrics_that_apply_are_the_default(frame):
    report = calcheck.evaluate(frame, **BARE)
    assert {"zms", "crps", "mae"} < {result.metric for result in report.results}
    assert {"cce", "cmmd"} <= {skipped.metric for skipped in report.skipped}


def test_a_report_without_results_is_an_error(frame):
    with pytest.raises(DataError, match=r"no metric applies\. cce: needs inputs"):
        calcheck.evaluate(frame, "cce")


def test_sources_and_predictions_are_data_too(frame):
    source = calcheck.read(frame)
    rows = source.predictions()
    assert value(source) == value(rows) == value(calcheck.InMemory(rows)) == value(frame)
    with pytest.raises(OptionError, match=r"inputs applies to data that are not read yet\. Pass it to calcheck\.read"):
        calcheck.evaluate(source, "zms", inputs=["y"])


def test_options_of_the_run_are_keywords(frame):
    report = calcheck.evaluate(frame, "zms", seed=3, confidence=0.9, resamples=200, replicates=39, memory="1GiB")
    settings = {name: report.settings[name] for name in ("seed", "confidence", "resamples", "replicates", "memory")}
    assert settings == {"seed": 3, "confidence": 0.9, "resamples": 200, "replicates": 39, "memory": 1 << 30}


def test_evaluation_points_are_a_file_a_frame_or_an_array(frame, tmp_path):
    x, at = np.linspace(0, 1, N), pd.DataFrame({"x": [0.25, 0.75]}, index=["low", "high"])
    at.to_parquet(tmp_path / "at.parquet")
    by_name = frame.assign(x=x)
    rows = [
        calcheck.evaluate(by_name, "cce", inputs=["x"], at=at, replicates=0).rows("cce"),
        calcheck.evaluate(by_name, "cce", inputs=["x"], at=tmp_path / "at.parquet", replicates=0).rows("cce"),
        calcheck.evaluate(frame, "cce", inputs=x, at=[0.25, 0.75], replicates=0).rows("cce"),
        calcheck.evaluate(
            calcheck.read(frame, inputs=x).predictions(), "cce", at=torch.tensor([0.25, 0.75]), replicates=0
        ).rows("cce"),
    ]
    assert rows[0].index.tolist() == ["low", "high"]
    assert rows[0]["x"].tolist() == [0.25, 0.75]
    for other in rows[1:]:
        assert_array_equal(other["cce"], rows[0]["cce"])


@pytest.mark.parametrize("at", [np.array([0.25, 0.75]), [[0.25], [0.75]], torch.tensor([[0.25], [0.75]])])
def test_arrays_of_points_of_any_shape_have_the_column_of_the_input(frame, at):
    rows = calcheck.evaluate(frame.assign(x=np.linspace(0, 1, N)), "cce", inputs="x", at=at, replicates=0).rows("cce")
    assert rows["x"].tolist() == [0.25, 0.75]


def test_evaluation_points_without_a_conditional_metric_are_refused(frame):
    with pytest.raises(
        OptionError, match="at is for conditional metrics, such as cce, and there is none among zms, mae"
    ):
        calcheck.evaluate(frame, ["zms", "mae"], at=[[1.0]], inputs=["mean"])
    both = calcheck.evaluate(frame, ["zms", "cce"], at=[[1.0]], inputs=["mean"], **BARE)
    assert both.results[0].value == value(frame)


def test_an_array_of_points_has_the_columns_of_the_inputs(frame):
    x, at = np.random.default_rng(6).normal(size=(N, 2)), pd.DataFrame({"lat": [0.0, 1.0], "lon": [0.5, -0.5]})
    frame[["lat", "lon"]] = x
    of_frame, of_array = (
        calcheck.evaluate(frame, "cce", inputs=["lat", "lon"], at=points, replicates=0)
        for points in (at, at.to_numpy())
    )
    assert_array_equal(of_frame.rows("cce")["cce"], of_array.rows("cce")["cce"])


# frames of reports


def test_a_report_as_a_frame_has_one_dtype_per_column(frame):
    report = calcheck.evaluate(frame, ["zms", "cce", "sharpness"], replicates=39)
    table = report.to_frame()
    assert table["metric"].tolist() == ["zms", "sharpness", "cce"]
    assert table["verdict"].tolist() == ["fail", "none", "skipped"]
    assert {str(table[name].dtype) for name in NUMBERS} == {"float64"}
    assert {str(table[name].dtype) for name in ("metric", "unit", "interval", "verdict", "notes")} == {"string"}
    zms = report.results[0]
    assert table.loc[0, ["value", "low", "high", "reference", "p_value"]].tolist() == [
        *(zms.value, zms.low, zms.high, zms.reference, zms.p_value)
    ]
    assert "needs inputs" in table["notes"].iloc[2]


def test_a_report_is_data_for_json_and_other_processes(frame):
    report = calcheck.evaluate(frame, ["zms", "crps"], **BARE)
    assert list(json.loads(to_json(report))) == [field.name for field in fields(Report)]
    again = pickle.loads(pickle.dumps(report))  # noqa: S301 - our own
    assert again == report
    pd.testing.assert_frame_equal(again.rows("crps"), report.rows("crps"))


def test_results_of_one_metric_are_distinguished_by_their_options(frame):
    levels = [calcheck.metric("coverage", level=level) for level in (0.5, 0.9)]
    report = calcheck.evaluate(frame, [*levels, "zms"], **BARE)
    assert report.to_frame()["options"].tolist() == ["level=0.5", "level=0.9", ""]
    assert "options" not in calcheck.evaluate(frame, ["coverage", "zms"], **BARE).to_frame()
    with pytest.raises(OptionError, match=r"2 results of coverage\. Evaluate one at a time"):
        report.rows("coverage")


def test_rows_stand_beside_the_columns_of_the_file(frame):
    frame["when"] = pd.date_range("2026-01-01", periods=N)
    frame["site"] = pd.Categorical(["a", "b"] * (N // 2))
    frame["count"] = pd.array([1, pd.NA] * (N // 2), dtype="Int64")
    frame["crps"] = -1.0
    rows = calcheck.evaluate(frame, ["zms", "crps"], **BARE).rows("crps")
    assert list(rows.columns) == ["crps", "y", "mean", "std", "when", "site", "count", "crps_given"]
    assert rows["when"].tolist() == frame["when"].tolist()
    assert rows["site"].tolist() == frame["site"].tolist()
    assert str(rows["count"].dtype) == "Int64"
    assert_array_equal(rows["crps_given"], -1.0)
    assert_allclose(rows["crps"].mean(), value(frame, metric="crps"), rtol=1e-14)


def test_rows_of_a_subsample_are_its_rows(frame):
    rows = calcheck.evaluate(frame, "zms", subsample=10, **BARE).rows("zms")
    assert_array_equal(rows["y"], frame.loc[rows.index, "y"])
    assert_allclose(rows["z2"], ((rows["y"] - rows["mean"]) / rows["std"]) ** 2)
    assert len(rows) == 10


def test_rows_that_do_not_exist_are_explained(frame):
    report = calcheck.evaluate(frame.assign(x=frame["y"]), ["zms", "fid", "cmmd"], inputs=["x"], **BARE)
    short = calcheck.evaluate(frame, ["zms", "cce"], **BARE)
    for make, message in [
        (lambda: report.rows("fid"), r"fid has no value per row \(metrics with rows: zms"),
        (lambda: report.rows("mae"), r"the report has no metric 'mae' \(metrics: zms, fid, cmmd\)"),
        (lambda: short.rows("cce"), "cce was skipped: needs inputs"),
        (lambda: calcheck.evaluate(frame, "zms", pointwise=False, **BARE).rows("zms"), "with pointwise=True"),
        (lambda: calcheck.compare({"a": frame, "b": frame}, "zms").rows("zms"), "They come from evaluate"),
    ]:
        with pytest.raises(OptionError, match=message):
            make()


def test_python_shows_the_first_screen_of_the_command(frame):
    """The answer in at most 24 lines, then the metrics that were asked for; what shows more is named as in Python."""
    comparison = calcheck.compare({"a": frame, "b": frame.assign(std=1.0)}, ["crps", "zms"], **BARE)
    assert repr(comparison).splitlines()[2].startswith("Which model is best?")
    shown = repr(calcheck.evaluate(frame, ["zms"], **BARE))
    assert shown.startswith("60 rows · gaussian (y, mean, std)\n\nCan the uncertainties be trusted?")
    assert shown.splitlines()[-1].startswith("zms ")
    every = calcheck.evaluate(frame, **BARE)
    assert every.screen() == repr(every)
    assert len(repr(every).splitlines()) <= 24
    for text in (repr(every), every._repr_html_(), comparison._repr_html_()):
        assert "untested" in text or "best" in text
        assert "--" not in text


def test_a_screen_in_python_suggests_calls_that_can_be_made(frame):
    """Each suggestion is a call, where ``...`` stands for the arguments of the first one; a check suggests no check."""
    frame["heat"] = np.linspace(0, 1, N)
    report = calcheck.evaluate(frame, **BARE)
    assert report.conclusion.next == (
        "calcheck.evaluate(..., inputs='heat')",
        "calcheck.recalibrate(...)",
        "report.plot('coverage')",
    )
    assert "  mend     calcheck.recalibrate(...)" in repr(report).splitlines()
    for call in report.conclusion.next:
        eval(call.replace("...", "frame"), {"calcheck": calcheck, "frame": frame, "report": report})  # noqa: S307
    right = frame.assign(std=1.0)
    assert calcheck.evaluate(right, **BARE, tolerance=2).conclusion.next[-1] == "calcheck.assert_calibrated(...)"
    assert not any("assert" in call for call in calcheck.check(right, **BARE, tolerance=2).conclusion.next)


@pytest.mark.parametrize(
    "given",
    [{"power": True, "best": 2, "tolerance": 0.1}, {"groups": "heat", "subsample": 55}, {"weights": "heat"}],
    ids=str,
)
def test_a_suggested_call_names_the_keywords_to_leave_out(frame, given):
    """The other functions refuse each of them, and take the rest."""
    frame["heat"] = np.linspace(0.5, 1, N)
    stated = {**given, "replicates": 59, "resamples": 0}
    suggested = calcheck.evaluate(frame, **stated).conclusion.next
    call, left = next(each for each in suggested if "recalibrate" in each).split("  # without ")
    assert sorted(left.split(", ")) == sorted(given)
    eval(call.replace("...", "frame, **rest"), {"calcheck": calcheck, "frame": frame, "rest": {"replicates": 59}})  # noqa: S307
    needed = {"recalibrate": {}, "slices": {"by": "heat"}, "monitor": {"time": "heat"}}
    for function, name in ((function, name) for function, names in REFUSED.items() for name in names):
        with pytest.raises(calcheck.OptionError, match=f"there is no argument '{name}'"):
            getattr(calcheck, function)(frame, **needed[function], **{name: None})


def test_a_check_computes_no_results_of_rows(frame):
    assert calcheck.check(frame, pointwise=True, **BARE).results == calcheck.check(frame, **BARE).results


def test_intervals_of_an_unknown_level_are_counted_in_python(frame):
    """As the command does; a check, a page and metrics need the level."""
    frame = pd.DataFrame({"y": np.r_[np.zeros(79), np.full(21, 2.0)], "lo": -1.0, "hi": 1.0})
    arrays = {"y": frame["y"], "lower": frame["lo"], "upper": frame["hi"]}
    for report in (calcheck.evaluate(frame), calcheck.evaluate(**arrays)):
        assert report.conclusion.answer == "not-shown"
        assert "hold 79 % (70 to 87 %) of 100 targets" in report.conclusion.effects[0].text
        assert report.conclusion.next == ("calcheck.evaluate(..., level=LEVEL)",)
        assert "NOT SHOWN" in repr(report)
    for call in (calcheck.check, calcheck.report, calcheck.assert_calibrated):
        with pytest.raises(CalcheckError, match=r"Pass the level that was promised, as in level=0\.9"):
            call(frame)


@pytest.mark.slow
def test_html_is_escaped(frame):
    hostile = "<script>alert(1)</script>"
    models = {hostile: frame, "b & c": frame.assign(std=1.0)}
    html = calcheck.compare(models, ["crps", "cce"])._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "b &amp; c" in html
    assert "skipped cce" in html


def test_html_shows_the_cells_of_the_report(frame):
    report = calcheck.evaluate(frame, ["zms", "crps"], replicates=39)
    html = report._repr_html_()
    assert f"{report.results[0].value:.3g}</span></td>" in html
    assert '<span class="fail">fail</span>' in html
    assert "60 rows · gaussian (y, mean, std)" in html
    assert '<dd class="line">×' in html


@pytest.mark.slow
def test_notebooks_show_the_pictures_of_a_report(frame, tmp_path):
    report = calcheck.evaluate(frame, ["zms", "ece", "tail"], pictures=True, plot_by="mean", replicates=19)
    assert report._repr_html_().count("<svg") == 3  # of the answer, zms and ece
    assert [len(result.curves) for result in report.results] == [1, 1, 0]
    assert report.results[0].curves[0].x_name == "mean"
    first, second = report.pictures()
    assert report.plot("ece") == second
    plain = calcheck.evaluate(frame, "zms", replicates=19)
    assert plain.pictures() == ()
    assert plain.plot("ece").picture.title == second.picture.title  # which is evaluated for its picture
    assert report.plot(str(tmp_path / "answer.svg")).picture.title.startswith("Can the uncertainties be trusted?")
    assert "Can the uncertainties be trusted?" in (tmp_path / "answer.svg").read_text(encoding="utf-8")
    with pytest.raises(calcheck.OptionError, match="no picture of tail"):
        report.plot("tail")
    bundle = first._repr_mimebundle_()
    first.save(tmp_path / "zms.svg")
    assert (tmp_path / "zms.svg").read_text() == bundle["image/svg+xml"]
    assert bundle["application/vnd.vegalite.v6+json"]["$schema"].endswith("v6.json")
    with pytest.raises(calcheck.OptionError, match=r"must end in \.svg"):
        first.save("zms.gif")


def test_notebooks_show_the_pictures_of_studies(frame):
    comparison = calcheck.compare({"a": frame, "b": frame.assign(std=1.0)}, ["zms"], **BARE)
    rejection = calcheck.reject(frame, ["mae"], criteria=["std"], step=50, max_percent=50, **BARE)
    for report in (comparison, rejection):
        assert report._repr_html_().count("<svg") == 1
        assert report.plot() == report.pictures()[0]
    assert calcheck.evaluate(frame, ["zms"], **BARE).pictures() == ()


def test_python_refuses_pictures_along_three_columns(frame):
    with pytest.raises(calcheck.OptionError, match="one or two columns"):
        calcheck.evaluate(frame, ["zms"], pictures=True, plot_by=["mean", "y", "std"], **BARE)


def test_none_names_no_column_and_no_rule(frame):
    assert calcheck.check(frame, ["zms"], plot_by=None, fail_on=None, **BARE).gates[0].rule == "answer == 'no'"


@pytest.mark.parametrize("rule", ["answer==no", "answer == 'no'", "picp > 2 or answer == no"])
def test_words_of_rules_need_no_quotes_and_metrics_have_their_other_names(frame, rule):
    assert calcheck.check(frame, ["zms", "coverage"], fail_on=rule, **BARE).gates[0].judged


def test_a_rule_on_an_unknown_answer_is_refused(frame):
    with pytest.raises(calcheck.OptionError, match=r"answer is never 'NO'. Did you mean 'no'\?"):
        calcheck.check(frame, ["zms"], fail_on="answer==NO", **BARE)


def test_a_page_has_all_pictures_and_rows(frame):
    with pytest.raises(calcheck.OptionError, match=r"^report has no argument 'pictures': a page holds the pictures"):
        calcheck.report(frame, ["zms"], pictures=False, **BARE)


def test_rows_keep_the_time_zone_of_a_column(frame):
    """Midnight in Paris is 23:00 of the day before in UTC."""
    times = pd.date_range("2026-01-01", periods=len(frame), tz="Europe/Paris")
    rows = calcheck.evaluate(frame.assign(time=times, day=times.tz_localize(None)), ["crps"], **BARE).rows("crps")
    assert list(rows["time"]) == list(times)
    assert str(rows["time"].dt.tz) == "Europe/Paris"
    assert list(rows["day"]) == list(times.tz_localize(None))


# studies


def test_models_are_compared_by_name(frame):
    models = {"a": frame, "b": calcheck.read(frame.assign(center=0.0), mean="center", std="std")}
    report = calcheck.compare(models, ["crps", "mae"], permutations=100, seed=1)
    table = report.to_frame()
    assert table[["metric", "model"]].head(4).to_numpy().tolist() == [
        ["crps", "a"],
        ["crps", "b"],
        ["mae", "a"],
        ["mae", "b"],
    ]
    (first, second), difference = table["value"].head(2), table["value"].iloc[4]
    assert difference == second - first
    assert table["minus"].fillna("").tolist() == ["", "", "", "", "a", "a"]
    assert str(table["rank"].dtype) == "Int64"


def test_a_comparison_gives_the_numbers_of_its_files():
    frames = {"gp": pd.read_parquet(DIABETES), "linear": pd.read_parquet(LINEAR)}
    files = {"gp": DIABETES, "linear": LINEAR}
    options = {"resamples": 200, "permutations": 200}
    assert calcheck.compare(frames, "crps", **options).results == calcheck.compare(files, "crps", **options).results


def test_models_are_matched_by_their_index(frame):
    keyed = frame.set_index(pd.Index([f"p{row}" for row in range(N)], name="patient"))
    shuffled = keyed.assign(std=1.0).sample(frac=1, random_state=0)
    straight = calcheck.compare({"a": keyed, "b": keyed.assign(std=1.0)}, "crps", resamples=100)
    assert calcheck.compare({"a": keyed, "b": shuffled}, "crps", resamples=100).results == straight.results


def test_settings_are_swept_as_on_the_command_line(frame):
    from calcheck.models.alignment import Model
    from calcheck.studies.sweep.study import parse, sweep

    frame["x"] = frame["mean"]
    report = calcheck.sweep(
        frame, "cce", {"lambda_": [0.1, np.float64(1.0)], "gamma_y": "0.1..1:2", "subsample": [0.5, 40]}, inputs=["x"]
    )
    metric = calcheck.metric("cce")
    varied = [parse(text, type(metric)) for text in ("lambda=0.1,1", "gamma-y=0.1..1:2", "subsample=50%,40")]
    assert report.results == sweep([Model("m", calcheck.read(frame, inputs=["x"]))], metric, varied).results
    table = report.to_frame()
    assert table["lambda"].dropna().tolist() == [0.1, 1.0]
    assert table["subsample"].dropna().tolist() == ["50 %", "40"]
    assert "options" not in table


@pytest.mark.parametrize("levels", [[[0.1, 0.5], (0.9,)], ["0.1,0.5", 0.9], [np.array([0.1, 0.5]), 0.9]])
def test_the_values_of_an_option_that_is_a_list_are_lists(frame, levels):
    table = calcheck.sweep(frame, "pinball", {"levels": levels}).to_frame()
    alone = [value(frame, metric=calcheck.metric("pinball", levels=each)) for each in ([0.1, 0.5], [0.9])]
    assert table["value"].tolist()[1:] == alone


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ({}, "sweep needs a setting to vary"),
        ({"lambd": [1]}, r"^cce has no setting 'lambd' to vary \(settings: .*\)\. Did you mean 'lambda_'\?$"),
        ({"gamma_x+gama_y": [1]}, "no setting 'gama_y'"),
        ({"subsample+draws": [1]}, r"no setting 'subsample' to vary \(settings: .*\)$"),
        ({"lambda_": []}, r"lambda_ is varied over a list of values, .*, got \[\]"),
        ({"lambda_": ""}, "lambda_ is varied over a list of values"),
        ({"subsample": [True]}, "subsample takes fractions of the rows, such as 0.25, or whole numbers"),
        ({"lambda_": 0.1}, "lambda_ is varied over a list of values, or a range as text"),
        ("lambda=0.1,1", "vary is a mapping of settings to values"),
        ({"lambda_": ["x"]}, "^vary lambda takes a number"),
        ({"subsample": [2.5]}, "^subsample takes fractions of the rows, such as 0.25, or whole numbers .*, got 2.5"),
    ],
)
def test_a_wrong_setting_is_refused(frame, vary, message):
    with pytest.raises(OptionError, match=message):
        calcheck.sweep(frame.assign(x=frame["y"]), "cce", vary, inputs=["x"])


def test_likelihoods_of_densities_and_masses_name_the_option_of_the_metric():
    y, rate = np.random.default_rng(2).poisson(4.0, 30), np.linspace(3, 5, 30)
    normal = pd.DataFrame({"y": y, "mean": rate, "std": 2.0})
    models = {"normal": normal, "poisson": calcheck.read(pd.DataFrame({"y": y, "rate": rate}), dist="poisson")}
    with pytest.raises(DataError, match=r'pass metric\("nll", discretise=True\)'):
        calcheck.sweep(models, "nll", {"subsample": [0.5]})
    named = calcheck.sweep(models, calcheck.metric("nll", discretise=True), {"subsample": [0.5]})
    assert len(named.results) == 4


def test_models_must_be_a_mapping(frame):
    with pytest.raises(OptionError, match="models are a mapping of names to predictions"):
        calcheck.compare([frame, frame], "crps")


def test_rejection_is_a_frame(frame):
    options = {"criteria": ["std", "age"], "step": 25, "max_percent": 50, "resamples": 100, "coverage": 0.5}
    frame = frame.assign(age=np.arange(N), std=np.linspace(0.5, 1, N))
    report = calcheck.reject(frame, ["mae", "rmse"], **options)
    table = report.to_frame()
    kept = table[(table["by"] == "age") & (table["rejected"] == "50 %") & (table["metric"] == "mae")]
    assert_allclose(kept["value"].iloc[0], (frame["y"] - frame["mean"]).abs().head(N // 2).mean(), rtol=1e-14)
    assert str(table["rows"].dtype) == "Int64"
    assert table["threshold"].notna().sum() == 4


def test_rejection_on_new_rows_takes_a_frame(frame, tmp_path):
    frame = frame.assign(x=frame["mean"])
    new = frame.assign(y=frame["y"] + 0.1)
    new.to_parquet(tmp_path / "new.parquet")
    options = {"metrics": "mae", "inputs": ["x"], "criteria": "cce", "step": 50, "max_percent": 50, "resamples": 0}
    path = tmp_path / "new.parquet"
    reports = [calcheck.reject(frame, new=rows, **options) for rows in (path, new, calcheck.read(new, inputs=["x"]))]
    assert reports[0].results == reports[1].results == reports[2].results
    assert reports[0].results != calcheck.reject(frame, **options).results
    with pytest.raises(DataError, match="predictions are a path, a DataFrame"):
        calcheck.reject(frame, new=[1.0], **options)
    with pytest.raises(OptionError, match="means of errors over rows"):
        calcheck.reject(frame, "ence", criteria="std")


# start


@pytest.mark.slow
def test_pandas_is_not_imported_at_the_start():
    script = "import sys, calcheck.cli.app; calcheck.evaluate; calcheck.read; assert 'pandas' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_names_are_listed_before_they_are_imported():
    assert {"evaluate", "compare", "metric", "read"} <= set(dir(calcheck))
    assert set(calcheck.__all__) == set(dir(calcheck))
    assert all(hasattr(calcheck, name) for name in calcheck.__all__)


@pytest.mark.slow
def test_a_report_makes_a_page_with_a_map(frame):
    page = calcheck.evaluate(frame, ["zms", "coverage"], pictures=True, replicates=39).to_html()
    assert page.startswith("<!DOCTYPE html>")
    (data,) = (json.loads(each) for each in extract(page, "map"))
    assert sum(data["cells"]["n"]) == len(frame)
    (inside,) = (json.loads(each) for each in extract(page, "report"))
    assert [result["metric"] for result in inside["results"]] == ["zms", "coverage"]


@pytest.mark.slow
def test_the_page_of_several_models_is_a_function(frame, tmp_path):
    models = {"a": frame, "b": frame.assign(std=1.0)}
    page = calcheck.report(models, ["zms", "coverage"], output=tmp_path / "page.html", **BARE)
    text = (tmp_path / "page.html").read_text()
    assert text == page.html
    assert [len(json.loads(each)["results"]) for each in extract(text, "report")] == [2, 2]
    assert page.reports["b"].results[0].value == calcheck.evaluate(models["b"], "zms", **BARE).results[0].value
    assert page._repr_html_().startswith('<iframe srcdoc="&lt;!DOCTYPE')
    assert repr(page).count("Can the uncertainties be trusted?") == 2


def test_a_study_makes_a_page_of_tables(frame):
    page = calcheck.compare({"a": frame, "b": frame}, "crps").to_html()
    assert page.startswith("<!DOCTYPE html>")
    assert "<script>" not in page


def test_a_report_without_metrics_is_an_error_only_if_metrics_were_skipped():
    """A study may report something else."""
    read = Input(files=(), n=3, dropped=0, predictive=None, columns={})
    report = Report(calcheck="0", input=read, settings={}, results=())
    assert require_results(report) is report
    skipped = (Skipped(metric="cce", code="inapplicable", reason="needs inputs"),)
    with pytest.raises(calcheck.DataError, match=r"^no metric applies. cce: needs inputs$"):
        require_results(replace(report, skipped=skipped))
