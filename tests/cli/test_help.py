"""The help: what it shows first."""

import re

import pytest

from calcheck.cli.command_group import MAIN_METRICS


def panels(text):
    """Return the first words of the lines of each panel of a help text, by the title of the panel."""
    found = {}
    for line in text.splitlines():
        if match := re.match(r"╭─ (?P<title>.+?) ─", line):
            lines = found.setdefault(match["title"], [])
        elif match := re.match(r"│ \*? *(?P<word>[\w-]+)  ", line):
            lines.append(match["word"])
    return found


def test_the_help_shows_reports_and_five_metrics_first(calcheck):
    found = panels(calcheck("--help").out)
    assert list(found) == ["Options", "Reports", "Metrics", "More metrics", "Help with files", "Reference"]
    assert tuple(found["Metrics"]) == MAIN_METRICS == ("coverage", "zms", "ece", "crps", "cce")
    assert {"rce", "interval-score", "mcmd"} <= set(found["More metrics"])


@pytest.mark.parametrize(
    ("command", "own"),
    [
        ("cce", ["Metric"]),
        ("evaluate", ["Metrics"]),
        ("check", ["Rules"]),
        ("compare", ["Comparison"]),
        ("prune", ["Removal"]),
        ("reject", ["Rejection", "Criterion cce"]),
        ("sweep", ["Sweep", "Metric"]),
        ("mcmd", ["Metric"]),
        ("convert", ["Output"]),
    ],
)
def test_the_own_options_of_a_command_come_before_those_of_columns(calcheck, command, own):
    found = list(panels(calcheck(command, "--help").out))
    assert found[: found.index("Columns")] == ["Arguments", "Options", *own]
