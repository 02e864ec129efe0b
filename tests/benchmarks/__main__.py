"""Speed and memory, as ratios measured side by side in one run: `python -m tests.benchmarks`.

Every promise of DESIGN.md section 7 that this version makes has a line here; nothing is asserted. Run it on an idle
machine: it takes about three minutes and 2 GB, plus ten minutes and 4 GB for the metrics of generative models.
With names, only these are run: `python -m tests.benchmarks start generative`; `many_rows=1000000` sets the rows.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

PLAIN = "--no-null"  # null distributions have their own lines
BARE_TYPER = """
import typer
app = typer.Typer()

@app.command()
def hello(name: str = "you"):
    'Say hello.'
    print(name)

@app.command()
def bye(name: str = "you"):
    'Say goodbye.'
    print(name)

app()
"""


@dataclass(frozen=True)
class Used:
    """What one process used: seconds of wall clock, and its largest resident memory in MB."""

    seconds: float
    megabytes: float


def process(*command):
    """Run a command, and return what it used according to the operating system.

    The peak memory of a child includes that of its parent at the start, so this process stays small: computations run
    in separate processes.
    """
    command = [str(part) for part in command]
    started = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} ended with {status}")
    return Used(time.perf_counter() - started, usage.ru_maxrss / 1024)


def saved(folder, n, d, draws=1):
    """Write predictions for a benchmark in a separate process, and return their path."""
    path = folder / f"{n}-{draws}.parquet"
    process(sys.executable, "-m", "tests.benchmarks.data", n, d, draws, path)
    return path


def against_the_closed_form(report, folder):
    """n = 4,000, d = 512, polynomial kernel, float64: the same numbers, from the same file."""
    path = saved(folder, 4000, 512)
    measured = json.loads(
        subprocess.check_output([sys.executable, "-m", "tests.benchmarks.in_process", path], text=True)
    )
    report(
        "cce 4,000 x 512, in process",
        f"{measured['calcheck']:.2f} s",
        f"{measured['closed form']:.1f} s",
        f"{measured['closed form'] / measured['calcheck']:.0f} x",
        f"CCE² to {measured['error']:.0e}",
    )
    started = [process(sys.executable, "-m", "calcheck", "cce", path, PLAIN) for _ in range(5)]
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
    """n = 12,000, d = 512: the Gram matrix stored and recomputed, float32 and float64."""
    path = saved(folder, 12_000, 512)
    for options in (["--precision", "float32"], ["--precision", "float32", "--memory", "64MB"], []):
        used = process(sys.executable, "-m", "calcheck", "cce", path, PLAIN, *options)
        name = " ".join(options) or "float64"
        report(f"cce 12,000 x 512, {name}", f"{used.seconds:.1f} s", "", "", f"{used.megabytes:.0f} MB")


def many_draws(report, folder):
    """Fifty draws per row against one, in turn: only the cost of their features grows."""
    one, many = (saved(folder, 4000, 512, draws) for draws in (1, 50))
    command = (sys.executable, "-m", "calcheck", "cce", PLAIN)
    pairs = [(process(*command, many).seconds, process(*command, one).seconds) for _ in range(3)]
    mine, other = (statistics.median(column) for column in zip(*pairs, strict=True))
    report(
        "cce 4,000 x 512, 50 draws a row", f"{mine:.2f} s", f"{other:.2f} s", f"1/{mine / other:.1f} x", "against one"
    )


def calibration(report, folder):  # noqa: ARG001 - makes its own data
    """Average and binned calibration against a minimal computation."""
    measured = json.loads(subprocess.check_output([sys.executable, "-m", "tests.benchmarks.calibration"], text=True))
    labels = {
        "bca": ("zms + rce, 10,000 resamples of 13,885 rows", "scipy's BCa, batch 50"),
        "ece": ("ece, 99 levels, 1,000,000 rows", "one ndtr, one histogram"),
        "ence": ("ence, 1,000,000 rows", "one argsort"),
    }
    for name, (what, other) in labels.items():
        times = measured[name]
        ratio = f"{times['ratio']:.1f} x" if times["ratio"] > 1 else f"1/{1 / times['ratio']:.1f} x"
        report(what, f"{times['mine']:.3f} s", f"{times['other']:.3f} s", ratio, f"against {other}")


def generative(report, folder):
    """Metrics of joint distributions against their naive pairwise form, and linear time against all pairs."""
    program = (sys.executable, "-m", "tests.benchmarks.generative")
    for name, what in (("ammd", "ammd, 1,000,000 x 2 draws"), ("jmmd", "jmmd, 10,000 x 2 draws, every pair")):
        found = json.loads(subprocess.check_output([*program, name], text=True))
        report(
            what,
            f"{found['mine']:.2f} s",
            f"{found['other']:.2f} s",
            f"{found['other'] / found['mine']:.1f} x",
            f"{found['mine_mb']:.0f} MB more, against {found['other_mb']:.0f}; to {found['error']:.0e}",
        )
    for n, d in [*((10_000, d) for d in (1, 4, 8, 13)), (100_000, 4), (100_000, 13)]:
        for kind, found in json.loads(subprocess.check_output([*program, "linear", f"{d}", f"{n}"])).items():
            report(
                f"jmmd, {n:,} x {d} columns, {kind}, linear",
                f"{found['mine']:.1f} s",
                f"{found['other']:.1f} s",
                f"{found['other'] / found['mine']:.1f} x",
                f"misses {found['of_value']:.1%}, {found['of_null']:.3f} std of the null; M = {found['rank']}",
            )
    path = folder / "draws.parquet"
    for rows in (250_000, 1_000_000):
        process(sys.executable, "-m", "tests.benchmarks.data", rows, 2, path)
        used = process(sys.executable, "-m", "calcheck", "ammd", path, PLAIN, "--no-bootstrap")
        report(f"ammd, {rows:,} x 2 draws, a file", f"{used.seconds:.1f} s", "", "", f"{used.megabytes:.0f} MB")


def everything(report, folder):
    """All metrics of 100,000 rows, and the bootstrap of 13,885, as processes."""
    for rows, arguments in ((100_000, ["evaluate"]), (13_885, ["evaluate", "--metrics", "zms,rce"])):
        path = folder / f"{rows}.parquet"
        process(sys.executable, "-m", "tests.benchmarks.data", rows, path)
        used = process(sys.executable, "-m", "calcheck", arguments[0], path, PLAIN, *arguments[1:])
        name = " ".join(arguments)
        report(f"{name}, {rows:,} rows", f"{used.seconds:.1f} s", "", "", f"{used.megabytes:.0f} MB")


def reading(report, folder):
    """A million rows of three columns against pyarrow; ensembles of 100 that do not fit in memory, in batches."""
    path = folder / "narrow.parquet"
    process(sys.executable, "-m", "tests.benchmarks.data", 1_000_000, path)
    times = json.loads(subprocess.check_output([sys.executable, "-m", "tests.benchmarks.reading", path], text=True))
    seconds = f"{1000 * times['mine']:.1f} ms", f"{1000 * times['other']:.1f} ms"
    report("reading y, mean, std, 1,000,000 rows", *seconds, f"1/{times['ratio']:.2f} x", "against pyarrow")
    for rows in (250_000, 1_000_000):
        path = folder / f"{rows}.parquet"
        process(sys.executable, "-m", "tests.benchmarks.data", rows, 100, path)
        for metric in ("crps", "ece"):
            used = process(sys.executable, "-m", "calcheck", metric, path, PLAIN, "--no-bootstrap")
            report(f"{metric}, {rows:,} x 100 samples", f"{used.seconds:.1f} s", "", "", f"{used.megabytes:.0f} MB")
        path.unlink()


def many_rows(report, folder, rows=10_000_000):
    """All metrics of y, mean and std, against reading them by pyarrow, one ndtr and one argsort, in turn."""
    path = folder / "many.parquet"
    process(sys.executable, "-m", "tests.benchmarks.data", rows, path)
    measured = subprocess.check_output([sys.executable, "-m", "tests.benchmarks.many_rows", path], text=True)
    times = json.loads(measured)
    seconds = f"{times['mine']:.1f} s", f"{times['other']:.1f} s"
    report(f"evaluate, {rows:,} rows, in process", *seconds, f"1/{times['ratio']:.1f} x", "read, one ndtr, one argsort")
    for command in ("evaluate", "crps", "nll"):
        used = process(sys.executable, "-m", "calcheck", command, path, PLAIN, "--no-bootstrap")
        report(f"{command}, {rows:,} rows", f"{used.seconds:.1f} s", "", "", f"{used.megabytes:.0f} MB")
    path.unlink()


def references(report, folder):
    """Null distributions: R = 200 replicates against none, in turn."""
    path = saved(folder, 4000, 512)
    measured = subprocess.check_output([sys.executable, "-m", "tests.benchmarks.in_process", path, "200"], text=True)
    times = json.loads(measured)
    seconds = f"{times['simulated']:.2f} s", f"{times['calcheck']:.2f} s"
    report("cce 4,000 x 512, R = 200", *seconds, f"1/{times['simulated'] / times['calcheck']:.1f} x", "against none")
    long = saved(folder, 12_000, 512)
    process(sys.executable, "-m", "tests.benchmarks.data", 100_000, folder / "narrow.parquet")
    for name, command in {
        "cce 12,000 x 512, float32, R = 199": ("cce", long, "--precision", "float32"),
        "cce 4,000 x 512, 50 draws a row, R = 199": ("cce", saved(folder, 4000, 512, 50)),
        "evaluate, 100,000 rows, R = 199": ("evaluate", folder / "narrow.parquet", "--no-bootstrap"),
    }.items():
        used = process(sys.executable, "-m", "calcheck", *command)
        report(name, f"{used.seconds:.1f} s", "", "", f"{used.megabytes:.0f} MB")


def sweeps(report, folder):  # noqa: ARG001 - makes its own data
    """Seven settings of cce that share the fit to inputs, against one computation each."""
    measured = json.loads(subprocess.check_output([sys.executable, "-m", "tests.benchmarks.sweeping"], text=True))
    for name, times in measured.items():
        seconds = f"{times['mine']:.1f} s", f"{times['other']:.1f} s"
        report(
            f"sweep {name}", *seconds, f"{times['other'] / times['mine']:.1f} x", f"the same to {times['error']:.0e}"
        )


def start(report, folder):
    """Help against that of a bare Typer program with two commands, in turn; and a small run."""
    bare = folder / "bare.py"
    bare.write_text(BARE_TYPER)
    pairs = [
        (process(sys.executable, "-m", "calcheck", "--help").seconds, process(sys.executable, bare, "--help").seconds)
        for _ in range(11)
    ]
    mine, other = (statistics.median(column) for column in zip(*pairs[1:], strict=True))
    ratio = statistics.median(a / b for a, b in pairs[1:])
    report("calcheck --help", f"{mine:.2f} s", f"{other:.2f} s", f"1/{ratio:.1f} x", "against a bare Typer program")
    path = folder / "small.parquet"
    process(sys.executable, "-m", "tests.benchmarks.data", 400, path)
    command = (sys.executable, "-m", "calcheck", "zms", path, PLAIN, "--no-bootstrap")
    small = statistics.median(process(*command).seconds for _ in range(11))
    report("calcheck zms, 400 rows", f"{small:.2f} s", "", "", "without bootstrap and null distribution")


BENCHMARKS = (
    start,
    reading,
    calibration,
    everything,
    many_rows,
    against_the_closed_form,
    references,
    sweeps,
    many_draws,
    large,
    generative,
)


def main():
    """Run the benchmarks that are named, or all, and print one table."""
    table = Table(
        "benchmark", "calcheck", "other", "ratio", "", title=f"{os.cpu_count()} cores, numpy {version('numpy')}"
    )
    asked = dict((*word.split("="), "")[:2] for word in sys.argv[1:])
    with tempfile.TemporaryDirectory() as temporary:
        for benchmark in BENCHMARKS:
            if not asked or benchmark.__name__ in asked:
                rows = asked.get(benchmark.__name__)
                benchmark(table.add_row, Path(temporary), *([int(rows)] if rows else []))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
