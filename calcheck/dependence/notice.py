"""Notice that rows depend on each other: design effects by the times and the keys of a file."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calcheck.dependence.clusters import (
    chance_of_ratio,
    column_labels,
    degrees_of_freedom,
    dependence_scores,
    series_dependence,
    time_labels,
)
from calcheck.distributions.samples import LazyPredictive
from calcheck.errors import CalcheckError, Message
from calcheck.io.infer import Grouping, grouping_of, only_increases
from calcheck.predictions import Predictions
from calcheck.statistics.moments import errors, spreads
from calcheck.typing import AnyArray, Values

NOTABLE = 1.5  # Design effects above this are warned of
FEWEST_GROUPS, FEWEST_ROWS = 10, 30  # Minimum number of keys or times, and of rows
CHANCE = 0.02  # Maximum probability of a design effect that large if rows are independent, over all columns


@dataclass(frozen=True)
class DesignEffect:
    """The variance of means of dependent rows, relative to that of independent rows."""

    column: str  # The column by whose values rows depend on each other
    kind: Grouping  # What its values are: times or keys
    ratio: float  # The design effect, the larger one of bias and dispersion of the PIT
    # Whether the column only increases over the rows and may hold times, or an input by which rows are sorted
    is_order: bool = False
    streamed: bool = False  # Whether the rows were read in batches, which no option of dependence allows

    @property
    def option(self) -> str:
        """The option that states the dependence."""
        return f"--{self.kind} {shlex.quote(self.column)}"

    @property
    def alternative(self) -> str:
        """The option for a column that is an input by which rows are sorted; "" if it is no such column."""
        return f"--inputs {shlex.quote(self.column)}" if self.is_order else ""

    @property
    def remedy(self) -> str:
        """What to pass, and when."""
        stated = f"pass {self.option}{' without streaming' * self.streamed}"
        if not self.is_order:
            return stated
        return f"{stated} if rows are a series, or {self.alternative} if {self.column!r} is an input"

    @property
    def reason(self) -> str:
        """Why there is no verdict without the option."""
        return f"rows depend on each other by {self.column!r}: {self.remedy}"

    @property
    def settings(self) -> dict[str, Any]:
        """What a report states about it."""
        found = {
            "column": self.column,
            "option": self.option,
            **({"alternative": self.alternative} if self.is_order else {}),
            "variance_ratio": self.ratio,
            "reason": self.reason,
        }
        return {"dependence_noticed": found}

    def warning(self, without_option: str = "") -> Message:
        """Return the warning; ``without_option`` is the name of the study, if it has no option for such rows."""
        same = "of near times" if self.kind == "time" else "of the same value"
        remedy = f"{without_option} assumes independent rows" if without_option else f"P{self.remedy[1:]}"
        text = (
            f"rows {same} in {self.column!r} depend on each other: the variance of means is {self.ratio:.2g} times that"
            f" of independent rows, so intervals are too narrow and p-values too small. {remedy}"
        )
        return Message("dependent-rows", text)

    def warning_of_input(self) -> Message:
        """Return the warning if the column is an input: errors that change along it may also be those of a series."""
        order = f"rows are also in the order of {self.column!r}, with similar errors"
        text = f"{order}: if they are a series, pass {self.option}"
        return Message("ordered-rows", text)


def noticed_effect(rows: Predictions) -> DesignEffect | None:
    """Return the largest design effect by one of the columns that were read; None if rows seem independent."""
    return max(design_effects(rows), key=lambda each: each.ratio, default=None)


def input_warnings(rows: Predictions) -> tuple[Message, ...]:
    """Return warnings if rows are in the order of an input and depend on each other by it."""
    return tuple(each.warning_of_input() for each in _effects(rows, of_inputs=True))


def dependence_warnings(rows: Predictions, *, without_option: str = "") -> tuple[Message, ...]:
    """Return a warning if rows depend on each other by one of the columns that were read."""
    found = noticed_effect(rows)
    return () if found is None else (found.warning(without_option),)


def design_effects(rows: Predictions) -> list[DesignEffect]:
    """Return the design effects above 1.5 that are larger than by chance, by the columns of times and keys.

    A column of numbers that only increase over the rows counts as a time if no other column shows dependence, unless
    it is an input or rows are sorted by their targets, predictions or errors, too.
    """
    return _effects(rows) or _effects(rows, of_inputs=False)


def _effects(rows: Predictions, *, of_inputs: bool | None = None) -> list[DesignEffect]:
    """Return the notable effects by the columns of times and keys, or by orders: of inputs or of others."""
    predictive = rows.predictive
    if rows.y is None or predictive is None or len(rows) < FEWEST_ROWS:
        return []
    if isinstance(predictive, LazyPredictive) or predictive.targets > 1 or rows.repeated:
        return []
    if of_inputs is None:
        return _noticed(rows, _groupings(rows))
    orders = {name: kind for name, kind in _orders(rows).items() if (name in rows.input_columns) == of_inputs}
    return _noticed(rows, orders, is_order=True)


def _noticed(rows: Predictions, groupings: Mapping[str, Grouping], *, is_order: bool = False) -> list[DesignEffect]:
    """Return the notable design effects by some columns."""
    scores, found = None, []
    for column, kind in groupings.items():
        try:
            scores = dependence_scores(rows) if scores is None else scores
            ratio, chance = (_by_time if kind == "time" else _by_key)(rows, column, scores)
        except CalcheckError:  # a column with gaps, or texts that are no times
            continue
        if ratio > NOTABLE and chance * len(groupings) <= CHANCE:
            found.append(DesignEffect(column, kind, ratio, is_order))
    return found


def _groupings(rows: Predictions) -> dict[str, Grouping]:
    """Return the columns of times and keys, by their types and names."""
    found = {name: _grouping(name, np.asarray(values)) for name, values in rows.columns.items()}
    return {name: kind for name, kind in found.items() if kind is not None}


def _grouping(name: str, values: AnyArray) -> Grouping | None:
    return grouping_of(name, is_date=values.dtype.kind == "M", is_key=values.dtype.kind in "OUTiu")


def _orders(rows: Predictions) -> dict[str, Grouping]:
    """Return the columns of numbers that only increase over the rows; none if that is an order by other values."""
    keys = {} if rows.id is None else {rows.id_name: rows.id}
    found = [name for name, values in (*keys.items(), *rows.columns.items()) if only_increases(np.asarray(values))]
    sorted_by = (values for values in _sorting_values(rows) if only_increases(values) or only_increases(-values))
    return {} if not found or any(True for _ in sorted_by) else dict.fromkeys(found, "time")


def _sorting_values(rows: Predictions) -> Iterator[Values]:
    """Yield values by which rows may be sorted, so that neighboring rows are alike: targets, predictions, errors."""
    if rows.y is not None and rows.y.ndim == 1:
        yield rows.y
    try:
        found = errors(rows)
        yield from (found, np.abs(found), rows.targets() - found, spreads(rows.distributions()))
    except CalcheckError:  # the distributions have no moments
        return


def _by_key(rows: Predictions, column: str, scores: Values) -> tuple[float, float]:
    """Return the variance of sums by key, relative to that of independent rows, and its probability by chance."""
    label = column_labels(rows, column)
    sizes = np.bincount(label)
    if len(sizes) < FEWEST_GROUPS or len(sizes) == len(label):
        return 1.0, 1.0
    ratio = max(float(np.sum(np.bincount(label, each) ** 2) / np.sum(each**2)) for each in scores.T)
    return ratio, scores.shape[1] * chance_of_ratio(ratio, float(degrees_of_freedom(sizes)))


def _by_time(rows: Predictions, column: str, scores: Values) -> tuple[float, float]:
    """Return the long-run variance of totals by time, relative to that of independent rows, and the same."""
    place = time_labels(rows, column)
    if int(place.max()) + 1 < FEWEST_GROUPS:
        return 1.0, 1.0
    found = series_dependence(scores, place)
    return found.variance_ratio, found.chance
