"""A state that is continued is kept from other processes until it has been replaced."""

import fcntl
import threading

import pytest

from calcheck.errors import FileError
from calcheck.storage import atomic_write
from calcheck.storage.atomic_write import exclusive, write_text


@pytest.fixture
def state(tmp_path):
    """Return the path of a file that counts, one character each."""
    path = tmp_path / "count.state"
    path.write_text("1", encoding="utf-8")
    return path


def add_one(path, ready=None, go=None):
    """Read a file, and replace it by one that is one character longer."""
    with exclusive(str(path)) as require_unchanged:
        count = path.read_text(encoding="utf-8")
        if ready is not None:
            ready.set()
            go.wait(10)
        require_unchanged()
        write_text(str(path), count + "1")


def test_who_reads_and_replaces_a_state_waits_for_those_before(state):
    ready, go = threading.Event(), threading.Event()
    threads = [threading.Thread(target=add_one, args=(state, ready, go))]
    threads[0].start()
    ready.wait(10)
    threads += [threading.Thread(target=add_one, args=(state,)) for _ in range(3)]
    for thread in threads[1:]:
        thread.start()
    threads[1].join(0.2)
    assert state.read_text(encoding="utf-8") == "1"
    go.set()
    for thread in threads:
        thread.join(10)
    assert state.read_text(encoding="utf-8") == "11111"
    assert list(state.parent.iterdir()) == [state]


def test_the_wait_for_a_state_has_an_end(state, monkeypatch):
    monkeypatch.setattr(atomic_write, "WAIT_SECONDS", 0.1)
    with state.open("rb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        with pytest.raises(FileError, match=r"count\.state is in use by another process for more than 0\.1 seconds"):
            add_one(state)
    add_one(state)
    assert state.read_text(encoding="utf-8") == "11"


def continue_all_the_same(path):
    """Read a file, which another process replaces in the meantime, and replace it."""
    with exclusive(str(path)) as require_unchanged:
        write_text(str(path), "11")
        require_unchanged()


def test_without_locks_a_state_that_changed_since_it_was_read_is_not_replaced(state, monkeypatch):
    monkeypatch.setattr(atomic_write, "try_lock", lambda _: None)
    add_one(state)
    with pytest.raises(FileError, match=r"count\.state was changed by another process since this command read it"):
        continue_all_the_same(state)


@pytest.mark.parametrize("mode", [0o400, 0o600])
def test_a_state_that_cannot_be_written_is_locked_too(state, mode):
    state.chmod(mode)
    add_one(state)
    assert state.read_text(encoding="utf-8") == "11"


def test_nothing_is_locked_without_a_file(tmp_path):
    with exclusive(None) as require_unchanged:
        require_unchanged()
    with exclusive(str(tmp_path / "new.state")) as require_unchanged:
        require_unchanged()
    assert not list(tmp_path.iterdir())
