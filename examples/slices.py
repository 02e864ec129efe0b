"""Where a model of real data is wrong: regions found in one half of the rows, and confirmed by the other half.

The data are the out-of-fold predictions of a Gaussian process for 442 patients with diabetes (diabetes.parquet, made by
diabetes.py). Regions are searched in every other row; the remaining rows tell whether what was found holds there.

    python examples/slices.py [FOLDER]

writes both halves, and prints what calcheck says; with a folder, the files stay there.
"""

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

DATA = Path(__file__).with_name("diabetes.parquet")
COMMANDS = (
    ["slices", "searched.parquet"],
    ["slices", "others.parquet", "--by", "mean:3", "--metrics", "width-factor,zms", "--quiet"],
)


def main(folder: Path) -> None:
    """Write the halves and print the reports."""
    table = pq.read_table(DATA)
    for name, start in {"searched": 0, "others": 1}.items():
        pq.write_table(table.take(np.arange(start, len(table), 2)), folder / f"{name}.parquet")
    for command in COMMANDS:
        print(f"$ {shlex.join(['calcheck', *command])}", flush=True)
        subprocess.run([sys.executable, "-m", "calcheck", *command], check=True, cwd=folder)
        print(flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
