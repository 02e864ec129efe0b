"""Whether targets are inside prediction intervals, as an outcome with a stated probability."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from calcheck.distributions.bernoulli import Bernoulli
from calcheck.predictions import MappedSource
from calcheck.statistics.moments import covered, interval_mass

if TYPE_CHECKING:
    from calcheck.predictions import Predictions, Source


def coverage_outcomes(source: Source, level: float) -> Source:
    """Return rows whose target is 1 if it is inside its prediction interval, else 0, with the probability of that.

    Parameters
    ----------
    source : Source
        Rows with prediction intervals; other rows are returned as they are.
    level : float
        Level of the intervals.
    """
    rows = source.predictions()
    if rows.y is None or rows.predictive is None or rows.predictive.interval_levels is None:
        return source
    return MappedSource(source, partial(_outcomes, level=level))


def _outcomes(rows: Predictions, level: float) -> Predictions:
    """Return a batch with the outcomes as targets."""
    return rows.with_targets(covered(rows, level), Bernoulli(np.array(interval_mass(rows, level))))
