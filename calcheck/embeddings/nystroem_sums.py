"""What a regression on centres adds up over rows: in any order, by any number of machines, on any number of days."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.distributions.row_random import RowRandom
from calcheck.execution.prefetch import one_blas_thread
from calcheck.execution.row_keys import batch_row_keys, replicate_seed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from calcheck.distributions import Predictive
    from calcheck.embeddings.output_features import OutputFeatures
    from calcheck.execution.backend import Array, Backend
    from calcheck.execution.context import Run
    from calcheck.kernels.functions import Kernel
    from calcheck.kernels.scaling import Scaling
    from calcheck.predictions import Predictions

    Values = NDArray[np.float64]
    Groups = tuple[int, int]

BLOCK_ROWS = 4096  # rows at a time: their kernel values, tens of MB, are all the memory that rows take
LEFT_OUT = 1e-7  # share of what is regressed, squared, that the directions kept may miss


@dataclass(eq=False)
class RowSums:
    """Sums over n rows, with M centres, S checked inputs and c outputs.

    Parameters
    ----------
    n : int
        How many rows.
    landmarks : (M, M)
        Z^T Z, Z = K_nM.
    validation : (S, M)
        K_Sn Z.
    outputs : (M + S, c)
        K_Mn R above K_Sn R, R what is regressed.
    """

    n: int
    landmarks: Values
    validation: Values
    outputs: Values

    def add(self, other: RowSums) -> None:
        """Add the sums over other rows, in place."""
        self.n += other.n
        self.landmarks += other.landmarks
        self.validation += other.validation
        self.outputs += other.outputs


@dataclass(frozen=True, eq=False)
class RegressionTargets:
    """What is regressed: psi(y) - E psi(Y'), of the targets and of replicates of them, in a few directions.

    Parameters
    ----------
    features : OutputFeatures
        psi.
    directions : (r, o)
        Orthonormal; what is regressed varies in these, most in the first.
    few : int
        How many of them replicates take, q: they are compared with each other, and not to the last digit.
    replicates : int
        How many replicates of the targets are drawn from the predictions, R.
    run : Run
        Their seed.
    """

    features: OutputFeatures
    directions: Values
    few: int
    replicates: int
    run: Run

    @property
    def groups(self) -> Groups:
        """How many outputs belong together: o of the targets, then q of each replicate."""
        return self.directions.shape[1], self.few

    def __call__(self, rows: Predictions) -> Values:
        """Return the outputs of some rows, (b, o + R q)."""
        predictive = rows.distributions()
        y = rows.targets()
        mean = self.features.of_distributions(predictive.load()) @ self.directions
        observed = self._of(y)
        found = [observed - mean]
        if self.replicates:
            rng = RowRandom(batch_row_keys(rows, replicate_seed(self.run)))
            for drawn, _ in predictive.replicates(y, rng, range(self.replicates)):
                moved = self._of(drawn)
                # where a draw and the target change places, the mean of m draws moves by an m-th of their difference
                exchanged = 0.0 if predictive.n_draws is None else (observed - moved) / predictive.n_draws
                found.append((moved - (mean + exchanged))[:, : self.few])
        return np.concatenate(found, axis=1)

    def _of(self, y: Values) -> Values:
        return self.features.of_points(y.reshape(len(y), -1)) @ self.directions


def principal_directions(features: OutputFeatures, y: Values, predictive: Predictive) -> tuple[Values, int]:
    """Return the directions in which psi(y) - E psi(Y') varies over some rows, (r, r), and how many nearly suffice."""
    apart = features.of_points(y.reshape(len(y), -1)) - features.of_distributions(predictive)
    sizes, turns = np.linalg.eigh(apart.T @ apart)
    few = np.count_nonzero(np.cumsum(np.maximum(sizes, 0)) > LEFT_OUT * sizes.sum())
    return np.asarray(turns[:, ::-1]), max(1, int(few))  # one, where nothing varies


@dataclass(frozen=True, eq=False)
class RowProducts:
    """Makes the sums of a batch of rows.

    Parameters
    ----------
    kernel : Kernel
        k_X on normalized inputs.
    scaling : Scaling
        Their normalization.
    landmarks, validation : (M, d), (S, d)
        Normalized inputs.
    outputs : RegressionTargets
        What is regressed.
    run : Run
        Device and precision.
    """

    kernel: Kernel
    scaling: Scaling
    landmarks: NDArray[np.floating[Any]]
    validation: NDArray[np.floating[Any]]
    outputs: RegressionTargets
    run: Run

    def __call__(self, batch: Predictions) -> RowSums:
        array = self.run.backend()
        landmarks = array.asarray(np.concatenate([self.landmarks, self.validation]))
        sums: RowSums | None = None
        for block in blocks_of(batch):
            part = self._of_block(block, landmarks, array)
            if sums is None:
                sums = part
            else:
                sums.add(part)
        assert sums is not None  # noqa: S101 - batches have rows
        return sums

    def _of_block(self, block: Predictions, landmarks: Array, array: Backend) -> RowSums:
        count = len(self.landmarks)
        values = self.kernel.gram(
            array.asarray(self.scaling.rounded(block.inputs(), precision=self.run.precision)), landmarks
        )  # (b, M + S)
        with one_blas_thread():  # many small products
            outputs = self.outputs(block)
        near = values[:, :count]
        exact = array.xp.astype(near, array.xp.float64)  # products of nearly dependent columns keep all digits
        return RowSums(
            n=len(block),
            landmarks=array.to_numpy(exact.T @ exact),
            validation=array.to_numpy(values[:, count:].T @ near),
            outputs=array.to_numpy(values.T @ array.asarray(outputs)),
        )


@dataclass(eq=False)
class Norms:
    """Norms at rows, in the order in which they are read.

    Parameters
    ----------
    parts : list of (b,)
        Those of each batch.
    """

    parts: list[Values]

    def add(self, other: Norms) -> None:
        """Append the norms at other rows."""
        self.parts += other.parts

    @property
    def norms(self) -> Values:
        """The norms, (n,)."""
        return np.concatenate(self.parts)


@dataclass(frozen=True, eq=False)
class RowNorms:
    """Evaluates a regression at every row of a batch.

    Parameters
    ----------
    kernel, scaling, centres, run
        As in :class:`RowProducts`.
    coefficients : (M, q)
        Of the regression.
    """

    kernel: Kernel
    scaling: Scaling
    landmarks: NDArray[np.floating[Any]]
    coefficients: Values
    run: Run

    def __call__(self, batch: Predictions) -> Norms:
        array = self.run.backend()
        centres, weights = array.asarray(self.landmarks), array.asarray(self.coefficients)
        parts = []
        for block in blocks_of(batch):
            x = array.asarray(self.scaling.rounded(block.inputs(), precision=self.run.precision))
            parts.append(np.linalg.norm(array.to_numpy(self.kernel.gram(x, centres) @ weights), axis=1))
        return Norms(parts)


def blocks_of(batch: Predictions) -> Iterator[Predictions]:
    """Yield the rows a few thousand at a time."""
    for start in range(0, len(batch), BLOCK_ROWS):
        yield batch.take(slice(start, start + BLOCK_ROWS))
