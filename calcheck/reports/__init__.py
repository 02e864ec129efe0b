"""The report as plain data: the only input of renderers and gates."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from typing import Any, Literal

from calcheck.errors import Message  # stored reports are read by the types of fields
from calcheck.reports.conclusion import (
    ADDED,
    Answered,
    BestModel,
    Direction,
    ModelsAtNewInputs,
    NewInputs,
    WorstRegion,
)

SCHEMA_VERSION = 3

Verdict = Literal["pass", "fail", "undecided", "none"]
Alternative = Literal["greater", "less", "two-sided", "none"]
Orientation = Literal["smaller", "larger", "reference", "zero", "none"]
IntervalKind = Literal[
    "bca", "abc", "percentile", "clopper-pearson", "normal", "random orders", "order-statistics", "t"
]
ReferenceKind = Literal["exact", "simulated"]
Level = Literal["fail", "warn"]
FileRole = Literal["predictions", "sample", "embedding", "truth", "evaluation_points", "new_inputs"]

LevelCurve = Literal["reliability", "pit-histogram", "pit-difference", "coverage"]
SpreadCurve = Literal["spread", "spread-intervals", "spread-histogram", "correction", "mean-histogram"]
PlaceCurve = Literal["bins", "along", "map", "region", "worst"]
CurveName = Literal[LevelCurve, SpreadCurve, PlaceCurve, "confidence", "oracle"]  # What a curve shows

TIED = 1e-12  # Relative tolerance for ties: smaller differences are rounding errors
SPREAD, WIDTH = "predicted standard deviation", "interval width"
"""Names of the positions of curves along the size of the uncertainty, which is in the unit of y."""


def loss(
    orientation: Orientation, value: float | None, reference: float | None, alternative: Alternative = "two-sided"
) -> float | None:
    """Return a number that is smaller for a better value; None if no value is better, or a number is missing.

    With the alternative ``"less"``, values above the reference are as good as the reference.

    >>> loss("smaller", 0.5, None), loss("larger", 0.5, None), loss("zero", -0.5, None), loss("reference", 0.5, 1.0)
    (0.5, -0.5, 0.5, 0.5)
    >>> loss("reference", 0.5, 1.0, "less"), loss("reference", 1.5, 1.0, "less")
    (0.5, 0.0)
    """
    if value is None or orientation == "none":
        return None
    if orientation == "reference":
        if reference is None:
            return None
        return max(reference - value, 0.0) if alternative == "less" else abs(value - reference)
    return {"smaller": value, "larger": -value, "zero": abs(value)}[orientation]


def rejects(p: float, confidence: float) -> bool:
    """Return whether a p-value is at most 1 - confidence, up to rounding."""
    return p <= (1 - confidence) * (1 + TIED)


def cannot_reject(replicates: int, alternative: Alternative, confidence: float) -> bool:
    """Return whether the smallest possible p-value of ``replicates`` replicates is above 1 - confidence."""
    return not rejects((2 if alternative == "two-sided" else 1) / (replicates + 1), confidence)


@dataclass(frozen=True, kw_only=True)
class MetricValue:
    """The value of a metric, and what is needed to read it."""

    metric: str  # Name of the metric, as listed by ``calcheck metrics``
    summary: str  # Meaning and interpretation, in one or two sentences
    options: dict[str, Any]  # Options of the metric as given; they recreate the same metric
    # The rows that were used, if not all: ``{"removed": "3 %", "rows": 1145}``
    slice: dict[str, Any] = field(default_factory=dict)
    unit: str  # Unit of the value: ``"1"``, ``"y"``, ``"y^2"`` …
    # Which of two values is better: the smaller, the larger, the one nearer to 0 (``"zero"``) or to the reference, or
    # none
    orientation: Orientation = "none"
    # Values that are evidence against a model: ``"greater"`` or ``"less"`` than those of perfect models,
    # ``"two-sided"``, or ``"none"``
    alternative: Alternative = "none"
    value: float | None  # Value of the metric


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A curve or a map of the picture of a metric: k values, and the band of perfect models."""

    name: CurveName  # What the curve shows
    # What the positions are: a column, ``"predicted standard deviation"`` or ``"interval width"``; empty if the name
    # implies it, and for inputs
    x_name: str = ""
    # Positions, k of them; the smallest values of intervals if ``stop`` is not empty; names of categories
    x: tuple[float | str, ...]
    stop: tuple[float, ...] = ()  # Largest values of the intervals, k of them or none
    x2_name: str = ""  # x2_name, x2, stop2: The same for the second quantity of a map; empty for curves
    x2: tuple[float, ...] = ()
    stop2: tuple[float, ...] = ()
    y: tuple[float | None, ...]  # Values of the data, k of them; None where undefined
    rows: tuple[float, ...] = ()  # Number of rows behind each value, k of them or none
    # low, high: Limits that contain the whole curve of a perfect model with the probability ``confidence`` of the
    # settings, k of them each or none
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    # Values of a right model, or else mean values of perfect models; k of them or none
    expected: tuple[float | None, ...] = ()
    p_value: float | None = None  # Probability that the curve of a perfect model is at least as extreme
    replicates: int = 0  # Number of perfect models that the band is based on


@dataclass(frozen=True, kw_only=True)
class Inference:
    """Uncertainty of a value: interval, reference, p-value and verdict."""

    low: float | None = None  # low, high: Limits of the confidence interval, in the unit of the value
    high: float | None = None
    # Method of the interval: ``"bca"``, ``"abc"``, ``"percentile"``, ``"clopper-pearson"``, ``"normal"``, ``"random
    # orders"``, ``"order-statistics"`` or ``"t"``. The limits of the last two are one-sided: each is wrong with a
    # probability of 1 - confidence
    interval: IntervalKind | None = None
    # reference, reference_low, reference_high: Score of a perfect model on the same data, and its limits
    reference: float | None = None
    reference_low: float | None = None
    reference_high: float | None = None
    reference_kind: ReferenceKind | None = None  # Origin of the reference: ``"exact"`` or ``"simulated"``
    # zeta, zeta_mc_error: Distance between value and reference in units of the interval, and its Monte Carlo error. On
    # a side that is no evidence against a model, a simulated one is at most 1 in size
    zeta: float | None = None
    zeta_mc_error: float | None = None
    # p_value, p_value_mc_error: Probability that a perfect model has a score at least as extreme, and its Monte Carlo
    # error
    p_value: float | None = None
    p_value_mc_error: float | None = None
    # p-value adjusted for the number of results: of metrics in a report, of groups and metrics among slices. If the
    # model is right, some adjusted p-value is at most 0.05 in 5 % of data sets
    p_value_adjusted: float | None = field(default=None, metadata=ADDED)
    verdict: Verdict = "none"  # ``"pass"``, ``"fail"``, ``"undecided"`` or ``"none"``
    # How the model is wrong, if the verdict is ``"fail"``: ``"too-narrow"``, ``"better-than-promised"`` …
    direction: Direction | None = field(default=None, metadata=ADDED)
    # Settings and diagnostics of the computation: numbers, strings, lists and dicts
    details: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[Message, ...] = ()  # Reasons to doubt the value, and reasons for absent numbers
    curves: tuple[Curve, ...] = field(default=(), metadata=ADDED)  # Curves of the picture, if one was requested


@dataclass(frozen=True, kw_only=True)
class Result(Inference, MetricValue):
    """The value of one metric, with its interval, reference, verdict and details."""

    @property
    def is_infinite(self) -> bool:
        """Whether the value is infinite: it is None as JSON has no infinite numbers, and a message says so."""
        return self.value is None and any(each.code == "infinite-value" for each in self.warnings)

    @property
    def number(self) -> float | None:
        """The value, also if it is infinite."""
        return math.inf if self.is_infinite else self.value

    @property
    def is_impossible(self) -> bool:
        """Whether the model fails since targets are impossible: the value is infinite, and that of no right model."""
        return self.verdict == "fail" and self.is_infinite


@dataclass(frozen=True, kw_only=True)
class InputFile:
    """An input file and its role."""

    role: FileRole  # Role of the file
    path: str  # Path as given; a folder or a pattern if several files form one data set
    sha256: str  # SHA-256 hash of the content. For several files: hash of their hashes, one per line, in order
    rows: int  # Number of rows read
    files: int = field(default=1, metadata=ADDED)  # Number of files


@dataclass(frozen=True, kw_only=True)
class Input:
    """The input data: files, number of rows, and roles of the columns."""

    files: tuple[InputFile, ...]  # All files that were read, the predictions first
    n: int  # Number of rows that the metrics used
    dropped: int  # Number of rows of all files dropped by ``--nan-policy omit``
    predictive: str | None  # Family of the predictive distributions
    columns: dict[str, str]  # Column of each role
    options: tuple[str, ...] = ()  # Options that state explicitly how the predictions were read
    # Layout of the file, named after the tools that write it, and its content; None for one row per unit and column
    # names that are not specific to a tool
    layout: str | None = None


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """A metric that could not be computed, and the reason."""

    metric: str  # Name of the metric
    # ``"inapplicable"`` if the metric does not apply to the data or to the way they are read, and the reason then
    # continues the name of the metric; ``"error"`` if the computation failed
    code: Literal["inapplicable", "error"]
    reason: str  # The reason in words


@dataclass(frozen=True, kw_only=True)
class Gate:
    """The outcome of one gate rule, which states the condition of a violation."""

    rule: str  # The rule, as given
    level: Level  # Consequence of a violation: ``"fail"``, or ``"warn"`` if it is only shown
    # True if the rule is not violated; False also if it needs a number that is missing, or cannot be judged
    passed: bool
    message: str  # The outcome in words
    values: dict[str, float | str | None]  # Value of each name in the rule; None if it is missing
    # False if the outcome depends on a verdict that there is not: the rule is neither passed nor violated
    judged: bool = field(default=True, metadata=ADDED)

    @property
    def missing(self) -> tuple[str, ...]:
        """Names in the rule whose values are missing."""
        return tuple(name for name, value in self.values.items() if value is None)


@dataclass(frozen=True, kw_only=True)
class Overall:
    """One verdict for all metrics of a report whose verdicts are based on p-values."""

    verdict: Verdict  # ``"pass"``, ``"fail"``, or ``"none"`` if the replicates are too few
    p_value: float  # Probability that the metrics of a perfect model are together at least as extreme
    # How the metrics are joined: by the largest distance of a statistic from its median, relative to its limit
    method: Literal["maximum relative to limits"]
    replicates: int  # Number of replicates, on which all metrics are computed
    metrics: tuple[str, ...]  # Names of the metrics
    leading: str  # Metric with the strongest evidence against the model


@dataclass(frozen=True, kw_only=True)
class HorizonEvidence:
    """The e-process of the forecasts with one horizon."""

    horizon: int  # The horizon, as in the data
    lag: int  # Number of steps between the last observation that a forecast knows and its target, from 1
    rows: int  # rows, times: Number of rows, and of different times
    times: int
    e_value: float  # e_value, log_e_value: Evidence against the model after the last time, and its natural logarithm
    log_e_value: float
    max_e_value: float  # max_e_value, max_log_e_value: The largest e-value so far, and its natural logarithm
    max_log_e_value: float | None = field(default=None, metadata=ADDED)
    # Means of the components of the PIT over all rows: bias, dispersion, skewness and tails
    components: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Monitor:
    """Evidence against a model over time, by an e-process."""

    # ``"fail"`` if there is an alarm: the e-value has reached the threshold at some time; else ``"pass"``
    verdict: Verdict
    # e_value, log_e_value: Evidence against the model after the last time, and its natural logarithm. It starts at 1.
    # E-values beyond the range of floats are the largest float
    e_value: float
    log_e_value: float
    # max_e_value, max_log_e_value: The largest evidence so far. If the model is right, it ever reaches the threshold
    # with a probability of at most the level
    max_e_value: float
    max_log_e_value: float
    threshold: float  # E-value of an alarm, 1 / level
    times: int  # Number of different times
    first_time: str  # first_time, last_time: First and last time
    last_time: str
    alarm_time: str | None = None  # Time at which the threshold was reached
    # fault_start, fault_end: First and last time of the rows that contradict the model most, up to the largest e-value,
    # if there is an alarm
    fault_start: str | None = None
    fault_end: str | None = None
    direction: Direction | None = None  # How the model is wrong there
    # Means of the components of the PIT there: bias, dispersion, skewness and tails
    components: dict[str, float] = field(default_factory=dict)
    horizons: tuple[HorizonEvidence, ...] = ()  # The e-process of each horizon
    path_times: tuple[str, ...] = ()  # Times of the path, at most 1,000
    # Natural logarithms of the e-value; the largest between a time and the next one
    path_log_e_values: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class OutputConclusion(Answered):
    """The answer for one of several targets by itself, with its metrics."""

    name: str  # Name of the target
    results: tuple[Result, ...]  # The metrics of this target
    overall: Overall | None = None  # The verdict for all of them
    region: WorstRegion | None = None  # The region of the inputs where the predictions of this target are worst


@dataclass(frozen=True, kw_only=True)
class Conclusion(Answered):
    """The answer of a report."""

    next: tuple[str, ...] = ()  # Commands that show more
    # The answers for each of several targets, which the answer combines with the correlation of the targets
    outputs: tuple[OutputConclusion, ...] = field(default=(), metadata=ADDED)
    # The answer at other inputs; None if none were given
    on: NewInputs | None = field(default=None, metadata=ADDED)


@dataclass(frozen=True, kw_only=True)
class Report:
    """All results of one run."""

    schema_version: int = SCHEMA_VERSION  # Version of the schema
    calcheck: str  # Version of calcheck that wrote the report
    input: Input  # Files that were read, and how
    settings: dict[str, Any]  # Settings of the run
    results: tuple[Result, ...]  # One result for each metric
    skipped: tuple[Skipped, ...] = ()  # Metrics that could not be computed
    gates: tuple[Gate, ...] = ()  # Rules that the results were checked against
    # One verdict for the metrics together; null if fewer than two have p-values from the same replicates
    overall: Overall | None = field(default=None, metadata=ADDED)
    # Whether the uncertainties can be trusted, and by how much they are off; null for single metrics
    conclusion: Conclusion | None = field(default=None, metadata=ADDED)
    # Evidence against the model over time, of `calcheck monitor`; null for other reports
    monitor: Monitor | None = field(default=None, metadata=ADDED)
    # Region of the inputs whose rows differ most from the others; null if none differs significantly
    region: WorstRegion | None = field(default=None, metadata=ADDED)
    # Which model is best by a score, in comparisons of models
    best: tuple[BestModel, ...] = field(default=(), metadata=ADDED)
    # Which model would be best at new inputs, and the answers there, in comparisons of models; null without new inputs
    on: ModelsAtNewInputs | None = field(default=None, metadata=ADDED)
    # Reports about each of several targets, by name, if they are studied one at a time
    targets: "dict[str, Report]" = field(default_factory=dict, metadata=ADDED)

    @property
    def outputs(self) -> tuple[OutputConclusion, ...]:
        """The answers and results of each of several targets."""
        return () if self.conclusion is None else self.conclusion.outputs

    def of_outputs(self) -> "dict[str, Report]":
        """Return the report of each of several targets, by its name."""
        names, found = [each.name for each in fields(Answered)], {}
        for each in self.outputs:
            own = Conclusion(**{name: getattr(each, name) for name in names})
            plain = replace(self, skipped=(), gates=(), conclusion=own)
            found[each.name] = replace(plain, results=each.results, overall=each.overall, region=each.region)
        return found

    def flat(self) -> "Report":
        """Return the report with the results of all targets, whose slices name them."""
        parts = [(name, each) for name, own in self.targets.items() for each in own.results]
        named = (replace(each, slice={"target": name, **each.slice}) for name, each in parts)
        skipped = dict.fromkeys(each for own in self.targets.values() for each in own.skipped)
        return replace(self, results=(*self.results, *named), skipped=(*self.skipped, *skipped), targets={})

    @property
    def has_dependent_rows(self) -> bool:
        """Whether rows depend on each other, as options state or as was noticed."""
        return not {"dependence", "dependence_noticed"}.isdisjoint(self.settings)

    def violated(self, level: Level) -> tuple[Gate, ...]:
        """Return the gates of a level that are violated."""
        return tuple(gate for gate in self.gates if gate.level == level and gate.judged and not gate.passed)

    def unjudged(self, level: Level) -> tuple[Gate, ...]:
        """Return the gates of a level that cannot be judged."""
        return tuple(gate for gate in self.gates if gate.level == level and not gate.judged)


def results_of(
    reports: Sequence[Report], slices: Sequence[dict[str, Any]], metric: str, options: dict[str, Any]
) -> list[Result]:
    """Return the result of a metric in each report that has it, with what distinguishes the reports."""
    found = []
    for report, each in zip(reports, slices, strict=True):
        same = (result for result in report.results if (result.metric, result.options) == (metric, options))
        found += [replace(result, slice=each) for result in islice(same, 1)]
    return found


def results_by_group(results: Iterable[Result]) -> dict[str, dict[str, Result]]:
    """Return results by the name of their group or region, "" for all rows, and by metric."""
    found: dict[str, dict[str, Result]] = {}
    for result in results:
        found.setdefault(str(result.slice.get("group", "")), {})[result.metric] = result
    return found


def with_changes(results: Sequence[Result], first: float | None) -> list[Result]:
    """Return results with their changes from a value, as far as both are known."""
    return [
        each
        if each.value is None or first is None
        else replace(each, details={**each.details, "change": each.value - first})
        for each in results
    ]
