"""Table 1 of "Evaluating Aleatoric Uncertainty via Conditional Generative Models" (Huang, Lam, Zhang).

    python examples/papers/jmmd.py --data FOLDER [--sets 2]

trains the generators of arXiv 2206.04287 (examples/generators.py, which needs torch) on the UCI sets in a folder, CSV
files with columns x… and y, and prints the FID of A-CGM beside the published one. The paper does not state its splits
and epochs: ours agrees within a factor of two on Boston, and is smaller on Energy and Yacht.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from tools import Setting, main, value

FID = {"boston": 0.0052, "energy": 0.0094, "yacht": 0.0077}
GENERATORS = Path(__file__).parents[1] / "generators.py"
FACTOR = 2


def table_1(setting: Setting) -> None:
    """Print the FID of A-CGM on three data sets."""
    files = {name: path for name in FID if (path := setting.file(f"{name}.csv"))}
    if not files:
        return
    folder, names = next(iter(files.values())).parent, ",".join(files)
    found: dict[str, list[float]] = {name: [] for name in files}
    for seed in range(setting.sets):
        arguments = ["--data", folder, "--datasets", names, "--seed", seed, "--out", setting.folder]
        subprocess.run([sys.executable, str(GENERATORS), *map(str, arguments)], check=True, capture_output=True)
        for name, file in files.items():
            columns = ",".join(inputs_of(file))
            path = setting.folder / f"{name}_A-CGM.parquet"
            found[name].append(value("fid", path, "--inputs", columns, "--no-null"))
    print("\nTable 1, FID of A-CGM\n$ calcheck fid FILE --inputs x0,x1,…")
    print(f"{'':<10} {'published':>9} {'found':>7} {'±':>7}  within a factor of {FACTOR}")
    for name, values in found.items():
        mean, spread = float(np.mean(values)), float(np.std(values))
        within = "yes" if FID[name] / FACTOR <= mean <= FID[name] * FACTOR else "no"
        print(f"{name:<10} {FID[name]:>9.4f} {mean:>7.4f} {spread:>7.4f}  {within}")


def inputs_of(path: Path) -> list[str]:
    """Return the names of the inputs in a CSV file: those that begin with x."""
    names = path.read_text(encoding="utf-8").partition("\n")[0].split(",")
    return [name for name in (each.strip() for each in names) if name.startswith("x")]


if __name__ == "__main__":
    main(__doc__, {"table1": table_1})
