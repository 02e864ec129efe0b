"""Completion in the shell: commands, options, values, and the options that install it."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.helpers.simulations import slow


@pytest.fixture
def completed(process):
    """Complete the last word of a line as bash does, and return the completions."""

    def run(line):
        words = line.split(" ")
        asked = {"_CALCHECK_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
        ended = process(env=os.environ | asked)
        assert (ended.returncode, ended.stderr) == (0, "")
        return ended.stdout.split()

    return run


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("calcheck ev", ["evaluate"]),
        slow(("calcheck cm", ["cmmd"])),
        ("calcheck s", ["schema", "sharpness", "slices", "standardized-bias", "stratified-coverage", "sweep"]),
        slow(("calcheck evaluate f --fdr 0.1 --inp", ["--input-format", "--inputs"])),
        ("calcheck evaluate f --metrics zms,cr", ["zms,crps", "zms,crps-miscalibration"]),
        slow(("calcheck sweep f --metric co", ["coverage", "confidence-curve"])),
        slow(("calcheck check f --format j", ["json", "jsonl", "junit"])),
        ("calcheck zms f --seed x --error-dist ", ["normal", "t6"]),  # a wrong value before does not matter
        slow(("calcheck zms ", [])),  # the shell completes file names
        ("calcheck zms f -o ", []),
    ],
)
def test_words_are_completed(completed, line, expected):
    assert sorted(completed(line)) == sorted(expected)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_the_script_of_the_shell_is_shown_and_installed(tmp_path):
    def in_bash(option):
        command = f"{sys.executable} -m calcheck {option}; exit $?"  # with a second command, bash stays the parent
        return subprocess.run(
            ["bash", "-c", command],
            env=os.environ | {"HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    script = in_bash("--show-completion")
    assert "_CALCHECK_COMPLETE=complete_bash" in script
    assert list(tmp_path.iterdir()) == []
    assert "bash completion installed" in in_bash("--install-completion")
    assert (tmp_path / ".bash_completions" / "calcheck.sh").read_text() == script.strip()


def test_no_variable_installs_completion(calcheck, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CALCHECK_INSTALL_COMPLETION", "1")
    monkeypatch.setenv("CALCHECK_SHOW_COMPLETION", "1")
    assert calcheck("metrics").out.startswith("metric ")
    assert list(tmp_path.iterdir()) == []


def test_the_help_has_one_line_for_the_options_of_completion(calcheck):
    lines = calcheck("--help").out.splitlines()
    (line,) = (line for line in lines if "--install-completion" in line)
    assert "--show-completion" in line
