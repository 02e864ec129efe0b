"""Regression on centres (Nystroem), with an error that is measured, and mended by what is measured.

With M centres, Z = K_nM, the regression is F_M = Q (Q + n lambda I)^-1 R, Q = Z K_MM^-1 Z^T: ridge regression in the
span of the centres. What it misses of the exact one is known in closed form: with A = (R - F_M) / (n lambda) and
g = K A - F_M,

    F - F_M = n lambda (K + n lambda I)^-1 g,

what is left of g when its own regression is taken away. At S inputs, chosen at random, g is a sum over rows. There its
regression is that of S rows with the same lambda, each with the weight w of the rows that it stands for, one over the
chance with which it was chosen: inputs that centres hardly see are chosen more often, those far from all others always.
What that leaves of a row is too little where the row itself takes part, as often as it stands for others, and too much
where it is left out, a factor of 1 - h more for a row with a share h in its own value. The root of that factor is near
the truth: over d = 16, 512 and lambda = 0.1, 0.01 within a tenth of the distance between the two. Where a row stands
for itself alone, w = 1, what is left with the row itself is right, and the power of the factor is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import NumericalError
from calcheck.kernels.functions import OVERFLOWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from calcheck.embeddings.nystroem_sums import RowSums
    from calcheck.execution.context import Run
    from calcheck.kernels.functions import Kernel

    Groups = tuple[int, int]
    Values = NDArray[np.float64]

SMALLEST = {"float64": 1e-13, "float32": 1e-9}  # share of the largest eigenvalue of K_MM below which one is rounding
ROUNDINGS = 1.0  # of one number, times the condition of the system, that may move a value
STANDARD_ERRORS = 2.0  # of means over evaluated inputs, in the error that is told
CHECKED_ERRORS = 2.0  # of means over checked inputs
EVALUATED_TOGETHER = 1 << 12  # inputs
OF_CORRECTIONS = 0.02  # of what is corrected, on average over inputs, in that error, where not all are checked
BETWEEN = 0.3  # of the distance between the limits of what is left, in the error that is told


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Normalized inputs that stand for all.

    Parameters
    ----------
    landmarks : (M, d)
        Regression functions are combinations of k(c, .).
    evaluated : (E, d)
        A uniform sample of the rows, over which means are taken; all rows, where they are few.
    validation : (S, d)
        Another sample, on which the error is measured; it may be some of the evaluated ones.
    weights : (S,)
        How many rows each checked input stands for; they add up to n.
    rows : int
        How many rows there are, n.
    among : bool
        Whether the checked inputs are among these rows.
    """

    landmarks: NDArray[np.floating[Any]]
    evaluated: NDArray[np.floating[Any]]
    validation: NDArray[np.floating[Any]]
    weights: NDArray[np.float64]
    rows: int
    among: bool = True

    @property
    def chances(self) -> NDArray[np.float64]:
        """The chance with which each checked input was chosen among the rows, (S,); 0 where it is none of them."""
        return np.minimum(1 / self.weights, 1) if self.among else np.zeros(len(self.weights))


@dataclass(frozen=True, eq=False)
class NystroemNorms:
    """Mean norms of several regressions, with their errors.

    Parameters
    ----------
    values : (E, g)
        |F_M(x)| of each of g regressions at the evaluated inputs.
    corrections : (g,)
        What the exact regressions exceed that by, on average.
    errors : (g,)
        By how much mean norm plus correction may be off.
    dof : float
        tr K (K + n lambda I)^-1.
    dof_error : float
        By how much that may be off.
    coefficients : (M, c)
        Of the regression functions: k(x, centres) @ coefficients.
    root : (M, k)
        H, with which coefficients are H H^T Z^T R.
    shares : (k,)
        The eigenvalues of H^T Z^T Z H, between 0 and 1.
    """

    values: Values
    corrections: Values
    errors: Values
    dof: float
    dof_error: float
    coefficients: Values
    root: Values
    shares: Values

    @property
    def means(self) -> Values:
        """The mean norm of each regression, (g,)."""
        return np.asarray(self.values.mean(axis=0) + self.corrections)


class NystroemRidge:
    """Regressions of outputs that come in groups: o columns, then q again and again; their norms are what is wanted.

    Parameters
    ----------
    sums : RowSums
        Over the n rows.
    kernel : Kernel
        k_X.
    landmarks : Landmarks
        The inputs that stand for all.
    run : Run
        Device and precision.
    """

    def __init__(self, sums: RowSums, kernel: Kernel, landmarks: Landmarks, run: Run) -> None:
        self._sums, self._kernel, self._landmarks, self._run = sums, kernel, landmarks, run
        self._centres = landmarks.landmarks.astype(np.float64)  # its small eigenvalues are differences of large numbers
        own = kernel.gram(self._centres, self._centres)
        if not all(np.isfinite(part).all() for part in (own, sums.landmarks, sums.validation)):
            raise NumericalError(OVERFLOWS)
        sizes, turns = np.linalg.eigh(own)
        kept = sizes > SMALLEST[run.precision] * sizes[-1]
        self._whitened = turns[:, kept] / np.sqrt(sizes[kept])  # (M, k)
        self._sizes, self._turned = np.linalg.eigh(self._whitened.T @ sums.landmarks @ self._whitened)

    def norms(self, lambda_: float, groups: Groups) -> NystroemNorms:
        """Regress all outputs, groups of (o, q) columns, and measure what centres miss."""
        sums, landmarks = self._sums, self._landmarks
        count, shift = len(landmarks.landmarks), sums.n * lambda_
        sizes = np.maximum(self._sizes, 0)
        to_centres = self._whitened @ self._turned
        coefficients = to_centres @ ((to_centres.T @ sums.outputs[:count]) / (sizes + shift)[:, None])
        norms = np.concatenate([_norms(part, groups) for part in self._at(landmarks.evaluated, coefficients)])
        known = np.concatenate(list(self._at(landmarks.validation, coefficients)))  # (S, c)
        missed = (sums.outputs[count:] - sums.validation @ coefficients) / shift - known  # g
        x = landmarks.validation.astype(np.float64)
        gram = self._kernel.gram(x, x)
        weights, chances = landmarks.weights, landmarks.chances
        left, own = _ridge_residual(gram, missed, shift / weights)
        before = _norms(known, groups)
        power = 1 - chances**2
        powers = (left / ((1 - own) ** each)[:, None] for each in (0, power / 2, power))
        low, likely, high = (_norms(known + rest, groups) - before for rest in powers)
        correction = weights @ likely / sums.n
        rounding = ROUNDINGS * np.finfo(self._run.precision).eps * (1 + np.diag(gram).max() / lambda_)
        parts = (
            STANDARD_ERRORS * _error_of_mean(norms, np.full(len(norms), len(norms) / landmarks.rows)),
            CHECKED_ERRORS * _error_of_mean(likely, chances, weights),
            BETWEEN * (weights @ (high - low)) / sums.n,
            OF_CORRECTIONS * (1 - weights @ chances / sums.n) * (weights @ np.abs(likely)) / sums.n,
        )
        errors = np.linalg.norm(parts, axis=0) + rounding * norms.mean(axis=0)
        dof, dof_error = self._dof(float(np.sum(sizes / (sizes + shift))), own, lambda_)
        root, shares = to_centres / np.sqrt(sizes + shift), sizes / (sizes + shift)
        return NystroemNorms(norms, correction, errors, dof, dof_error, coefficients, root, shares)

    def _dof(self, seen: float, own: Values, lambda_: float) -> tuple[float, float]:
        """Return tr K (K + n lambda I)^-1, and its error: it is at least that of centres, and of the checked rows."""
        rows, checked = self._landmarks.rows, self._landmarks.validation
        if len(checked) == rows:
            return float(own.sum()), 0.0
        unseen = float(self._landmarks.weights @ self.residual(checked)) / rows
        most = min(seen + unseen / lambda_, float(rows))
        least = min(max(seen, float(own.sum())), most)
        return (least + most) / 2, (most - least) / 2

    def residual(self, x: NDArray[np.floating[Any]]) -> Values:
        """Return k(x, x) - z(x) . z(x) of inputs (p, d), (p,): what the centres do not see of them."""
        x = x.astype(np.float64)
        features = self._kernel.gram(x, self._centres) @ self._whitened
        return np.asarray(np.maximum(self._kernel.diagonal(x) - np.einsum("ij,ij->i", features, features), 0))

    def _at(self, x: NDArray[np.floating[Any]], coefficients: Values) -> Iterator[Values]:
        """Yield the regressions at inputs (p, d), (b, c) at a time: with those of all replicates they are gigabytes."""
        array = self._run.backend()
        centres, weights = array.asarray(self._landmarks.landmarks), array.asarray(coefficients)
        for start in range(0, len(x), EVALUATED_TOGETHER):
            values = self._kernel.gram(array.asarray(x[start : start + EVALUATED_TOGETHER]), centres)
            yield array.to_numpy(values @ weights)


def _ridge_residual(gram: Values, values: Values, shift: Values) -> tuple[Values, Values]:
    """Return what is left of values (S, c) less their regression, and each row's share in its own, (S,).

    The regression is with shifts (S,): n lambda over the weight of each row.
    """
    from scipy.linalg import cho_factor, cho_solve

    try:
        factor = cho_factor(gram + np.diag(shift), lower=True)
    except np.linalg.LinAlgError as error:
        msg = (
            f"kernel values plus {shift.min():.3g} on their diagonal are not positive definite. Pass a larger --lambda"
        )
        raise NumericalError(msg) from error
    own = 1 - shift * np.diag(cho_solve(factor, np.eye(len(gram))))
    return shift[:, None] * cho_solve(factor, values), own


def _norms(fitted: Values, groups: Groups) -> Values:
    """Return the norms of groups of columns, (p, g): the first has as many as it says, all others as many as they."""
    first, each = groups
    own, others = fitted[:, :first], fitted[:, first:].reshape(len(fitted), -1, each)
    squares = np.einsum("ic,ic->i", own, own), np.einsum("igc,igc->ig", others, others)
    return np.asarray(np.sqrt(np.column_stack(squares)))


def _error_of_mean(values: Values, chances: Values, weights: Values | None = None) -> Values:
    """Return the standard error of a mean over rows, (g,), of which some were chosen, with chances (S,).

    By Hajek's approximation, for samples of a size that is fixed. Each of the values (S, g) stands for as many rows as
    its weight says, or for as many as all others.
    """
    size = len(values)
    if size == 1:
        return np.zeros(values.shape[1])
    weights = np.ones(size) if weights is None else weights
    parts = weights[:, None] * values
    uncertain = 1 - chances
    if not uncertain.any():
        return np.zeros(values.shape[1])
    spread = parts - np.average(parts, axis=0, weights=uncertain)
    return np.asarray(np.sqrt(size / (size - 1) * (uncertain @ spread**2)) / weights.sum())
