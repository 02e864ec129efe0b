"""Which new rows to label: those whose targets would narrow the intervals most."""

import numpy as np

from calcheck.new_inputs.density_ratio import DensityRatio
from calcheck.typing import Indices

STEPS = 50  # Most times that the ratio is fitted


def choose_labels(ratio: DensityRatio, count: int) -> Indices:
    """Return the places of new rows to label, the most useful first.

    The variance of an estimate with ideal weights is proportional to the mean of the density ratio over the new rows. A
    further row takes most of it away where the ratio is largest. So that row is added, the ratio is fitted again, which
    makes it smaller near the row, and so on.
    """
    n, m = len(ratio.tested), len(ratio.new)
    together, once = ratio.with_new_rows(), np.ones(m)
    counts = np.concatenate([np.ones(n), np.zeros(m)])
    chosen: list[int] = []
    size = -(-count // STEPS)
    while len(chosen) < min(count, m):
        found = together.weights(counts, once)[n:]
        found[chosen] = -1.0
        best = np.argsort(-found, kind="stable")[: min(size, count - len(chosen), m - len(chosen))]
        chosen += best.tolist()
        counts[n + best] = 1.0
    return np.array(chosen, dtype=np.intp)
