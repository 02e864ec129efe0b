"""The answer of a report: its effects, the worst region and the best model, and what the rows could have shown."""

import math
from dataclasses import dataclass, field
from typing import Literal

SizeDirection = Literal["too-narrow", "too-wide", "predictions-too-low", "predictions-too-high"]
ShapeDirection = Literal["wrong-shape", "heavy-tails", "light-tails", "skewed-right", "skewed-left"]
LocalDirection = Literal["conditional-bias", "conditional-scale", "wrong-quantiles", "wrong-in-bins"]
ScoreDirection = Literal["dependent-errors", "wrong-distribution", "worse-than-promised", "better-than-promised"]
Direction = Literal[SizeDirection, ShapeDirection, LocalDirection, ScoreDirection]
"""How a model is wrong if a verdict is ``"fail"``."""
AverageTopic = Literal["size", "bias", "shape"]
LocalTopic = Literal["ranking", "inputs", "time", "groups"]
TargetTopic = Literal["dependence", "correlation", "targets", "others"]
Topic = Literal[AverageTopic, LocalTopic, TargetTopic, "where", "when", "what"]
Kind = Literal["scale", "bias"]
Qualifier = Literal["at-level", "on-average", "as-tested"]


def effect_name(topic: Topic, kind: Kind | None) -> str:
    """Return the name of an effect in rules: the topic; with ``-bias`` for the error of the means along it."""
    return f"{topic}-bias" if kind == "bias" else topic


ADDED: dict[str, bool] = {"added": True}
"""Metadata of fields that are absent from reports stored by earlier versions of calcheck."""


@dataclass(frozen=True, kw_only=True)
class Effect:
    """By how much the uncertainties are off in one respect, with its interval, and the sentence about it."""

    topic: Topic  # What the effect is about
    # Whether the size of the uncertainties (``"scale"``) or the mean error (``"bias"``) varies along the uncertainties,
    # inputs, times or groups; None for other topics
    kind: Kind | None = None
    # Factor by which intervals would have to be wider, for the size; factor of 50 % or 99 % intervals relative to it,
    # for the shape; mean error in predicted standard deviations, for the bias. Typical error of the logarithm of the
    # standard deviations, or of the means in standard deviations, from row to row, for ranking, inputs, time, groups
    value: float | None = None
    # low, high: Limits of the 90 % interval at the default confidence: one-sided limits of 95 %. ``high`` is None where
    # no limit can be given
    low: float | None = None
    high: float | None = None
    # True if the whole interval is within the tolerance; False if this effect makes the answer no; else None
    within: bool | None = None
    p: float | None = None  # p-value against a perfect model, adjusted for the number of topics
    text: str  # The sentence

    def contradicts(self, other: "Effect") -> bool:
        """Return whether both are about the same, and their intervals have no number in common."""
        least = max(-math.inf if each.low is None else each.low for each in (self, other))
        most = min(math.inf if each.high is None else each.high for each in (self, other))
        is_same = (self.topic, self.kind) == (other.topic, other.kind) and None not in (self.value, other.value)
        return is_same and least > most


@dataclass(frozen=True, kw_only=True)
class WidthFactor:
    """By how much the intervals of a level would have to be wider, with its interval."""

    level: float  # Level of the intervals
    value: float  # The factor
    low: float | None  # low, high: Limits of its interval; None where no limit can be given
    high: float | None
    # True if the whole interval is within the tolerance; else None
    within: bool | None = field(default=None, metadata=ADDED)


@dataclass(frozen=True, kw_only=True)
class Power:
    """How often a fault of a given size would make the answer no, on these rows."""

    fault: str  # Name of the fault, as in ``"narrow-25"``
    text: str  # The fault in words
    share: float  # Share of data sets in which it would make the answer no
    # Number of data sets that were simulated; None if the share is a normal approximation, from the replicates
    sets: int | None = None


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A plausible cause of a no: after it is undone, targets are at least as likely as after any plain correction."""

    cause: str  # Its name, such as ``"variance-as-std"`` or ``"shifted-rows"``
    text: str  # The cause in words
    command: str  # Command that undoes it, or writes a mended file; empty if there is none
    # Share of the fault that it explains, on rows that nothing was fitted to
    explained: float
    # The factor of the std, the std of noise, or how many rows targets are below; None for other causes
    number: float | None = field(default=None, metadata=ADDED)


@dataclass(frozen=True, kw_only=True)
class Answered:
    """The answer whether the uncertainties can be trusted, and by how much they are off."""

    # ``"yes"`` if they are shown to be within the tolerance, ``"no"`` if they are wrong, else ``"not-shown"``
    answer: Literal["yes", "no", "not-shown"]
    # What limits a yes: other levels are off by more (``"at-level"``), uncertainties are off from row to row
    # (``"on-average"``), or no inputs were given (``"as-tested"``)
    qualifiers: tuple[Qualifier, ...] = ()
    # Relative error of the intervals, and error of the means in standard deviations, that does not matter
    tolerance: float | None = None
    level: float | None = None  # Level of the intervals that the answer is about
    rows_needed: int | None = None  # Number of rows that would show a yes, if it is not shown; None if too many
    effects: tuple[Effect, ...]  # By how much the uncertainties are off, by topic
    # By how much the intervals would have to be wider, by level
    factors: tuple[WidthFactor, ...] = field(default=(), metadata=ADDED)
    power: tuple[Power, ...] = field(default=(), metadata=ADDED)  # What these rows could have shown
    causes: tuple[Cause, ...] = field(default=(), metadata=ADDED)  # Plausible causes of a no, the most likely first


@dataclass(frozen=True, kw_only=True)
class RowsBeyond:
    """How many new rows lie beyond the tested inputs, where nothing is known about the uncertainties."""

    share: float  # Estimated share of the new rows that lie beyond the tested inputs
    low: float  # low, high: Limits of its interval
    high: float
    rows: int  # Number of rows that are shown to lie beyond, of which 5 % are expected to be wrong
    untested: int = 0  # Number of them with a category that no tested row has


@dataclass(frozen=True, kw_only=True)
class ColumnDifference:
    """By how much one input differs between the tested and the new rows."""

    name: str  # Name of the input
    distance: float  # Largest difference between the shares of rows up to a value, 0 to 1 (Kolmogorov-Smirnov)
    p: float  # p-value of no difference, adjusted for the number of inputs (Holm)


@dataclass(frozen=True, kw_only=True)
class InputsDiffer:
    """Whether the inputs of the new rows differ from those of the tested ones."""

    p: float  # p-value of no difference, by permutations of the rows
    # The inputs that differ, the largest distance first; empty for an embedding
    columns: tuple[ColumnDifference, ...] = ()


MOST_ROWS = 10_000  # Most tested and most new rows that estimates at new inputs are from; more are sampled


@dataclass(frozen=True, kw_only=True)
class NewInputs(Answered):
    """The answer at new inputs, of which targets are not known; but for ``beyond``, without the rows that lie beyond.

    The factors and the bias are those of the tested rows with weights as in the new ones, corrected by local errors.
    """

    rows: int  # Number of new rows
    beyond: RowsBeyond  # How many of them lie beyond the tested inputs
    # Number of tested rows that count, (sum w)^2 / sum w^2 for weights w; None where the inputs have no overlap
    effective_rows: float | None = None
    inputs_differ: InputsDiffer  # Whether the inputs differ at all
    coverage: float | None = None  # Expected share of targets inside the intervals of the level
    width: float | None = None  # Mean width of these intervals at the new rows, if these have predictions
    label: tuple[int, ...] = ()  # The new rows whose targets would narrow the interval most, the most useful first
    no_label: str = ""  # Why there are fewer than were asked for; empty if there are as many
    labelled: int = 0  # Number of new rows with targets, which the effects make use of
    # Whether an effect was observed that contradicts what was foretold; the effects then make use of no other rows
    contradicted: bool = field(default=False, metadata=ADDED)
    unjudged: str = ""  # Which predictions or targets of the new rows are not judged, and why; empty if all are
    foretold: tuple[Effect, ...] = ()  # The effects of new rows with targets as the tested rows foretell them
    observed: tuple[Effect, ...] = ()  # The effects of new rows with targets as they were observed


@dataclass(frozen=True, kw_only=True)
class WorstRegion:
    """The region of the inputs whose rows differ most from the others."""

    where: str  # The region in words: conditions on inputs, or the row of an embedding to which its rows are nearest
    filter: str  # Options that select its rows; empty if no option can
    rows: int  # Number of rows in the region
    direction: Direction  # How the model is wrong there
    # value, low, high: Factor by which intervals would have to be wider there, if the model is too narrow or too wide,
    # else the mean error in predicted standard deviations; with its interval. As the region is chosen for it, it is
    # nearer to that of a right model on other rows
    value: float | None
    low: float | None
    high: float | None
    other_value: float | None  # other_value, other_low, other_high: The same for the other rows
    other_low: float | None = field(default=None, metadata=ADDED)
    other_high: float | None = field(default=None, metadata=ADDED)
    level: float | None  # Level of the intervals; None for a mean error
    p_value: float  # Probability that the rows of a right model differ as much in any region
    text: str  # The sentence


@dataclass(frozen=True, kw_only=True)
class OtherModel:
    """By how much another model is worse than the best one."""

    model: str  # Name of the model
    difference: float  # difference, low, high: Its score minus that of the best model, with the confidence interval
    low: float | None
    high: float | None
    # percent, percent_low, percent_high: The same in percent of its own score; None for scores that can be negative
    percent: float | None
    percent_low: float | None
    percent_high: float | None
    p_value: float | None  # p-value of the difference, adjusted for the number of pairs of models (Holm)
    significant: bool  # Whether the difference is significant


@dataclass(frozen=True, kw_only=True)
class BestModel:
    """Which of several models is best by a score, and by how much."""

    dataset: str = ""  # The data set; empty if there is only one
    metric: str  # The score: the first of crps, nll, wis, interval-score, pinball, mae and rmse that was computed
    model: str  # Name of the model with the smallest score
    others: tuple[OtherModel, ...]  # All other models, the second best first
    # Pairs of other models that are not shown to differ, the better first; only of up to five models
    alike: tuple[tuple[str, str], ...] = field(default=(), metadata=ADDED)
    text: str  # The sentence
    next: tuple[str, ...] = field(default=(), metadata=ADDED)  # Commands that show more about the model


@dataclass(frozen=True, kw_only=True)
class ModelsAtNewInputs:
    """Which of several models would be best at new inputs, and the answer for each of them."""

    # Which model would be best, by scores that are weighted and corrected as the factors are; None if that is not known
    best: BestModel | None
    reason: str = ""  # Why it is not known; empty if it is
    models: dict[str, NewInputs]  # The answer for each model by its name
