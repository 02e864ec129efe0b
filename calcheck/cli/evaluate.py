"""`calcheck evaluate`: several metrics of one file; `check` has rules besides, and `report` writes a page."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import Parameter
from typing import TYPE_CHECKING, Any

import typer

from calcheck.cli import check, inputs_and_outputs
from calcheck.cli.error_messages import list_hint
from calcheck.cli.states import merge_states, stream_metrics
from calcheck.cli.typer_options import argument, build, make_command, parameters_of
from calcheck.errors import FileError, OptionError
from calcheck.execution.run import Run
from calcheck.options import Group, flag_of, group, options_of
from calcheck.render import FORMATS, PAGE, render
from calcheck.render.document import Document, report_document
from calcheck.render.numbers_and_notes import skip_reasons
from calcheck.render.screen import screen_document
from calcheck.reports import Report, Skipped
from calcheck.studies import STUDIES
from calcheck.studies import options as study_options
from calcheck.studies.gate.rules import ON
from calcheck.studies.next_steps import evaluation_of, next_commands, question_for_level, without_known_names
from calcheck.typing import Mask

if TYPE_CHECKING:
    from calcheck.evaluation import Answer
    from calcheck.inference.metric_protocol import RowResults
    from calcheck.io.file_source import FileSource
    from calcheck.metrics.base import Metric
    from calcheck.new_inputs.transfer import Transferred
    from calcheck.outputs import NewInputsRequest
    from calcheck.predictions import Predictions
    from calcheck.studies.page.document import EvaluatedRows, ModelReport

PAGE_NAME = "report.html"
OF_ONE_FILE = ("pointwise", "plot", "validation", "save_state", "checkpoint", "on")  # Options about one model
NOT_BY_GROUP = (
    *("subsample", "pointwise", "brief", "worst", "best", "fail_on", "warn_on", "plot_by", "names", "validation", "on"),
    *(each.field for each in options_of(study_options.StateOptions)),
)  # Options that do not apply to groups
WITH_LEVEL = (
    *("metrics", "groups", "power", "on", "inputs", "embedding", "time", "cluster", "block", "weights"),
    *("subsample", "pointwise", "worst", "best", "plot"),
    *(each.field for each in options_of(study_options.StateOptions)),
)  # Options that need the level of intervals


def _evaluate(files: list[str], **given: Any) -> None:
    """Answer whether the uncertainties in a file can be trusted, with every metric that applies.

    The first lines are the conclusion; the table has the metrics.

    The verdict is "fail" if a perfect model would get a value at least this
    extreme in at most 5 % of data sets. This assumes that the model was not
    fitted on these rows, and that rows are independent given the predictions.
    Verdicts on training rows are meaningless, and calcheck cannot detect
    training rows.
    """
    if len(files) > 1 and not _are_states(files):
        msg = f"Got unexpected extra argument(s) ({' '.join(files[1:])}). {list_hint(len(files) - 1, sys.argv[1:])}"
        raise OptionError(msg)
    _end(_answer(files, given, _stated_rules(given)), given)


def _check(files: list[str], **given: Any) -> None:
    """Check a file against rules, and exit with code 1 if a rule is violated.

    Without rules, the answer of "calcheck evaluate" must not be NO; with
    --strict, it must be YES at every level and from row to row. The exit code
    is 3 if no rule is violated, but one cannot be judged: it depends on a
    verdict that this file does not have.
    """
    settings, named = given["settings"], build(study_options.RuleMetricOptions, given).metrics
    base = check.read_base(build(study_options.AgainstOptions, given), named, settings, given)
    required = check.Requirements(
        check.rules_of(build(study_options.RuleOptions, given), settings.config),
        base,
        checked=True,
        strict=build(study_options.RuleMetricOptions, given).strict,
    )
    if states := check.monitored_states(files, required.rules, base):
        _require_outputs(states, (), given, required)
        reports = [check.state_report(file, required.rules, given) for file in states]
        _deliver(reports, given, (), STUDIES["monitor"].document_of)
        _end(reports, given)
    else:
        answered = _answer(files, given, required)
        if len(files) == 2 and not base.name:  # noqa: PLR2004 - a pair
            command = shlex.join(["calcheck", "check", files[0], "--against", files[1]])
            sys.stderr.write(f"each file was checked by itself; whether the first is worse: {command}\n")
        _end(answered, given)


def _report(files: list[str], **given: Any) -> None:
    """Write one HTML page about a file: the conclusion, every metric, pictures, a map to explore, and the worst rows.

    The page needs no network. With several files, their models are shown
    side by side. "calcheck diff" and "calcheck check --against" read the
    report that is inside the page.
    """
    given["format"] = build(study_options.PageReportOptions, given).format
    if given["format"] == PAGE:
        given["output"] = given["output"] or PAGE_NAME
    reports = _answer(files, given, _stated_rules(given))
    if given["output"] and given["output"] not in inputs_and_outputs.STDOUT:
        sys.stderr.write(f"wrote {given['output']}\n")
        to = "" if given["output"] == PAGE_NAME or len(reports) > 1 else f" -o {shlex.quote(given['output'])}"
        for report in reports:
            outcomes = {"violated": report.violated("fail"), "not judged": report.unjudged("fail")}
            sys.stderr.writelines(
                f"{word} {each.rule}: {each.message}\n" for word in outcomes for each in outcomes[word]
            )
            commands = () if given["inputs"] or report.conclusion is None else report.conclusion.next
            tests = (each for each in commands if " --inputs " in each and each.startswith("calcheck evaluate "))
            sys.stderr.writelines(
                f"inputs were not tested: {each.replace('evaluate', 'report', 1)}{to}\n" for each in tests
            )
    _end(reports, given)


def _are_states(files: Sequence[str]) -> bool:
    """Return whether files are saved states; raise if the first is none, but another is."""
    from calcheck.storage.archives import STATE, is_archive

    states = [file for file in files if is_archive(file, STATE)]
    if states and files[0] not in states:
        msg = f"{states[0]} is a saved state, and {files[0]} is not: pass only saved states, or only predictions"
        raise OptionError(msg)
    return bool(states)


def _stated_rules(given: dict[str, Any]) -> check.Requirements:
    options = build(study_options.RuleOptions, given)
    return check.Requirements(check.parse_rules(options.fail_on, options.warn_on))


def _end(reports: Sequence[Report], given: dict[str, Any]) -> None:
    """Exit with the code of violated rules, if there is one."""
    if (code := check.exit_code(reports)) and not build(study_options.RuleOptions, given).exit_zero:
        raise typer.Exit(code)


@dataclass(frozen=True)
class Plan:
    """What is computed of each file, and what is shown of it."""

    required: check.Requirements
    metrics: Sequence[Metric[Any]]
    without: Sequence[Skipped]  # Metrics that have no weighted form
    slices: check.SlicePlan | None
    strict: bool  # Whether each metric must apply
    curves: frozenset[str]  # Metrics whose curves are drawn
    narrow: bool  # Whether the other columns of one value per row are read
    paged: bool  # Whether the result is the page of the models
    answer: Answer | None  # How the answer is found; None if none is asked for


def _answer(files: Sequence[str], given: dict[str, Any], required: check.Requirements) -> Sequence[Report]:
    """Evaluate each file, or merged states; write the report; and return the reports with the outcomes of rules."""
    if _are_states(files):
        from calcheck.cli.study_commands import model_names
        from calcheck.studies.page.document import IN_BATCHES, ModelReport

        report = required.judge(
            merge_states(files, given, [*CHECKED, *PAGED]), None, inputs_and_outputs.make_run(given), None
        )
        names = build(study_options.PageOptions, given).names or model_names(files, None)
        _deliver([report], given, [ModelReport(" + ".join(names), report, no_map=IN_BATCHES)])
        return [report]
    by = build(study_options.GroupOptions, given).by
    if by and not required.checked:
        from calcheck.cli.study_commands import run_study

        for name in NOT_BY_GROUP:
            if given.get(name):
                raise OptionError(f"{flag_of(name)} does not apply to groups (--by): pass only one of them")
        if len(files) > 1:
            raise OptionError(f"--by compares groups of one FILE, got {len(files)} files")
        run_study(STUDIES["slices"], file=files[0], **given)
        return ()
    build(study_options.RefitOptions, given).require_groups(by)
    inputs_and_outputs.require_shown(given)
    from calcheck.cli.study_commands import model_names

    plan = _plan(given, required)
    names = model_names(files, build(study_options.PageOptions, given).names)
    sources = _open(files, given, plan)
    pointwise = _require_outputs(files, sources, given, required)
    models = [
        _evaluated(name, file, source, given, plan, pointwise)
        for name, file, source in zip(names, files, sources, strict=True)
    ]
    pointwise.write()
    reports = [report for report, _ in models]
    if plot := build(study_options.ShownOptions, given).plot:
        from calcheck.render.pictures import answer_picture, report_picture

        named = build(study_options.MetricSelectionOptions, given).metrics
        picture = None if named else answer_picture(reports[0])
        inputs_and_outputs.draw(picture or report_picture(reports[0]), plot)
    _deliver(reports, given, [model for _, model in models if model is not None])
    return reports


def _plan(given: dict[str, Any], required: check.Requirements) -> Plan:
    """Return what is computed of each file."""
    new = build(study_options.NewInputsOptions, given)
    for text in [rule.text for rule, _ in required.rules if rule.refers_to(ON) and new.on is None]:
        raise OptionError(f"rule {text!r} is about new inputs: also pass --on FILE")
    settings, levels = given["settings"], given[inputs_and_outputs.LEVEL]
    named = build(study_options.MetricSelectionOptions, given).metrics
    brief = build(study_options.ShownOptions, given).brief
    paged = build(study_options.ReportOptions, given).format == PAGE and not brief
    by = build(study_options.GroupOptions, given).by
    slices = required.slices(by, named, settings, levels) if required.checked else None
    slices = slices and slices.weighed(given)
    chosen = required.metrics(() if slices else named, settings, levels)
    strict = not required.take_all(named)
    metrics, without = inputs_and_outputs.weigh(chosen, given, applicable=not strict)
    curves = _curves(metrics if named else None, given, paged=paged)
    narrow = paged or any(given[name] for name in ("pointwise", "worst", "best"))
    answer = None
    if paged or brief or required.are_answered or not required.checked or new.on:
        from calcheck.evaluation import Answer

        stated = build(study_options.AnswerOptions, given)
        weights = build(study_options.WeightOptions, given).weights
        level = levels[0] if levels else None
        by = slices.column if slices and weights is None else None
        groups, optional = stated.groups or by, stated.groups is None
        answer = Answer(stated.tolerance, level, weights, stated.power, groups=groups, optional=optional)
    return Plan(required, metrics, without, slices, strict, curves, narrow, paged, answer)


def _curves(named: Sequence[Metric[Any]] | None, given: dict[str, Any], *, paged: bool) -> frozenset[str]:
    """Return the metrics of which curves are drawn, in a picture or on a page."""
    plotted = bool(build(study_options.ShownOptions, given).plot)
    paged = paged and not build(study_options.WeightOptions, given).weights
    if not plotted and not paged:
        return frozenset()
    from calcheck.studies.page.document import DRAWN

    drawn = DRAWN if named is None else frozenset(metric.info.name for metric in named)
    return (drawn if plotted else frozenset[str]()) | (DRAWN if paged else frozenset[str]())


def _open(files: Sequence[str], given: dict[str, Any], plan: Plan) -> list[FileSource]:
    """Return the source of each file, with the columns that form groups, or those of a search."""
    from calcheck.cli.study_commands import open_models

    inputs = plan.answer is not None
    grouped = plan.answer.along([plan.answer.groups]) if plan.answer is not None and plan.answer.groups else []
    if plan.slices is None:
        return open_models(files, given, [*plan.metrics, *grouped], narrow=plan.narrow, inputs=inputs)
    from calcheck.studies.slices.groups import file_columns

    searched = not plan.slices.cuts
    by = file_columns([cut.text for cut in plan.slices.cuts])
    metrics = [*plan.metrics, *grouped, *plan.slices.metrics]
    return open_models(files, given, metrics, narrow=plan.narrow or searched, by=by, inputs=inputs or searched)


def _require_outputs(
    files: Sequence[str], sources: Sequence[FileSource], given: dict[str, Any], required: check.Requirements
) -> inputs_and_outputs.Pointwise:
    """Return where results of rows go; raise, before computing, if the outputs cannot be written."""
    output, shown = build(study_options.ReportOptions, given), build(study_options.ShownOptions, given)
    if len(files) > 1:
        if output.format != PAGE and FORMATS[output.format].separator is None:
            several = ", ".join(name for name, known in FORMATS.items() if known.separator is not None)
            msg = f"--format {output.format} supports a single file, got {len(files)} files: use one of {several}"
            raise OptionError(msg)
        for name in OF_ONE_FILE:
            if given.get(name):
                msg = f"{flag_of(name)} is for one model: pass one FILE, got {len(files)}"
                if name == "on":
                    msg += f". To compare models there: calcheck compare {shlex.join([*files, '--on', given[name]])}"
                raise OptionError(msg)
    reads = [name for source in sources for name in source.reads()] if sources else files
    outputs = {"output": output.output} | {name: getattr(shown, name) for name in ("pointwise", "plot", "summary")}
    inputs_and_outputs.require_deliverable(outputs, [*reads, *required.base.reads()])
    return inputs_and_outputs.Pointwise(shown.pointwise)


def _evaluated(
    name: str, file: str, source: FileSource, given: dict[str, Any], plan: Plan, pointwise: inputs_and_outputs.Pointwise
) -> tuple[Report, ModelReport | None]:
    """Return the report of a file with the outcomes of rules, and what a page shows of the model."""
    rows = None
    if plan.paged:
        from calcheck.studies.page.document import EvaluatedRows

        rows = EvaluatedRows()

    def evaluated(base: FileSource) -> Report:
        """Return the report of the predictions of a baseline."""
        alone = replace(plan, required=check.Requirements([]), slices=None, curves=frozenset(), paged=False)
        return _evaluated(base.name, base.name, base, given, alone, inputs_and_outputs.Pointwise(None))[0]

    if (
        plan.answer
        and not (plan.paged or plan.required.checked or plan.required.rules)
        and not any(inputs_and_outputs.is_given(given, name) for name in WITH_LEVEL)
        and (counted := question_for_level(source, evaluation_of(source.name, given, ["--level", "LEVEL"])))
    ):
        return counted, None
    reason = (
        ""
        if inputs_and_outputs.streaming_requested(given)
        else inputs_and_outputs.streaming_reason(source, plan.metrics, given) or None
    )
    if reason is None:
        report = _evaluate_in_memory(source, given, plan, rows, pointwise)
    else:
        report = stream_metrics(plan.metrics, file, given, reason, answer=plan.answer)
    report = replace(report, skipped=(*report.skipped, *plan.without))
    if report.conclusion is not None:
        commands = next_commands(report, file, source, given)
        others = tuple(each for each in commands if not (plan.required.checked and each.startswith("calcheck check ")))
        causes = tuple(
            replace(each, command=without_known_names(each.command, given)) for each in report.conclusion.causes
        )
        report = replace(report, conclusion=replace(report.conclusion, next=others, causes=causes))
    with inputs_and_outputs.run_context(given, source) as run:
        if plan.slices is not None:
            report = plan.slices.added(report, source, run)
        report = plan.required.judge(report, source, run, evaluated)
    return report, _model(name, report, source, rows, given) if rows else None


def _evaluate_in_memory(
    source: FileSource,
    given: dict[str, Any],
    plan: Plan,
    rows: EvaluatedRows | None,
    pointwise: inputs_and_outputs.Pointwise,
) -> Report:
    from calcheck.evaluation import PLACE
    from calcheck.outputs import evaluate_outputs

    on = _new_inputs(source, given, rows, pointwise)
    own = inputs_and_outputs.Pointwise(None) if on else pointwise  # with new rows, results are of these

    def sinks(output: str) -> tuple[Any, Any]:
        """Return what takes the results of rows of an output; all together have no name."""
        evaluated = rows and rows.output(output)

        def take(metric: Metric[Any], shown: Predictions, results: RowResults) -> None:
            own.take(metric, shown, results, output)
            if evaluated is not None:
                evaluated.take(metric, shown, results)

        def take_place(shown: Predictions, inside: Mask) -> None:
            own.add(shown, {f"{output}_{PLACE}".lstrip("_"): inside})
            if evaluated is not None:
                evaluated.inside = inside

        return take if own.path or rows else None, take_place if plan.answer else None

    shown = build(study_options.ShownOptions, given)
    with inputs_and_outputs.run_context(given, source) as run:
        if plan.answer and (given["inputs"] or given["embedding"]):
            _tell_averages(source, run, plan.answer)
        report = evaluate_outputs(
            source,
            plan.metrics,
            run=replace(run, curves=bool(plan.curves), curves_of=plan.curves),
            sinks=sinks,
            subsample=build(study_options.RowOptions, given).subsample,
            worst=shown.worst,
            best=shown.best,
            answer=plan.answer,
            on=on,
        )
    if plan.strict:
        inputs_and_outputs.require_nothing_skipped(report, source)
    if not report.results and not report.outputs and not plan.required.checked:
        raise FileError(f"{source.name}: no metric applies. {skip_reasons(report)}")
    return report


def _new_inputs(
    source: FileSource, given: dict[str, Any], rows: EvaluatedRows | None, pointwise: inputs_and_outputs.Pointwise
) -> NewInputsRequest | None:
    """Return the new inputs for which the answer is asked, and what takes their results; None without ``--on``."""
    options = build(study_options.NewInputsOptions, given)
    if options.on is None:
        return None
    inputs_and_outputs.refuse(sorted(options.contradicting), given, "new inputs (--on)", "pass only one of them")
    from calcheck.io.evaluation_points import read_new_rows
    from calcheck.outputs import NewInputsRequest

    def take(shown: Predictions, found: Transferred) -> None:
        pointwise.add(shown, found.columns)
        if rows is not None:
            rows.new = shown, found

    return NewInputsRequest(read_new_rows(options.on, source), options.label, take)


def _tell_averages(source: FileSource, run: Run, answer: Answer) -> None:
    """Write how wrong many rows are on average to standard error: what depends on the inputs takes minutes."""
    from calcheck.evaluation import evaluate

    if source.input_info().n < run.limits.several_rows:
        return
    plain = replace(run.quiet(), replicates=0, resamples=0)
    found = evaluate(source, (), run=plain, answer=replace(answer, local=False, power=False)).conclusion
    effects = () if found is None else found.effects
    if lines := [f"  {each.topic:8}{each.text}\n" for each in effects if each.topic in ("size", "shape", "bias")]:
        sys.stderr.writelines(["on average; the inputs take longer:\n", *lines])


def _model(name: str, report: Report, source: FileSource, rows: EvaluatedRows, given: dict[str, Any]) -> ModelReport:
    """Return what the page shows of a model."""
    from calcheck.studies.page.document import model_report

    options = build(study_options.PageOptions, given)
    with source.error_names():
        inputs, used, by = source.input_names(), source.used_columns(), options.plot_by or ()
        model = model_report(
            name, report, rows, inputs_and_outputs.make_run(given), inputs=inputs, plot_by=by, used=used
        )
    if options.validation is None:
        return model
    from calcheck.render.page import Row, figure
    from calcheck.studies.recalibrate.document import recalibration_picture, recalibration_tables
    from calcheck.studies.recalibrate.options import RecalibrationOptions
    from calcheck.studies.recalibrate.study import judges, recalibrate

    chosen = build(RecalibrationOptions, given)
    narrow = chosen.by is None
    fitted = inputs_and_outputs.open_source(options.validation, given, judges(), narrow=narrow, also=chosen.columns)
    with inputs_and_outputs.run_context(given, fitted) as run:
        corrected, found = recalibrate(fitted, options=chosen, other=replace(source, also=chosen.columns), run=run)
        picture = Row((figure(recalibration_picture(corrected, found)),))
        return replace(model, recalibration=(*recalibration_tables(corrected), picture))


def _deliver(
    reports: Sequence[Report],
    given: dict[str, Any],
    models: Sequence[ModelReport],
    document: Callable[[Report], Document] | None = None,
) -> None:
    """Append the reports to the summary file, and print them, or write them or their page."""
    output = build(study_options.ReportOptions, given)
    brief = build(study_options.ShownOptions, given).brief
    view = inputs_and_outputs.view_of(output, screen=not given["table"])
    named = bool(build(study_options.MetricSelectionOptions, given).metrics)
    screen = partial(screen_document, brief=brief, named=named)

    def text(name: str) -> str:
        between = FORMATS[name].separator or ""
        whole = document or partial(report_document, brief=brief)
        build = screen if document is None and name == "table" and view == "screen" else whole
        return between.join(render(each, name, build, legend=not output.quiet, view=view) for each in reports)

    if summary := build(study_options.ShownOptions, given).summary:
        from calcheck.storage.atomic_write import append_text

        append_text(summary, text("markdown"))
    if output.format != PAGE or not models or brief:
        inputs_and_outputs.deliver_text(text(output.format), output)
        return
    from calcheck.charts.drawing import NO_ENGINE, engine_starts
    from calcheck.render.page import render_page
    from calcheck.studies.page.document import page_of

    if not engine_starts():
        sys.stderr.write(f"calcheck: {NO_ENGINE}; the page is without them\n")
    page = page_of(models, command=shlex.join(["calcheck", *sys.argv[1:]]), legend=not output.quiet)
    inputs_and_outputs.deliver_text(render_page(page), output)


def _declare(metavar: str, text: str, own: Sequence[Group], output: Sequence[Group]) -> list[Parameter]:
    """Return the parameters of one of the commands: its own options and those of all; own ones replace the others."""
    first = parameters_of(own)
    names = {each.name for each in first}
    shared = parameters_of(
        [
            group("Metrics", study_options.MetricSelectionOptions, *BY, *ANSWERS),
            group("Rules", study_options.RuleOptions),
            *(study_options.COLUMNS, study_options.ROWS.keep("subsample"), study_options.WEIGHTS),
            *(study_options.INFERENCE, study_options.DEPENDENCE),
            *output,
            study_options.SHOWN.keep("brief", "pointwise", "worst", "best", "plot"),
            *(group("Streaming", study_options.StateOptions), study_options.SEED, study_options.ENGINE),
        ]
    )
    files = argument("files", metavar, text, list[str])
    return [files, *first, *(each for each in shared if each.name not in names)]


BY = (study_options.GroupOptions, study_options.RefitOptions)
ANSWERS = (study_options.AnswerOptions, study_options.NewInputsOptions)
MERGED_TEXT = "Or states that --save-state wrote, which are merged."
CHECKED = _declare(
    "FILE",
    f"Files of saved predictions; each is checked separately. - reads standard input. {MERGED_TEXT}",
    [group("Rules", study_options.RuleOptions, study_options.RuleMetricOptions, study_options.AgainstOptions, *BY)],
    [group("Output", study_options.GateReportOptions), study_options.SHOWN.keep("table", "summary")],
)
PAGED = _declare(
    "FILE…",
    f"Files of saved predictions, one per model; - reads standard input. {MERGED_TEXT}",
    [group("Page", study_options.PageOptions)],
    [group("Output", study_options.PageReportOptions), study_options.SCREEN],
)
evaluate_command = partial(  # each is made when it is called, which takes 10 ms
    make_command,
    "evaluate",
    _evaluate,
    _declare("FILE", f"{study_options.FILE_TEXT} {MERGED_TEXT}", (), [study_options.REPORT, study_options.SCREEN]),
    example="calcheck evaluate preds.parquet",
)
check_command = partial(
    make_command, "check", _check, CHECKED, example="calcheck check preds.parquet --fail-on 'zms.p_value < 0.05'"
)
report_command = partial(make_command, "report", _report, PAGED, example="calcheck report preds.parquet -o report.html")
