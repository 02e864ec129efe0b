"""Files are written completely or not at all, and what killed runs leave behind is deleted."""

import contextlib
import fcntl
import os
import resource
import time

import numpy as np
import pytest

from calcheck.errors import FileError
from calcheck.storage import atomic_write
from calcheck.storage.archives import write_archive
from calcheck.storage.atomic_write import append_text, atomic_path, write_bytes, write_text
from calcheck.storage.prediction_files import write_columns

NUMBERS = np.random.default_rng(0).normal(size=5000)
WRITERS = {
    "text.json": lambda path: write_text(path, "x" * 40_000),
    "page.html": lambda path: write_bytes(path, b"x" * 40_000),
    "summary.md": lambda path: append_text(path, "x" * 40_000),
    "rows.csv": lambda path: write_columns(path, {"a": NUMBERS}),
    "rows.parquet": lambda path: write_columns(path, {"a": NUMBERS}),
    "day.state": lambda path: write_archive(path, "state", {}, {"a": NUMBERS}),
}


@contextlib.contextmanager
def largest_file(size):
    """Let no file grow beyond a number of bytes, as on a full disk: what is written stops half-way."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


def abandoned(path, *, seconds=0):
    """Write what a killed run leaves behind, and return its path."""
    left = path.with_name(f".calcheck.{path.name[:40]}.abcd1234")
    left.write_text("half", encoding="utf-8")
    os.utime(left, (time.time() - seconds,) * 2)
    return left


@pytest.mark.parametrize("name", WRITERS)
def test_a_write_that_fails_half_way_keeps_the_old_file(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"old")
    with largest_file(10_000), pytest.raises(FileError, match=r"cannot be written: .*File too large"):
        WRITERS[name](str(path))
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {name: b"old"}


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_with_the_longest_name_is_written(tmp_path, name):
    path = tmp_path / f"{'ä' * 60}{'n' * (255 - 120 - len(name))}{name}"
    WRITERS[name](str(path))
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_size > 10_000


def test_the_temporary_file_is_named_after_calcheck_and_its_target(tmp_path):
    with atomic_path(str(tmp_path / "out.json")) as temporary:
        assert temporary.parent == tmp_path
        assert temporary.name.startswith(".calcheck.out.json.")


def test_what_killed_runs_left_beside_the_target_is_deleted(tmp_path):
    left, other = abandoned(tmp_path / "out.json"), abandoned(tmp_path / "other.json")
    (tmp_path / ".calcheck.out.json.link").symlink_to(other)
    (tmp_path / ".calcheck.out.json.folder").mkdir()
    write_text(str(tmp_path / "out.json"), "new")
    assert not left.exists()
    kept = {"out.json", other.name, ".calcheck.out.json.link", ".calcheck.out.json.folder"}
    assert {file.name for file in tmp_path.iterdir()} == kept


def test_the_temporary_file_of_a_live_writer_is_kept(tmp_path):
    path = str(tmp_path / "out.json")
    with atomic_path(path) as first:
        os.utime(first, (0, 0))
        write_text(path, "second")
        first.write_text("first", encoding="utf-8")
    assert (tmp_path / "out.json").read_text(encoding="utf-8") == "first"


def test_without_locks_only_old_files_are_taken_for_abandoned(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic_write, "try_lock", lambda _: None)
    path = tmp_path / "out.json"
    left = abandoned(path)
    write_text(str(path), "new")
    assert left.exists()
    left = abandoned(path, seconds=2 * 86_400)
    write_text(str(path), "newer")
    assert [file.name for file in tmp_path.iterdir()] == ["out.json"]


def test_a_new_file_that_another_process_takes_for_abandoned_is_made_again(tmp_path, monkeypatch):
    names = []

    def steal(descriptor):
        names.append(descriptor)
        if len(names) == 1:
            next(tmp_path.iterdir()).unlink()
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return len(names) != 2  # the first is deleted, the second is locked by the other process

    monkeypatch.setattr(atomic_write, "try_lock", steal)
    write_text(str(tmp_path / "out.json"), "new")
    assert len(names) == 3
    assert [file.name for file in tmp_path.iterdir()] == ["out.json"]
