"""Residuals of features that represent a kernel on targets exactly."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ExactFeatures:
    """Residuals of exact features: 0, or the tolerance of a factorization.

    Parameters
    ----------
    rank : int
        Number of features.
    points, rows : float
        Largest residual of a target, and of a predictive distribution.
    quadrature : float
        Error of the mean embeddings.
    """

    rank: int
    points: float = 0.0
    rows: float = 0.0
    quadrature: float = 0.0

    @property
    def features(self) -> ExactFeatures:
        """The features, as those of :class:`calcheck.embeddings.output_features.FeatureError`."""
        return self
