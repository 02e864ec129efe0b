"""A model that misses part of a sine wave: withholding predictions by CCE [CCE, C.1 and Figure 7].

x ~ U(0, 2 pi), y = sin x plus noise that grows towards the middle. The model is right on the left half, misses the
trough on the right, and is equally sure everywhere: its standard deviation points at nothing.
CCE is fitted on labeled data, and then tells at new inputs, before their targets are known, where not to trust it.

    python examples/misfit.py [FOLDER]

writes both files, and prints what ``calcheck reject`` says; with a folder, it draws the curves too.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS, SEEDS = 500, {"labeled": 0, "new": 1}
OPTIONS = ["--inputs", "x", "--metrics", "mae", "--coverage", "0.6"]


def predictions(rows: int, seed: int) -> dict[str, np.ndarray]:
    """Return inputs, targets and the model's predictions, (rows,) each."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 2 * np.pi, rows)
    y = np.sin(x) + (0.1 + 0.2 * np.sin(x / 2)) * rng.normal(size=rows)
    return {"x": x, "y": y, "mean": np.maximum(np.sin(x), 0.0), "std": np.full(rows, 0.35)}


def main(folder: Path, *, drawn: bool) -> None:
    """Write the files and print the table."""
    for name, seed in SEEDS.items():
        pq.write_table(pa.table(predictions(ROWS, seed)), folder / f"{name}.parquet")
    plot = ["--plot", "rejected.svg"] if drawn else []
    command = ["calcheck", "reject", "labeled.parquet", "--new", "new.parquet", *OPTIONS, *plot]
    print(f"$ {' '.join(command)}", flush=True)
    subprocess.run([sys.executable, "-m", *command], check=True, cwd=folder)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        main(Path(sys.argv[1]), drawn=True)
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary), drawn=False)
