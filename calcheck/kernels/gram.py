"""The Gram matrix of the inputs: strips of its upper triangle, kept in memory or made again when needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.execution.backend import namespace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calcheck.execution.backend import Array
    from calcheck.execution.run import Progress
    from calcheck.kernels.kernels import Kernel

STRIP_BYTES = 1 << 24  # 16 MiB: hundreds of rows a product, and small beside any memory budget


class Gram:
    """K with K_ij = k(x_i, x_j), as strips of rows from the diagonal to the right.

    By symmetry the strips say everything: half of the work and half of the memory of K.

    Parameters
    ----------
    kernel : Kernel
        k.
    x : (n, d)
        Inputs.
    memory : int
        Bytes that the strips may take; if they do not fit they are made again at every use.
    strip_rows : int, optional
        Rows in a strip; it does not change results beyond rounding.
    progress : callable
        Is told how far a first pass over the strips has come.
    """

    def __init__(
        self,
        kernel: Kernel,
        x: Array,
        *,
        memory: int,
        progress: Progress,
        strip_rows: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.x = x
        self.n = len(x)
        self.strip_rows = min(self.n, strip_rows or max(32, STRIP_BYTES // (self.n * x.itemsize)))
        self.kept = self.n * (self.n + self.strip_rows) // 2 * x.itemsize <= memory
        self._progress = progress
        self._passed = False
        self._strips: list[Array] = []

    def strips(self) -> Iterator[tuple[slice, Array]]:
        """Yield the rows of each strip and its values k(x_i, x_j), i in the rows, j from the first of them on."""
        for number, start in enumerate(range(0, self.n, self.strip_rows)):
            rows = slice(start, min(start + self.strip_rows, self.n))
            if number < len(self._strips):
                yield rows, self._strips[number]
                continue
            strip = self.kernel.gram(self.x[rows], self.x[start:])
            if self.kept:
                self._strips.append(strip)
            if not self._passed:
                self._progress("kernel", 1 - (1 - rows.stop / self.n) ** 2)
            yield rows, strip
        self._passed = True

    def forget(self) -> None:
        """Let go of strips that are kept; they are made again if need be."""
        self._strips.clear()

    def __matmul__(self, b: Array) -> Array:
        """Return K b for (n, c) columns, (n, c)."""
        product = namespace(b).zeros_like(b)
        for rows, strip in self.strips():
            width = rows.stop - rows.start
            product[rows] += strip @ b[rows.start :]
            product[rows.stop :] += strip[:, width:].T @ b[rows]
        return product

    def dense(self) -> Array:
        """Return K in full, (n, n)."""
        full = namespace(self.x).empty((self.n, self.n), dtype=self.x.dtype, device=self.x.device)
        for rows, strip in self.strips():
            full[rows, rows.start :] = strip
            full[rows.start :, rows] = strip.T
        return full
