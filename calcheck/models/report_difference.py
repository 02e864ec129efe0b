"""Changes between two reports."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from calcheck.reports import Report, Result, Verdict

Key = tuple[str, str, str, int]

DIFF_SCHEMA_VERSION = 2


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
    only_old: tuple[Unmatched, ...]  # Results that only the old report has
    only_new: tuple[Unmatched, ...]  # Results that only the new report has
    differences: tuple[Difference, ...]  # Differences in input, settings and versions


def diff(old: Report, new: Report) -> Diff:
    """Return the changes between results with the same metric, options and subset in two reports."""
    from calcheck.core import __version__

    before, after = _keyed(old.results), _keyed(new.results)
    return Diff(
        calcheck=__version__,
        changes=tuple(_change(result, after[key]) for key, result in before.items() if key in after),
        only_old=_unmatched(before, after, new),
        only_new=_unmatched(after, before, old),
        differences=tuple(_differences(old, new)),
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
