"""Streaming states: metrics accumulated over batches of rows, stored, and merged with states of other rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from calcheck import errors
from calcheck.conclusion import combine
from calcheck.core import __version__
from calcheck.dependence.clusters import DesignEffect, input_warnings, noticed_effect
from calcheck.evaluation import ANSWERED, Answer, data_warnings, fitted_metric, make_results
from calcheck.execution.run import Run, reduce_batches, run_settings
from calcheck.inference.metric_protocol import FittedMetric
from calcheck.inference.null_distribution import FEW_REPLICATES, batch_replicates
from calcheck.inference.p_values_and_verdicts import NO_REPLICATES, StatedShape, basis_of, overall_verdict
from calcheck.io.column_roles import OBSERVED
from calcheck.metrics import METRICS
from calcheck.metrics.base import ComparesOutcomes, Metric, inapplicable_reason
from calcheck.outputs import all_skipped, conclude_each, several_names
from calcheck.predictions import InMemory, Predictions, Source
from calcheck.reports import Input, Report, Skipped
from calcheck.reports.conclusion import Effect
from calcheck.storage import archives
from calcheck.streaming import metric_accumulators
from calcheck.streaming.accumulators import BatchedSource, ColumnStore, MomentSums, Sums, with_row_numbers
from calcheck.typing import AnyArray

Arrays = Mapping[str, AnyArray]
OF_INTERVALS = "cannot be computed in batches for prediction intervals. Use --subsample"
IN_MEMORY = "needs rows in memory: pass the file with --subsample"
UNTESTED = f"not tested: {IN_MEMORY}"
NOTICED_ROWS = 20_000  # First rows by which the dependence of rows is noticed
SIMPLE = ("skipped", "warnings", "replicates", "stated", "noticed", "requested")
"""Fields that are JSON in the header of a file."""
TARGET = "target"  # Beginning of the names of the arrays of a target
NOT_LIKE = "is not in the --settings-from state"


@dataclass(frozen=True)
class StreamedMetric:
    """A metric, its accumulator, and its settings from the data."""

    metric: Metric[Any]
    accumulator: metric_accumulators.MetricAccumulator[Any, Any]
    settings: Any

    def stored(self) -> dict[str, Any]:
        """Return what identifies the metric in a file."""
        return self.metric.stored()

    def settings_arrays(self) -> dict[str, AnyArray]:
        """Return the settings as named arrays."""
        return archives.to_arrays("settings", self.settings, self.accumulator.settings_type)

    def sums_from_arrays(self, arrays: Arrays) -> Sums:
        """Return the sums named ``sums`` among some arrays."""
        return cast("Sums", archives.from_arrays("sums", self.accumulator.sums_type, arrays))


@dataclass(eq=False)
class State:
    """The accumulated sums of several metrics, which can be stored and merged."""

    input: Input  # Description of the input files
    metrics: tuple[StreamedMetric, ...]
    sums: tuple[Sums, ...]  # The sums of each metric
    skipped: tuple[Skipped, ...] = ()  # The metrics that could not be computed
    warnings: tuple[errors.Message, ...] = ()  # Warnings about the rows
    replicates: int = 0  # The number of replicates of the targets
    stated: StatedShape = field(default_factory=StatedShape)  # How completely the distributions are specified
    noticed: DesignEffect | None = None  # By what the first rows seem to depend on each other
    requested: int | None = None  # Number of metrics that were asked for, before those behind the answer; None for all
    targets: "dict[str, State]" = field(default_factory=dict)  # The same about each of several targets, by name

    @property
    def keys(self) -> list[str]:
        """Names of the metrics, which distinguish those with different options."""
        return _keys([each.metric.info.name for each in self.metrics])


def _keys(names: Sequence[str]) -> list[str]:
    """Return different names: repeated ones with a number."""
    counts = [names[:place].count(name) for place, name in enumerate(names)]
    return [f"{name}-{count}" if count else name for name, count in zip(names, counts, strict=True)]


@dataclass(eq=False)
class BatchSums:
    """The sums of a batch for each metric, or the exception that prevents them."""

    parts: list[Sums | Exception]

    def arrays(self) -> dict[str, AnyArray] | None:
        """Return the sums as named arrays; None if there is an exception."""
        found: dict[str, AnyArray] = {}
        for at, part in enumerate(self.parts):
            if isinstance(part, Exception):
                return None
            found |= archives.to_arrays(f"{at}.sums", part, type(part))
        return found

    def add(self, other: "BatchSums") -> None:
        """Add the sums of other rows, in place; the first exception of each metric is kept."""
        for at, theirs in enumerate(other.parts):
            ours = self.parts[at]
            if isinstance(theirs, Exception) and not isinstance(ours, Exception):
                self.parts[at] = theirs
            elif not isinstance(theirs, Exception) and not isinstance(ours, Exception):
                ours.add(theirs)


@dataclass(frozen=True)
class BatchTask:
    """Sums a batch for several metrics; it can be sent to another process."""

    metrics: tuple[StreamedMetric, ...]
    run: Run  # The seed of the replicates
    replicates: int = 0  # The number of replicates of the targets

    def __call__(self, batch: Predictions) -> BatchSums:
        """Return the sums of a batch."""
        with np.errstate(all="ignore"):  # Metrics raise errors for non-finite numbers
            parts = [_batch_sums(each, batch, self.run, self.replicates) for each in self.metrics]
            means = {at: part for at, part in enumerate(parts) if isinstance(part, MomentSums)}
            wanted = {at: part for at, part in means.items() if self.metrics[at].metric.alternative != "none"}
            if self.replicates and wanted:
                self._replicate(wanted, batch)
        return BatchSums(parts)

    def _replicate(self, sums: dict[int, MomentSums], batch: Predictions) -> None:
        """Add the sums of replicates, one replicate at a time, so that metrics share cached statistics."""
        for part in sums.values():
            part.replicates = {
                name: np.full((self.replicates, *np.shape(each)), np.nan) for name, each in part.sums.items()
            }
        for number, rows in enumerate(batch_replicates(batch, self.replicates, self.run)):
            for at, part in sums.items():
                drawn = _batch_sums(self.metrics[at], rows, self.run)
                if isinstance(drawn, MomentSums):
                    for name, each in drawn.sums.items():
                        part.replicates[name][number] = each

    def load(self, arrays: Arrays) -> BatchSums:
        """Return the sums from the arrays of :meth:`BatchSums.arrays`."""
        return BatchSums(
            [each.sums_from_arrays(archives.strip_prefix(str(at), arrays)) for at, each in enumerate(self.metrics)]
        )


def _batch_sums(each: StreamedMetric, batch: Predictions, run: Run, replicates: int = 0) -> Sums | Exception:
    """Return the sums of a batch for a metric, or the exception that prevents them."""
    try:
        with with_row_numbers(batch):
            found: Sums = each.accumulator.sum_batch_with_replicates(each.settings, batch, replicates, run)
            return found
    except errors.FileError:
        raise
    except (errors.DataError, errors.NumericalError) as error:
        return error


def accumulate(
    source: Source, metrics: Sequence[Metric[Any]], run: Run, *, like: State | None = None, answer: Answer | None = None
) -> State:
    """Return the state of metrics, and of those behind the answer, over the rows of a source, read in batches."""
    names = several_names(source) if answer is not None else ()
    if not names:
        return _accumulate(source, metrics, run, like=like, answer=answer)
    state = _accumulate(source, [each for each in metrics if each.info.several_targets], run, like=like)
    for place, name in enumerate(names):
        if like is not None and name not in like.targets:
            raise errors.OptionError(f"the target {name} {NOT_LIKE}")
        own, theirs = replace(run.prefixed(name), part=f"{name}: "), None if like is None else like.targets[name]
        state.targets[name] = _accumulate(source.of_target(place), metrics, own, like=theirs, answer=answer)
    state.input = replace(state.input, n=next(iter(state.targets.values())).input.n)
    return state


def _accumulate(
    source: Source, metrics: Sequence[Metric[Any]], run: Run, *, like: State | None, answer: Answer | None = None
) -> State:
    """Return the state of metrics of one target, or of all together."""
    if like is not None and run.replicates not in (None, like.replicates):
        raise errors.OptionError(
            f"--replicates {run.replicates} contradicts --settings-from, whose state has {like.replicates}: omit"
            " --replicates"
        )
    stated = run.replicates if like is None else like.replicates
    count = FEW_REPLICATES if stated is None else stated
    stream = BatchedSource(source, replace(run, replicates=count))
    chosen: list[StreamedMetric] = []
    skipped: dict[str, Skipped] = {}
    for metric in metrics:
        found = _streamed_metric(metric, stream, like)
        if isinstance(found, Skipped):
            skipped[metric.info.name] = found
        else:
            chosen.append(found)
    asked = len(chosen)
    for metric in () if answer is None else answer.metrics(InMemory(stream.first), run):
        found = _streamed_metric(metric, stream, like)
        if isinstance(found, StreamedMetric) and all(each.metric != found.metric for each in chosen):
            chosen.append(found)
    beginning = source.beginning(NOTICED_ROWS)
    noticed = noticed_effect(beginning)
    comparable = stream.first.y is not None and stream.first.predictive is not None
    work = BatchTask(tuple(chosen), run.for_worker(), count if comparable else 0)
    total = reduce_batches(source, work, run, stage="summing")
    computed = []
    for place, (each, part) in enumerate(zip(chosen, total.parts, strict=True)):
        if not isinstance(part, Exception):
            computed.append((each, part))
        elif place < asked:
            skipped[each.metric.info.name] = _skipped_by_error(each.metric, part, source)
    failed = sum(isinstance(part, Exception) for part in total.parts[:asked])
    return State(
        input=source.streamed_input_info(
            max((sums.n for _, sums in computed), default=len(stream.first)), stream.first
        ),
        metrics=tuple(each for each, _ in computed),
        sums=tuple(sums for _, sums in computed),
        skipped=tuple(skipped[metric.info.name] for metric in metrics if metric.info.name in skipped),
        warnings=data_warnings(source, stream.first.predictive) + (() if noticed else input_warnings(beginning)),
        replicates=work.replicates,
        stated=StatedShape.from_predictive(stream.first.predictive),
        noticed=None if noticed is None else replace(noticed, streamed=True),
        requested=asked - failed,
    )


def _streamed_metric(metric: Metric[Any], stream: BatchedSource, like: State | None) -> StreamedMetric | Skipped:
    """Return a metric with its accumulator and settings, or why it cannot be accumulated."""
    metric = metric.with_defaults(stream.first)
    name, summing = metric.info.name, metric_accumulators.accumulator_of(metric)
    if summing is None:
        return Skipped(metric=name, code="inapplicable", reason=metric_accumulators.not_streamable_reason(metric))
    intervals = stream.first.predictive is not None and stream.first.predictive.interval_levels is not None
    if intervals and isinstance(metric, ComparesOutcomes):
        return Skipped(metric=name, code="inapplicable", reason=OF_INTERVALS)
    if reason := inapplicable_reason(type(metric), stream.first):
        return Skipped(metric=name, code="inapplicable", reason=reason)
    if like is not None:
        absent = Skipped(metric=name, code="inapplicable", reason=NOT_LIKE)
        return next((each for each in like.metrics if each.metric == metric), absent)
    try:
        with np.errstate(all="ignore"):
            return StreamedMetric(metric, summing, summing.fit(stream))
    except errors.FileError:
        raise
    except (errors.DataError, errors.NumericalError) as error:
        return _skipped_by_error(metric, error, stream.source)


def _skipped_by_error(metric: Metric[Any], error: Exception, source: Source) -> Skipped:
    """Return the metric as skipped, with the message of an error and the column names of the source."""
    text = error.message(source.column_name(error.name)) if isinstance(error, errors.ValuesError) else str(error)
    if isinstance(error, errors.ExtremeError):
        raise errors.RefusedError(text) from error
    if isinstance(error, errors.NumericalError):
        raise errors.RefusedError(f"{metric.info.name}: {text}") from error
    return Skipped(metric=metric.info.name, code="error", reason=text)


def report_from_state(state: State, run: Run, *, answer: Answer | None = None) -> Report:
    """Return the report of a state: values, intervals, references and verdicts, and the answer if it is asked for."""
    if answer is not None and (answer.power or answer.groups):
        option = "--power" if answer.power else "--groups"
        msg = f"{option} needs all rows in memory: omit it for states and for rows in batches, or pass --subsample"
        raise errors.OptionError(msg)
    report, behind = _computed(state, run)
    if answer is None:
        return report
    if not state.targets:
        return answer.concluded(report, behind, run)
    told, parts = answer, {name: _computed(each, run) for name, each in state.targets.items()}
    reports, _ = conclude_each(
        {name: own for name, (_, own) in parts.items()},
        lambda name, p_values: told.concluded(*parts[name], run, None, p_values, len(parts)),
    )
    report = replace(report, skipped=all_skipped([report, *reports.values()]))
    return combine(report, reports, Effect(topic="correlation", text=UNTESTED), None, answer.tolerance)


def _computed(state: State, run: Run) -> tuple[Report, list[FittedMetric[Metric[Any]] | Skipped]]:
    """Return the report of a state without an answer, and the metrics behind one."""
    noticed = state.noticed if state.replicates or run.resamples else None
    found, skipped = [], list(state.skipped)
    behind: list[FittedMetric[Metric[Any]] | Skipped] = []
    asked = len(state.metrics) if state.requested is None else state.requested
    for place, (each, sums) in enumerate(zip(state.metrics, state.sums, strict=True)):
        try:
            computed = _fitted_metric(each, sums, state, run)
        except errors.DataError as error:
            if place < asked:
                skipped.append(Skipped(metric=each.metric.info.name, code="error", reason=str(error)))
            continue
        if place < asked:
            found.append(computed)
        if each.metric.info.name in ANSWERED:
            behind.append(computed)
    report = Report(
        calcheck=__version__,
        input=state.input,
        settings={
            **({} if noticed is None else noticed.settings),
            **run_settings(replace(run, replicates=state.replicates)),
        },
        results=make_results(
            [(each, {}) for each in found],
            run,
            state.warnings + (() if noticed is None else (noticed.warning(),)),
            unjudged="" if noticed is None else noticed.reason,
        ),
        skipped=tuple(skipped),
        overall=overall_verdict(found, run.confidence, judged=noticed is None),
    )
    return report, [*behind, Skipped(metric="local-scale", code="inapplicable", reason=IN_MEMORY)]


def _fitted_metric(each: StreamedMetric, sums: Sums, state: State, run: Run) -> FittedMetric[Metric[Any]]:
    """Return a metric computed from its sums."""
    with np.errstate(all="ignore"):
        rows, replicated = each.accumulator.result(each.settings, sums, run)
        if isinstance(sums, MomentSums):
            replicated = metric_accumulators.null_distribution(each.metric, sums)
        otherwise = (
            metric_accumulators.NOT_REPLICATED if isinstance(sums, ColumnStore) and state.replicates else NO_REPLICATES
        )
        basis = basis_of(each.metric, state.stated, rows, replicates=replicated is not None, otherwise=otherwise)
        if not basis.can_simulate:
            replicated = None
        if isinstance(sums, MomentSums):
            rows = replace(rows, inference=metric_accumulators.normal_interval(each.metric, sums, run, basis))
    fitted = fitted_metric(each.metric, rows, basis, each.settings)
    fitted.null, fitted.tested = replicated, None if replicated is None else replicated.data_value
    return fitted


def merge(states: Sequence[tuple[str, State]]) -> State:
    """Return the sum of several states."""
    (name, total), *others = states
    files = {file.sha256: name for file in total.input.files if file.role == "predictions"}
    for called, other in others:
        if difference := _difference(total, other):
            msg = (
                f"{name} and {called} cannot be merged: {difference}. Create the second with --settings-from the first"
            )
            raise errors.OptionError(msg)
        for file in other.input.files:
            if file.role == "predictions" and file.sha256 in files:
                msg = f"{called} and {files[file.sha256]} both contain the rows of {file.path}, which would count twice"
                raise errors.OptionError(msg)
        files |= {file.sha256: called for file in other.input.files if file.role == "predictions"}
        alike = dict(zip(other.keys, other.sums, strict=True))
        for key, sums in zip(total.keys, total.sums, strict=True):
            sums.add(alike[key])
        total.input = replace(
            total.input,
            files=(*total.input.files, *other.input.files),
            n=total.input.n + other.input.n,
            dropped=total.input.dropped + other.input.dropped,
        )
        total.noticed = max(filter(None, (total.noticed, other.noticed)), key=lambda each: each.ratio, default=None)
        total.warnings = tuple(dict.fromkeys([*total.warnings, *other.warnings]))
    total.targets = {key: merge([(called, each.targets[key]) for called, each in states]) for key in total.targets}
    return total


def _difference(first: State, other: State) -> str:
    """Return how the settings of two states differ, or ""."""
    if [*first.targets] != [*other.targets]:
        return f"their targets differ: {', '.join(first.targets)} and {', '.join(other.targets)}"
    names, theirs = (set(state.keys) for state in (first, other))
    if names != theirs:
        only = {"first": names - theirs, "second": theirs - names}
        more = [f"{', '.join(sorted(left))} only in the {which}" for which, left in only.items() if left]
        return f"the metrics differ: {' and '.join(more)}"
    for what, one, two in (
        ("predictive distributions", first.input.predictive, other.input.predictive),
        *(
            (f"observed targets (--{name})", *(each.input.columns.get(name) for each in (first, other)))
            for name in OBSERVED
        ),
        ("replicates (--replicates)", first.replicates, other.replicates),
    ):
        if one != two:
            return f"their {what} differ: {one} and {two}"
    alike = dict(zip(other.keys, zip(other.metrics, other.sums, strict=True), strict=True))
    for key, each, sums in zip(first.keys, first.metrics, first.sums, strict=True):
        one_like, sums_like = alike[key]
        if difference := _metric_difference(each, one_like):
            return difference
        means = [each for each in (sums, sums_like) if isinstance(each, MomentSums)]
        if len({frozenset(each.sums) for each in means}) > 1:
            return f"different versions of calcheck summed {each.metric.info.name}"
    return ""


def _metric_difference(one: StreamedMetric, other: StreamedMetric) -> str:
    """Return how the settings of a metric differ, or ""."""
    name, options = one.metric.info.name, other.metric.options()
    for option, value in one.metric.options().items():
        if value != options[option]:
            return f"{name} has {option} {value} in the first and {options[option]} in the second"
    stored, theirs = one.settings_arrays(), other.settings_arrays()
    for path in dict.fromkeys((*stored, *theirs)):
        if path not in stored or path not in theirs or not np.array_equal(stored[path], theirs[path]):
            return f"{name} was prepared on other rows: its setting {path.removeprefix('settings.')!r} differs"
    return ""


def write_state(path: str, state: State) -> None:
    """Write a state to a file; an existing file is replaced on success only."""
    archives.write_archive(path, archives.STATE, *_stored(state))


def _stored(state: State) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return the header and the arrays of a state, with those of its targets."""
    header, arrays = archives.to_header(state, ("input", "metrics", *SIMPLE)), dict[str, AnyArray]()
    for key, each, sums in zip(state.keys, state.metrics, state.sums, strict=True):
        named = each.settings_arrays() | archives.to_arrays("sums", sums, each.accumulator.sums_type)
        arrays |= {f"{key}.{name}": values for name, values in named.items()}
    parts = {name: _stored(each) for name, each in state.targets.items()}
    for place, (_, own) in enumerate(parts.values()):
        arrays |= {f"{TARGET}{place}.{name}": values for name, values in own.items()}
    return header | ({"targets": {name: own for name, (own, _) in parts.items()}} if parts else {}), arrays


def read_state(path: str) -> State:
    """Return a state from a file, without executing any code from it."""
    header, arrays = archives.read_archive(path, archives.STATE)
    with archives.damage_as_error(path):
        return _restored(header, arrays)


def _restored(header: dict[str, Any], arrays: Arrays) -> State:
    """Return a state from what :func:`_stored` returned."""
    simple = archives.from_header(State, ("input", *SIMPLE), header)
    chosen, sums = [], []
    keys = _keys([str(entry["metric"]) for entry in header["metrics"]])
    for key, entry in zip(keys, header["metrics"], strict=True):
        metric, summing = _metric(entry["metric"], dict(entry["options"]))
        stored = archives.strip_prefix(key, arrays)
        settings = archives.from_arrays("settings", summing.settings_type, stored)
        chosen.append(StreamedMetric(metric, summing, settings))
        sums.append(chosen[-1].sums_from_arrays(stored))
        n = simple["input"].n
        if sums[-1].n != n or n < 1 or not summing.is_consistent(settings, sums[-1]):
            raise ValueError("its sums, its settings and its number of rows do not match")
    targets = {
        str(name): _restored(dict(own), archives.strip_prefix(f"{TARGET}{place}", arrays))
        for place, (name, own) in enumerate(dict(header.get("targets", {})).items())
    }
    return State(metrics=tuple(chosen), sums=tuple(sums), targets=targets, **simple)


def _metric(name: Any, options: dict[str, Any]) -> tuple[Metric[Any], metric_accumulators.MetricAccumulator[Any, Any]]:
    """Return a metric with the given options, and its accumulator."""
    if name not in METRICS:
        raise ValueError(f"there is no metric {name!r}")
    metric = METRICS[name].from_options(options)
    summing = metric_accumulators.accumulator_of(metric)
    if summing is None:
        raise ValueError(f"{name} cannot be computed in batches")
    return metric, summing
