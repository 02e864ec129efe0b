"""How much more frequent inputs are among new rows than among tested ones."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from calcheck.kernels.bandwidths import sample_inputs
from calcheck.kernels.kernel_functions import Rbf
from calcheck.new_inputs.positions import median_gamma
from calcheck.typing import Values

CENTERS = 100  # Most centers of kernels, which are new rows
WIDTHS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)  # Squared widths that are tried, relative to the median squared distance
RIDGES = (0.001, 0.01, 0.1, 1.0, 10.0)  # Regularizers that are tried
FOLDS = 5


class _Loss(NamedTuple):
    """The parts of the squared loss of a density ratio, up to a constant."""

    square: Values  # (b, b), mean over tested rows of the products of kernel values
    linear: Values  # (b,), mean over new rows of the kernel values

    def coefficients(self, ridge: float) -> Values:
        """Return the coefficients with the smallest loss, where negative ones are set to 0."""
        system = self.square + ridge * np.eye(len(self.linear))
        return np.asarray(np.maximum(np.linalg.solve(system, self.linear), 0))

    def at(self, coefficients: Values) -> float:
        return float(coefficients @ self.square @ coefficients / 2 - self.linear @ coefficients)


@dataclass(frozen=True, eq=False)
class DensityRatio:
    r"""The density of new inputs relative to that of tested ones, by least squares (uLSIF).

    .. math:: w(x) = \sum_b \alpha_b k(x, c_b), \quad
              \alpha = \max\left(0, \left(\tfrac1n \sum_i k_i k_i^T + \lambda I\right)^{-1} \tfrac1m \sum_j k_j\right)

    for the vectors k of the kernel values of tested rows i and of new rows j with some new rows c. The width of the
    kernel and the regularizer have the smallest loss in cross-validation.

    Source: Kanamori, Hido, Sugiyama (2009), "A least-squares approach to direct importance estimation".
    """

    tested: Values  # (n, b), kernel values of the tested rows with the centers
    new: Values  # (m, b), those of the new rows
    ridge: float

    @classmethod
    def from_inputs(cls, tested: Values, new: Values, rng: Generator) -> "DensityRatio":
        """Return the ratio that fits scaled inputs (n, d) and (m, d) best."""
        centers = new[np.sort(rng.permutation(len(new))[:CENTERS])]
        gamma = median_gamma(np.concatenate([sample_inputs(each, CENTERS * 10) for each in (tested, new)]))
        tried = (cls._with_width(gamma / width, centers, tested, new) for width in WIDTHS)
        _, best = min(tried, key=lambda each: each[0])
        return best

    @classmethod
    def _with_width(cls, gamma: float, centers: Values, tested: Values, new: Values) -> "tuple[float, DensityRatio]":
        """Return the smallest loss in cross-validation of a kernel, and the ratio that has it."""
        kernel = Rbf(gamma=gamma)
        found = cls(kernel.gram(tested, centers), kernel.gram(new, centers), RIDGES[0])
        folds = list(found._folds())
        losses = [sum(out.at(rest.coefficients(ridge)) for rest, out in folds) for ridge in RIDGES]
        place = int(np.argmin(losses))
        return losses[place], replace(found, ridge=RIDGES[place])

    def _folds(self) -> Iterator[tuple[_Loss, _Loss]]:
        """Yield the losses of the rows outside of each fold, and of those in it."""
        parts = [_Loss(one.T @ one, other.sum(axis=0)) for one, other in self._parts()]
        square, linear = sum(part.square for part in parts), sum(part.linear for part in parts)
        for part, (one, other) in zip(parts, self._parts(), strict=True):
            n, m = len(self.tested) - len(one), len(self.new) - len(other)
            rest = _Loss((square - part.square) / n, (linear - part.linear) / m)
            yield rest, _Loss(part.square / len(one), part.linear / len(other))

    def _parts(self) -> list[tuple[Values, Values]]:
        folds = min(FOLDS, len(self.new))
        return [(self.tested[place::folds], self.new[place::folds]) for place in range(folds)]

    def with_new_rows(self) -> "DensityRatio":
        """Return the same with the new rows after the tested ones, as if their targets were known."""
        return replace(self, tested=np.concatenate([self.tested, self.new]))

    def weights(self, counts: Values, new_counts: Values) -> Values:
        """Return the ratio at each tested row, (n,), fitted to rows that occur several times: (n,) and (m,) counts."""
        drawn = counts > 0
        some = self.tested[drawn]
        square = (some * counts[drawn, None]).T @ some / counts.sum()
        found = _Loss(square, new_counts @ self.new / new_counts.sum()).coefficients(self.ridge)
        return np.asarray(self.tested @ found)
