"""Sums over pairs of inputs, sum_ij K_ij u_i . w_j: every pair, in strips of the Gram matrix, or in linear time."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.execution.backend import backend
from calcheck.execution.context import RandomStream
from calcheck.linalg.gram import Gram
from calcheck.linalg.nystroem import Centres

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from calcheck.execution.backend import Array
    from calcheck.execution.context import Run
    from calcheck.kernels.functions import Kernel
    from calcheck.linalg.nystroem import Nystroem

    Values = NDArray[np.float64]

OF_VALUE, OF_NULL = 0.01, 0.1  # of the value, or of its standard deviation under the null, that may be missed
MANY_ROWS = 6000  # up to which every pair costs less than finding a low-rank form
SIGNS = 16  # sums with random signs that tell what is chance, to a third at worst
BLOCK_BYTES = 1 << 26
ROUNDING = 1e-10  # of the value, that the centres' factor may cost
KEPT_SHARE = 8  # of the memory, that kernel values may take to be kept


@dataclass(frozen=True, eq=False)
class QuadraticForm:
    """A sum over pairs, sum_ij K_ij w_i . u_j - sum_i c_i K_ii.

    Parameters
    ----------
    u : (n, q)
        What is summed.
    c : (n,)
        How much of each row's pair with itself is left out.
    scale : float
        w = scale u, if there is no ``w``; else w is that and something without u.
    w : (n, q), optional
        What it is multiplied with.
    """

    u: Values
    c: Values
    scale: float = 1.0
    w: Values | None = None

    def from_rows(self, rows: NDArray[np.intp]) -> QuadraticForm:
        """Return the sum over the pairs of some rows, scaled up to what all would give."""
        up = (len(self.u) / len(rows)) ** 2
        return QuadraticForm(
            self.u[rows], up * self.c[rows], up * self.scale, None if self.w is None else up * self.w[rows]
        )

    def from_own(self, diagonal: Values) -> float:
        """Return what pairs of a row with itself add, given the diagonal of K."""
        return float((np.einsum("ij,ij->i", self.left, self.u) - self.c) @ diagonal)

    def with_signs(self, signs: Values) -> QuadraticForm:
        """Return the sum with signs (n,) on the rows: what it is by chance."""
        return QuadraticForm(
            signs[:, None] * self.u, self.c, self.scale, None if self.w is None else signs[:, None] * self.w
        )

    def terms(self, products: Values, diagonal: Values) -> Values:
        """Return what each row adds, (n,), given K u and the diagonal of K."""
        return np.asarray(np.einsum("ij,ij->i", self.left, products) - self.c * diagonal)

    @property
    def left(self) -> Values:
        """w, (n, q)."""
        return self.scale * self.u if self.w is None else self.w


class Pairs(ABC):
    """K of n inputs, or what stands for it.

    Attributes
    ----------
    details : dict
        How the sums are made.
    """

    n: int
    details: dict[str, Any]

    @property
    def warnings(self) -> list[str]:
        """Warn where the sums are not accurate."""
        if self.details.get("accurate", True):
            return []
        told = (
            f"{self.details['rank']:,} features of inputs leave an error of about {self.details['error']:.1e}."
            " Pass a larger --max-exact-rows for every pair, or a smaller --gamma-x"
        )
        return [told]

    @property
    @abstractmethod
    def diagonal(self) -> Values:
        """K_ii, (n,)."""

    @abstractmethod
    def products(self, columns: Values) -> Values:
        """Return K R for columns (n, c), (n, c)."""

    @abstractmethod
    def totals(self, forms: list[QuadraticForm]) -> Values:
        """Return some forms, (f,)."""


class ExactGram(Pairs):
    """K itself."""

    def __init__(self, kernel: Kernel, x: Values, run: Run) -> None:
        self._array = run.backend()
        points = self._array.asarray(x)
        self.n = len(x)
        self._gram = Gram(kernel, points, memory=run.memory, progress=run.progress)
        self._diagonal = self._array.to_numpy(kernel.diagonal(points))
        self.details = {"method": "exact"}

    @property
    def diagonal(self) -> Values:
        return self._diagonal

    def products(self, columns: Values) -> Values:
        return self._array.to_numpy(self._gram @ self._array.asarray(columns))

    def totals(self, forms: list[QuadraticForm]) -> Values:
        """Return some forms, (f,); K is symmetric, so of one with u and w alike half of the pairs say all."""
        ends = np.cumsum([form.u.shape[1] for form in forms])[:-1]
        if any(form.w is not None for form in forms):
            parts = np.split(self.products(np.concatenate([form.u for form in forms], axis=1)), ends, axis=1)
            return np.array([form.terms(part, self.diagonal).sum() for form, part in zip(forms, parts, strict=True)])
        u = self._array.asarray(np.concatenate([form.u for form in forms], axis=1))
        sums: Array = 0.0
        for rows, others, tile in self._gram.tiles():
            own = max(0, rows.stop - others.start)  # the block on the diagonal; the rest stands for two
            weighted = tile[:, :own] @ u[others][:own] + 2 * (tile[:, own:] @ u[others][own:])
            sums = sums + self._array.xp.sum(u[rows] * weighted, axis=0)
        columns = np.split(self._array.to_numpy(sums), ends)
        return np.array(
            [form.scale * part.sum() - form.c @ self.diagonal for form, part in zip(forms, columns, strict=True)]
        )


class LowRankGram(Pairs):
    """K ~ Z Z^T with the Nystroem features of M inputs, but for its diagonal, which is K's own.

    Linear in n, and a block of rows at a time where n is large.
    """

    def __init__(self, features: Nystroem, x: Values, run: Run) -> None:
        self._features, self._x, self.n = features, x, len(x)
        self._array = backend(run.device, "float64")
        keeps = self.n * features.rank * self._array.itemsize <= run.memory // KEPT_SHARE
        self._kept: list[tuple[slice, Array]] | None = list(self._made()) if keeps else None
        squares = [self._array.xp.sum(features.of_values(block) ** 2, axis=1) for _, block in self._blocks()]
        self._diagonal = self._array.to_numpy(features.kernel.diagonal(self._array.asarray(x)))
        self._left_out = self._diagonal - np.concatenate([self._array.to_numpy(each) for each in squares])
        self.details = {"method": "low rank", "rank": features.rank}

    @property
    def diagonal(self) -> Values:
        return self._diagonal

    def products(self, columns: Values) -> Values:
        return np.asarray(self.outer(self.inner(columns)) + self._left_out[:, None] * columns)

    def gram(self) -> Values:
        """Return Z^T Z, (M, M)."""
        inner: Array = 0.0
        for _, block in self._blocks():
            features = self._features.of_values(block)
            inner = inner + features.T @ features
        return self._array.to_numpy(inner)

    def inner(self, columns: Values) -> Values:
        """Return Z^T R for columns (n, c), (M, c)."""
        inner: Array = 0.0
        for rows, block in self._blocks():
            inner = inner + block.T @ self._array.asarray(columns[rows])
        return self._array.to_numpy(self._features.of_values(inner.T).T)

    def outer(self, weights: Values) -> Values:
        """Return Z W for weights (M, c), (n, c)."""
        columns = self._features.to_values(self._array.asarray(weights))
        return np.concatenate([self._array.to_numpy(block @ columns) for _, block in self._blocks()])

    def totals(self, forms: list[QuadraticForm]) -> Values:
        """Return some forms, (f,), in one pass: sums over pairs are products of sums over rows."""
        sides = [side for form in forms for side in ([form.u] if form.w is None else [form.u, form.w])]
        ends = np.cumsum([side.shape[1] for side in sides])[:-1]
        inner = iter(np.split(self.inner(np.concatenate(sides, axis=1)), ends, axis=1))
        found = []
        for form in forms:
            u = next(inner)
            total = float(np.sum(u * (form.scale * u if form.w is None else next(inner))))
            found.append(total + form.from_own(self._left_out) - float(form.c @ (self._diagonal - self._left_out)))
        return np.array(found)

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield rows and their kernel values with the centres, (b, M)."""
        return iter(self._kept) if self._kept is not None else self._made()

    def _made(self) -> Iterator[tuple[slice, Array]]:
        size = max(1, BLOCK_BYTES // (self._features.rank * self._array.itemsize))
        for start in range(0, self.n, size):
            rows = slice(start, min(start + size, self.n))
            yield rows, self._features.values(self._array.asarray(self._x[rows]))


class GramSums:
    """n inputs, and the ways to sum over their pairs.

    Parameters
    ----------
    kernel : Kernel
        k.
    x : (n, d)
        Normalized inputs.
    run : Run
        Device, precision, memory, seed, progress.
    exact_rows : int
        Up to so many rows every pair is summed.
    """

    def __init__(self, kernel: Kernel, x: Values, run: Run, exact_rows: int) -> None:
        self._kernel, self._x, self._run = kernel, x, run
        self._few = len(x) <= exact_rows
        self.told_of_many: dict[str, Any] = {}
        self._every: ExactGram | None = None
        self._linear: LowRankGram | None = None

    def pairs(self, form: QuadraticForm) -> Pairs:
        """Return what sums the data's form: every pair up to so many rows, else in linear time."""
        return self._every_pair() if self._few else self._low_rank(form)

    def pairs_of_many(self, form: QuadraticForm) -> Pairs:
        """Return what sums hundreds of forms like the data's: in linear time where that misses little."""
        found: Pairs = self._every_pair() if len(self._x) <= MANY_ROWS else self._low_rank(form)
        if self._few and not found.details.get("accurate", True):
            found = self._every_pair()
        self.told_of_many = found.details
        return found

    def _every_pair(self) -> ExactGram:
        if self._every is None:
            self._every = ExactGram(self._kernel, self._x, self._run)
        return self._every

    def _low_rank(self, form: QuadraticForm) -> LowRankGram:
        """Find the fewest centres that miss little of the form on some of the rows."""
        if self._linear is not None:
            return self._linear
        centres, quiet = Centres(self._kernel, self._x, self._run), self._run.quiet()
        checked = centres.checked
        own = form.from_rows(checked)
        signs = self._run.rng(RandomStream.SIGNS).choice([-1.0, 1.0], (SIGNS, len(checked)))
        forms = [own, *map(own.with_signs, signs)]
        every = ExactGram(self._kernel, self._x[checked], quiet)
        exact = every.totals(forms)
        null_std = _size(exact[1:] - own.from_own(every.diagonal))  # signs leave a row's pair with itself as it is
        allowed = max(OF_VALUE * abs(exact[0]), OF_NULL * null_std)
        for features in centres.features():
            missed, *missed_by_chance = LowRankGram(features, self._x[checked], quiet).totals(forms) - exact
            noise = _size(missed_by_chance)
            if max(abs(missed), noise) <= allowed:
                break
        found = LowRankGram(features, self._x, self._run)
        share = len(checked) / len(self._x)  # chance falls with the number of rows, the rest does not
        error = math.hypot(missed, noise * share, ROUNDING * exact[0])
        found.details |= {
            "error": error,
            "null_std": null_std * share,
            "validation_rows": len(checked),
            "accurate": bool(max(abs(missed), noise) <= allowed),
        }
        self._linear = found
        return found


def _size(values: Values | list[np.float64]) -> float:
    """Return the root mean square."""
    return float(np.sqrt(np.mean(np.square(values))))
