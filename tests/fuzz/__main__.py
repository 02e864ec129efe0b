"""Run the program on damaged files, in reused processes: `python -m tests.fuzz`.

No file may cause a traceback, a warning, an invalid number, more than 20 s of processor time, more than 1 GB, or a
crash; each that does is kept in a folder with its output. `--only 17` repeats file number 17, and `--first 1000` starts
at file number 1,000. `--values` runs :mod:`tests.fuzz.values` instead, which takes about ten minutes.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.fuzz.damage import case
from tests.fuzz.program import READ, REFUSED
from tests.fuzz.seeds import FAMILIES, SEEDS
from tests.fuzz.values import run as run_values
from tests.fuzz.worker import Worker

FOUND = "found"


class Findings:
    """Counts of outcomes; files with bad outcomes are saved."""

    def __init__(self, number, keep):
        self.number = number
        self.keep = keep
        self.counts = Counter()
        self.bad = Counter()

    def add(self, index, outcomes):
        made = case(self.number, index, (*SEEDS, *FAMILIES))
        for outcome, story in outcomes:
            fine = outcome in (READ, REFUSED)
            self.counts[made.seed.ending, outcome if fine else FOUND] += 1
            if fine:
                continue
            self.bad[outcome] += 1
            folder = self.keep / str(index)
            folder.mkdir(parents=True, exist_ok=True)
            made.save(folder)
            again = f"python -m tests.fuzz --seed {self.number} --only {index}"
            commands = "\n".join(f"calcheck {' '.join(command)}" for command in made.commands)
            with (folder / "story.txt").open("a") as file:
                file.write(f"{outcome}\n{made.seed}\n{made.damages}\n{again}\n{commands}\n{story}\n")

    def print(self):
        """Print the outcomes for each format, and the bad ones by kind."""
        table = Table("format", READ, REFUSED, FOUND)
        for ending in dict.fromkeys(ending for ending, _ in self.counts):
            table.add_row(ending, *(f"{self.counts[ending, outcome]:,}" for outcome in (READ, REFUSED, FOUND)))
        console = Console(width=120)
        console.print(table)
        for outcome, count in self.bad.most_common():
            console.print(f"{count:6,} {outcome}", markup=False)
        if self.bad:
            console.print(f"kept in {self.keep}", markup=False)


def main():
    """Run the files, and print the outcomes."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir(), "calcheck-findings"))
    parser.add_argument("--only", type=int, help="the number of one file")
    parser.add_argument("--values", action="store_true", help="files with extreme values instead of damaged files")
    arguments = parser.parse_args()
    if arguments.values:
        return 1 if run_values(arguments.seed) else 0
    first, last = arguments.first, arguments.first + arguments.files
    wanted = range(first, last) if arguments.only is None else [arguments.only]
    indices, lock, findings = iter(wanted), threading.Lock(), Findings(arguments.seed, arguments.keep)

    def serve(_):
        with tempfile.TemporaryDirectory() as folder:
            worker = Worker(arguments.seed, folder)
            while True:
                with lock:
                    index = next(indices, None)
                if index is None:
                    break
                outcomes = worker.run(index)
                with lock:
                    findings.add(index, outcomes)
            worker.stop()

    started = time.perf_counter()
    with ThreadPoolExecutor() as threads:
        list(threads.map(serve, range(min(arguments.workers, len(wanted)))))
    seconds = time.perf_counter() - started
    findings.print()
    print(f"{len(wanted):,} files in {seconds:.0f} s: {len(wanted) / seconds:.1f} a second, two commands each")
    return 1 if findings.bad else 0


if __name__ == "__main__":
    sys.exit(main())
