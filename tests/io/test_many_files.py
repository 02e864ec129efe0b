"""Many files are one source: folders, patterns, partitions and object stores."""

import hashlib
import json
import math
import pickle
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal
from pyarrow import fs

import calcheck
from calcheck import METRICS, read
from calcheck.errors import CalcheckError, DataError, FileError
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.io import columnar, object_store
from calcheck.io.column_names import ColumnOptions
from calcheck.io.file_source import FileSource
from calcheck.io.files import resolve
from calcheck.predictions import InMemory
from calcheck.render.data import render_json
from calcheck.storage.report_json import read_report
from tests.helpers.files import columns, limited, table, vector_column, wide, write
from tests.helpers.schemas import validate

N = 500
ROWS = table(columns(N))


def write_parts(folder, rows=ROWS, count=5, ending="parquet", name="part-{:03d}"):
    """Write equal parts of some rows to files of a folder; return the folder as text."""
    folder.mkdir(parents=True, exist_ok=True)
    size = math.ceil(len(rows) / count)
    for place in range(count):
        path = folder / f"{name.format(place)}.{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, rows.slice(place * size, size))
    return str(folder)


def with_all_columns(name, **options):
    """Open a source with the columns that are shown with results."""
    return FileSource(resolve(name), ColumnOptions(**options), narrow=True)


def assert_same_rows(source, rows=ROWS):
    found = source.predictions()
    assert_array_equal(found.y, rows["y"].to_numpy())
    assert_array_equal(found.predictive.mean(), rows["mean"].to_numpy())
    assert_array_equal(found.row_numbers(), np.arange(len(rows)))
    if "id" in rows.schema.names:
        assert_array_equal(found.id, rows["id"].to_numpy())


@pytest.mark.parametrize("ending", ["parquet", "feather", "arrow", "csv"])
def test_a_folder_is_read_as_one_file(tmp_path, ending):
    rows = table(wide(columns(N))) if ending == "csv" else ROWS
    source = read(write_parts(tmp_path / "preds", rows, ending=ending))
    assert_same_rows(source, rows)
    assert source.predictions().x.shape == (N, 3)


@pytest.mark.parametrize(
    "pattern",
    ["preds/*", "preds/*.parquet", "pre*", "**/part-*", "**/*.parquet", "preds/part-00[0-4].parquet", "*/part-00?.*"],
)
def test_patterns_are_read_as_one_file(tmp_path, pattern):
    """Also as URIs, where a question mark is not a wildcard."""
    write_parts(tmp_path / "preds")
    assert_same_rows(read(f"{tmp_path}/{pattern}"))
    if "?" not in pattern:
        assert_same_rows(read(f"{tmp_path.as_uri()}/{pattern}"))


def test_files_are_read_in_the_order_of_their_paths(tmp_path, monkeypatch):
    write_parts(tmp_path / "preds", name="{:02d}/x/part")
    monkeypatch.chdir(tmp_path)
    for name in ("preds", "preds/", "./preds", str(tmp_path / "preds"), (tmp_path / "preds").as_uri(), "preds/*/x"):
        assert_same_rows(read(name))


def test_auxiliary_files_of_other_tools_are_skipped(tmp_path):
    folder = tmp_path / "preds"
    write_parts(folder)
    for name in (
        "_SUCCESS",
        "_metadata",
        ".part.crc",
        ".hidden.parquet",
        "_tmp/a.parquet",
        ".x/a.parquet",
        "README.md",
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("no data")
    for name in (folder, folder.as_uri(), folder / "*", folder / "**"):
        assert_same_rows(read(str(name)))


def test_files_without_endings_are_recognized_by_their_first_bytes(tmp_path):
    folder = tmp_path / "preds"
    write_parts(folder)
    for path in folder.iterdir():
        path.rename(path.with_suffix(""))
    assert_same_rows(read(str(folder)))


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(tmp_path):
    path = write(tmp_path / "preds[1].parquet", ROWS)
    assert_same_rows(read(path))
    assert read(path).input_info().files[0].files == 1


def test_only_the_columns_that_are_needed_are_read(tmp_path, monkeypatch):
    met, batches = set(), columnar.ParquetTable.batches
    monkeypatch.setattr(columnar.ParquetTable, "batches", lambda self, names: met.update(names) or batches(self, names))
    rows = ROWS.append_column("unused", ROWS["y"])
    read(write_parts(tmp_path / "preds", rows)).predictions()
    assert met == {"id", "y", "mean", "std", "embedding"}


def test_no_file_stays_open(tmp_path):
    """There may be more files than a process may open."""
    source = read(write_parts(tmp_path / "preds", count=50))
    before = len(list(Path("/dev/fd").iterdir()))
    for batch in source.batches():
        assert len(list(Path("/dev/fd").iterdir())) <= before + 3
        assert len(batch) == N // 50


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_folder_names_are_partition_keys(tmp_path, ending):
    """As in Hive; integers are numbers unless they have leading zeros, and columns of the file take precedence."""
    name = "day=2026-11-2{0:d}/hour=0{0:d}/_rank={0:d}/who=a%20b/none=__HIVE_DEFAULT_PARTITION__/part"
    bare = ROWS.select(["id", "y", "mean", "std"])
    folder = write_parts(tmp_path / "preds", bare, ending=ending, name=name)
    source = with_all_columns(folder)
    assert_same_rows(source, bare)
    found = source.predictions().columns
    assert list(dict.fromkeys(found["day"])) == [f"2026-11-2{place}" for place in range(5)]
    assert list(dict.fromkeys(found["hour"])) == [f"0{place}" for place in range(5)]
    assert found["_rank"].dtype == np.int64
    assert set(found["who"]) == {"a b"}
    assert set(found["none"]) == {None}
    for path in (folder, f"{folder}/day=2026-11-23", f"{folder}/day=*"):
        one = with_all_columns(path, filter=("day=2026-11-23", "_rank=3")).predictions()
        assert_array_equal(one.y, ROWS["y"][300:400].to_numpy())


def test_files_excluded_by_a_partition_filter_are_not_opened(tmp_path):
    folder = write_parts(tmp_path / "preds", name="day={0:d}/part")
    (tmp_path / "preds" / "day=2" / "part.parquet").write_bytes(b"PAR1 cut short")
    source = read(folder, filter=("day=1",))
    assert len(source.predictions()) == 100
    assert source.input_info().files[0].files == 1
    assert len(read(folder, filter=("day<2",)).predictions()) == 200
    assert len(read(folder, filter=("day!=2", "day>1")).predictions()) == 200
    with pytest.raises(FileError, match=r"no file has day=9 \(values found: '0', '1', '2', … 5 in all\)"):
        read(folder, filter=("day=9",))


def test_the_order_of_columns_may_differ(tmp_path):
    folder = tmp_path / "preds"
    write_parts(folder)
    last = folder / "part-004.parquet"
    rows = pq.read_table(last)
    pq.write_table(rows.select(rows.schema.names[::-1]), last)
    assert_same_rows(read(str(folder)))


def test_column_types_are_inferred_from_all_files(tmp_path):
    """Integers among floats, keys with and without leading zeros, empty columns."""
    (tmp_path / "a.csv").write_text("id,y,mean,std,note\n1,1,0,1,\n2,2,0,1,\n")
    (tmp_path / "b.csv").write_text("id,y,mean,std,note\n03,0.5,0,1,x\n04,0.25,0,1,y\n")
    for pattern in ("*.csv", "[ab].csv"):
        found = with_all_columns(f"{tmp_path}/{pattern}").predictions()
        assert_array_equal(found.y, [1, 2, 0.5, 0.25])
        assert list(found.id) == ["1", "2", "03", "04"]
        assert list(found.columns["note"]) == [None, None, "x", "y"]


def replace_file(rows, name):
    """Return a function that writes other rows to a file of a folder."""
    return lambda folder: write(folder / name, rows)


WRONG = {
    "a column less": (
        replace_file(ROWS.drop(["std"]), "part-002.parquet"),
        r"preds: the files differ in their columns: .*part-000.parquet has 'std', .*part-002.parquet does not",
    ),
    "a column more": (
        replace_file(ROWS.append_column("more", ROWS["y"]), "part-002.parquet"),
        r"part-002.parquet has 'more', .*part-000.parquet does not",
    ),
    "another type": (
        replace_file(ROWS.set_column(1, "y", ROWS["y"].cast(pa.string())), "part-002.parquet"),
        r"'y' holds double in .*part-000.parquet, string in .*part-002.parquet",
    ),
    "another precision": (
        replace_file(ROWS.set_column(1, "y", ROWS["y"].cast(pa.float32())), "part-002.parquet"),
        r"'y' holds double in .*part-000.parquet, float in .*part-002.parquet",
    ),
    "another format": (
        replace_file(ROWS.select(["y", "mean", "std"]), "part-002.csv"),
        r"several formats: .*part-000.parquet \(parquet\), .*part-002.csv \(csv\)\. Select one format with a pattern",
    ),
    "a file that is cut short": (
        lambda folder: (folder / "part-002.parquet").write_bytes(b"PAR1"),
        r"part-002.parquet is not a readable parquet file",
    ),
    "an empty file": (
        lambda folder: (folder / "part-002.parquet").write_bytes(b""),
        r"part-002.parquet is empty",
    ),
    "a gap": (
        replace_file(ROWS.slice(200, 100).set_column(1, "y", pa.array([None, 1.0] * 50)), "part-002.parquet"),
        r"part-002.parquet: y must be finite numbers, .* \(rows 0, 2, 4, …, counted from 0\)",
    ),
    "an embedding of another width": (
        replace_file(table(columns(100, 4)), "part-002.parquet"),
        r"'embedding' holds fixed_size_list<.*>\[3\] in .*\[4\] in .*part-002.parquet",
    ),
    "a key that comes again": (
        replace_file(ROWS.slice(0, 100), "part-002.parquet"),
        r"preds: 100 values of 'id' occur more than once, for example '100' in rows 0 and 200",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("as_uri", [False, True])
def test_problems_of_one_file_are_reported_with_its_name(tmp_path, wrong, as_uri):
    change, message = WRONG[wrong]
    folder = tmp_path / "preds"
    write_parts(folder)
    change(folder)
    with pytest.raises(FileError, match=message):
        read(folder.as_uri() if as_uri else str(folder)).predictions()


def test_different_partition_keys_are_refused(tmp_path):
    folder = write_parts(tmp_path / "preds", name="day={:d}/part")
    write(tmp_path / "preds" / "part.parquet", ROWS)
    with pytest.raises(FileError, match=r"the path of .*part.parquet lacks the partition key 'day' of other files"):
        read(folder).predictions()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "the name of a file is empty"),
        ("{}/empty", "there is no file in .*/empty"),
        ("file://{}/empty", "there is no file in file://.*/empty"),
        ("{}/no/*.parquet", r"no file matches .*/no/\*\.parquet"),
        ("file://{}/no/*.parquet", r"no file matches file://.*\*\.parquet|cannot be read"),
        ("{}/no.parquet", "there is no file .*/no.parquet"),
        ("file://{}/no.parquet", "there is no file file://.*/no.parquet"),
        (
            "ftp://host/x.parquet",
            r"ftp://host/x.parquet cannot be read: .* \(supported: s3://, gs://, file:// and paths\)",
        ),
        ("file://{}/pickle.pkl", "is a pickle-based file, unsafe to load"),
    ],
)
def test_missing_files_are_reported_in_one_line(tmp_path, name, message):
    (tmp_path / "empty" / ".hidden").mkdir(parents=True)
    (tmp_path / "pickle.pkl").write_bytes(b"\x80")
    with pytest.raises(FileError, match=message) as error:
        read(name.format(tmp_path))
    assert "\n" not in str(error.value)


class Unreachable(fs.FileSystemHandler):
    """An object store that does not respond."""

    def __getattribute__(self, name):
        if name in ("get_file_info", "get_file_info_selector", "open_input_file"):
            raise OSError(5, "AWS Error NETWORK_CONNECTION during HeadObject operation:\nno host")
        return super().__getattribute__(name)


def _method(self, *_):
    raise NotImplementedError


for _name in fs.FileSystemHandler.__abstractmethods__:
    setattr(Unreachable, _name, _method)
Unreachable.__abstractmethods__ = frozenset()


@pytest.mark.parametrize("name", ["s3://bucket/a.parquet", "s3://bucket/a/*.parquet", "gs://bucket/a/"])
def test_an_unreachable_store_is_reported_in_one_line(monkeypatch, name):
    found = fs.PyFileSystem(Unreachable()), "bucket/a"
    monkeypatch.setattr(fs, "FileSystem", SimpleNamespace(from_uri=lambda _: found))
    with pytest.raises(CalcheckError, match=r"bucket/a.* cannot be read: .*NETWORK_CONNECTION") as error:
        read(name)
    assert error.value.exit_code == 2
    assert "\n" not in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["in order", "shuffled"])
def test_every_metric_is_the_same_from_one_file_and_from_a_hundred(tmp_path, order):
    """File names in another order change the order of rows, and sums only by rounding; series need their order."""
    one = write(tmp_path / "one.parquet", ROWS)
    folder = tmp_path / "preds"
    write_parts(folder, count=100)
    if order == "shuffled":
        paths = sorted(folder.iterdir())
        for path, place in zip(paths, np.random.default_rng(0).permutation(100), strict=True):
            path.rename(folder / f"{place:03d}_{path.name}")
    run = Run(resamples=0, replicates=0)
    metrics = [metric() for name, metric in METRICS.items() if (name, order) != ("pit-independence", "shuffled")]
    expected, found = (evaluate(read(name), metrics, run=run) for name in (one, str(folder)))
    assert [skipped.metric for skipped in found.skipped] == [skipped.metric for skipped in expected.skipped]
    assert len(found.results) > 20
    for mine, theirs in zip(found.results, expected.results, strict=True):
        assert mine.metric == theirs.metric
        assert mine.value == pytest.approx(theirs.value, rel=1e-10, abs=1e-12), mine.metric


def test_the_report_contains_the_number_and_hash_of_files(tmp_path):
    """The hash of several files is that of their hashes, one per line."""
    folder = write_parts(tmp_path / "preds")
    file = read(folder).input_info().files[0]
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted((tmp_path / "preds").iterdir())]
    assert (file.path, file.files, file.rows) == (folder, 5, N)
    assert file.sha256 == hashlib.sha256("\n".join(digests).encode()).hexdigest()
    assert len(read(folder).reads()) == 5


def test_reports_without_a_number_of_files_are_read(tmp_path):
    report = evaluate(read(write(tmp_path / "one.parquet", ROWS)), [METRICS["rmse"]()], run=Run(resamples=0))
    stored = json.loads(render_json(report))
    assert stored["input"]["files"][0].pop("files") == 1
    (tmp_path / "old.json").write_text(json.dumps(stored))
    validate(stored)
    assert read_report(str(tmp_path / "old.json")).input == report.input


@pytest.mark.parametrize("keyed", [True, False])
def test_targets_and_embeddings_may_be_in_many_files(tmp_path, keyed):
    order = np.random.default_rng(0).permutation(N) if keyed else np.arange(N)
    names = ["id"] if keyed else []
    preds = write_parts(tmp_path / "preds", ROWS.select([*names, "mean", "std"]))
    truth = write_parts(tmp_path / "truth", ROWS.take(order).select([*names, "y"]), count=3)
    vectors = write_parts(tmp_path / "emb", ROWS.take(order).select([*names, "embedding"]), count=7)
    for embedding in (vectors, f"{vectors}/*:embedding", (tmp_path / "emb").as_uri()):
        source = read(preds, truth=truth, embedding=embedding)
        assert_same_rows(source, ROWS.select(["y", "mean", "std"]))
        assert_array_equal(source.predictions().x, columns(N)["embedding"])
    assert [file.files for file in source.input_info().files] == [5, 7, 3]


def test_long_layouts_may_be_in_many_files(tmp_path):
    """A forecast unit may start in one file and end in the next."""
    rows = pa.table(
        {
            "location": np.repeat(["a", "b", "c"], 4),
            "output_type": ["sample"] * 12,
            "output_type_id": np.tile(np.arange(4), 3),
            "value": np.arange(12.0),
        }
    )
    folder = write_parts(tmp_path / "hub", rows, count=5, ending="csv")
    write(tmp_path / "truth.csv", pa.table({"location": ["a", "b", "c"], "observed": [1.0, 2.0, 3.0]}))
    source = read(folder, truth=str(tmp_path / "truth.csv"))
    assert_array_equal(source.predictions().predictive.draws, np.arange(12.0).reshape(3, 4))
    assert list(source.parts()) == [source]


def assert_partitions_cover(source):
    """Each partition is pickled, as for another process."""
    sent = [pickle.loads(pickle.dumps(part)) for part in source.parts()]  # noqa: S301 - our own
    batches = [batch for part in sent for batch in part.batches()]
    assert_array_equal(np.concatenate([batch.row_numbers() for batch in batches]), source.predictions().row_numbers())
    assert_array_equal(np.concatenate([batch.y for batch in batches]), source.predictions().y)
    assert_array_equal(np.concatenate([batch.x for batch in batches]), source.predictions().inputs())
    return sent


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("options", [{}, {"filter": ("day=2",)}, {"filter": ("id=333",)}, {"nan_policy": "omit"}])
def test_each_file_is_a_partition(tmp_path, ending, options):
    """Each partition knows the column types and keys of all files; some may have no rows after filters."""
    rows = table(wide(columns(N)))
    gaps = [None] * 100 + rows["y"].to_pylist()[100:] if options.get("nan_policy") else rows["y"].to_pylist()
    rows = rows.set_column(1, "y", pa.array(gaps))
    folder = write_parts(tmp_path / "preds", rows, ending=ending, name="day={0:d}/part")
    sent = assert_partitions_cover(read(folder, **options))
    assert len(sent) == (1 if options.get("filter") == ("day=2",) else 5)
    assert all(part.table.schema == read(folder, **options).table.schema for part in sent)


def test_a_partition_knows_the_family_named_in_other_files(tmp_path):
    rows = pa.table({"y": [0.0, 1.0], "loc": [0.0, 0.0], "scale": [1.0, 1.0], "dist": ["laplace", None]})
    source = read(write_parts(tmp_path / "preds", rows, count=2))
    assert [part.predictions().predictive.display_name for part in source.parts()] == ["laplace", "laplace"]


@pytest.mark.parametrize("batch", [1 << 25, 1000])
def test_row_groups_of_a_large_file_are_its_partitions(tmp_path, batch):
    """Row groups are combined up to a minimum size; a small remainder belongs to the last partition."""
    path = tmp_path / "preds.parquet"
    pq.write_table(ROWS, path, row_group_size=60)
    for name in (str(path), str(tmp_path)):
        source = limited(read(name), batch_bytes=batch, partition_rows=100)
        assert [len(part.predictions()) for part in assert_partitions_cover(source)] == [120, 120, 120, 140]
    assert len(limited(read(str(path)), partition_rows=1000).parts()) == 1
    parts = limited(read(str(path)), partition_rows=1000, partition_bytes=1).parts()
    assert len(parts) == 9
    assert all(list(part.parts()) == [part] for part in parts)


def test_problems_of_a_partition_are_reported_by_row_of_the_file(tmp_path):
    x = columns(N)["embedding"]
    x[333, 0] = np.inf
    rows = ROWS.set_column(4, "embedding", vector_column(x))
    pq.write_table(rows, tmp_path / "one.parquet", row_group_size=50)
    with pytest.raises(DataError, match=r"one.parquet: x \(column embedding\) must .*row 333"):
        list(limited(read(str(tmp_path / "one.parquet")), partition_rows=100).parts()[3].batches())
    folder = write_parts(tmp_path / "preds", rows, count=2)
    with pytest.raises(DataError, match=r"part-001.parquet: x \(column embedding\) must .*row 83"):
        list(read(folder).parts()[1].batches())


def test_sources_that_depend_on_all_rows_have_one_partition(tmp_path):
    """Rows that are joined with other files, and rows of several models."""
    folder = write_parts(tmp_path / "preds")
    truth = write(tmp_path / "truth.parquet", ROWS.select(["id", "y"]))
    models = write_parts(tmp_path / "models", ROWS.append_column("model", pa.array(["a", "b"] * (N // 2))))
    for source in (read(folder, truth=truth), read(models), InMemory(read(folder).predictions())):
        assert list(source.parts()) == [source]
    assert len(read(models, model="a").parts()) == 5


def test_sources_in_an_object_store_are_read_like_local_ones(tmp_path, monkeypatch):
    """In an object store whose paths in pyarrow differ from the URI."""
    folder = tmp_path / "bucket" / "preds"
    write_parts(folder, count=5, name="day={0:d}/part")
    store = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())

    def from_uri(uri):
        return store, uri.partition("?")[0].removeprefix("s3://")

    monkeypatch.setattr(fs, "FileSystem", SimpleNamespace(from_uri=from_uri))
    for name in ("s3://bucket/preds", "s3://bucket/preds/day=*/*.parquet?region=x", "s3://bucket/*"):
        source = read(name)
        assert_same_rows(source)
        assert source.reads()[1] == "s3://bucket/preds/day=1/part.parquet" + ("?region=x" if "?" in name else "")
        assert len(assert_partitions_cover(source)) == 5
    one = read("s3://bucket/preds/day=3/part.parquet")
    assert len(one.predictions()) == 100
    assert one.input_info().files[0].sha256 == hashlib.sha256((folder / "day=3/part.parquet").read_bytes()).hexdigest()
    source = read("s3://bucket/preds", embedding="s3://bucket/preds:embedding")
    assert_array_equal(source.predictions().x, columns(N)["embedding"])


def test_requests_to_google_cloud_storage_have_a_time_limit(monkeypatch):
    asked = []
    found = fs.LocalFileSystem(), "/nothing"
    monkeypatch.setattr(fs, "FileSystem", SimpleNamespace(from_uri=lambda uri: asked.append(uri) or found))
    for name in ("gs://b/a", "gs://b/a?x=1", "gs://b/a?retry_limit_seconds=5", "s3://b/a"):
        object_store.open_object(name)
    patience = "retry_limit_seconds=30"
    assert asked == [f"gs://b/a?{patience}", f"gs://b/a?x=1&{patience}", "gs://b/a?retry_limit_seconds=5", "s3://b/a"]
    object_store.limit_waiting(2.5)
    object_store.open_object("gs://b/a")
    object_store.limit_waiting(None)
    assert asked[-1] == "gs://b/a?retry_limit_seconds=3"


@pytest.mark.parametrize("request_", ["uri", "kind", "below", "open"])
def test_every_request_to_an_object_store_has_a_time_limit(monkeypatch, request_):
    answered = threading.Event()

    def never(*_):
        answered.wait(20)

    monkeypatch.setattr(fs, "FileSystem", SimpleNamespace(from_uri=never))
    object_store.limit_waiting(0.05)
    place = object_store.StoreObject("s3://a", SimpleNamespace(get_file_info=never, open_input_file=never), "a")
    ask = {"kind": place.kind, "below": place.below, "open": place.open}
    with pytest.raises(FileError, match=r"^s3://a cannot be read: no answer within 0\.05 seconds\. Pass a longer"):
        ask.get(request_, lambda: object_store.open_object("s3://a"))()
    object_store.limit_waiting(None)
    answered.set()


def test_a_file_that_is_named_twice_is_refused(tmp_path):
    """Its rows would count twice, also if a pattern names it again."""
    folder = Path(write_parts(tmp_path / "preds"))
    one = str(min(folder.iterdir()))
    for names in ([one, one], [one, str(folder / "*.parquet")]):
        with pytest.raises(FileError, match="is named twice, so its rows would count twice"):
            read(names)


def test_predictions_can_be_written_repeatedly(tmp_path):
    source = read(write_parts(tmp_path / "preds"))
    for name in ("a.parquet", "b.parquet"):
        calcheck.write(source, str(tmp_path / name))
        assert_same_rows(read(str(tmp_path / name)))
