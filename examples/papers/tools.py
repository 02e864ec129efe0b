"""What the scripts of the papers share: they ask calcheck, and print published and found numbers side by side."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ERRORS = 3.0  # Standard deviations that a published number may be away


@dataclass(frozen=True)
class Setting:
    """Where a script reads and writes, and how many data sets it simulates.

    Parameters
    ----------
    folder : Path
        Folder for simulated files.
    data : Path or None
        Folder of files that may not be distributed with calcheck.
    sets : int
        Number of simulated data sets.
    """

    folder: Path
    data: Path | None
    sets: int

    def file(self, *patterns: str) -> Path | None:
        """Return the first file below the data folder with one of the names; None, and a line, if there is none."""
        found = [path for pattern in patterns for path in sorted(self.data.rglob(pattern))] if self.data else []
        if not found:
            name = " or ".join(patterns)
            where = f"no {name} in {self.data}" if self.data else f"{name} is read from --data FOLDER"
            print(f"missing: {where}")
        return found[0] if found else None


@dataclass(frozen=True)
class Line:
    """A published number, and what calcheck finds.

    Parameters
    ----------
    name : str
        What the number is.
    published : float or None
        Number in the paper.
    found : sequence of float
        Values of simulated data sets, or a single value of the data of the paper.
    expected : float, optional
        Number that the settings of the paper lead to, where it differs from the published one.
    digits : int
        Number of decimals in the paper.
    simulated : bool
        Whether the values are of simulated data sets or of seeds, so that a single one has an unknown deviation.
    """

    name: str
    published: float | None
    found: Sequence[float]
    expected: float | None = None
    digits: int = 4
    simulated: bool = True

    @property
    def mean(self) -> float:
        """Mean of the found values."""
        return float(np.mean(self.found))

    @property
    def deviation(self) -> float | None:
        """Standard deviation over the data sets; None for a single value, for which it is unknown."""
        return float(np.std(self.found, ddof=1)) if len(self.found) > 1 else None

    @property
    def limit(self) -> float:
        """Largest difference that rounding and the choice of the data set explain."""
        spread = ERRORS * (self.deviation or 0.0) * (1 + 1 / len(self.found)) ** 0.5
        return float(spread + 0.5 * 10**-self.digits)

    @property
    def agrees(self) -> str:
        """Whether the found number is within the limit of the expected one; unknown for a single simulated data set."""
        goal = self.published if self.expected is None else self.expected
        if goal is None:
            return ""
        if self.simulated and self.deviation is None:
            return "? (--sets 2)"
        return "yes" if abs(self.mean - goal) <= self.limit else "no"


def calcheck(*arguments: Any) -> dict[str, Any]:
    """Return the JSON report of a command."""
    command = [sys.executable, "-m", "calcheck", "--no-config", *map(str, arguments), "--format", "json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        sys.exit(f"{' '.join(command)}\n{ended.stderr}")
    report: dict[str, Any] = json.loads(ended.stdout)
    return report


def value(*arguments: Any) -> float:
    """Return the value of the first result of a command."""
    return float(calcheck(*arguments)["results"][0]["value"])


def write(path: Path, **columns: Any) -> Path:
    """Write a Parquet file of arrays and lists, and return its path."""
    pq.write_table(pa.table(columns), path)
    return path


def show(title: str, command: str, lines: Sequence[Line]) -> None:
    """Print a table of published, expected and found numbers."""
    print(f"\n{title}\n$ {command}")
    print(f"{'':<28} {'published':>9} {'expected':>9} {'found':>9} {'±':>7}  within {ERRORS:g} ±")
    for line in lines:
        numbers = (line.published, line.published if line.expected is None else line.expected, line.mean)
        texts = ["" if number is None else f"{number:.{line.digits}f}" for number in numbers]
        spread = "" if line.deviation is None else f"{line.deviation:.{line.digits}f}"
        print(f"{line.name:<28} {texts[0]:>9} {texts[1]:>9} {texts[2]:>9} {spread:>7}  {line.agrees}")


def show_values(title: str, command: str, heads: Sequence[object], rows: dict[str, Sequence[Sequence[float]]]) -> None:
    """Print a table of means with deviations over data sets, for figures without published numbers."""
    print(f"\n{title}\n$ {command}")
    print(f"{'':<20}" + "".join(f"{head!s:>18}" for head in heads))
    for name, cells in rows.items():
        spreads = [f" ± {np.std(each, ddof=1):.4f}" if len(each) > 1 else "" for each in cells]
        texts = [f"{np.mean(each):.4f}{spread}" for each, spread in zip(cells, spreads, strict=True)]
        print(f"{name:<20}" + "".join(f"{text:>18}" for text in texts))


def main(text: str | None, figures: dict[str, Callable[[Setting], None]]) -> None:
    """Run the named figure or table of a paper, or all of them."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figure", nargs="?", choices=sorted(figures), help="default: all")
    parser.add_argument("--data", type=Path, help="folder of data that may not be distributed with calcheck")
    parser.add_argument("--sets", type=int, default=5, help="number of simulated data sets (default: 5)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        setting = Setting(Path(temporary), given.data, given.sets)
        for name in [given.figure] if given.figure else figures:
            figures[name](setting)
