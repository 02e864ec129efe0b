"""Kernel score of each row: its targets compared with its predictive distribution."""

from __future__ import annotations

import numpy as np

from calcheck.distributions import Predictive
from calcheck.distributions.samples import Samples
from calcheck.distributions.special import normal_kernel_mean
from calcheck.embeddings.laplace_embeddings import LaplaceEmbeddings, PairEmbeddings, laplace_embeddings
from calcheck.kernels.functions import Laplace
from calcheck.mmd.quadratic_forms import of_different, row_products
from calcheck.typing import Values

ROWS = 1024  # Rows per batch of Laplace embeddings


def direct_scores(y: Values, predictive: Predictive, gamma: Values, *, unbiased: bool, constant: bool) -> Values | None:
    """Return -2 a_i . b_i + |b_i|^2 from pairs of targets and draws, or in closed form for normal distributions.

    Shapes: y (n, r, t), gamma (t,).
    """
    points, scores = y * np.sqrt(gamma), np.empty(len(y))
    for rows, batch in predictive.batches():
        if isinstance(batch, Samples):
            draws = batch.draws.reshape(len(batch), batch.n_draws, -1) * np.sqrt(gamma)
            own, both = row_products(draws, draws, 1.0), row_products(points[rows], draws, 1.0)
            scores[rows] = (of_different(own, batch.n_draws) if unbiased else own) - 2 * both
            continue
        normal = batch.normal()
        if normal is None:
            return None
        mean, std = (each[:, None] for each in normal)  # (b, 1, t)
        both = normal_kernel_mean(y[rows] - mean, std, gamma).prod(axis=2).mean(axis=1)
        scores[rows] = batch.kernel_norm(gamma) - 2 * both
    if not constant:
        return scores
    own = row_products(points, points, 1.0)
    return np.asarray(scores + (of_different(own, y.shape[1]) if unbiased else own))


def laplace_scores(y: Values, predictive: Predictive, gamma: Values, *, unbiased: bool, constant: bool) -> Values:
    """Return the scores of :func:`direct_scores` in a Laplace kernel, (n,)."""
    scores = np.empty(len(y))
    for start in range(0, len(y), ROWS):
        rows = slice(start, start + ROWS)
        batch = (predictive if len(y) <= ROWS else predictive.take(rows)).load()
        if isinstance(batch, Samples):  # only pairs of draws of the same row are needed
            embeddings: LaplaceEmbeddings = PairEmbeddings(batch, gamma)
        else:
            embeddings = laplace_embeddings(batch, tuple(gamma))
        own, both = embeddings.norms(), embeddings.means_by_row(y[rows]).mean(axis=1)
        draws = batch.n_draws
        scores[rows] = (of_different(own, draws) if unbiased and draws is not None else own) - 2 * both
    if not constant:
        return scores
    own = np.array([Laplace(1.0).gram(each, each).mean() for each in y * gamma])
    return np.asarray(scores + (of_different(own, y.shape[1]) if unbiased else own))
