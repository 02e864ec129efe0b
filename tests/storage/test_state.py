"""States in files: what was written comes back, and nothing else is taken for a state."""

import contextlib
import hashlib
import io
import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from calcheck.errors import FileError, Message
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory
from calcheck.reports import Skipped
from calcheck.storage.archives import FileCheckpoint, read_archive, to_arrays, write_archive
from calcheck.streaming.state import accumulate, read_state, report_from_state, write_state
from tests.helpers.families import calibrated
from tests.helpers.shorthand import texts

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


def arrays_of(sums):
    return to_arrays("sums", sums, type(sums))


def refused(path):
    """Return the one line that says why a file is no state."""
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
        kept = arrays_of(theirs)
        assert set(kept) == set(arrays_of(ours))
        for name, values in arrays_of(ours).items():
            assert_array_equal(kept[name], values)
    run = Run(resamples=100)
    assert report_from_state(back, run) == report_from_state(state, run)


def test_a_state_with_another_number_of_rows_than_its_sums_is_refused(state, tmp_path):
    """The checksum covers arrays, not the header."""
    for n in (0, 59, 61):
        write_state(str(tmp_path / "day.state"), replace(state, input=replace(state.input, n=n)))
        assert "its number of rows do not match" in refused(tmp_path / "day.state")


def test_warnings_and_skipped_metrics_are_read_back(state, tmp_path):
    warnings, skipped = (Message("few-rows", "12 rows"),), (Skipped(metric="cce", code="inapplicable", reason="none"),)
    write_state(str(tmp_path / "day.state"), replace(state, warnings=warnings, skipped=skipped))
    back = read_state(str(tmp_path / "day.state"))
    assert (back.warnings, back.skipped) == (warnings, skipped)


def test_equal_sums_give_equal_bytes(stored, tmp_path):
    write_state(str(tmp_path / "again.state"), read_state(str(stored)))
    assert (tmp_path / "again.state").read_bytes() == stored.read_bytes()
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_a_truncated_file_is_refused(stored):
    content = stored.read_bytes()
    for size in (*range(2, 60, 7), *range(100, len(content), len(content) // 40)):
        stored.write_bytes(content[:size])
        assert "is damaged or truncated" in refused(stored)


@pytest.mark.slow
def test_flipped_bits_are_detected_or_harmless(state, stored):
    """A byte of the archive's own bookkeeping may not matter; what is read is never another number."""
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
                kept = arrays_of(theirs)
                assert all(np.array_equal(kept[name], values) for name, values in arrays_of(ours).items())


def rewrite(stored, change, *, compression=zipfile.ZIP_STORED):
    """Write the archive again, with other members and a checksum that fits."""
    with zipfile.ZipFile(stored) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    content, digest = header_of(members), hashlib.sha256()
    for name in content["arrays"]:
        with contextlib.suppress(ValueError, EOFError, AttributeError, KeyError, MemoryError):
            digest.update(np.load(io.BytesIO(members[f"{name}.npy"])).tobytes())
    members["header.npy"] = npy(np.frombuffer(json.dumps(content | {"sha256": digest.hexdigest()}).encode(), np.uint8))
    with zipfile.ZipFile(stored, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def header_of(members):
    return json.loads(np.load(io.BytesIO(members["header.npy"])).tobytes())


def header(**fields):
    def change(members):
        members["header.npy"] = npy(np.frombuffer(json.dumps(header_of(members) | fields).encode(), np.uint8))

    return change


def npy(values, **options):
    stream = io.BytesIO()
    np.save(stream, values, **options)
    return stream.getvalue()


def test_other_files_are_refused(stored, tmp_path):
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
        "petabytes": npy(np.zeros(3)).replace(b"(3,), }         ", b"(1" + b"0" * 14 + b",), }"),
        "texts without letters": npy(np.zeros(3, "U1")).replace(b"<U1", b"<U0").replace(b"(3,), }   ", b"(99999,), }"),
        "structured": npy(np.zeros(3, "f8,i4")),
        "no array": b"print(1)",
    }.values(),
    ids=[
        "objects",
        "too long",
        "complex",
        "empty",
        "short",
        "petabytes",
        "texts without letters",
        "structured",
        "no array",
    ],
)
def test_invalid_arrays_are_refused(stored, content):
    rewrite(stored, lambda members: members.update({"zms.sums.sums.z2.npy": content}))
    assert "is damaged" in refused(stored)


@pytest.mark.parametrize("name", ["metadata.n", "sums.z2", "products", "replicates.z2"])
def test_inconsistent_sums_are_refused(stored, name):
    broken = {f"zms.sums.{name}.npy": npy(np.arange(35.0).reshape(5, 7))}
    rewrite(stored, lambda members: members.update(broken))
    assert "is damaged" in refused(stored)


@pytest.mark.parametrize("name", ["cuts", "shares", "classes"])
def test_inconsistent_settings_are_refused(stored, name):
    header, arrays = read_archive(str(stored), "state")
    broken = {f"ence.settings.{name}": np.array(7) if name == "classes" else np.ones((3, 3))}
    write_archive(str(stored), "state", header, {**arrays, **broken})
    assert "do not match" in refused(stored)


def test_a_missing_array_is_refused(stored):
    rewrite(stored, lambda members: members.pop("zms.sums.metadata.warnings.npy"))
    assert "is damaged" in refused(stored)


def test_damage_that_fits_the_checksums_of_the_archive_is_found(stored):
    with zipfile.ZipFile(stored) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["zms.sums.sums.z2.npy"] = npy(np.array(59.0))
    with zipfile.ZipFile(stored, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    assert "its checksum does not match" in refused(stored)


def test_an_invalid_header_is_refused(stored):
    for fields in (
        {"metrics": [{"metric": "nope", "options": {}}]},
        {"input": {}},
        {"metrics": 3},
        {"replicates": "a"},
    ):
        with zipfile.ZipFile(stored) as archive:
            content = header_of({name: archive.read(name) for name in archive.namelist()})["header"]
        before = stored.read_bytes()
        rewrite(stored, header(header=content | fields))
        assert "is damaged" in refused(stored)
        stored.write_bytes(before)


def test_a_completed_stage_of_a_checkpoint_is_restored_without_its_batches(tmp_path):
    class Total:
        def arrays(self):
            return {"sum": np.array([3.0])}

    class Work:
        load = staticmethod(dict)

    path = str(tmp_path / "checkpoint")
    checkpoint = FileCheckpoint(path, {}, resume=False)
    checkpoint.save("first", 7, Total())
    checkpoint.save("second", None, Total())
    again = FileCheckpoint(path, {}, resume=True)
    assert [again.load(stage, Work)[0] for stage in ("first", "second", "third")] == [7, None, 0]
    assert_array_equal(again.load("second", Work)[1]["sum"], [3.0])
