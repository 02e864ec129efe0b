"""CCE of a file by the closed form with explicit inverses and all Gram matrices, for comparison with calcheck."""

import sys

import numpy as np
import pyarrow.parquet as pq

from tests.helpers.naive import cce_squared, input_kernel


def cce_of_file(path):
    """Return CCE^2 at each row of a Parquet file with y, sample_0 and an embedding, with calcheck's defaults."""
    table = pq.read_table(path)
    y, draw = table["y"].to_numpy(), table["sample_0"].to_numpy()
    x = table["embedding"].combine_chunks().flatten().to_numpy().reshape(len(y), -1).astype(np.float64)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    k_x = input_kernel("polynomial", gamma=1.0)
    return cce_squared(x, y[:, None], draw[:, None, None], k_x=k_x, gamma_y=1 / (2 * y.var(ddof=1)))


if __name__ == "__main__":
    print(np.sqrt(cce_of_file(sys.argv[1])).mean())
