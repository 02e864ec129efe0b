"""The help: what it shows first."""

import platform
import re
import tomllib
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from calcheck.cli.app import COMMANDS, PANELS
from calcheck.cli.guide import LIBRARIES
from calcheck.core import __version__
from calcheck.metrics import METRICS

PROJECT = Path(__file__).parents[2] / "pyproject.toml"

WIDTH = 78  # Columns of the text of a help page of 80 columns


def panels(text):
    """Return the first words of the lines of each panel of a help text, by the title of the panel."""
    found = {}
    for line in text.splitlines():
        if match := re.match(r"╭─ (?P<title>.+?) ─", line):
            lines = found.setdefault(match["title"], [])
        elif match := re.match(r"│ \*? *(?P<word>[\w-]+)  ", line):
            lines.append(match["word"])
    return found


def panels_above(text):
    """Return the lines of each paragraph between the usage and the first panel."""
    prose = text.partition("╭")[0]
    return [[line.strip() for line in part.splitlines()] for part in re.split(r"\n\s*\n", prose) if part.strip()][1:]


PEOPLE = ("evaluate", "slices", "recalibrate", "compare", "check", "monitor", "report", "inspect", "guide")


def test_the_help_shows_nine_commands_and_one_line_for_each_kind_of_others(calcheck):
    lines = calcheck("--help").out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    named = [line.split()[0] for line in lines if re.match("  [a-z]", line)]
    assert tuple(named) == PEOPLE == tuple(PANELS["Commands"])
    (metrics,) = (line for line in lines if line.startswith("  Metrics "))
    assert metrics.split()[1] == f"{len(METRICS)},"
    (papers,) = (line for line in lines if line.startswith("  For method papers "))
    assert papers.split("papers")[1].split() == ["reject,", "sweep,", "validity,", "mcmd,", "mmd"]
    (tools,) = (line for line in lines if line.startswith("  Tools "))
    assert tools.split()[1:] == ["metrics,", "diff,", "schema"]
    assert calcheck("-h").out.splitlines() == lines


@pytest.mark.parametrize("command", [*COMMANDS, "trend"])
def test_the_short_help_is_one_screen(calcheck, command):
    """It has what the command does, the options that matter, examples, and how to see all options."""
    lines = calcheck(command, "-h").out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith(f"Usage: calcheck {command} [OPTIONS]")
    flags = [line for line in lines if line.startswith("  -")]
    assert len(flags) <= 12
    if command in PANELS["For method papers"] or command in (*METRICS, *PEOPLE[:7]):
        assert len(flags) >= 8
        assert len([line for line in lines if line.startswith(f"  calcheck {command} ")]) == 2
        every = re.fullmatch(rf"All (\d+) options: calcheck {command} --help", lines[-1])
        shown = calcheck(command, "--help").out
        assert int(every[1]) == len(re.findall(r"^│ {1,5}(?:\* +)?--[a-z]", shown, re.MULTILINE))


def test_the_short_help_has_options_that_are_declared_as_common(calcheck):
    shown = calcheck("evaluate", "-h").out
    for flag in ("--metrics", "--inputs", "--embedding", "--target", "--mean", "--std", "--time", "--table"):
        assert f"  {flag} " in shown or f", {flag} " in shown


def test_old_names_of_commands_work_and_the_help_does_not_list_them(calcheck):
    listed = {name for names in PANELS.values() for name in names}
    for name in ("prune", "trend", "merge", "convert"):
        assert name not in listed
        assert "Usage" in calcheck(name, "--help").out
    assert {"report", "check", "diff"} <= listed


@pytest.mark.parametrize(
    ("command", "own"),
    [
        ("cce", ["Metric"]),
        ("evaluate", ["Metrics", "Rules"]),
        ("check", ["Rules", "Metrics"]),
        ("compare", ["Comparison", "Metric cce"]),
        ("reject", ["Rejection", "Criterion cce"]),
        ("sweep", ["Sweep", "Metric"]),
        ("mcmd", ["Metric"]),
        ("inspect", ["Output"]),
    ],
)
def test_the_own_options_of_a_command_come_before_those_of_columns(calcheck, command, own):
    found = list(panels(calcheck(command, "--help").out))
    assert found[: len(own) + 2] == ["Arguments", "Options", *own]
    assert found[-1] == "Columns"


@pytest.mark.parametrize("command", ["evaluate", "monitor", "slices", "zms"])
def test_lines_of_the_help_break_only_where_they_are_full(calcheck, command):
    """A line of a paragraph is broken where the next word has no room in 80 columns."""
    above = panels_above(calcheck(command, "--help").out)
    for paragraph in above:
        for line, following in pairwise(paragraph):
            assert len(line) + len(" " + following.split()[0]) > WIDTH


# the version


def test_the_version_names_those_of_the_dependencies(calcheck):
    lines = calcheck("--version").out.splitlines()
    assert lines[:3] == [f"calcheck {__version__}", f"Python {platform.python_version()}", f"numpy {np.__version__}"]
    assert f"typer {version('typer')}" in lines


def test_the_version_names_libraries_that_are_not_installed(calcheck, monkeypatch):
    monkeypatch.setattr("calcheck.cli.guide.LIBRARIES", ("no-such-library",))
    assert calcheck("--version").out.endswith("\nno-such-library (not installed)\n")


def test_the_version_names_every_dependency_of_the_project():
    project = tomllib.loads(PROJECT.read_text())["project"]
    extras = [name for extra, names in project["optional-dependencies"].items() if extra != "dev" for name in names]
    assert {re.match(r"[\w-]+", name)[0] for name in (*project["dependencies"], *extras)} == set(LIBRARIES)
