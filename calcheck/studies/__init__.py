"""What people do with metrics: what a study is and asks of its caller, and the registry of all studies."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, TypeVar

from calcheck.core import Registry
from calcheck.errors import message_prefix
from calcheck.options import Argument, Group
from calcheck.render import PAGE

if TYPE_CHECKING:
    from calcheck.charts.picture import Picture
    from calcheck.execution.run import Run
    from calcheck.io.evaluation_points import NewRows
    from calcheck.metrics.base import Metric
    from calcheck.models.alignment import Model
    from calcheck.predictions import Predictions
    from calcheck.render.document import Document
    from calcheck.reports import Report, Skipped
    from calcheck.typing import AnyArray

OptionsT = TypeVar("OptionsT")
AnySource: TypeAlias = Any  # A source of predictions or None; on the command line, that of a file


class SeveralTargetsError(Exception):
    """Rows have several targets, and what was asked for is about one."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"there are the targets {', '.join(names)}")
        self.names = names


class Request(Protocol):
    """What was asked of a study, on the command line or in Python; by default, there is nothing to check or to tell."""

    parameters: Mapping[str, Any]
    each_target: bool = False  # Whether several targets are studied one at a time
    target: str = ""  # The target that is studied, of `targets`
    targets: int = 1

    def of_target(self, name: str, count: int) -> Self:
        """Return what is asked about one of several targets."""
        own = copy(self)
        own.target, own.targets = name, count
        return own

    def one_target(self, source: AnySource) -> AnySource:
        """Return a source with one target; raise if there are several, and they are studied one at a time."""
        from calcheck.outputs import several_names

        names = several_names(source) if self.each_target else ()
        if names and not self.target:
            raise SeveralTargetsError(names)
        return source.of_target(names.index(self.target)) if names else source

    def data(self, name: str) -> Any:
        """Return what was given for a name as it is: files, predictions, or metrics; None if nothing was given."""
        return self.parameters.get(name)

    @property
    def draws(self) -> bool:
        """Whether curves are computed, for a picture or a page."""
        return bool(self.data("plot")) or self.data("format") == PAGE

    def options(self, owner: type[OptionsT]) -> OptionsT:
        """Return the given options that a class declares."""

    def metric(self, named: Any) -> Metric[Any]:
        """Return a metric with its given options."""

    def metrics(self, default: Sequence[Any] | None = None) -> list[Metric[Any]]:
        """Return the given metrics, else the default ones; or all, if there are none either."""

    def refined(self, metrics: Sequence[Metric[Any]], name: str) -> list[Metric[Any]]:
        """Return metrics, of which the named one has its given options."""
        del name
        return list(metrics)

    def weighted(
        self, metrics: Sequence[Metric[Any]], *, applicable: bool = False, plots: bool = False
    ) -> tuple[list[Metric[Any]], list[Skipped]]:
        """Return metrics with the given weights, and, if ``applicable``, those without a weighted form."""

    def open(
        self,
        data: Any,
        metrics: Sequence[Metric[Any]] | None,
        *,
        narrow: bool = False,
        also: Sequence[str] = (),
        inputs: bool = False,
        by: tuple[str, ...] = (),
    ) -> AnySource:
        """Return the source of data, with the columns that metrics need (all for None) and further ones."""

    def open_other(
        self, data: Any, first: AnySource, also: Sequence[str], metrics: Sequence[Metric[Any]] | None = None
    ) -> AnySource:
        """Return the source of other rows, in the columns of the first; of a file, whose targets may be absent."""

    def open_inputs(self, data: Any, *sources: AnySource, narrow: bool = False) -> AnySource:
        """Return the source of evaluation points, in the columns of the first source."""

    def open_new(self, data: Any, source: AnySource) -> NewRows:
        """Return new rows with the inputs of a source."""

    def open_samples(self, *data: Any, narrow: bool = False) -> list[AnySource]:
        """Return the sources of samples, which need no predictions."""
        opened = [self.open(each, None, narrow=narrow) for each in data]
        return [replace(each, contents="sample") if hasattr(each, "contents") else each for each in opened]

    def models(
        self, metrics: Sequence[Metric[Any]], require: Callable[[AnySource], None] | None = None
    ) -> dict[str, list[Model]]:
        """Return the models of each data set by its name, which is empty for a single one; ``require`` checks files."""

    @property
    def keeps_rows(self) -> bool:
        """Whether the results of rows are kept."""
        return True

    def keep(self, name: str, shown: Predictions, columns: dict[str, AnyArray], source: AnySource) -> None:
        """Keep the results of rows: those of a metric, or of the study."""

    def require_outputs(self, *, reads: Sequence[str] = ()) -> None:
        """Raise if an output cannot be written, or would replace what is read: opened files, and further ones."""
        del reads

    def run(self, source: AnySource = None) -> AbstractContextManager[Run]:
        """Return the context of a computation, which may be about a source; outputs are checked before it."""

    def refuse(self, owners: Sequence[type[Any]], what: str, remedy: str, allowed: Collection[str] = ()) -> None:
        """Raise if an option was given that a class declares, and that does not apply to what is computed."""
        del owners, what, remedy, allowed

    def require_results(self, report: Report, *sources: AnySource, every: bool = False) -> Report:
        """Return a report; raise if it has no results, or a metric was skipped that was given, or any of ``every``."""

    def refuse_skipped(self, skipped: Sequence[Skipped], source: AnySource) -> None:
        """Raise if a metric was skipped that was given."""
        del skipped, source

    def judge(self) -> Callable[[Report], Report]:
        """Return a function that judges a report by the given rules, which are read at once."""
        return lambda report: report

    def with_commands(self, report: Report, columns: Sequence[str] = ()) -> Report:
        """Return a report with the commands to run next, of which some name the columns of groups."""
        del columns
        return report

    def tell(self, text: str) -> None:
        """Write a line to the user, beside the report."""
        del text


@dataclass(frozen=True)
class Answer:
    """What a study found: its report, and what its picture needs besides."""

    report: Any  # None if there is nothing to report
    extras: tuple[Any, ...] = ()
    source: AnySource = None


@dataclass(frozen=True)
class Variant:
    """Another study, in place of the one that was asked for."""

    study: str
    what: str  # What it computes, for messages about options that it does not have


@dataclass(frozen=True)
class Study:
    """The declaration of a study: its command, its function for Python and its settings follow from it."""

    name: str
    help: str  # What it does: one sentence, and further paragraphs
    # Function of a request, which returns a report or an answer: `study.run` is `run` in `study.py` of the folder
    run: str
    groups: tuple[Group, ...]  # Options, in the order of the help
    example: str
    screen: str = ""  # Function that yields the blocks of the first screen; by default those of the document
    document: str = ""  # Function that yields the blocks of the document of a report; by default a table of results
    # Function that returns the picture of a report, or None if it has none; by default one of each metric
    picture: str = ""
    arguments: tuple[Argument, ...] = ()
    each_target: bool = False  # Whether several targets are studied one at a time
    together: str = (
        ""  # Function of a request, the answers about each target, and all of them, which adds what they share
    )
    # By option: the study that takes place if it is given
    variants: Mapping[str, Variant] = field(default_factory=dict)

    def function(self, path: str) -> Callable[..., Any]:
        """Return a function of the study's folder, which is imported."""
        module, _, name = path.partition(".")
        folder = import_module(f"calcheck.studies.{STUDIES.modules[self.name]}.{module}")
        found: Callable[..., Any] = getattr(folder, name)
        return found

    def answer(self, request: Request) -> Answer:
        """Return what the study finds, about each of several targets."""
        request.each_target = self.each_target
        try:
            return self._found(request)
        except SeveralTargetsError as several:
            names = several.names
        from calcheck.outputs import joined_reports

        parts = {}
        for name in names:
            with message_prefix(name):
                parts[name] = self._found(request.of_target(name, len(names)))
        reports = {name: each.report for name, each in parts.items() if each.report is not None}
        found = Answer(joined_reports(reports) if reports else None)
        return self.function(self.together)(request, parts, found) if self.together else found

    def _found(self, request: Request) -> Answer:
        found = self.function(self.run)(request)
        return found if isinstance(found, Answer) else Answer(found)

    def screen_of(self, report: Report) -> Document:
        """Return the document of which the first screen is made."""
        from calcheck.render.document import screen_of_targets

        own = replace(self, document=self.screen or self.document)
        if not report.targets:
            return own.document_of(report)
        return screen_of_targets(report, {name: own.document_of(each) for name, each in report.targets.items()})

    def document_of(self, report: Report) -> Document:
        """Return the document of a report of this study."""
        from calcheck.render.document import Document, document_of_targets, report_document
        from calcheck.render.numbers_and_notes import headline

        if targets := getattr(report, "targets", None):
            return document_of_targets(report, {name: self.document_of(each) for name, each in targets.items()})
        if not self.document:
            return report_document(report)
        title = f"calcheck: {headline(report)}" if getattr(report, "gates", ()) else ""
        return Document(tuple(self.function(self.document)(report)), report.calcheck, title)

    def pictures_of(self, report: Report, *found: Any) -> Sequence[Picture]:
        """Return the pictures of a report of this study."""
        from calcheck.render.pictures import joined_pictures, metric_pictures
        from calcheck.reports import Report

        if targets := getattr(report, "targets", None):
            parts = {
                name: self.pictures_of(own, *(each.targets[name] for each in found)) for name, own in targets.items()
            }
            return joined_pictures(parts)
        if self.picture:
            drawn = self.function(self.picture)(report, *found)
            return () if drawn is None else (drawn,)
        return metric_pictures(report) if isinstance(report, Report) else ()


STUDIES: Registry[Study] = Registry(
    {
        "compare": "compare",
        "slices": "slices",
        "monitor": "monitor",
        "recalibrate": "recalibrate",
        "reject": "reject",
        "sweep": "sweep",
        "validity": "validity",
        "diff": "compare",
        **dict.fromkeys(("mcmd", "mmd"), "two_samples"),
        "prune": "reject",
        "trend": "compare",
    },
    "calcheck.studies.{}.options",
    str.upper,
)  # The studies in the order of the help: ``reject`` is ``REJECT`` in `options.py` of its folder
