"""Metrics and keywords of the functions for Python: their types, their checks, and what they open."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from os import PathLike
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numpy as np

from calcheck.api import keywords
from calcheck.errors import DataError, OptionError, keyword_messages, with_suggestion
from calcheck.io import read
from calcheck.io.dataframes import TableInMemory, is_table, matrix_of
from calcheck.io.evaluation_points import (
    UNJUDGED,
    UNUSED,
    NewRows,
    inputs_like,
    new_rows_like,
    read_inputs,
    read_new_rows,
)
from calcheck.io.file_source import FileSource, with_needed_columns
from calcheck.io.python_arguments import ColumnArguments, unknown_argument
from calcheck.metrics import DEFAULT_METRICS, METRICS, TWO_SAMPLE_METRICS, canonical_name
from calcheck.metrics.base import Metric
from calcheck.options import Option, options_of
from calcheck.predictions import InMemory, Predictions, Source
from calcheck.render.numbers_and_notes import skip_reasons
from calcheck.reports import Report

AnyMetric: TypeAlias = Metric[Any]
OptionsT = TypeVar("OptionsT")
ResultT = TypeVar("ResultT")
ParametersT = ParamSpec("ParametersT")
Metrics: TypeAlias = "str | AnyMetric | Sequence[str | AnyMetric]"
Data: TypeAlias = Any  # What calcheck.read takes, what it returns, or Predictions

ROLES = ("y", "mean", "std")  # Of arrays by position
OBJECTS = frozenset({"data", "models", "metrics", "metric", "cce", "vary", "new", "to", "at", "on"})
"""Parameters that are objects in Python where the command line has names and files."""


class Options(keywords.RunKeywords, ColumnArguments, total=False):
    """Keywords for a run, and for reading."""


class DependentOptions(Options, keywords.DependenceKeywords, total=False):
    """Keywords for dependent rows, a run, and reading."""


class WeightedOptions(DependentOptions, keywords.WeightKeywords, total=False):
    """Keywords for sampling weights, dependent rows, a run, and reading."""


class RecalibrationArguments(Options, keywords.RecalibrationKeywords, total=False):
    """Keywords for a recalibration, a run, and reading."""


class MonitorArguments(Options, keywords.MonitorKeywords, total=False):
    """Keywords for a monitored model, a run, and reading."""


class SearchArguments(WeightedOptions, keywords.SearchKeywords, total=False):
    """Keywords for a search of regions, a run, and reading."""


@keyword_messages()
def metric(name: str, /, **options: Any) -> AnyMetric:
    """Return a metric with options.

    Parameters
    ----------
    name : str
        Name of the metric or its alias, as listed by ``calcheck metrics``.
    **options
        Options of its command: ``lambda_`` or ``lambda`` for ``--lambda``, ``gamma_x`` for ``--gamma-x``.

    Returns
    -------
    Metric
        A metric for :func:`evaluate` and the other functions.

    Raises
    ------
    OptionError
        There is no such metric or option, or a value is invalid.

    Examples
    --------
    >>> metric("width", level=0.9).options()
    {'level': 0.9}
    """
    chosen = (METRICS | TWO_SAMPLE_METRICS).named(canonical_name(name))
    known = {spelling: option for option in options_of(chosen) for spelling in (option.field, option.name)}
    if unknown := [option for option in options if option not in known]:
        names = ", ".join(option.field for option in options_of(chosen)) or "none"
        raise OptionError(with_suggestion(f"{name} has no option {unknown[0]!r} (options: {names})", unknown[0], known))
    given = {known[key]: value for key, value in options.items()}
    return chosen(**{each.field: checked(each, value, f"{name}: {each.field}") for each, value in given.items()})


def selected(metrics: Metrics | None) -> list[AnyMetric]:
    """Return metrics by name or with options; the default metrics for None."""
    if metrics is None:
        return [metric(name) for name in DEFAULT_METRICS]
    chosen = [named_metric(each) for each in listed(metrics)]
    if not chosen:
        raise OptionError("there are no metrics to compute. Name at least one, or omit metrics for all that apply")
    for each in chosen:
        if each.info.name in TWO_SAMPLE_METRICS:
            msg = f"{each.info.name} compares two samples, without predictions: use calcheck.compare_samples"
            raise OptionError(msg)
    return chosen


def named_metric(value: Any) -> AnyMetric:
    """Return a metric by its name or with options."""
    if isinstance(value, str):
        return metric(value)
    if not isinstance(value, Metric):
        raise OptionError(f"metrics are names or calcheck.metric(name, …), got {value!r}")
    return value


def listed_name(parameter: str, name: str | None) -> list[str]:
    """Return the column that a parameter names, in a list; none for None."""
    if not isinstance(name, str | None):
        raise OptionError(f"{parameter} takes the name of a column, got {type(name).__name__}")
    return [name] if name else []


def listed(value: Any) -> list[Any]:
    """Return the items of a list or another iterable, or a single value as a list; none for None."""
    if value is None:
        return []
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]


def checked(option: Option, value: Any, name: str) -> Any:
    """Return a value of an option, with its type checked; None if that is the default."""
    if value is None and option.default is None:
        return None
    value = _plain(value)
    return option.take(list(map(_plain, value)) if isinstance(value, list | tuple) else value, name)


def _plain(value: Any) -> Any:
    """Return a number of numpy as one of Python, and an array as a list."""
    return value.tolist() if hasattr(value, "tolist") else value


def options_from(owner: type[OptionsT], given: Mapping[str, Any]) -> OptionsT:
    """Return the options of a study in keywords, with their types checked; other keywords are left out."""
    names = getattr(owner, "keywords", {})
    declared = {names.get(each.field, each.field): each for each in options_of(owner)}
    values = {name: given[name] for name in declared if name in given}
    values |= {name: listed(value) for name, value in values.items() if declared[name].listed and value is not None}
    return owner(**{declared[name].field: checked(declared[name], value, name) for name, value in values.items()})


def require_known(options: Mapping[str, Any], declared: type[Any], further: Iterable[str] = ()) -> None:
    """Raise unless all keywords are declared; ``further`` are other parameters, which may be meant."""
    if unknown := [name for name in options if name not in declared.__annotations__]:
        raise OptionError(unknown_argument(unknown[0], [*declared.__annotations__, *further]))


def checked_count(name: str, value: Any) -> int:
    """Return a number of rows or permutations, an integer >= 0."""
    count: int = checked(Option(name, int, 0), value, name)
    if count < 0:
        raise OptionError(f"{name} must be >= 0, got {count}")
    return count


def public(function: Callable[ParametersT, ResultT]) -> Callable[ParametersT, ResultT]:
    """Return a function that takes arrays by position, and whose errors name keywords and say what to call."""
    signature = inspect.signature(function)

    @wraps(function)
    def called(*given: ParametersT.args, **options: ParametersT.kwargs) -> ResultT:
        with keyword_messages():
            further, named = with_arrays(given, options) if "data" in signature.parameters else (given, options)
            try:
                signature.bind(*further, **named)
            except TypeError as error:
                raise OptionError(f"{function.__name__}: {error} (see help(calcheck.{function.__name__}))") from None
            return function(*further, **named)

    return called


def with_arrays(given: Sequence[Any], options: Mapping[str, Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Return arguments by position and by keyword; targets, means or draws, and standard deviations are keywords."""
    data: Any
    data, *further = given or (None,)
    is_vector = len(getattr(data, "shape", ())) == 1  # Series of some libraries have the interface of tables
    known = data is None or isinstance(data, (str, PathLike, Source, Predictions, Mapping))
    is_list = isinstance(data, (list, tuple))
    is_array = not known and (is_vector or not is_table(data))
    if not is_array or (is_list and all(isinstance(each, (str, PathLike)) for each in data)):
        return given, options
    if is_list and len(data) <= len(ROLES) and all(getattr(each, "shape", ()) for each in data):
        raise OptionError(f"the first argument is a list of {len(data)} arrays: pass them one by one, as y, mean, std")
    names = further[:1]
    if not names or names[0] is None or isinstance(names[0], (str, Metric)) or _are_metrics(names[0]):
        return (None, *names, *further[1:]), {**options, "y": data}
    if len(given) > len(ROLES):
        msg = f"by position, there are targets, means and standard deviations, got {len(given)} arrays"
        raise OptionError(f"{msg}. Pass others by keyword, such as inputs=x")
    roles = ("y", "samples") if len(given) == 2 and len(np.shape(further[0])) > 1 else ROLES  # noqa: PLR2004 - y, draws
    return (), {**options, **dict(zip(roles, given, strict=False))}


def _are_metrics(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(each, (str, Metric)) for each in value)


def open_source(
    data: Data,
    columns: dict[str, Any],
    metrics: Sequence[AnyMetric],
    also: Sequence[str] = (),
    *,
    dependence: Sequence[str] = (),
    narrow: bool = False,
    inputs: bool = False,
) -> Source:
    """Return the source of data, with the columns that metrics need; all scalar columns if ``narrow``."""
    if isinstance(data, (Source, Predictions)) and columns:
        raise OptionError(f"{next(iter(columns))} applies to data that are not read yet. Pass it to calcheck.read")
    source = InMemory(data) if isinstance(data, Predictions) else data
    source = source if isinstance(source, Source) else read(source, **columns)
    if not isinstance(source, FileSource):
        return source
    source = replace(source, dependence=tuple(dependence))
    return with_needed_columns(source, metrics, narrow=narrow, also=also, inputs=inputs)


def are_datasets(models: Any) -> bool:
    """Return whether the values of a mapping are data sets, which are mappings of models, and no models."""
    if not isinstance(models, Mapping):
        return False
    found = {str(name): each for name, each in models.items() if _is_dataset(each)}
    others = [name for name, each in models.items() if not _is_dataset(each)]
    if found and others:
        raise OptionError(
            f"{next(iter(found))!r} holds models, and {others[0]!r} is a model: pass models, {{'a': frame}}, or data"
            " sets of models, {'boston': {'a': frame}}"
        )
    for dataset, own in found.items():
        if nested := [name for name, each in own.items() if _is_dataset(each)]:
            msg = f"{nested[0]!r} of {dataset!r} holds models: data sets hold models, and no further data sets"
            raise OptionError(msg)
    if found and len(found) < len(models):
        raise OptionError(f"data sets need different names, got {', '.join(map(repr, models))}")
    return bool(found)


def are_models(models: Mapping[Any, Any]) -> bool:
    """Return whether the values of a mapping are models, and no columns."""
    return all(map(_is_model, models.values()))


def _is_dataset(value: Any) -> bool:
    """Return whether a value is a mapping of models, and not one of columns, which is a model."""
    return isinstance(value, Mapping) and are_models(value)


def _is_model(value: Any) -> bool:
    """Return whether a value is a file, a source, a mapping or a table, and not a column with Arrow's interface."""
    known = (str, PathLike, Source, Predictions, Mapping)
    return isinstance(value, known) or (is_table(value) and (hasattr(value, "columns") or hasattr(value, "schema")))


def evaluation_points(at: Data, source: Source) -> Source:
    """Return the source of evaluation points: the inputs of another file, table or array."""
    if isinstance(at, (Source, Predictions)):
        return at if isinstance(at, Source) else InMemory(at)
    if not isinstance(source, FileSource):
        return InMemory(Predictions(x=matrix_of(at, "at")))
    if isinstance(at, (str, PathLike)):
        return read_inputs(str(at), source, narrow=False)
    return inputs_like(source, _table_of(at, "at", source))


def new_rows(on: Data, source: Source) -> NewRows:
    """Return the rows of another file, table or array that have the inputs of a source."""
    if isinstance(on, (Source, Predictions)):
        rows = on if isinstance(on, Predictions) else on.predictions()
        inputs, is_predicted = InMemory(rows.without("y")), rows.predictive is not None
        if rows.y is not None and is_predicted:
            return NewRows(inputs, InMemory(rows))
        lacking = f"{UNUSED} without predictions" if rows.y is not None else ""
        return NewRows(inputs, unjudged=UNJUDGED if is_predicted else lacking)
    if not isinstance(source, FileSource):
        return NewRows(InMemory(Predictions(x=matrix_of(on, "on"))))
    if isinstance(on, (str, PathLike)):
        return read_new_rows(str(on), source)
    is_paths = isinstance(on, (list, tuple)) and all(isinstance(each, (str, PathLike)) for each in on)
    return new_rows_like(source, read(on).file if is_paths else _table_of(on, "on", source))


def _table_of(data: Data, name: str, source: FileSource) -> TableInMemory:
    """Return a table, or an array whose columns are the inputs of a source."""
    if is_table(data):
        return replace(TableInMemory.from_data(data, {}), display_name=name)
    matrix, names = matrix_of(data, name), source.options.input_names
    if matrix.shape[1:] == (len(names),):
        columns = {each: matrix[:, place] for place, each in enumerate(names)}
    else:
        columns = {source.options.inputs or source.options.embedding or "embedding": data}
    return replace(TableInMemory.from_data(None, columns), display_name=name)


def require_results(report: Report) -> Report:
    """Return a report; raise if all its metrics were skipped."""
    if report.skipped and not report.results and not report.outputs:
        raise DataError(f"no metric applies. {skip_reasons(report)}")
    return report
