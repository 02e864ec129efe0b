"""The discrete sine wave of the papers, predicted by four families of distributions.

[MCMD] Appendix B: x ~ U(0, 2 pi), and y is 30 minus a draw from the conflation of five Poisson distributions with rate
10 sin x + 10: their masses multiplied and normalized, which makes counts with much less spread than a Poisson.
Each family gets the true mean, and the variance that comes closest to the true one: the Gaussian and the double Poisson
can have it, the Poisson and the negative binomial cannot.

    python examples/sine_counts.py [FOLDER]

writes one file a family, and prints what ``calcheck cce`` says of each.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.special import gammaln, xlogy

ROWS, SEED = 2000, 0
CONFLATED = 5
LARGEST_SIZE = 1000.0  # of the negative binomial, whose variance falls to the mean as it grows

OPTIONS = {
    "gaussian": [],
    "poisson": ["--dist", "poisson"],
    "nbinom": ["--dist", "nbinom:torch"],
    "double-poisson": ["--dist", "double-poisson"],
}


def conflation(rate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return counts (k,) and their masses (n, k): those of a Poisson, to the fifth power, normalized."""
    counts = np.arange(120.0)
    log = CONFLATED * (xlogy(counts, rate[:, None]) - gammaln(counts + 1))
    mass = np.exp(log - log.max(axis=1, keepdims=True))
    return counts, mass / mass.sum(axis=1, keepdims=True)


def predictions(rows: int = ROWS, seed: int = SEED) -> dict[str, pa.Table]:
    """Return one table of predictions a family."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 2 * np.pi, rows)
    counts, mass = conflation(10 * np.sin(x) + 10)
    drawn = (np.cumsum(mass, axis=1) < rng.random((rows, 1))).sum(axis=1)
    mean = 30 - mass @ counts
    variance = mass @ counts**2 - (mass @ counts) ** 2
    common = {"id": np.arange(rows), "x": x, "y": 30 - drawn}
    parameters = {
        "gaussian": {"mean": mean, "std": np.sqrt(np.maximum(variance, 1e-3))},
        "poisson": {"rate": mean},
        "nbinom": {"total_count": np.full(rows, LARGEST_SIZE), "probs": mean / (mean + LARGEST_SIZE)},
        "double-poisson": {"mu": mean, "phi": mean / np.maximum(variance, 1e-3)},
    }
    return {family: pa.table(common | columns) for family, columns in parameters.items()}


def cce(path: Path, family: str) -> float:
    """Ask the program."""
    command = [
        sys.executable,
        "-m",
        "calcheck",
        "cce",
        str(path),
        "--inputs",
        "x",
        "--no-null",
        "--format",
        "json",
    ]
    said = subprocess.run([*command, *OPTIONS[family]], capture_output=True, text=True, check=True)
    return json.loads(said.stdout)["results"][0]["value"]


def main(folder: Path) -> None:
    """Write the files and print the table."""
    for family, table in predictions().items():
        path = folder / f"{family}.parquet"
        pq.write_table(table, path)
        print(f"{family:<16} {cce(path, family):.4f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
