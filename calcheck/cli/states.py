"""States on the command line: streaming creates them, `calcheck merge` adds them up."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from inspect import Parameter
from typing import TYPE_CHECKING, Any

from calcheck.cli import inputs_and_outputs
from calcheck.cli.typer_options import argument, build, make_command, parameters_of
from calcheck.errors import DataError, Message, OptionError
from calcheck.execution.run import Run
from calcheck.options import flag_of, group, option, options_of
from calcheck.studies import options as study_options
from calcheck.studies.options import AnswerOptions, ReportOptions, StateOptions

if TYPE_CHECKING:
    from calcheck.evaluation import Answer
    from calcheck.execution.dask import Cluster
    from calcheck.io.file_source import FileSource
    from calcheck.metrics.base import Metric
    from calcheck.reports import Report
    from calcheck.storage.archives import FileCheckpoint
    from calcheck.streaming.state import State


@dataclass(frozen=True)
class MergeOptions:
    """Options for the output of merged states."""

    save_state: str | None = option(
        "Save the merged state to a file.", metavar="FILE", by_hand=study_options.OVERWRITTEN
    )


OF_REPORTS = ("fail_on", "warn_on", "exit_zero", "brief", "table", "summary", "names")
"""Options that need a report only, which merged states have, too."""


def stream_metrics(
    metrics: Sequence[Metric[Any]],
    file: str,
    given: dict[str, Any],
    reason: str = "",
    *,
    answer: Answer | None = None,
    command: bool = False,
) -> Report:
    """Return the report of streamed metrics: that of a ``command``, or with ``--settings-from`` those of its state."""
    from calcheck.causes.search import MOST_ROWS, with_causes
    from calcheck.storage.atomic_write import exclusive
    from calcheck.streaming.state import accumulate, read_state, report_from_state, write_state

    options, strict = build(StateOptions, given), command or bool(given.get("metrics"))
    like = None if options.settings_from is None else read_state(options.settings_from)
    if like is not None and command:
        metrics = [_as_in(like, options.settings_from, metric, given) for metric in metrics]
    elif like is not None:
        named = [metric.info.name for metric in metrics] if strict else list(_metrics_of(like))
        metrics = [_named(like, options.settings_from, name) for name in named]
    for name in inputs_and_outputs.OF_ROWS:
        if given.get(name):
            raise OptionError(f"{flag_of(name)} needs all rows in memory, and streaming keeps none: omit it")
    source = inputs_and_outputs.open_source(file, given, metrics, narrow=False)
    _require_numbers(options, source)
    reads = [*source.reads(), *([options.settings_from] if options.settings_from else [])]
    _require_writable(given, {"--save-state": options.save_state, "--checkpoint": options.checkpoint}, reads)
    with exclusive(options.save_state) as require_unchanged:
        with inputs_and_outputs.run_context(given, source) as run:
            checkpoint = _checkpoint(options, source, reads, metrics, run)
            workers: AbstractContextManager[Cluster | None] = nullcontext()
            if options.dask is not None:
                from calcheck.execution.dask import cluster_at

                workers = cluster_at(options.dask)
            with workers as executor:
                running = replace(run, executor=executor, checkpoint=checkpoint)
                state = accumulate(source, metrics, running, like=like, answer=answer)
            state.warnings += (Message("streamed", reason),) if reason else ()
            report = report_from_state(state, run, answer=answer)
            if report.conclusion is not None and report.conclusion.answer == "no":
                report = with_causes(report, source.beginning(MOST_ROWS), None, run.dependence)
        if strict:
            inputs_and_outputs.require_nothing_skipped(report, source)
        if options.save_state:
            require_unchanged()
            write_state(options.save_state, state)
    if checkpoint is not None:
        checkpoint.remove()
    return report


def _require_numbers(options: StateOptions, source: FileSource) -> None:
    """Raise if states would have columns for the categories of these rows, and those of other rows may differ."""
    if not (options.save_state or options.settings_from):
        return
    with source.error_names():
        names = [each.column for each in source.roles.categories]
    if names:
        msg = f"column {names[0]!r} is text, whose categories may differ between states"
        raise DataError(f"{msg}: with --save-state, encode it as numbers, e.g. as a column of 0 and 1 for each value")


def _checkpoint(
    options: StateOptions, source: FileSource, reads: Sequence[str], metrics: Sequence[Metric[Any]], run: Run
) -> FileCheckpoint | None:
    """Return the checkpoint, or None without ``--checkpoint``."""
    if options.checkpoint is None:
        return None
    import json

    from calcheck.io.files import File
    from calcheck.storage.archives import FileCheckpoint

    main = source.file  # the open file: a pipe can be read only once
    files = {name: main.sha256 if name == main.name else File(name).sha256 for name in reads}
    identity = {
        "files": json.dumps(files),
        "column options": " ".join(source.explicit()),
        "metrics": json.dumps([[metric.info.name, metric.options()] for metric in metrics]),
        "seed and replicates": f"{run.seed}, {run.replicates}",
    }
    return FileCheckpoint(options.checkpoint, identity, resume=options.resume)


def _require_writable(given: dict[str, Any], paths: dict[str, str | None], inputs: Sequence[str]) -> None:
    """Raise, before computing, if the report or another output file cannot be written."""
    from calcheck.storage.archives import require_archive_path

    output = build(ReportOptions, given).output
    inputs_and_outputs.require_deliverable({"output": output, "summary": given.get("summary")}, inputs)
    for flag, path in paths.items():
        if path:
            require_archive_path(path, flag)
    inputs_and_outputs.require_deliverable({"output": output, **paths}, inputs)


def _metrics_of(state: State) -> dict[str, Metric[Any]]:
    parts = (state, *state.targets.values())
    return {each.metric.info.name: each.metric for part in parts for each in part.metrics[: part.requested]}


def _named(like: State, path: str | None, name: str) -> Metric[Any]:
    """Return a metric of a state."""
    metrics = _metrics_of(like)
    if name not in metrics:
        raise OptionError(f"{path} does not contain {name}. It contains: {', '.join(metrics)}")
    return metrics[name]


def _as_in(like: State, path: str | None, metric: Metric[Any], given: dict[str, Any]) -> Metric[Any]:
    """Return a metric with the options it has in a state."""
    theirs = _named(like, path, metric.info.name)
    for each in options_of(type(metric)):
        if given.get(each.field) in (None, False, []):
            continue
        requested, stored = getattr(metric, each.field), getattr(theirs, each.field)
        if requested != stored:
            value = "its default" if stored is None else each.text(stored)
            raise OptionError(
                f"{each.flag} {each.text(requested)} contradicts --settings-from {path}, which has {value}: omit"
                f" {each.flag}"
            )
    return theirs


def merge_states(files: Sequence[str], given: dict[str, Any], declared: Sequence[Parameter]) -> Report:
    """Return the report of all rows of saved states, merged; raise if an option of ``declared`` needs the rows."""
    allowed = {*(each.name for each in MERGED), *OF_REPORTS}
    further = (each.name for each in declared if each.name not in allowed)
    inputs_and_outputs.refuse(further, given, "saved states", "remove it")
    return _merged(files, given)


def _merged(files: Sequence[str], given: dict[str, Any]) -> Report:
    from calcheck.evaluation import Answer
    from calcheck.storage.atomic_write import exclusive
    from calcheck.streaming.state import merge, read_state, report_from_state, write_state

    options = build(MergeOptions, given)
    _require_writable(given, {"--save-state": options.save_state}, files)
    run = inputs_and_outputs.make_run(given)
    with exclusive(options.save_state) as require_unchanged:
        state = merge([(file, read_state(file)) for file in files])
        stated = build(AnswerOptions, given)
        report = report_from_state(
            state, run, answer=Answer(stated.tolerance, power=stated.power, groups=stated.groups)
        )
        if options.save_state:
            require_unchanged()
            write_state(options.save_state, state)
    return report


def _merge(files: list[str], **given: Any) -> None:
    """Merge saved states, e.g. of several days, and report the metrics of all their rows."""
    inputs_and_outputs.deliver(_merged(files, given), build(ReportOptions, given))


MERGED = [
    argument("files", "STATES…", "State files written with --save-state.", list[str]),
    *parameters_of(
        [
            *(group("Metrics", AnswerOptions), study_options.BOOTSTRAP, study_options.CONFIDENCE),
            *(study_options.REPORT, group("Output", MergeOptions), study_options.SEED),
        ]
    ),
]
merge_command = make_command("merge", _merge, MERGED, example="calcheck evaluate monday.state tuesday.state")
