"""Models on the same rows, a series of files, and reports, side by side."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from operator import methodcaller
from typing import Any

from calcheck.errors import FileError, OptionError
from calcheck.evaluation import evaluate_each
from calcheck.execution.run import Run
from calcheck.io.file_source import FileSource
from calcheck.io.files import STDIN
from calcheck.metrics.base import Metric
from calcheck.metrics.scores import Nll
from calcheck.models.alignment import Model, comparison_input, incomparable_reason
from calcheck.models.comparison import compare, compare_datasets
from calcheck.models.report_difference import Diff, diff
from calcheck.outputs import output_names, require_other_file, with_new_files
from calcheck.predictions import MappedSource, Source
from calcheck.render.numbers_and_notes import skip_reasons
from calcheck.reports import Report, Skipped, results_of, with_changes
from calcheck.storage.report_json import read_report
from calcheck.studies import Request
from calcheck.studies.compare.document import ALL_TARGETS
from calcheck.studies.compare.options import ComparisonOptions, TrendOptions
from calcheck.studies.options import WeightOptions

CCE = "cce"
TARGETS_UNUSED = "targets there are not used: to compare models on them, pass files with their predictions there"


def run(request: Request) -> Report:
    """Return the report of models on the same rows, of one data set or several."""
    options, files = request.options(ComparisonOptions), request.data("files")
    metrics = _discretised(request.refined(request.metrics(), CCE), wanted=options.discretise)
    metrics, without = request.weighted(metrics, applicable=True, plots=True)
    models = request.models(metrics)
    if files is not None and len(models.get("", files)) < 2:  # noqa: PLR2004 - a comparison needs two
        raise OptionError(f"compare needs the files of at least two models, got only {files[0]}")
    on = request.data("on")
    models = models if on is None else {name: [_with_inputs(each) for each in own] for name, own in models.items()}
    with request.run() as run:
        names = output_names(models[""][0].source) if "" in models else ()
        if on is not None:
            report = _with_new_inputs(request, models.get("", []), metrics, names, run)
        elif "" in models and not names:
            report = compare(models[""], metrics, swaps=options.permutations, run=run)
        else:
            parts = _by_target(models[""], names) if names else models
            report = compare_datasets(parts, metrics, swaps=options.permutations, run=run)
        if names:  # They are no data sets: all have the same rows
            read = [each.source.input_info() for each in models[""]]
            report = replace(report, input=comparison_input([each.name for each in models[""]], read))
    report = request.with_commands(replace(report, skipped=(*report.skipped, *without)))
    return _with_results(report, f" to {', '.join(report.settings['models'])}")


def _with_inputs(model: Model) -> Model:
    """Return a model whose inputs are read, too."""
    source = model.source
    return replace(model, source=replace(source, inputs=True)) if isinstance(source, FileSource) else model


def _with_new_inputs(
    request: Request, models: Sequence[Model], metrics: Sequence[Metric[Any]], names: Sequence[str], run: Run
) -> Report:
    """Return the report of models that are also compared at new inputs."""
    if request.options(WeightOptions).weights is not None:
        raise OptionError("--on does not apply to weighted means (--weights): pass only one of them")
    if names or not models:
        remedy = f"pass --only {names[0]}" if names else "omit --by-folder"
        raise OptionError(f"--on compares models of one data set by one target: {remedy}")
    source = models[0].source
    found = request.open_new(request.data("on"), source)
    new = found.source
    with new.error_names():
        rows, files = new.predictions(), new.input_info().files
    require_other_file(files, [each for model in models for each in model.source.input_info().files])
    inputs = () if rows.has_embedding else source.input_names()
    options = request.options(ComparisonOptions)
    report = compare(models, metrics, swaps=options.permutations, run=run, new=rows, inputs=inputs)
    if report.on is not None and found.has_targets:
        answers = {name: replace(each, unjudged=TARGETS_UNUSED) for name, each in report.on.models.items()}
        report = replace(report, on=replace(report.on, models=answers))
    return replace(report, input=with_new_files(report.input, files))


def _by_target(models: Sequence[Model], names: Sequence[str]) -> dict[str, list[Model]]:
    """Return the models of all targets together, and of each of them."""
    parts = {
        name: [replace(each, source=MappedSource(each.source, methodcaller("of_target", place))) for each in models]
        for place, name in enumerate(names)
    }
    return {ALL_TARGETS: list(models), **parts}


def run_trend(request: Request) -> Report:
    """Return the report of a series of files."""
    options = request.options(TrendOptions)
    metrics = _discretised(request.refined(request.metrics(), CCE), wanted=options.discretise)
    sources = [model.source for model in request.models(metrics)[""]]
    with request.run() as run:
        return _with_results(trend(sources, metrics, positions=options.positions, run=run))


def run_diff(request: Request) -> Diff:
    """Return what changed between two reports."""
    old, new = request.data("old"), request.data("new")
    if old == new == STDIN:
        raise OptionError("only one report can be read from standard input: pass the other by its file name")
    request.require_outputs(reads=[old, new])
    return diff(read_report(old), read_report(new))


def _discretised(metrics: Sequence[Metric[Any]], *, wanted: bool) -> list[Metric[Any]]:
    """Return metrics; with the nll of whole numbers, which densities and probability masses have in common."""
    return [replace(metric, discretise=True) if wanted and isinstance(metric, Nll) else metric for metric in metrics]


def _with_results(report: Report, what: str = "") -> Report:
    """Return a report; raise if it has no results."""
    if not report.results:
        raise FileError(f"no metric applies{what}. {skip_reasons(report)}")
    return report


def trend(
    sources: Sequence[Source],
    metrics: Sequence[Metric[Any]],
    *,
    positions: Sequence[float] | None = None,
    run: Run | None = None,
) -> Report:
    """Return metrics of a series of files, and their changes from the first."""
    places = list(positions or range(len(sources)))
    count = len(sources)
    if count < 2:  # noqa: PLR2004 - a trend needs two
        raise OptionError("a trend needs at least two files, got one")
    if len(places) != count or any(later <= earlier for earlier, later in pairwise(places)):
        listed = ", ".join(f"{place:g}" for place in places)
        raise OptionError(f"--positions needs {count} increasing numbers, one per file, got {listed}")
    run = run or Run()
    reasons = {metric: incomparable_reason(metric, sources) for metric in metrics}
    metrics = [metric for metric, reason in reasons.items() if not reason]
    reports = evaluate_each(sources, metrics, run=run, stage="files", total=len(sources))
    labels = [f"{place:g}" for place in places]
    apart = (
        Skipped(metric=each.info.name, code="inapplicable", reason=reason) for each, reason in reasons.items() if reason
    )
    skipped = dict.fromkeys([*apart, *(each for report in reports for each in report.skipped)])
    results, named = [], list[tuple[str, dict[str, Any]]]()
    for each in (result for report in reports for result in report.results):
        named += [] if (each.metric, each.options) in named else [(each.metric, each.options)]
    for metric, options in named:  # With the changes from the first file that has a value
        found = results_of(reports, [{"at": label} for label in labels], metric, options)
        results += with_changes(found, next((each.value for each in found if each.value is not None), None))
    return replace(
        reports[0],
        input=comparison_input(labels, [report.input for report in reports]),
        settings={**reports[0].settings, "at": places},
        results=tuple(results),
        skipped=tuple(skipped),
        overall=None,
    )
