"""The functions for Python and notebooks: metrics by name, options by keyword, frames in and out."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike, fspath
from typing import Any, Unpack

from calcheck import evaluation, outputs
from calcheck.api import arguments
from calcheck.api.arguments import AnyMetric, Data, Metrics, MonitorArguments, Options, SearchArguments, WeightedOptions
from calcheck.api.notebook_report import InteractiveReport, Page
from calcheck.api.requests import KeywordRequest, report_of
from calcheck.errors import OptionError
from calcheck.evaluation import PlaceSink, Sink
from calcheck.inference.metric_protocol import RowResults
from calcheck.io.file_source import FileSource
from calcheck.metrics import METRICS
from calcheck.options import TOLERANCE
from calcheck.predictions import Predictions
from calcheck.render.numbers_and_notes import headline
from calcheck.render.page import render_page
from calcheck.render.screen import screen_document
from calcheck.reports import Report
from calcheck.studies.gate.evaluate import answer_gates, evaluate_rule
from calcheck.studies.gate.name_resolution import read_rule
from calcheck.studies.next_steps import question_for_level, with_calls
from calcheck.studies.page.document import page_of
from calcheck.studies.reject.study import CCE, ERROR_METRICS
from calcheck.studies.sweep.study import REPEATS
from calcheck.typing import Mask

LEVEL = "calcheck.evaluate(..., level=LEVEL)"  # What to do if the level of intervals is not known


@arguments.public
def evaluate(  # noqa: PLR0913 - independent parts of a report
    data: Data = None,
    metrics: Metrics | None = None,
    *arrays: Any,
    at: Data = None,
    subsample: int | None = None,
    worst: int = 0,
    best: int = 0,
    pointwise: bool = True,
    pictures: bool = False,
    plot_by: Sequence[str] = (),
    tolerance: float = TOLERANCE,
    groups: str | None = None,
    power: bool = False,
    on: Data = None,
    label: int = 0,
    **options: Unpack[WeightedOptions],
) -> InteractiveReport:
    """Return a report of metrics on predictions, and the answer whether the uncertainties can be trusted.

    Parameters
    ----------
    data : path, list of paths, DataFrame, table, Source or Predictions, optional
        Predictions with targets, as for :func:`calcheck.read`, or what it returns; None if all columns are arrays.
    metrics : str, Metric, or sequence of these, optional
        Metrics by name (``"cce"``), or with options (``calcheck.metric("cce", lambda_=0.1)``). By default all that
        apply. After an array of targets, an array of means (n,) or of draws (n, m).
    *arrays : array-like (n,)
        Standard deviations: ``evaluate(y, mean, std)``.
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
    tolerance : float
        Errors that do not matter, > 0: 0.2 for intervals up to 20 % too narrow or too wide, and means off by 0.2
        predicted standard deviations.
    groups : str, optional
        Column of groups, numbers or dates along which the answer also looks for errors.
    power : bool
        Whether faults of several kinds and sizes are simulated, to see how often they would make the answer NO.
    on : path, DataFrame, table or array-like (m, d), optional
        New inputs, for which ``conclusion.on`` has the answer, and ``rows("on")`` the results. Predictions and targets
        there are used, too.
    label : int
        Number of rows of ``on`` to choose, whose targets would make the answer most certain.
    weights : str, optional
        Column of sampling weights of all means. Metrics without a weighted form are skipped unless they are named.
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
        One result per metric, the answer in ``conclusion``, and in ``skipped`` what does not apply, with the reason.

    Raises
    ------
    DataError
        The data cannot be read, or no metric applies.
    OptionError
        A metric or keyword is unknown, or has an invalid value.

    Examples
    --------
    >>> report = evaluate("examples/diabetes.parquet", ["zms", "cce"], inputs=["bmi", "bp", "s5"])
    >>> [(result.metric, round(result.value, 4), result.verdict) for result in report.results]
    [('zms', 0.9847, 'pass'), ('cce', 0.1098, 'fail')]
    """
    call = {name: value for name, value in locals().items() if name != "arrays"}
    request = KeywordRequest(call, WeightedOptions)
    chosen, without = request.weighted(request.metrics(), applicable=True)
    if at is not None and not any(each.info.conditional for each in chosen):
        names = ", ".join(each.info.name for each in chosen)
        msg = f"at is for conditional metrics, such as cce, and there is none among {names}: omit at, or add cce"
        raise OptionError(msg)
    columns = tuple(arguments.listed(plot_by))
    also = (*columns, *arguments.listed_name("groups", groups))
    source = request.open(data, chosen, also=also, inputs=True)
    if metrics is None and pointwise and not pictures and isinstance(source, FileSource):
        counted = question_for_level(source, LEVEL)
        if counted is not None:
            return InteractiveReport.from_report(counted)
    worst, best = arguments.checked_count("worst", worst), arguments.checked_count("best", best)
    points = None if at is None else arguments.evaluation_points(at, source)

    def sinks(output: str) -> tuple[Sink | None, PlaceSink]:
        def keep(metric: AnyMetric, shown: Predictions, results: RowResults) -> None:
            request.keep(f"{output} {metric.info.name}".strip(), shown, results.columns, points or source)

        def keep_place(shown: Predictions, inside: Mask) -> None:
            if pointwise:
                request.keep(f"{output} {evaluation.PLACE}".strip(), shown, {evaluation.PLACE: inside}, source)

        return keep if pointwise else None, keep_place

    with request.run(source) as run:
        found = outputs.evaluate_outputs(
            source,
            chosen,
            on=None if on is None and not label else request.new_inputs(on, source),
            run=replace(run, curves=pictures, curves_by=columns),
            sinks=sinks,
            at=points,
            subsample=None if subsample is None else arguments.checked_count("subsample", subsample),
            worst=worst,
            best=best,
            answer=request.answer(),
        )
    found = replace(arguments.require_results(found), skipped=(*found.skipped, *without))
    if isinstance(source, FileSource):
        defaults = {name: each.default for name, each in inspect.signature(evaluate).parameters.items()}
        changed = {name: value for name, value in call.items() if value is not defaults.get(name, value)}
        found = with_calls(found, source, {**options, **changed})
    screen = partial(screen_document, named=metrics is not None)

    def again(name: str) -> Report:
        own = next((each for each in chosen if each.info.name == name), name)
        return evaluate(data, own, at=at, pointwise=False, pictures=True, plot_by=plot_by, **options)

    return InteractiveReport.from_report(found, request.rows, screen=screen, again=again if pointwise else None)


@arguments.public
def report(
    data: Data | Mapping[str, Data] = None,
    metrics: Metrics | None = None,
    *arrays: Any,  # noqa: ARG001 - keywords by then
    output: str | PathLike[str] | None = None,
    plot_by: Sequence[str] = (),
    **options: Unpack[WeightedOptions],
) -> Page:
    """Return a page to look at and to send, as ``calcheck report``: the answer, pictures, maps and tables.

    Parameters
    ----------
    data, metrics, *arrays
        Predictions and metrics, as for :func:`evaluate`; or a mapping of models by name, which the page compares.
    output : path, optional
        File of the page, which ends in ``.html``.
    plot_by : sequence of str
        Two columns for the map.
    **options
        Keywords of the run and of reading, as for :func:`evaluate`.

    Returns
    -------
    Page
        The page, which notebooks show: ``html``, ``save(path)``, and ``reports`` by name.

    Raises
    ------
    DataError, OptionError
        As :func:`evaluate`.

    Examples
    --------
    >>> page = report("examples/diabetes.parquet", ["zms", "coverage"])
    >>> page.html[:15], list(page.reports)
    ('<!DOCTYPE html>', ['examples/diabetes.parquet'])
    """
    if always := {"pictures", "pointwise"} & options.keys():
        raise OptionError(f"report has no argument {min(always)!r}: a page holds the pictures and the results of rows")
    models = data if isinstance(data, Mapping) and arguments.are_models(data) else {"": data}
    found = {str(name): evaluate(each, metrics, pictures=True, **options) for name, each in models.items()}
    shown = [each.model(plot_by, name) for name, each in found.items()]
    made = Page(dict(zip([each.name for each in shown], found.values(), strict=True)), render_page(page_of(shown)))
    if output is not None:
        made.save(output)
    return made


@arguments.public
def check(
    data: Data = None,
    metrics: Metrics | None = None,
    *arrays: Any,  # noqa: ARG001 - keywords by then
    fail_on: str | Sequence[str] = (),
    strict: bool = False,
    **options: Unpack[WeightedOptions],
) -> InteractiveReport:
    """Return a report with the outcomes of rules, as ``calcheck check``: ``passed``, and ``gates`` with the reasons.

    Parameters
    ----------
    data, metrics, *arrays
        Predictions and metrics, as for :func:`evaluate`.
    fail_on : str or sequence of str
        Conditions of a violation, such as ``"zms > 1.2"``. By default, the answer must not be NO.
    strict : bool
        Whether the answer must be YES, at every level and from row to row.
    **options
        Keywords of the run and of reading, as for :func:`evaluate`.

    Returns
    -------
    InteractiveReport
        The report, with ``gates``; ``passed`` is True if all rules are judged and none is violated.

    Raises
    ------
    DataError, OptionError
        As :func:`evaluate`, or a rule is invalid.

    Examples
    --------
    >>> result = check("examples/diabetes.parquet", ["zms", "bias"], fail_on="zms > 1.2")
    >>> result.passed, result.gates[0].message
    (True, 'zms is 0.985')
    """
    found = partial(evaluate, pointwise=False)(data, metrics, **options)
    gates = tuple(evaluate_rule(read_rule(text), found) for text in arguments.listed(fail_on))
    if strict or not gates:
        gates = (*answer_gates(found, strict=strict), *gates)
    if found.conclusion is not None:
        others = tuple(each for each in found.conclusion.next if "assert_calibrated" not in each)
        found = replace(found, conclusion=replace(found.conclusion, next=others))
    return InteractiveReport.from_report(replace(found, gates=gates))


def assert_calibrated(*data: Any, **options: Any) -> None:
    """Raise an AssertionError that says what is wrong unless :func:`check` passes, for tests with pytest.

    Parameters
    ----------
    *data, **options
        As for :func:`check`.

    Raises
    ------
    AssertionError
        A rule is violated, or cannot be judged.

    Examples
    --------
    >>> assert_calibrated("examples/diabetes.parquet", ["zms", "bias"])
    """
    __tracebackhide__ = True
    result = check(*data, **options)
    if not result.passed:
        raise AssertionError(f"{headline(result)}\n{result.screen()}")


@arguments.public
def compare(
    models: Mapping[str, Data] | Mapping[str, Mapping[str, Data]],
    metrics: Metrics | None = None,
    *,
    permutations: int | None = None,
    on: Data = None,
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
    on : path, DataFrame, table or array-like (m, d), optional
        New inputs, for which ``report.on`` says which model would be best, and has the answer for each.
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
    permutations = None if permutations is None else arguments.checked_count("permutations", permutations)
    return report_of("compare", locals(), WeightedOptions)


@arguments.public
def sweep(
    data: Data | Mapping[str, Data],
    metric: str | AnyMetric,
    vary: Mapping[str, str | Sequence[Any]],
    *,
    all_combinations: bool = False,
    subsets: int = REPEATS,
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
    if not isinstance(vary, Mapping):
        raise OptionError(f'vary is a mapping of settings to values, {{"lambda_": [0.01, 0.1]}}, got {vary!r}')
    if not vary:
        raise OptionError('sweep needs a setting to vary: {"lambda_": [0.01, 0.1]} or {"subsample": [0.25, 0.5]}')
    models = data if isinstance(data, Mapping) else {"model": data}
    return report_of("sweep", locals(), Options)


@arguments.public
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
    if cce is not None and not isinstance(cce, METRICS[CCE]):
        raise OptionError(f'cce is calcheck.metric("cce", …), got {cce!r}')
    return report_of("reject", locals(), Options)


@arguments.public
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
        Columns that form groups, with ``cross`` also their combinations; numbers are cut into quantile bins,
        ``"age:5"``, or at edges, ``"age:30/50/70"``, and dates by period, ``"date:month"``. ``"mean"`` and ``"std"``
        are the predicted ones. By default, regions of the inputs are searched.
    metrics : str, Metric, or sequence of these, optional
        Metrics by group, which are means over rows, or cce, unless ``refit``; or metrics that describe regions. By
        default standardized-bias, pit-dispersion, width-factor and zms.
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
    cross : bool
        Whether the combinations of the groups of several columns are compared, too.
    refit : bool
        Whether metrics of groups that are no means over rows, such as cce and ence, are computed on the rows of each
        group alone. By default, cce has one fit to all rows, whose values are averaged in each group.
    tolerance : float
        Errors that do not matter, as for :func:`evaluate`.
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
    return report_of("slices", locals(), SearchArguments)


@arguments.public
def monitor(
    data: Data = None,
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
    data : path, DataFrame, table, Source or Predictions, optional
        Predictions with targets, as for :func:`evaluate`, in any order.
    time : str, optional
        Column of the target times: dates, or numbers in the order of time. Required without a state.
    metrics : str, Metric, or sequence of these, optional
        Metrics by window, which are means over rows; by default standardized-bias, pit-dispersion and
        width-factor.
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
    tolerance : float
        Errors that do not matter, as for :func:`evaluate`.
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
    metrics = None if metrics is None else arguments.listed(metrics)
    state, save_state = (each and fspath(each) for each in (state, save_state))
    call = locals() | {"files": [data], "seed": options.get("seed")}
    found = report_of("monitor", call, MonitorArguments)
    arguments.require_results(found)
    return found
