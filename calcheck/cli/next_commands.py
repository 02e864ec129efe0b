"""The commands that a report suggests to run next."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from calcheck.cli.inputs_and_outputs import INPUTS, row_dependence
from calcheck.errors import DataError
from calcheck.execution.run import RowDependence, SeedOptions
from calcheck.io.column_names import MEANS, OTHER_NAMES, STDS, TARGETS, ColumnOptions
from calcheck.metrics import METRICS
from calcheck.options import Option, options_of

if TYPE_CHECKING:
    from calcheck.io.file_source import FileSource
    from calcheck.reports import Report
    from calcheck.reports.conclusion import Conclusion, Effect, Topic

BY_TOPIC: dict[Topic, tuple[str, ...]] = {
    "size": ("lzms", "stratified-coverage", "coverage"),
    "shape": ("pit", "ece"),
    "ranking": ("confidence-curve", "stratified-coverage"),
    "bias": ("bias",),
}  # The metrics that show more about a fault, by topic; the first that the report has is suggested
OUTPUT = re.compile(
    r"(?i)err|resid|uncert|uct|std|sigma|var|pred|lower|upper|quantile|prob|count|rate|^(lo|hi|q)[\\W_\\d]*$"
)  # Names of columns that are rather outputs of a model than its inputs
HINT = re.compile(r"pass (--(?:target-std|clip|rounded)) ([^\s;]+)")  # How targets were observed, in a notice
OF_ROWS, NOISE = ("shuffled-rows", "training-rows"), "noise-left-out"  # Causes after which a correction is wrong; right
SIGNIFICANT = 0.05  # maximum p-value of an effect that is shown
MOST = 3  # maximum number of commands
LABELS = 50  # number of new rows to suggest for labels
FEWEST_ROWS = 30  # minimum number of rows to suggest a recalibration
OF_CORRECTED = ("inputs", "embedding", "target_std", "clip", "rounded")  # options that corrected files need, too
FEWEST_SEARCHED, MOST_SEARCHED = 100, 38  # minimum number of rows, and maximum number of columns, to suggest a search
MOST_INPUTS = 12  # maximum number of columns to suggest as inputs: with more, the choice is the user's


def next_commands(report: Report, file: str, source: FileSource, given: dict[str, Any]) -> tuple[str, ...]:
    """Return the commands that show more about the effects, as they can be pasted into a shell."""
    if file == "-":
        return ()
    return tuple(
        shlex.join(["calcheck", name, file, *_given_options(name, given, further), *further])
        for name, further in list(_suggestions(report, source))[:MOST]
    )


def without_known_names(command: str, given: dict[str, Any]) -> str:
    """Return a command without the options that were not given and name columns that are found without them."""
    if not command.startswith("calcheck "):
        return command
    words = shlex.split(command)
    known = {"target": TARGETS, "mean": MEANS, "std": STDS, "samples": None, "quantiles": None}
    for name, names in known.items():
        place = words.index(f"--{name}") if f"--{name}" in words and not given.get(name) else 0
        if place and (names is None or words[place + 1] in {*names, *OTHER_NAMES[name]}):
            del words[place : place + 2]
    return shlex.join(words)


def monitor_commands(report: Report, file: str, given: dict[str, Any]) -> tuple[str, ...]:
    """Return the commands that show more about the rows since the beginning of a fault, or about all, and mend them."""
    if file == "-" or report.monitor is None:
        return ()
    time, start = str(report.settings["time"]), report.monitor.fault_start
    since = [] if start is None else ["--filter", f"{time}>={start}"]
    commands = {"evaluate": since} | ({"recalibrate": []} if since and report.input.n >= FEWEST_ROWS else {})
    return tuple(
        shlex.join(["calcheck", name, file, *_given_options(name, given), "--time", time, *further])
        for name, further in commands.items()
    )


def evaluate_commands(file: str, given: dict[str, Any], further: Sequence[str]) -> tuple[str, ...]:
    """Return the command that says whether a model can be trusted, with further options about it."""
    return (shlex.join(["calcheck", "evaluate", file, *_given_options("evaluate", given, further), *further]),)


def recalibrate_commands(report: Report, given: dict[str, Any]) -> tuple[str, ...]:
    """Return the commands that apply a correction, or that evaluate the corrected file."""
    file, corrected, steps = str(given["file"]), given.get("corrected"), report.settings.get("steps", True)
    if corrected:
        if given.get("to") and not any(each.slice.get("rows") == "other rows" for each in report.results):
            return ()  # There are no targets
        return (shlex.join(["calcheck", "evaluate", corrected, *_of_corrected_files(given)]),)
    if file == "-" or not steps or given.get("map") is not None or given.get("to") is not None:
        return ()
    command = ["calcheck", "recalibrate", file, *_given_options("recalibrate", given, also=_of_fits())]
    return (shlex.join([*command, "--to", "NEW", "-o", f"corrected{PurePath(file).suffix or '.csv'}"]),)


def _of_fits() -> list[Option]:
    """Return the options that a correction depends on."""
    from calcheck.studies.recalibrate.options import CorrectionOptions, RecalibrationOptions

    on = [option for option in options_of(CorrectionOptions) if option.field == "on"]
    return [*options_of(RecalibrationOptions), *on, *options_of(SeedOptions)]


def _of_corrected_files(given: dict[str, Any]) -> Iterator[str]:
    """Yield options about inputs, dependent rows and the observation of targets, which a corrected file needs, too."""
    of_columns = [option for option in options_of(ColumnOptions) if option.field in OF_CORRECTED]
    for option in (*of_columns, *options_of(RowDependence)):
        if given.get(option.field) not in (None, (), False, option.default):
            yield from (option.flag, option.text(given[option.field]))


def slice_commands(report: Report, file: str, given: dict[str, Any], columns: Sequence[str]) -> tuple[str, ...]:
    """Return the commands that show more about the first group that fails, and that correct predictions by group."""
    faults = [result for result in report.results if result.verdict == "fail"]
    causes = [each for each in faults if each.slice["filter"] and "explained_by" not in each.slice]
    wrong = [each.text for each in report.conclusion.effects if each.within is False] if report.conclusion else []
    leading = [each for each in causes if any(text.startswith(f"{each.slice['group']} (") for text in wrong)]
    failed = next(iter(leading or causes or faults), None)
    if any(each.slice.get("explained_by") for each in faults):
        named = [each for each in columns if any(str(one.slice["group"]).startswith(each) for one in causes)]
        columns = named or columns
    if file != "-" and columns and (noticed := report.settings.get("dependence_noticed")):
        by, slices = ["--by", ",".join(columns)], ["calcheck", "slices", file]
        remedies = _remedies(noticed, str(given.get("inputs") or ""))
        return tuple(shlex.join([*slices, *_given_options("slices", given, each), *by, *each]) for each in remedies)
    if file == "-" or failed is None:
        return ()
    evaluate = shlex.join(["calcheck", "evaluate", file, *_given_options("evaluate", given)])
    recalibrate = ["calcheck", "recalibrate", file, *_given_options("recalibrate", given)]
    recalibrate += ["--by", ",".join(columns)] if columns else []
    if not failed.slice["filter"] and "score" in failed.slice:  # a region that no filter states
        return (f"{shlex.join(['calcheck', 'slices', file, *_given_options('slices', given)])} --pointwise rows.csv",)
    mends = bool(columns) or "score" in failed.slice  # Regions of a search: the columns that matter are found
    mends &= report.conclusion is None or report.conclusion.answer != "yes"
    return (f"{evaluate} {failed.slice['filter']}".strip(), *([shlex.join(recalibrate)] if mends else []))


def _remedies(noticed: dict[str, Any], inputs: str) -> Iterator[list[str]]:
    """Yield the options that state why rows depend on each other; inputs are those that were named."""
    yield shlex.split(noticed["option"])
    if "alternative" in noticed:
        yield ["--inputs", ",".join(filter(None, (inputs, noticed["column"])))]


def _given_options(
    command: str, given: dict[str, Any], further: Sequence[str] = (), also: Sequence[Option] = ()
) -> Iterator[str]:
    """Yield the given options about columns and dependent rows, and others, of a command, except the further ones."""
    configured = {setting.option.field for setting in given["settings"].used}
    without = () if command not in METRICS or METRICS[command].info.takes_inputs else INPUTS
    dependence = options_of(RowDependence) if row_dependence(given).is_stated and command != "slices" else []
    for option in {each.field: each for each in (*options_of(ColumnOptions), *dependence, *also)}.values():
        value = given.get(option.field)
        if value in (None, (), False, option.default) or option.field in configured or option.field in without:
            continue
        if option.flag in further:
            continue
        for text in value if option.repeated else [value]:
            yield from (option.flag,) if text is True else (option.flag, option.text(text))


def _suggestions(report: Report, source: FileSource) -> Iterator[tuple[str, list[str]]]:
    """Yield names of commands with further options, the most helpful first."""
    conclusion = report.conclusion
    if conclusion is None:
        return
    if noticed := report.settings.get("dependence_noticed"):
        yield from (("evaluate", each) for each in _remedies(noticed, source.options.inputs or ""))
        return
    if report.outputs:
        yield from _output_suggestions(report, source)
        return
    yield from _labels(conclusion, new := _new_inputs(report))
    computed = {result.metric for result in report.results}
    effects = {each.topic: each for each in conclusion.effects if each.kind != "bias"}
    wrong = {each.topic for each in conclusion.effects if each.within is False}
    if "at-level" in conclusion.qualifiers:
        wrong.add("shape")
    faults, inputs_effect = [topic for topic in BY_TOPIC if topic in wrong], effects.get("inputs")
    yield from _observations(conclusion.effects)
    if any(message.code == "unknown-shape" for result in report.results for message in result.warnings):
        yield "evaluate", ["--error-dist", "normal"]
    searched = _is_searchable(report, source)
    if any(_is_shown(each) for each in conclusion.effects if each.topic == "inputs"):
        worst = [("cce", ["--worst", "5"])] if "cce" in computed else []
        yield from [("slices", list[str]())] if searched else worst
    yield from _when(conclusion)
    if inputs_effect is not None and inputs_effect.value is None and not report.input.layout:
        inputs = _inputs(source)
        yield from [("evaluate", inputs)] if inputs else [("slices", list[str]())] if searched else []
    if (faults or "inputs" in wrong) and not _is_undone(conclusion) and _shows_a_scale(report, source):
        yield "recalibrate", []
    known = [name for topic in faults[:1] for name in BY_TOPIC[topic] if name in computed]
    yield from ((name, []) for name in known[:1])
    yield from _time_suggestions(report, source)
    if conclusion.answer == "yes" or (conclusion.answer == "not-shown" and "time" in effects):
        yield ("check", new) if conclusion.answer == "yes" else ("monitor", [])


def _when(conclusion: Conclusion) -> Iterator[tuple[str, list[str]]]:
    """Yield the command that says when errors changed, if a change over time is shown."""
    if any(_is_shown(each) for each in conclusion.effects if each.topic == "time"):
        yield "monitor", []


def _new_inputs(report: Report) -> list[str]:
    """Return the option that names the file with new inputs; nothing without one."""
    return [word for each in report.input.files if each.role == "new_inputs" for word in ("--on", each.path)]


def _labels(conclusion: Conclusion, new: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the command that says which targets would show the answer at new inputs, if it is not shown."""
    on = conclusion.on
    is_open = on is not None and on.answer == "not-shown" and not on.label
    if new and on is not None and is_open and on.effective_rows is not None and on.rows - on.labelled > LABELS:
        yield "evaluate", [*new, "--label", str(LABELS), "--pointwise", "rows.csv"]


def _observations(effects: Sequence[Effect]) -> Iterator[tuple[str, list[str]]]:
    """Yield the command with the options that notices name for how targets were observed."""
    found: dict[str, str] = {}
    for each in effects:
        for flag, value in HINT.findall(each.text) if each.topic == "targets" else ():
            found[flag] = f"{found[flag].strip(',')}{value}" if flag in found else value  # 0, and then ,5
    if found:
        yield "evaluate", [word for each in found.items() for word in each]


def _output_suggestions(report: Report, source: FileSource) -> Iterator[tuple[str, list[str]]]:
    """Yield the commands about several targets: the first that is wrong, the inputs, and the check."""
    outputs = () if report.conclusion is None else report.conclusion.outputs
    yield from (("evaluate", ["--only", each.name]) for each in [each for each in outputs if each.answer == "no"][:1])
    untested = any(each.topic == "inputs" and each.value is None for output in outputs for each in output.effects)
    if any(each.answer == "no" for each in outputs) and report.input.n >= FEWEST_ROWS:
        yield "recalibrate", []
    if untested and not report.input.layout and (inputs := _inputs(source)):
        yield "evaluate", inputs
    if report.conclusion is not None and report.conclusion.answer == "yes":
        yield "check", []


def _time_suggestions(report: Report, source: FileSource) -> Iterator[tuple[str, list[str]]]:
    """Yield the command that follows calibration over time, if there is a column of dates and no other dependence."""
    rows, is_told = source.rows_in_memory(), report.settings.get("dependence") or report.input.layout
    if report.input.n < FEWEST_SEARCHED or is_told or source.states_intervals_only:
        return
    if rows is not None and rows.observation is not None:
        return
    for date in source.without_gaps(source.date_columns()[:1]):
        yield "monitor", ["--time", date]


def _is_searchable(report: Report, source: FileSource) -> bool:
    """Return whether `slices` searches regions: rows are many and independent, and have columns without a role."""
    enough = (
        report.input.n >= FEWEST_SEARCHED and not report.settings.get("dependence") and not source.states_intervals_only
    )
    return enough and 0 < len(source.feature_columns()) <= MOST_SEARCHED


def _shows_a_scale(report: Report, source: FileSource) -> bool:
    """Return whether there are enough rows of one target for a correction, with different errors."""
    if not source.has_one_target or report.input.n < FEWEST_ROWS:
        return False
    from calcheck.recalibration.features import require_different_errors

    rows = source.rows_in_memory()
    try:
        if rows is not None:
            require_different_errors(rows)
    except DataError:
        return False
    return True


def _is_undone(conclusion: Conclusion) -> bool:
    """Return whether the most likely cause is to be undone before predictions are corrected."""
    return any(
        each.cause in OF_ROWS or (each.command and "recalibrate" not in each.command and each.cause != NOISE)
        for each in conclusion.causes[:1]
    )


def _is_shown(effect: Effect) -> bool:
    """Return whether an effect makes the answer no, or limits a yes."""
    return effect.within is False or (effect.p is not None and effect.p <= SIGNIFICANT)


def _inputs(source: FileSource) -> list[str]:
    """Return the option that names the inputs, if the columns without a role are a plausible choice."""
    columns = source.unused_columns()
    numbers, vectors = ([name for name in names if not OUTPUT.search(name)] for names in columns)
    if len(vectors) == 1:
        return ["--embedding", vectors[0]]
    numbers = source.without_gaps(numbers) if len(numbers) <= MOST_INPUTS else []
    return ["--inputs", ",".join(numbers)] if 0 < len(numbers) <= MOST_INPUTS else []
