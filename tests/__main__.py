"""Every check of the project: format, lint, names, types, layers, docs, tests. `python -m tests [--all | --rest]`.

Simulations draw a quarter of their data sets or fewer. With ``--all`` they draw all, tests marked ``slow`` run too, and
the benchmarks print their table. With ``--rest``, only the tests run that the default leaves out or reduces.
"""

import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
OURS = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith("CALCHECK_") and name != "PYTHONDONTWRITEBYTECODE"
} | {"CALCHECK_NO_CONFIG": "1"}
"""No settings of calcheck; and modules are compiled once, not by each of the hundreds of processes that run it."""
ALONE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Products of matrices take one thread each: tests run on every core already, and more would spin."""
GUIDES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "README.md", *ROOT.glob("calcheck/guides/*.md")))


def blocks(guide: str) -> int:
    """Return the number of blocks of a guide that cog writes."""
    return (ROOT / guide).read_text(encoding="utf-8").count("[[[cog")


PAGES = sorted(filter(blocks, GUIDES), key=blocks, reverse=True)
"""Guides that cog writes, in two processes that import the program once each."""
CHECKS = (
    ["ruff format --check ."],
    ["ruff check ."],
    [
        "mypy",
        *(f"cog --check {shlex.join(PAGES[part::2])}" for part in (0, 1)),
        "python -m tests.reference --check",
        "python -m tests.names",
        "lint-imports",
    ],
)
"""Commands; those of one check run at the same time, one a core, the longest first."""
TESTS = "pytest -n auto --dist worksteal"
BENCHMARKS = "python -m tests.benchmarks"


def main(arguments: list[str]) -> int:
    """Run the checks in order; stop at the first that fails."""
    plans = {
        (): (*CHECKS, [TESTS]),
        ("--all",): (*CHECKS, [f"{TESTS} --all"], [BENCHMARKS]),
        ("--rest",): ([f"{TESTS} --rest"],),
    }
    if tuple(arguments) not in plans:
        sys.stdout.write(f"unknown arguments {shlex.join(arguments)}: only --all or --rest is known\n")
        return 2
    return next((1 for check in plans[*arguments,] if not passes(check)), 0)


def passes(check: list[str]) -> bool:
    """Run commands at the same time; return whether all succeed."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return all(list(pool.map(succeeds, check)))


def succeeds(command: str) -> bool:
    """Run a command of this environment; return whether it succeeds."""
    sys.stdout.write(f"· {command}\n")
    sys.stdout.flush()
    program, *arguments = shlex.split(command)
    environment = OURS if command == BENCHMARKS else OURS | ALONE
    failed = subprocess.call([Path(sys.executable).with_name(program), *arguments], cwd=ROOT, env=environment)
    if failed:
        sys.stdout.write(f"failed: {command}\n")
    return not failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
