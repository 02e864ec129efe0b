"""Metrics of several targets that are those of the worst of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

from calcheck.inference.metric_protocol import IntervalInference, RowResults
from calcheck.metrics._lazy import groups, np
from calcheck.report import rejects

if TYPE_CHECKING:
    from calcheck.predictions import Predictions
    from calcheck.statistics.groups import Means
    from calcheck.typing import Values

TARGET = "target "  # Beginning of the names of what belongs to one of several targets
ValueT = TypeVar("ValueT")


def each_target(rows: Predictions) -> list[Predictions]:
    """Return the rows with each of their targets alone, and its distributions; the rows themselves if there is one."""
    from calcheck.distributions.joint import Independent, JointGaussian
    from calcheck.distributions.samples import Samples
    from calcheck.errors import DataError

    predictive = rows.distributions()
    if predictive.targets == 1:
        return [rows]
    y, known = rows.targets(), predictive.load()
    if isinstance(known, JointGaussian):
        known = known.independent
    if isinstance(known, Independent):
        parts: Sequence[Any] = known.marginals
    elif isinstance(known, Samples):
        parts = [Samples(np.ascontiguousarray(known.draws[:, :, place])) for place in range(known.targets)]
    else:
        raise DataError(f"{known.display_name} are no distributions of single targets")
    return [rows.with_targets(np.ascontiguousarray(y[:, place]), part) for place, part in enumerate(parts)]


def join(parts: Sequence[Mapping[str, ValueT]]) -> dict[str, ValueT]:
    """Return what belongs to each target under names that say to which; the names of a single one do not change."""
    if len(parts) == 1:
        return dict(parts[0])
    return {f"{TARGET}{place}: {name}": each for place, part in enumerate(parts) for name, each in part.items()}


def split(named: Mapping[str, ValueT]) -> list[dict[str, ValueT]]:
    """Return what :func:`join` merged, with what belongs to all targets in each part."""
    prefixes = dict.fromkeys(f"{name.split(': ')[0]}: " for name in named if name.startswith(TARGET))
    common = {name: each for name, each in named.items() if not name.startswith(TARGET)}
    parts = [
        {name.removeprefix(prefix): each for name, each in named.items() if name.startswith(prefix)} | common
        for prefix in prefixes
    ]
    return parts or [common]


def split_means(means: Means) -> list[Means]:
    """Return the means of each target."""
    return [groups.Means(part, means.n) for part in split(means)]


def split_rows(rows: RowResults) -> list[RowResults]:
    """Return the results of each target."""
    terms, fixed = split(rows.terms), split(rows.fixed)
    columns = split(rows.columns) if rows.columns else [{} for _ in terms]
    parts = zip(columns, terms, fixed, strict=True)
    return [replace(rows, columns=own, terms=each, fixed=others) for own, each, others in parts]


def join_rows(parts: Sequence[RowResults]) -> RowResults:
    """Return the results of several targets."""
    return replace(
        parts[0],
        columns=join([each.columns for each in parts]),
        terms=join([each.terms for each in parts]),
        fixed=join([each.fixed for each in parts]),
        warnings=tuple(dict.fromkeys(message for each in parts for message in each.warnings)),
    )


def farthest(values: Iterable[Values], distance: Callable[[Values], Values]) -> Values:
    """Return the values of the target whose distance from its ideal is largest, (...)."""
    return reduce(lambda one, other: np.where(distance(other) > distance(one), other, one), values)


def hull(found: Sequence[IntervalInference], confidence: float) -> IntervalInference:
    """Return the interval that contains those of all targets, judged by the smallest p-value times their number."""
    lows, highs = [each.low for each in found], [each.high for each in found]
    known = [each.p_value for each in found if each.p_value is not None]
    p_value = min(1.0, len(found) * min(known)) if known else None
    return replace(
        found[0],
        low=None if None in lows else min(each for each in lows if each is not None),
        high=None if None in highs else max(each for each in highs if each is not None),
        p_value=p_value,
        verdict="fail" if p_value is not None and rejects(p_value, confidence) else "pass",
        warnings=tuple(dict.fromkeys(each for part in found for each in part.warnings)),
    )
