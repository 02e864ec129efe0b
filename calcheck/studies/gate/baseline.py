"""Rules against a baseline report, and the differences from other predictions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from calcheck.errors import FileError
from calcheck.execution.run import Run
from calcheck.inference.paired_comparison import ModelPair, compare_pairs
from calcheck.metrics.base import Metric
from calcheck.models.alignment import Model
from calcheck.models.comparison import evaluate_models, shared_clusters, targets
from calcheck.models.report_difference import worsenings
from calcheck.reports import Gate, Inference, Report, Result, loss
from calcheck.studies.gate.name_resolution import format_value, format_values

RTOL = 0.05  # Default relative tolerance of a stored value
WORSE = {
    "smaller": "larger by",
    "larger": "smaller by",
    "zero": "farther from 0 by",
    "reference": "farther from its reference by",
}  # What is worse, by the orientation of the metric


@dataclass(frozen=True)
class NotWorse:
    """Allows any improvement; a worsening only if it is not significant on the same rows, else within a tolerance."""

    tolerance: "Tolerance"  # Allowed worsening of a metric without a paired difference
    confidence: float = 0.95  # Confidence of the paired differences
    # Paired inference of the current loss minus the stored one, by metric
    differences: Mapping[str, Inference] = field(default_factory=dict)
    unpaired: str = "there is no paired difference"  # Why a metric has no paired difference

    def gate(self, now: Result, stored: Result) -> Gate:
        """Return the gate that is violated by a value that is worse than the stored one."""
        before, after = (loss(each.orientation, each.value, each.reference, each.alternative) for each in (stored, now))
        sides = {now.metric: now, f"base.{now.metric}": stored}
        names = ("value", "reference") if now.orientation == "reference" else ("value",)
        values = {
            side if side == now.metric and name == "value" else f"{side}.{name}": getattr(result, name)
            for side, result in sides.items()
            for name in names
        }
        if now.orientation == "none":
            passed, found = True, "not judged, because no value is better"
        elif before is None or after is None or stored.value is None:
            passed, found = False, "not comparable"
        elif after <= before:
            passed, found = True, "better" if after < before else "as good"
        else:
            passed, reason = self._allows(now.metric, after - before, stored.value)
            found = f"{WORSE[now.orientation]} {format_value(after - before)}; {reason}"
        shown = {name: value for name, value in values.items() if name == now.metric or value is None}
        message = format_values(shown, lambda name: stored if name.startswith("base.") else now)
        return Gate(
            rule=f"{now.metric} is not worse than {format_value(stored.value)}",
            level="fail",
            passed=passed,
            message=f"{message}, {found}",
            values=values,
        )

    def _allows(self, metric: str, worse: float, value: float) -> tuple[bool, str]:
        """Return whether a worsening is allowed, and the reason."""
        difference = self.differences.get(metric)
        if difference is not None and difference.interval == "bca":
            low, high = difference.low or 0.0, difference.high or 0.0
            contains = low <= 0 <= high
            interval = f"[{format_value(low)}, {format_value(high)}]"
            what = f"the paired {100 * self.confidence:.4g} % interval of the difference, {interval},"
            return contains, f"{what} {'contains' if contains else 'does not contain'} 0"
        if difference is not None and difference.p_value is not None:
            alpha = 1 - self.confidence
            passed = difference.p_value > alpha
            sign = "above" if passed else "at most"
            return passed, f"the paired p-value {format_value(difference.p_value)} is {sign} {alpha:.4g}"
        room = self.tolerance.room(value)
        reasons = [self.unpaired] if difference is None else [each.text for each in difference.warnings]
        return worse <= room, f"at most {format_value(room)} is allowed ({reasons[0]})"


@dataclass(frozen=True)
class Tolerance:
    """Allows a change of at most ``atol + rtol * abs(stored value)``."""

    rtol: float
    atol: float

    @classmethod
    def from_options(cls, rtol: float | None, atol: float | None) -> Self:
        """Return the tolerance of two options; without an absolute one, the relative one is 0.05 by default."""
        default = RTOL if atol is None else 0.0
        return cls(default if rtol is None else rtol, atol or 0.0)

    def room(self, value: float) -> float:
        """Return the allowed change of a stored value."""
        return self.atol + self.rtol * abs(value)

    def gate(self, now: Result, stored: Result) -> Gate:
        """Return the gate that compares a value with the stored one."""
        rule, passed = f"{now.metric} equals its stored value", False
        if stored.value is not None:
            room = self.room(stored.value)
            rule = f"{now.metric} is within {format_value(stored.value)} ± {format_value(room)}"
            passed = now.value is not None and abs(now.value - stored.value) <= room
        return _gate(rule, now, stored, ("value",), passed=passed)


@dataclass(frozen=True)
class StoredInterval:
    """Allows any value inside the stored interval."""

    def gate(self, now: Result, stored: Result) -> Gate:
        """Return the gate that compares a value with the stored interval."""
        rule, passed, caution = f"{now.metric} is within its stored interval", False, ""
        if stored.low is not None and stored.high is not None:
            rule = f"{now.metric} is within [{format_value(stored.low)}, {format_value(stored.high)}]"
            passed = now.value is not None and stored.low <= now.value <= stored.high
            if not passed and stored.value is not None and not stored.low <= stored.value <= stored.high:
                caution = (
                    f"; the stored value {format_value(stored.value)} is also outside its interval: compare"
                    f" {now.metric} with --rtol"
                )
        return _gate(rule, now, stored, ("low", "high"), passed=passed, caution=caution)


Allowed = NotWorse | Tolerance | StoredInterval  # Changes from the stored result that are allowed


def compare_with_baseline(report: Report, base: Sequence[Result], allowed: Allowed) -> tuple[Gate, ...]:
    """Return a gate for each stored result, compared with the current result of the same metric."""
    results = {result.metric: result for result in report.results}
    return tuple(allowed.gate(results[stored.metric], stored) for stored in base)


def compare_other_rows(report: Report, base: Report, name: str, reason: str, *, strict: bool) -> tuple[Gate, ...]:
    """Return a gate of each respect in which a report may be worse than that of other rows, and why they are others."""
    if base.conclusion is None:
        raise FileError(
            f"{name} has other rows ({reason}), and no answer to compare: write it again with calcheck evaluate"
        )
    found = sorted(worsenings(base, report), key=lambda each: each.outcome != "worse")
    if not found:
        raise FileError(f"{name} has other rows ({reason}), and nothing that can be compared with them: pass --rtol")
    before = {each.metric for each in base.results if each.is_infinite}
    infinite = [each.metric for each in report.results if each.is_infinite and each.metric not in before]
    told = "infinite, as targets have probability 0: worse"
    impossible = tuple(
        Gate(rule=f"{name} is not worse", level="fail", passed=False, message=told, values={name: None})
        for name in infinite
    )
    return impossible + tuple(
        Gate(
            rule=f"{each.name} is not worse",
            level="fail",
            passed=each.outcome == "not-worse" or (each.outcome == "not-shown" and not strict),
            message=each.text,
            values={each.name: each.new, f"base.{each.name}": each.old},
        )
        for each in found
    )


def _gate(rule: str, now: Result, stored: Result, fields: tuple[str, ...], *, passed: bool, caution: str = "") -> Gate:
    """Return a gate whose message states the current value, and which stored numbers are absent."""
    base: dict[str, float | str | None] = {f"base.{now.metric}.{name}": getattr(stored, name) for name in fields}
    absent = {name: value for name, value in base.items() if value is None}
    message = format_values({now.metric: now.value, **absent}, lambda name: now if name == now.metric else stored)
    return Gate(
        rule=rule, level="fail", passed=passed, message=message + caution, values={now.metric: now.value, **base}
    )


def loss_differences(
    models: tuple[Model, Model], metrics: Sequence[Metric[Any]], run: Run
) -> tuple[Report, dict[str, Inference]]:
    """Return the report of the first model, and by metric the paired inference of the second loss minus the first.

    The loss of a metric whose ideal value is its reference or 0 is the distance from that value
    (:func:`calcheck.reports.loss`); references are held fixed. A metric without an interval of the difference has a
    p-value if a paired test of it is known.
    """
    few = replace(run, replicates=0 if run.replicates == 0 else None)
    reports, evaluated = evaluate_models(models, metrics, few)
    clusters = shared_clusters([model.name for model in models], evaluated, run).get(models[1].name)
    pairs = []
    for metric in metrics:
        name = metric.info.name
        results = [result for report in reports for result in report.results if result.metric == name]
        losses = [loss(result.orientation, result.value, result.reference, result.alternative) for result in results]
        if None not in losses and len(losses) == len(models):
            (first, first_rows), (second, second_rows) = (evaluated[name, model.name] for model in models)
            pairs.append(ModelPair(metric, (first, second), (first_rows, second_rows), targets(*results), clusters))
    plain, others = ([pair for pair in pairs if pair.plain is wanted] for wanted in (True, False))
    inferred = [*compare_pairs(plain, run, swaps=0), *compare_pairs(others, run)]
    names = [pair.metric.info.name for pair in (*plain, *others)]
    return reports[0], dict(zip(names, inferred, strict=True))
