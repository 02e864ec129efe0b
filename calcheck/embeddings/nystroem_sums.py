"""Sums over rows for Nyström ridge regression; they can be accumulated in any order, on any machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calcheck.distributions.row_random import RowRandom
from calcheck.embeddings.output_features import OutputFeatures
from calcheck.execution.bottom_k import batch_row_keys, replicate_seed
from calcheck.execution.reduce import one_blas_thread
from calcheck.linalg.gram import RESIDUAL_TOLERANCE, eigenvectors, leading

if TYPE_CHECKING:
    from calcheck.distributions import Predictive
    from calcheck.embeddings.fitted_settings import KernelSettings
    from calcheck.execution.backend import Backend
    from calcheck.execution.run import Run
    from calcheck.kernels.functions import Kernel
    from calcheck.kernels.input_kernel import Scaling
    from calcheck.predictions import Predictions
    from calcheck.typing import Array, Floats, Values

Groups = tuple[int, int]


@dataclass(eq=False)
class RowSums:
    """Sums over n rows, with M landmarks, S validation inputs and c outputs."""

    n: int  # Number of rows
    landmarks: Values  # (M, M), Z^T Z with Z = K_nM
    validation: Values  # (S, M), K_Sn Z
    outputs: Values  # (M + S, c), K_Mn R stacked on K_Sn R, where R are the regression outputs

    def add(self, other: RowSums) -> None:
        """Add the sums over other rows in place."""
        self.n += other.n
        self.landmarks += other.landmarks
        self.validation += other.validation
        self.outputs += other.outputs


def rbf_features(settings: KernelSettings) -> OutputFeatures:
    """Return the features of an RBF kernel on targets, the only one that landmarks support."""
    if not isinstance(settings.features, OutputFeatures):
        msg = f"landmarks need an RBF kernel on targets, got {type(settings.features).__name__}"
        raise TypeError(msg)
    return settings.features


@dataclass(frozen=True, eq=False)
class RegressionTargets:
    """Regression outputs psi(y) - E psi(Y') of the targets and of replicates, projected on a few directions."""

    features: OutputFeatures  # psi
    directions: Values  # (r, o), orthonormal principal directions of the outputs, largest variation first
    few: int  # Number of directions q for replicates, which need less accuracy
    replicates: int  # Number of replicates R of the targets, drawn from the predictions
    run: Run  # Provides the seed of the replicates

    @property
    def groups(self) -> Groups:
        """Sizes of the output groups: o for the targets, then q for each replicate."""
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
                replicate = self._of(drawn)
                # if a draw and the target are swapped, the mean of m draws changes by 1/m of their difference
                swapped = 0.0 if predictive.n_draws is None else (observed - replicate) / predictive.n_draws
                found.append((replicate - (mean + swapped))[:, : self.few])
        return np.concatenate(found, axis=1)

    def _of(self, y: Values) -> Values:
        return self.features.of_points(y.reshape(len(y), -1)) @ self.directions


def principal_directions(features: OutputFeatures, y: Values, predictive: Predictive) -> tuple[Values, int]:
    """Return the principal directions of psi(y) - E psi(Y') over some rows, (r, r), and how many to retain."""
    difference = features.of_points(y.reshape(len(y), -1)) - features.of_distributions(predictive)
    sizes, turns = eigenvectors(difference.T @ difference)
    return turns[:, ::-1], max(1, int(leading(sizes, RESIDUAL_TOLERANCE).sum()))  # at least one, even if nothing varies


@dataclass(frozen=True, eq=False)
class RowProducts:
    """Function that computes the sums over a batch of rows."""

    kernel: Kernel  # k_X on normalized inputs
    scaling: Scaling  # Normalization of the inputs
    # landmarks, validation: (M, d), (S, d), normalized inputs
    landmarks: Floats
    validation: Floats
    outputs: RegressionTargets
    run: Run  # Device and precision

    def __call__(self, batch: Predictions) -> RowSums:
        array = self.run.backend()
        landmarks = array.asarray(np.concatenate([self.landmarks, self.validation]))
        sums: RowSums | None = None
        for block in blocks_of(batch, self.run.limits.block_rows):
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
        exact = array.xp.astype(near, array.xp.float64)  # float64, because columns are nearly dependent
        return RowSums(
            n=len(block),
            landmarks=array.to_numpy(exact.T @ exact),
            validation=array.to_numpy(values[:, count:].T @ near),
            outputs=array.to_numpy(values.T @ array.asarray(outputs)),
        )


@dataclass(eq=False)
class Norms:
    """Norms at rows, in row order."""

    parts: list[Values]  # (b,) each, norms of each batch

    def add(self, other: Norms) -> None:
        """Append the norms at other rows."""
        self.parts += other.parts

    @property
    def norms(self) -> Values:
        """The norms, (n,)."""
        return np.concatenate(self.parts)


@dataclass(frozen=True, eq=False)
class RowNorms:
    """Function that computes the norm of a regression at every row of a batch."""

    # kernel, scaling, landmarks, run: as in `RowProducts`
    kernel: Kernel
    scaling: Scaling
    landmarks: Floats
    coefficients: Values  # (M, q), coefficients of the regression
    run: Run

    def __call__(self, batch: Predictions) -> Norms:
        array = self.run.backend()
        landmarks, weights = array.asarray(self.landmarks), array.asarray(self.coefficients)
        parts = []
        for block in blocks_of(batch, self.run.limits.block_rows):
            x = array.asarray(self.scaling.rounded(block.inputs(), precision=self.run.precision))
            parts.append(np.linalg.norm(array.to_numpy(self.kernel.gram(x, landmarks) @ weights), axis=1))
        return Norms(parts)


def blocks_of(batch: Predictions, size: int) -> Iterator[Predictions]:
    """Yield the rows in blocks of at most ``size`` rows."""
    for start in range(0, len(batch), size):
        yield batch.take(slice(start, start + size))
