"""What a terminal shows: tables that fit its width, and the progress of long computations."""

import re
import sys

import pytest

from calcheck.cli.inputs_and_outputs import show_progress
from calcheck.execution.run import Run
from tests.helpers.files import columns, write

FAST = ("--metrics", "zms,ece,confidence-curve", "--resamples", 200, "--replicates", 19)


def lines_of(text):
    """Return the lines that a terminal shows, without colors and movements of the cursor."""
    return [line.rstrip() for line in re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", text).splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize(("width", "more"), [("60", "… 2 columns more: --format csv"), ("100", None)])
def test_a_report_fits_the_terminal(terminal, preds, width, more):
    lines = lines_of(terminal("evaluate", preds, *FAST, "--table", COLUMNS=width, progress=False))
    wrapped = [line for line in lines[2:] if "preds.parquet" not in line]  # file names are not wrapped
    assert max(map(len, wrapped)) <= int(width)
    assert [line for line in lines if line.startswith("…")] == ([more] if more else [])
    head = next(line.split() for line in lines if line.startswith("metric"))
    assert {"metric", "value", "p", "verdict"} <= set(head)
    assert ("interval" in head) == ("ζ" in head) == (more is None)
    assert any(line.startswith("confidence-curve") for line in lines)


@pytest.mark.slow
def test_a_terminal_of_less_than_60_columns_gets_60(terminal, preds):
    lines = lines_of(terminal("mae", preds, "--no-null", COLUMNS="20", progress=False))
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


# progress


@pytest.fixture
def shown(monkeypatch, capsys):
    """Report stages and shares on standard error after a delay in seconds, and return the lines that it then shows."""

    def run(*reports, delay=-1.0, terminal=True):
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
        with show_progress(delay) as report:
            for stage, share in reports:
                report(stage, share)
        return lines_of(capsys.readouterr().err.replace("\r", "\n"))

    return run


def test_progress_names_metric_and_phase_with_share_and_time_left(shown):
    line = [line for line in shown(("cce: replicates", 0.25)) if "cce" in line][-1]
    assert re.fullmatch(r"cce: replicates [━╸╺ ]+ 25% --:-- left", line)
    assert len(line) <= 60


def test_a_completed_phase_is_replaced_by_the_next(shown):
    lines = shown(("cce: kernel", 0.5), ("cce: kernel", 1.0), ("cce: replicates", 0.1))
    last = max(place for place, line in enumerate(lines) if "replicates" in line)
    assert not any("kernel" in line for line in lines[last:])


def test_progress_is_silent_at_first_and_without_a_terminal(shown):
    assert shown(("kernel", 0.5))
    assert shown(("kernel", 0.5), delay=1e9) == []
    assert shown(("kernel", 0.5), terminal=False) == []


def test_stages_of_a_prefixed_run_start_with_its_name():
    found = []
    run = Run(progress=lambda stage, share: found.append((stage, share)))
    run.prefixed("model").prefixed("cce").progress("kernel", 0.5)
    assert found == [("model: cce: kernel", 0.5)]


def test_metrics_and_models_are_named_in_their_stages(preds):
    import calcheck as package
    from calcheck.metrics.scores import Crps
    from calcheck.metrics.spread import Lzms
    from calcheck.models.alignment import Model
    from calcheck.models.comparison import compare

    stages = []
    run = Run(resamples=200, replicates=19, progress=lambda *stage: stages.append(stage[0]))
    source = package.read(preds)
    compare([Model.from_source(name, source) for name in "ab"], [Lzms(), Crps()], swaps=20, run=run)
    assert {"models", "a: lzms: resamples", "b: metrics"} <= set(stages)
