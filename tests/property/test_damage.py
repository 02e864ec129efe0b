"""Damaged files are read or refused with a message; `python -m tests.fuzz` tries many more."""

import pytest

from calcheck.metrics import METRICS
from tests.fuzz.damage import case, intact
from tests.fuzz.program import READ, REFUSED, run_command
from tests.fuzz.seeds import SEEDS
from tests.simulations import sets

FILES, AT_ONCE = sets(250), sets(25)


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """Return a function that runs the commands of a case and returns their outcomes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [])

    def run(made, commands):
        made.save(tmp_path)
        return [run_command(with_few_replicates(command), capfd.readouterr) for command in commands]

    return run


def with_few_replicates(command):
    """Return a command with 19 replicates if it has any, as only the reading is tested."""
    return (*command, "--replicates", "19") if command[0] in ("evaluate", *METRICS) else command


@pytest.mark.parametrize("first", range(0, FILES, AT_ONCE))
def test_damage_is_refused_or_harmless(run, first):
    for index in range(first, first + AT_ONCE):
        made = case(0, index)
        found = [story for story in run(made, made.commands) if story[0] not in (READ, REFUSED)]
        assert not found, f"python -m tests.fuzz --only {index}"


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"{seed.name} {seed.ending}")
def test_intact_files_are_read(run, seed):
    made = intact(seed)
    last, story = run(made, made.commands[-1:])[-1]
    assert last == READ, story
