"""What the functions for Python ask of studies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar, cast

from calcheck.api import arguments
from calcheck.api.notebook_report import InteractiveReport, PointwiseResults
from calcheck.charts.picture import Picture
from calcheck.errors import OptionError, message_prefix
from calcheck.evaluation import Answer
from calcheck.execution.run import RowDependence, Run, RunOptions
from calcheck.io import read
from calcheck.io.evaluation_points import read_evaluation_points
from calcheck.io.file_source import FileSource
from calcheck.io.python_arguments import ColumnArguments, levels_of, with_levels
from calcheck.metrics._weights import weighted, weighted_forms
from calcheck.metrics.base import with_level
from calcheck.models.alignment import Model
from calcheck.outputs import NewInputsRequest
from calcheck.predictions import InMemory, Predictions, Source
from calcheck.reports import Report, Skipped
from calcheck.studies import STUDIES, Request, Study
from calcheck.studies import Answer as StudyAnswer
from calcheck.studies.options import AnswerOptions, NewInputsOptions, WeightOptions
from calcheck.typing import AnyArray

if TYPE_CHECKING:
    from calcheck.io.evaluation_points import NewRows
    from calcheck.new_inputs.transfer import Transferred

ReportT = TypeVar("ReportT", bound=InteractiveReport)


class KeywordRequest(Request):
    """What a call of a function asks of a study."""

    def __init__(
        self,
        call: Mapping[str, Any],  # Parameters by name; those of its ``options`` are keywords
        keywords: type[Any],  # The keywords that the function takes
    ) -> None:
        if "models" in call:
            require_models(call["models"])
        self.parameters = {**call, "file": call.get("data")}
        options = with_levels(call["options"])
        arguments.require_known(options, keywords, [name for name in call if name != "options"])
        self._options = {**options, **{name: each for name, each in call.items() if name not in arguments.OBJECTS}}
        self._columns = {name: value for name, value in options.items() if name in ColumnArguments.__annotations__}
        self.rows: list[PointwiseResults] = []
        device = {} if options.get("device") is None else {"device": str(options["device"])}
        settings = arguments.options_from(RunOptions, {**options, **device}).settings()
        self._run = Run(**settings, dependence=arguments.options_from(RowDependence, options))
        times = () if call.get("time") is None else (call["time"],)
        self._dependence = (*self._run.dependence.columns, *times)  # Columns without another role

    def options(self, owner: type[Any]) -> Any:
        return arguments.options_from(owner, self._options)

    def metric(self, named: Any) -> arguments.AnyMetric:
        return arguments.named_metric(named)

    def metrics(self, default: Sequence[Any] | None = None) -> list[arguments.AnyMetric]:
        metrics = self.data("metrics")
        levels = levels_of(self._columns.get("level"))
        return [with_level(each, levels) for each in arguments.selected(default if metrics is None else metrics)]

    def answer(self) -> Answer:
        """Return how the answer is found."""
        levels = levels_of(self._columns.get("level"))
        stated, weights = self.options(AnswerOptions), self.options(WeightOptions).weights
        return Answer(stated.tolerance, levels[0] if levels else None, weights, stated.power, groups=stated.groups)

    def weighted(
        self, metrics: Sequence[arguments.AnyMetric], *, applicable: bool = False, plots: bool = False
    ) -> tuple[list[arguments.AnyMetric], list[Skipped]]:
        weights = self.options(WeightOptions).weights
        if weights is None:
            return list(metrics), []
        stated = {name: value is not None for name, value in vars(self._run.dependence).items()}
        unweighted = {"at": self.data("at") is not None, "pictures": bool(self.data("pictures")) and not plots}
        for name in (name for name, given in {**stated, **unweighted}.items() if given):
            raise OptionError(f"{name} does not apply to weighted means (weights): pass only one of them")
        if applicable and self.data("metrics") is None:
            return weighted_forms(metrics, weights)
        return [weighted(each, weights) for each in metrics], []

    def open(
        self,
        data: Any,
        metrics: Sequence[arguments.AnyMetric] | None,
        *,
        also: Sequence[str] = (),
        by: tuple[str, ...] = (),
        **settings: Any,
    ) -> Source:
        also = (*also, *self._run.dependence.columns)
        source = arguments.open_source(
            data, self._columns, metrics or (), also, dependence=self._dependence, **settings
        )
        source = source if metrics is None else self.one_target(source)
        return replace(source, by=by) if by and isinstance(source, FileSource) else source

    def open_other(
        self, data: Any, first: Source, also: Sequence[str], metrics: Sequence[arguments.AnyMetric] | None = None
    ) -> Source:
        if isinstance(data, Predictions) or (isinstance(data, Source) and not isinstance(data, FileSource)):
            return cast("Source", self.one_target(InMemory(data) if isinstance(data, Predictions) else data))
        if isinstance(data, FileSource) or not isinstance(first, FileSource):
            source = replace(data if isinstance(data, FileSource) else read(data), also=tuple(also))
            return cast("Source", self.one_target(source))
        if isinstance(data, (str, PathLike)):
            return read_evaluation_points(str(data), first, also=tuple(also))
        contents = first.contents if metrics is None else "new"
        return replace(first, file=read(data).file, contents=contents, also=tuple(also))

    def open_inputs(self, data: Any, *sources: Source, narrow: bool = False) -> Source:  # noqa: ARG002 - arrays may be wide
        return arguments.evaluation_points(data, sources[0])

    def open_new(self, data: Any, source: Source) -> NewRows:
        if data is self.parameters.get("data"):
            raise OptionError("on is the data of the tested rows. Pass other rows, e.g. on=frame[frame['age'] > 60]")
        return arguments.new_rows(data, source)

    def new_inputs(self, data: Any, source: Source) -> NewInputsRequest:
        """Return the new inputs for which the answer is asked."""
        given = {"label": self.data("label"), **({} if data is None else {"on": "on"})}
        stated = arguments.options_from(NewInputsOptions, given)
        for name in sorted(stated.contradicting):
            if self._options.get(name) is not None:
                raise OptionError(f"{name} does not apply to new inputs (on): pass only one of them")
        rows = self.open_new(data, source)

        def keep(shown: Predictions, found: Transferred) -> None:
            self.rows.append(PointwiseResults("on", found.columns, shown.row_numbers(), rows.source, found))

        return NewInputsRequest(rows, stated.label, keep)

    def models(self, metrics: Sequence[arguments.AnyMetric], require: Any = None) -> dict[str, list[Model]]:  # noqa: ARG002
        models = self.data("models")
        datasets = models if arguments.are_datasets(models) else {"": models}
        found = {}
        for dataset, given in datasets.items():
            with message_prefix(str(dataset)) if dataset else nullcontext():
                require_models(given)
                also = self._dependence
                found[str(dataset)] = [
                    Model.from_source(
                        str(name), arguments.open_source(each, self._columns, metrics, also, dependence=also)
                    )
                    for name, each in given.items()
                ]
        return found

    def keep(self, name: str, shown: Predictions, columns: dict[str, AnyArray], source: Source) -> None:
        self.rows.append(PointwiseResults(f"{self.target} {name}".strip(), columns, shown.row_numbers(), source))

    @contextmanager
    def run(self, source: Source | None = None) -> Iterator[Run]:
        with source.error_names() if source is not None else nullcontext():
            yield self._run

    def require_results(self, report: Report, *sources: Source, every: bool = False) -> Report:  # noqa: ARG002
        return arguments.require_results(report)


def require_models(models: Any) -> None:
    """Raise unless models have names."""
    if not isinstance(models, Mapping):
        kind = type(models).__name__
        raise OptionError(f'models are a mapping of names to predictions, {{"a": frame, "b": other}}, got {kind}')


def report_of(name: str, call: Mapping[str, Any], keywords: type[Any]) -> InteractiveReport:
    """Return the report of a study, as notebooks show it; see :class:`KeywordRequest`."""
    study, request = STUDIES[name], KeywordRequest(call, keywords)
    return interactive(InteractiveReport, study, study.answer(request), request.rows)


def interactive(
    made: type[ReportT], study: Study, answer: StudyAnswer, rows: Sequence[PointwiseResults] = ()
) -> ReportT:
    """Return the report of a study with its documents and pictures."""
    draw = partial(_pictures, study, answer.extras)
    return made.from_report(answer.report, rows, study.document_of, draw, study.screen_of)


def _pictures(study: Study, extras: Sequence[Any], report: Report) -> Sequence[Picture]:
    return study.pictures_of(report, *extras)
