"""Residuals of features that represent a kernel on targets exactly."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ExactFeatures:
    """Residuals of exact features: 0, or the tolerance of a factorization."""

    rank: int  # Number of features
    # points, rows: largest residual of a target, and of a predictive distribution
    points: float = 0.0
    rows: float = 0.0
    quadrature: float = 0.0  # Error of the mean embeddings

    @property
    def features(self) -> ExactFeatures:
        """The features, as those of :class:`calcheck.embeddings.output_features.FeatureError`."""
        return self
