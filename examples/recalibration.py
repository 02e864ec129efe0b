"""A model whose uncertainties are too small for old patients: a correction, and what it changes on other rows.

y = 2 x + noise whose standard deviation grows with age, from 0.6 to 1.8. The model knows x and the mean, and predicts
a standard deviation of 0.8 to 1.2 that has nothing to do with age. The correction is fitted to validation rows, and
judged on test rows.

    python examples/recalibration.py [FOLDER]

writes both files, and prints what ``calcheck recalibrate`` says; with a folder, the corrected predictions stay there.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS, SEEDS = 800, {"val": 0, "test": 1}
OPTIONS = ["--to", "test.parquet", "-o", "corrected.parquet", "--quiet"]


def predictions(rows: int, seed: int) -> dict[str, np.ndarray]:
    """Return ages, targets and the model's predictions, (rows,) each."""
    rng = np.random.default_rng(seed)
    age, x = rng.uniform(20, 80, rows), rng.normal(size=rows)
    noise = 0.6 + np.maximum(age - 50, 0) / 25
    return {"age": age, "y": 2 * x + noise * rng.normal(size=rows), "mean": 2 * x, "std": rng.uniform(0.8, 1.2, rows)}


def main(folder: Path) -> None:
    """Write the files and print the tables."""
    for name, seed in SEEDS.items():
        pq.write_table(pa.table(predictions(ROWS, seed)), folder / f"{name}.parquet")
    command = ["calcheck", "recalibrate", "val.parquet", *OPTIONS]
    print(f"$ {' '.join(command)}", flush=True)
    subprocess.run([sys.executable, "-m", *command], check=True, cwd=folder)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
