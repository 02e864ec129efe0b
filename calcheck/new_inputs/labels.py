"""Which new rows to label: those whose targets would narrow the intervals most."""

import numpy as np

from calcheck.new_inputs.reweighting import Reweighting
from calcheck.typing import Indices, Values

STEPS = 50  # Most times that weights are computed


def choose_labels(reweighting: Reweighting, count: int) -> Indices:
    """Return the places of new rows to label, the most useful first.

    The variance of an estimate is the sum of squared weights of its rows, if errors are equally large everywhere. A
    further row takes most of it away where its own weight would be largest. So the row with the largest weight is
    added, the weights are fitted again, which makes them smaller near it, and so on.
    """
    n, m = len(reweighting.tested), len(reweighting.new)
    together, once = reweighting.with_new_rows(), np.ones(m)
    counts = np.concatenate([np.ones(n), np.zeros(m)])
    chosen: list[int] = []
    size = -(-count // STEPS)
    while len(chosen) < min(count, m):
        ratio = together.ratio.weights(counts, once)
        weight: Values = np.abs(together.influence(counts, once, ratio)[n:])
        weight[chosen] = -1.0
        best = np.argsort(-weight, kind="stable")[: min(size, count - len(chosen), m - len(chosen))]
        chosen += best.tolist()
        counts[n + best] = 1.0
    return np.array(chosen, dtype=np.intp)
