"""CCE from a thousand to a million rows of 512 numbers: naive, exact and with landmarks.

`python -m tests.benchmarks.scaling table [MOST_ROWS] [PLOT]` prints seconds, peak memory and error of each, and plots
them on log-log axes. `python -m tests.benchmarks.scaling million [ROWS]` times a million rows with null distributions,
of a right and a wrong model, against plain products of the same size and reading by pyarrow; and a tenth of the rows.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from calcheck.charts import drawing
from calcheck.charts.picture import Axis, Line, Panel, Picture
from tests.benchmarks.__main__ import PLAIN, process

D = 512
ROWS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
MOST = {"naive": 10_000, "exact": 30_000, "nystroem": 1_000_000}  # rows that take a few minutes
BLOCK = 4096  # rows of the plain products


def clustered(folder, n, percent=100):
    """Write predictions with embeddings in a separate process, and return their path."""
    path = folder / f"{n}-{percent}.parquet"
    if not path.exists():
        process(sys.executable, "-m", "tests.benchmarks.data", "clustered", n, D, percent, path)
    return path


def naive(path):
    """Return mean CCE by explicit inverses and all Gram matrices, with one draw per row, like the published code."""
    from tests.helpers.naive import cce_squared, input_kernel

    table = pq.read_table(path)
    y, mean, std = (table[name].to_numpy() for name in ("y", "mean", "std"))
    x = table["embedding"].combine_chunks().flatten().to_numpy().reshape(len(y), -1).astype(np.float64)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    draw = mean + std * np.random.default_rng(1).standard_normal(len(y))
    k_x = input_kernel("polynomial", gamma=1.0)
    found = cce_squared(x, y[:, None], draw[:, None, None], k_x=k_x, gamma_y=1 / (2 * y.var(ddof=1)))
    return float(np.sqrt(found).mean())


def calcheck(path, *options):
    """Run `calcheck cce`, and return its result with what it used."""
    out = path.with_suffix(".json")
    used = process(sys.executable, "-m", "calcheck", "cce", path, *options, "--format", "json", "-o", out)
    return json.loads(out.read_text())["results"][0], used


def measured(name, path):
    """Return what one way of computing CCE used, its value, and its estimated error."""
    if name == "naive":
        return process(sys.executable, "-m", "tests.benchmarks.scaling", "naive", path), None, None
    result, used = calcheck(path, PLAIN, "--solver", "cg" if name == "exact" else "nystroem")
    return used, result["value"], result["details"]["solver"].get("error")


def table(most, plot):
    """Print one line for each number of rows, and plot seconds and memory."""
    shown = Table("rows", *(f"{name}: s, MB" for name in MOST), "estimated error", "true error")
    lines = {name: [] for name in MOST}
    with tempfile.TemporaryDirectory() as temporary:
        for n in (n for n in ROWS if n <= most):
            path = clustered(Path(temporary), n)
            found = {name: measured(name, path) for name, limit in MOST.items() if n <= limit}
            cells = []
            for name in MOST:
                used = found[name][0] if name in found else None
                cells.append("" if used is None else f"{used.seconds:.1f}, {used.megabytes:.0f}")
                if used is not None:
                    lines[name].append((n, used.seconds, used.megabytes))
            _, value, error = found["nystroem"]
            exact = found["exact"][1] if "exact" in found else None
            missed = "" if exact is None else f"{abs(value / exact - 1):.2%}"
            shown.add_row(f"{n:,}", *cells, f"{error / value:.2%}", missed)
            path.unlink()
    Console(width=120).print(shown)
    if plot:
        draw(lines, plot)


def draw(lines, path):
    """Draw seconds and peak memory against rows."""
    panels = [
        Panel(
            tuple(
                Line([point[0] for point in points], [point[place] for point in points], name)
                for name, points in lines.items()
            ),
            Axis("rows of 512 numbers", log=True),
            Axis(label, log=True),
        )
        for place, label in ((1, "seconds"), (2, "peak memory [MB]"))
    ]
    Path(path).write_bytes(drawing.draw(Picture(tuple(panels), "Cost of cce"), str(path)))


def floor(path, landmarks, validation_rows, columns):
    """Return the seconds of reading by pyarrow, and of plain products of the sizes that calcheck needs."""
    started = time.perf_counter()
    rows = 0
    for batch in pq.ParquetFile(path).iter_batches(1 << 14):
        rows += len(batch)
    reading = time.perf_counter() - started
    rng = np.random.default_rng(0)
    x, points = (rng.standard_normal((size, D), np.float32) for size in (BLOCK, landmarks + validation_rows))
    outputs = rng.standard_normal((BLOCK, columns), np.float32)
    started = time.perf_counter()
    for _ in range(-(-rows // BLOCK)):
        values = x @ points.T
        near = values[:, :landmarks].astype(np.float64)
        _ = near.T @ near, values[:, landmarks:].T @ values[:, :landmarks], values.T @ outputs
    return reading, time.perf_counter() - started


def million(rows):
    """Print the time for the rows of a right and a wrong model, for a tenth of the rows, and of the floor."""
    shown = Table("what", "seconds", "MB", "value", "error", "p", "verdict")

    def add(what, result, used):
        error = result["details"]["solver"]["error"] / result["value"]
        cells = f"{result['value']:.6f}", f"{error:.2%}", f"{result['p_value']:.3f}", result["verdict"]
        shown.add_row(what, f"{used.seconds:.1f}", f"{used.megabytes:.0f}", *cells)

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        path = clustered(folder, rows)
        process(sys.executable, "-m", "calcheck", "--version")  # warms up the file cache
        start = process(sys.executable, "-m", "calcheck", "cce", clustered(folder, 100), "--solver", "nystroem")
        result, used = calcheck(path)
        solver = result["details"]["solver"]
        columns = result["details"]["null"]["columns"] * (1 + result["details"]["null"]["replicates"])
        reading, products = json.loads(
            subprocess.check_output(
                [sys.executable, "-m", "tests.benchmarks.scaling", "floor", path]
                + [str(number) for number in (solver["landmarks"], solver["validation_rows"], columns)],
                text=True,
            )
        )
        add(f"{rows:,} rows, perfect, {solver['landmarks']:,} landmarks", result, used)
        path.unlink()
        add(f"{rows:,} rows, std x 0.8", *calcheck(clustered(folder, rows, 80)))
        options = ("--solver", "nystroem", "--landmarks", solver["landmarks"], "--replicates", 39)
        few, tenth = calcheck(clustered(folder, rows // 10), *options)
        add(f"{rows // 10:,} rows, the same landmarks", few, tenth)
    shown.add_row("floor: reading, products", f"{reading:.1f} + {products:.1f}", "", "", "", "", "")
    Console(width=120).print(shown)
    print(f"{used.seconds / (reading + products):.2f} x the floor; start-up {start.seconds:.1f} s;", end=" ")
    print(f"ten times the rows take {(used.seconds - start.seconds) / (tenth.seconds - start.seconds):.1f} x")


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    if what == "naive":
        print(naive(words[0]))
    elif what == "floor":
        print(json.dumps(floor(words[0], *map(int, words[1:]))))
    elif what == "million":
        million(int(words[0]) if words else 1_000_000)
    else:
        table(int(words[0]) if words else ROWS[-1], words[1] if len(words) > 1 else None)
