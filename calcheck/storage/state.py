"""Files of streaming states: what is written to them and read from them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from calcheck.dependence.notice import DesignEffect
from calcheck.inference.verdict_basis import StatedShape
from calcheck.messages import Message
from calcheck.metrics import METRICS
from calcheck.report import Input, Skipped
from calcheck.storage.archive_kinds import STATE
from calcheck.storage.npz import damage_as_error, read_archive, write_archive
from calcheck.storage.report_json import from_json
from calcheck.streaming.codec import from_arrays, strip_prefix, to_arrays
from calcheck.streaming.registry import accumulator_of
from calcheck.streaming.state import State, StreamedMetric

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from calcheck.metrics.base import Metric
    from calcheck.streaming.accumulators import Sums
    from calcheck.streaming.metric_accumulators import MetricAccumulator

VERSION = 1


def write_state(path: str, state: State) -> None:
    """Write a state to a file; an existing file is replaced on success only.

    Raises
    ------
    FileError
        The file cannot be written.
    """
    from calcheck.version import __version__

    header = {
        "calcheck": __version__,
        "input": asdict(state.input),
        "metrics": [{"metric": each.metric.info.name, "options": each.metric.options()} for each in state.metrics],
        "skipped": [asdict(each) for each in state.skipped],
        "warnings": [asdict(each) for each in state.warnings],
        "replicates": state.replicates,
        "stated": asdict(state.shape),
        "noticed": None if state.noticed is None else asdict(state.noticed),
    }
    arrays: dict[str, NDArray[Any]] = {}
    for each, sums in zip(state.metrics, state.sums, strict=True):
        named = each.settings_arrays() | to_arrays("sums", sums, each.accumulator.sums_type)
        arrays |= {f"{each.metric.info.name}.{name}": values for name, values in named.items()}
    write_archive(path, STATE, VERSION, header, arrays)


def read_state(path: str) -> State:
    """Return a state from a file, without executing any code from it.

    Raises
    ------
    FileError
        The file is not a state, is of another version, or is damaged.
    """
    header, arrays = read_archive(path, STATE, VERSION)
    with damage_as_error(path):
        return _state(header, arrays)


def _state(header: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> State:
    read: Input = from_json(Input, header["input"], "input")
    chosen, sums = [], []
    for entry in header["metrics"]:
        metric, summing = _metric(entry["metric"], dict(entry["options"]))
        stored = strip_prefix(metric.info.name, arrays)
        chosen.append(StreamedMetric(metric, summing, from_arrays("settings", summing.settings_type, stored)))
        sums.append(_sound(chosen[-1], chosen[-1].sums_from_arrays(stored), read.n))
    return State(
        input=read,
        metrics=tuple(chosen),
        sums=tuple(sums),
        skipped=from_json(tuple[Skipped, ...], header["skipped"], "skipped"),
        warnings=from_json(tuple[Message, ...], header["warnings"], "warnings"),
        replicates=from_json(int, header["replicates"], "replicates"),
        shape=from_json(StatedShape, header["stated"], "stated"),
        noticed=from_json(DesignEffect | None, header.get("noticed"), "noticed"),
    )


def _metric(name: Any, options: dict[str, Any]) -> tuple[Metric[Any], MetricAccumulator[Any, Any]]:
    """Return a metric with the given options, and its accumulator."""
    if name not in METRICS:
        msg = f"there is no metric {name!r}"
        raise ValueError(msg)
    metric = METRICS[name].from_options(options)
    summing = accumulator_of(metric)
    if summing is None:
        msg = f"{name} cannot be computed in batches"
        raise ValueError(msg)
    return metric, summing


def _sound(each: StreamedMetric, sums: Sums, n: int) -> Sums:
    """Return the sums if they are consistent with the settings and the number of rows."""
    if sums.n != n or n < 1 or not each.accumulator.is_consistent(each.settings, sums):
        msg = "its sums, its settings and its number of rows do not match"
        raise ValueError(msg)
    return sums
