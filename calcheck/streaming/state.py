"""Metrics of rows that are never together: summed batch by batch, kept as a state, merged with those of other days."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import DataError, FileError, NumericalError, OptionError, ValuesError
from calcheck.evaluation import make_results, run_settings, value_of
from calcheck.execution.reduce import reduce_batches
from calcheck.inference.null_distribution import FEW_REPLICATES, FittedMetric, batch_replicates
from calcheck.inference.verdict_basis import NO_REPLICATES, StatedShape, basis_of
from calcheck.metrics.base import inapplicable_reason
from calcheck.report import Report, Skipped
from calcheck.streaming.accumulators import ColumnStore, MomentSums, strip_prefix
from calcheck.streaming.batched_source import BatchedSource, with_row_numbers
from calcheck.streaming.normal_intervals import NOT_REPLICATED, normal_interval, null_distribution
from calcheck.streaming.registry import accumulator_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.metrics.base import Metric
    from calcheck.predictions import Predictions, Source
    from calcheck.report import Input
    from calcheck.streaming.accumulators import Sums
    from calcheck.streaming.metric_accumulators import MetricAccumulator

    Arrays = Mapping[str, NDArray[Any]]

NOT_LIKE = "was not summed in the state that this one is to be like"


@dataclass(frozen=True)
class StreamedMetric:
    """A metric, how it is summed, and what was chosen for it from the data."""

    metric: Metric[Any, Any]
    accumulator: MetricAccumulator[Any, Any]
    settings: Any

    def settings_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what was chosen as named arrays."""
        found: dict[str, NDArray[Any]] = self.accumulator.to_arrays(self.settings)
        return found


@dataclass(eq=False)
class State:
    """What days of rows add up to.

    Parameters
    ----------
    input : Input
        What was read.
    metrics : tuple of Chosen
        The metrics.
    sums : tuple of Sums
        Of each metric.
    skipped : tuple of Skipped
        The metrics that these rows do not allow.
    warnings : tuple of str
        What a reader should know of all rows.
    replicates : int
        How often the targets were drawn anew.
    shape : StatedShape
        What is known of the distributions.
    """

    input: Input
    metrics: tuple[StreamedMetric, ...]
    sums: tuple[Sums, ...]
    skipped: tuple[Skipped, ...] = ()
    warnings: tuple[str, ...] = ()
    replicates: int = 0
    shape: StatedShape = field(default_factory=StatedShape)


@dataclass(eq=False)
class BatchSums:
    """What a batch of rows adds to each metric, or why it adds nothing."""

    parts: list[Sums | Exception]

    def arrays(self) -> dict[str, NDArray[Any]] | None:
        """Return all of it as named arrays; None where there is a problem, which no array tells."""
        found: dict[str, NDArray[Any]] = {}
        for at, part in enumerate(self.parts):
            if isinstance(part, Exception):
                return None
            found |= {f"{at}.{name}": each for name, each in part.arrays().items()}
        return found

    def add(self, other: BatchSums) -> None:
        """Add what other rows add; the first problem stays."""
        for at, theirs in enumerate(other.parts):
            ours = self.parts[at]
            if isinstance(theirs, Exception) and not isinstance(ours, Exception):
                self.parts[at] = theirs
            elif not isinstance(theirs, Exception) and not isinstance(ours, Exception):
                ours.add(theirs)


@dataclass(frozen=True)
class BatchTask:
    """Sums a batch for several metrics; it can be sent to another process.

    Parameters
    ----------
    metrics : tuple of Chosen
        The metrics.
    run : Run
        The seed of the replicates.
    replicates : int
        How often the targets are drawn anew from the predictions.
    """

    metrics: tuple[StreamedMetric, ...]
    run: Run
    replicates: int = 0

    def __call__(self, batch: Predictions) -> BatchSums:
        """Sum a batch of rows."""
        with np.errstate(all="ignore"):  # metrics refuse numbers that are not finite, in words
            parts = [_summed(each, batch, self.run, self.replicates) for each in self.metrics]
            means = {at: part for at, part in enumerate(parts) if isinstance(part, MomentSums)}
            wanted = {at: part for at, part in means.items() if self.metrics[at].metric.alternative_in_use != "none"}
            if self.replicates and wanted:
                self._replicate(wanted, batch)
        return BatchSums(parts)

    def _replicate(self, sums: dict[int, MomentSums], batch: Predictions) -> None:
        """Sum replicates of the targets too, one after the other: metrics share what they know of each."""
        for part in sums.values():
            part.replicates = {
                name: np.full((self.replicates, *np.shape(each)), np.nan) for name, each in part.sums.items()
            }
        for number, rows in enumerate(batch_replicates(batch, self.replicates, self.run)):
            for at, part in sums.items():
                drawn = _summed(self.metrics[at], rows, self.run)
                if isinstance(drawn, MomentSums):
                    for name, each in drawn.sums.items():
                        part.replicates[name][number] = each

    def load(self, arrays: Arrays) -> BatchSums:
        """Read what :meth:`BatchSums.arrays` returned."""
        return BatchSums([each.accumulator.load(strip_prefix(str(at), arrays)) for at, each in enumerate(self.metrics)])


def _summed(each: StreamedMetric, batch: Predictions, run: Run, replicates: int = 0) -> Sums | Exception:
    """Sum a batch for a metric, or say what is wrong with it."""
    try:
        with with_row_numbers(batch):
            found: Sums = each.accumulator.update_with_replicates(each.settings, batch, replicates, run)
            return found
    except FileError:
        raise
    except (DataError, NumericalError) as error:
        return error


def accumulate(source: Source, metrics: Sequence[Metric[Any, Any]], run: Run, *, like: State | None = None) -> State:
    """Sum metrics over the rows of a source, which are read batch by batch.

    Parameters
    ----------
    source : Source
        Predictions with their targets.
    metrics : sequence of Metric
        What is summed.
    run : Run
        Where it runs, seed, replicates.
    like : State, optional
        A state whose choices are used again: edges of bins, say.

    Raises
    ------
    FileError, OptionError
        A file or the options do not allow it.
    """
    if like is not None and run.replicates not in (None, like.replicates):
        msg = f"--replicates {run.replicates} contradicts --settings-from, whose state has {like.replicates}: leave it out"
        raise OptionError(msg)
    count = FEW_REPLICATES if run.replicates is None else run.replicates
    if like is not None:
        count = like.replicates
    stream = BatchedSource(source, replace(run, replicates=count))
    chosen: list[StreamedMetric] = []
    skipped: dict[str, str] = {}
    for metric in metrics:
        found = _chosen(metric, stream, like)
        if isinstance(found, str):
            skipped[metric.name] = found
        else:
            chosen.append(found)
    comparable = stream.first.y is not None and stream.first.predictive is not None
    work = BatchTask(tuple(chosen), run.for_worker(), count if comparable else 0)
    total = reduce_batches(source, work, run, stage="summing")
    kept = []
    for each, part in zip(chosen, total.parts, strict=True):
        if isinstance(part, Exception):
            skipped[each.metric.name] = _told(part, source)
        else:
            kept.append((each, part))
    caution = stream.first.predictive.caveat if stream.first.predictive is not None else ""
    return State(
        input=source.streamed_input_info(max((sums.n for _, sums in kept), default=len(stream.first)), stream.first),
        metrics=tuple(each for each, _ in kept),
        sums=tuple(sums for _, sums in kept),
        skipped=tuple(Skipped(metric=each.name, reason=skipped[each.name]) for each in metrics if each.name in skipped),
        warnings=(*source.warnings(), *([caution] if caution else [])),
        replicates=work.replicates,
        shape=StatedShape.from_predictive(stream.first.predictive),
    )


def _chosen(metric: Metric[Any, Any], stream: BatchedSource, like: State | None) -> StreamedMetric | str:
    """Choose how a metric is summed; or say why it is not."""
    summing = accumulator_of(metric)
    if summing is None:
        return metric.not_streamable_reason
    if reason := inapplicable_reason(type(metric), stream.first):
        return reason
    if like is not None:
        return next((each for each in like.metrics if each.metric == metric), NOT_LIKE)
    try:
        with np.errstate(all="ignore"):
            return StreamedMetric(metric, summing, summing.fit(stream))
    except FileError:
        raise
    except (DataError, NumericalError) as error:
        return _told(error, stream.source)


def _told(error: Exception, source: Source) -> str:
    """Say what is wrong with rows, by the names that users know."""
    return error.message(source.column_name(error.name)) if isinstance(error, ValuesError) else str(error)


def report_from_state(state: State, run: Run) -> Report:
    """Say what sums tell: values, intervals, references and verdicts.

    Parameters
    ----------
    state : State
        The sums.
    run : Run
        Seed, confidence, resamples.
    """
    from calcheck.version import __version__

    found, skipped = [], list(state.skipped)
    for each, sums in zip(state.metrics, state.sums, strict=True):
        try:
            found.append(_computed(each, sums, state, run))
        except (DataError, NumericalError) as error:
            skipped.append(Skipped(metric=each.metric.name, reason=str(error)))
    return Report(
        calcheck=__version__,
        input=state.input,
        settings=run_settings(run, subsample=None, replicates=state.replicates),
        results=make_results([(each, {}) for each in found], run, state.warnings),
        skipped=tuple(skipped),
    )


def _computed(each: StreamedMetric, sums: Sums, state: State, run: Run) -> FittedMetric[Metric[Any, Any]]:
    """Say what the sums of a metric tell."""
    with np.errstate(all="ignore"):
        rows, replicated = each.accumulator.result(each.settings, sums, run)
        if isinstance(sums, MomentSums):
            replicated = null_distribution(each.metric, sums)
        basis = basis_of(each.metric, state.shape, rows, replicates=replicated is not None)
        if isinstance(sums, ColumnStore) and state.replicates and basis.reason == NO_REPLICATES:
            basis = replace(basis, reason=NOT_REPLICATED)
        if isinstance(sums, MomentSums):
            rows = replace(rows, inference=normal_interval(each.metric, sums, run, basis))
    return FittedMetric(each.metric, each.settings, None, rows, value_of(each.metric, rows), basis, replicated)


def merge(states: Sequence[tuple[str, State]]) -> State:
    """Add up the states of several days.

    Parameters
    ----------
    states : sequence of (str, State)
        With what messages call them; they are used up.

    Raises
    ------
    OptionError
        They were made with different settings, or hold the same rows.
    """
    (name, total), *others = states
    files = {file.sha256: name for file in total.input.files if file.role == "predictions"}
    for called, other in others:
        _require_alike(name, total, called, other)
        for file in other.input.files:
            if file.role == "predictions" and file.sha256 in files:
                msg = f"{called} and {files[file.sha256]} both hold the rows of {file.path}, which would count twice"
                raise OptionError(msg)
        files |= {file.sha256: called for file in other.input.files if file.role == "predictions"}
        alike = {each.metric.name: sums for each, sums in zip(other.metrics, other.sums, strict=True)}
        for each, sums in zip(total.metrics, total.sums, strict=True):
            sums.add(alike[each.metric.name])
        total.input = replace(
            total.input,
            files=(*total.input.files, *other.input.files),
            n=total.input.n + other.input.n,
            dropped=total.input.dropped + other.input.dropped,
        )
        total.warnings = tuple(dict.fromkeys([*total.warnings, *other.warnings]))
    return total


def _require_alike(name: str, first: State, called: str, other: State) -> None:
    """Raise unless two states were made with the same settings, naming the difference.

    Raises
    ------
    OptionError
        They were not.
    """
    if difference := _difference(first, other):
        msg = f"{name} and {called} cannot be merged: {difference}. Make a day's state by --settings-from that of the first"
        raise OptionError(msg)


def _difference(first: State, other: State) -> str:
    """Say how the settings of two states differ; nothing if they do not."""
    names, theirs = ({each.metric.name for each in state.metrics} for state in (first, other))
    if names != theirs:
        more = [f"{', '.join(sorted(left))} in the {which} only" for left, which in _left(names, theirs) if left]
        return f"there are sums of {' and of '.join(more)}"
    for what, one, two in (
        ("predictive distributions", first.input.predictive, other.input.predictive),
        ("replicates (--replicates)", first.replicates, other.replicates),
    ):
        if one != two:
            return f"their {what} differ, {one} and {two}"
    alike = {each.metric.name: each for each in other.metrics}
    return next((told for each in first.metrics if (told := _of_metric(each, alike[each.metric.name]))), "")


def _left(names: set[str], theirs: set[str]) -> tuple[tuple[set[str], str], ...]:
    return (names - theirs, "first"), (theirs - names, "second")


def _of_metric(one: StreamedMetric, other: StreamedMetric) -> str:
    """Say how the settings of a metric differ; nothing if they do not."""
    name, options = one.metric.name, other.metric.options()
    for option, value in one.metric.options().items():
        if value != options[option]:
            return f"{name} has {option} {value} in the first and {options[option]} in the second"
    stored, theirs = one.settings_arrays(), other.settings_arrays()
    for setting in sorted(set(stored) | set(theirs)):
        if setting not in stored or setting not in theirs or not np.array_equal(stored[setting], theirs[setting]):
            return f"{name} was prepared on other rows: its {setting} differ"
    return ""
