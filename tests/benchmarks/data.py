"""Seeded predictions for benchmarks: `python -m tests.benchmarks.data ROWS [DRAWS | COLUMNS DRAWS] PATH`.

Embeddings in clusters: `python -m tests.benchmarks.data clustered ROWS COLUMNS PERCENT PATH`.
"""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

GROUP = 1 << 18  # rows
CLUSTERED_GROUP = 20_000


def write(n, d, draws, path):
    """Write n predictions with embeddings of d numbers in 20 strong directions, and saved draws."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 20)) @ rng.normal(size=(20, d)) + 0.5 * rng.normal(size=(n, d))
    mean = x @ rng.normal(size=d) / np.sqrt(20 * d)
    y, *drawn = mean + rng.normal(size=(1 + draws, n))
    samples = {f"sample_{number}": draw for number, draw in enumerate(drawn)}
    embedding = pa.FixedSizeListArray.from_arrays(pa.array(x.astype(np.float32).ravel()), d)
    pq.write_table(pa.table({"y": y, **samples, "embedding": embedding}), path)


def write_clustered(n, d, percent, path):
    """Write n Gaussian predictions with embeddings in 200 clusters; their std is a percentage of the right one."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(200, d)).astype(np.float32)
    narrow = [(name, pa.float64()) for name in ("y", "mean", "std")]
    schema = pa.schema([*narrow, ("embedding", pa.list_(pa.float32(), d))])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as out:
        for start in range(0, n, CLUSTERED_GROUP):
            size = min(CLUSTERED_GROUP, n - start)
            x = centers[rng.integers(0, 200, size)] + 0.5 * rng.standard_normal((size, d), dtype=np.float32)
            mean, std = x[:, :5].sum(axis=1).astype(float), np.exp(0.2 * x[:, 5]).astype(float)
            y = mean + std * rng.standard_normal(size)
            embedding = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), d)
            out.write_table(pa.table([y, mean, std * percent / 100, embedding], schema=schema))


def write_gaussian(n, path):
    """Write n calibrated Gaussian predictions."""
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=n), np.exp(0.4 * rng.normal(size=n))
    pq.write_table(pa.table({"y": mean + std * rng.normal(size=n), "mean": mean, "std": std}), path)


def write_ensemble(n, draws, path):
    """Write n perfect ensembles, a group of rows at a time."""
    rng = np.random.default_rng(0)
    with pq.ParquetWriter(
        path, pa.schema([("y", pa.float64()), *[(f"sample_{m}", pa.float64()) for m in range(draws)]])
    ) as out:
        for start in range(0, n, GROUP):
            size = min(GROUP, n - start)
            loc = rng.normal(size=size)
            out.write_table(pa.table([loc + rng.normal(size=size) for _ in range(draws + 1)], schema=out.schema))


if __name__ == "__main__":
    *numbers, written = [word for word in sys.argv[1:] if word != "clustered"]
    clustered = {3: write_clustered} if "clustered" in sys.argv[1:] else {}
    ({1: write_gaussian, 2: write_ensemble, 3: write} | clustered)[len(numbers)](*map(int, numbers), written)
