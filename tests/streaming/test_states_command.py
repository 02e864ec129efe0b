"""States on the command line: --save-state, --settings-from, calcheck merge, --checkpoint and --resume."""

import fcntl
import json
import signal
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.evaluation import Answer
from calcheck.execution.run import Run
from calcheck.io import read
from calcheck.metrics import DECOMPOSITIONS, LOCAL_ERRORS, METRICS
from calcheck.storage import atomic_write
from calcheck.storage.archives import read_archive
from calcheck.streaming.state import accumulate, write_state
from tests.helpers.files import columns, write
from tests.helpers.schemas import validate
from tests.helpers.shorthand import texts
from tests.helpers.simulations import autoregressive

FEW = ("--resamples", 100)
OF_ALL_ROWS = (*DECOMPOSITIONS, "cce", "jmmd", "ammd", "cmmd", "fid", "tail", "pit-independence", *LOCAL_ERRORS)
ACCUMULATED = [name for name in METRICS if name not in OF_ALL_ROWS]


def results(ended):
    """Return the report and its values by metric; the command must succeed and match the schema."""
    assert (ended.code, ended.err) == (0, ""), ended
    report = json.loads(ended.out)
    validate(report)
    return report, {each["metric"]: each["value"] for each in report["results"]}


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    """Return the paths of ten days, and of all of them in one file."""
    folder, whole = tmp_path_factory.mktemp("days"), columns(n=400)
    parts = np.array_split(np.arange(400), 10)
    paths = [
        write(folder / f"{day}.parquet", {name: values[part] for name, values in whole.items()})
        for day, part in enumerate(parts)
    ]
    return paths, write(folder / "whole.parquet", whole)


@pytest.fixture(scope="module")
def states(days):
    """Return the paths of ten states with the settings of the first."""
    made, first = [], None
    for path in days[0]:
        made.append(path.replace(".parquet", ".state"))
        state = accumulate(
            read(path), [METRICS[name]() for name in ACCUMULATED], Run(replicates=19), like=first, answer=Answer()
        )
        write_state(made[-1], state)
        first = first or state
    return made


@pytest.mark.slow
def test_the_command_line_writes_the_same_states_as_python(calcheck, states, days, tmp_path):
    path, after = tmp_path / "a.state", tmp_path / "b.state"
    asked = ("--metrics", ",".join(ACCUMULATED), "--replicates", 19, *FEW)
    for ended, made, expected in (
        (calcheck("evaluate", days[0][0], *asked, "--save-state", path), path, states[0]),
        (calcheck("evaluate", days[0][1], "--settings-from", path, *FEW, "--save-state", after), after, states[1]),
    ):
        assert (ended.code, ended.err) == (0, "")
        (_, found), (_, known) = (read_archive(str(name), "state") for name in (made, expected))
        assert set(found) == set(known)
        for name, values in known.items():
            assert np.array_equal(found[name], values), name


@pytest.mark.slow
def test_ten_merged_days_equal_one_file_with_the_same_settings(calcheck, states, days):
    merged, values = results(calcheck("merge", *states, *FEW, "--format", "json"))
    assert results(calcheck("evaluate", *states, *FEW, "--format", "json")) == (merged, values)
    assert "--metrics does not apply to saved states" in calcheck("evaluate", *states, "--metrics", "zms").refused()
    whole = calcheck("evaluate", days[1], "--settings-from", states[0], *FEW, "--format", "json")
    expected, same = results(whole)
    assert list(values) == ACCUMULATED
    for name, value in values.items():
        assert_allclose(value, same[name], rtol=1e-10, err_msg=name)
    assert [file["path"] for file in merged["input"]["files"]] == days[0]
    assert merged["input"]["n"] == expected["input"]["n"] == 400
    zms = merged["results"][0]
    assert (zms["interval"], zms["reference"], zms["details"]["null"]["replicates"]) == ("normal", 1, 19)
    assert (zms["verdict"], merged["results"][3]["verdict"]) == ("none", "none")
    assert "19 replicates cannot reject" in texts(zms["warnings"])[-1]
    (pit,) = [each for each in merged["results"] if each["metric"] == "pit"]
    assert texts(pit["warnings"])[-1] == "no verdict: each replicate would require all stored rows"


@pytest.mark.slow
def test_a_merged_state_can_be_merged_again(calcheck, states, tmp_path):
    _, expected = results(calcheck("merge", *states, *FEW, "--format", "json"))
    merged = tmp_path / "merged.state"
    results(calcheck("merge", *states[:6], *FEW, "--save-state", merged, "--format", "json"))
    _, values = results(calcheck("merge", merged, *states[6:], *FEW, "--format", "json"))
    for name, value in values.items():
        assert_allclose(value, expected[name], rtol=1e-10, err_msg=name)


def test_settings_can_come_from_one_metric_of_a_state(calcheck, states, days, tmp_path):
    path = tmp_path / "ence.state"
    ended = calcheck("ence", days[0][1], "--settings-from", states[0], "--save-state", path, *FEW, "--format", "json")
    _, values = results(ended)
    assert list(values) == ["ence"]
    assert (
        f"--bins 5 contradicts --settings-from {states[0]}, which has 10: omit --bins"
        in calcheck("ence", days[0][1], "--settings-from", states[0], "--bins", 5).refused()
    )
    results(calcheck("ence", days[0][1], "--settings-from", states[0], "--bins", 10, *FEW, "--format", "json"))
    line = calcheck("zms", days[0][1], "--settings-from", path).refused()
    assert "does not contain zms. It contains: ence" in line
    line = calcheck("evaluate", days[0][1], "--settings-from", path, "--metrics", "ence,zms").refused()
    assert "does not contain zms" in line
    line = calcheck("ence", days[0][1], "--settings-from", states[0], "--replicates", 39).refused()
    assert "--replicates 39 contradicts --settings-from, whose state has 19" in line


def test_states_that_cannot_be_merged_are_refused(calcheck, states, days, tmp_path):
    assert "both contain the rows of" in calcheck("merge", states[0], states[0]).refused()
    apart = tmp_path / "apart.state"
    results(calcheck("ence", days[0][2], "--save-state", apart, *FEW, "--format", "json"))
    alike = tmp_path / "alike.state"
    results(calcheck("ence", days[0][1], "--save-state", alike, *FEW, "--format", "json"))
    line = calcheck("merge", apart, alike).refused()
    assert "ence was prepared on other rows: its setting 'low' differs" in line
    assert "--settings-from" in line
    assert "crps, cv, ece" in calcheck("merge", apart, states[1]).refused()
    assert "is not a calcheck state" in calcheck("merge", days[0][0]).refused()
    assert "there is no file" in calcheck("merge", tmp_path / "no.state").refused()
    assert "is a saved state, and" in calcheck("evaluate", days[0][0], states[0]).refused()


def test_a_state_that_another_process_writes_is_not_replaced(calcheck, states, days, tmp_path, monkeypatch):
    monkeypatch.setattr(atomic_write, "WAIT_SECONDS", 0.1)
    state = tmp_path / "all.state"
    state.write_bytes(b"old")
    commands = (("merge", *states[:2]), ("evaluate", days[0][0], "--metrics", "zms"), ("zms", days[0][0]))
    for command in commands:
        with state.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            assert "all.state is in use by another process" in calcheck(*command, "--save-state", state).refused()
        assert state.read_bytes() == b"old"
    assert calcheck(*commands[0], "--save-state", state).code == 0


def test_options_that_need_all_rows_are_refused_for_states(calcheck, days, tmp_path):
    path, state = days[0][0], tmp_path / "a.state"
    for option in (("--pointwise", tmp_path / "a.csv"), ("--worst", 3), ("--subsample", 10)):
        assert (
            f"{option[0]} needs all rows in memory" in calcheck("zms", path, "--save-state", state, *option).refused()
        )
    line = calcheck("cce", path, "--solver", "cg", "--save-state", state).refused()
    assert "cce needs all rows at once with --solver cg" in line
    line = calcheck("cce", path, "--estimator", "unbiased", "--save-state", state).refused()
    assert "needs all rows at once with --estimator unbiased. Remove --estimator unbiased to compute" in line
    line = calcheck("zms", path, "--save-state", tmp_path / "a.parquet").refused()
    assert "has the suffix of a table or report" in line
    assert "would overwrite" in calcheck("zms", path, "--save-state", state, "-o", state).refused()
    assert "the folder does not exist" in calcheck("zms", path, "--save-state", tmp_path / "no" / "a.state").refused()
    assert "--resume needs the checkpoint file" in calcheck("zms", path, "--resume").refused()
    assert (
        "--checkpoint and --dask cannot be combined"
        in calcheck("zms", path, "--checkpoint", state, "--dask", "local:2").refused()
    )
    assert not state.exists()


INTERRUPTED = """
import os, signal, sys
from calcheck.cli import main
from calcheck.storage.archives import FileCheckpoint

save = FileCheckpoint.save

def save_and_stop(self, *arguments):
    save(self, *arguments)
    os.kill(os.getpid(), {number})

FileCheckpoint.save = save_and_stop
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let programs in the background ignore it
sys.argv = ["calcheck", *{arguments!r}]
main()
"""
LONG = ("--metrics", "zms,crps", "--replicates", 19, "--no-bootstrap", "--format", "json")


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """Return the path of a file of two batches."""
    path = tmp_path_factory.mktemp("long") / "long.arrow"
    whole = columns(n=140_000, d=1)
    return write(path, {name: whole[name] for name in ("y", "mean", "std")})


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_resumes_with_the_same_result(number, process, long, tmp_path):
    whole, half, checkpoint = tmp_path / "whole.state", tmp_path / "half.state", tmp_path / "checkpoint"
    if number == signal.SIGINT:  # once is enough
        expected = process("evaluate", long, *LONG, "--save-state", whole)
        assert expected.returncode == 0
    arguments = [*map(str, ("evaluate", long, *LONG, "--save-state", half, "--checkpoint", checkpoint))]
    program = INTERRUPTED.format(number=int(number), arguments=arguments)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (128 + number, b"", b"")
    assert sorted(path.name for path in tmp_path.iterdir() if path != whole) == ["checkpoint"]
    if number == signal.SIGINT:
        again = process(*arguments, "--resume")
        assert again.returncode == 0
        assert again.stdout == expected.stdout
        assert half.read_bytes() == whole.read_bytes()
        assert not checkpoint.exists()


def test_a_checkpoint_is_resumed_only_by_the_same_run(calcheck, days, tmp_path, monkeypatch):
    checkpoint = tmp_path / "checkpoint"
    monkeypatch.setattr("calcheck.storage.archives.FileCheckpoint.remove", lambda _: None)
    run = ("ence", days[0][0], "--checkpoint", checkpoint, "--no-bootstrap", "--replicates", 19, "--format", "json")
    results(calcheck(*run))
    results(calcheck(*run, "--resume"))
    for other, what in ((("--bins", 5), "metrics"), (("--seed", 3), "seed"), (("--min-std", 1), "column options")):
        assert f"its {what}" in calcheck(*run, *other, "--resume").refused()
    assert "its files differ" in calcheck("ence", days[0][1], *run[2:], "--resume").refused()
    checkpoint.write_bytes(checkpoint.read_bytes()[:500])
    assert "is damaged" in calcheck(*run, "--resume").refused()
    results(calcheck(*run))


@pytest.mark.slow
def test_states_of_dependent_rows_are_not_judged_nor_is_their_sum(calcheck, tmp_path):
    """The sum of a series and of independent rows is not judged either, in any order."""
    rng, states = np.random.default_rng(41), {}
    for name, correlation in (("series", 0.9), ("right", 0.0)):
        rows = {"step": np.arange(300), "y": autoregressive(rng, 300, correlation)}
        path = write(tmp_path / f"{name}.csv", rows | {"mean": np.zeros(300), "std": np.full(300, 0.7)})
        like = ("--settings-from", states["series"]) if states else ()
        states[name] = tmp_path / f"{name}.state"
        few = () if like else ("--metrics", "zms,coverage,bias", "--replicates", "39")
        report, _ = results(calcheck("evaluate", path, *few, "--save-state", states[name], *like, "--format", "json"))
        judged = {each["verdict"] for each in report["results"]}
        assert judged == {"none"} if name == "series" else judged & {"pass", "fail"}
    assert report["overall"]["verdict"] != "none"
    for order in (("series",), ("series", "right"), ("right", "series")):
        merged, _ = results(calcheck("merge", *(states[name] for name in order), "--format", "json"))
        assert {each["verdict"] for each in (*merged["results"], merged["overall"])} == {"none"}
        assert merged["conclusion"]["answer"] == "not-shown"
        assert "pass --time step without streaming" in merged["settings"]["dependence_noticed"]["reason"]
