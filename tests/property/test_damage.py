"""Damaged files are read or refused with a message; `python -m tests.fuzz` tries many more."""

from dataclasses import replace

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

    def run(made):
        made.save(tmp_path)
        return [run_command(command, capfd.readouterr) for command in made.commands]

    return run


@pytest.mark.parametrize("first", range(0, FILES, AT_ONCE))
def test_damage_is_refused_or_harmless(run, first):
    for index in range(first, first + AT_ONCE):
        made = case(0, index)
        found = [story for story in run(made) if story[0] not in (READ, REFUSED)]
        assert not found, f"python -m tests.fuzz --only {index}"


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"{seed.name} {seed.ending}")
def test_intact_files_are_read(run, seed):
    """With few replicates, as only the reading is tested."""
    made = intact(seed)
    few = ("--replicates", "19") if made.commands[-1][0] in ("evaluate", *METRICS) else ()
    last, story = run(replace(made, commands=((*made.commands[-1], *few),)))[-1]
    assert last == READ, story
