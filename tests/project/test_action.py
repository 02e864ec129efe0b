"""The GitHub action and the pre-commit hook: what they run, and that no input is executed as a command."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from calcheck.io.files import SUFFIXES
from tests.helpers.files import columns, write

ROOT = Path(__file__).parents[2]
ACTION = ROOT / ".github" / "actions" / "calcheck" / "action.yml"
HOOKS = ROOT / ".pre-commit-hooks.yaml"


def scripts():
    """Return the shell scripts of the action by step name, each with the variables that it receives."""
    found = {}
    for step in ACTION.read_text().split("    - name: ")[1:]:
        head, script = step.split("      run: |\n")
        given = dict(re.findall(r"^        (\w+): \$\{\{ ([\w.-]+) \}\}$", head, re.MULTILINE))
        found[head.splitlines()[0]] = re.sub(r"^ {8}", "", script, flags=re.MULTILINE), given
    return found


RUN = f'exec "{sys.executable}" -m calcheck "$@"'
PRINT = "printf '%s\\0' \"$@\""
"""Shell scripts: run calcheck, or print the arguments that it would get."""


@pytest.fixture
def check(tmp_path, request):
    """Run the last step of the action with inputs, as GitHub does; with another program if a test names one."""
    script, given = scripts()["Check"]
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "calcheck"
    program.write_text(f"#!/bin/sh\n{getattr(request, 'param', RUN)}\n")
    program.chmod(0o755)
    summary = tmp_path / "summary.md"
    summary.touch()

    def run(**inputs):
        available = {f"inputs.{name.replace('_', '-')}": value for name, value in inputs.items()}
        available["steps.install.outputs.bin"] = str(programs)
        variables = {name: available.get(source, "") for name, source in given.items()}
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "GITHUB_STEP_SUMMARY": str(summary), **variables}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return ended, summary.read_text()

    return run


@pytest.fixture
def data(tmp_path):
    return Path(write(tmp_path / "preds.parquet", columns(n=40))).name


@pytest.mark.slow
def test_the_action_annotates_and_writes_the_summary(check, data):
    ended, summary = check(
        file=data, fail_on="mae < 0\n  \nrmse > 0\n", warn_on="mae > 0", args="--no-bootstrap --metrics 'zms, rce'"
    )
    assert (ended.returncode, ended.stderr) == (1, "")
    assert [line.split("::")[1] for line in ended.stdout.splitlines()] == [
        "error title=calcheck%3A rmse > 0",
        "warning title=calcheck%3A mae > 0",
    ]
    assert summary.startswith("### calcheck: 1 of 3 rules violated, 1 with a warning\n")
    assert "| rce |" in summary


@pytest.mark.slow
def test_the_action_has_the_exit_code_of_the_gate(check, data):
    ended, summary = check(file=data, fail_on="mae < 0", args="--no-bootstrap")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("::notice title=calcheck::1 rule passed by preds.parquet")
    assert summary.startswith("### calcheck: 1 rule passed\n")
    ended, _ = check(file=data, args="--no-bootstrap --metrics zms")
    assert (ended.returncode, ended.stderr) == (1, "")
    assert ended.stdout.startswith("::error title=calcheck%3A answer == 'no'::answer is no; ")
    ended, _ = check(file="absent.parquet", fail_on="mae < 0")
    assert (ended.returncode, ended.stdout) == (2, "")


HOSTILE = ("$(touch pwned)", "`touch pwned`", '"; touch pwned; "', "'; touch pwned; '", "&& touch pwned", "--help")
HARMLESS = {"file": "preds.parquet", "fail_on": "mae < 0", "warn_on": "mae > 0", "args": "--no-bootstrap"}
ARGUMENTS = {"file": "{}", "fail_on": "--fail-on={}", "warn_on": "--warn-on={}"}


@pytest.mark.parametrize("check", [PRINT], indirect=True, ids=["printed"])
@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("name", HARMLESS)
def test_inputs_of_the_action_are_never_executed(check, tmp_path, name, text):
    """Each input is one argument; --args are words, as a shell quotes them."""
    ended, _ = check(**HARMLESS | {name: text})
    assert not (tmp_path / "pwned").exists()
    found = ended.stdout.split("\0")[:-1]
    if name == "args":
        try:
            words = shlex.split(text)
        except ValueError:  # a quote that is not closed
            assert ended.returncode != 0
            return
        assert [word for word in words if word not in found] == []
    else:
        assert ARGUMENTS[name].format(text) in found
        assert found[-2:] == ["--", text if name == "file" else HARMLESS["file"]]


@pytest.mark.slow
def test_a_file_with_a_hostile_name_is_an_error_and_nothing_more(check, tmp_path):
    ended, _ = check(file=HOSTILE[0], fail_on="mae < 0", args="--no-bootstrap")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert not (tmp_path / "pwned").exists()


def test_the_action_passes_inputs_only_as_environment_variables():
    found = scripts()
    assert list(found) == ["Install calcheck", "Check"]
    assert not any("${{" in script for script, _ in found.values())
    declared = re.findall(r"^  ([\w-]+):$", ACTION.read_text().split("runs:")[0], re.MULTILINE)
    used = [source.removeprefix("inputs.") for _, given in found.values() for source in given.values()]
    assert sorted(used) == sorted([*declared, "steps.install.outputs.bin"])


def test_the_action_installs_its_own_repository_or_the_given_source(tmp_path):
    """With a Python that prints its arguments instead of running them."""
    script, _ = scripts()["Install calcheck"]
    fake = tmp_path / "python"
    fake.write_text('#!/bin/sh\nmkdir -p "$3/bin"\ncp "$0" "$3/bin/python"\necho "$@"\n')
    fake.chmod(0o755)
    output = tmp_path / "output"
    environment = {
        "PATH": os.environ["PATH"],
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_ACTION_PATH": str(ACTION.parent),
        "GITHUB_OUTPUT": str(output),
        "PYTHON": str(fake),
        "SOURCE": "",
    }
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    commands = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    (installed,) = re.findall(r"^-m pip install --quiet -- (.*)$", commands, re.MULTILINE)
    assert Path(installed).resolve() == ROOT
    assert re.fullmatch(rf"bin={re.escape(str(tmp_path))}/calcheck\.\w+/bin\n", output.read_text())
    commands = subprocess.run(
        command,
        env=environment | {"SOURCE": "calcheck.whl"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert commands.endswith("-m pip install --quiet -- calcheck.whl\n")


def test_the_hook_runs_check_on_files_of_predictions():
    text = HOOKS.read_text()
    assert "id: calcheck-check\n" in text
    (entry,) = re.findall(r"entry: (.*)", text)
    assert entry == "calcheck check"
    (pattern,) = re.findall(r"files: (.*)", text)
    endings = {ending for ending in SUFFIXES if re.search(pattern, f"preds{ending}")}
    assert endings == set(SUFFIXES) - {".npy", ".nc", ".xlsx"}  # .npy has vectors only, .nc and .xlsx need extras
    assert not re.search(pattern, "train.py")
