"""`calcheck compare`, `calcheck trend` and `calcheck diff`: models, times, and reports side by side."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from calcheck.cli.common import (
    BOOTSTRAP,
    COLUMNS,
    DEPENDENCE,
    ENGINE,
    INFERENCE,
    LEVEL,
    REFERENCE,
    REPORT,
    SEED,
    SIGNIFICANCE,
    WEIGHTS,
    deliver,
    deliver_text,
    draw,
    files_argument,
    open_source,
    require_deliverable,
    require_outputs,
    run_context,
    select_metrics,
    weigh_applicable,
)
from calcheck.cli.study_options import ComparisonOptions, TrendOptions
from calcheck.cli.typer_bridge import argument, build, make_command, metric_parameters, parameters, parse_given
from calcheck.errors import DataError, FileError, OptionError, with_suggestion
from calcheck.io.columns import ColumnOptions
from calcheck.metrics import METRICS
from calcheck.metrics.scores import Nll
from calcheck.options import flag_of, is_excluded, options_of
from calcheck.render.cells import skip_reasons
from calcheck.studies.options import DiffReportOptions, PlotOptions, ReportOptions

if TYPE_CHECKING:
    from calcheck.cli.settings import Settings
    from calcheck.io.source import FileSource
    from calcheck.metrics.base import Metric


CCE = "cce"
NAMES = ("draws", "trials")
TRIALS = [parameter for parameter in metric_parameters([METRICS[CCE]], "Metric cce") if parameter.name in NAMES]


def with_trials(metrics: Sequence[Metric[Any]], settings: Settings, given: dict[str, Any]) -> list[Metric[Any]]:
    """Return the metrics, with the given draws and trials for cce."""
    own = parse_given(METRICS[CCE], {name: given.get(name) for name in NAMES})
    if own and all(metric.info.name != CCE for metric in metrics):
        flag = flag_of(next(iter(own)))
        msg = f"{flag} is an option of {CCE}, which is not among the metrics: add it to --metrics, or omit {flag}"
        raise OptionError(msg)
    return [settings.metric(CCE, own) if own and metric.info.name == CCE else metric for metric in metrics]


STDIN = "-"
OPTION_NAME = "[a-z][a-z_-]*"


def _compare(files: list[str], **given: Any) -> None:
    """Compare models on the same rows: mark the best for each metric, and test the differences."""
    from calcheck.models.comparison import Model, compare, compare_datasets
    from calcheck.studies.compare.document import comparison_document
    from calcheck.studies.compare.picture import comparison_picture

    options = build(ComparisonOptions, given)
    if options.positions is not None:
        _show_series(files, given)
        return
    if len(files) < 2:  # noqa: PLR2004 - a comparison needs two
        msg = f"compare needs the files of at least two models, got only {files[0]}"
        raise OptionError(msg)
    metrics = with_trials(select_metrics(options.metrics, given["settings"], given[LEVEL]), given["settings"], given)
    metrics = discretised(metrics) if options.discretise else metrics
    metrics, without = weigh_applicable(metrics, given, options.metrics, plots=True)
    folders = files_by_folder(files) if options.by_folder else {"": files}
    names = {folder: model_names(group, options.names) for folder, group in folders.items()}
    sources = {folder: open_models(group, given, metrics) for folder, group in folders.items()}
    report_to, _ = require_outputs(given, *chain.from_iterable(sources.values()))
    models = {
        folder: [Model.from_source(*each) for each in zip(names[folder], sources[folder], strict=True)]
        for folder in folders
    }
    with run_context(given) as run:
        if options.by_folder:
            report = compare_datasets(models, metrics, swaps=options.permutations, run=run)
        else:
            report = compare(models[""], metrics, swaps=options.permutations, run=run)
    report = replace(report, skipped=(*report.skipped, *without))
    if not report.results:
        msg = f"no metric applies to {', '.join(report.settings['models'])}. {skip_reasons(report)}"
        raise FileError(msg)
    if plot := build(PlotOptions, given).plot:
        draw(comparison_picture(report), plot)
    deliver(report, report_to, comparison_document)


def files_by_folder(files: Sequence[str]) -> dict[str, list[str]]:
    """Return the files in each folder, by its name: DATASET/MODEL."""
    found: dict[str, list[str]] = {}
    for file in files:
        folder = PurePath(split_options(file)[0]).parent
        if not folder.name:
            msg = f"--by-folder needs files named DATASET/MODEL, got {file}"
            raise OptionError(msg)
        group = found.setdefault(folder.name, [])
        others = {PurePath(split_options(each)[0]).parent for each in group} - {folder}
        if others:
            msg = f"--by-folder needs folders with different names, got {others.pop()} and {folder}"
            raise OptionError(msg)
        group.append(file)
    return found


def open_models(
    files: Sequence[str], given: dict[str, Any], metrics: Sequence[Metric[Any]], *, narrow: bool = False
) -> list[FileSource]:
    """Return the source of each file, with the same column options, and those after its name: ``a.csv@dist=poisson``.

    Narrow sources read the other scalar columns, too.
    """
    sources = [_open_model(file, given, metrics, narrow=narrow) for file in files]
    problems = {source.name: problem for source in sources if (problem := _problem(source))}
    fit = [source for source in sources if source.name not in problems]
    if not problems or not fit or fit[0].options == ColumnOptions():
        return sources
    described, name = fit[0], next(iter(problems))
    converted = PurePath(described.name).stem + "-converted.parquet"
    command = shlex.join(["calcheck", "inspect", described.name, *described.explicit(), "-o", converted])
    msg = (
        f"{problems[name]}. The column options describe {described.name}, but not {name}, and apply to all files: run"
        f" {command}, then pass {converted} without these options"
    )
    raise FileError(msg)


def _open_model(file: str, given: dict[str, Any], metrics: Sequence[Metric[Any]], *, narrow: bool) -> FileSource:
    path, own = split_options(file)
    excluded = {name: None for name in given if is_excluded(name, set(own), options_of(ColumnOptions))}
    return open_source(path, {**given, **excluded, **own}, metrics, narrow=narrow)


def discretised(metrics: Sequence[Metric[Any]]) -> list[Metric[Any]]:
    """Return metrics with the nll of whole numbers, which densities and probability masses have in common."""
    return [replace(metric, discretise=True) if isinstance(metric, Nll) else metric for metric in metrics]


def split_options(file: str) -> tuple[str, dict[str, Any]]:
    """Return the path of a file, and the column options after its name: ``a.csv@dist=poisson@param=rate=r``."""
    path, *texts = re.split(rf"@(?={OPTION_NAME}=)", file)
    if not texts or Path(file).exists():
        return file, {}
    known = {option.flag.removeprefix("--"): option for option in options_of(ColumnOptions)}
    own: dict[str, Any] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in known:
            msg = f"{file}: there is no column option --{name}"
            raise OptionError(with_suggestion(msg, name, known))
        option = known[name]
        parsed = (value,) if option.repeated else option.parse(value, f"{file}: {option.flag}")
        own[option.field] = own.get(option.field, ()) + parsed if option.repeated else parsed
    return path, own


def _problem(source: FileSource) -> str:
    """Return why the columns of a file cannot be read with its options, or ""."""
    names = source.table.schema.names
    try:
        source.roles.explicit(names)
    except DataError as error:
        return str(error)
    return ""


def model_names(files: Sequence[str], names: Sequence[str] | None) -> list[str]:
    """Return the names of the models: those given, else the shortest part of each path that makes them unique.

    A file that is read with different options has them in its names.
    """
    plain = [split_options(file)[0] for file in files]
    if plain.count(STDIN) > 1:
        msg = "only one file can be read from standard input: pass the others by their file names"
        raise OptionError(msg)
    if names is not None:
        if len(names) != len(files) or len(set(names)) < len(names):
            msg = f"--names needs {len(files)} different names, one per file, got {','.join(names)!r}"
            raise OptionError(msg)
        return list(names)
    paths = [PurePath("stdin" if file == STDIN else file) for file in plain]
    for depth in range(1, max(len(path.parts) for path in paths) + 1):
        candidates = ["/".join([*path.parts[-depth:-1], path.stem]) for path in paths]
        if len(set(candidates)) == len(candidates):
            return candidates
    candidates = [path.stem + file.removeprefix(name) for path, name, file in zip(paths, plain, files, strict=True)]
    if len(set(candidates)) == len(candidates):
        return candidates
    candidates = [path.name for path in paths]
    if len(set(candidates)) == len(candidates):
        return candidates
    return [f"{path.stem} ({place})" for place, path in enumerate(paths, start=1)]


compare_command = make_command(
    "compare",
    _compare,
    [
        files_argument(
            "A B [C …]",
            "Files of saved predictions, one per model; - reads standard input. Column options of one file follow its"
            " name: a.csv@dist=poisson.",
        ),
        *parameters(ComparisonOptions, "Comparison"),
        *TRIALS,
        *COLUMNS,
        *WEIGHTS,
        *BOOTSTRAP,
        *REFERENCE,
        *SIGNIFICANCE,
        *DEPENDENCE,
        *parameters(ReportOptions, "Output"),
        *parameters(PlotOptions, "Output"),
        *SEED,
        *ENGINE,
    ],
    example="calcheck compare a.parquet b.parquet --metrics crps,zms",
)


def _trend(files: list[str], **given: Any) -> None:
    """Show how metrics change over a series of files, such as predictions for inputs with more and more noise."""
    _show_series(files, given)


def _show_series(files: list[str], given: dict[str, Any]) -> None:
    """Report metrics of a series of files, and their changes from the first."""
    from calcheck.studies.compare.picture import trend_picture
    from calcheck.studies.compare.trend import trend

    options, plot = build(TrendOptions, given), build(PlotOptions, given).plot
    if given.get("weights"):
        msg = "--weights does not apply to a series of files (--positions): remove one of them"
        raise OptionError(msg)
    metrics = with_trials(select_metrics(options.metrics, given["settings"], given[LEVEL]), given["settings"], given)
    metrics = discretised(metrics) if options.discretise else metrics
    sources = open_models(files, given, metrics)
    report_to, _ = require_outputs(given, *sources)
    with run_context(given) as run:
        report = trend(sources, metrics, positions=options.positions, run=run)
    if not report.results:
        msg = f"no metric applies. {skip_reasons(report)}"
        raise FileError(msg)
    if plot:
        draw(trend_picture(report), plot)
    deliver(report, report_to)


trend_command = make_command(
    "trend",
    _trend,
    [
        files_argument(
            "BASE F1 [F2 …]",
            "Files of saved predictions, the undisturbed one first. Column options of one file follow its name:"
            " a.csv@dist=poisson.",
        ),
        *parameters(TrendOptions, "Series"),
        *TRIALS,
        *COLUMNS,
        *INFERENCE,
        *DEPENDENCE,
        *REPORT,
        *parameters(PlotOptions, "Output"),
        *SEED,
        *ENGINE,
    ],
    example="calcheck trend clean.parquet noise1.parquet noise2.parquet --positions 0,0.5,1 --metrics cce,ece",
)


def _diff(old: str, new: str, **given: Any) -> None:
    """Show what changed between two reports: values, verdicts, input, settings and versions."""
    from calcheck.models.difference import diff
    from calcheck.render import render
    from calcheck.storage.report_json import read_report
    from calcheck.studies.compare.document import diff_document

    if old == new == STDIN:
        msg = "only one report can be read from standard input: pass the other by its file name"
        raise OptionError(msg)
    report_to = build(DiffReportOptions, given)
    require_deliverable(report_to, [old, new])
    deliver_text(render(diff(read_report(old), read_report(new)), report_to.format, diff_document), report_to)


diff_command = make_command(
    "diff",
    _diff,
    [
        argument(
            "old", "OLD.json", "A report written with --format json, or a page of calcheck report; - reads stdin."
        ),
        argument("new", "NEW.json", "A later report, in the same formats."),
        *parameters(DiffReportOptions, "Output"),
    ],
    example="calcheck diff old.json new.json",
)
