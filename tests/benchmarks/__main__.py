"""Speed and memory, as ratios taken side by side in one run: `python -m tests.benchmarks`.

Every promise of DESIGN.md section 7 that this version makes has a line here; nothing is asserted. Run it on an idle
machine: it takes about three minutes and 2 GB.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from calcheck import evaluate, read
from calcheck.metrics.cce import Cce
from tests.benchmarks.closed_form import cce_of_file
from tests.files import vector_column

BARE_TYPER = """
import typer
app = typer.Typer()

@app.command()
def hello(name: str = "you"):
    'Say hello.'
    print(name)

app()
"""


@dataclass(frozen=True)
class Used:
    """What one process used: seconds of wall clock, and its largest resident memory in MB."""

    seconds: float
    megabytes: float


def process(*command):
    """Run a command to its end, and let the operating system say what it used."""
    started = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(map(str, command))} ended with {status}")
    return Used(time.perf_counter() - started, usage.ru_maxrss / 1024)


def saved(folder, n, d):
    """Write n predictions with embeddings of d numbers in 20 strong directions and one saved draw each."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 20)) @ rng.normal(size=(20, d)) + 0.5 * rng.normal(size=(n, d))
    mean = x @ rng.normal(size=d) / np.sqrt(20 * d)
    y, draw = mean + rng.normal(size=(2, n))
    path = folder / f"{n}.parquet"
    table = pa.table({"y": y, "sample_0": draw, "embedding": vector_column(x.astype(np.float32))})
    pq.write_table(table, path)
    return str(path)


def timed(function):
    """Return a result and the seconds it took."""
    started = time.perf_counter()
    result = function()
    return result, time.perf_counter() - started


def against_the_closed_form(report, folder):
    """n = 4,000, d = 512, polynomial kernel, float64: the same numbers, from the same file."""
    path = saved(folder, 4000, 512)
    rows = {}
    source = read(path)
    source.predictions()

    def calcheck():
        evaluate(source, [Cce()], sink=lambda *handed: rows.update(handed[-1].columns))

    ours = [timed(calcheck)[1] for _ in range(3)]
    squared, naive = timed(lambda: cce_of_file(path))
    ours += [timed(calcheck)[1] for _ in range(2)]
    error = np.abs(rows["cce"] ** 2 - squared).max()
    mine = statistics.median(ours)
    report(
        "cce 4,000 x 512, in process",
        f"{mine:.2f} s",
        f"{naive:.1f} s",
        f"{naive / mine:.0f} x",
        f"CCE² to {error:.0e}",
    )
    started = [process(sys.executable, "-m", "calcheck", "cce", path) for _ in range(3)]
    other = process(sys.executable, "-m", "tests.benchmarks.closed_form", path)
    mine = statistics.median(used.seconds for used in started)
    report(
        "cce 4,000 x 512, with process start",
        f"{mine:.2f} s",
        f"{other.seconds:.1f} s",
        f"{other.seconds / mine:.0f} x",
        f"{started[0].megabytes:.0f} MB against {other.megabytes:.0f} MB",
    )


def large(report, folder):
    """n = 12,000, d = 512: kept and recomputed, float32 and float64."""
    path = saved(folder, 12_000, 512)
    for options in (["--precision", "float32"], ["--precision", "float32", "--memory", "64MB"], []):
        used = process(sys.executable, "-m", "calcheck", "cce", path, *options)
        name = " ".join(options) or "float64"
        report(f"cce 12,000 x 512, {name}", f"{used.seconds:.1f} s", "", "", f"{used.megabytes:.0f} MB")


def start(report, folder):
    """Help against that of a bare Typer program, in turn."""
    bare = folder / "bare.py"
    bare.write_text(BARE_TYPER)
    pairs = [
        (process(sys.executable, "-m", "calcheck", "--help").seconds, process(sys.executable, bare, "--help").seconds)
        for _ in range(11)
    ]
    mine, other = (statistics.median(column) for column in zip(*pairs[1:], strict=True))
    ratio = statistics.median(a / b for a, b in pairs[1:])
    report("calcheck --help", f"{mine:.2f} s", f"{other:.2f} s", f"1/{ratio:.1f} x", "against a bare Typer program")


def main():
    """Run all, and print one table."""
    table = Table(
        "benchmark", "calcheck", "other", "ratio", "", title=f"{os.cpu_count()} cores, numpy {np.__version__}"
    )
    with tempfile.TemporaryDirectory() as temporary:
        for benchmark in (start, against_the_closed_form, large):
            benchmark(table.add_row, Path(temporary))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
