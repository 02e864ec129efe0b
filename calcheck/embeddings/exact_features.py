"""Residuals of the features of a kernel on targets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(eq=False)
class FeatureBounds:
    """Largest residuals of features, in squared norms: 0 for exact features, or the tolerance of a factorization."""

    rank: int  # Number of features
    points: float = 0.0  # Largest residual of a target or a draw
    rows: float = 0.0  # Largest residual of a predictive distribution
    quadrature: float = 0.0  # Maximum quadrature error of the mean embeddings

    def include(self, *others: FeatureBounds) -> None:
        """Raise the residuals to those of other features."""
        self.points = max(self.points, *(each.points for each in others))
        self.rows = max(self.rows, *(each.rows for each in others))
        self.quadrature = max(self.quadrature, *(each.quadrature for each in others))
