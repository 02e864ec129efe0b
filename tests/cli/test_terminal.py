"""What a terminal shows: tables that fit its width, and the progress of long computations."""

import re

import pytest

from tests.files import columns, write

FAST = ("--resamples", 200, "--replicates", 19)


def lines_of(text):
    """Return the lines that a terminal shows, without colors."""
    return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()]


@pytest.mark.parametrize(("width", "more"), [("60", "… 2 columns more: --format csv"), ("100", None)])
def test_a_report_fits_the_terminal(terminal, preds, width, more):
    lines = lines_of(terminal("evaluate", preds, *FAST, COLUMNS=width))
    assert max(map(len, lines[2:])) <= int(width)  # the name of the file is in one line
    assert [line for line in lines if line.startswith("…")] == ([more] if more else [])
    head = lines[3].split()
    assert {"metric", "value", "p", "verdict"} <= set(head)
    assert ("interval" in head) == ("ζ" in head) == (more is None)
    assert any(line.startswith("confidence-curve") for line in lines)


def test_a_terminal_of_less_than_60_columns_gets_60(terminal, preds):
    lines = lines_of(terminal("mae", preds, "--no-null", COLUMNS="20"))
    assert 20 < max(map(len, lines[2:])) <= 60


def test_listed_rows_have_the_inputs_before_the_other_columns(calcheck, tmp_path):
    parts = {name: values for name, values in columns(n=40).items() if name != "embedding"}
    others = {f"other_{place}": parts["y"] for place in range(12)}
    path = write(tmp_path / "many.parquet", {**others, "lat": parts["std"], "lon": parts["mean"], **parts})
    for command, arguments, named in (
        (
            "cce",
            ("--inputs", "lon,lat", "--no-null"),
            ["row", "id", "cce", "y", "mean", "std", "lon", "lat", "other_0"],
        ),
        ("ence", ("--by", "lat", "--no-null"), ["row", "id", "variance", "lat", "y", "mean", "std", "other_0"]),
    ):
        lines = calcheck(command, path, *arguments, "--worst", 2).out.splitlines()
        head = lines[lines.index("worst") + 1].split()
        assert head[: len(named)] == named
        left = 20 + len(named) - 8 - len(head) - (command == "cce")
        assert f"… {left} columns more: --format json" in lines
