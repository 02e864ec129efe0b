"""The command of each study, generated from its declaration."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Self

import typer

from calcheck.cli import inputs_and_outputs
from calcheck.cli.app import metric_name
from calcheck.cli.inputs_and_outputs import is_given, refuse
from calcheck.cli.typer_options import Command, build, command_of, parameters_of, parse_given
from calcheck.errors import DataError, FileError, OptionError, with_suggestion
from calcheck.execution.run import RowDependence, Run, SeedOptions
from calcheck.io.column_names import RENAMED, ColumnOptions
from calcheck.metrics import METRICS, TWO_SAMPLE_METRICS
from calcheck.options import Option, flag_of, is_excluded, options_of
from calcheck.studies import STUDIES, Answer, Request, Study
from calcheck.studies.next_steps import FEWEST_ROWS, evaluation_of, given_options, remedies
from calcheck.studies.options import OVERWRITTEN, SCREEN, AnyReportOptions, RuleOptions
from calcheck.typing import AnyArray

if TYPE_CHECKING:
    from calcheck.io.evaluation_points import NewRows
    from calcheck.io.file_source import FileSource
    from calcheck.metrics.base import Metric
    from calcheck.models.alignment import Model
    from calcheck.predictions import Predictions
    from calcheck.reports import Report, Skipped

OPTION_NAME = "[a-z][a-z_-]*"
OF_CORRECTED = ("inputs", "embedding", "target_std", "clip", "rounded")  # Options that corrected files need, too


class CommandRequest(Request):
    """What the command line asks of a study."""

    def __init__(self, study: Study, given: dict[str, Any]) -> None:
        self._study, self.parameters = study, given
        hidden = [name for group in study.groups if group.owners for name in group.omitted]
        self._reading = {**given, **dict.fromkeys(hidden)}
        declared = [option for group in study.groups for owner in group.owners for option in options_of(owner)]
        written = {option.field: given.get(option.field) for option in declared if option.by_hand == OVERWRITTEN}
        self._outputs = {name: path for name, path in written.items() if path and path not in inputs_and_outputs.STDOUT}
        self._opened: list[FileSource] = []
        self._are_checked = False
        self._pointwise = inputs_and_outputs.Pointwise(given.get("pointwise"))

    def of_target(self, name: str, count: int) -> Self:
        own = super().of_target(name, count)
        own.parameters = {**self.parameters, "only": name}
        own._reading = {**self._reading, "only": name}  # noqa: SLF001 - its own
        return own

    def options(self, owner: type[Any]) -> Any:
        return build(owner, self.parameters)

    def metric(self, named: str) -> Metric[Any]:
        """Return a metric with its given options; raise if an option of another metric was given."""
        name = metric_name(named)
        metric = TWO_SAMPLE_METRICS[name] if name in TWO_SAMPLE_METRICS else METRICS.named(name, "--metric: ")
        fields = {option.field for option in options_of(metric)}
        for option in (each for group in self._study.groups if group.metrics for each in parameters_of([group])):
            if option.name not in fields and is_given(self.parameters, option.name):
                msg = f"{name} has no option {flag_of(option.name)}: calcheck {name} --help lists its options"
                raise OptionError(msg)
        own = parse_given(metric, self.parameters)
        return metric(**own) if name in TWO_SAMPLE_METRICS else self._metric(name, own)

    def _metric(self, name: str, own: dict[str, Any]) -> Metric[Any]:
        metric: Metric[Any] = self.parameters["settings"].metric(name, own)
        return metric

    def metrics(self, default: Sequence[Any] | None = None) -> list[Metric[Any]]:
        """Return the metrics of ``--metrics``, else the default ones; or all, if there are none either."""
        named = self.parameters.get("metrics") or default
        if named and not isinstance(named[0], str):
            return list(named)
        levels = self._reading.get(inputs_and_outputs.LEVEL)
        return inputs_and_outputs.select_metrics(named, self.parameters["settings"], levels)

    def refined(self, metrics: Sequence[Metric[Any]], name: str) -> list[Metric[Any]]:
        declared = [each for group in self._study.groups if name in group.metrics for each in parameters_of([group])]
        own = parse_given(METRICS[name], {each.name: self.parameters.get(each.name) for each in declared})
        if own and all(metric.info.name != name for metric in metrics):
            flag = flag_of(next(iter(own)))
            msg = f"{flag} is an option of {name}, which is not among the metrics: add it to --metrics, or omit {flag}"
            raise OptionError(msg)
        return [self._metric(name, own) if own and metric.info.name == name else metric for metric in metrics]

    def weighted(
        self, metrics: Sequence[Metric[Any]], *, applicable: bool = False, plots: bool = False
    ) -> tuple[list[Metric[Any]], list[Skipped]]:
        applicable = applicable and not self.parameters.get("metrics")
        return inputs_and_outputs.weigh(metrics, self.parameters, applicable=applicable, plots=plots)

    def open(
        self,
        data: str,
        metrics: Sequence[Metric[Any]] | None,
        *,
        narrow: bool = False,
        also: Sequence[str] = (),
        **settings: Any,
    ) -> FileSource:
        reading = self._reading_of(data)
        if metrics is None:
            source = inputs_and_outputs.file_source(data, reading, narrow=narrow, also=tuple(also))
        else:
            source = inputs_and_outputs.open_source(data, reading, metrics, narrow=narrow, also=also, **settings)
        known = next((each.file for each in self._opened if each.file.name == source.file.name), source.file)
        source = replace(source, file=known)  # Standard input is read once
        self._opened.append(source)
        return source if metrics is None else self.one_target(source)

    def _reading_of(self, data: str) -> dict[str, Any]:
        """Return how a file is read: the rows of one with new inputs are all used, also where it is corrected."""
        on = self.parameters.get("on")
        is_new = on is not None and os.path.realpath(data) == os.path.realpath(on)
        return self._reading | {"filter": ()} if is_new else self._reading

    def open_other(
        self, data: str, first: Any, also: Sequence[str], metrics: Sequence[Metric[Any]] | None = None
    ) -> FileSource:
        """Return the source of another file: in the columns of the first, or, with metrics, with its own."""
        from calcheck.io.evaluation_points import read_evaluation_points

        if metrics is not None:
            source = inputs_and_outputs.open_source(data, self._reading_of(data), metrics, narrow=False, also=also)
            self._opened.append(self.one_target(replace(source, contents="new")))
            return self._opened[-1]
        source = read_evaluation_points(data, first, also=tuple(also))
        self._opened.append(source)
        return source

    def open_inputs(self, data: str, *sources: FileSource, narrow: bool = False) -> FileSource:
        """Return the source of evaluation points; if they are those of an open file, its source."""
        from calcheck.io.evaluation_points import read_inputs

        for source in sources:
            if os.path.realpath(data) == os.path.realpath(source.file.name):
                return source
        self._opened.append(read_inputs(data, sources[0], narrow=narrow))
        return self._opened[-1]

    def open_new(self, data: str, source: FileSource) -> NewRows:
        from calcheck.io.evaluation_points import read_new_rows

        return read_new_rows(data, source)

    def open_samples(self, *data: str, narrow: bool = False) -> list[FileSource]:
        if data == (inputs_and_outputs.STDIN, inputs_and_outputs.STDIN):
            raise OptionError("only one file can be read from standard input: pass the other by its file name")
        return super().open_samples(*data, narrow=narrow)

    def models(
        self, metrics: Sequence[Metric[Any]], require: Callable[[FileSource], None] | None = None
    ) -> dict[str, list[Model]]:
        """Return the models of each data set: one for each file, which ``require`` checks."""
        from calcheck.models.alignment import Model

        files, names_given = self.parameters["files"], self.parameters.get("names")
        if len(files) == 1 and (found := inputs_and_outputs.file_source(files[0], self._reading).models):
            files, names_given = [f"{files[0]}@model={name}" for name in found], names_given or found
        folders = files_by_folder(files) if self.parameters.get("by_folder") else {"": files}
        names = {folder: model_names(group, names_given) for folder, group in folders.items()}
        sources = {folder: open_models(group, self._reading, metrics) for folder, group in folders.items()}
        for source in chain.from_iterable(sources.values()):
            self._opened.append(source)
            if require is not None:
                require(source)
        return {
            folder: [Model.from_source(*each) for each in zip(names[folder], sources[folder], strict=True)]
            for folder in folders
        }

    @property
    def keeps_rows(self) -> bool:
        return self._pointwise.path is not None

    def keep(self, name: str, shown: Predictions, columns: dict[str, AnyArray], source: Any) -> None:  # noqa: ARG002
        before = f"{self.target}_" if self.target else ""
        self._pointwise.add(shown, {f"{before}{name}": each for name, each in columns.items()})

    def require_outputs(self, *, reads: Sequence[str] = ()) -> None:
        read = [name for source in self._opened for name in source.reads()]
        inputs_and_outputs.require_deliverable(self._outputs, [*read, *reads])
        self._are_checked = True

    @contextmanager
    def run(self, source: FileSource | None = None) -> Iterator[Run]:
        if not self._are_checked:
            self.require_outputs()
        with inputs_and_outputs.run_context(self.parameters, source) as run:
            yield run

    def refuse(self, owners: Sequence[type[Any]], what: str, remedy: str, allowed: Collection[str] = ()) -> None:
        declared = (each for owner in owners for option in options_of(owner) for each in (option, option.off) if each)
        given = {each.field for each in declared if self.parameters.get(each.field) != each.default}
        refuse(given - {*allowed}, self.parameters, what, remedy)

    def require_results(self, report: Report, *sources: FileSource, every: bool = False) -> Report:
        if self.parameters.get("metrics") or every or not report.results:
            inputs_and_outputs.require_nothing_skipped(report, *sources)
        return report

    def finish(self, answer: Answer) -> None:
        """Write what a study found: results of rows, pictures, and the report."""
        if answer.report is None:
            return
        self._pointwise.write()
        if plot := self.parameters.get("plot"):
            for picture in self._study.pictures_of(answer.report, *answer.extras):
                inputs_and_outputs.draw(picture, plot)
        pictures = partial(self._study.pictures_of, answer.report, *answer.extras)
        output = build(AnyReportOptions, self.parameters)
        screens = SCREEN in self._study.groups and not self.parameters["table"]
        screens = screens and output.format == "table" and inputs_and_outputs.is_printed(output)
        document = self._study.screen_of if screens else self._study.document_of
        inputs_and_outputs.deliver(answer.report, output, document, pictures, screen=screens)
        if getattr(answer.report, "gates", ()):
            from calcheck.cli.check import exit_code

            code = exit_code([answer.report])
            if code and not self.parameters["exit_zero"]:
                raise typer.Exit(code)

    def refuse_skipped(self, skipped: Sequence[Skipped], source: FileSource) -> None:
        if self.parameters.get("metrics"):
            inputs_and_outputs.refuse_skipped(skipped, source)

    def judge(self) -> Callable[[Report], Report]:
        from calcheck.cli.check import parse_rules, with_gates

        rules = self.options(RuleOptions)
        return partial(with_gates, rules=parse_rules(rules.fail_on, rules.warn_on))

    def with_commands(self, report: Report, columns: Sequence[str] = ()) -> Report:
        if report.best:
            return replace(report, best=tuple(replace(each, next=self._about(each.model)) for each in report.best))
        if report.conclusion is None:
            return report
        if self._study.name == "recalibrate":
            found = recalibrate_commands(report, self.parameters)
        elif "files" in self.parameters:
            found = monitor_commands(report, self.parameters["files"][-1], self.parameters)
        else:
            found = slice_commands(report, self.parameters["file"], self.parameters, columns)
        return replace(report, conclusion=replace(report.conclusion, next=found))

    def _about(self, model: str) -> tuple[str, ...]:
        """Return the commands about one of the models that are compared; none if its columns are described apart."""
        files, names, on = self.parameters["files"], self.parameters.get("names"), self.parameters.get("on")
        further = ["--on", str(on)] if on else []
        sources = [each.file.name for each in self._opened]
        if self.parameters.get("by_folder") or inputs_and_outputs.STDIN in sources:
            return ()
        if len(files) == 1:
            known = [each.options.model for each in self._opened]
            named = dict(zip(names or known, known, strict=True))
            return (evaluation_of(files[0], self.parameters, ["--model", str(named[model]), *further]),)
        file = dict(zip(model_names(files, names), files, strict=True))[model]
        return (evaluation_of(file, self.parameters, further),) if split_options(file)[0] == file else ()

    def tell(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")


def study_command(study: Study) -> Command:
    """Return the command of a study."""
    return command_of(study, partial(run_study, study))


def run_study(study: Study, **given: Any) -> None:
    """Compute the report of a study, draw its picture if one is asked for, and write the report."""
    for option, variant in study.variants.items():
        if is_given(given, option):
            study, known = STUDIES[variant.study], study
            names = {parameter.name for parameter in parameters_of(study.groups)}
            further = (each.name for each in parameters_of(known.groups) if each.name not in names | {option})
            refuse(further, given, variant.what, "remove one of them")
    request = CommandRequest(study, given)
    request.finish(study.answer(request))


def files_by_folder(files: Sequence[str]) -> dict[str, list[str]]:
    """Return the files in each folder, by its name: DATASET/MODEL."""
    found: dict[str, list[str]] = {}
    for file in files:
        folder = PurePath(split_options(file)[0]).parent
        if not folder.name:
            raise OptionError(f"--by-folder needs files named DATASET/MODEL, got {file}")
        group = found.setdefault(folder.name, [])
        others = {PurePath(split_options(each)[0]).parent for each in group} - {folder}
        if others:
            raise OptionError(f"--by-folder needs folders with different names, got {others.pop()} and {folder}")
        group.append(file)
    return found


def open_models(
    files: Sequence[str], given: dict[str, Any], metrics: Sequence[Metric[Any]], **settings: Any
) -> list[FileSource]:
    """Return the source of each file, with common column options and those after its name: ``a.csv@dist=poisson``."""
    sources = [_open_model(file, given, metrics, {"narrow": False, **settings}) for file in files]
    if len(sources) == 1:
        return sources
    problems: dict[str, str] = {}
    for source in sources:
        names = source.table.schema.names
        try:
            source.roles.explicit(names)
        except DataError as error:
            problems[source.name] = str(error)
    fit = [source for source in sources if source.name not in problems]
    if not problems or not fit or fit[0].options == ColumnOptions():
        return sources
    described, name = fit[0], next(iter(problems))
    converted = PurePath(described.name).stem + "-converted.parquet"
    command = shlex.join(["calcheck", "inspect", described.name, *described.explicit(), "-o", converted])
    raise FileError(
        f"{problems[name]}. The column options describe {described.name}, but not {name}, and apply to all files: run"
        f" {command}, then pass {converted} without these options"
    )


def _open_model(
    file: str, given: dict[str, Any], metrics: Sequence[Metric[Any]], settings: dict[str, Any]
) -> FileSource:
    path, own = split_options(file)
    excluded = {name: None for name in given if is_excluded(name, set(own), options_of(ColumnOptions))}
    return inputs_and_outputs.open_source(path, {**given, **excluded, **own}, metrics, **settings)


def split_options(file: str) -> tuple[str, dict[str, Any]]:
    """Return the path of a file, and the column options after its name: ``a.csv@dist=poisson@param=rate=r``."""
    path, *texts = re.split(rf"@(?={OPTION_NAME}=)", file)
    if not texts or Path(file).exists():
        return file, {}
    known = {option.flag.removeprefix("--"): option for option in options_of(ColumnOptions)}
    own: dict[str, Any] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in known:
            msg = f"{file}: there is no column option --{name}"
            raise OptionError(with_suggestion(msg, name, known))
        option = known[name]
        parsed = (value,) if option.repeated else option.parse(value, f"{file}: {option.flag}")
        own[option.field] = own.get(option.field, ()) + parsed if option.repeated else parsed
    return path, own


def model_names(files: Sequence[str], names: Sequence[str] | None) -> list[str]:
    """Return the names of models: those given, else the shortest part of each path, with options, that is unique."""
    plain = [split_options(file)[0] for file in files]
    if plain.count(inputs_and_outputs.STDIN) > 1:
        raise OptionError("only one file can be read from standard input: pass the others by their file names")
    if names is not None:
        if len(names) != len(files) or len(set(names)) < len(names):
            raise OptionError(f"--names needs {len(files)} different names, one per file, got {','.join(names)!r}")
        return list(names)
    paths = [PurePath("stdin" if file == inputs_and_outputs.STDIN else file) for file in plain]
    depths = range(1, max(len(path.parts) for path in paths) + 1)
    candidates = [
        *(["/".join([*path.parts[-depth:-1], path.stem]) for path in paths] for depth in depths),
        [path.stem + file.removeprefix(name) for path, name, file in zip(paths, plain, files, strict=True)],
        [path.name for path in paths],
    ]
    numbered = [f"{path.stem} ({place})" for place, path in enumerate(paths, start=1)]
    return next((each for each in candidates if len(set(each)) == len(each)), numbered)


def monitor_commands(report: Report, file: str, given: dict[str, Any]) -> tuple[str, ...]:
    """Return the commands that show more about the rows since the beginning of a fault, or about all, and mend them."""
    if file == "-" or report.monitor is None:
        return ()
    time, start = str(report.settings["time"]), report.monitor.fault_start
    since = [] if start is None else ["--filter", f"{time}>={start}"]
    commands = {"evaluate": since} | ({"recalibrate": []} if since and report.input.n >= FEWEST_ROWS else {})
    return tuple(
        shlex.join(["calcheck", name, file, *given_options(name, given), "--time", time, *further])
        for name, further in commands.items()
    )


def recalibrate_commands(report: Report, given: dict[str, Any]) -> tuple[str, ...]:
    """Return the commands that apply a correction, or that evaluate the corrected file."""
    file, corrected, steps = str(given["file"]), given.get("corrected"), report.settings.get("steps", True)
    if corrected:
        if given.get("to") and not any(each.slice.get("rows") == "other rows" for each in report.results):
            return ()  # There are no targets
        return (shlex.join(["calcheck", "evaluate", corrected, *_of_corrected_files(given)]),)
    to = given.get("to")
    if "-" in (file, to) or not steps or given.get("map") is not None:
        return ()
    from calcheck.storage.prediction_files import corrected_name  # help does without NumPy

    command = ["calcheck", "recalibrate", file, *given_options("recalibrate", given, also=_of_fits())]
    return (shlex.join([*command, "--to", to or "NEW", "-o", corrected_name(to or file, file)]),)


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
        return tuple(shlex.join([*slices, *given_options("slices", given, each), *by, *each]) for each in found)
    if file == "-" or failed is None:
        return ()
    evaluate = shlex.join(["calcheck", "evaluate", file, *given_options("evaluate", given)])
    recalibrate = ["calcheck", "recalibrate", file, *given_options("recalibrate", given)]
    recalibrate += ["--by", ",".join(columns)] if columns else []
    if not failed.slice["filter"] and "score" in failed.slice:  # a region that no filter states
        return (f"{shlex.join(['calcheck', 'slices', file, *given_options('slices', given)])} --pointwise rows.csv",)
    mends = bool(columns) or "score" in failed.slice  # Regions of a search: the columns that matter are found
    mends &= report.conclusion is None or report.conclusion.answer != "yes"
    return (f"{evaluate} {failed.slice['filter']}".strip(), *([shlex.join(recalibrate)] if mends else []))
