"""The answer of a report: its effects, the worst region and the best model, and what the rows could have shown."""

from dataclasses import dataclass, field
from typing import Literal

import calcheck.reports  # of which this is a part

Direction = Literal[
    "too-narrow",
    "too-wide",
    "predictions-too-low",
    "predictions-too-high",
    "wrong-shape",
    "heavy-tails",
    "light-tails",
    "skewed-right",
    "skewed-left",
    "conditional-bias",
    "conditional-scale",
    "wrong-quantiles",
    "wrong-in-bins",
    "dependent-errors",
    "wrong-distribution",
    "worse-than-promised",
    "better-than-promised",
]  # How a model is wrong if a verdict is `"fail"`
Topic = Literal[
    "size",
    "bias",
    "shape",
    "ranking",
    "inputs",
    "time",
    "groups",
    "dependence",
    "correlation",
    "targets",
    "others",
    "where",
    "when",
    "what",
]
Kind = Literal["scale", "bias"]
Qualifier = Literal["at-level", "on-average", "as-tested"]

ADDED: dict[str, bool] = {"added": True}
"""Metadata of fields that are absent from reports stored by earlier versions of calcheck."""


@dataclass(frozen=True, kw_only=True)
class Effect:
    """By how much the uncertainties are off in one respect, with its interval, and the sentence about it.

    Parameters
    ----------
    topic : str
        What the effect is about.
    kind : str or None
        Whether the size of the uncertainties (``"scale"``) or the mean error (``"bias"``) varies along the
        uncertainties, inputs, times or groups; None for other topics.
    value : float or None
        Factor by which intervals would have to be wider, for the size; factor of 50 % or 99 % intervals relative to it,
        for the shape; mean error in predicted standard deviations, for the bias. Typical error of the logarithm of the
        standard deviations, or of the means in standard deviations, from row to row, for ranking, inputs, time, groups.
    low, high : float or None
        Limits of the 90 % interval at the default confidence: one-sided limits of 95 %. ``high`` is None where no limit
        can be given.
    within : bool or None
        True if the whole interval is within the tolerance; False if this effect makes the answer no; else None.
    p : float or None
        p-value against a perfect model, adjusted for the number of topics.
    text : str
        The sentence.
    """

    topic: Topic
    kind: Kind | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    within: bool | None = None
    p: float | None = None
    text: str


@dataclass(frozen=True, kw_only=True)
class WidthFactor:
    """By how much the intervals of a level would have to be wider, with its interval.

    Parameters
    ----------
    level : float
        Level of the intervals.
    value : float
        The factor.
    low, high : float or None
        Limits of its interval; None where no limit can be given.
    within : bool or None
        True if the whole interval is within the tolerance; else None.
    """

    level: float
    value: float
    low: float | None
    high: float | None
    within: bool | None = field(default=None, metadata=ADDED)


@dataclass(frozen=True, kw_only=True)
class Power:
    """How often a fault of a given size would make the answer no, on these rows.

    Parameters
    ----------
    fault : str
        Name of the fault, as in ``"narrow-25"``.
    text : str
        The fault in words.
    share : float
        Share of data sets in which it would make the answer no.
    sets : int or None
        Number of data sets that were simulated; None if the share is a normal approximation, from the replicates.
    """

    fault: str
    text: str
    share: float
    sets: int | None = None


@dataclass(frozen=True, kw_only=True)
class Answered:
    """The answer whether the uncertainties can be trusted, and by how much they are off.

    Parameters
    ----------
    answer : str
        ``"yes"`` if they are shown to be within the tolerance, ``"no"`` if they are wrong, else ``"not-shown"``.
    qualifiers : tuple of str
        What limits a yes: other levels are off by more (``"at-level"``), uncertainties are off from row to row
        (``"on-average"``), or no inputs were given (``"as-tested"``).
    tolerance : float or None
        Relative error of the intervals, and error of the means in standard deviations, that does not matter.
    level : float or None
        Level of the intervals that the answer is about.
    rows_needed : int or None
        Number of rows that would show a yes, if it is not shown; None if no number would.
    effects : tuple of Effect
        By how much the uncertainties are off, by topic.
    factors : tuple of WidthFactor
        By how much the intervals would have to be wider, by level.
    power : tuple of Power
        What these rows could have shown.
    """

    answer: Literal["yes", "no", "not-shown"]
    qualifiers: tuple[Qualifier, ...] = ()
    tolerance: float | None = None
    level: float | None = None
    rows_needed: int | None = None
    effects: tuple[Effect, ...]
    factors: tuple[WidthFactor, ...] = field(default=(), metadata=ADDED)
    power: tuple[Power, ...] = field(default=(), metadata=ADDED)


@dataclass(frozen=True, kw_only=True)
class OutputConclusion(Answered):
    """The answer for one of several targets by itself, with its metrics.

    Parameters
    ----------
    name : str
        Name of the target.
    results : tuple of Result
        The metrics of this target.
    overall : Overall or None
        The verdict for all of them.
    region : WorstRegion or None
        The region of the inputs where the predictions of this target are worst.
    """

    name: str
    results: "tuple[calcheck.reports.Result, ...]"
    overall: "calcheck.reports.Overall | None" = None
    region: "WorstRegion | None" = None


@dataclass(frozen=True, kw_only=True)
class Conclusion(Answered):
    """The answer of a report.

    Parameters
    ----------
    next : tuple of str
        Commands that show more.
    outputs : tuple of OutputConclusion
        The answers for each of several targets, which the answer combines with the correlation of the targets.
    """

    next: tuple[str, ...] = ()
    outputs: tuple[OutputConclusion, ...] = field(default=(), metadata=ADDED)


@dataclass(frozen=True, kw_only=True)
class WorstRegion:
    """The region of the inputs whose rows differ most from the others.

    Parameters
    ----------
    where : str
        The region in words: conditions on inputs, or the row of an embedding to which its rows are nearest.
    filter : str
        Options that select its rows; empty if no option can.
    rows : int
        Number of rows in the region.
    direction : str
        How the model is wrong there.
    value, low, high : float or None
        Factor by which intervals would have to be wider there, if the model is too narrow or too wide, else the mean
        error in predicted standard deviations; with its interval. As the region is chosen for it, it is nearer to that
        of a right model on other rows.
    other_value, other_low, other_high : float or None
        The same for the other rows.
    level : float or None
        Level of the intervals; None for a mean error.
    p_value : float
        Probability that the rows of a right model differ as much in any region.
    text : str
        The sentence.
    """

    where: str
    filter: str
    rows: int
    direction: Direction
    value: float | None
    low: float | None
    high: float | None
    other_value: float | None
    other_low: float | None = field(default=None, metadata=ADDED)
    other_high: float | None = field(default=None, metadata=ADDED)
    level: float | None
    p_value: float
    text: str


@dataclass(frozen=True, kw_only=True)
class OtherModel:
    """By how much another model is worse than the best one.

    Parameters
    ----------
    model : str
        Name of the model.
    difference, low, high : float or None
        Its score minus that of the best model, with the confidence interval.
    percent, percent_low, percent_high : float or None
        The same in percent of its own score; None for scores that can be negative.
    p_value : float or None
        p-value of the difference, adjusted for the number of pairs of models (Holm).
    significant : bool
        Whether the difference is significant.
    """

    model: str
    difference: float
    low: float | None
    high: float | None
    percent: float | None
    percent_low: float | None
    percent_high: float | None
    p_value: float | None
    significant: bool


@dataclass(frozen=True, kw_only=True)
class BestModel:
    """Which of several models is best by a score, and by how much.

    Parameters
    ----------
    dataset : str
        The data set; empty if there is only one.
    metric : str
        The score: the first of crps, nll, wis, interval-score, pinball, mae and rmse that was computed.
    model : str
        Name of the model with the smallest score.
    others : tuple of OtherModel
        All other models, the second best first.
    text : str
        The sentence.
    """

    dataset: str = ""
    metric: str
    model: str
    others: tuple[OtherModel, ...]
    text: str
