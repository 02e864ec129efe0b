"""Damaged files are read or refused with a message.

`python -m tests.fuzz` and `python -m tests.fuzz.joining` try many more.
"""

import random

import pytest

from calcheck.metrics import METRICS
from tests.fuzz.damage import case, intact
from tests.fuzz.joining import FORMATS, RIGHT, cases, outcome
from tests.fuzz.program import READ, REFUSED, run_command
from tests.fuzz.seeds import SEEDS
from tests.helpers.simulations import sets, slow

FILES, AT_ONCE, CUTS = sets(250, 8), sets(25, 8), sets(20, 8)


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


@pytest.mark.parametrize(
    "seed",
    [slow(seed) if place % 2 else seed for place, seed in enumerate(SEEDS)],
    ids=lambda seed: f"{seed.name} {seed.ending}",
)
def test_intact_files_are_read(run, seed):
    made = intact(seed)
    last, story = run(made, made.commands[-1:])[-1]
    assert last == READ, story


@pytest.mark.parametrize("name", FORMATS)
def test_no_row_of_a_file_that_is_cut_or_appended_to_another_is_lost(tmp_path, name):
    """It is refused in one line, or the rows are those that it holds: of both files if two are in a row."""
    made = cases(name)
    cuts, joined = ([one for one in made if ("cut" in one.made) == is_cut] for is_cut in (True, False))
    for one in [*random.Random(name).sample(cuts, CUTS), *joined]:
        assert outcome(name, one, tmp_path) in (REFUSED, RIGHT), one.made
