"""State files are read back unchanged; other and damaged files are refused."""

import hashlib
import io
import json
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from calcheck.errors import FileError
from calcheck.execution.context import Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory
from calcheck.storage.npz import read_archive
from calcheck.storage.state import read_state, write_state
from calcheck.streaming.state import accumulate, report_from_state
from tests.families import calibrated
from tests.shorthand import texts

METRIC_NAMES = ("zms", "ece", "ence", "lzms", "confidence-curve", "cv", "pit")


@pytest.fixture(scope="module")
def state():
    metrics = [METRICS[name]() for name in METRIC_NAMES]
    return accumulate(InMemory(calibrated("gaussian", n=60)), metrics, Run(replicates=19))


@pytest.fixture
def stored(state, tmp_path):
    path = tmp_path / "day.state"
    write_state(str(path), state)
    return path


def refused(path):
    """Return the one-line error of a file that is not a state."""
    with pytest.raises(FileError) as error:
        read_state(str(path))
    assert "\n" not in str(error.value)
    assert str(error.value).startswith(str(path))
    return str(error.value)


def test_a_state_is_read_back_unchanged(state, stored):
    back = read_state(str(stored))
    assert (back.input, back.skipped, texts(back.warnings)) == (state.input, state.skipped, texts(state.warnings))
    assert [each.metric for each in back.metrics] == [each.metric for each in state.metrics]
    for ours, theirs in zip(state.sums, back.sums, strict=True):
        kept = theirs.arrays()
        assert set(kept) == set(ours.arrays())
        for name, values in ours.arrays().items():
            assert_array_equal(kept[name], values)
    run = Run(resamples=100)
    assert report_from_state(back, run) == report_from_state(state, run)


def test_equal_accumulators_give_equal_bytes(stored, tmp_path):
    write_state(str(tmp_path / "again.state"), read_state(str(stored)))
    assert (tmp_path / "again.state").read_bytes() == stored.read_bytes()
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_truncated_files_are_refused(stored):
    content = stored.read_bytes()
    for size in (*range(2, 60, 7), *range(100, len(content), len(content) // 40)):
        stored.write_bytes(content[:size])
        assert "is damaged or truncated" in refused(stored)


def test_flipped_bits_are_detected_or_harmless(state, stored):
    """A flipped bit in the archive's metadata may be harmless; numbers that are read never differ."""
    content, rng = stored.read_bytes(), np.random.default_rng(0)
    for place in rng.integers(2, len(content), 250):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        stored.write_bytes(damaged)
        try:
            back = read_state(str(stored))
        except FileError as error:
            assert "\n" not in str(error)  # noqa: PT017 - most are refused
        else:
            for ours, theirs in zip(state.sums, back.sums, strict=True):
                kept = theirs.arrays()
                assert all(np.array_equal(kept[name], values) for name, values in ours.arrays().items())


def rewrite(stored, change, *, compression=zipfile.ZIP_STORED):
    """Write the archive again, with changed members and a matching checksum."""
    with zipfile.ZipFile(stored) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    digest = hashlib.sha256(b"".join(each for name, each in members.items() if name != "sha256"))
    if "sha256" in members:
        members["sha256"] = digest.hexdigest().encode()
    with zipfile.ZipFile(stored, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def header(**fields):
    def change(members):
        content = json.loads(members["header.json"])
        content |= fields
        members["header.json"] = json.dumps(content).encode()

    return change


def npy(values, **options):
    stream = io.BytesIO()
    np.save(stream, values, **options)
    return stream.getvalue()


def test_files_that_are_not_states_are_refused(stored, tmp_path):
    rewrite(stored, header(version=2))
    assert "was written by a newer calcheck: its version is 2, this calcheck reads 1" in refused(stored)
    rewrite(stored, header(version=1, kind="checkpoint"))
    assert "is not a calcheck state, but a checkpoint" in refused(stored)
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    assert "is not a calcheck state" in refused(tmp_path / "other.npz")
    (tmp_path / "text.state").write_text("PK is how this text begins")
    assert "is damaged" in refused(tmp_path / "text.state")
    (tmp_path / "empty.state").write_bytes(b"")
    assert "is not a calcheck state" in refused(tmp_path / "empty.state")
    with pytest.raises(FileError, match="there is no file"):
        read_state(str(tmp_path / "absent"))


def test_compressed_archives_are_refused(stored):
    rewrite(stored, lambda _: None, compression=zipfile.ZIP_DEFLATED)
    assert "its members are compressed" in refused(stored)


@pytest.mark.parametrize(
    "content",
    {
        "objects": npy(np.array([{}], dtype=object), allow_pickle=True),
        "too long": npy(np.zeros(3)).replace(b"(3,)", b"(9,)"),
        "complex": npy(np.zeros(3, dtype=complex)),
        "empty": b"",
        "short": npy(np.zeros(3))[:40],
    }.values(),
    ids=["objects", "too long", "complex", "empty", "short"],
)
def test_invalid_arrays_are_refused(stored, content):
    rewrite(stored, lambda members: members.update({"1.npy": content}))
    assert "is damaged" in refused(stored)


@pytest.mark.parametrize("name", ["sums.n", "sums.sums.z2", "sums.products", "sums.replicates.z2"])
def test_inconsistent_accumulators_are_refused(stored, name):
    _, arrays = read_archive(str(stored), "state", 1)
    place = list(arrays).index(f"zms.{name}")
    rewrite(stored, lambda members: members.update({f"{place}.npy": npy(np.arange(35.0).reshape(5, 7))}))
    assert "is damaged" in refused(stored)


def test_an_invalid_header_is_refused(stored):
    for fields in (
        {"metrics": [{"metric": "nope", "options": {}}]},
        {"input": {}},
        {"metrics": 3},
        {"replicates": "a"},
    ):
        with zipfile.ZipFile(stored) as archive:
            content = json.loads(archive.read("header.json"))["header"]
        before = stored.read_bytes()
        rewrite(stored, header(header=content | fields))
        assert "is damaged" in refused(stored)
        stored.write_bytes(before)
