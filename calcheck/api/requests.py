"""What the functions for Python ask of studies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calcheck.api.arguments import (
    DEPENDENCE,
    RUN,
    AnyMetric,
    checked,
    make_run,
    named_metric,
    new_rows,
    open_source,
    options_from,
    require_known,
    require_results,
    selected,
)
from calcheck.api.interactive import InteractiveReport, PointwiseResults
from calcheck.execution.run import RowDependence, Run
from calcheck.io.arguments import ColumnArguments, levels_of
from calcheck.metrics.base import with_level
from calcheck.studies import STUDIES

if TYPE_CHECKING:
    from calcheck.predictions import Source
    from calcheck.report import Report
    from calcheck.studies.base import Answer


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
        require_known({name: value for name, value in given.items() if name not in own}, keywords)
        self._columns = {name: value for name, value in given.items() if name in ColumnArguments.__annotations__}
        stated = {name: checked(DEPENDENCE[name], value, name) for name, value in given.items() if name in DEPENDENCE}
        run = make_run({name: value for name, value in given.items() if name in RUN})  # type: ignore[arg-type]
        self._run = replace(run, dependence=RowDependence(**stated))

    def data(self, name: str) -> Any:
        """Return what was given for a name as it is."""
        return self._data.get(name)

    def options(self, owner: type[Any]) -> Any:
        """Return the given options that a class declares."""
        return options_from(owner, self._given)

    def metric(self, named: Any) -> AnyMetric:
        """Return a metric by its name or with options."""
        return named_metric(named)

    def metrics(self, default: Sequence[Any] | None = None) -> list[AnyMetric]:
        """Return the given metrics, by default the named ones; or all, if none are named."""
        metrics = self.data("metrics")
        levels = levels_of(self._columns.get("level"))
        return [with_level(each, levels) for each in selected(default if metrics is None else metrics)]

    def open(
        self, data: Any, metrics: Sequence[AnyMetric] | None, *, narrow: bool = False, also: Sequence[str] = ()
    ) -> Source:
        """Return the source of data, with the columns that metrics need and further ones."""
        named = self._run.dependence.columns
        return open_source(data, self._columns, metrics or (), (*also, *named), dependence=named, narrow=narrow)

    def open_other(self, data: Any, first: Source, also: Sequence[str], *_: Any) -> Source:
        """Return the source of other data, which are in the columns of the first source."""
        return new_rows(data, first, tuple(also))

    def require_outputs(self, *_: Any, **__: Any) -> None:
        """Do nothing: functions return what they find."""

    @contextmanager
    def run(self, *sources: Source | None) -> Iterator[Run]:
        """Yield the settings of the run."""
        source = sources[0] if sources else None
        with source.error_names() if source is not None else nullcontext():
            yield self._run

    def refuse(self, *_: Any) -> None:
        """Do nothing: the keywords of a function are those that apply."""

    def tell(self, text: str) -> None:
        """Do nothing: functions return what they find."""

    def require_results(self, report: Report, *_: Source, **__: Any) -> Report:
        """Return a report that has results."""
        return require_results(report)


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
    return InteractiveReport.from_report(
        found.report, request.rows, build=study.document_of, draw=lambda report: [study.picture_of(report)]
    )
