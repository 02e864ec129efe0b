"""Which new rows to label: those whose targets would narrow the intervals most."""

import numpy as np

from calcheck.new_inputs.density_ratio import DensityRatio
from calcheck.typing import Indices, Mask

STEPS = 50  # Most times that the ratio is fitted


def choose_labels(ratio: DensityRatio, count: int, known: Mask) -> Indices:
    """Return the places of new rows to label, the most useful first; those with ``known`` targets (m,) are left out.

    The variance of an estimate with ideal weights is proportional to the mean of the density ratio over the new rows. A
    further row takes most of it away where the ratio is largest. So that row is added, the ratio is fitted again, which
    makes it smaller near the row, and so on.
    """
    n, m = len(ratio.tested), len(ratio.new)
    together, once = ratio.with_new_rows(), np.ones(m)
    counts = np.concatenate([np.ones(n), np.zeros(m)])
    chosen: list[int] = []
    size = -(-count // STEPS)
    most = min(count, m - int(known.sum()))
    while len(chosen) < most:
        found = together.weights(counts, once)[n:]
        found[chosen], found[known] = -1.0, -1.0
        best = np.argsort(-found, kind="stable")[: min(size, most - len(chosen))]
        chosen += best.tolist()
        counts[n + best] = 1.0
    return np.array(chosen, dtype=np.intp)
