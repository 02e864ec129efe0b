"""The command of each study, generated from its declaration."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calcheck.cli.common import (
    LEVEL,
    STDOUT,
    Pointwise,
    deliver,
    draw,
    file_source,
    open_source,
    require_nothing_skipped,
    run_context,
    select_metrics,
)
from calcheck.cli.typer_bridge import Command, argument, build, make_command, parameters_of, parse_given
from calcheck.errors import OptionError
from calcheck.metrics import METRICS
from calcheck.options import flag_of, options_of
from calcheck.studies import STUDIES
from calcheck.studies.options import OVERWRITTEN, AnyReportOptions

if TYPE_CHECKING:
    from calcheck.execution.run import Run
    from calcheck.io.source import FileSource
    from calcheck.metrics.base import Metric
    from calcheck.report import Report
    from calcheck.studies.base import Study


class CommandRequest:
    """What the command line asks of a study."""

    def __init__(self, study: Study, given: dict[str, Any]) -> None:
        self.given = given
        hidden = [name for group in study.groups if group.owners for name in group.omitted]
        self._reading = {**given, **dict.fromkeys(hidden)}
        declared = [option for group in study.groups for owner in group.owners for option in options_of(owner)]
        written = {option.field: given.get(option.field) for option in declared if option.by_hand == OVERWRITTEN}
        self._outputs = {name: path for name, path in written.items() if path and path not in STDOUT}
        self._are_checked = False
        self.pointwise = Pointwise(given.get("pointwise"))

    def data(self, name: str) -> Any:
        """Return a given file, or the files."""
        return self.given.get(name)

    def options(self, owner: type[Any]) -> Any:
        """Return the given options that a class declares."""
        return build(owner, self.given)

    def metric(self, named: str) -> Metric[Any]:
        """Return a metric with its given options."""
        metric: Metric[Any] = self.given["settings"].metric(named, parse_given(METRICS[named], self.given))
        return metric

    def metrics(self, default: Sequence[Any] | None = None) -> list[Metric[Any]]:
        """Return the metrics of ``--metrics``, else the default ones; or all, if there are none either."""
        named = self.given.get("metrics") or default
        if named and not isinstance(named[0], str):
            return list(named)
        return select_metrics(named, self.given["settings"], self._reading.get(LEVEL))

    def open(
        self, data: str, metrics: Sequence[Metric[Any]] | None, *, narrow: bool = False, also: Sequence[str] = ()
    ) -> FileSource:
        """Return the source of a file, with the columns that metrics need (all for None) and further ones."""
        if metrics is None:
            return file_source(data, self._reading, narrow=narrow, also=tuple(also))
        return open_source(data, self._reading, metrics, narrow=narrow, also=also)

    def open_other(
        self, data: str, first: Any, also: Sequence[str], metrics: Sequence[Metric[Any]] | None = None
    ) -> FileSource:
        """Return the source of another file: in the columns of the first, or, with metrics, with its own."""
        from calcheck.io.source import read_evaluation_points

        if metrics is None:
            return read_evaluation_points(data, first, also=tuple(also))
        return replace(self.open(data, metrics, also=also), contents="any")

    def require_outputs(self, *sources: FileSource | None, reads: Sequence[str] = ()) -> None:
        """Raise if an output cannot be written, or would replace what is read."""
        from calcheck.charts.drawing import require_image
        from calcheck.storage.atomic_write import require_suffix, require_writable

        if "pointwise" in self._outputs:
            require_suffix(self._outputs["pointwise"])
        if "plot" in self._outputs:
            require_image(self._outputs["plot"])
        read = [name for source in sources if source for name in source.reads()]
        require_writable(list(self._outputs.values()), [*read, *reads])
        self._are_checked = True

    @contextmanager
    def run(self, *sources: FileSource | None) -> Iterator[Run]:
        """Yield the settings of the run; raise before it if an output cannot be written."""
        if not self._are_checked:
            self.require_outputs(*sources)
        with run_context(self.given, sources[0] if sources else None) as run:
            yield run

    def refuse(self, owners: Sequence[type[Any]], what: str, remedy: str) -> None:
        """Raise if an option was given that a class declares, and that does not apply to what is computed."""
        declared = (each for owner in owners for option in options_of(owner) for each in (option, option.off) if each)
        refuse((option.field for option in declared), self.given, what, remedy)

    def require_results(self, report: Report, *sources: FileSource, every: bool = False) -> Report:
        """Return a report; raise if a metric was skipped that was given, or any of ``every``; or all were."""
        if self.given.get("metrics") or every or not report.results:
            require_nothing_skipped(report, *sources)
        return report

    def tell(self, text: str) -> None:
        """Write a line to standard error."""
        sys.stderr.write(f"{text}\n")


def study_command(study: Study) -> Command:
    """Return the command of a study."""
    arguments = [
        argument(each.name, each.metavar, each.text, *([each.hint | None, None] if each.optional else [each.hint]))
        for each in study.arguments
    ]

    def command(**given: Any) -> None:
        run_study(study, given)

    command.__doc__ = study.help
    return make_command(study.name, command, [*arguments, *parameters_of(study.groups)], example=study.example)


def run_study(study: Study, given: dict[str, Any]) -> None:
    """Compute the report of a study, draw its picture if one is asked for, and write the report."""
    for option, variant in study.variants.items():
        if is_given(given, option):
            study, known = STUDIES[variant.study], study
            names = {parameter.name for parameter in parameters_of(study.groups)}
            further = (each.name for each in parameters_of(known.groups) if each.name not in names | {option})
            refuse(further, given, variant.what, "remove one of them")
    request = CommandRequest(study, given)
    answer = study.answer(request)
    if answer.report is None:
        return
    if plot := given.get("plot"):
        draw(study.picture_of(answer.report, *answer.found), plot)
    deliver(answer.report, build(AnyReportOptions, given), study.document_of)


def is_given(given: dict[str, Any], name: str) -> bool:
    """Return whether an option was given."""
    return given.get(name) not in (None, False, ())


def refuse(names: Iterable[str], given: dict[str, Any], what: str, remedy: str) -> None:
    """Raise if an option was given that does not apply to what the command does."""
    for name in names:
        if is_given(given, name):
            msg = f"{flag_of(name)} does not apply to {what}: {remedy}"
            raise OptionError(msg)
