"""Bands of curves: the curves of the data and of replicates, whose global envelope is the band of perfect models."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from calcheck.inference.global_envelope import global_envelope
from calcheck.inference.p_values import cannot_reject
from calcheck.statistics.curves import plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.report import Alternative, Curve, CurveName


UNCOMPARED: frozenset[CurveName] = frozenset(
    {"spread-intervals", "spread-histogram", "mean-histogram", "oracle", "worst"}
)
"""Curves that have no band: they describe the data only."""


@dataclass(eq=False)
class CurveBands:
    """The curves of a metric, and those of replicates.

    Parameters
    ----------
    curves : tuple of Curve
        Curves of the data.
    limit : int
        Maximum number of replicates; further ones, which the open verdict of a metric needs, are ignored.
    alternative : str
        Values that are evidence against a model; the band is where other values of whole curves are.
    """

    curves: tuple[Curve, ...]
    limit: int
    alternative: Alternative = "two-sided"
    _replicates: list[dict[CurveName, NDArray[np.float64]]] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether there are enough replicates."""
        return len(self._replicates) >= self.limit

    def add(self, curves: tuple[Curve, ...]) -> None:
        """Add the curves of a replicate."""
        self._replicates.append({curve.name: _numbers(curve) for curve in curves if curve.name not in UNCOMPARED})

    def with_bands(self, confidence: float) -> tuple[Curve, ...]:
        """Return the curves of the data with their bands; without bands if there are no replicates."""
        return tuple(
            curve
            if curve.name in UNCOMPARED or not self._replicates
            else with_band(
                curve, np.stack([each[curve.name] for each in self._replicates]), confidence, self.alternative
            )
            for curve in self.curves
        )


def with_band(
    curve: Curve, replicates: NDArray[np.float64], confidence: float, alternative: Alternative = "two-sided"
) -> Curve:
    """Return a curve with the band of its replicates, (R, k); unchanged if they are equal, or too few for a band."""
    statistics = np.vstack([_numbers(curve), replicates]).T
    equal = (statistics == statistics[:, :1]) | np.isnan(statistics)
    if equal.all() or cannot_reject(len(replicates), "greater", confidence):
        return curve
    band = global_envelope(statistics, confidence, [alternative] * len(statistics))
    known = np.isfinite(replicates)
    sums = np.where(known, replicates, 0).sum(axis=0)
    with np.errstate(invalid="ignore"):
        expected = sums / known.sum(axis=0)
    return replace(
        curve,
        low=plain(band.low),
        high=plain(band.high),
        expected=curve.expected or plain(expected),
        p_value=band.p_value,
        replicates=len(replicates),
    )


def _numbers(curve: Curve) -> NDArray[np.float64]:
    """Return the values of a curve, (k,); NaN where undefined."""
    return np.array(curve.y, dtype=np.float64)
