"""Notice that rows depend on each other: design effects by the dates and the keys of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from calcheck.dependence.columns import column_labels, series_dependence, time_labels
from calcheck.dependence.scores import dependence_scores
from calcheck.distributions.lazy import LazyPredictive
from calcheck.errors import CalcheckError
from calcheck.io.columns.grouping import grouping_of
from calcheck.messages import Message

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.io.columns.grouping import Grouping
    from calcheck.predictions import Predictions

    Values = NDArray[np.float64]

NOTABLE = 1.5  # Design effects above this are warned of
FEWEST_GROUPS, FEWEST_ROWS = 10, 30  # Minimum number of keys or times, and of rows
CHANCE = 0.01  # Probability of a design effect that large if rows are independent


class DesignEffect(NamedTuple):
    """The variance of means of dependent rows, relative to that of independent rows.

    Parameters
    ----------
    column : str
        The column by whose values rows depend on each other.
    kind : str
        What its values are: times or keys.
    ratio : float
        The design effect, the larger one of bias and dispersion of the PIT.
    """

    column: str
    kind: Grouping
    ratio: float


def dependence_warnings(rows: Predictions, *, without_option: str = "") -> tuple[Message, ...]:
    """Return a warning if rows depend on each other by one of the columns that were read.

    Parameters
    ----------
    rows : Predictions
        Rows with targets and distributions.
    without_option : str
        Name of the study, if it has no option for rows that depend on each other.
    """
    effects = design_effects(rows)
    if not effects:
        return ()
    worst = max(effects, key=lambda each: each.ratio)
    same = "of near times" if worst.kind == "time" else "of the same value"
    remedy = f"Pass --{worst.kind} {worst.column}"
    if without_option:
        remedy = f"{without_option} assumes independent rows"
    text = (
        f"rows {same} in {worst.column!r} depend on each other: the variance of means is {worst.ratio:.2g} times that"
        f" of independent rows, so intervals are too narrow and p-values too small. {remedy}"
    )
    return (Message("dependent-rows", text),)


def design_effects(rows: Predictions) -> list[DesignEffect]:
    """Return the design effects above 1.5 that are larger than by chance, by the columns of dates and keys."""
    groupings, predictive = _groupings(rows), rows.predictive
    if not groupings or rows.y is None or predictive is None or len(rows) < FEWEST_ROWS:
        return []
    if isinstance(predictive, LazyPredictive) or predictive.targets > 1 or rows.repeated:
        return []
    scores, found = None, []
    for column, kind in groupings.items():
        try:
            scores = dependence_scores(rows) if scores is None else scores
            ratio = _by_time(rows, column, scores) if kind == "time" else _by_key(rows, column, scores)
        except CalcheckError:  # a column with gaps, or texts that are no times
            continue
        if ratio > NOTABLE:
            found.append(DesignEffect(column, kind, ratio))
    return found


def _groupings(rows: Predictions) -> dict[str, Grouping]:
    """Return the columns of times and keys; the keys of rows, too, if they repeat."""
    found = {name: _grouping(name, np.asarray(values)) for name, values in rows.columns.items()}
    return {name: kind for name, kind in found.items() if kind is not None}


def _grouping(name: str, values: NDArray[Any]) -> Grouping | None:
    return grouping_of(name, is_date=values.dtype.kind == "M", is_key=values.dtype.kind in "OUTiu")


def _by_key(rows: Predictions, column: str, scores: Values) -> float:
    """Return the variance of sums by key, relative to that of independent rows; 1 if it may be so by chance."""
    label = column_labels(rows, column)
    sizes = np.bincount(label)
    if len(sizes) < FEWEST_GROUPS or len(sizes) == len(label):
        return 1.0
    freedom = float(sizes.sum() ** 2 / np.sum(sizes.astype(np.float64) ** 2)) - 1
    ratios = [float(np.sum(np.bincount(label, each) ** 2) / np.sum(each**2)) for each in scores.T]
    return _unless_chance(max(ratios), freedom, scores.shape[1])


def _by_time(rows: Predictions, column: str, scores: Values) -> float:
    """Return the long-run variance of totals by time, relative to that of independent rows."""
    place = time_labels(rows, column)
    count = int(place.max()) + 1
    if count < FEWEST_GROUPS:
        return 1.0
    found = series_dependence(scores, place)
    return _unless_chance(found.variance_ratio, count / max(1.0, 2 * found.memory), scores.shape[1])


def _unless_chance(ratio: float, freedom: float, tests: int) -> float:
    """Return a ratio of variances; 1 if a ratio of independent rows may be as large."""
    from scipy.special import chdtri

    freedom = max(1.0, freedom)
    return ratio if ratio > chdtri(freedom, CHANCE / tests) / freedom else 1.0
