"""Changes between two reports, and whether the model is worse on other rows."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

from calcheck.conclusion.answer import CONFIDENCE, LOCAL
from calcheck.core.text import p_text, percent
from calcheck.models.best_model import SCORES, SIGNED
from calcheck.options import TOLERANCE
from calcheck.reports import Report, Result, Verdict, rejects
from calcheck.reports.conclusion import Effect, effect_name

Key = tuple[str, str, str, int]
Outcome = Literal["worse", "not-worse", "not-shown"]

DIFF_SCHEMA_VERSION = 2
SQUARES, SIZE = "zms", "effects.size"  # What shows a change of size: in fewest rows, and of intervals


@dataclass(frozen=True, kw_only=True)
class Change:
    """The change of one metric that is in both reports."""

    metric: str
    options: dict[str, Any]
    slice: dict[str, Any]
    unit: str
    old: float | None  # Old value; infinite if a target has probability 0
    new: float | None  # New value; infinite if a target has probability 0
    change: float | None  # New value minus old value
    relative: float | None  # The change divided by the absolute old value; None if that is 0
    old_low: float | None  # Lower limit of the old interval
    old_high: float | None  # Upper limit of the old interval
    new_low: float | None  # Lower limit of the new interval
    new_high: float | None  # Upper limit of the new interval
    overlap: bool | None  # Whether the intervals overlap; None unless both exist
    inside: bool | None  # Whether the new value is in the old interval
    old_verdict: Verdict  # Old verdict
    new_verdict: Verdict  # New verdict


@dataclass(frozen=True, kw_only=True)
class Worsening:
    """How much farther from a right model a report is than an earlier one of other rows, in one respect."""

    name: str  # An effect of the answer, or a score relative to that of a perfect model; of several targets with theirs
    old: float  # Earlier distance from a right model: of a logarithm for factors, relative for scores in the unit of y
    new: float  # Present distance
    worsening: float  # The new distance minus the old one
    high: float  # Upper limit of the worsening
    p_value: float  # p-value of the worsening, adjusted for the number of these (Benjamini, Hochberg)
    outcome: Outcome  # "not-worse" if it is shown to be within the tolerance
    text: str  # The sentence


@dataclass(frozen=True, kw_only=True)
class Unmatched:
    """A result that the other report does not contain."""

    metric: str
    options: dict[str, Any]
    slice: dict[str, Any]
    value: float | None
    reason: str | None  # Why the other report skipped the metric, if it says so


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Another field that differs: ``"input.n"``, ``"settings.versions.numpy"``."""

    path: str  # Path of the field that differs
    old: Any  # Its value in the old report; null if absent
    new: Any  # Its value in the new report; null if absent


@dataclass(frozen=True, kw_only=True)
class Diff:
    """The changes between two reports."""

    schema_version: int = DIFF_SCHEMA_VERSION  # Version of the schema
    calcheck: str  # Version of calcheck that compared the reports
    changes: tuple[Change, ...]  # Changes of results in both reports (same metric, options and subset)
    answers: tuple[Difference, ...]  # The answers: of all targets first, then by the name of one; null if there is none
    only_old: tuple[Unmatched, ...]  # Results that only the old report has
    only_new: tuple[Unmatched, ...]  # Results that only the new report has
    worsenings: tuple[Worsening, ...]  # What is worse, as if all rows were different ones
    differences: tuple[Difference, ...]  # Differences in input, settings and versions


def diff(old: Report, new: Report) -> Diff:
    """Return the changes between results with the same metric, options and subset in two reports."""
    from calcheck.core import __version__

    before, after = (_keyed(list(_results(each))) for each in (old, new))
    return Diff(
        calcheck=__version__,
        answers=tuple(_answers(old, new)),
        changes=tuple(_change(result, after[key]) for key, result in before.items() if key in after),
        only_old=_unmatched(before, after, new),
        only_new=_unmatched(after, before, old),
        worsenings=tuple(worsenings(old, new)),
        differences=tuple(_differences(old, new)),
    )


def _answers(old: Report, new: Report) -> Iterator[Difference]:
    """Yield the answers if there are any: of all targets, and of each of several."""
    before, after = (
        {
            name: part.conclusion and part.conclusion.answer
            for name, part in ({"answer": each} | _of_targets(each)).items()
        }
        for each in (old, new)
    )
    for path in dict.fromkeys([*before, *after]) if any([*before.values(), *after.values()]) else ():
        yield Difference(path=path, old=before.get(path), new=after.get(path))


def _of_targets(report: Report) -> dict[str, Report]:
    return report.of_outputs() | dict(report.targets or {})


def _results(report: Report) -> Iterator[Result]:
    """Yield the results, also those of each of several targets, whose slice names it."""
    yield from report.results
    for name, own in _of_targets(report).items():
        yield from (replace(each, slice={"target": name, **each.slice}) for each in own.results)


class _Distance(NamedTuple):
    """How far a report is from a right model in one respect."""

    value: float  # 0 for a right model; signed, if both signs are wrong
    error: float  # Standard error
    room: float  # Worsening that does not matter
    text: str  # The number that the report states


def worsenings(old: Report, new: Report) -> list[Worsening]:
    """Return by how much a report is worse than an earlier one whose rows are independent of its own.

    It is worse in one respect if the adjusted p-value of the increase of the distance from a right model is
    significant, and the increase is not shown to be within the tolerance of the new report. Scores are relative to
    those that a perfect model would have on the same rows. The test of an absolute value is one of intersection and
    union: it is larger only if the estimate exceeds both the other one and its opposite (Berger 1982). p-values are
    adjusted by Benjamini and Hochberg (1995), the size with half of all weights, since most faults change it
    (Genovese, Roeder, Wasserman 2006): of a model that has not changed, some are at most 0.05 in 5 % of pairs.
    """
    tolerance = float(new.settings.get("tolerance", TOLERANCE))
    confidence = float(new.settings.get("confidence", CONFIDENCE))
    before, after = (dict(_distances(each, tolerance)) for each in (old, new))
    pairs = {name: (before[name], after[name]) for name in before if name in after}
    normal, compared, adjusted = NormalDist(), {}, 1.0
    for name, (first, second) in pairs.items():
        error = math.hypot(first.error, second.error)
        change = abs(second.value) - abs(first.value)
        compared[name] = (
            change,
            change + normal.inv_cdf(confidence) * error,
            math.erfc(change / error / math.sqrt(2)) / 2,
        )
    found, weights = {}, _weights(list(pairs))
    compared = {name: (change, high, min(1.0, p / weights[name])) for name, (change, high, p) in compared.items()}
    ranked = sorted(compared, key=lambda each: compared[each][-1])
    for rank, name in reversed(list(enumerate(ranked, 1))):
        (first, second), (change, high, p) = pairs[name], compared[name]
        adjusted = min(adjusted, len(compared) / rank * p)
        inside = high <= second.room
        outcome: Outcome = "not-worse" if inside else "worse" if rejects(adjusted, confidence) else "not-shown"
        told = {
            "worse": f"worse ({p_text(adjusted)})",
            "not-worse": f"not worse within {percent(tolerance)}",
            "not-shown": f"not shown, neither worse nor within {percent(tolerance)}",
        }[outcome]
        found[name] = Worsening(
            name=name,
            old=abs(first.value),
            new=abs(second.value),
            worsening=change,
            high=high,
            p_value=adjusted,
            outcome=outcome,
            text=f"{second.text}, before {first.text}: {told}",
        )
    return [found[name] for name in pairs]


def _weights(names: Sequence[str]) -> dict[str, float]:
    """Return the weights of tests, whose mean is 1: the size of each target has half of all, if there are others."""
    sizes = [name for name in names if name.endswith(SQUARES)] or [name for name in names if name.endswith(SIZE)]
    others, half = len(names) - len(sizes), len(names) / 2
    if not sizes or not others:
        return dict.fromkeys(names, 1.0)
    return {name: half / len(sizes) if name in sizes else half / others for name in names}


def _distances(report: Report, tolerance: float) -> Iterator[tuple[str, _Distance]]:
    """Yield the distances from a right model: of each target, of the answer's effects, and of the scores."""
    normal = NormalDist()
    confidence = float(report.settings.get("confidence", CONFIDENCE))
    one_sided, two_sided = normal.inv_cdf(confidence), normal.inv_cdf((1 + confidence) / 2)
    parts = {"": report} | {f"{name} ": each for name, each in _of_targets(report).items()}
    for part, each in parts.items():
        for effect in each.conclusion.effects if each.conclusion else ():
            yield from _of_effect(part, effect, one_sided, tolerance)
        for result in each.results:
            if result.metric in SCORES and not result.slice:
                yield from _of_score(part, result, two_sided, tolerance)
            elif result.metric == SQUARES and not result.slice:
                yield from _of_squares(part, result, two_sided, tolerance)


def _of_effect(part: str, effect: Effect, quantile: float, tolerance: float) -> Iterator[tuple[str, _Distance]]:
    value, low, high = effect.value, effect.low, effect.high
    if value is None or low is None or effect.topic == "shape":
        return
    name = f"{part}effects.{effect_name(effect.topic, effect.kind)}"
    if effect.topic in LOCAL:  # The square is a variance component, whose estimate is nearly symmetric
        text = f"{value:.2g}"
        value, low = (math.copysign(each * each, each) for each in (value, low))
        value, error, room = max(value, 0.0), (value - low) / quantile, tolerance**2
    elif high is None or (effect.topic != "bias" and low <= 0):
        return
    else:
        text = f"{value:.3g} ({low:.3g}–{high:.3g})"
        if effect.topic != "bias":
            value, low, high = (math.log(each) for each in (value, low, high))
        error = (high - low) / (2 * quantile)
        room = tolerance if effect.topic == "bias" else math.log1p(tolerance)
    if error > 0:
        yield name, _Distance(value, error, room, text)


def _of_squares(part: str, result: Result, quantile: float, tolerance: float) -> Iterator[tuple[str, _Distance]]:
    """Yield the logarithm of the root mean square of errors in predicted standard deviations."""
    known = [each for each in (result.value, result.low, result.high) if each is not None and each > 0]
    match known:
        case value, low, high if low < high:
            error = math.log(high / low) / (4 * quantile)
            text = f"{value:.3g} ({low:.3g}–{high:.3g})"
            yield f"{part}{SQUARES}", _Distance(math.log(value) / 2, error, math.log1p(tolerance), text)


def _of_score(part: str, result: Result, quantile: float, tolerance: float) -> Iterator[tuple[str, _Distance]]:
    """Yield the score minus that of a perfect model; relative to it, where scores cannot be negative.

    The tolerance of a likelihood is what it loses if normal errors are as much larger than predicted.
    """
    value, reference, low, high = result.value, result.reference, result.low, result.high
    if value is None or reference is None or low is None or high is None or high <= low:
        return
    signed = result.metric in SIGNED
    if not signed and reference <= 0:
        return
    unit = 1.0 if signed else reference
    room = ((1 + tolerance) ** 2 - 1) / 2 if signed else tolerance
    text = f"{reference:.3g} of" if signed else f"{value / reference:.3g} times that of"
    text = f"{value:.3g} ({text} a perfect model)"
    yield (
        f"{part}{result.metric}",
        _Distance((value - reference) / unit, (high - low) / (2 * quantile * unit), room, text),
    )


def _keyed(results: Sequence[Result]) -> dict[Key, Result]:
    """Return results by metric, options and subset; a counter distinguishes duplicates."""
    counts: Counter[tuple[str, str, str]] = Counter()
    found = {}
    for result in results:
        key = (result.metric, _canonical(result.options), _canonical(result.slice))
        found[*key, counts[key]] = result
        counts[key] += 1
    return found


def _canonical(options: dict[str, Any]) -> str:
    return json.dumps(options, sort_keys=True)


def _change(old: Result, new: Result) -> Change:
    before, after = old.number, new.number
    change = None if before is None or after is None else _finite(after - before)
    return Change(
        metric=old.metric,
        options=old.options,
        slice=old.slice,
        unit=old.unit,
        old=before,
        new=after,
        change=change,
        relative=None if change is None or not before else _finite(change / abs(before)),
        old_low=old.low,
        old_high=old.high,
        new_low=new.low,
        new_high=new.high,
        overlap=_overlap(old, new),
        inside=_inside(after, old),
        old_verdict=old.verdict,
        new_verdict=new.verdict,
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _overlap(old: Result, new: Result) -> bool | None:
    if old.low is None or old.high is None or new.low is None or new.high is None:
        return None
    return max(old.low, new.low) <= min(old.high, new.high)


def _inside(value: float | None, old: Result) -> bool | None:
    if value is None or old.low is None or old.high is None:
        return None
    return old.low <= value <= old.high


def _unmatched(own: dict[Key, Result], others: dict[Key, Result], other: Report) -> tuple[Unmatched, ...]:
    reasons = {skipped.metric: skipped.reason for skipped in other.skipped}
    return tuple(
        Unmatched(
            metric=result.metric,
            options=result.options,
            slice=result.slice,
            value=result.number,
            reason=reasons.get(result.metric),
        )
        for key, result in own.items()
        if key not in others
    )


def _differences(old: Report, new: Report) -> Iterator[Difference]:
    """Yield the differences in input, settings and versions, field by field."""
    before, after = (
        dict(_flat("", {"calcheck": each.calcheck, "input": asdict(each.input), "settings": each.settings}))
        for each in (old, new)
    )
    for path in dict.fromkeys([*before, *after]):
        if before.get(path) != after.get(path):
            yield Difference(path=path, old=before.get(path), new=after.get(path))


def _flat(where: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a nested structure, each with its path."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _flat(f"{where}.{name}" if where else name, part)
    elif isinstance(value, (list, tuple)):
        for place, part in enumerate(value):
            yield from _flat(f"{where}[{place}]", part)
    else:
        yield where, value
