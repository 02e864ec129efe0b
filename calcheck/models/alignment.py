"""Alignment of models: the same rows, matched by keys or by row number, and what was read of all of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from calcheck.errors import SHOWN, DataError
from calcheck.io.column_roles import ParametersRole, ResidualRole
from calcheck.io.file_source import FileSource
from calcheck.metrics.base import ComparesOutcomes, HasMeasure, LevelOption, Metric
from calcheck.predictions import DerivedSource, Predictions, Source
from calcheck.reports import Input
from calcheck.typing import AnyArray, Indices

ROUNDING = 1e-6  # relative tolerance for targets, because files may be in single precision
WITH_IDS = "Pass --id with the name of an id column"


@dataclass(frozen=True, eq=False)
class Model:
    """A model's predictions."""

    name: str  # Name of the model
    source: Source  # Predictions of the model
    has_errors: bool = False  # Whether the file has errors instead of targets, so that targets cannot be compared

    @classmethod
    def from_source(cls, name: str, source: Source) -> Self:
        """Return a model; the roles of the columns say whether its source has errors instead of targets."""
        role = source.roles.predictive if isinstance(source, FileSource) else None
        has_errors = isinstance(role, ResidualRole) or (isinstance(role, ParametersRole) and bool(role.error))
        return cls(name, source, has_errors=has_errors)


@dataclass(frozen=True, eq=False)
class AlignedSource(DerivedSource):
    """A source whose rows were reordered to match another source."""

    rows: Predictions

    def batches(self) -> Iterator[Predictions]:
        yield self.rows

    def predictions(self) -> Predictions:
        return self.rows


def align_models(models: Sequence[Model]) -> list[Source]:
    """Return the sources of all models, with their rows in the order of the first model."""
    first, *others = models
    rows = first.source.predictions()
    return [first.source, *(_matched(first, rows, other) for other in others)]


def incomparable_reason(metric: Metric[Any], sources: Sequence[Source]) -> str:
    """Return why the values of a metric for several models cannot be compared; empty if they can."""
    if isinstance(metric, LevelOption):
        levels = sorted({metric.level_of(source.predictions().predictive) for source in sources})
        listed = ", ".join(f"{level:g}" for level in levels)
        return f"has intervals at different levels for the models ({listed}): pass --level" if len(levels) > 1 else ""
    if isinstance(metric, HasMeasure):
        measures = {metric.measure(source.predictions().distributions()) for source in sources}
        text = "compares densities of some models with probability masses of others: pass --discretise"
        return text if len(measures) > 1 else ""
    own = {isinstance(metric, ComparesOutcomes) and metric.outcomes(source) is not source for source in sources}
    return "compares distributions of some models, and the coverage of intervals of others" if len(own) > 1 else ""


def _matched(first: Model, rows: Predictions, other: Model) -> Source:
    theirs = other.source.predictions()
    if rows.id is not None and theirs.id is not None:
        order = _order(rows.id, theirs.id, (first.name, other.name), rows.id_name)
        if (order != np.arange(len(order))).any():
            theirs = theirs.take(order)
        if first.has_errors or other.has_errors:
            return AlignedSource(other.source, theirs)
        remedy = "Rows with the same id must have the same target"
        _require_same_targets(rows, theirs, (first.name, other.name), remedy=remedy)
    else:
        if len(rows) != len(theirs):
            counts = f"{first.name} has {len(rows):,} rows, {other.name} has {len(theirs):,}"
            raise DataError(f"{counts}, and without ids the rows cannot be matched. {WITH_IDS}")
        if rows.y is None or theirs.y is None:
            msg = f"{first.name} and {other.name} have neither ids nor targets, so their rows may differ. {WITH_IDS}"
            raise DataError(msg)
        what = "errors" if first.has_errors or other.has_errors else "targets"
        remedy = f"Without ids they must be equal row by row. {WITH_IDS}"
        _require_same_targets(rows, theirs, (first.name, other.name), what=what, remedy=remedy)
    return AlignedSource(other.source, theirs if rows.y is None or theirs.y is None else replace(theirs, y=rows.y))


def _order(ids: AnyArray, theirs: AnyArray, names: tuple[str, str], id_name: str) -> Indices:
    """Return the positions of the first model's rows in the other file, (n,); ids are text if one file has texts."""
    if ids.dtype.kind != theirs.dtype.kind:
        ids, theirs = ids.astype(str), theirs.astype(str)
    if np.array_equal(ids, theirs):
        return np.arange(len(ids))
    import pandas as pd

    known = pd.Index(theirs, dtype=object if theirs.dtype.kind in "OU" else None)
    if not known.is_unique:
        (repeated,) = theirs[[known.duplicated().argmax()]].tolist()
        raise DataError(f"{id_name}={repeated!r} occurs more than once in {names[1]}. Keep one row per id")
    order: Indices = known.get_indexer(ids)
    unused = np.ones(len(theirs), dtype=bool)
    unused[order[order >= 0]] = False
    if unused.all():
        first, second = (", ".join(map(repr, each[:SHOWN].tolist())) for each in (ids, theirs))
        msg = f"{names[0]} ({id_name}={first}, …) and {names[1]} ({id_name}={second}, …) have no row in common"
        raise DataError(f"{msg}. Models are compared on the same rows")
    missing = ((*names, ids[order < 0], len(ids)), (*names[::-1], theirs[unused], len(theirs)))
    messages = [_lost(here, there, lost.tolist(), count, id_name) for here, there, lost, count in missing if len(lost)]
    if messages:
        remedy = "Models must have the same rows: remove the others from both files, e.g. with --filter"
        raise DataError(f"{'; '.join(messages)}. {remedy}")
    return order


def _lost(here: str, there: str, lost: list[Any], count: int, called: str) -> str:
    """Return a message about the rows of one file that are missing in the other."""
    shown = ", ".join(repr(key) for key in lost[:SHOWN]) + (", …" if len(lost) > SHOWN else "")
    verb = "is" if len(lost) == 1 else "are"
    return f"{len(lost):,} of {count:,} rows of {here} {verb} not in {there}, e.g. {called}={shown}"


def _require_same_targets(
    rows: Predictions, theirs: Predictions, names: tuple[str, str], *, what: str = "targets", remedy: str
) -> None:
    """Raise unless both models have the same targets, row by row; absent targets match any targets."""
    y, others = rows.y, theirs.y
    if y is None or others is None:
        return
    if y.shape != others.shape:
        raise DataError(f"{names[0]} and {names[1]} have {y[0].size} and {others[0].size} target columns. {remedy}")
    differ = np.abs(y - others) > ROUNDING * np.maximum(np.abs(y), np.abs(others))
    bad = np.flatnonzero(differ.reshape(len(y), -1).any(axis=1))
    if not len(bad):
        return
    keys, label = (rows.row_numbers(), "row") if rows.id is None else (rows.id, rows.id_name)
    texts = [(keys[row], _target_text(y[row]), _target_text(others[row])) for row in bad[:SHOWN].tolist()]
    examples = "; ".join(f"{label} {key}: {own} against {other}" for key, own, other in texts)
    more = "; …" if len(bad) > SHOWN else ""
    msg = f"{len(bad):,} of {len(y):,} {what} of {names[0]} and {names[1]} differ ({examples}{more}). {remedy}"
    raise DataError(msg)


def _target_text(target: Any) -> str:
    return ", ".join(f"{value:g}" for value in np.atleast_1d(target))


def comparison_input(names: Sequence[str], read: Sequence[Input]) -> Input:
    """Return the input of a comparison: properties that all models share once, others for each model."""
    first = read[0]
    columns = {
        f"{role} of {name}": column
        for name, each in zip(names, read, strict=True)
        for role, column in each.columns.items()
    }
    return Input(
        files=tuple(file for each in read for file in each.files),
        n=first.n,
        dropped=sum(each.dropped for each in read),
        predictive=_joint_text(names, [each.predictive for each in read]),
        columns=first.columns if _all_same([each.columns for each in read]) else columns,
        options=first.options if _all_same([each.options for each in read]) else (),
        layout=_joint_text(names, [each.layout for each in read]),
    )


def _joint_text(names: Sequence[str], texts: Sequence[str | None]) -> str | None:
    """Return a text that all models share, else the texts with the models' names."""
    if _all_same(texts):
        return texts[0]
    return ", ".join(f"{each} ({name})" for name, each in zip(names, texts, strict=True) if each is not None)


def _all_same(values: Sequence[Any]) -> bool:
    return all(value == values[0] for value in values)
