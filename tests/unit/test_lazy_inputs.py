"""Inputs that would fill the memory stay in their file, and nothing else changes."""

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from calcheck import METRICS, read, validation
from calcheck.errors import DataError
from calcheck.evaluation import evaluate
from calcheck.execution.context import Run
from calcheck.io import scan as gathered
from calcheck.io import scan as passes
from calcheck.io.tables import memory as held
from calcheck.io.tables import parquet
from calcheck.lazy_inputs import LazyInputs, same_inputs
from tests.files import columns, table, vector_column, write

N, D = 300, 4
PARTS = columns(N, D)
KINDS = {
    "fixed-size lists": vector_column(PARTS["embedding"]),
    "lists": pa.array(PARTS["embedding"].tolist(), pa.list_(pa.float32())),
    "doubles": pa.array(PARTS["embedding"].tolist(), pa.large_list(pa.float64())),
    "half precision": pa.array([list(row) for row in PARTS["embedding"].astype(np.float16)], pa.list_(pa.float16())),
}


@pytest.fixture
def little_memory(monkeypatch):
    """No inputs are held, and batches are of 64 rows."""
    monkeypatch.setattr(gathered, "MAX_INPUT_BYTES", 1)
    for module in (parquet, held, passes):
        monkeypatch.setattr(module, "BATCH_BYTES", 64 * D * 4)


@pytest.fixture
def columns_met(monkeypatch):
    """Which columns of Parquet files are read, a pass after the other."""
    met, batches = [], parquet.ParquetTable.batches

    def recorded(self, names):
        met.append(set(names))
        return batches(self, names)

    monkeypatch.setattr(parquet.ParquetTable, "batches", recorded)
    return met


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("kind", KINDS)
def test_an_embedding_that_is_too_large_is_not_looked_at_before_it_is_needed(tmp_path, columns_met, kind):
    rows = table({name: PARTS[name] for name in ("id", "y", "mean", "std")}).append_column("embedding", KINDS[kind])
    source = read(write(tmp_path / "preds.parquet", rows))
    x = source.predictions().x
    assert isinstance(x, LazyInputs)
    assert x.shape == (N, D)
    assert x.dtype == (np.float64 if kind == "doubles" else np.float32)
    assert columns_met == [{"id", "y", "mean", "std"}, {"embedding"}]  # the second ends with its first batch
    expected = PARTS["embedding"].astype(np.float16 if kind == "half precision" else np.float32)
    assert_array_equal(source.predictions().inputs(), expected)
    assert columns_met[2:] == [{"embedding"}]
    chosen = np.array([299, 0, 0, 70, 64])
    assert_array_equal(source.predictions().take(chosen).x, expected[chosen])
    assert_array_equal(x.take(slice(10, 200, 7)), expected[10:200:7])
    assert_array_equal(x.take(slice(0, 0)), expected[:0])
    assert source.input_info().columns["x"] == "embedding"


@pytest.mark.usefixtures("little_memory")
def test_batches_have_their_inputs_and_are_small(tmp_path):
    source = read(write(tmp_path / "preds.parquet", PARTS))
    batches = list(source.batches())
    assert len(batches) > 4
    assert max(batch.x.nbytes for batch in batches) <= 64 * D * 4
    assert_array_equal(np.concatenate([batch.x for batch in batches]), PARTS["embedding"])
    assert_array_equal(np.concatenate([batch.row_numbers() for batch in batches]), np.arange(N))


@pytest.mark.usefixtures("little_memory")
def test_blocks_are_the_rows_in_order_and_no_more_is_held_at_a_time(tmp_path):
    x = read(write(tmp_path / "preds.parquet", PARTS)).predictions().x
    places, blocks = zip(*x.blocks(), strict=True)
    assert [place.start for place in places] == [0, *(place.stop for place in places[:-1])]
    assert places[-1].stop == N
    assert max(block.nbytes for block in blocks) <= 64 * D * 4
    assert_array_equal(np.concatenate(blocks), x.load())


def test_a_small_share_of_a_large_embedding_is_held(tmp_path, monkeypatch):
    """What is too large is known of the file beforehand, and of the rows that filters keep when these are counted."""
    monkeypatch.setattr(gathered, "MAX_INPUT_BYTES", 1000)
    path = write(tmp_path / "preds.parquet", PARTS | {"half": np.arange(N) % 10})
    assert isinstance(read(path).predictions().x, LazyInputs)
    assert_array_equal(read(path, filter=("half=3",)).predictions().x, PARTS["embedding"][3::10])


@pytest.mark.usefixtures("little_memory")
def test_what_is_wrong_with_deferred_inputs_is_told_when_they_are_read(tmp_path):
    x = PARTS["embedding"].copy()
    x[177, 2] = np.nan
    source = read(write(tmp_path / "preds.parquet", PARTS | {"embedding": x}))
    assert len(source.predictions()) == N
    message = r"preds.parquet: x \(column embedding\) must be finite numbers, .* \(row 177, counted from 0\)"
    for reading in (source.predictions().inputs, lambda: list(source.batches())):
        with pytest.raises(DataError, match=message):
            reading()
    omitted = read(source.name, nan_policy="omit")
    assert omitted.predictions().x.shape == (N - 1, D)
    assert omitted.n_dropped == 1
    assert_array_equal(omitted.predictions().inputs(), np.delete(x, 177, axis=0))
    assert_array_equal(omitted.predictions().y, np.delete(PARTS["y"], 177))


@pytest.mark.usefixtures("little_memory")
def test_deferred_inputs_lack_the_rows_that_were_left_out_for_other_columns(tmp_path):
    y = PARTS["y"].copy()
    y[::7] = np.nan
    rows = read(write(tmp_path / "preds.parquet", PARTS | {"y": y}), nan_policy="omit").predictions()
    assert isinstance(rows.x, LazyInputs)
    assert_array_equal(rows.inputs(), PARTS["embedding"][~np.isnan(y)])


@pytest.mark.parametrize("shape", [(100,), (100, 3), (50, 2, 2)])
def test_numbers_are_looked_at_in_blocks_wherever_they_are(monkeypatch, shape):
    monkeypatch.setattr(validation, "BLOCK", 20)
    for bad in (0, 7, 33, shape[0] - 1):
        values = np.zeros(shape)
        values.reshape(len(values), -1)[bad, -1] = np.inf
        assert_array_equal(validation.finite_rows(values), np.arange(shape[0]) != bad)
    assert validation.finite_rows(np.zeros((0, *shape[1:]))).shape == (0,)


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("keyed", [True, False])
def test_an_embedding_of_another_file_comes_in_small_batches_too(tmp_path, keyed):
    """By place, and by keys in another order."""
    order = np.random.default_rng(0).permutation(N) if keyed else np.arange(N)
    key = {"id": PARTS["id"][order]} if keyed else {}
    beside = write(tmp_path / "emb.parquet", key | {"embedding": PARTS["embedding"][order]})
    path = write(tmp_path / "preds.parquet", {name: PARTS[name] for name in ("id", "y", "mean", "std")})
    source = read(path, embedding=beside)
    assert isinstance(source.predictions().x, LazyInputs)
    assert_array_equal(source.predictions().inputs(), PARTS["embedding"])
    assert max(len(batch) for batch in source.batches()) <= 64


def test_inputs_that_would_fill_the_memory_are_refused_by_metrics_of_all_of_them(tmp_path, monkeypatch):
    monkeypatch.setattr(gathered, "MAX_INPUT_BYTES", 1)
    path = write(tmp_path / "preds.parquet", PARTS)
    metrics = [METRICS[name]() for name in ("cce", "jmmd", "cmmd", "fid")]
    report = evaluate(read(path), metrics, run=Run(resamples=0, replicates=0, memory=2 * 8 * N * D - 1))
    assert {skipped.metric for skipped in report.skipped} >= {"jmmd", "cmmd", "fid"}
    assert all("--memory allows" in skipped.reason for skipped in report.skipped)


def test_metrics_are_the_same_whether_inputs_are_held_or_deferred(tmp_path, monkeypatch):
    path = write(tmp_path / "preds.parquet", PARTS)
    run = Run(resamples=0, replicates=0)
    metrics = [metric() for metric in METRICS.values()]
    expected = evaluate(read(path), metrics, run=run)
    monkeypatch.setattr(gathered, "MAX_INPUT_BYTES", 1)
    found = evaluate(read(path), metrics, run=run)
    for ours, theirs in zip(found.results, expected.results, strict=True):
        assert (ours.metric, ours.verdict, ours.warnings) == (theirs.metric, theirs.verdict, theirs.warnings)
        assert ours.value == pytest.approx(theirs.value, rel=1e-12), ours.metric  # means are summed in another order
    assert found.skipped == expected.skipped
    assert any(result.metric == "cce" for result in found.results)


def test_an_embedding_of_single_precision_in_columns_of_its_own_stays_so(tmp_path):
    wide = {f"emb_{place}": PARTS["embedding"][:, place] for place in range(D)}
    parts = {name: PARTS[name] for name in ("y", "mean", "std")}
    x = read(write(tmp_path / "preds.parquet", parts | wide)).predictions().x
    assert x.dtype == np.float32
    assert_array_equal(x, PARTS["embedding"])
    mixed = parts | wide | {"emb_0": wide["emb_0"].astype(np.float64)}
    assert read(write(tmp_path / "preds.parquet", mixed)).predictions().x.dtype == np.float64


def test_inputs_are_compared_whether_they_are_held_or_deferred():
    x = np.arange(12.0).reshape(6, 2)

    def deferred(values):
        return LazyInputs(lambda: iter([values[:4], values[4:]]), values.shape, values.dtype)

    other = x.copy()
    other[5, 1] = -1
    for first in (x, deferred(x)):
        assert all(same_inputs(first, second) for second in (x, deferred(x)))
        assert not any(same_inputs(first, second) for second in (other, deferred(other), x[:5], deferred(x[:5]), None))
    assert same_inputs(None, None)
