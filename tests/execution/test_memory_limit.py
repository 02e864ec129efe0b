"""Limits on memory, as set by ulimit -v."""

import resource
import subprocess
import sys

import pytest

from calcheck.charts import drawing
from calcheck.errors import OptionError
from calcheck.execution import run

GIB = 1 << 30


@pytest.fixture
def within(process):
    """Run the program as a separate process within a limit on memory in bytes."""

    def run(most, *arguments):
        return process(
            *arguments, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
        )

    return run


@pytest.mark.parametrize("kib", [100_000, 200_000, 300_000, 400_000, 1_000_000])
def test_a_limit_below_what_the_libraries_need_is_refused_in_one_line(within, preds, kib):
    ended = within(kib * 1024, "zms", preds)
    assert (ended.returncode, ended.stdout) == (2, "")
    line = f"calcheck: the limit on memory (ulimit -v {kib}) is too low: at least 1900000 are needed\n"
    assert ended.stderr == line


def test_the_help_needs_little_memory(within):
    assert within(200_000 * 1024, "--help").returncode == 0


@pytest.mark.parametrize("error", [ImportError("libarrow.so: failed to map segment"), SystemError("no memory")])
def test_errors_of_libraries_within_a_limit_are_one_line(calcheck, preds, monkeypatch, error):
    def fail(*_args, **_kwargs):
        raise error

    monkeypatch.setattr("calcheck.outputs.evaluate", fail)
    with pytest.raises(type(error)):
        calcheck("evaluate", preds)
    monkeypatch.setattr("calcheck.cli.app.address_space_limit", lambda: GIB)
    line = calcheck("evaluate", preds).refused()
    assert line.startswith("calcheck: out of memory")
    assert f"({error}) (there is a limit on memory: ulimit -v)" in line


@pytest.fixture
def no_engine(monkeypatch):
    """Let the engine of pictures fail to start, as within a limit on memory."""
    monkeypatch.setattr(drawing, "address_space_limit", lambda: GIB)
    monkeypatch.setattr(drawing, "PROBE", "import os; os.abort()")
    drawing.engine_starts.cache_clear()
    yield
    drawing.engine_starts.cache_clear()


@pytest.mark.usefixtures("no_engine")
def test_a_page_is_written_without_pictures_if_their_engine_does_not_start(calcheck, preds, tmp_path):
    page = tmp_path / "page.html"
    ended = calcheck("report", preds, "--metrics", "zms", "--no-null", "--no-bootstrap", "-o", page)
    assert ended.code == 0
    assert ended.err == f"calcheck: {drawing.NO_ENGINE}; the page is without them\nwrote {page}\n"
    assert drawing.NO_ENGINE in page.read_text(encoding="utf-8")
    assert "<svg" not in page.read_text(encoding="utf-8")
    assert calcheck("zms", preds, "--plot", tmp_path / "zms.svg").refused() == f"calcheck: {drawing.NO_ENGINE}\n"


def test_without_a_limit_the_engine_is_not_tried(monkeypatch):
    drawing.engine_starts.cache_clear()
    monkeypatch.setattr(drawing, "PROBE", "raise SystemExit(1)")
    assert run.address_space_limit() is None
    assert drawing.engine_starts()


def test_the_engine_is_tried_by_drawing():
    assert subprocess.run([sys.executable, "-c", drawing.PROBE], check=False).returncode == 0


def test_the_limit_is_that_of_the_process(monkeypatch):
    monkeypatch.setattr(run, "address_space_limit", lambda: 400_000 * run.KIB)
    with pytest.raises(OptionError, match=r"the limit on memory \(ulimit -v 400000\) is too low"):
        run.require_address_space()
