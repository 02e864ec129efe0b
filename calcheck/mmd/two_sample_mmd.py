"""Unbiased squared maximum mean discrepancy of two samples, and of permutations of their labels."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from calcheck.kernels.kernel_options import Estimator

    Values = NDArray[np.float64]
    Labels = NDArray[np.bool_]

BLOCK = 256  # Permutations per product with the kernel matrix


class PooledGram:
    """The kernel on the pooled rows of two samples.

    Parameters
    ----------
    gram : (n, n)
        Kernel of all pairs of rows.
    """

    def __init__(self, gram: Values) -> None:
        self._gram = gram
        self._diagonal = np.diag(gram).copy()
        self._sums = gram.sum(axis=1)

    def distances(self, labels: Labels, statistic: Estimator = "unbiased") -> Values:
        r"""Return the squared MMD of several divisions of the rows into two samples, (r,).

        .. math:: \frac{\sum_{i \ne j} k(a_i, a_j)}{n (n - 1)} + \frac{\sum_{i \ne j} k(b_i, b_j)}{m (m - 1)}
                  - \frac{2}{n m} \sum_{i, j} k(a_i, b_j)

        Parameters
        ----------
        labels : (r, n)
            Whether each row is from the first sample; all divisions have the same sizes.
        statistic : str
            ``unbiased``, as above; ``v`` with the pairs of a row with itself, over n^2 and m^2; ``paper`` without the
            first term, that of the first sample only.
        """
        first = labels.astype(np.float64)
        n = int(labels[0].sum())
        m = labels.shape[1] - n
        within = np.einsum("ri,ri->r", first @ self._gram, first)
        to_all, own = first @ self._sums, first @ self._diagonal
        between = to_all - within
        others = self._sums.sum() - to_all - between
        other_own = self._diagonal.sum() - own
        if statistic == "v":
            return np.asarray(within / n**2 + others / m**2 - 2 * between / (n * m))
        model = (others - other_own) / (m * (m - 1)) - 2 * between / (n * m)
        return np.asarray(model if statistic == "paper" else (within - own) / (n * (n - 1)) + model)

    def permuted(self, divisions: Iterator[Labels]) -> Iterator[Values]:
        """Yield the distances of permutations of the labels, (n,) each, in blocks."""
        while block := list(islice(divisions, BLOCK)):
            yield self.distances(np.stack(block))
