"""Gram matrices, and principal components."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from calcheck.core.memory import Inputs, blocks
from calcheck.execution.backend import is_cpu, namespace

if TYPE_CHECKING:
    from calcheck.execution.run import Progress
    from calcheck.kernels.functions import Kernel
    from calcheck.typing import Array, Values


TILE = (512, 2048)  # Tile shape on a CPU: large enough for fast products, small enough for the cache
LARGE_TILE = (4096, 16_384)  # Tile shape on a GPU, where launches cost more than cache misses: 256 MiB in float32


def tile_shape(x: Array) -> tuple[int, int]:
    """Return the rows and columns of a tile of kernel values, by the device of the inputs."""
    return TILE if is_cpu(x) else LARGE_TILE


class Gram:
    """Gram matrix K with K_ij = k(x_i, x_j), stored as tiles of its upper triangle.

    Symmetry halves the work and the memory.
    """

    def __init__(
        self,
        kernel: Kernel,  # k
        x: Array,  # (n, d), inputs
        *,
        memory: int,  # Maximum bytes of the tiles; larger matrices are recomputed at every use
        progress: Progress,  # Called with the progress of the first pass over the tiles
        # Rows and columns of a tile, with columns >= rows; changes results only within rounding
        tile: tuple[int, int] | None = None,
    ) -> None:
        self.kernel = kernel
        self.x = x
        self.n = len(x)
        rows, self._columns = tile or tile_shape(x)
        self._rows = min(self.n, rows)
        self.nbytes = self.n * (self.n + self._rows) // 2 * x.itemsize  # Bytes of the cached tiles
        self.kept = self.nbytes <= memory  # Whether the tiles are cached
        self._progress = progress
        self._passed = False
        self._tiles: list[Array] = []

    def tiles(self) -> Iterator[tuple[slice, slice, Array]]:
        """Yield the row slice, the column slice and the values k(x_i, x_j) of each tile.

        The columns of the first tile of a row slice start at the diagonal.
        """
        for number, (rows, columns) in enumerate(self._places()):
            if number < len(self._tiles):
                yield rows, columns, self._tiles[number]
                continue
            tile = self.kernel.gram(self.x[rows], self.x[columns])
            if self.kept:
                self._tiles.append(tile)
            if not self._passed and columns.stop == self.n:
                self._progress("kernel", 1 - (1 - rows.stop / self.n) ** 2)
            yield rows, columns, tile
        self._passed = True

    def _places(self) -> Iterator[tuple[slice, slice]]:
        for top in range(0, self.n, self._rows):
            for left in range(top, self.n, self._columns):
                bottom, right = min(top + self._rows, self.n), min(left + self._columns, self.n)
                yield slice(top, bottom), slice(left, right)

    def clear(self) -> None:
        """Drop the cached tiles; they are recomputed when needed."""
        self._tiles.clear()

    def __matmul__(self, b: Array) -> Array:
        """Return K b for (n, c) columns, (n, c)."""
        product = namespace(b).zeros_like(b)
        for rows, columns, tile in self.tiles():
            product[rows] += tile @ b[columns]
            mirrored = slice(max(rows.stop, columns.start), columns.stop)  # excludes the block on the diagonal
            product[mirrored] += tile[:, mirrored.start - columns.start :].T @ b[rows]
        return product

    def dense(self) -> Array:
        """Return the full matrix K, (n, n)."""
        full = namespace(self.x).empty((self.n, self.n), dtype=self.x.dtype, device=self.x.device)
        for rows, columns, tile in self.tiles():
            full[rows, columns] = tile
            full[columns, rows] = tile.T
        return full


def evaluate(kernel: Kernel, points: Array, x: Array, weights: Array) -> Iterator[Array]:
    """Yield sum_j k(points_i, x_j) w_j for (m, d) points, (n, d) inputs and (n, c) weights, (b, c), in order."""
    height, width = tile_shape(x)
    for top in range(0, len(points), height):
        some = points[top : top + height]
        yield sum(
            kernel.gram(some, x[left : left + width]) @ weights[left : left + width] for left in range(0, len(x), width)
        )


def principal_components(x: Inputs, count: int) -> tuple[Values, Values]:
    """Return the scores of the first principal components, and their shares of the variance.

    The largest entry of each direction is positive, so that signs are defined. Takes three passes over the inputs.

    Shapes: x (n, d).
    """
    n, d = x.shape
    mean = np.zeros(d)
    for _, block in blocks(x):
        mean += block.sum(axis=0, dtype=np.float64) / n
    covariance = np.zeros((d, d))
    for _, block in blocks(x):
        away = block - mean
        covariance += away.T @ away / n
    variances, directions = np.linalg.eigh(covariance)
    chosen = directions[:, ::-1][:, :count]
    chosen = chosen * np.sign(np.take_along_axis(chosen, np.abs(chosen).argmax(axis=0)[None], axis=0))
    scores = np.empty((n, count))
    for rows, block in blocks(x):
        scores[rows] = (block - mean) @ chosen
    total = variances.sum()
    return scores, variances[::-1][:count] / total if total > 0 else np.zeros(count)
