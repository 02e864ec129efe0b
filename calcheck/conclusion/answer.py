"""The conclusion: by how much uncertainties are off, by topic, and whether that is within a tolerance, or not shown."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from statistics import fmean
from typing import Any, Literal, NamedTuple, get_args

from calcheck import result_details as details
from calcheck.core.text import p_text, percent
from calcheck.reports import TIED, Conclusion, OutputConclusion, Report, Result, Skipped
from calcheck.reports.conclusion import Answered, Effect, Kind, Qualifier, Topic, WidthFactor

UNTESTED = "not tested: pass --inputs or --embedding"
CONFIDENCE = 0.95  # Of reports that do not state theirs
AVERAGE: tuple[Topic, ...] = ("size", "bias", "correlation")  # Topics about all rows together, which decide about yes
LOCAL: tuple[Topic, ...] = ("ranking", "inputs", "time", "groups")
"""Topics about how uncertainties are off from row to row."""
MOST_ROWS = 100  # Largest number of rows that is told, as a multiple of those that there are
HALF_WIDTH = 1.5  # Half width of the interval of the log factor of normal errors, times the square root of the rows


class Estimate(NamedTuple):
    """An effect with its limits and its adjusted p-value: factors for the size and other levels, else differences."""

    topic: Topic
    value: float
    low: float
    high: float = math.inf
    p: float | None = None
    is_open: bool = False  # Whether draws are too few for an upper limit, however many rows there are


class Decision(NamedTuple):
    """The answer, with what limits it."""

    answer: Literal["yes", "no", "not-shown"]
    within: tuple[bool | None, ...]  # Of each estimate
    qualifiers: tuple[Qualifier, ...] = ()
    deciding: tuple[int, ...] = ()  # Places of the estimates that are not shown to be within the tolerance
    rows_needed: int | None = None


def decide(
    estimates: Sequence[Estimate],
    *,
    n: int,
    tolerance: float,
    others: Sequence[Estimate] = (),
    tested: bool = True,
    alpha: float = 0.05,
) -> Decision:
    """Return the answer of n rows.

    It is no if the size or the bias differs from that of a perfect model and is not shown to be within the tolerance,
    or if the limit of a local error is beyond it. It is yes if both are shown to be within. ``others`` are the factors
    of other levels, and ``tested`` says whether errors at inputs could be seen.
    """
    inside = tuple(is_inside(each, tolerance) for each in estimates)
    wrong = tuple(is_wrong(each, tolerance, alpha, inside=held) for each, held in zip(estimates, inside, strict=True))
    within = tuple(False if bad else held or None for bad, held in zip(wrong, inside, strict=True))
    average = [place for place, each in enumerate(estimates) if each.topic in AVERAGE]
    deciding = tuple(place for place in average if not inside[place])
    if any(wrong):
        return Decision("no", within)
    if deciding or not any(each.topic == "size" for each in estimates):
        needed = [rows_needed(estimates[place], n, tolerance) for place in deciding]
        known = [each for each in needed if each is not None]
        return Decision("not-shown", within, (), deciding, max(known) if known and len(known) == len(needed) else None)
    differs = any(each.topic in LOCAL and _is_significant(each, alpha) for each in estimates)
    found: dict[Qualifier, bool] = {
        "at-level": any(is_outside(each, tolerance) for each in others),
        "on-average": differs,
        "as-tested": not tested,
    }
    return Decision("yes", within, tuple(name for name, holds in found.items() if holds))


def is_inside(each: Estimate, tolerance: float) -> bool:
    """Return whether the whole interval is within the tolerance."""
    if each.topic in LOCAL:
        return False
    low, high = _limits(each.topic, tolerance)
    return low <= each.low and each.high <= high


def is_outside(each: Estimate, tolerance: float) -> bool:
    """Return whether the whole interval is beyond the tolerance."""
    low, high = _limits(each.topic, tolerance)
    return each.high < low or each.low > high


def rows_needed(each: Estimate, n: int, tolerance: float) -> int | None:
    """Return how many rows would show an effect within the tolerance, by the root of their number; None if too many."""
    if each.topic != "bias":
        room = math.log1p(tolerance) - abs(math.log(each.value)) if each.value > 0 else -math.inf
        known = each.low > 0 and each.high < math.inf
        half = math.log(each.high / each.low) / 2 if known else HALF_WIDTH / math.sqrt(n)
    else:
        room, half = tolerance - abs(each.value), (each.high - each.low) / 2
    if room <= TIED or math.isinf(half) or each.is_open:
        return None
    needed = max(n + 1, math.ceil(n * (half / room) ** 2))
    return needed if needed <= MOST_ROWS * n else None


def _limits(topic: Topic, tolerance: float) -> tuple[float, float]:
    """Return the limits of the tolerance of an effect: of a factor, or of a difference."""
    return (-tolerance, tolerance) if topic == "bias" else (1 / (1 + tolerance), 1 + tolerance)


def is_wrong(each: Estimate, tolerance: float, alpha: float, *, inside: bool) -> bool:
    """Return whether an effect makes the answer no; without a p-value, if its interval is beyond the tolerance."""
    if each.topic in LOCAL:
        return each.low > tolerance
    if each.topic not in AVERAGE or inside:
        return False
    return is_outside(each, tolerance) if each.p is None else _is_significant(each, alpha)


def _is_significant(each: Estimate, alpha: float) -> bool:
    return each.p is not None and each.p <= alpha * (1 + TIED)


Key = tuple[Topic, Kind | None]
WIDTH, BIAS, SCALE = "width-factor", "standardized-bias", "local-scale"
"""Metrics whose results are effects, besides ``local-bias``."""
ALONG: dict[str, tuple[Topic, str]] = {
    "std": ("ranking", "by their size"),
    "inputs": ("inputs", "along the inputs"),
    "time": ("time", "over time"),
}  # Topic and words of what a local error is along; columns form groups
SHOWN: dict[str, tuple[Topic, str]] = {
    **dict.fromkeys(("too-narrow", "too-wide"), ("size", WIDTH)),
    **dict.fromkeys(("predictions-too-low", "predictions-too-high"), ("bias", BIAS)),
}  # Topic of a fault, and the metric whose interval can show that it is within a tolerance
LIMITS = ("value", "low", "high")
LOST = 0.3  # Maximum exponent of errors as a power of uncertainties for a lost ranking
EVEN = 0.05  # Maximum relative spread of uncertainties that are equal in practice
SKEWED, UNEQUAL = 3.0, 1.5  # Minimum difference of the outermost shares in standard errors, and minimum ratio
WITHHELD = 0.2  # Share of rows with the largest uncertainties that the sentence about the ranking removes
SMALL = 0.1  # Relative errors below have two digits
FEW_PERCENT = 1.5  # Largest factor that is also told in percent


def key_of(metric: str, options: Mapping[str, Any]) -> Key:
    """Return the topic and the kind of the effect that a metric estimates, or is evidence about."""
    if metric == BIAS:
        return "bias", None
    if "along" not in options:
        return "size", None
    return ALONG.get(options["along"], ("groups", ""))[0], "scale" if metric == SCALE else "bias"


class Measured(NamedTuple):
    """What is known about the uncertainties of all rows."""

    report: Report  # Results that name a fault
    results: tuple[Result, ...]  # Width factors, bias, and local errors
    p_values: Mapping[Key, float]  # Adjusted p-values
    level: float  # Level of the intervals that the answer is about

    @property
    def main(self) -> Result | None:
        """The width factor at the level of the answer."""
        return next((each for each in self.widths if each.options["level"] == self.level), None)

    @property
    def widths(self) -> list[Result]:
        """The width factors that are known, by level."""
        found = [each for each in self.results if each.metric == WIDTH and each.value is not None]
        return sorted(found, key=lambda each: float(each.options["level"]))

    def factors(self, tolerance: float) -> Iterator[WidthFactor]:
        """Yield the width factors, by level."""
        for each in self.widths:
            found = _estimate(("size", None), each, {})
            level, held = each.options["level"], is_inside(found, tolerance) or None
            yield WidthFactor(level=level, value=found.value, low=each.low, high=each.high, within=held)

    def estimates(self) -> list[Estimate]:
        """Return the estimates that decide, which are those of effects with a value but the shape."""
        return [_estimate(key_of(each.metric, each.options), each, self.p_values) for each in self._judged()]

    def others(self) -> list[Estimate]:
        """Return the width factors of the other levels."""
        return [_estimate(("shape", None), each, {}) for each in self.widths if each is not self.main]

    def effects(self, within: Sequence[bool | None], tolerance: float, alpha: float) -> Iterator[Effect]:
        """Yield the effects, given which of the estimates are within the tolerance."""
        for each, held in zip(self._judged(), within, strict=True):
            key = key_of(each.metric, each.options)
            estimate = _estimate(key, each, self.p_values)
            told = self._told(each, estimate, alpha)
            if held and estimate.p is not None and estimate.p <= alpha:
                told += f"; differs from a perfect model ({p_text(estimate.p)}), by less than the tolerance"
            elif key[0] not in LOCAL and estimate.p is not None and estimate.p <= alpha:
                told += f" ({p_text(estimate.p)})"
            limits = {name: getattr(each, name) for name in LIMITS}
            yield Effect(topic=key[0], kind=key[1], **limits, within=held, p=estimate.p, text=told)
            if each is self.main and len(self.widths) > 1:
                yield self._shape(each, tolerance)

    def _judged(self) -> list[Result]:
        """Return the results that are effects, one a topic and kind: the width factor is that of the level."""
        main = [] if self.main is None else [self.main]
        return main + [each for each in self.results if each.metric != WIDTH and each.value is not None]

    def _told(self, each: Result, estimate: Estimate, alpha: float) -> str:
        if each.metric == WIDTH:
            return size_text(self.level, estimate)
        if each.metric == BIAS:
            stated = str(self.report.input.predictive).startswith("intervals")
            is_central = ", if the intervals are central" if stated else ""
            return bias_text(estimate) + is_central
        key, along = key_of(each.metric, each.options), each.options["along"]
        is_scale, words = key[1] == "scale", ALONG.get(along, ("", f"from one {along} to another"))[1]
        what, p = "uncertainties" if is_scale else "predictions", estimate.p
        text, shown = f"no error of the {what} {words} is shown", p is not None and p <= alpha
        if p is not None and shown:
            sizes = (estimate.low, estimate.value)
            least, typical = (f"{100 * size:.2g} %" if is_scale else f"{size:.2g} std" for size in sizes)
            text = f"{what} are off by at least {least} {words}, typically {typical} ({p_text(p)})"
        elif p is None and estimate.low > 0:
            text = f"an error of the {what} {words} is not judged: it has no p-value"
        return text + self._ranking(shown=shown) if key == ("ranking", "scale") else text

    def _shape(self, main: Result, tolerance: float) -> Effect:
        """Return the effect of the level whose factor differs most from that of the level of the answer."""
        ratios = [_ratio(each, main) for each in self.widths if each is not main]
        value, low, high = max(ratios, key=lambda each: abs(math.log(each[0])))
        first, last = self.widths[0], self.widths[-1]
        _, least, most = _ratio(last, first)
        tails = "heavier tails than predicted" if least > 1 else "lighter tails than predicted" if most < 1 else ""
        held = " and ".join(
            f"{percent(each.options['level'])} intervals {_interval(_estimate(('shape', None), each, {}))}"
            for each in self.widths
            if each is not main
        )
        words = "; ".join(filter(None, (tails, self._skew())))
        text = f"{held} times as wide{f': {words}' if words else ''}"
        inside = is_inside(Estimate("shape", value, low, high), tolerance)
        limit = high if math.isfinite(high) else None
        return Effect(topic="shape", value=value, low=low, high=limit, within=inside or None, text=text)

    def _details(self, metric: str, kind: type[details.DetailsT]) -> details.DetailsT:
        """Return the details of a metric that their type declares; none if the report lacks the metric."""
        found = next((each.details for each in self.report.results if each.metric == metric and not each.slice), {})
        return details.select_details(found, kind)

    def _skew(self) -> str:
        """Return the shares beyond the outermost quantiles if the PIT of a target fails, and no bias explains it."""
        pit = next((each for each in self.report.results if each.metric == "pit" and not each.slice), None)
        if pit is None or pit.verdict != "fail" or pit.options.get("pre_rank") is not None:
            return ""
        histogram = self._details("pit", details.PitDetails).get("histogram", [])
        biased = self.p_values.get(("bias", None), 0.0) <= 0.05  # noqa: PLR2004 - or unknown
        if biased or len(histogram) < 2:  # noqa: PLR2004 - a pair
            return ""
        below, above, share = histogram[0], histogram[-1], 1 / len(histogram)
        clear = abs(above - below) > SKEWED * math.sqrt(above + below)
        if not clear or max(above, below) < UNEQUAL * min(above, below):
            return ""
        parts = [percent(count / sum(histogram), 1) for count in (below, above)]
        side = "right" if above > below else "left"
        return (
            f"{parts[0]} of targets are below the {percent(share)} quantile, {parts[1]} above the"
            f" {percent(1 - share)} quantile: more skewed to the {side} than predicted"
        )

    def _ranking(self, *, shown: bool) -> str:
        """Return how errors grow with the uncertainties, in words, and what removing the largest ones does."""
        points = self._details("confidence-curve", details.ConfidenceCurveDetails).get("curve", [])
        curve = {point["removed"]: point["error"] for point in points}
        exponent = error_exponent(self._details("ence", details.BinnedDetails).get("bins", [])) if shown else None
        words = ""
        if exponent is not None and exponent < LOST:
            words = "; larger uncertainties do not mean larger errors"
        elif exponent is not None:
            sizes = ("small", "large") if exponent > 1 else ("large", "small")
            words = f"; they are too {sizes[0]} where they are large, too {sizes[1]} where they are small"
        if WITHHELD not in curve:
            return words
        score = next(each.options["score"] for each in self.report.results if each.metric == "confidence-curve")
        removed = f"{score} {curve[0.0]:.3g} → {curve[WITHHELD]:.3g}"
        return f"{words} (without the largest {percent(WITHHELD)}: {removed})"


def are_within(results: Mapping[str, Result], tolerance: float) -> bool:
    """Return whether all failures of some rows are shown to be within the tolerance, given their results by metric."""
    return all(each is not None and is_inside(each, tolerance) for each in _failures(results))


def are_beyond(results: Mapping[str, Result], tolerance: float) -> bool:
    """Return whether a failure of some rows is shown to be beyond the tolerance, or has no size."""
    return any(each is None or is_outside(each, tolerance) for each in _failures(results))


def _failures(results: Mapping[str, Result]) -> Iterator[Estimate | None]:
    """Yield the size of each failure of some rows, given their results by metric; None if it is unknown."""
    for each in results.values():
        if each.verdict == "fail":
            topic, metric = SHOWN.get(str(each.direction), (None, ""))
            own = results.get(metric)
            if topic is None or own is None or own.value is None:
                yield None
            else:
                yield _estimate((topic, None), own, {})


def size_of(results: Mapping[str, Result]) -> Effect:
    """Return the width factor of some rows, given their results by metric, or their bias if only that is wrong."""
    failed = {name for name, each in results.items() if each.verdict == "fail"}
    found = results.get(BIAS if failed == {BIAS} else WIDTH)
    return Effect(topic="size", text="", **({} if found is None else {name: getattr(found, name) for name in LIMITS}))


def error_exponent(bins: Sequence[details.SpreadBin]) -> float | None:
    """Return the exponent of errors as a power of uncertainties, over bins of ence; None if these are nearly equal."""
    pairs = [(each["rmv"] or 0.0, each["rmse"] or 0.0) for each in bins]
    logs = [(math.log(rmv), math.log(rmse)) for rmv, rmse in pairs if rmv > 0 and rmse > 0]
    if not logs:
        return None
    x, y = fmean(each for each, _ in logs), fmean(each for _, each in logs)
    squares = sum((each - x) ** 2 for each, _ in logs)
    if math.sqrt(squares / len(logs)) < EVEN:
        return None
    return sum((a - x) * (b - y) for a, b in logs) / squares


def size_text(level: float, found: Estimate) -> str:
    """Return the sentence about the size of the uncertainties."""
    held = f"{percent(level)} intervals would have to be {_interval(found)} times as wide"
    if found.low > 1 or found.high < 1:
        share = f"{_relative(found.value)} " if 1 / FEW_PERCENT < found.value < FEW_PERCENT else ""
        return f"{share}too {'narrow' if found.low > 1 else 'wide'}: {held}"
    if found.low <= 0 or math.isinf(found.high):
        return held
    if found.low == found.high:
        return f"{held}, as far as targets that are equal to limits show"
    return f"{held}: right within {_relative(max(1 / found.low, found.high))}"


def bias_text(found: Estimate) -> str:
    """Return the sentence about the mean error."""
    if found.low < 0 < found.high:
        between = f"between {-found.low:.2g} predicted standard deviations below and {found.high:.2g} above"
        return f"targets are {between} the predictions on average"
    side, sign = ("above", 1) if found.value > 0 else ("below", -1)
    low, high = sorted((sign * found.low, sign * found.high))
    size = _with_limits(f"{abs(found.value):.2g}", f"{low:.2g}", f"{high:.2g}")
    return f"targets are {size} predicted standard deviations {side} the predictions on average"


def correlation_text(targets: Sequence[str], side: str, factor: Estimate, observed: float, predicted: float) -> str:
    """Return the sentence about how two targets vary together, given the factor of their ``side``."""
    told = (
        f"errors of {' and '.join(targets)} have a correlation of {_signed(observed)}, predicted {_signed(predicted)}"
    )
    intervals = f"{told}: intervals of their standardized {side}"
    if factor.low < 1 < factor.high:
        return f"{intervals} are right within {_relative(max(1 / factor.low, factor.high))}"
    return f"{intervals} would have to be {_interval(factor)} times as wide"


def _signed(value: float) -> str:
    """Return a correlation with two digits, without a sign at 0."""
    return f"{round(value, 2) + 0.0:.2f}"


def _estimate(key: Key, each: Result, p_values: Mapping[Key, float]) -> Estimate:
    value = math.nan if each.value is None else each.value
    low = (0.0 if key[0] in ("size", "shape") else -math.inf) if each.low is None else each.low
    is_open = any(message.code == "few-draws" for message in each.warnings)
    return Estimate(key[0], value, low, math.inf if each.high is None else each.high, p_values.get(key), is_open)


def _ratio(each: Result, main: Result) -> tuple[float, float, float]:
    """Return a width factor over another one; log limits are combined with their correlation (Zou, Donner 2008)."""
    own, other = (_estimate(("shape", None), found, {}) for found in (each, main))
    if own.value <= 0 or other.value <= 0:
        return 1.0, 0.0, math.inf
    first, second = sorted((each.options["level"], main.options["level"]))
    correlation = math.sqrt(first * (1 - second) / (second * (1 - first)))
    below, under = (math.log(each.value / each.low) if each.low > 0 else math.inf for each in (own, other))
    above, over = (math.log(each.high / each.value) if each.high < math.inf else math.inf for each in (own, other))
    down, up = _combined(below, over, correlation), _combined(above, under, correlation)
    ratio = own.value / other.value
    return ratio, ratio * math.exp(-down), ratio * math.exp(up)


def _combined(one: float, other: float, correlation: float) -> float:
    if math.isinf(one) or math.isinf(other):
        return math.inf
    return math.sqrt(max(one * one + other * other - 2 * correlation * one * other, 0.0))


def _interval(found: Estimate) -> str:
    """Return a factor with its limits."""
    return _with_limits(*map(_factor, (found.value, found.low, found.high)))


def _with_limits(value: str, low: str, high: str) -> str:
    """Return a number with its limits, unless they have the same digits.

    >>> _with_limits("9", "8.9", "9.1"), _with_limits("9", "9", "9")
    ('9 (8.9–9.1)', '9')
    """
    return value if low == value == high else f"{value} ({low}–{high})"


def _factor(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.2f}" if value < 10 else f"{value:.3g}"  # noqa: PLR2004 - digits


def _relative(factor: float) -> str:
    """Return by how much a factor differs from 1, in percent: of it, or of its reciprocal if that is larger."""
    if factor <= 0:
        return "infinitely"
    error = max(factor, 1 / factor) - 1
    return f"{100 * error:.2g} %" if error < SMALL else f"{100 * error:.0f} %"


def conclude(
    report: Report,
    results: Sequence[Result],
    p_values: Mapping[Key, float],
    *,
    tolerance: float,
    level: float,
    skipped: Sequence[Skipped] = (),
    impossible_text: str = "",
) -> Report:
    """Return a report with its conclusion from results, skipped ones and topics' p-values, if any is judged."""
    report = replace(report, settings={**report.settings, "tolerance": tolerance})
    impossible = (Effect(topic="others", within=False, text=impossible_text),) if impossible_text else ()
    if (unjudged := unjudged_conclusion(report.settings, impossible=impossible)) is not None:
        return replace(report, conclusion=replace(unjudged, tolerance=tolerance, level=level))
    measured = Measured(report, tuple(results), p_values, level)
    alpha = 1 - float(report.settings.get("confidence", CONFIDENCE))
    estimates = measured.estimates()
    topics = {each.topic for each in estimates}
    tested = "inputs" in topics
    found = decide(
        estimates, n=report.input.n, tolerance=tolerance, others=measured.others(), tested=tested, alpha=alpha
    )
    effects = [*measured.effects(found.within, tolerance, alpha)]
    if not tested:
        reasons = [each.reason for each in skipped if each.metric == SCALE and each.code == "inapplicable"]
        untested = f"not tested: the local error {reasons[0]}" if reasons else UNTESTED
        effects.append(Effect(topic="inputs", text=untested))
    effects += impossible
    together = [] if "size" in topics else _together(report)
    if not estimates and not impossible and not together:
        return report
    if "size" not in topics:
        reasons = [each.reason for each in skipped if each.metric == WIDTH]
        effects += [*(Effect(topic="size", text=f"not tested: {reason}") for reason in reasons[:1]), *together]
    somewhere = found.answer == "yes" and _differs_somewhere(report, tolerance)
    qualifiers = {*found.qualifiers, *(["on-average"] if somewhere else [])}
    conclusion = Conclusion(
        answer="no" if any(each.within is False for each in effects) else found.answer,
        qualifiers=tuple(each for each in get_args(Qualifier) if each in qualifiers and not impossible),
        tolerance=tolerance,
        level=level,
        rows_needed=found.rows_needed,
        effects=tuple(effects),
        factors=tuple(measured.factors(tolerance)),
    )
    return replace(report, conclusion=conclusion)


def combine(
    report: Report, outputs: Mapping[str, Report], effect: Effect, limits: tuple[float, float] | None, tolerance: float
) -> Report:
    """Return a report with the conclusion from those of several targets and how they depend on each other."""
    concluded = tuple(_output(name, each) for name, each in outputs.items())
    first, inside = concluded[0], limits is None
    needed = [each.rows_needed for each in concluded if each.answer == "not-shown"]
    if limits is not None and effect.value is not None:
        hull = Estimate("correlation", effect.value, *limits)
        own = Estimate("correlation", effect.value, effect.low or 0.0, effect.high or math.inf, effect.p)
        inside = is_inside(hull, tolerance)
        alpha = 1 - float(report.settings.get("confidence", CONFIDENCE))
        effect = replace(effect, within=False if is_wrong(own, tolerance, alpha, inside=inside) else inside or None)
        needed += [] if inside else [rows_needed(hull, report.input.n, tolerance)]
    answers = {each.answer for each in concluded}
    qualifiers = [word for each in concluded for word in each.qualifiers] + ["as-tested"] * (limits is None)
    is_no = "no" in answers or effect.within is False
    is_yes = answers == {"yes"} and inside and not is_no
    known = [each for each in needed if each is not None]
    conclusion = Conclusion(
        answer="no" if is_no else "yes" if is_yes else "not-shown",
        qualifiers=tuple(dict.fromkeys(qualifiers)) if is_yes else (),
        tolerance=first.tolerance,
        level=first.level,
        rows_needed=max(known) if known and len(known) == len(needed) and not is_no else None,
        effects=(effect,),
        outputs=concluded,
    )
    return replace(report, settings={**report.settings, "tolerance": tolerance}, conclusion=conclusion)


def _differs_somewhere(report: Report, tolerance: float) -> bool:
    """Return whether the worst region of the inputs is shown to be beyond the tolerance."""
    region = report.region
    if region is None or region.value is None or region.low is None or region.high is None:
        return False
    topic: Topic = "bias" if region.level is None else "size"
    return is_outside(Estimate(topic, region.value, region.low, region.high), tolerance)


def _output(name: str, report: Report) -> OutputConclusion:
    """Return the conclusion about one of several targets with its metrics; it shows nothing if there is none."""
    found = report.conclusion or Conclusion(answer="not-shown", effects=())
    answered = {each.name: getattr(found, each.name) for each in fields(Answered)}
    return OutputConclusion(name=name, results=report.results, overall=report.overall, region=report.region, **answered)


def with_hint(report: Report, hint: str) -> Report:
    """Return a report whose conclusion has a hint about its targets; unchanged without a hint."""
    if report.conclusion is None or not hint:
        return report
    effects = (*report.conclusion.effects, Effect(topic="targets", text=hint))
    return replace(report, conclusion=replace(report.conclusion, effects=effects))


def unjudged_conclusion(
    settings: Mapping[str, Any], further: str = "", *, impossible: Sequence[Effect] = ()
) -> Conclusion | None:
    """Return the conclusion if rows were noticed to depend on each other, which judges impossible targets only."""
    noticed = settings.get("dependence_noticed")
    if noticed is None:
        return None
    text = f"nothing{' else' if impossible else ''} is judged, since {noticed['reason']}{further}"
    unclear = Effect(topic="dependence", text=text)
    return Conclusion(answer="no" if impossible else "not-shown", effects=(*impossible, unclear))


def _together(report: Report) -> list[Effect]:
    """Return what all metrics together say, where the size of the uncertainties cannot be judged."""
    overall = report.overall
    if overall is None or overall.verdict == "none":
        return []
    fails = overall.verdict == "fail"
    words = f"fail, led by {overall.leading}" if fails else "do not differ from those of a perfect model"
    text = f"{len(overall.metrics)} metrics together {words} ({p_text(overall.p_value)})"
    return [Effect(topic="others", p=overall.p_value, within=False if fails else None, text=text)]
