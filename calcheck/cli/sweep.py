"""`calcheck sweep`: show how a metric changes with its settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calcheck.cli.app import metric_name
from calcheck.cli.common import (
    COLUMNS,
    ENGINE,
    LEVEL,
    REPORT,
    SEED,
    deliver,
    draw,
    files_argument,
    require_outputs,
    run_context,
)
from calcheck.cli.compare import model_names, open_models
from calcheck.cli.samples import SAMPLE_OPTIONS, open_samples
from calcheck.cli.study_options import SweepOptions
from calcheck.cli.typer_bridge import build, make_command, metric_parameters, parameters, parse_given
from calcheck.errors import DataError, FileError, OptionError
from calcheck.io.columns import ColumnOptions
from calcheck.metrics import METRICS, TWO_SAMPLE_METRICS
from calcheck.options import flag_of, options_of
from calcheck.studies.options import PlotOptions

if TYPE_CHECKING:
    from calcheck.cli.settings import Settings
    from calcheck.io.source import FileSource
    from calcheck.metrics.base import Metric
    from calcheck.studies.sweep.study import SweptSetting

EVERY = METRICS | TWO_SAMPLE_METRICS
SAMPLES_HINT = "If the files are two samples, pass --two-samples"
OPTIONS = metric_parameters(EVERY.values(), "Metric", without=[LEVEL])


def _sweep(files: list[str], settings: Settings, **given: Any) -> None:
    """Show how a metric, and the ranking of models by it, changes with its settings and the number of rows."""
    from calcheck.models.comparison import Model
    from calcheck.models.two_samples import metric_of_samples
    from calcheck.studies.sweep.document import sweep_document
    from calcheck.studies.sweep.picture import require_few_panels, sweep_picture
    from calcheck.studies.sweep.study import parse, sweep

    options, plot = build(SweepOptions, given), build(PlotOptions, given).plot
    metric = _metric(metric_name(options.metric), settings, given)
    varied = [parse(text, type(metric)) for text in options.vary]
    if not varied:
        msg = (
            "sweep needs a setting to vary: pass --vary lambda=0.001..1, --vary draws=1,2,5 or --vary subsample=25%,50%"
        )
        raise OptionError(msg)
    compares_samples = options.two_samples or metric.info.name in TWO_SAMPLE_METRICS
    of_samples = metric_of_samples(metric) if compares_samples else None
    if options.grid is not None and not (of_samples and of_samples.info.conditional):
        msg = "--grid sets the evaluation points of two samples: pass --metric mcmd"
        raise OptionError(msg)
    if of_samples is not None:
        _sweep_samples(files, of_samples, varied, given)
        return
    names = model_names(files, options.names)
    sources = open_models(files, given, [metric])
    may_be_samples = hasattr(metric, "of_samples") and len(files) == 2  # noqa: PLR2004 - two samples
    if may_be_samples:
        _require_predictions(sources)
    report_to, _ = require_outputs(given, *sources)
    if plot:
        require_few_panels({each.name: each.description for each in varied}, all_combinations=options.all_combinations)
    models = [Model.from_source(name, source) for name, source in zip(names, sources, strict=True)]
    with run_context(given) as run, _samples_hint() if may_be_samples else nullcontext():
        report = sweep(
            models, metric, varied, all_combinations=options.all_combinations, subsets=options.subsets, run=run
        )
    if plot:
        draw(sweep_picture(report), plot)
    deliver(report, report_to, sweep_document)


def _require_predictions(sources: Sequence[FileSource]) -> None:
    """Raise if a file has no predictions, which two samples do not need."""
    for each in sources:
        source = replace(each, contents="any")
        if source.roles.predictive is None:
            msg = f"{source.name}: {source.missing()[0]}. {SAMPLES_HINT}"
            raise FileError(msg)


@contextmanager
def _samples_hint() -> Iterator[None]:
    """Add to errors about different rows of two files how to compare two samples."""
    try:
        yield
    except FileError:
        raise
    except DataError as error:
        error.args = (f"{error}. {SAMPLES_HINT}",)
        raise


def _sweep_samples(files: list[str], metric: Metric[Any], varied: list[SweptSetting], given: dict[str, Any]) -> None:
    """Show how a metric of two samples changes with its settings."""
    from calcheck.models.two_samples import PooledSamples
    from calcheck.studies.sweep.document import sweep_document
    from calcheck.studies.sweep.picture import require_few_panels, sweep_picture
    from calcheck.studies.sweep.study import sweep_two_samples

    options, plot = build(SweepOptions, given), build(PlotOptions, given).plot
    if len(files) != 2 or options.names is not None:  # noqa: PLR2004 - two samples
        asked = "--two-samples" if options.two_samples else f"--metric {metric.info.name}"
        msg = f"{asked} compares two samples: pass two files, without --names"
        raise OptionError(msg)
    for option in options_of(ColumnOptions):
        if option.field not in SAMPLE_OPTIONS and given[option.field] not in (None, (), option.default):
            msg = f"{option.flag} does not apply to two samples: remove it"
            raise OptionError(msg)
    first, second = open_samples((files[0], files[1]), given, narrow=False)
    report_to, _ = require_outputs(given, first, second)
    if plot:
        require_few_panels({each.name: each.description for each in varied}, all_combinations=options.all_combinations)
    with run_context(given) as run:
        report = sweep_two_samples(
            PooledSamples(first, second),
            metric,
            varied,
            all_combinations=options.all_combinations,
            subsets=options.subsets,
            grid=options.grid,
            run=run,
        )
    if plot:
        draw(sweep_picture(report), plot)
    deliver(report, report_to, sweep_document)


def _metric(name: str, settings: Settings, given: dict[str, Any]) -> Metric[Any]:
    """Return the metric of the sweep, with its options."""
    metric = EVERY[name] if name in TWO_SAMPLE_METRICS else METRICS.named(name, "--metric: ")
    fields = {option.field for option in options_of(metric)}
    for parameter in OPTIONS:
        if parameter.name not in fields and given.get(parameter.name) not in (None, False):
            msg = f"{name} has no option {flag_of(parameter.name)}: calcheck {name} --help lists its options"
            raise OptionError(msg)
    own = parse_given(metric, given)
    return metric(**own) if name in TWO_SAMPLE_METRICS else settings.metric(name, own)


sweep_command = make_command(
    "sweep",
    _sweep,
    [
        files_argument(
            "FILE [FILE …]",
            "Files of saved predictions on the same rows, one per model; or two samples, with --two-samples or --metric"
            " mcmd or mmd; - reads standard input.",
        ),
        *parameters(SweepOptions, "Sweep"),
        *OPTIONS,
        *COLUMNS,
        *REPORT,
        *parameters(PlotOptions, "Output"),
        *SEED,
        *ENGINE,
    ],
    example="calcheck sweep a.parquet b.parquet --vary lambda=0.001..1",
)
