"""Description of the first rows of a file: prediction, observation, and the distance between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.errors import DataError

if TYPE_CHECKING:
    from calcheck.distributions import Predictive
    from calcheck.predictions import Predictions

SHOWN = 3


def first_rows(rows: Predictions) -> list[tuple[str, str]]:
    """Return descriptions of the first rows, with their numbers or ids; empty if there are no predictions."""
    import numpy as np

    if rows.predictive is None:
        return []
    first = rows.take(slice(0, SHOWN))
    if first.predictive is None:
        return []
    with np.errstate(all="ignore"):  # infinite and undefined numbers are shown as such
        descriptions = [f"predicts {words}" for words in first.predictive.describe()]
        ends = _compared(first.predictive, first)
    if ends:
        descriptions = [f"{words}, observed {end}" for words, end in zip(descriptions, ends, strict=True)]
    keys = first.row_numbers() if first.id is None else first.id
    label = "row" if first.id is None else first.id_name
    return [(f"{label} {key}", words) for key, words in zip(keys, descriptions, strict=True)]


def _compared(predictive: Predictive, rows: Predictions) -> list[str]:
    """Return the observed value of each row, and its position in the predictive distribution."""
    from calcheck.distributions.formatting import format_plain

    y = rows.y
    if y is None:
        return []
    if y.ndim > 1:
        return [", ".join(map(format_plain, row)) for row in y]
    if (levels := predictive.interval_levels) is not None:
        limits = [predictive.central_interval(level) for level in levels.tolist()]
        return [
            f"{format_plain(value)}: " + ", ".join(_side(value, low[row], high[row]) for low, high in limits)
            for row, value in enumerate(y)
        ]
    if not predictive.is_discrete and predictive.n_draws is None and not predictive.caveat:
        try:
            z = (y - predictive.mean()) / predictive.std()
        except DataError:  # the distribution has no mean or no standard deviation
            pass
        else:
            return [f"{format_plain(value)}: z = {score:.2f}" for value, score in zip(y, z, strict=True)]
    return [f"{format_plain(value)}: P(Y ≤ y) = {share:.2g}" for value, share in zip(y, predictive.cdf(y), strict=True)]


def _side(value: float, low: float, high: float) -> str:
    """Return on which side of an interval a value is."""
    if value < low:
        return "below"
    return "above" if value > high else "inside"
