"""What the functions for Python ask of studies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

from calcheck.api import arguments
from calcheck.api.interactive import InteractiveReport, PointwiseResults
from calcheck.errors import OptionError, message_prefix
from calcheck.execution.run import RowDependence, Run
from calcheck.io.arguments import ColumnArguments, levels_of
from calcheck.io.source import FileSource
from calcheck.metrics._weights import weighted, weighted_forms
from calcheck.metrics.base import with_level
from calcheck.models.comparison import Model
from calcheck.options import Option
from calcheck.predictions import Predictions, Source
from calcheck.report import Report, Skipped
from calcheck.studies import STUDIES
from calcheck.studies.base import Answer
from calcheck.typing import AnyArray


class KeywordRequest:
    """What a call of a function asks of a study."""

    def __init__(
        self,
        data: Mapping[str, Any],  # Predictions, files and metrics, by the names of the study
        given: Mapping[str, Any],  # Options of the study, of the run, and of reading
        keywords: type[Any],  # The keywords of the function that are no parameters of their own
        own: Sequence[str] = (),
    ) -> None:
        self._data, self._given = data, given
        self.rows: list[PointwiseResults] = []
        arguments.require_known({name: value for name, value in given.items() if name not in own}, keywords)
        self._columns = {name: value for name, value in given.items() if name in ColumnArguments.__annotations__}
        stated = {
            name: arguments.checked(arguments.DEPENDENCE[name], value, name)
            for name, value in given.items()
            if name in arguments.DEPENDENCE
        }
        run = arguments.make_run({name: value for name, value in given.items() if name in arguments.RUN})  # type: ignore[arg-type]
        self._run = replace(run, dependence=RowDependence(**stated))

    @property
    def draws(self) -> bool:
        """Whether curves are computed, for pictures."""
        return self._data.get("plot") is not None

    def data(self, name: str) -> Any:
        """Return what was given for a name as it is."""
        return self._data.get(name)

    def options(self, owner: type[Any]) -> Any:
        """Return the given options that a class declares."""
        return arguments.options_from(owner, self._given)

    def metric(self, named: Any) -> arguments.AnyMetric:
        """Return a metric by its name or with options."""
        return arguments.named_metric(named)

    def metrics(self, default: Sequence[Any] | None = None) -> list[arguments.AnyMetric]:
        """Return the given metrics, by default the named ones; or all, if none are named."""
        metrics = self.data("metrics")
        levels = levels_of(self._columns.get("level"))
        return [with_level(each, levels) for each in arguments.selected(default if metrics is None else metrics)]

    def refined(self, metrics: Sequence[arguments.AnyMetric], _: str) -> list[arguments.AnyMetric]:
        """Return metrics as they are: they come with their options."""
        return list(metrics)

    def weighted(
        self,
        metrics: Sequence[arguments.AnyMetric],
        *,
        applicable: bool = False,
        unweighted: Mapping[str, bool] = {},
        **_: Any,
    ) -> tuple[list[arguments.AnyMetric], list[Skipped]]:
        """Return metrics with the given weights, and those without a weighted form, which are skipped if none is named.

        ``unweighted`` are arguments that do not apply to weighted means, and whether they were given.
        """
        weights = arguments.checked(Option("weights", str, None), self._given.get("weights"), "weights")
        if weights is None:
            return list(metrics), []
        stated = {name: getattr(self._run.dependence, name) is not None for name in arguments.DEPENDENCE}
        for name in (name for name, given in {**stated, **unweighted}.items() if given):
            msg = f"{name} does not apply to weighted means (weights): pass only one of them"
            raise OptionError(msg)
        if applicable and self.data("metrics") is None:
            return weighted_forms(metrics, weights)
        return [weighted(each, weights) for each in metrics], []

    def open(
        self,
        data: Any,
        metrics: Sequence[arguments.AnyMetric] | None,
        *,
        also: Sequence[str] = (),
        by: Any = (),
        **settings: Any,
    ) -> Source:
        """Return the source of data, with the columns that metrics need and further ones."""
        named = self._run.dependence.columns
        source = arguments.open_source(
            data, self._columns, metrics or (), (*also, *named), dependence=named, **settings
        )
        return replace(source, by=by) if by and isinstance(source, FileSource) else source

    def open_other(self, data: Any, first: Source, also: Sequence[str], *_: Any) -> Source:
        """Return the source of other data, which are in the columns of the first source."""
        return arguments.new_rows(data, first, tuple(also))

    def open_inputs(self, data: Any, *sources: Source, **_: Any) -> Source:
        """Return the source of evaluation points, in the columns of the first source."""
        return arguments.evaluation_points(data, sources[0])

    def open_samples(self, *data: Any, **_: Any) -> list[Source]:
        """Return the sources of samples, which need no predictions."""
        opened = [self.open(each, None) for each in data]
        return [replace(each, contents="sample") if isinstance(each, FileSource) else each for each in opened]

    def models(self, metrics: Sequence[arguments.AnyMetric], _: Any = None) -> dict[str, list[Model]]:
        """Return the models of each data set by its name; that of a single one is empty."""
        models = self.data("models")
        datasets = models if arguments.are_datasets(models) else {"": models}
        found = {}
        for dataset, each in datasets.items():
            with message_prefix(str(dataset)) if dataset else nullcontext():
                found[str(dataset)] = arguments.named_models(each, metrics, self._columns, self._run.dependence.columns)
        return found

    keeps_rows = True

    def keep(self, name: str, shown: Predictions, columns: dict[str, AnyArray], source: Source) -> None:
        """Keep the results of rows, for frames."""
        self.rows.append(PointwiseResults(name, columns, shown.row_numbers(), source))

    def require_outputs(self, **_: Any) -> None:
        """Do nothing: functions return what they find."""

    @contextmanager
    def run(self, source: Source | None = None) -> Iterator[Run]:
        """Yield the settings of the run."""
        with source.error_names() if source is not None else nullcontext():
            yield self._run

    def refuse(self, *_: Any) -> None:
        """Do nothing: the keywords of a function are those that apply."""

    def refuse_skipped(self, *_: Any) -> None:
        """Do nothing: reports list skipped metrics."""

    def judge(self) -> Callable[[Report], Report]:
        """Return a function that leaves a report as it is: functions take no rules."""
        return lambda report: report

    def with_commands(self, report: Report, _: Any = ()) -> Report:
        """Return a report as it is: it needs no commands."""
        return report

    def tell(self, text: str) -> None:
        """Do nothing: functions return what they find."""

    def require_results(self, report: Report, *_: Source, **__: Any) -> Report:
        """Return a report that has results."""
        return arguments.require_results(report)


def ask(
    name: str, data: Mapping[str, Any], options: Mapping[str, Any], keywords: type[Any], **own: Any
) -> tuple[Answer, KeywordRequest]:
    """Return what a study finds; ``own`` are its options that are parameters of the function."""
    request = KeywordRequest(data, {**options, **own}, keywords, tuple(own))
    return STUDIES[name].answer(request), request


def report_of(
    name: str, data: Mapping[str, Any], options: Mapping[str, Any], keywords: type[Any], **own: Any
) -> InteractiveReport:
    """Return the report of a study, as notebooks show it; see :func:`ask`."""
    study, (found, request) = STUDIES[name], ask(name, data, options, keywords, **own)
    return InteractiveReport.from_report(found.report, request.rows, build=study.document_of, draw=study.pictures_of)
