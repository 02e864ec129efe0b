"""Large inputs stay in their file, and results do not change."""

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from calcheck import METRICS, read
from calcheck.core.lazy_inputs import LazyInputs, same_inputs
from calcheck.core.validation import finite_rows
from calcheck.errors import DataError
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.io import columnar
from tests.helpers.files import columns, limited, table, vector_column, write
from tests.helpers.shorthand import texts

N, D = 300, 4
PARTS = columns(N, D)
KINDS = {
    "fixed-size lists": vector_column(PARTS["embedding"]),
    "lists": pa.array(PARTS["embedding"].tolist(), pa.list_(pa.float32())),
    "doubles": pa.array(PARTS["embedding"].tolist(), pa.large_list(pa.float64())),
    "half precision": pa.array([list(row) for row in PARTS["embedding"].astype(np.float16)], pa.list_(pa.float16())),
}


def read_lazily(path, **options):
    """Return a source that loads no inputs; its batches have 64 rows."""
    return limited(read(path, **options), input_bytes=1, batch_bytes=64 * D * 4, joined_bytes=64 * D * 4)


@pytest.fixture
def columns_read(monkeypatch):
    """Return the columns of Parquet files that are read, one set per pass."""
    names_read, batches = [], columnar.ParquetTable.batches

    def record(self, names):
        names_read.append(set(names))
        return batches(self, names)

    monkeypatch.setattr(columnar.ParquetTable, "batches", record)
    return names_read


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_embedding_is_read_only_when_needed(tmp_path, columns_read, kind):
    rows = table({name: PARTS[name] for name in ("id", "y", "mean", "std")}).append_column("embedding", KINDS[kind])
    source = read_lazily(write(tmp_path / "preds.parquet", rows))
    x = source.predictions().x
    assert isinstance(x, LazyInputs)
    assert x.shape == (N, D)
    assert x.dtype == (np.float64 if kind == "doubles" else np.float32)
    assert columns_read == [{"id", "y", "mean", "std"}, {"embedding"}]  # the second ends with its first batch
    expected = PARTS["embedding"].astype(np.float16 if kind == "half precision" else np.float32)
    assert_array_equal(source.predictions().inputs(), expected)
    assert columns_read[2:] == [{"embedding"}]
    chosen = np.array([299, 0, 0, 70, 64])
    assert_array_equal(source.predictions().take(chosen).x, expected[chosen])
    assert_array_equal(x.take(slice(10, 200, 7)), expected[10:200:7])
    assert_array_equal(x.take(slice(0, 0)), expected[:0])
    assert source.input_info().columns["x"] == "embedding"


def test_batches_have_their_inputs_and_are_small(tmp_path):
    source = read_lazily(write(tmp_path / "preds.parquet", PARTS))
    batches = list(source.batches())
    assert len(batches) > 4
    assert max(batch.x.nbytes for batch in batches) <= 64 * D * 4
    assert_array_equal(np.concatenate([batch.x for batch in batches]), PARTS["embedding"])
    assert_array_equal(np.concatenate([batch.row_numbers() for batch in batches]), np.arange(N))


def test_blocks_are_small_and_in_the_order_of_rows(tmp_path):
    x = read_lazily(write(tmp_path / "preds.parquet", PARTS)).predictions().x
    places, blocks = zip(*x.blocks(), strict=True)
    assert [place.start for place in places] == [0, *(place.stop for place in places[:-1])]
    assert places[-1].stop == N
    assert max(block.nbytes for block in blocks) <= 64 * D * 4
    assert_array_equal(np.concatenate(blocks), x.load())


def test_a_small_share_of_a_large_embedding_is_loaded(tmp_path):
    """The size is known before reading for the file, and after filtering for the rows that remain."""
    path = write(tmp_path / "preds.parquet", PARTS | {"half": np.arange(N) % 10})
    assert isinstance(limited(read(path), input_bytes=1000).predictions().x, LazyInputs)
    few = limited(read(path, filter=("half=3",)), input_bytes=1000)
    assert_array_equal(few.predictions().x, PARTS["embedding"][3::10])


def test_problems_of_lazy_inputs_are_reported_when_they_are_read(tmp_path):
    x = PARTS["embedding"].copy()
    x[177, 2] = np.nan
    source = read_lazily(write(tmp_path / "preds.parquet", PARTS | {"embedding": x}))
    assert len(source.predictions()) == N
    message = r"preds.parquet: x \(column embedding\) must be finite numbers, .* \(row 177, counted from 0\)"
    for reading in (source.predictions().inputs, lambda: list(source.batches())):
        with pytest.raises(DataError, match=message):
            reading()
    omitted = read_lazily(source.name, nan_policy="omit")
    assert omitted.predictions().x.shape == (N - 1, D)
    assert omitted.reading.n_dropped == 1
    assert_array_equal(omitted.predictions().inputs(), np.delete(x, 177, axis=0))
    assert_array_equal(omitted.predictions().y, np.delete(PARTS["y"], 177))


def test_lazy_inputs_exclude_rows_dropped_for_other_columns(tmp_path):
    y = PARTS["y"].copy()
    y[::7] = np.nan
    rows = read_lazily(write(tmp_path / "preds.parquet", PARTS | {"y": y}), nan_policy="omit").predictions()
    assert isinstance(rows.x, LazyInputs)
    assert_array_equal(rows.inputs(), PARTS["embedding"][~np.isnan(y)])


@pytest.mark.parametrize("shape", [(100,), (100, 3), (50, 2, 2)])
def test_numbers_are_validated_in_blocks(shape):
    for bad in (0, 7, 33, shape[0] - 1):
        values = np.zeros(shape)
        values.reshape(len(values), -1)[bad, -1] = np.inf
        assert_array_equal(finite_rows(values, block=20), np.arange(shape[0]) != bad)
    assert finite_rows(np.zeros((0, *shape[1:]))).shape == (0,)


@pytest.mark.parametrize("keyed", [True, False])
def test_an_embedding_of_another_file_is_read_in_small_batches(tmp_path, keyed):
    """By position, and by keys in another order."""
    order = np.random.default_rng(0).permutation(N) if keyed else np.arange(N)
    key = {"id": PARTS["id"][order]} if keyed else {}
    vectors = write(tmp_path / "emb.parquet", key | {"embedding": PARTS["embedding"][order]})
    path = write(tmp_path / "preds.parquet", {name: PARTS[name] for name in ("id", "y", "mean", "std")})
    source = read_lazily(path, embedding=vectors)
    assert isinstance(source.predictions().x, LazyInputs)
    assert_array_equal(source.predictions().inputs(), PARTS["embedding"])
    assert max(len(batch) for batch in source.batches()) <= 64


def test_metrics_that_need_all_inputs_are_skipped_if_memory_is_too_small(tmp_path):
    path = write(tmp_path / "preds.parquet", PARTS)
    metrics = [METRICS[name]() for name in ("cce", "jmmd", "cmmd", "fid")]
    report = evaluate(read_lazily(path), metrics, run=Run(resamples=0, replicates=0, memory=2 * 8 * N * D - 1))
    assert {skipped.metric for skipped in report.skipped} >= {"jmmd", "cmmd", "fid"}
    assert all("--memory allows" in skipped.reason for skipped in report.skipped)


def test_metrics_agree_for_lazy_and_loaded_inputs(tmp_path):
    path = write(tmp_path / "preds.parquet", PARTS)
    run = Run(resamples=0, replicates=0)
    metrics = [metric() for metric in METRICS.values()]
    expected = evaluate(read(path), metrics, run=run)
    found = evaluate(limited(read(path), input_bytes=1), metrics, run=run)
    for ours, theirs in zip(found.results, expected.results, strict=True):
        assert (ours.metric, ours.verdict, texts(ours.warnings)) == (
            theirs.metric,
            theirs.verdict,
            texts(theirs.warnings),
        )
        assert ours.value == pytest.approx(theirs.value, rel=1e-12), ours.metric  # means are summed in another order
    assert found.skipped == expected.skipped
    assert any(result.metric == "cce" for result in found.results)


def test_embedding_columns_in_single_precision_stay_so(tmp_path):
    wide = {f"emb_{place}": PARTS["embedding"][:, place] for place in range(D)}
    parts = {name: PARTS[name] for name in ("y", "mean", "std")}
    x = read(write(tmp_path / "preds.parquet", parts | wide)).predictions().x
    assert x.dtype == np.float32
    assert_array_equal(x, PARTS["embedding"])
    mixed = parts | wide | {"emb_0": wide["emb_0"].astype(np.float64)}
    assert read(write(tmp_path / "preds.parquet", mixed)).predictions().x.dtype == np.float64


def test_lazy_and_loaded_inputs_are_compared():
    x = np.arange(12.0).reshape(6, 2)

    def deferred(values):
        return LazyInputs(lambda: iter([values[:4], values[4:]]), values.shape, values.dtype)

    other = x.copy()
    other[5, 1] = -1
    for first in (x, deferred(x)):
        assert all(same_inputs(first, second) for second in (x, deferred(x)))
        assert not any(same_inputs(first, second) for second in (other, deferred(other), x[:5], deferred(x[:5]), None))
    assert same_inputs(None, None)
