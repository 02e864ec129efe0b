"""The commands that a report suggests to run next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from calcheck.cli.inputs_and_outputs import INPUTS, row_dependence
from calcheck.execution.run import RowDependence, SeedOptions
from calcheck.io.column_names import MEANS, OTHER_NAMES, RENAMED, STDS, TARGETS, ColumnOptions
from calcheck.metrics import METRICS
from calcheck.options import Option, options_of
from calcheck.studies.next_steps import FEWEST_ROWS, MOST, remedies, suggestions

if TYPE_CHECKING:
    from calcheck.io.file_source import FileSource
    from calcheck.reports import Report

OF_CORRECTED = ("inputs", "embedding", "target_std", "clip", "rounded")  # Options that corrected files need, too


def next_commands(report: Report, file: str, source: FileSource, given: dict[str, Any]) -> tuple[str, ...]:
    """Return the commands that show more about the effects, as they can be pasted into a shell."""
    if file == "-":
        return ()
    return tuple(
        shlex.join(["calcheck", name, file, *_given_options(name, given, further), *further])
        for name, further in list(suggestions(report, source))[:MOST]
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


def evaluation_of(file: str, given: dict[str, Any], further: Sequence[str]) -> str:
    """Return the command that says whether a model can be trusted, with further options about it."""
    return shlex.join(["calcheck", "evaluate", file, *_given_options("evaluate", given, further), *further])


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
    """Yield options about inputs, dependent rows and the observation of targets, which a corrected file needs, too.

    Columns that have another name there, since theirs is that of a parameter of its distributions, are named so.
    """
    from calcheck.io.files import File
    from calcheck.io.tables import open_file

    path = str(given["corrected"])
    written = {*open_file(File(path)).schema.names} if Path(path).exists() else set()
    of_columns = [option for option in options_of(ColumnOptions) if option.field in OF_CORRECTED]
    for option in (*of_columns, *options_of(RowDependence)):
        if given.get(option.field) not in (None, (), False, option.default):
            text = option.text(given[option.field])
            named = [f"{name}{RENAMED}" if f"{name}{RENAMED}" in written else name for name in text.split(",")]
            yield from (option.flag, ",".join(named) if {*named} <= written else text)


def slice_commands(report: Report, file: str, given: dict[str, Any], columns: Sequence[str]) -> tuple[str, ...]:
    """Return the commands that show more about the first group that fails, and that correct predictions by group."""
    from calcheck.studies.slices.document import ranked_groups

    ranked = [each for _, own in ranked_groups(report) for each in own.values() if each.verdict == "fail"]
    faults = ranked or [result for result in report.results if result.verdict == "fail"]
    causes = [each for each in faults if each.slice["filter"] and "explained_by" not in each.slice]
    failed = next(iter(causes or faults), None)
    if any(each.slice.get("explained_by") for each in faults):
        named = [each for each in columns if any(str(one.slice["group"]).startswith(each) for one in causes)]
        columns = named or columns
    if file != "-" and columns and (noticed := report.settings.get("dependence_noticed")):
        by, slices = ["--by", ",".join(columns)], ["calcheck", "slices", file]
        found = remedies(noticed, str(given.get("inputs") or ""))
        return tuple(shlex.join([*slices, *_given_options("slices", given, each), *by, *each]) for each in found)
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
