"""Evaluation of several targets, each by itself and how they depend on each other; and of new inputs."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from calcheck.conclusion import Key, combine
from calcheck.conclusion.answer import Estimate, correlation_text
from calcheck.core.text import p_text
from calcheck.errors import OptionError
from calcheck.evaluation import (
    Answer,
    Behind,
    Evaluated,
    Fitted,
    PlaceSink,
    ReportRequest,
    Sink,
    evaluate,
    subsample_rows,
    topics_of,
)
from calcheck.execution.run import RowDependence, Run
from calcheck.inference.p_values_and_verdicts import topic_p_values
from calcheck.io.evaluation_points import NewRows
from calcheck.metrics.accuracy import Width
from calcheck.metrics.base import DependenceFactor, Metric
from calcheck.predictions import InMemory, MappedSource, Predictions, Source
from calcheck.reports import Conclusion, Input, InputFile, Report, Skipped, rejects
from calcheck.reports.conclusion import Effect
from calcheck.typing import AnyArray

if TYPE_CHECKING:
    from calcheck.new_inputs.transfer import Transferred

Sinks = Callable[[str], tuple[Sink | None, PlaceSink | None]]
TOGETHER = ""  # Name of all targets together
CORRELATION: Key = ("correlation", None)
MOST_NAMES = 3  # Most targets that are named in a notice about several


@dataclass(frozen=True, eq=False)
class NewInputsRequest:
    """New inputs for which the answer is asked, too."""

    new: NewRows
    label: int = 0  # Number of new rows to choose, whose targets would help most
    take: "Callable[[Predictions, Transferred], None] | None" = None  # Takes the new rows and their results


@dataclass(frozen=True)
class JointAnswer(Answer):
    """The answer about several targets: how they depend on each other."""

    def metrics(self, source: Source, run: Run) -> list[Metric[Any]]:  # noqa: ARG002 - the same for all
        """Return the factor of sums and differences."""
        return [DependenceFactor()]


def evaluate_outputs(
    source: Source,
    metrics: Sequence[Metric[Any]],
    *,
    run: Run,
    sinks: Sinks | None = None,
    on: NewInputsRequest | None = None,
    **given: Any,
) -> Report:
    """Return a report as :func:`.evaluate`; several targets are evaluated each by itself, too."""
    names, sinks = output_names(source), sinks or (lambda _: (None, None))
    sink, places = sinks(TOGETHER)
    if not names:
        report = evaluate(source, metrics, run=run, sink=sink, places=places, **given)
        return report if on is None else _with_new_inputs(report, source, on, run, **given)
    if on is not None:
        raise OptionError(f"--on answers for one target, and there are {', '.join(names)}: pass --only {names[0]}")
    run = replace(run, keep_rows=bool(sink or given.get("worst") or given.get("best")))
    request = ReportRequest(run, sink=sink, **given)
    answer = request.answer or Answer()
    request = replace(request, answer=answer)
    joint = replace(request, answer=JointAnswer(answer.tolerance)).evaluate(
        source, [each for each in metrics if each.info.several_targets]
    )
    parts = {}
    for place, name in enumerate(names):
        sink, places = sinks(name)
        own = MappedSource(source, methodcaller("of_target", place))
        parts[name] = replace(request, sink=sink, places=places).evaluate(own, metrics)
    return _combined(request, joint, parts)


def _with_new_inputs(
    report: Report,
    source: Source,
    on: NewInputsRequest,
    run: Run,
    *,
    answer: Answer,
    subsample: int | None = None,
    **_: Any,
) -> Report:
    """Return a report whose conclusion has the answer at new inputs, too."""
    from calcheck.new_inputs.transfer import transfer

    rows = source.predictions()
    rows = rows if subsample is None else subsample_rows(rows, subsample, run)
    if rows.x is None:
        raise OptionError("--on compares inputs: also pass --inputs or --embedding, with the columns of both files")
    with on.new.source.error_names():
        new, files = on.new.source.predictions(), on.new.source.input_info().files
    require_other_file(files, [each for each in report.input.files if each.role == "predictions"])
    names = () if rows.has_embedding else source.input_names()
    found = transfer(
        rows,
        new,
        run=run,
        label=on.label,
        labelled=None if on.new.labelled is None else on.new.labelled.predictions(),
        tolerance=answer.tolerance,
        level=answer.level_of(rows),
        names=names,
    )
    if on.label:
        found.columns["label_rank"] = _ranks(found.conclusion.label, new)
    if on.take is not None:
        on.take(new, found)
    width = None if new.predictive is None else _mean_width(new, answer, run)
    at, conclusion = (
        replace(found.conclusion, width=width, unjudged=on.new.unjudged),
        report.conclusion or Conclusion(answer="not-shown", effects=()),
    )
    if "dependence_noticed" in report.settings:  # nothing is judged
        at = replace(at, answer="not-shown", qualifiers=(), rows_needed=None, effects=conclusion.effects)
    return replace(report, input=with_new_files(report.input, files), conclusion=replace(conclusion, on=at))


def require_other_file(new: Sequence[InputFile], tested: Sequence[InputFile]) -> None:
    """Raise if a file of new inputs is one of the tested rows."""
    if {each.sha256 for each in new} & {each.sha256 for each in tested}:
        remedy = "Write other rows to a file, e.g. calcheck inspect FILE --filter 'age>60' -o new.parquet"
        raise OptionError(f"--on names the file of the tested rows. {remedy}")


def with_new_files(read: Input, files: Sequence[InputFile]) -> Input:
    """Return what was read, with the files of new inputs."""
    return replace(read, files=(*read.files, *(replace(each, role="new_inputs") for each in files)))


def _mean_width(rows: Predictions, answer: Answer, run: Run) -> float | None:
    """Return the mean width of the intervals of the answer; None if the predictions do not state them."""
    metric = Width(answer.level_of(rows))
    plain = replace(run.quiet(), replicates=0, resamples=0, dependence=RowDependence())
    found = evaluate(InMemory(rows), [metric], run=plain).results
    return found[0].value if found else None


def _ranks(chosen: Sequence[int], rows: Predictions) -> AnyArray:
    """Return the place of each row among chosen row numbers, (n,), from 1; None for rows that are not chosen."""
    places = {number: place for place, number in enumerate(chosen, 1)}
    ranks = np.empty(len(rows), dtype=object)
    ranks[:] = [places.get(number) for number in rows.row_numbers().tolist()]
    return ranks


def _combined(request: ReportRequest, joint: Evaluated, parts: Mapping[str, Evaluated]) -> Report:
    """Return the report of all targets."""
    factor = next((each for each in joint.behind if not isinstance(each, Skipped)), None)
    reports, p = conclude_each(
        {name: part.behind for name, part in parts.items()},
        lambda name, p_values: _listed_clips(request.concluded(parts[name], p_values, len(parts)), name, tuple(parts)),
        factor,
    )
    searched = any("region_searched" in report.settings for report in reports.values())
    settings = joint.report.settings | ({"region_searched": True} if searched else {})
    report = replace(joint.report, settings=settings, skipped=all_skipped([joint.report, *reports.values()]))
    effect, limits = _correlation(request, joint, factor, tuple(parts), p)
    found = combine(report, reports, effect, limits, (request.answer or Answer()).tolerance)
    noticed = list(_looks_observed(reports))
    if found.conclusion is None or not noticed:
        return found
    told = Effect(topic="targets", text="; ".join(noticed))
    return replace(found, conclusion=replace(found.conclusion, effects=(*found.conclusion.effects, told)))


def _looks_observed(reports: Mapping[str, Report]) -> Iterator[str]:
    """Yield which targets look clipped or rounded, with the option for all of them."""
    for option, how in {"clip": "clipped", "rounded": "rounded"}.items():
        pattern, given = re.compile(rf"pass --{option} ([^\s;]+)"), {}
        for name, report in reports.items():
            effects = () if report.conclusion is None else report.conclusion.effects
            given[name] = [value for each in effects if each.topic == "targets" for value in pattern.findall(each.text)]
        if names := [name for name, values in given.items() if values]:
            called = f"{len(names)} targets" if len(names) > MOST_NAMES else " and ".join(names)
            yield f"{called} look{'s' * (len(names) == 1)} {how}: if so, pass --{option} {_for_all(given, option)}"


def _for_all(given: Mapping[str, Sequence[str]], option: str) -> str:
    """Return the value of an option for all targets, by those of each of them."""
    if option == "clip":  # which lists both limits of all
        lists = [value.split(",") for values in given.values() for value in values]
        return ",".join(next(filter(None, each), "") for each in zip(*lists, strict=True))
    steps = [values[0] if values else "" for values in given.values()]
    return steps[0] if len({*steps}) == 1 else ",".join(steps)


def _listed_clips(report: Report, name: str, names: Sequence[str]) -> Report:
    """Return the report of one of several targets, with the limits of each of them in the hint about its own."""
    if (found := report.conclusion) is None:
        return report
    place = names.index(name)
    listed = rf"--clip {',,' * place}\1{',,' * (len(names) - 1 - place)}"
    effects = tuple(
        replace(each, text=re.sub(r"--clip ([^\s;]+)", listed, each.text)) if each.topic == "targets" else each
        for each in found.effects
    )
    return replace(report, conclusion=replace(found, effects=effects))


def conclude_each(
    behind: Mapping[str, Behind], conclude: Callable[[str, dict[Key, float]], Report], factor: Fitted | None = None
) -> tuple[dict[str, Report], float | None]:
    """Return the reports of targets, and the p-value of their dependence; all p-values are adjusted for each other."""
    topics = {(name, key): each for name, own in behind.items() for key, each in topics_of(own).items()}
    p_values = topic_p_values(topics | ({} if factor is None else {(TOGETHER, CORRELATION): [factor]}))
    reports = {
        name: conclude(name, {key: p for (owner, key), p in p_values.items() if owner == name}) for name in behind
    }
    return reports, p_values.get((TOGETHER, CORRELATION))


def all_skipped(reports: Sequence[Report]) -> tuple[Skipped, ...]:
    """Return the metrics that were skipped in any report."""
    return tuple(dict.fromkeys(each for report in reports for each in report.skipped))


def _correlation(
    request: ReportRequest, joint: Evaluated, factor: Fitted | None, names: Sequence[str], p: float | None
) -> tuple[Effect, tuple[float, float] | None]:
    """Return the effect of the dependence between targets, and limits that contain the factors of all their pairs."""
    if factor is None or (request.answer and request.answer.weights):
        reasons = [each.reason for each in joint.behind if isinstance(each, Skipped)]
        reason = reasons[0] if reasons else "rows depend on each other" if factor is None else "it has no weighted form"
        return Effect(topic="correlation", text=f"not tested: {reason}"), None
    tail, rows = 1 - request.run.confidence, joint.source.predictions()
    pairs = DependenceFactor().pairs(factor.fit, rows, tail, joint.clusters)
    worst = max(pairs, key=lambda each: each.distance)
    estimate = Estimate("correlation", worst.value, worst.low, worst.high, p)
    targets = [names[place] for place in worst.targets]
    text = correlation_text(targets, worst.side, estimate, worst.observed, worst.predicted)
    text += f" ({p_text(p)})" if p is not None and rejects(p, request.run.confidence) else ""
    effect = Effect(topic="correlation", value=worst.value, low=worst.low, high=worst.high, p=p, text=text)
    return effect, (min(each.low for each in pairs), max(each.high for each in pairs))


def output_names(source: Source, rows: Predictions | None = None) -> tuple[str, ...]:
    """Return the names of several targets, by all or some rows; none for one, and for several targets per input."""
    rows = rows or source.predictions()
    if rows.predictive is None or rows.y is None or rows.repeated or rows.predictive.targets == 1:
        return ()
    return tuple(source.target_name(place) for place in range(rows.predictive.targets))


def several_names(source: Source) -> tuple[str, ...]:
    """Return the names of several targets, by the first rows."""
    return () if getattr(source, "has_one_target", False) else output_names(source, source.beginning(1))


def joined_reports(reports: Mapping[str, Report]) -> Report:
    """Return one report with those of several targets, and what they share."""
    first, *others = reports.values()
    shared = {name: each for name, each in first.settings.items() if all(each == o.settings.get(name) for o in others)}
    answers = [each.conclusion.answer for each in reports.values() if each.conclusion is not None]
    leading = next((each for each in reports.values() if each.conclusion and each.conclusion.answer == "no"), first)
    told: Literal["yes", "no", "not-shown"] = (
        "no" if "no" in answers else "yes" if {*answers} == {"yes"} else "not-shown"
    )
    layout = (first.input.layout or "").removeprefix(f"only {next(iter(reports))}").removeprefix(" · ") or None
    read = [each.input.columns for each in reports.values()]
    columns = {role: ", ".join(dict.fromkeys(each[role] for each in read if role in each)) for role in read[0]}
    for role, own in read[0].items():
        layout = layout and layout.replace(f"{role}: {own}", f"{role}: {columns[role]}")
    return Report(
        calcheck=first.calcheck,
        input=replace(first.input, columns=columns, layout=layout, options=_without_only(first.input.options)),
        settings=shared,
        results=(),
        gates=tuple(replace(gate, rule=f"{name}: {gate.rule}") for name, own in reports.items() for gate in own.gates),
        conclusion=leading.conclusion and Conclusion(answer=told, effects=(), next=leading.conclusion.next),
        targets=dict(reports),
    )


def _without_only(options: tuple[str, ...]) -> tuple[str, ...]:
    place = options.index("--only") if "--only" in options else len(options)
    return (*options[:place], *options[place + 2 :])


def correlation(source: Source, run: Run) -> Effect:
    """Return how several targets depend on each other."""
    request = ReportRequest(run, answer=Answer())
    joint = replace(request, answer=JointAnswer()).evaluate(source, [])
    factor = next((each for each in joint.behind if not isinstance(each, Skipped)), None)
    _, p = conclude_each({}, lambda *_: joint.report, factor)
    return _correlation(request, joint, factor, output_names(source), p)[0]
