"""States and checkpoints of streamed evaluations, as files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calcheck.dependence.notice import DesignEffect
from calcheck.errors import Message, OptionError
from calcheck.inference.verdicts import StatedShape
from calcheck.metrics import METRICS
from calcheck.report import Input, Skipped
from calcheck.storage.archives import CHECKPOINT, STATE, damage_as_error, read_archive, write_archive
from calcheck.storage.report_json import from_json
from calcheck.streaming.accumulators import Sums, from_arrays, strip_prefix, to_arrays
from calcheck.streaming.metric_accumulators import accumulator_of
from calcheck.streaming.state import State, StreamedMetric

if TYPE_CHECKING:
    from calcheck.metrics.base import Metric
    from calcheck.predictions import Predictions
    from calcheck.streaming.metric_accumulators import MetricAccumulator
    from calcheck.typing import AnyArray

VERSION = 1
SHARE = 8  # A stage is saved again after 1/SHARE more batches, which bounds the time spent on saving


class FileCheckpoint:
    """A checkpoint file that is written regularly, and removed at the end of the run."""

    def __init__(
        self,
        path: str,  # The file
        # Description of the run: files, options, metrics. A checkpoint of a different run is rejected.
        identity: dict[str, str],
        *,
        resume: bool,  # Whether to resume from the file, if it exists
    ) -> None:
        self._path, self._identity = path, identity
        self._stages: dict[str, int | None] = {}
        self._arrays: dict[str, dict[str, AnyArray]] = {}
        if resume and Path(path).exists():
            self._read()

    def _read(self) -> None:
        header, arrays = read_archive(self._path, CHECKPOINT, VERSION)
        theirs = header.get("run", {})
        for what in {**self._identity, **theirs}:
            if self._identity.get(what) != theirs.get(what):
                msg = f"{self._path} is from a different run: its {what} differ. Restart without --resume"
                raise OptionError(msg)
        for place, (stage, batches) in enumerate(header.get("stages", {}).items()):
            self._stages[stage] = batches
            self._arrays[stage] = strip_prefix(str(place), arrays)

    def load(self, stage: str, work: Callable[[Predictions], Any]) -> tuple[int | None, Any]:
        """Return the number of completed batches of a stage (None for all) and their sum; 0 and None if new."""
        restored = getattr(work, "load", None)
        if stage not in self._stages or restored is None:
            return 0, None
        with damage_as_error(self._path):
            return self._stages[stage], restored(self._arrays[stage])

    def save(self, stage: str, batches: int, total: Any) -> None:
        """Save the sum of the first batches of a stage, if the last save is old enough."""
        last = self._stages.get(stage) or 0
        if batches - last >= max(1, last // SHARE):
            self._write(stage, batches, total)

    def complete(self, stage: str, total: Any) -> None:
        """Save the sum of all batches of a stage."""
        self._write(stage, None, total)

    def remove(self) -> None:
        """Remove the file at the end of the run."""
        Path(self._path).unlink(missing_ok=True)

    def _write(self, stage: str, batches: int | None, total: Any) -> None:
        arrays = total.arrays() if hasattr(total, "arrays") else None
        if arrays is None:  # A sum without arrays cannot be saved and is recomputed
            return
        self._stages[stage], self._arrays[stage] = batches, arrays
        named = {
            f"{place}.{name}": values
            for place, each in enumerate(self._stages)
            for name, values in self._arrays[each].items()
        }
        write_archive(self._path, CHECKPOINT, VERSION, {"run": self._identity, "stages": self._stages}, named)


def write_state(path: str, state: State) -> None:
    """Write a state to a file; an existing file is replaced on success only."""
    from calcheck.core import __version__

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
    arrays: dict[str, AnyArray] = {}
    for each, sums in zip(state.metrics, state.sums, strict=True):
        named = each.settings_arrays() | to_arrays("sums", sums, each.accumulator.sums_type)
        arrays |= {f"{each.metric.info.name}.{name}": values for name, values in named.items()}
    write_archive(path, STATE, VERSION, header, arrays)


def read_state(path: str) -> State:
    """Return a state from a file, without executing any code from it."""
    header, arrays = read_archive(path, STATE, VERSION)
    with damage_as_error(path):
        return _state(header, arrays)


def _state(header: dict[str, Any], arrays: Mapping[str, AnyArray]) -> State:
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
