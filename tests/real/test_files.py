"""Files written by other tools are read unchanged, and commands run on them."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

from calcheck import read
from calcheck.distributions import Gaussian
from calcheck.errors import DataError
from calcheck.execution.run import Run
from calcheck.metrics.cce import Cce
from calcheck.predictions import Predictions
from tests.helpers.shorthand import rows_of, texts
from tests.helpers.simulations import slow

FEW = ("--replicates", "39")
EMBEDDINGS = [
    "emb_fixed_shape_tensor.parquet",
    "emb_fixedsize_nostoreschema.parquet",
    "emb_numpy_repr.csv",
    "emb_pandas_list.parquet",
    "emb_pyarrow_fixedsize.parquet",
    "emb_stringified_list.csv",
    "emb_wide.csv",
    "hf_array2d.parquet",
    "hf_list_default.parquet",
    "hf_sequence_len8.parquet",
    "polars_array.parquet",
    "polars_list.parquet",
]


@pytest.fixture
def run_json(monkeypatch, capfd):
    """Run a command and return its JSON report."""
    from calcheck.cli import main

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["calcheck", *map(str, arguments), "--format", "json"])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capfd.readouterr()
        assert ended.value.code == 0, captured.err
        return json.loads(captured.out)

    return run


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_embeddings_from_every_tool_are_equal(data, name):
    expected = np.load(data / "formats" / "emb.npy")
    path = str(data / "formats" / name)
    source = read(path) if "mean" in read(path).table.schema.names else None
    if source is None:  # these files have targets and embeddings only
        from calcheck.io.column_names import ColumnOptions
        from calcheck.io.file_source import FileSource
        from calcheck.io.files import File

        source = FileSource(File(path), ColumnOptions(), contents="inputs")
    # polars wrote this one from half precision
    assert_allclose(source.predictions().x, expected, rtol=1e-3 if name == "polars_list.parquet" else 1e-5)


def test_truncated_text_is_refused(data):
    with pytest.raises(DataError, match="values were lost"):
        read(str(data / "formats" / "emb_numpy_repr_truncated.csv")).predictions()


def test_variances_are_never_read_as_standard_deviations(data):
    """QM9: as a variance mean z^2 is 0.324, as a std 564 (data/README.md)."""
    path = str(data / "predictions" / "qm9_e_uncalibrated_test.csv")
    with pytest.raises(DataError, match=r"uncertainty_total gives 0\.324 as a variance, 564 as a standard"):
        read(path, target="E_").predictions()
    rows = read(path, target="E_", var="uncertainty_total").predictions()
    z = (rows.y - rows.predictive.mean()) / rows.predictive.std()
    assert_allclose(np.mean(z**2), 0.324, atol=5e-4)


def test_catboost_and_ngboost_are_read_with_options_for_what_is_ambiguous(data):
    catboost = read(str(data / "formats" / "catboost_rmsewithuncertainty_mean_var.csv"), var="var").predictions()
    raw = read(str(data / "formats" / "catboost_rawformulaval_mean_logstd.csv"), mean="0", log_std="1").predictions()
    assert_allclose(catboost.predictive.std(), raw.predictive.std(), rtol=1e-6)
    with pytest.raises(DataError, match="--dist"):
        read(str(data / "formats" / "ngboost_normal_loc_scale.csv")).predictions()
    ngboost = read(str(data / "formats" / "ngboost_normal_loc_scale.csv"), dist="gaussian").predictions()
    assert_allclose(ngboost.predictive.std()[0], 7.39500755693963)


def test_the_text_case_is_read_without_options(data, run_json):
    text = data / "text_case"
    assert 0.05 < run_json("cce", text / "test.parquet", *FEW)["results"][0]["value"] < 0.07
    report = run_json("cce", text / "val.parquet", "--at", text / "test.parquet", *FEW)
    assert report["results"][0]["details"]["rows"] == 1181
    z = read(str(text / "test.parquet")).predictions()
    assert_allclose(np.mean(((z.y - z.predictive.mean()) / z.predictive.std()) ** 2), 1.318, atol=5e-4)


@pytest.mark.parametrize("split", ["val", slow("test")])
@pytest.mark.parametrize("dist", ["nbinom:torch", "poisson"])
def test_counts_are_joined_with_their_embeddings(data, run_json, split, dist):
    text = data / "text_case"
    counts, embedding = text / f"{split}_count.parquet", ("--embedding", text / f"{split}.parquet")
    report = run_json("cce", counts, "--dist", dist, *embedding, *FEW)
    assert report["input"]["predictive"] == dist.split(":")[0]
    assert report["results"][0]["details"]["inputs"]["columns"] == 384


@pytest.mark.slow
def test_cce_on_clip_embeddings_detects_narrow_intervals(data, run_json, tmp_path):
    rng = np.random.default_rng(0)
    mean, std = rng.normal(40, 15, 1332), rng.uniform(4, 12, 1332)
    table = pa.table({"age": mean + std * rng.normal(size=1332), "mean": mean, "std": std})
    pq.write_table(table, tmp_path / "ages.parquet")
    embedding = data / "predictions" / "aaf_val_clip_embeddings.npy"
    arguments = ("cce", tmp_path / "ages.parquet", "--target", "age", "--embedding", embedding, *FEW)
    right = run_json(*arguments)["results"][0]
    assert right["details"]["inputs"]["columns"] == 512
    narrow = run_json(*arguments, "--var", "std")["results"][0]  # a variance read as a std: intervals far too narrow
    assert narrow["value"] > 1.4 * right["value"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"normalize": "l2", "gamma_x": "1/d"}, 0.93),
        ({"normalize": "none", "gamma_x": "1/d"}, 4.5),
        ({}, 27),
        ({"normalize": "standardize", "gamma_x": "1/d"}, 61),
        ({"kernel_x": "rbf", "gamma_x": "median"}, 6.5),
    ],
)
@pytest.mark.parametrize("solver", ["cholesky", slow("cg")])
def test_dof_on_clip_embeddings_equals_the_printed_values(data, options, expected, solver):
    """MATH.md 2.6, 1,332 x 512, lambda = 0.1, to the digits printed there."""
    x = np.load(data / "predictions" / "aaf_val_clip_embeddings.npy")
    y = np.random.default_rng(0).normal(size=len(x))
    rows = Predictions(y=y, predictive=Gaussian(np.zeros(len(x)), np.ones(len(x))), x=x)
    found = rows_of(Cce(solver=solver, **options), rows, run=Run())
    assert_allclose(found.details["dof"], expected, rtol=0.02)
    assert any("marginal test" in warning for warning in texts(found.warnings)) == (expected < 2)
