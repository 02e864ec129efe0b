"""Files that would crash the process, fill the memory or never end are refused in one line."""

import json
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calcheck import read
from calcheck.errors import FileError
from calcheck.io.tables import MAX_DEPTH, depth
from tests.helpers.files import columns, table, wide, write
from tests.helpers.malicious_files import as_big_endian, to_stream, write_encrypted
from tests.helpers.simulations import examples

PARTS = wide(columns())
WORDS = np.array(["a", "b"] * 6)


def assert_refused(path, match, **options):
    with pytest.raises(FileError, match=match) as error:
        read(str(path), **options).predictions()
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


# nesting


def nested(count, opening="[", closing="]"):
    return opening * count + closing * count


@pytest.mark.parametrize("deep", [nested(10_000), nested(10_000, '{"a":', "}").replace(":}", ":1}"), "[" * 10_000])
def test_deeply_nested_json_lines_are_refused(tmp_path, deep):
    path = tmp_path / "deep.jsonl"
    path.write_text('{"y": 1, "mean": 1, "std": 1, "embedding": ' + deep + "}\n")
    assert_refused(path, r"objects and lists are nested 10,00\d levels deep, at most 32 are supported")


def test_a_deeply_nested_embedding_file_is_refused_with_its_name(tmp_path):
    path = tmp_path / "deep.jsonl"
    path.write_text('{"embedding": ' + nested(10_000) + "}\n")
    with pytest.raises(FileError, match=r"deep\.jsonl: objects and lists are nested 10,001 levels deep"):
        read(write(tmp_path / "preds.parquet", PARTS), embedding=str(path)).predictions()


def test_ordinary_nesting_is_read(tmp_path):
    path = tmp_path / "preds.jsonl"
    records = [{"y": 1, "mean": 1, "std": 1, "note": "[" * 100 + '"\\' + "{" * 100, "embedding": [row]} for row in "12"]
    path.write_text("\n".join(json.dumps(record).replace('["', "[").replace('"]', "]") for record in records))
    assert read(str(path)).predictions().x.tolist() == [[1], [2]]


@pytest.mark.slow
@examples(100)
@given(st.recursive(st.text('[]{}"\\a', max_size=4), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_depth_agrees_with_the_parsed_value(value):
    def measured(part):
        inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else None
        return 0 if inner is None else 1 + max(map(measured, inner), default=0)

    assert depth(json.dumps(value).encode()) == measured(value)
    assert depth(json.dumps(value, ensure_ascii=False, indent=1).encode()) == measured(value)


def test_the_depth_limit_is_far_above_what_tools_write():
    gluonts = {"mean": [1.0], "quantiles": {"0.5": [1.0]}, "samples": [[[1.0]]]}
    assert 4 * depth(json.dumps(gluonts).encode()) < MAX_DEPTH


# encryption


@pytest.mark.parametrize("plaintext_footer", [True, False])
def test_encrypted_parquet_is_refused(tmp_path, plaintext_footer):
    path = tmp_path / "preds.parquet"
    write_encrypted(path, table(PARTS), plaintext_footer=plaintext_footer)
    assert_refused(path, "is encrypted, and calcheck has no keys. Decrypt it first")
    assert_refused(path.rename(tmp_path / "preds"), "is encrypted")


# sizes that are claimed


def test_rows_that_do_not_fit_in_memory_are_refused_before_they_are_read(tmp_path, monkeypatch):
    path = write(tmp_path / "preds.parquet", {name: np.ones(100_000) for name in ("y", "mean", "std")})
    assert (tmp_path / "preds.parquet").stat().st_size < 4096
    monkeypatch.setattr("calcheck.io.file_source.available_memory", lambda: 7_000_000)
    assert_refused(path, r"its 100,000 rows need 0\.0 GiB to read, and 0\.0 are free")
    monkeypatch.setattr("calcheck.io.file_source.available_memory", lambda: 7_300_000)
    assert len(read(path).predictions()) == 100_000


def test_an_archive_that_unpacks_to_more_than_the_memory_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "preds.npz"
    np.savez_compressed(path, **{name: np.ones(100_000) for name in ("y", "mean", "std")})
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
    monkeypatch.setattr("calcheck.io.array_files.available_memory", lambda: unpacked - 1)
    assert_refused(path, r"unpacks to 2,400,384 bytes, and 2,400,383 are free")


# byte order


def test_big_endian_streams_are_refused(tmp_path):
    path = tmp_path / "preds.arrow"
    parts = table(PARTS).append_column("topic", pa.array(WORDS).dictionary_encode())
    path.write_bytes(to_stream(parts))
    assert len(read(str(path)).predictions()) == len(WORDS)
    path.write_bytes(as_big_endian(to_stream(parts)))
    assert pa.ipc.open_stream(path.read_bytes()).schema.names == parts.schema.names
    assert_refused(path, "is in big-endian byte order")


@pytest.mark.parametrize("cut", [0, 3, 9, 12, 40, 300])
def test_damaged_schemas_are_refused_as_damaged(tmp_path, cut):
    path = tmp_path / "preds.arrow"
    path.write_bytes(to_stream(table(PARTS))[:cut])
    assert_refused(path, "is not a readable arrow file|is empty")
    path.write_bytes(b"ARROW1\0\0" + bytes(cut) + b"\xff\xff\xff\x7fARROW1")
    assert_refused(path, "is not a readable arrow file")


# cut, and several in a row


def test_streams_in_a_row_are_all_read_and_streams_without_an_end_are_refused(tmp_path):
    path = tmp_path / "preds.arrow"
    first, second = (table(wide(columns(seed=seed)) | {"id": np.arange(12) + 100 * seed}) for seed in range(2))
    path.write_bytes(to_stream(first) + to_stream(second))
    assert read(str(path)).predictions().id.tolist() == [*range(12), *range(100, 112)]
    path.write_bytes(to_stream(first)[:-8])
    assert_refused(path, "the stream is truncated: it ends after 12 rows without an end mark")
    path.write_bytes(to_stream(first) + to_stream(first.drop(["id"])))
    assert_refused(path, "two Arrow streams that differ in their columns")


def test_an_archive_with_another_file_in_place_of_an_array_is_refused(tmp_path):
    """As an interrupted writer leaves it."""
    path = tmp_path / "preds.npz"
    np.savez(path, **PARTS)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("v.npy", b"\x00" * 40)
    assert_refused(path, r"its member 'v\.npy' is no NumPy array\. Was its writer interrupted\?")
    np.savez(path, **PARTS)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("y.npy", b"")
    assert_refused(path, r"the archive has 1 duplicate")


def test_arrays_in_a_row_are_refused(tmp_path):
    path = tmp_path / "emb.npy"
    with path.open("wb") as file:
        np.save(file, np.ones((12, 2)))
        np.save(file, np.ones((12, 2)))
    preds = write(tmp_path / "preds.parquet", {name: PARTS[name] for name in ("y", "mean", "std")})
    with pytest.raises(FileError, match=r"other bytes follow the array of the file\. Were arrays appended"):
        read(preds, embedding=str(path)).predictions()
