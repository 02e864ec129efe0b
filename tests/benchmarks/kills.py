"""Runs that are killed at random moments: `python -m tests.benchmarks.kills [runs]` prints what they left behind.

Each command replaces files, is killed by SIGKILL, and then runs to its end. After a kill, each file is the old or the
new one, byte for byte, and a state has all its rows; after the next run, nothing else is left in the folder. A full
disk is a folder of 64 KiB, where it can be mounted.
"""

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from tests.helpers.files import write

RUNS = 200
ROWS = 400
PROGRAM = (sys.executable, "-m", "calcheck")
FAST = ("--no-null", "--no-bootstrap")
COMMANDS = {
    "evaluate -o": (("evaluate", "a.parquet", "--metrics", "zms,ence", *FAST, "-o", "out.json"), ["out.json"]),
    "--save-state": (("evaluate", "a.parquet", "--metrics", "zms", "--save-state", "a.state"), ["a.state"]),
    "--pointwise": (("zms", "a.parquet", *FAST, "--pointwise", "rows.parquet"), ["rows.parquet"]),
    "--pointwise csv": (("zms", "a.parquet", *FAST, "--pointwise", "rows.csv"), ["rows.csv"]),
    "convert": (("convert", "a.parquet", "-o", "b.csv"), ["b.csv"]),
    "report": (("report", "a.parquet", "--metrics", "zms", *FAST, "-o", "page.html"), ["page.html"]),
    "monitor": (("monitor", "m.state", "b.parquet", "--no-null", "--save-state", "m.state"), ["m.state"]),
    "recalibrate": (
        (
            *("recalibrate", "a.parquet", "--method", "scale", "--to", "b.parquet", "--no-null"),
            *("--export", "map.json", "--corrected", "fixed.parquet"),
        ),
        ["map.json", "fixed.parquet"],
    ),
    "checkpoint": (
        (
            *("evaluate", "a.parquet", "--metrics", "zms", "--no-bootstrap"),
            *("--save-state", "c.state", "--checkpoint", "c.checkpoint", "--resume"),
        ),
        ["c.state"],
    ),
}


def made(folder):
    """Write two files of predictions that follow each other in time."""
    rng = np.random.default_rng(0)
    for number, name in enumerate("ab"):
        std = rng.uniform(0.5, 2, ROWS)
        day = np.arange(ROWS) + ROWS * number
        rows = {"day": day, "y": std * rng.normal(size=ROWS), "mean": np.zeros(ROWS), "std": std}
        write(folder / f"{name}.parquet", rows)


def run(folder, arguments, **options):
    """Run a command to its end, and return how it ended."""
    return subprocess.run([*PROGRAM, *arguments], cwd=folder, capture_output=True, text=True, check=False, **options)


def killed(folder, arguments, seconds):
    """Kill a command after some seconds; return whether it still ran."""
    process = subprocess.Popen([*PROGRAM, *arguments], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
    return process.wait() < 0


def bytes_of(folder, names):
    """Return the content of files; None where there is none."""
    return {name: (folder / name).read_bytes() if (folder / name).exists() else None for name in names}


def left_in(folder):
    """Return the temporary files in a folder."""
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def campaign(folder, name, runs, rng, counts):
    """Kill a command at random moments of its run, and count what is wrong afterwards."""
    arguments, outputs = COMMANDS[name]
    if name == "monitor":
        run(folder, ("monitor", "a.parquet", "--time", "day", "--no-null", "--save-state", "m.state"))
    started = time.monotonic()
    before = bytes_of(folder, outputs)
    whole = run(folder, arguments)
    length = time.monotonic() - started
    if whole.returncode:
        sys.exit(f"{name}: {whole.stderr}")
    after = bytes_of(folder, outputs)
    for _ in range(runs):
        for output, content in before.items():
            if name == "monitor":
                (folder / output).write_bytes(content)
            else:
                (folder / output).write_bytes(b"old")
        old = bytes_of(folder, outputs)
        counts["killed"] += killed(folder, arguments, length * rng.uniform(0.3, 1.05))
        counts["runs"] += 1
        found = bytes_of(folder, outputs)
        counts["old"] += found == old
        counts["new"] += found == after
        counts["broken"] += any(found[each] not in (old[each], after[each]) for each in outputs)
        counts["left behind"] += len(left_in(folder))
    if name == "monitor":
        (folder / "m.state").write_bytes(before["m.state"])
    counts["next run fails"] += run(folder, arguments).returncode != 0
    counts["differs after the next run"] += bytes_of(folder, outputs) != after
    counts["never cleaned"] += len(left_in(folder))
    for path in (*folder.glob(".*"), *folder.glob("*.checkpoint")):
        path.unlink()


def full_disk(counts):
    """Count what is wrong after each command wrote to a full disk."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", name], check=False, capture_output=True
        )
        if mounted.returncode:
            return
        try:
            made(folder)
            (folder / "filler").write_bytes(b"x" * 4096 * 6)
            for arguments, outputs in COMMANDS.values():
                if "monitor" in arguments:
                    continue
                for output in outputs:
                    (folder / output).write_bytes(b"old")
                ended = run(folder, arguments)
                counts["disk: refused" if ended.returncode == 2 else "disk: written"] += 1
                wrong = ended.returncode not in (0, 2) or (ended.returncode == 2 and ended.stderr.count("\n") != 1)
                wrong |= bool(left_in(folder))
                wrong |= ended.returncode == 2 and any(
                    content != b"old" for content in bytes_of(folder, outputs).values()
                )
                counts["disk: wrong"] += wrong
                if wrong:
                    print(arguments, ended.returncode, ended.stderr, left_in(folder))
                for output in outputs:
                    (folder / output).unlink(missing_ok=True)
        finally:
            subprocess.run(["umount", name], check=False)


def main(runs=RUNS):
    """Run the campaign, and print its counts by command."""
    rng, total = random.Random(0), Counter()
    for name in COMMANDS:
        with tempfile.TemporaryDirectory() as folder:
            made(Path(folder))
            counts = Counter()
            campaign(Path(folder), name, -(-runs // len(COMMANDS)), rng, counts)
            print(f"{name}: {dict(counts)}", flush=True)
            total += counts
    full_disk(total)
    print(f"all: {dict(total)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
