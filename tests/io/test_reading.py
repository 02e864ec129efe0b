"""Files of every format and every shape of embedding become the same predictions."""

import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pyarrow import csv

import calcheck
from calcheck import METRICS, read
from calcheck.errors import DataError, OptionError
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.io import files
from calcheck.io.files import File
from calcheck.io.tables import open_file
from tests.helpers.files import D, N, columns, limited, table, vector_column, wide, write
from tests.helpers.shorthand import texts

PARTS = columns()


def assert_same(rows, parts=PARTS, rtol=1e-12):
    assert_allclose(rows.y, parts["y"], rtol=rtol)
    assert_allclose(rows.predictive.mean(), parts["mean"], rtol=rtol)
    assert_allclose(rows.predictive.std(), parts["std"], rtol=rtol)
    assert_allclose(rows.x, parts["embedding"], rtol=1e-6)
    assert_array_equal(rows.id.astype(int), parts["id"])


@pytest.mark.parametrize("ending", ["parquet", "feather", "arrow"])
def test_binary_formats_are_read(tmp_path, ending):
    rows = read(write(tmp_path / f"preds.{ending}", PARTS)).predictions()
    assert_same(rows)
    assert rows.x.dtype == np.float32


def test_csv_and_tsv_are_read(tmp_path):
    path = write(tmp_path / "preds.csv", wide(PARTS))
    assert_same(read(path).predictions())
    (tmp_path / "preds.tsv").write_text((tmp_path / "preds.csv").read_text().replace(",", "\t"))
    assert_same(read(str(tmp_path / "preds.tsv")).predictions())


def test_a_file_without_an_ending_is_recognized_by_its_first_bytes(tmp_path):
    for ending in ("parquet", "feather"):
        source = tmp_path / f"preds.{ending}"
        write(source, PARTS)
        assert_same(read(str(source.rename(tmp_path / "preds"))).predictions())
    (tmp_path / "preds").write_bytes(b"what is this?")
    with pytest.raises(OptionError, match=r"format of .* is unknown .*--input-format"):
        _ = read(str(tmp_path / "preds")).predictions()


@pytest.mark.parametrize("ending", ["parquet", "csv", "feather"])
def test_standard_input_is_read(tmp_path, monkeypatch, ending):
    path = tmp_path / f"preds.{ending}"
    write(path, wide(PARTS))
    stdin = io.TextIOWrapper(io.BytesIO(path.read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    source = read("-", input_format="arrow" if ending == "feather" else ending)
    assert_same(source.predictions())
    with pytest.raises(OptionError, match="--input-format parquet"):
        read("-").predictions()


VECTORS = PARTS["embedding"].tolist()
EMBEDDINGS = {
    "list": pa.array(VECTORS, pa.list_(pa.float64())),
    "large list": pa.array(VECTORS, pa.large_list(pa.float32())),
    "fixed-size list": vector_column(PARTS["embedding"]),
    "half precision": pa.array([list(row) for row in np.asarray(VECTORS, np.float16)], pa.list_(pa.float16())),
    "whole numbers": pa.array([[1, 2, 3]] * N, pa.list_(pa.int32())),
    "list of list": pa.array([[[v] for v in row] for row in VECTORS], pa.list_(pa.list_(pa.float32()))),
    "tensor": pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.float32(), [1, D]), vector_column(PARTS["embedding"])
    ),
    "text": pa.array([str(row) for row in VECTORS]),
    "numpy text": pa.array([str(np.asarray(row)) for row in VECTORS]),
}


@pytest.mark.parametrize("shape", EMBEDDINGS)
def test_embeddings_of_every_shape_are_read(tmp_path, shape):
    parts = {name: values for name, values in PARTS.items() if name != "embedding"}
    made = table(parts).append_column("embedding", EMBEDDINGS[shape])
    rows = read(write(tmp_path / "preds.parquet", made)).predictions()
    expected = np.tile([1, 2, 3], (N, 1)) if shape == "whole numbers" else PARTS["embedding"]
    assert_allclose(rows.x, expected, rtol={"half precision": 1e-3}.get(shape, 1e-6))
    narrow = shape in ("large list", "fixed-size list", "half precision", "list of list", "tensor")
    assert rows.x.dtype == (np.float32 if narrow else np.float64)


def test_wide_columns_are_ordered_by_their_numbers(tmp_path):
    parts = {"y": PARTS["y"], "mean": PARTS["mean"], "std": PARTS["std"]}
    parts |= {f"emb_{k}": np.full(N, float(k)) for k in (10, 9, 0, 1, 11, 2)}
    source = read(write(tmp_path / "preds.csv", parts))
    assert_allclose(source.predictions().x[0], [0, 1, 2, 9, 10, 11])
    parts |= {f"h{k}": np.full(N, float(k)) for k in (2, 10, 1)}
    assert_allclose(read(write(tmp_path / "b.csv", parts), embedding="h*").predictions().x[0], [1, 2, 10])


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([[1.0, 2.0]] * (N - 1) + [[1.0]]), "column 'embedding' is ragged: its rows have from 1 to 2"),
        (pa.array([[1.0, 2.0]] * (N - 1) + [None]), r"x \(column embedding\) must be finite.*\(row 11, counted"),
        (pa.array([[1.0, None]] * N), r"must be finite numbers, but 12 of 12 rows are not \(rows 0, 1, 2, …, counted"),
        (pa.array([["a"]] * N), "lists of string, not of numbers"),
        (pa.array([None] * N, pa.list_(pa.float64())), "all rows of column 'embedding' are null"),
        (pa.array(["[1.0 2.0 ... 3.0]"] * N), "abbreviated with '...', so values were lost"),
        (pa.array(["one two"] * N), "must be lists of numbers, .*row 0.* The value is 'one two'"),
        (pa.array([[]] * N, pa.list_(pa.float64())), "column 'embedding' holds empty lists"),
        (pa.array([[[1.0, 2.0], None]] * N), "has nulls in place of inner lists"),
        (pa.array(["[1,,3]", "[1,2,]"] * (N // 2)), "must be lists of numbers, .*row 0"),
    ],
)
def test_incomplete_embeddings_are_refused(tmp_path, column, message):
    parts = {name: values for name, values in PARTS.items() if name != "embedding"}
    path = write(tmp_path / "preds.parquet", table(parts).append_column("embedding", column))
    with pytest.raises(DataError, match=message):
        read(path).predictions()


@pytest.mark.parametrize("ending", ["npy", "npz"])
def test_embeddings_from_numpy_files_are_joined_by_position(tmp_path, ending):
    parts = {name: values for name, values in PARTS.items() if name != "embedding"}
    path, vectors = write(tmp_path / "preds.csv", parts), tmp_path / f"emb.{ending}"
    (np.save if ending == "npy" else np.savez)(vectors, PARTS["embedding"])
    source = read(path, embedding=str(vectors))
    assert_same(source.predictions())
    assert [file.rows for file in source.input_info().files] == [N, N]
    np.save(tmp_path / "short.npy", PARTS["embedding"][1:])
    with pytest.raises(DataError, match=r"more rows than the 11 of .*short\.npy. Both files need the same rows"):
        read(path, embedding=str(tmp_path / "short.npy")).predictions()
    np.save(tmp_path / "long.npy", np.concatenate([PARTS["embedding"]] * 2))
    with pytest.raises(DataError, match=r"12 rows, not the 24 of .*long\.npy"):
        read(path, embedding=str(tmp_path / "long.npy")).predictions()


def test_embeddings_from_another_file_are_joined_by_id(tmp_path):
    parts = {name: values for name, values in PARTS.items() if name != "embedding"}
    order = np.random.default_rng(1).permutation(N)
    other = {"id": PARTS["id"][order], "vector": PARTS["embedding"][order]}
    path = write(tmp_path / "preds.csv", parts)
    vectors = write(tmp_path / "emb.parquet", other)
    assert_same(read(path, embedding=f"{vectors}:vector").predictions())
    as_text = write(tmp_path / "text.parquet", other | {"id": other["id"].astype(str)})
    assert_same(read(path, embedding=f"{as_text}:vector").predictions())
    assert_same(read(path, embedding=vectors).predictions())  # the only column that is not a key
    both = write(tmp_path / "both.parquet", other | {"score": other["vector"][:, 0]})
    with pytest.raises(DataError, match=r"both\.parquet has no column 'embedding'. Name one as"):
        read(path, embedding=both).predictions()
    keys_only = write(tmp_path / "keys.parquet", {"id": other["id"]})
    with pytest.raises(DataError, match=r"keys\.parquet has no column 'embedding'"):
        read(path, embedding=keys_only).predictions()
    fewer = write(tmp_path / "few.parquet", {"id": PARTS["id"][2:], "embedding": PARTS["embedding"][2:]})
    with pytest.raises(DataError, match=r"2 of 12 rows are not in .*few\.parquet, for example id='100' "):
        read(path, embedding=fewer).predictions()
    twice = write(tmp_path / "twice.parquet", {"id": np.full(N, 100), "embedding": PARTS["embedding"]})
    with pytest.raises(DataError, match=r"twice\.parquet: 1 key occurs more than once"):
        read(path, embedding=twice).predictions()


def test_keys_with_leading_zeros_stay_text(tmp_path):
    (tmp_path / "preds.csv").write_text("id,y,mean,std\n01,1,2,3\n1,1,2,3\n10,1,2,3\n")
    assert read(str(tmp_path / "preds.csv")).predictions().id.tolist() == ["01", "1", "10"]


@pytest.mark.parametrize(("cell", "times"), [("1e-05", 1), ("-0.5", 1), ("+07", 2), ('"-07"', 2)])
def test_text_is_parsed_again_only_for_leading_zeros(tmp_path, monkeypatch, cell, times):
    """That of an exponent is none."""
    calls, read_csv = [], csv.read_csv
    monkeypatch.setattr(csv, "read_csv", lambda *arguments: calls.append(1) or read_csv(*arguments))
    (tmp_path / "preds.csv").write_text(f"y,mean,std,x\n1,2,3,{cell}\n")
    read(str(tmp_path / "preds.csv")).predictions()
    assert len(calls) == times


def test_column_types_are_inferred_from_the_whole_file(tmp_path):
    """300,000 integers and then 0.5 are numbers, not an error."""
    text = "y,mean,std\n" + "1,2,3\n" * 300_000 + "0.5,2,3\n"
    (tmp_path / "preds.csv").write_text(text)
    assert read(str(tmp_path / "preds.csv")).predictions().y[-1] == 0.5


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint32(), pa.decimal128(25, 2)])
def test_whole_numbers_and_decimals_keep_their_digits(tmp_path, kind):
    """Floats of 32 bits would round 16,777,217 to 16,777,216."""
    y = pa.array([16_777_217, 123_456_789, 4_000_000_001, 5]).cast(kind)
    path = write(tmp_path / "preds.parquet", pa.table({"y": y, "mean": np.zeros(4), "std": np.ones(4)}))
    assert read(path).predictions().y.tolist() == [16_777_217, 123_456_789, 4_000_000_001, 5]


@pytest.mark.parametrize("kind", ["std", "var", "log_std", "log_var"])
def test_uncertainties_on_every_scale_are_read(tmp_path, kind):
    std = PARTS["std"]
    spread = {"std": std, "var": std**2, "log_std": np.log(std), "log_var": 2 * np.log(std)}[kind]
    parts = {"y": PARTS["y"], "mean": PARTS["mean"], "u": spread}
    source = read(write(tmp_path / "preds.csv", parts), **{kind: "u"})
    assert_allclose(source.predictions().predictive.std(), std, rtol=1e-12)
    assert source.explicit() == ["--target", "y", "--mean", "mean", f"--{kind.replace('_', '-')}", "u"]


def test_samples_are_read_wide_and_as_lists(tmp_path):
    draws = np.random.default_rng(2).normal(size=(N, 11))
    for parts, options in (
        ({f"sample_{k}": draws[:, k] for k in range(11)}, {}),
        ({f"s{k}": draws[:, k] for k in range(11)}, {"samples": "s*"}),
        ({"samples": draws}, {}),
        ({"ens": draws}, {"samples": "ens"}),
    ):
        source = read(write(tmp_path / "preds.parquet", {"y": PARTS["y"]} | parts), **options)
        assert_allclose(source.predictions().predictive.draws, draws)
        back = read(str(tmp_path / "preds.parquet"), samples=source.explicit()[-1])
        assert_allclose(back.predictions().predictive.draws, draws)


def test_distributions_are_read_by_their_parameters(tmp_path):
    parts = {"y": np.arange(N), "total_count": np.full(N, 4.0), "probs": np.full(N, 0.6), "lam": np.full(N, 2.0)}
    path = write(tmp_path / "preds.parquet", parts)
    for dist in ("nbinom:torch", "nbinom"):
        assert_allclose(read(path, dist=dist).predictions().predictive.mean(), 6)
    assert_allclose(read(path, dist="poisson", param=("rate=lam",)).predictions().predictive.mean(), 2)
    with pytest.raises(DataError, match=r"--dist poisson needs the parameter 'rate' .*--param rate=COLUMN"):
        read(path, dist="poisson").predictions()
    with pytest.raises(OptionError, match=r"dist must be one of gaussian, .*got 'nbinon'"):
        read(path, dist="nbinon").predictions()
    with pytest.raises(OptionError, match="--param must be NAME=COLUMN with a name among rate, got 'lam'"):
        read(path, dist="poisson", param=("lam",)).predictions()
    other = write(tmp_path / "mu.parquet", {"y": np.arange(N), "mu": np.ones(N), "alpha": np.ones(N)})
    with pytest.raises(OptionError, match=r"several conventions.*nbinom:mu-alpha \(variance mu \+ alpha mu\^2"):
        read(other, dist="nbinom").predictions()
    with pytest.raises(OptionError, match=r"--dist weibull does not state the meaning .* Pass weibull:scipy \(shape c"):
        read(other, dist="weibull").predictions()


def test_several_targets_are_read(tmp_path):
    two = {f"{name}{k}": PARTS[name] * k for k in (1, 2) for name in ("y", "mean", "std")}
    path = write(tmp_path / "preds.csv", two)
    source = read(path, target="y1,y2", mean="mean1,mean2", std="std1,std2")
    rows = source.predictions()
    assert rows.y.shape == (N, 2)
    assert_allclose(rows.predictive.std()[:, 1], 2 * PARTS["std"])
    draws = {f"{c}_{k}": np.full(N, float(k)) for c in "ab" for k in range(3)}
    path = write(tmp_path / "draws.csv", two | draws)
    assert read(path, target="y1,y2", samples="a_*,b_*").predictions().predictive.draws.shape == (N, 3, 2)
    with pytest.raises(OptionError, match="--mean names 2 columns and --std 1"):
        read(path, mean="mean1,mean2", std="std1").predictions()


def test_inputs_replace_an_embedding(tmp_path):
    path = write(tmp_path / "preds.parquet", PARTS | {"a": np.arange(N), "b": np.ones(N)})
    rows = read(path, inputs="a,b").predictions()
    assert_allclose(rows.x[:, 0], np.arange(N))
    assert not rows.has_embedding


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"y_true": PARTS["y"]}, {}, "two columns may hold the target: 'y' and 'y_true'. Pass --target"),
        ({"pred": PARTS["y"]}, {}, "two columns may hold the mean: 'mean' and 'pred'"),
        ({"sigma": PARTS["y"]}, {}, "two columns may hold the std: 'std' and 'sigma'"),
        ({"y": None}, {}, "no column was recognized as the target. Pass --target COLUMN"),
        ({"mean": None}, {}, "no column was recognized as the mean"),
        ({"std": None}, {}, "no column was recognized as the std"),
        ({"mean": None, "std": None}, {}, "no columns were recognized as predictions"),
        ({}, {"target": "z"}, r"there is no column 'z' for the target \(columns: 'id', 'y'"),
        ({}, {"embedding": "h*"}, r"no column matches 'h\*' for the embedding"),
        ({"sample_0": PARTS["y"]}, {}, "two forms of predictions: mean 'mean' with std 'std', and samples 'sample_0'"),
        ({"std": None, "uncertainty_total": PARTS["std"]}, {}, "'uncertainty_total' may be a variance or a standard"),
        ({"std": None, "uq": PARTS["std"]}, {}, "'uq' may be a variance or a standard deviation: pass --var uq"),
        ({"std": None, "y_unc": PARTS["std"]}, {}, "'y_unc' may be a variance"),
        ({"mean": None, "std": None, "loc": PARTS["mean"], "scale": PARTS["std"]}, {}, "'loc' and 'scale'.*--dist"),
        ({"y": np.array(["a"] * N)}, {}, "column 'y' must be numbers, .*The first is 'a'"),
        (
            {"y": np.where(np.arange(N) == 3, np.nan, 1.0)},
            {},
            r"y must be finite numbers, .*\(row 3, counted.*--nan-policy",
        ),
        ({"std": np.zeros(N)}, {}, r"std must be positive, but 12 of 12 rows.*--min-std"),
        ({"u": -PARTS["std"]}, {"var": "u"}, r"var \(column u\) must be positive"),
        ({"id": np.full(N, 7)}, {}, "1 value of 'id' occurs more than once, for example '7' in rows 0 and 1"),
        ({"rate": PARTS["std"]}, {"dist": "poisson"}, "y must be whole numbers >= 0 for the family poisson"),
        ({"rate": -PARTS["std"], "y": np.arange(N)}, {"dist": "poisson"}, "rate must be positive"),
    ],
)
def test_ambiguous_or_invalid_columns_are_refused_with_the_file_and_a_remedy(tmp_path, change, options, message):
    parts = {name: values for name, values in (PARTS | change).items() if values is not None}
    path = write(tmp_path / "preds.parquet", parts)
    with pytest.raises(DataError, match=message) as caught:
        read(path, **options).predictions()
    assert str(caught.value).startswith(path)


def test_an_ambiguous_scale_is_refused_with_the_result_of_each_reading(tmp_path):
    """The column is a variance of a right model: mean z^2 is about 1 read as such, and far from 1 read as a std."""
    rng = np.random.default_rng(3)
    var = rng.uniform(0.001, 0.1, 500)
    parts = {"y": np.sqrt(var) * rng.normal(size=500), "mean": np.zeros(500), "uq": var}
    with pytest.raises(
        DataError, match=r"should be about 1: uq gives (1|0\.9\d*|1\.\d*) as a variance, \d{2,}\.?\d* as a standard"
    ):
        read(write(tmp_path / "preds.csv", parts)).predictions()


@pytest.mark.parametrize("name", ["variance", "var", "y_var", "pred_var"])
def test_a_column_named_variance_beside_means_is_read_as_such_and_the_note_names_it(tmp_path, name):
    parts = {"y": PARTS["y"], "mean": PARTS["mean"], name: PARTS["std"] ** 2}
    source = read(write(tmp_path / "preds.parquet", parts))
    np.testing.assert_allclose(source.predictions().predictive.std(), PARTS["std"])
    (note,) = source.warnings()
    assert (note.code, note.text) == ("assumed-variance", f"{name!r} is read as variances: else pass --std {name}")
    named = read(source.file.name, var=name)
    assert [each.code for each in named.warnings()] == []


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"total_std": PARTS["std"]}, "'var' may be a variance or a standard deviation"),
        ({"uncertainty": PARTS["std"]}, "'var' or 'uncertainty' may be a variance or a standard deviation"),
        ({"lower": PARTS["mean"] - 9, "upper": PARTS["mean"] + 9}, "columns 'lower' and 'upper' .* --level 0.9"),
        ({"var": ["x"] * N}, "'var' may be a variance or a standard deviation"),
    ],
    ids=["std", "uncertainty", "limits", "text"],
)
def test_a_column_named_variance_is_refused_beside_other_spreads_or_limits_or_as_text(tmp_path, others, message):
    parts = {"y": PARTS["y"], "mean": PARTS["mean"], "var": PARTS["std"]} | others
    with pytest.raises(DataError, match=message):
        read(write(tmp_path / "preds.parquet", parts)).predictions()


def test_a_column_named_variance_is_no_prediction_beside_a_std_or_draws(tmp_path):
    drawn = {f"sample_{place}": PARTS["y"] + place for place in range(3)}
    for others in ({"mean": PARTS["mean"], "std": PARTS["std"]}, drawn):
        path = write(tmp_path / "preds.parquet", {"y": PARTS["y"], "var": PARTS["std"]} | others)
        assert "var" not in read(path).roles.predictive.__dict__.values()
        assert getattr(read(path).roles.predictive, "kind", "std") == "std"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"std": "a", "var": "b"}, "pass only one of std, var"),
        ({"dist": "poisson", "samples": "s*"}, "dist and samples both describe the predictions"),
        ({"embedding": "e", "inputs": "x"}, "embedding and inputs"),
        ({"param": ("rate=x",)}, "param needs dist"),
        ({"min_std": -1.0}, "min_std must be a positive number, got -1.0"),
    ],
)
def test_options_that_contradict_each_other_are_refused(tmp_path, options, message):
    with pytest.raises(OptionError, match=message):
        read(write(tmp_path / "preds.parquet", PARTS), **options)


def test_incomplete_rows_are_dropped_on_request(tmp_path):
    y = np.where(np.isin(np.arange(N), [2, 5]), np.nan, PARTS["y"])
    source = read(write(tmp_path / "preds.csv", wide(PARTS) | {"y": y}), nan_policy="omit")
    rows = source.predictions()
    assert len(rows) == N - 2
    assert source.input_info().dropped == 2
    assert source.input_info().files[0].rows == N
    assert rows.row_numbers()[2] == 3
    assert "--nan-policy" in source.explicit()
    nothing = write(tmp_path / "none.parquet", PARTS | {"y": np.full(N, np.nan)})
    with pytest.raises(DataError, match="omit leaves no rows"):
        read(nothing, nan_policy="omit").predictions()


def test_small_deviations_are_raised_on_request_and_counted(tmp_path):
    source = read(write(tmp_path / "preds.parquet", PARTS | {"std": np.arange(N) / 10}), min_std=0.25)
    assert_allclose(source.predictions().predictive.std()[:4], [0.25, 0.25, 0.25, 0.3])
    assert texts(source.warnings()) == ("3 standard deviations were raised to 0.25 (--min-std)",)
    assert source.explicit()[-2:] == ["--min-std", "0.25"]


def test_duplicate_column_names_are_refused(tmp_path):
    (tmp_path / "preds.csv").write_text("y,mean,std,y\n1,2,3,4\n")
    with pytest.raises(DataError, match="1 duplicate column name: 'y'"):
        read(str(tmp_path / "preds.csv")).predictions()


def test_unreadable_files_are_refused(tmp_path):
    whole = tmp_path / "whole.parquet"
    write(whole, PARTS)
    (tmp_path / "cut.parquet").write_bytes(whole.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"cut\.parquet is not a readable parquet file .*truncated"):
        read(str(tmp_path / "cut.parquet")).predictions()
    for name, content, message in (
        ("empty.csv", b"", "is empty"),
        ("head.csv", b"y,mean,std\n", "there are no rows"),
        ("bad.csv", b"y,mean,std\n1,2\n", "not a readable csv file"),
        ("bad.feather", b"ARROW?", "not a readable arrow file"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=message):
            read(str(tmp_path / name)).predictions()
    with pytest.raises(DataError, match="there is no file"):
        read(str(tmp_path / "absent.csv"))
    with pytest.raises(DataError, match="holds files of several formats"):
        read(str(tmp_path)).predictions()


def test_pickles_are_never_loaded(tmp_path):
    for name in ("preds.pkl", "preds.pt", "preds.joblib"):
        (tmp_path / name).write_bytes(b"\x80\x04.")
        with pytest.raises(DataError, match="unsafe to load"):
            read(str(tmp_path / name))
    (tmp_path / "preds").write_bytes(b"\x80\x04.")
    with pytest.raises(DataError, match="unsafe to load"):
        read(str(tmp_path / "preds")).predictions()
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    parts = {name: values for name, values in PARTS.items() if name != "embedding"}
    with pytest.raises(DataError, match=r"objects\.npy"):
        read(write(tmp_path / "preds.csv", parts), embedding=str(tmp_path / "objects.npy")).predictions()


def test_recognized_columns_can_be_passed_explicitly(tmp_path):
    """Reading again with the options that `inspect` prints gives the same predictions."""
    source = read(write(tmp_path / "preds.parquet", PARTS))
    arguments = source.explicit()
    names = {flag.removeprefix("--"): value for flag, value in zip(arguments[::2], arguments[1::2], strict=True)}
    assert names == {"target": "y", "mean": "mean", "std": "std", "embedding": "embedding", "id": "id"}
    assert_same(read(str(tmp_path / "preds.parquet"), **names).predictions())


def test_the_report_contains_files_with_their_hash(tmp_path):
    import hashlib

    path = write(tmp_path / "preds.parquet", PARTS)
    found = read(path).input_info()
    assert found.files[0].sha256 == hashlib.sha256((tmp_path / "preds.parquet").read_bytes()).hexdigest()
    assert found.columns == {"y": "y", "mean": "mean", "std": "std", "x": "embedding", "id": "id"}
    assert (found.n, found.dropped, found.predictive) == (N, 0, "gaussian")


def test_columns_that_are_not_utf8_are_ignored(tmp_path):
    (tmp_path / "latin.csv").write_bytes("y,mean,std,note\n1,2,3,é\n2,3,4,a\n".encode("latin-1"))
    source = read(str(tmp_path / "latin.csv"))
    assert_allclose(source.predictions().y, [1, 2])
    assert source.roles.narrow == ("y", "mean", "std")


def test_evaluation_inputs_are_read_despite_problems_in_other_columns(tmp_path):
    """Targets are missing, two columns may be the mean, and deviations are 0; none of these is validated."""
    from calcheck.io.column_names import ColumnOptions
    from calcheck.io.file_source import FileSource
    from calcheck.io.files import File

    parts = PARTS | {"y": np.full(N, np.nan), "std": np.zeros(N), "pred": PARTS["mean"]}
    rows = FileSource(File(write(tmp_path / "at.parquet", parts)), ColumnOptions(), contents="inputs").predictions()
    assert_allclose(rows.x, PARTS["embedding"])
    assert rows.y is None
    assert rows.predictive is None


def test_problems_are_reported_by_row_of_the_file_after_rows_were_dropped(tmp_path):
    y = np.where(np.arange(N) == 0, np.nan, 1.0)
    twice = np.where(np.arange(N) == 7, 105, PARTS["id"])
    path = write(tmp_path / "preds.parquet", PARTS | {"y": y, "id": twice})
    with pytest.raises(DataError, match="example '105' in rows 5 and 7"):
        read(path, nan_policy="omit").predictions()


def test_errors_suggest_only_options_that_are_accepted(tmp_path):
    path = write(tmp_path / "preds.parquet", {"y": np.ones(3), "loc": np.ones(3), "scale": np.zeros(3)})
    with pytest.raises(DataError, match="must be positive") as caught:
        read(path, dist="gaussian").predictions()
    assert "--min-std" not in str(caught.value)


def test_predictions_do_not_depend_on_the_batch_size(tmp_path):
    """Batches of five rows give the same predictions, and problems are reported by row of the file."""

    def in_batches(name, parts):
        return limited(read(write(tmp_path / name, parts)), batch_bytes=1, batch_rows=5)

    source = in_batches("preds.parquet", PARTS)
    assert len(list(source.batches())) == 3
    assert_same(source.predictions())
    bad = PARTS | {"std": np.arange(N) - 8.0 + (np.arange(N) < 8) * 20}
    with pytest.raises(DataError, match=r"row 8, counted from 0"):
        in_batches("bad.parquet", bad).predictions()
    ragged = table({"y": PARTS["y"], "mean": PARTS["mean"], "std": PARTS["std"]}).append_column(
        "embedding", pa.array([[1.0, 2.0]] * 5 + [[1.0, 2.0, 3.0]] * (N - 5))
    )
    with pytest.raises(DataError, match="ragged"):
        in_batches("ragged.parquet", ragged).predictions()


def test_printed_patterns_match_exactly_the_recognized_columns(tmp_path):
    """emb_* would include emb_norm, and sample_* sample_id; if no pattern is exact, the columns are listed."""
    parts = {"y": np.ones(3), "sample_0": np.ones(3), "sample_1": np.ones(3), "sample_id": np.arange(3)}
    parts |= {"emb_0": np.arange(3.0), "emb_1": np.ones(3), "emb_norm": np.full(3, 9.0)}
    source = read(write(tmp_path / "preds.parquet", parts))
    assert source.explicit()[2:] == ["--samples", "sample_[0-9]*", "--embedding", "emb_[0-9]*"]
    assert source.predictions().x.shape == (3, 2)
    path = write(tmp_path / "odd.parquet", parts | {"emb_0_old": np.ones(3)})
    assert read(path).explicit()[-2:] == ["--embedding", "emb_0,emb_1"]
    assert read(path, embedding="emb_0,emb_1").predictions().x.shape == (3, 2)


@pytest.mark.slow
def test_lazy_distributions_give_the_same_numbers(tmp_path):
    """All metrics on samples that are read again for each metric, and on samples in memory."""
    from calcheck.io import file_source

    rng = np.random.default_rng(0)
    n, m = 400, 12
    draws = rng.normal(size=(n, m + 1))
    path = write(
        tmp_path / "preds.parquet",
        {
            "y": draws[:, 0],
            "embedding": rng.normal(size=(n, 3)),
            **{f"sample_{j}": draws[:, j + 1] for j in range(m)},
        },
    )
    in_memory = evaluate(read(path), [metric() for metric in METRICS.values()], run=Run(resamples=100, replicates=0))
    lazy = limited(read(path), predictive_bytes=1, batch_bytes=1, batch_rows=64)
    assert lazy.predictions().predictive.nbytes == 0
    report = evaluate(lazy, [metric() for metric in METRICS.values()], run=Run(resamples=100, replicates=0))
    assert report.results == in_memory.results
    assert report.skipped == in_memory.skipped
    assert {skipped.metric for skipped in in_memory.skipped} == {"nll", "lzms", "lrce"}
    bare = write(tmp_path / "bare.parquet", {f"sample_{j}": draws[:, j] for j in range(m)})
    nothing_else = file_source.FileSource(File(bare), contents="any")  # no targets, no inputs, no keys
    assert len(nothing_else.predictions()) == n
    chosen = np.array([300, 5, 5, 399])
    assert_array_equal(lazy.predictions().predictive.take(chosen).draws, draws[chosen, 1:])
    first = lazy.predictions().predictive
    assert first.display_name == "samples"
    assert first.describe()[7].startswith("12 draws from")
    for made, other in ((first.cdf, 0), (first.cdf_left, 1)):
        expected = (np.sum(draws[:, 1:] <= 0, axis=1) + 1 - other) / (m + 1)
        assert_allclose(made(np.zeros(n)), expected)
    assert_allclose(first.quantile(0.5), np.quantile(draws[:, 1:], 0.5, axis=1, method="inverted_cdf"))


# compression, encodings, JSON, several files


COMPRESSIONS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda content: pa.compress(content, "zstd", asbytes=True),
}


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_compressed_files_are_read_with_all_their_members(tmp_path, ending):
    compress, whole = COMPRESSIONS[ending], tmp_path / "preds.csv"
    content = Path(write(whole, wide(PARTS))).read_bytes()
    path = tmp_path / f"preds.csv.{ending}"
    path.write_bytes(compress(content[:300]) + compress(content[300:]))
    source = read(str(path))
    assert_same(source.predictions())
    assert source.input_info().files[0].sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    binary = Path(write(tmp_path / "preds.parquet", PARTS)).read_bytes()
    (tmp_path / "preds").write_bytes(compress(binary))
    assert_same(read(str(tmp_path / "preds")).predictions())
    for bad in (compress(content)[:-4], compress(content) + content):
        path.write_bytes(bad)
        with pytest.raises(DataError, match=r"preds\.csv\.\w+ cannot be decompressed"):
            read(str(path)).predictions()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_text_in_other_encodings_is_refused_by_name(tmp_path, encoding, ending):
    path = tmp_path / f"preds.{ending}"
    path.write_bytes("y,mean,std\n1,2,3\n".encode(encoding))
    with pytest.raises(DataError, match=f"is text in {encoding[:6].upper()}. Save it as UTF-8"):
        read(str(path)).predictions()


def test_arrays_of_json_records_are_read(tmp_path):
    records = [dict(zip(wide(PARTS), map(float, row), strict=True)) for row in zip(*wide(PARTS).values(), strict=True)]
    path = tmp_path / "preds.json"
    for text in (json.dumps(records), json.dumps(records, indent=1), "\n".join(map(json.dumps, records))):
        path.write_text(text)
        assert_same(read(str(path)).predictions())
    for text, message in (
        (json.dumps(records) * 2, "Extra data"),
        (json.dumps(records)[:-9], "not a readable JSON file"),
        ("[1, 2]", "an array must hold records"),
        ('[{"y": 1, "y": 2}]', "'y' twice"),
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=message):
            read(str(path)).predictions()


def test_json_beside_tables_in_a_folder_is_skipped(tmp_path):
    write(tmp_path / "part.parquet", PARTS)
    (tmp_path / "metadata.json").write_text("{}")
    assert_same(read(str(tmp_path)).predictions())


def test_a_list_of_paths_is_read_as_one_table(tmp_path):
    first = write(tmp_path / "b.parquet", PARTS)
    second = write(tmp_path / "a.parquet", columns(n=5, seed=1) | {"id": np.arange(5)})
    source = read([first, Path(second)])
    assert source.predictions().id.tolist() == [*PARTS["id"].tolist(), 0, 1, 2, 3, 4]
    report = calcheck.evaluate([first, second], "zms", resamples=0, replicates=0)
    assert (report.input.n, report.input.files[0].files) == (N + 5, 2)
    with pytest.raises(DataError, match="is named twice"):
        read([first, first])


@pytest.mark.parametrize("ending", ["parquet", "feather", "arrow"])
def test_categories_of_numbers_are_read(tmp_path, ending):
    made = table(PARTS)
    for place, name in enumerate(["id", "y", "mean", "std"]):
        made = made.set_column(place, name, made[name].dictionary_encode())
    assert_same(read(write(tmp_path / f"preds.{ending}", made)).predictions())


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather", "npz"])
def test_names_that_are_not_utf8_are_read(tmp_path, ending):
    parts = {name: values for name, values in PARTS.items() if name != "embedding"}
    whole = tmp_path / f"preds.{ending}"
    np.savez(whole, **parts) if ending == "npz" else write(whole, parts)
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe." + ending.encode())
    source = read(str(whole.rename(path)))
    assert len(source.predictions()) == N
    assert source.input_info().files[0].path.encode()


def test_rows_are_counted_from_the_start_of_the_file_and_not_of_a_batch(tmp_path):
    def message(name, bad, **options):
        std = np.where(np.isin(np.arange(N), bad), -1.0, 1.0)
        source = limited(read(write(tmp_path / name, PARTS | {"std": std}), **options), batch_bytes=1, batch_rows=5)
        with pytest.raises(DataError) as error:
            source.predictions()
        return str(error.value)

    assert "1 of the first 10 rows is not (row 7, counted from 0)" in message("preds.parquet", [7])
    assert f"1 of {N} rows is not (row 11, counted from 0)" in message("preds.parquet", [11])
    (tmp_path / "many").mkdir()
    write(tmp_path / "many" / "a.parquet", PARTS)
    message("many/b.parquet", [7])
    with pytest.raises(DataError, match=r"b\.parquet: std .* 1 of the first 10 rows is not \(row 7"):
        limited(read(str(tmp_path / "many")), batch_bytes=1, batch_rows=5).predictions()


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int8(), pa.string())])
def test_numbers_as_texts_are_read_and_other_texts_refused_alike(tmp_path, kind):
    """Also if the texts are categories."""
    good, bad = (pa.array(texts).cast(kind) for texts in (["1.5", "0.5"] * 6, ["1.5", "low"] * 6))
    parts = {"y": np.arange(12.0), "mean": np.arange(12.0)}
    path = write(tmp_path / "good.parquet", pa.table(parts | {"std": good}))
    assert read(path).predictions().predictive.std().tolist() == [1.5, 0.5] * 6
    path = write(tmp_path / "bad.parquet", pa.table(parts | {"std": bad}))
    with pytest.raises(DataError, match=r"column 'std' must be numbers, but 6 of 12 rows are not .*'low'"):
        read(path).predictions()


@pytest.mark.parametrize(
    ("values", "contents"),
    [
        (pa.array([{"a": 1}] * 12), "records"),
        (pa.array(np.array(["2026-01-02"] * 12, "M8[D]")), "dates or times (first value: '2026-01-02')"),
        (pa.array(np.array([5] * 12, "m8[s]")), "durations (first value: '5')"),
        (pa.array([b"1"] * 12), "bytes"),
    ],
)
def test_columns_of_other_values_are_refused_in_words(tmp_path, values, contents):
    parts = {"y": np.arange(12.0), "mean": np.arange(12.0), "std": values}
    path = write(tmp_path / "preds.parquet", pa.table(parts))
    with pytest.raises(DataError) as error:
        read(path, std="std").predictions()
    assert str(error.value).endswith(f"column 'std' holds {contents}, not numbers")


def test_arrow_streams_have_an_ending_of_their_own(tmp_path):
    path = tmp_path / "preds.arrows"
    Path(write(tmp_path / "preds.arrow", PARTS)).rename(path)
    assert_same(read(str(path)).predictions())


def test_messages_about_unknown_formats_list_all_that_are_known(tmp_path):
    (tmp_path / "preds.dat").write_text("y")
    with pytest.raises(OptionError, match=r"\.arrows, .*\.xlsx, \.json; also compressed: \.gz, \.bz2, \.xz, \.zst\)"):
        read(str(tmp_path / "preds.dat")).predictions()


def test_a_spread_that_another_column_gives_is_named_with_that_column(tmp_path):
    parts = {"y": np.zeros(30), "mean": np.zeros(30), "lv": np.append(np.zeros(29), -400.0)}
    path = write(tmp_path / "preds.csv", parts)
    with pytest.raises(DataError, match=r"std \(column lv, as log_var\) must be at least .* 1 of 30 rows is not"):
        calcheck.evaluate(path, ["zms"], log_var="lv")


@pytest.fixture
def openings(monkeypatch):
    """Return a list that grows by the path of each file that is opened, and by "csv" when one is parsed."""
    found, open_path, parse = [], Path.open, csv.read_csv

    def opened(path, *arguments, **options):
        found.append(str(path))
        return open_path(path, *arguments, **options)

    def parsed(*arguments):
        found.append("csv")
        return parse(*arguments)

    def streamed(file, given=File.stream):
        stream = given(file)
        found.extend([stream] if isinstance(stream, str) else [])
        return stream

    monkeypatch.setattr(Path, "open", opened)
    monkeypatch.setattr(File, "stream", streamed)
    monkeypatch.setattr(csv, "read_csv", parsed)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", ["zms", "evaluate", "report", "check --inputs a", "report --inputs a", "compare --inputs a"]
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_is_opened_and_parsed_once(calcheck, tmp_path, openings, ending, command):
    parts = {"a": PARTS["mean"] ** 2, **{name: PARTS[name] for name in ("id", "y", "mean", "std")}}
    path = write(tmp_path / f"preds.{ending}", parts)
    other = write(tmp_path / f"other.{ending}", parts | {"std": 2 * parts["std"]})
    openings.clear()
    name, *options = command.split()
    files = [path, other] if name == "compare" else [path]
    page = ["-o", tmp_path / "page.html"] if name == "report" else []
    assert calcheck(name, *files, *page, *options, "--replicates", 19, "--resamples", 100).code == 0
    assert [openings.count(str(file)) for file in files] == [1] * len(files)
    assert openings.count("csv") == len(files) * (ending == "csv")


@pytest.mark.parametrize(("text", "parses"), [("1", 1), ("01", 2)])
def test_large_text_is_read_once_and_only_possible_keys_are_parsed_again(monkeypatch, tmp_path, openings, text, parses):
    monkeypatch.setattr(files, "KEPT_BYTES", 0)
    path = tmp_path / "preds.csv"
    path.write_text(f"y,mean,std,region\n1.5,1.25,0.5,{text}\n")
    openings.clear()
    file = File(str(path))
    assert next(open_file(file).batches(["region"]))["region"][0].as_py() == (text if text == "01" else 1)
    assert file.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert openings.count("csv") == parses
    assert openings.count(str(path)) == 3  # for its format, its content, and by this test


@pytest.mark.parametrize("stem", ["sample", "member", "draw"])
def test_numbered_draws_are_found_by_their_names(stem):
    rows = {"y": np.zeros(3), **{f"{stem}_{number}": np.full(3, float(number)) for number in range(11)}}
    found = read(rows).predictions().distributions()
    assert found.n_draws == 11
    assert found.mean().tolist() == [5.0] * 3


@pytest.mark.parametrize("name", ["preds.csv.gz", "preds.csv"])
def test_a_small_file_is_read_once(calcheck, tmp_path, monkeypatch, name):
    written = Path(write(tmp_path / "made.csv", {each: columns()[each] for each in ("y", "mean", "std")})).read_bytes()
    (tmp_path / name).write_bytes(gzip.compress(written) if name.endswith("gz") else written)
    read, read_bytes = [], Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path.name) or read_bytes(path))
    assert calcheck("report", tmp_path / name, "--replicates", 19, "-o", tmp_path / "page.html").code == 0
    assert read.count(name) == 1
