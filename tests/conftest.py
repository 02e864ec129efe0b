"""A neutral environment, files, runners of the program; `--all` and `--rest`, for full simulations and slow tests.

The environment has no forced color, no settings, and 100 columns, those of the help 80.
"""

import gc
import json
import os
import subprocess
import sys
from dataclasses import dataclass, fields
from functools import cache

import numpy as np
import pytest

from calcheck.cli import app
from calcheck.execution.run import Limits
from calcheck.inference import binned_validity, bootstrap, intervals, null_distribution, paired_comparison
from calcheck.streaming import metric_accumulators
from tests.helpers import simulations
from tests.helpers.files import columns, write

for name in ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "NO_COLOR", "TERMINAL_WIDTH"):
    os.environ.pop(name, None)
for name in [name for name in os.environ if name.startswith("CALCHECK_")]:
    os.environ.pop(name)
os.environ["CALCHECK_NO_CONFIG"] = "1"  # ignore configuration files above this folder
os.environ["COLUMNS"], os.environ["TERMINAL_WIDTH"] = "100", "80"  # Of reports, and of the help


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="draw all data sets of simulations, and run slow tests")
    parser.addoption("--rest", action="store_true", help="as --all, without the tests that run in full by default")


def pytest_configure(config):
    simulations.full = config.getoption("--all") or config.getoption("--rest")


def pytest_collection_modifyitems(config, items):
    """Leave slow tests out, unless all are asked for, or those that run in full without them."""
    if config.getoption("--rest"):
        left_out = [item for item in items if not is_reduced(item)]
    else:
        left_out = [] if config.getoption("--all") else [item for item in items if item.get_closest_marker("slow")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]


def pytest_collection_finish():
    """Keep what was collected out of later searches for garbage, which would visit it hundreds of times."""
    gc.collect()
    gc.freeze()


def is_reduced(item):
    """Return whether a test is left out by default, or draws fewer data sets."""
    simulates = item.path.suffix == ".py" and getattr(item, "originalname", None) in simulations.simulated(item.path)
    return bool(item.get_closest_marker("slow")) or simulates


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    def refused(self):
        """Return the one line that says why; fail if there is more than that."""
        assert self.code == 2, self
        assert self.out == ""
        assert self.err.startswith("calcheck: ")
        assert self.err.count("\n") == 1
        return self.err


PROGRAM = cache(app.make_program)
"""The program, whose commands are made once, when they are first called."""
FEWER = (
    (null_distribution, "REPLICATES", 59),
    (null_distribution, "MAX_REPLICATES", 59),
    (bootstrap, "RESAMPLES", 400),
    (intervals, "RESAMPLES", 400),
    (intervals, "MAX_RESAMPLES", 400),
    (binned_validity, "RESAMPLES", 400),
    (metric_accumulators, "RESAMPLES", 400),
    (paired_comparison, "SWAPS", 999),
)
"""Numbers that the program draws by default, and does not exceed, in tests that do not depend on them."""


@pytest.fixture(scope="session", autouse=True)
def engine():
    """Return the engine of pictures, which draws each specification only once for all tests."""
    import vl_convert

    drawn, vegalite_to_svg = {}, vl_convert.vegalite_to_svg

    def once(spec, **options):
        key = json.dumps([spec, options])
        if key not in drawn:
            drawn[key] = vegalite_to_svg(spec, **options)
        return drawn[key]

    vl_convert.vegalite_to_svg = once
    yield vegalite_to_svg
    vl_convert.vegalite_to_svg = vegalite_to_svg


@pytest.fixture
def calcheck(request, monkeypatch, capfd):
    """Run the program in this process, as its entry point does.

    It draws less, and is made once, except in tests marked ``defaults`` or ``new_program``.
    """
    from calcheck.cli import main

    if not request.node.get_closest_marker("defaults"):
        for module, name, number in FEWER:
            monkeypatch.setattr(module, name, number)
    if not request.node.get_closest_marker("new_program"):
        monkeypatch.setattr(app, "make_program", PROGRAM)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["calcheck", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capfd.readouterr()
        return Ended(ended.value.code, captured.out, captured.err)

    return run


@pytest.fixture
def process():
    """Run the program as a separate process."""

    def run(*arguments, **options):
        options = {"capture_output": True, "text": True, "timeout": 60} | options
        return subprocess.run([sys.executable, "-m", "calcheck", *map(str, arguments)], check=False, **options)

    return run


@pytest.fixture
def preds(tmp_path):
    """Return the path of a small file of predictions with an embedding and a narrow column."""
    parts = columns(n=40) | {"topic": np.array(["news", "prose"] * 20)}
    return write(tmp_path / "preds.parquet", parts)


@pytest.fixture
def limits(monkeypatch):
    """Change the limits of runs of the command line, which has no options for them."""

    def change(**sizes):
        names = (each.name for each in fields(Limits))
        changed = dict(zip(names, Limits.__init__.__defaults__, strict=True)) | sizes
        monkeypatch.setattr(Limits.__init__, "__defaults__", tuple(changed.values()))

    return change


@pytest.fixture
def terminal():
    """Run the program in a terminal, and return what it shows; its exit code must be 0.

    With ``progress=False``, standard error is not shown.
    """
    pty = pytest.importorskip("pty")

    def run(*arguments, progress=True, **variables):
        ours, theirs = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", **variables}
        command = [sys.executable, "-m", "calcheck", *map(str, arguments)]
        errors = theirs if progress else subprocess.DEVNULL
        with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=errors, env=environment) as program:
            os.close(theirs)
            shown = b"".join(iter(lambda: read_terminal(ours), b""))
        os.close(ours)
        assert program.returncode == 0
        return shown.decode()

    return run


def read_terminal(descriptor):
    """Read what a terminal shows; empty after the program has exited."""
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:
        return b""
