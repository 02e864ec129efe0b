"""The functions for Python and notebooks: metrics by name, options by keyword, frames in and out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from typing import Any, Literal, TypeAlias, TypedDict, Unpack

from calcheck import evaluation
from calcheck.api.interactive import InteractiveReport, PointwiseResults
from calcheck.api.recalibration import Recalibration
from calcheck.conclusion import conclude
from calcheck.errors import DataError, OptionError, keyword_messages, message_prefix, with_suggestion
from calcheck.execution.backend import Precision
from calcheck.execution.run import RowDependence, Run, parse_memory
from calcheck.inference.results import RowResults
from calcheck.io import read
from calcheck.io.arguments import ColumnArguments, levels_of
from calcheck.io.arrays import matrix_of
from calcheck.io.evaluation_points import inputs_like, read_evaluation_points, read_inputs
from calcheck.io.frames import TableInMemory, is_table
from calcheck.io.source import FileSource
from calcheck.metrics import DEFAULT_METRICS, METRICS, TWO_SAMPLE_METRICS, canonical_name
from calcheck.metrics._weights import weighted, weighted_forms
from calcheck.metrics.base import Metric, with_level
from calcheck.models import comparison
from calcheck.models.alignment import Model
from calcheck.models.two_samples import metric_of_samples, two_samples
from calcheck.options import Option, options_of
from calcheck.predictions import InMemory, Predictions, Source
from calcheck.recalibration.methods import AUTO
from calcheck.regions.binning import Cut
from calcheck.render.cells import skip_reasons
from calcheck.report import Report, Skipped
from calcheck.storage.file_lock import exclusive
from calcheck.studies.compare.document import comparison_document
from calcheck.studies.compare.picture import comparison_picture
from calcheck.studies.monitor.document import monitor_document
from calcheck.studies.monitor.picture import monitor_picture
from calcheck.studies.monitor.report import monitor_report
from calcheck.studies.monitor.state import MonitorOptions, MonitorState, read_monitor_state, write_monitor_state
from calcheck.studies.monitor.study import observe, window_metrics
from calcheck.studies.recalibrate import study as recalibration
from calcheck.studies.recalibrate.study import RecalibrationOptions, judges
from calcheck.studies.reject import study as rejection
from calcheck.studies.reject.document import rejection_document
from calcheck.studies.reject.picture import rejection_picture
from calcheck.studies.reject.study import CCE, ERROR_METRICS, columns_of
from calcheck.studies.slices.document import slices_document
from calcheck.studies.slices.search import search_regions
from calcheck.studies.slices.searched_rows import SearchOptions
from calcheck.studies.slices.study import by_groups, file_columns, group_metrics
from calcheck.studies.sweep import study as settings_study
from calcheck.studies.sweep.document import sweep_document
from calcheck.studies.sweep.picture import sweep_picture
from calcheck.studies.sweep.settings import SweptSetting, from_values

AnyMetric: TypeAlias = Metric[Any]
Metrics: TypeAlias = "str | AnyMetric | Sequence[str | AnyMetric]"
Data: TypeAlias = Any
"""What calcheck.read takes, what it returns, or Predictions."""


class RunArguments(TypedDict, total=False):
    """Keywords for a run: fields of Run."""

    seed: int
    device: str | None
    precision: Precision
    memory: str | int
    confidence: float
    resamples: int | None
    replicates: int | None
    fdr: float


SETTINGS = {
    option.field: option
    for option in (
        Option("seed", int, 0),
        Option("precision", Precision, "float64"),
        Option("memory", int, 0),
        Option("confidence", float, 0.95),
        Option("resamples", int, None),
        Option("replicates", int, None),
        Option("fdr", float, 0.05),
    )
}
"""Keywords for a run whose types are checked; those with the default None may be None, and memory may be text."""

DEPENDENCE = {option.field: option for option in options_of(RowDependence)}
"""Keywords that state which rows depend on each other."""


class Options(RunArguments, ColumnArguments, total=False):
    """Keywords for a run, and for reading."""


class DependentOptions(Options, total=False):
    """Keywords for dependent rows, a run, and reading."""

    cluster: str | None
    block: int | None
    time: str | None


class WeightedOptions(DependentOptions, total=False):
    """Keywords for sampling weights, dependent rows, a run, and reading."""

    weights: str | None


class RecalibrationArguments(Options, total=False):
    """Keywords for a recalibration, a run, and reading."""

    by: str | Sequence[str]
    folds: int
    cluster: str | None
    block: int | None
    time: str | None
    score: Literal["crps", "nll", "interval"]
    bins: int
    levels: Sequence[float]
    relative: bool


class MonitorArguments(Options, total=False):
    """Keywords for a monitored model, a run, and reading."""

    window: str | int | None
    horizon: str | int | None
    alarm_level: float


class SearchArguments(WeightedOptions, total=False):
    """Keywords for a search of regions, a run, and reading."""

    columns: str | Sequence[str] | None
    bins: int
    embedding_clusters: int
    min_rows: int | None
    most: int
    depth: int | None
    refit: bool


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
        msg = with_suggestion(f"{name} has no option {unknown[0]!r} (options: {names})", unknown[0], known)
        raise OptionError(msg)
    given = {known[key]: value for key, value in options.items()}
    return chosen(**{each.field: _checked(each, value, f"{name}: {each.field}") for each, value in given.items()})


@keyword_messages()
def evaluate(  # noqa: PLR0913 - independent parts of a report
    data: Data = None,
    metrics: Metrics | None = None,
    *,
    at: Data = None,
    subsample: int | None = None,
    worst: int = 0,
    best: int = 0,
    pointwise: bool = True,
    pictures: bool = False,
    plot_by: Sequence[str] = (),
    **options: Unpack[WeightedOptions],
) -> InteractiveReport:
    """Return a report of metrics on predictions.

    Parameters
    ----------
    data : path, list of paths, DataFrame, table, Source or Predictions, optional
        Predictions with targets, as for :func:`calcheck.read`, or what it returns; None if all columns are arrays.
    metrics : str, Metric, or sequence of these, optional
        Metrics by name (``"cce"``), or with options (``calcheck.metric("cce", lambda_=0.1)``). By default all that
        apply.
    at : path, DataFrame, table or array-like (m, d), optional
        Inputs, with or without targets, at which conditional metrics are evaluated instead of at the rows' own inputs.
    subsample : int, optional
        Number of rows to use, drawn at random.
    worst, best : int
        Number of rows with the largest and the smallest values to list in ``details`` of each result.
    pointwise : bool
        Whether the report holds the results of rows, for :meth:`InteractiveReport.rows`.
    pictures : bool
        Whether results hold the curves of their pictures, for :meth:`InteractiveReport.pictures` and notebooks.
    plot_by : sequence of str
        One or two columns along which pictures show metrics of rows; by default the predicted standard deviation.
    weights : str, optional
        Column of sampling weights: all means over rows are weighted means, also in resamples and in replicates of a
        perfect model. Metrics without a weighted form are skipped unless they are named.
    seed : int
        Seed of all random numbers, >= 0 (default 0).
    confidence, fdr : float
        Confidence of intervals and verdicts (default 0.95), and false discovery rate of rejected inputs (default 0.05),
        in (0, 1).
    resamples, replicates : int, optional
        Numbers of bootstrap resamples, and of replicates of the null distribution; 0 for none.
    cluster, time : str, optional
        Column of rows that depend on each other, such as ``"patient"``; or of times, if rows are a series.
    block : int, optional
        Number of times, or of rows in their order, that are resampled together; by default chosen from the data.
    device, precision, memory : str, optional
        Torch device, ``"float64"`` or ``"float32"``, and the limit of large arrays: ``"2GiB"``.
    **options
        Keywords of :func:`calcheck.read`: ``inputs=["lat", "lon"]``, ``y=y``, ``nan_policy="omit"``, ….

    Returns
    -------
    InteractiveReport
        One result per metric. A metric that does not apply is listed in ``skipped``, with the reason.

    Raises
    ------
    DataError
        The data cannot be read, or no metric applies.
    OptionError
        A metric or keyword is unknown, or has an invalid value.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.read_parquet("examples/diabetes.parquet")
    >>> report = evaluate(frame, ["zms", "cce"], inputs=["bmi", "bp", "s5"])
    >>> [(result.metric, round(result.value, 4), result.verdict) for result in report.results]
    [('zms', 0.9847, 'pass'), ('cce', 0.1098, 'fail')]
    """
    chosen, without, run, columns = _parsed_weighted(metrics, options, {"at": at is not None, "pictures": pictures})
    if at is not None:
        _require_conditional(chosen)
    run = replace(run, curves=pictures, curves_by=tuple(_listed(plot_by)))
    named = run.dependence.columns
    source = _source(data, columns, chosen, (*run.curves_by, *named), dependence=named)
    worst, best = _count("worst", worst), _count("best", best)
    subsample = None if subsample is None else _count("subsample", subsample)
    points = None if at is None else _points(at, source)
    rows: list[PointwiseResults] = []

    def keep(metric: AnyMetric, shown: Predictions, results: RowResults) -> None:
        rows.append(PointwiseResults(metric.info.name, results.columns, shown.row_numbers(), points or source))

    sink = keep if pointwise else None
    with source.error_names():
        report = evaluation.evaluate(
            source, chosen, at=points, subsample=subsample, run=run, worst=worst, best=best, sink=sink
        )
    report = conclude(replace(_require_results(report), skipped=(*report.skipped, *without)))
    return InteractiveReport.from_report(report, rows)


@keyword_messages()
def compare(
    models: Mapping[str, Data] | Mapping[str, Mapping[str, Data]],
    metrics: Metrics | None = None,
    *,
    permutations: int | None = None,
    **options: Unpack[WeightedOptions],
) -> InteractiveReport:
    """Return metrics of several models on the same rows, and the differences from the first model.

    Parameters
    ----------
    models : mapping
        Predictions of each model by its name, at least two, as for :func:`evaluate`. Use :func:`calcheck.read` where
        the columns of the models have different names. For several data sets, a mapping of their names to such
        mappings, with the same models for each: ``{"boston": {"a": frame, "b": other}, "energy": {…}}``.
    metrics : str, Metric, or sequence of these, optional
        Metrics to compute; by default all that apply to all models.
    permutations : int, optional
        Number of permutations of the paired tests.
    weights : str, optional
        Column of sampling weights, as for :func:`evaluate`, which are the same for all models.
    **options
        Keywords of the run and of reading, as for :func:`evaluate`.

    Returns
    -------
    InteractiveReport
        One result for each metric and model, with ``slice`` ``{"model": name}``; then one for each difference, with
        ``slice`` ``{"model": name, "minus": first}``, of the values, or of their distances from the ideal values that
        ``details`` have as ``ideal``. With several data sets, these are the results for each one, with
        its name as ``dataset`` in ``slice``; they are shown side by side.

    Raises
    ------
    DataError
        The models do not have the same rows, or no metric applies.
    OptionError
        There is only one model, the data sets have different models, or a keyword is invalid.

    Examples
    --------
    >>> files = {"gp": "examples/diabetes.parquet", "linear": "examples/diabetes_linear.parquet"}
    >>> compare(files, "crps").to_frame()[["model", "minus", "value"]].round(2)
        model minus  value
    0      gp  <NA>  30.58
    1  linear  <NA>  31.03
    2  linear    gp   0.45
    """
    chosen, without, run, columns = _parsed_weighted(metrics, options)
    permutations = None if permutations is None else _count("permutations", permutations)
    if _are_datasets(models):
        datasets = {}
        for dataset, each in models.items():
            with message_prefix(str(dataset)):
                datasets[str(dataset)] = _models(each, chosen, columns, run.dependence.columns)
        report = comparison.compare_datasets(datasets, chosen, swaps=permutations, run=run)
    else:
        opened = _models(models, chosen, columns, run.dependence.columns)
        report = comparison.compare(opened, chosen, swaps=permutations, run=run)
    report = _require_results(report)
    return InteractiveReport.from_report(
        replace(report, skipped=(*report.skipped, *without)),
        build=comparison_document,
        draw=lambda report: [comparison_picture(report)],
    )


@keyword_messages()
def compare_samples(
    first: Data,
    second: Data,
    metric: str | AnyMetric = "mcmd",
    *,
    grid: int | None = None,
    at: Data = None,
    **options: Unpack[Options],
) -> InteractiveReport:
    """Return a distance between two samples of inputs and targets, whose inputs may differ.

    Parameters
    ----------
    first, second : path, DataFrame, table, Source or Predictions
        Samples with targets and inputs, as for :func:`calcheck.read`; predictions are ignored. Keywords name the
        columns of both.
    metric : str or Metric
        ``"mcmd"`` compares the distributions of targets given the inputs at each input, ``"mmd"`` those of targets, or
        of inputs and targets (``calcheck.metric("mmd", joint=True)``). ``"jmmd"``, ``"cmmd"`` and ``"fid"`` compare
        data with draws of a model.
    grid : int, optional
        Number of equally spaced evaluation points for ``"mcmd"`` and a single input (default 200); for several inputs,
        the evaluation points are the inputs of the first sample.
    at : path, DataFrame, table or array-like (m, d), optional
        Evaluation points for ``"mcmd"``.
    **options
        Keywords of the run, where ``replicates`` is the number of permutations (default 199), and of
        :func:`calcheck.read`: ``inputs=["x"]``, ``target="y"``.

    Returns
    -------
    InteractiveReport
        One result. ``rows("mcmd")`` has the distance at each evaluation point.

    Raises
    ------
    DataError
        The data cannot be read, or the samples have different numbers of inputs or targets.
    OptionError
        The metric does not compare two samples, or a value is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=(2, 100))
    >>> first = {"x": x[0], "y": rng.normal(x[0])}
    >>> second = {"x": x[1], "y": rng.normal(x[1] + 2)}
    >>> result = compare_samples(first, second, inputs=["x"]).results[0]
    >>> round(result.value, 2), result.p_value
    (0.74, 0.005)
    """
    compared = metric_of_samples(_named(metric))
    columns = {name: value for name, value in options.items() if name not in RunArguments.__annotations__}
    samples = [_sample(each, columns) for each in (first, second)]
    points = None if at is None else _points(at, samples[0])
    found: list[PointwiseResults] = []

    def keep(metric: AnyMetric, shown: Predictions, results: RowResults) -> None:
        found.append(PointwiseResults(metric.info.name, results.columns, shown.row_numbers(), InMemory(shown)))

    if grid is not None and not compared.info.conditional:
        msg = f"grid sets evaluation points, which {compared.info.name} does not have. Omit it"
        raise OptionError(msg)
    report = two_samples(samples[0], samples[1], compared, grid=grid, at=points, run=_run(options), sink=keep)
    return InteractiveReport.from_report(_require_results(report), found)


@keyword_messages()
def sweep(
    data: Data | Mapping[str, Data],
    metric: str | AnyMetric,
    vary: Mapping[str, str | Sequence[Any]],
    *,
    all_combinations: bool = False,
    subsets: int = settings_study.REPEATS,
    **options: Unpack[Options],
) -> InteractiveReport:
    """Return a metric, and the ranking of models by it, as its settings and the number of rows change.

    Parameters
    ----------
    data : path, DataFrame, table, Source or Predictions, or a mapping of these
        Predictions of one model, as for :func:`evaluate`, or of several by name.
    metric : str or Metric
        Metric to compute; its options apply where they are not varied.
    vary : mapping
        Values of each setting: ``{"lambda_": [0.01, 0.1, 1]}``, lists for an option that is a list,
        ``{"levels": [[0.1, 0.9], [0.5]]}``, or a range as text, ``{"lambda_": "0.01..1:5"}``.
        Settings are the options of the metric, and ``subsample``: fractions of the rows (float) or numbers (int).
    all_combinations : bool
        Whether to compute all combinations of the values; else one setting is varied at a time.
    subsets : int
        Number of random subsets for each size smaller than all rows.
    **options
        Keywords of the run and of reading, as for :func:`evaluate`.

    Returns
    -------
    InteractiveReport
        One result per model with the unchanged metric, then one per model at each point; ``slice`` states the model, if
        there are several, and the settings. ``to_frame`` shows ranks, and the deviation over subsets.

    Raises
    ------
    DataError
        The metric does not apply, or the models do not have the same rows.
    OptionError
        The metric does not have a setting, or a value is invalid.

    Examples
    --------
    >>> report = sweep("examples/diabetes.parquet", "coverage", {"level": [0.5, 0.9]})
    >>> report.to_frame()[["level", "value"]].round(3)
       level  value
    0    NaN  0.905
    1    0.5  0.505
    2    0.9  0.905
    """
    (chosen,), run, columns = _parsed(metric, options)
    models = _models(data if isinstance(data, Mapping) else {"model": data}, [chosen], columns)
    varied = _varied(vary, type(chosen))
    if not varied:
        msg = 'sweep needs a setting to vary: {"lambda_": [0.01, 0.1]} or {"subsample": [0.25, 0.5]}'
        raise OptionError(msg)
    report = settings_study.sweep(models, chosen, varied, all_combinations=all_combinations, subsets=subsets, run=run)
    return InteractiveReport.from_report(report, build=sweep_document, draw=lambda report: [sweep_picture(report)])


@keyword_messages()
def reject(
    data: Data = None,
    metrics: Metrics = ERROR_METRICS,
    *,
    criteria: str | Sequence[str] | None = None,
    cce: AnyMetric | None = None,
    new: Data = None,
    step: float = 10.0,
    max_percent: float = 90.0,
    coverage: float | None = None,
    **options: Unpack[Options],
) -> InteractiveReport:
    """Return the error of the retained predictions as those with the largest values of criteria are rejected.

    Parameters
    ----------
    data : path, DataFrame, table, Source or Predictions, optional
        Predictions with targets, as for :func:`evaluate`.
    metrics : str, Metric, or sequence of these
        Metrics to compute, which are functions of means over rows.
    criteria : str or sequence of str, optional
        ``"cce"``, ``"std"``, ``"random"``, or columns. By default the first three, without cce if there are no inputs.
    cce : Metric, optional
        cce with its options: ``calcheck.metric("cce", lambda_=0.1)``.
    new : path, DataFrame, table, Source or Predictions, optional
        Other predictions with targets and the same columns. Their rows are rejected instead, by cce fitted on ``data``.
    step, max_percent : float
        Step size and maximum of the rejected share, in percent of the rows.
    coverage : float, optional
        Fraction of rows to retain, in (0, 1], for which the thresholds of the criteria are computed.
    **options
        Keywords of the run and of reading, as for :func:`evaluate`.

    Returns
    -------
    InteractiveReport
        One result for each metric, criterion and rejected share, with ``slice`` ``{"by": "std", "rejected": "10 %",
        "rows": 398}``; then the area under that curve, and its difference from random rejection.

    Raises
    ------
    DataError
        A criterion does not apply, or a metric was skipped for all rows.
    OptionError
        A metric is not a function of means over rows, or a keyword is invalid.

    Examples
    --------
    >>> report = reject("examples/diabetes.parquet", "mae", criteria="std", step=50, max_percent=50, resamples=0)
    >>> report.to_frame()[["by", "rejected", "rows", "value"]].round(2).head(2)
        by rejected  rows  value
    0  std      0 %   442  43.43
    1  std     50 %   221  44.83
    """
    names = _criteria(criteria)
    criterion = METRICS[CCE]() if cce is None else cce
    if not isinstance(criterion, METRICS[CCE]):
        msg = f'cce is calcheck.metric("cce", …), got {cce!r}'
        raise OptionError(msg)
    chosen, run, columns = _parsed(metrics, options)
    needed = [*chosen, *([criterion] if names is None or CCE in names else [])]
    source = _source(data, columns, needed, also=() if new is not None else columns_of(names))
    others = None if new is None else _new_rows(new, source, columns_of(names))
    given = {"step": step, "max_percent": max_percent, "coverage": coverage}
    grid = {each.field: _checked(each, given[each.field], each.field) for each in options_of(rejection.RejectionGrid)}
    with source.error_names():
        report = rejection.reject(
            source, chosen, by=names, cce=criterion, at=others, steps=rejection.RejectionGrid(**grid), run=run
        )
    return InteractiveReport.from_report(
        _require_results(report), build=rejection_document, draw=lambda report: [rejection_picture(report)]
    )


@keyword_messages()
def slices(
    data: Data = None,
    by: str | Sequence[str] | None = None,
    *,
    metrics: Metrics | None = None,
    **options: Unpack[SearchArguments],
) -> InteractiveReport:
    """Return where the uncertainties are wrong: metrics by groups of the rows, or regions that a search finds.

    Parameters
    ----------
    data : path, DataFrame, table, Source or Predictions, optional
        Predictions with targets, as for :func:`evaluate`.
    by : str or sequence of str, optional
        Columns that form groups, and their combinations; numbers are cut into quantile bins, ``"age:5"``, or at edges,
        ``"age:30/50/70"``, and dates by period, ``"date:month"``. ``"mean"`` and ``"std"`` are the predicted ones. By
        default, regions of the inputs are searched.
    metrics : str, Metric, or sequence of these, optional
        Metrics by group, which are means over rows, or cce, unless ``refit``; or metrics that describe regions. By
        default bias, pit-dispersion, coverage and zms.
    columns : str or sequence of str
        Columns in which regions are searched; by default the inputs, columns without a role, ``"mean"`` and ``"std"``.
    bins : int
        Number of quantile bins per column of a search, from 2 to 32.
    embedding_clusters : int
        Number of clusters of an embedding, from 0 to 50, each of which is a category of a search.
    min_rows : int
        Minimum number of rows of a group that is judged, or of a region.
    most : int
        Maximum number of regions to return.
    depth : int
        Depth of a tree that summarizes instead, from 1 to 5: there are results of its leaves, and ``settings["tree"]``
        has its nodes.
    weights : str, optional
        Column of sampling weights of groups, as for :func:`evaluate`.
    refit : bool
        Whether metrics of groups that are no means over rows, such as cce and ence, are computed on the rows of each
        group alone. By default, cce has one fit to all rows, whose values are averaged in each group.
    **options
        Keywords of the run and of reading, as for :func:`evaluate`.

    Returns
    -------
    InteractiveReport
        One result per metric and group or region, with ``slice`` ``{"group": "sex=f", "filter": "--filter sex=f",
        "rows": 207}``; ``p_value_adjusted`` is over all groups and metrics, or all regions. After a search,
        ``rows("regions")`` has the number of the first region that each row is in, or 0, and its ``cluster``.

    Raises
    ------
    DataError
        A column is missing or cannot be cut into groups, no metric applies, or the distributions are not stated.
    OptionError
        A keyword is invalid.

    Examples
    --------
    >>> report = slices("examples/diabetes.parquet", "age:2", metrics="zms", replicates=99, resamples=0)
    >>> report.to_frame()[["group", "rows", "value", "verdict"]].round(2)
            group  rows  value verdict
    0    all rows   442   0.98    pass
    1  age<=0.007   227   0.98    pass
    2   age>0.007   215   0.99    pass
    >>> report = slices("examples/diabetes.parquet", columns=["bmi", "bp"], metrics="zms", replicates=99)
    >>> report.settings["regions"], report.results[0].slice["group"], report.results[0].verdict
    (1479, 'bmi<=-0.007 and bp<=-0.005', 'fail')
    """
    _require_known(options, SearchArguments)
    refit = _checked(Option("refit", bool, default=False), options.pop("refit", False), "refit")
    if refit and by is None:
        msg = "refit applies to groups: also pass by, the columns that form them"
        raise OptionError(msg)
    declared = {each.field: each for each in options_of(SearchOptions)}
    given = {name: value for name, value in options.items() if name in declared}
    given |= {name: _listed(value) for name, value in given.items() if declared[name].listed and value is not None}
    search = SearchOptions(**{name: _checked(declared[name], value, name) for name, value in given.items()})
    if by is not None and search.depth:
        msg = "by compares groups, and depth is that of a tree of regions: pass only one of them"
        raise OptionError(msg)
    further = {name: value for name, value in options.items() if name not in declared}
    if by is None and further.get("weights") is not None:
        msg = "a search has no weighted form: compare groups (by), or omit weights"
        raise OptionError(msg)
    named_metrics = group_metrics() if metrics is None else metrics
    chosen, _, run, columns = _parsed_weighted(named_metrics, further)  # type: ignore[arg-type]
    cuts = [] if by is None else [Cut.parse(text) for text in _listed(by)]
    named = () if cuts else search.columns
    source = _source(
        data,
        columns,
        chosen,
        also=(*file_columns(named or ()), *run.dependence.columns),
        dependence=run.dependence.columns,
        narrow=named is None,
        inputs=not cuts and search.reads_embedding,
    )
    if isinstance(source, FileSource):
        source = replace(source, by=file_columns([cut.text for cut in cuts]))
    rows: list[PointwiseResults] = []

    def keep(shown: Predictions, found: dict[str, Any]) -> None:
        rows.append(PointwiseResults("regions", found, shown.row_numbers(), source))

    with source.error_names():
        if cuts:
            report = by_groups(source, cuts, metrics=chosen, min_rows=search.min_rows, refit=refit, run=run)
        else:
            report = search_regions(source, options=search, metrics=chosen, run=run, sink=keep)
    return InteractiveReport.from_report(_require_results(report), rows, build=slices_document)


@keyword_messages()
def monitor(
    data: Data,
    time: str | None = None,
    *,
    metrics: Metrics | None = None,
    state: str | PathLike[str] | None = None,
    save_state: str | PathLike[str] | None = None,
    **options: Unpack[MonitorArguments],
) -> InteractiveReport:
    """Return whether a model is still calibrated, by an e-value that may be looked at as often as you like.

    Parameters
    ----------
    data : path, DataFrame, table, Source or Predictions
        Predictions with targets, as for :func:`evaluate`, in any order.
    time : str, optional
        Column of the target times: dates, or numbers in the order of time. Required without a state.
    metrics : str, Metric, or sequence of these, optional
        Metrics by window, which are means over rows; by default pit-bias, pit-dispersion and coverage.
    state : path, optional
        Stored state of an earlier run, which the data follow in time.
    save_state : path, optional
        File for the state after the data.
    window : str or int
        Windows of the metrics: a duration or period, ``"7D"`` or ``"M"``, or a number of times.
    horizon : str or int
        Column of horizons in steps of the times, or one horizon for all rows; by default 1.
    alarm_level : float
        Probability of ever raising a false alarm (default 0.05): there is an alarm at an e-value of 20.
    **options
        Keywords of the run and of reading, as for :func:`evaluate`.

    Returns
    -------
    InteractiveReport
        ``monitor`` has the e-value, the time of an alarm, and since when and how the model seems to be wrong. There is
        one result per metric and window, with ``slice`` ``{"window": "2026-01-05", "rows": 70}``.

    Raises
    ------
    DataError
        A column is missing, a value is no time, or the data do not follow the state in time.
    OptionError
        A keyword is invalid, or contradicts the state.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(1)
    >>> frame = pd.DataFrame({"day": range(300), "y": 1.5 * rng.normal(size=300), "mean": 0.0, "std": 1.0})
    >>> found = monitor(frame, "day", window=100, metrics="coverage", replicates=99).monitor
    >>> found.verdict, found.e_value > 20, found.alarm_time, found.direction
    ('fail', True, '98', 'too-narrow')
    """
    _require_known(options, MonitorArguments)
    path = None if save_state is None else fspath(save_state)
    with exclusive(path) as require_unchanged:
        earlier = None if state is None else read_monitor_state(fspath(state))
        settings, further = _monitor_settings(time, earlier, dict(options))
        chosen, run, columns = _parsed(window_metrics() if metrics is None else metrics, further)
        if earlier is not None:
            _require_same_run(earlier, None if metrics is None else chosen, further)
            chosen, run = list(earlier.metrics), earlier.continue_run(run)
        source = _source(data, columns, chosen, also=settings.columns, dependence=settings.columns)
        source = replace(source, repeated=True) if isinstance(source, FileSource) else source  # keys, over time
        with source.error_names():
            found = observe(source, settings, chosen, earlier=earlier, run=run)
        if path is not None:
            require_unchanged()
            write_monitor_state(path, found)
    report = _require_results(monitor_report(found, level=settings.level, run=run))
    return InteractiveReport.from_report(report, build=monitor_document, draw=lambda report: [monitor_picture(report)])


def _monitor_settings(
    time: str | None, earlier: MonitorState | None, options: dict[str, Any]
) -> tuple[MonitorOptions, Any]:
    """Return the options of a monitored model, those of a state if there is one; and the other keywords."""
    given: dict[str, Any] = {"time": time}
    given |= {name: options.pop(name) for name in ("window", "horizon") if name in options}
    given = {name: value if value is None else str(value) for name, value in given.items()}
    level = _checked(Option("alarm_level", float, 0.05), options.pop("alarm_level", 0.05), "alarm_level")
    if earlier is None:
        if time is None:
            msg = "time is required: the column of the target times"
            raise OptionError(msg)
        return MonitorOptions(**given, level=level), options
    for name, value in given.items():
        _require_same(name, value, getattr(earlier.options, name))
    return replace(earlier.options, level=level), options


def _require_same_run(earlier: MonitorState, metrics: Sequence[AnyMetric] | None, options: Mapping[str, Any]) -> None:
    """Raise if the metrics or the seed contradict a state."""
    if metrics is not None:
        named, stored = ([each.info.name for each in every] for every in (metrics, earlier.metrics))
        _require_same("metrics", ", ".join(named), ", ".join(stored))
        for each, known in zip(metrics, earlier.metrics, strict=True):
            for option in options_of(type(each)):
                name, value = f"{each.info.name}: {option.field}", getattr(each, option.field)
                _require_same(name, value, getattr(known, option.field))  # None depends on the rows
    _require_same("seed", options.get("seed"), earlier.seed)


def _require_same(name: str, value: Any, stored: Any) -> None:
    """Raise if a keyword contradicts a state."""
    if value not in (None, stored):
        known = "none" if stored is None else repr(stored)
        msg = f"{name} {value!r} contradicts the state, which has {known}: omit {name}"
        raise OptionError(msg)


@keyword_messages()
def recalibrate(
    data: Data = None,
    method: str = AUTO,
    *,
    to: Data = None,
    metrics: Metrics | None = None,
    **options: Unpack[RecalibrationArguments],
) -> Recalibration:
    """Return a correction of the uncertainties, chosen by cross-validation, with metrics before and after.

    Parameters
    ----------
    data : path, DataFrame, table, Source or Predictions, optional
        Predictions with targets, as for :func:`evaluate`, to which the correction is fitted.
    method : str
        ``"auto"``, or a method: ``"scale"``, ``"shift-scale"``, ``"bias"``, ``"local"``, ``"isotonic-variance"``,
        ``"bvs"``, ``"beta"``, ``"pit"``, ``"conformal"``, or steps in order, joined by ``+``: ``"bias+local+pit"``.
    to : path, DataFrame, table, Source or Predictions, optional
        Other predictions with targets, which are judged before and after as well.
    metrics : str, Metric, or sequence of these, optional
        Metrics before and after.
    by : str or sequence of str
        Columns, and ``"std"`` for the predicted uncertainty, on which ``bias`` and ``local`` depend.
    folds : int
        Number of folds, from 2 to 100.
    cluster, time : str, optional
        Column whose groups stay in one fold, or by which folds are blocks of time.
    block : int
        Number of consecutive times that depend on each other; of rows without ``time``, whose folds are blocks of rows.
    score : str
        ``"crps"``, ``"nll"`` or ``"interval"``, by which methods are compared.
    bins : int
        Number of bins of ``bvs``.
    levels : sequence of float
        Levels of the intervals that ``conformal`` makes of distributions, in (0, 1).
    relative : bool
        Whether conformal scores are relative to the widths of intervals.
    **options
        Keywords of the run and of reading, as for :func:`evaluate`.

    Returns
    -------
    Recalibration
        A report with ``apply``, which corrects other predictions, ``save``, and ``table``, the scores of the methods.

    Raises
    ------
    DataError
        There are too few rows, the method does not apply, or ``to`` has rows of ``data``.
    OptionError
        A keyword has an invalid value.

    Examples
    --------
    >>> found = recalibrate("examples/diabetes.parquet", "scale", metrics="zms", replicates=0)
    >>> found.map.texts, [round(result.value, 3) for result in found.results if result.metric == "zms"]
    (('uncertainties × 0.9923',), [0.985, 1.002])
    """
    _require_known(options, RecalibrationArguments)
    declared = {each.field: each for each in options_of(RecalibrationOptions)}
    given = {"method": method, **{name: value for name, value in options.items() if name in declared}}
    given |= {name: _listed(value) for name, value in given.items() if declared[name].listed}
    settings = RecalibrationOptions(**{name: _checked(declared[name], value, name) for name, value in given.items()})
    further = {name: value for name, value in options.items() if name not in declared}
    chosen, run, columns = _parsed(judges() if metrics is None else metrics, further)  # type: ignore[arg-type]
    run = replace(run, dependence=settings.dependence)
    source = _source(data, columns, chosen, also=settings.columns, dependence=settings.dependence.columns)
    other = None if to is None else _new_rows(to, source, settings.columns)
    with source.error_names():
        report, found = recalibration.recalibrate(source, options=settings, other=other, metrics=chosen, run=run)
    return Recalibration.from_study(report, found, source)


def _parsed(metrics: Metrics | None, options: Options) -> tuple[list[AnyMetric], Run, dict[str, Any]]:
    """Return the metrics, the settings of the run and the keywords of reading."""
    columns = {name: value for name, value in options.items() if name not in RunArguments.__annotations__}
    levels = levels_of(columns.get("level"))
    return [with_level(each, levels) for each in _selected(metrics)], _run(options), columns


def _selected(metrics: Metrics | None) -> list[AnyMetric]:
    """Return metrics by name or with options; the default metrics for None."""
    if metrics is None:
        return [metric(name) for name in DEFAULT_METRICS]
    chosen = [_named(each) for each in _listed(metrics)]
    if not chosen:
        msg = "there are no metrics to compute. Name at least one, or omit metrics for all that apply"
        raise OptionError(msg)
    for each in chosen:
        if each.info.name in TWO_SAMPLE_METRICS:
            msg = f"{each.info.name} compares two samples, without predictions: use calcheck.compare_samples"
            raise OptionError(msg)
    return chosen


def _named(value: Any) -> AnyMetric:
    """Return a metric by its name or with options."""
    if isinstance(value, str):
        return metric(value)
    if not isinstance(value, Metric):
        msg = f"metrics are names or calcheck.metric(name, …), got {value!r}"
        raise OptionError(msg)
    return value


def _criteria(criteria: Any) -> list[str] | None:
    """Return the names of criteria; None for the default."""
    if criteria is None:
        return None
    names = _listed(criteria)
    if not all(isinstance(each, str) for each in names):
        msg = f"criteria are cce, std, random or names of columns, got {criteria!r}"
        raise OptionError(msg)
    return names


def _listed(value: Any) -> list[Any]:
    """Return the items of a list or another iterable, or a single value as a list."""
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]


def _checked(option: Option, value: Any, name: str) -> Any:
    """Return a value of an option, with its type checked; None if that is the default."""
    if value is None and option.default is None:
        return None
    value = _plain(value)
    return option.take(list(map(_plain, value)) if isinstance(value, list | tuple) else value, name)


def _plain(value: Any) -> Any:
    """Return a number of numpy as one of Python, and an array as a list."""
    return value.tolist() if hasattr(value, "tolist") else value


def _require_known(options: Mapping[str, Any], declared: type[Any]) -> None:
    """Raise unless all keywords are declared."""
    known = list(declared.__annotations__)
    if unknown := [name for name in options if name not in known]:
        msg = with_suggestion(f"there is no argument {unknown[0]!r} (arguments: {', '.join(known)})", unknown[0], known)
        raise OptionError(msg)


def _run(options: Options) -> Run:
    """Return the settings of a run."""
    _require_known(options, Options)
    return Run(
        **{name: _setting(name, value) for name, value in options.items() if name in RunArguments.__annotations__}
    )


def _parsed_dependent(
    metrics: Metrics | None, options: DependentOptions
) -> tuple[list[AnyMetric], Run, dict[str, Any]]:
    """Return the metrics, the settings of the run with the dependence of rows, and the keywords of reading."""
    stated = {name: _checked(DEPENDENCE[name], value, name) for name, value in options.items() if name in DEPENDENCE}
    further = {name: value for name, value in options.items() if name not in DEPENDENCE}
    chosen, run, columns = _parsed(metrics, further)  # type: ignore[arg-type]
    return chosen, replace(run, dependence=RowDependence(**stated)), columns


def _parsed_weighted(
    metrics: Metrics | None, options: WeightedOptions, unweighted: Mapping[str, bool] | None = None
) -> tuple[list[AnyMetric], list[Skipped], Run, dict[str, Any]]:
    """Return the metrics with their weights, those without a weighted form, the run, and the keywords of reading."""
    _require_known(options, WeightedOptions)
    weights = _checked(Option("weights", str, None), options.pop("weights", None), "weights")
    chosen, run, columns = _parsed_dependent(metrics, options)
    if weights is None:
        return chosen, [], run, columns
    stated = {name: getattr(run.dependence, name) is not None for name in DEPENDENCE}
    for name, given in {**stated, **(unweighted or {})}.items():
        if given:
            msg = f"{name} does not apply to weighted means (weights): pass only one of them"
            raise OptionError(msg)
    if metrics is None:
        return *weighted_forms(chosen, weights), run, columns
    return [weighted(each, weights) for each in chosen], [], run, columns


def _setting(name: str, value: Any) -> Any:
    """Return a setting of a run, with its type checked."""
    if name == "memory" and isinstance(value, str):
        return parse_memory(value)
    return _checked(SETTINGS[name], value, name) if name in SETTINGS else value


def _count(name: str, value: Any) -> int:
    """Return a number of rows or permutations, an integer >= 0."""
    count: int = _checked(Option(name, int, 0), value, name)
    if count < 0:
        msg = f"{name} must be >= 0, got {count}"
        raise OptionError(msg)
    return count


def _sample(data: Data, columns: dict[str, Any]) -> Source:
    """Return the source of a sample, which needs no predictions."""
    source = _source(data, columns, [])
    return replace(source, contents="sample") if isinstance(source, FileSource) else source


def _source(
    data: Data,
    columns: dict[str, Any],
    metrics: Sequence[AnyMetric],
    also: Sequence[str] = (),
    *,
    dependence: Sequence[str] = (),
    narrow: bool = False,
    inputs: bool = False,
) -> Source:
    """Return the source of data, with the columns that metrics need; all scalar columns if ``narrow``.

    Columns of times or clusters have no other role: they are no targets unless a keyword names them.
    """
    if isinstance(data, (Source, Predictions)) and columns:
        msg = f"{next(iter(columns))} applies to data that are not read yet. Pass it to calcheck.read"
        raise OptionError(msg)
    source = InMemory(data) if isinstance(data, Predictions) else data
    source = source if isinstance(source, Source) else read(source, **columns)
    if not isinstance(source, FileSource):
        return source
    source = replace(source, dependence=tuple(dependence))
    return evaluation.with_needed_columns(source, metrics, narrow=narrow, also=also, inputs=inputs)


def _are_datasets(models: Any) -> bool:
    """Return whether the values of a mapping are data sets, which are mappings of models, and no models."""
    if not isinstance(models, Mapping):
        return False
    found = {str(name): each for name, each in models.items() if _is_dataset(each)}
    others = [name for name, each in models.items() if not _is_dataset(each)]
    if found and others:
        msg = (
            f"{next(iter(found))!r} holds models, and {others[0]!r} is a model: pass models, {{'a': frame}}, or data"
            " sets of models, {'boston': {'a': frame}}"
        )
        raise OptionError(msg)
    for dataset, own in found.items():
        if nested := [name for name, each in own.items() if _is_dataset(each)]:
            msg = f"{nested[0]!r} of {dataset!r} holds models: data sets hold models, and no further data sets"
            raise OptionError(msg)
    if found and len(found) < len(models):
        msg = f"data sets need different names, got {', '.join(map(repr, models))}"
        raise OptionError(msg)
    return bool(found)


def _is_dataset(value: Any) -> bool:
    """Return whether a value is a mapping of models, and not one of columns, which is a model."""
    return isinstance(value, Mapping) and all(map(_is_model, value.values()))


def _is_model(value: Any) -> bool:
    """Return whether a value is a file, a source, a mapping or a table, and not a column with Arrow's interface."""
    known = (str, PathLike, Source, Predictions, Mapping)
    return isinstance(value, known) or (is_table(value) and (hasattr(value, "columns") or hasattr(value, "schema")))


def _models(
    data: Data, metrics: Sequence[AnyMetric], columns: dict[str, Any], dependence: Sequence[str] = ()
) -> list[Model]:
    """Return models by name, with columns of times or clusters."""
    if not isinstance(data, Mapping):
        msg = f'models are a mapping of names to predictions, {{"a": frame, "b": other}}, got {type(data).__name__}'
        raise OptionError(msg)
    return [
        Model.from_source(str(name), _source(each, columns, metrics, dependence, dependence=dependence))
        for name, each in data.items()
    ]


def _varied(vary: Any, metric: type[AnyMetric]) -> list[SweptSetting]:
    """Return the settings of a sweep."""
    if not isinstance(vary, Mapping):
        msg = f'vary is a mapping of settings to values, {{"lambda_": [0.01, 0.1]}}, got {vary!r}'
        raise OptionError(msg)
    return [from_values(name, values, metric) for name, values in vary.items()]


def _require_conditional(metrics: Sequence[AnyMetric]) -> None:
    """Raise unless one of the metrics is evaluated at inputs."""
    if not any(metric.info.conditional for metric in metrics):
        names = ", ".join(metric.info.name for metric in metrics)
        msg = f"at is for conditional metrics, such as cce, and there is none among {names}: omit at, or add cce"
        raise OptionError(msg)


def _points(at: Data, source: Source) -> Source:
    """Return the source of evaluation points: the inputs of another file, table or array."""
    if isinstance(at, (Source, Predictions)):
        return at if isinstance(at, Source) else InMemory(at)
    if not isinstance(source, FileSource):
        return InMemory(Predictions(x=matrix_of(at, "at")))
    if isinstance(at, (str, PathLike)):
        return read_inputs(str(at), source, narrow=False)
    if is_table(at):
        return inputs_like(source, TableInMemory.from_data(at, {}))
    matrix, names = matrix_of(at, "at"), source.options.input_names
    if matrix.shape[1:] == (len(names),):
        columns = {name: matrix[:, place] for place, name in enumerate(names)}
    else:
        columns = {source.options.inputs or source.options.embedding or "embedding": at}
    return inputs_like(source, TableInMemory.from_data(None, columns))


def _new_rows(new: Data, source: Source, also: tuple[str, ...]) -> Source:
    """Return the source of other predictions, which are in the columns of the first source."""
    if isinstance(new, Predictions) or (isinstance(new, Source) and not isinstance(new, FileSource)):
        return InMemory(new) if isinstance(new, Predictions) else new
    if isinstance(new, FileSource) or not isinstance(source, FileSource):
        return replace(new if isinstance(new, FileSource) else read(new), also=also)
    if isinstance(new, (str, PathLike)):
        return read_evaluation_points(str(new), source, also=also)
    return replace(source, file=read(new).file, also=also)


def _require_results(report: Report) -> Report:
    """Return a report that has results."""
    if not report.results:
        msg = f"no metric applies. {skip_reasons(report)}"
        raise DataError(msg)
    return report
