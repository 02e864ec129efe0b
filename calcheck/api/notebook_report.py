"""Reports as Python functions return them: with pandas frames, results of rows, and HTML in notebooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import zip_longest
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from calcheck.charts import drawing
from calcheck.charts.drawing import vega_lite
from calcheck.charts.picture import Picture
from calcheck.errors import OptionError, keyword_messages, with_keywords
from calcheck.execution.run import Run
from calcheck.inference.metric_protocol import RowResults
from calcheck.io.dataframes import TableInMemory
from calcheck.io.file_source import FileSource
from calcheck.metrics import canonical_name
from calcheck.predictions import Predictions, Source, with_input_columns
from calcheck.render import FORMATS, PAGE, formats_of, page, terminal
from calcheck.render import render as render_as
from calcheck.render.data import NUMBERS, metric_lines
from calcheck.render.document import Document, report_document
from calcheck.render.page import escape, render, render_fragment
from calcheck.render.pictures import answer_picture, metric_picture, metric_pictures
from calcheck.render.screen import screen_document
from calcheck.reports import Report, Result
from calcheck.storage.atomic_write import write_bytes, write_text
from calcheck.studies.page.document import EvaluatedRows, ModelReport, model_report, page_of
from calcheck.typing import AnyArray, Indices

if TYPE_CHECKING:
    import pandas as pd

    from calcheck.new_inputs.transfer import Transferred

DTYPES = {"string": "string", "empty": "string", "integer": "Int64", "boolean": "boolean", "floating": "float64"}
"""The dtype of a column of objects, by what pandas infers."""


@dataclass(frozen=True, eq=False)
class PointwiseResults:
    """The results of one metric for each row."""

    metric: str
    columns: dict[str, AnyArray]  # Results by name, (n,) each; empty if the metric has no value per row
    numbers: Indices  # Row numbers in the input, (n,)
    source: Source  # The source that holds the rows
    transfer: Transferred | None = None  # What is known about new inputs, if these are the rows

    def to_frame(self) -> pd.DataFrame:
        """Return the keys of the rows, their results, and the other columns of the input."""
        import pandas as pd

        columns = with_input_columns(self.columns, self.rows())
        frame = pd.DataFrame({name: _typed(pd.Series(values)) for name, values in columns.items()})
        index: pd.Index[Any] = pd.Index(self.numbers, name="row")
        if isinstance(self.source, FileSource):
            zones = {field.name: getattr(field.type, "tz", None) for field in self.source.table.schema}
            for name in frame.columns.intersection([name for name, zone in zones.items() if zone is not None]):
                frame[name] = frame[name].dt.tz_localize("UTC").dt.tz_convert(zones[name])  # arrays hold times in UTC
            if isinstance(self.source.file, TableInMemory) and self.source.file.index is not None:
                index = self.source.file.index.take(self.numbers)
        return frame.set_axis(index, axis=0).drop(columns=[name for name in index.names if name in frame])

    def rows(self) -> Predictions:
        """Return the rows, with all columns of one value per row."""
        source = self.source
        source = replace(source, narrow=True) if isinstance(source, FileSource) and not source.narrow else source
        rows = source.predictions()
        known = rows.row_numbers()
        order = np.argsort(known, kind="stable")
        return rows.take(order[np.searchsorted(known[order], self.numbers)])


@dataclass(frozen=True)
class InteractivePicture:
    """A picture that notebooks show."""

    picture: Picture = field(repr=False)

    def save(self, path: str | PathLike[str]) -> None:
        """Draw the picture to a .svg, .png or .pdf file."""
        name = fspath(path)
        drawing.require_image(name)
        write_bytes(name, drawing.draw(self.picture, name))

    savefig = save  # as of figures of matplotlib

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:  # noqa: ARG002 - of notebooks
        """Return the picture as SVG, and as a specification that notebooks may draw themselves."""
        specification = vega_lite(self.picture)
        return {"image/svg+xml": drawing.svg(self.picture), "application/vnd.vegalite.v6+json": specification}


class InteractiveReport(Report):
    """A report that converts to pandas frames, and that notebooks show as a table above its pictures."""

    _pointwise: ClassVar[Sequence[PointwiseResults]] = ()

    @classmethod
    def from_report(
        cls,
        report: Report,
        pointwise: Sequence[PointwiseResults] = (),
        build: Callable[[Report], Document] = report_document,
        draw: Callable[[Report], Sequence[Picture]] = metric_pictures,
        screen: Callable[[Report], Document] = screen_document,
        again: Callable[[str], Report] | None = None,  # Evaluates a metric with its curves
    ) -> Self:
        """Return a report with results of rows, and functions that make its document, screen and pictures."""
        own = cls(**{field.name: getattr(report, field.name) for field in fields(report)})
        parts = {"pointwise": tuple(pointwise), "build": build, "draw": draw, "screen": screen, "again": again}
        for name, part in parts.items():
            object.__setattr__(own, f"_{name}", part)
        return own

    def to_frame(self) -> pd.DataFrame:
        """Return the results as a frame with one row per result.

        Returns
        -------
        DataFrame
            Columns ``metric``, ``unit``, ``value``, ``low`` and ``high`` (the interval), ``reference`` (the score of a
            perfect model, between ``reference_low`` and ``reference_high``), ``zeta``, ``p_value``, ``interval`` (the
            method), ``verdict`` and ``notes``. Numbers are float64, NaN where absent; text is string, NA where absent.
            Studies have the columns of ``slice`` too (``model``, ``by``, ``rejected``, …), and ``rank``, ``tau``,
            ``deviation`` and ``change`` where they compute them. ``options`` tells results of the same metric apart.
            Skipped metrics have the verdict ``skipped``, and the reason in ``notes``.

        Examples
        --------
        >>> import calcheck
        >>> report = calcheck.evaluate(y=[0.1, -1.2, 0.4], mean=[0, 0, 0], std=[1, 1, 1], metrics=["zms", "crps"])
        >>> report.to_frame().set_index("metric")["value"].round(3)
        metric
        zms     0.537
        crps    0.427
        Name: value, dtype: float64
        """
        import pandas as pd

        texts, lines = _distinguishing_options(self.results), list(metric_lines(self))
        if any(texts):
            lines = [{"metric": line["metric"], "options": text, **line} for line, text in zip_longest(lines, texts)]
        frame = pd.DataFrame(lines, dtype=object)
        varied = {name: frame[name] for name in self.settings.get("vary", ())}
        converted = {name: pd.to_numeric(texts, errors="coerce") for name, texts in varied.items()}
        numbers = {*NUMBERS, *(name for name in varied if converted[name].notna().equals(varied[name].notna()))}
        return pd.DataFrame({name: _typed(values, is_number=name in numbers) for name, values in frame.items()})

    def rows(self, metric: str) -> pd.DataFrame:
        """Return the results of a metric for each row, beside the columns of the input.

        Parameters
        ----------
        metric : str
            Name or alias of the metric.

        Returns
        -------
        DataFrame
            One row per prediction: the row keys, the results of the metric, and the other columns of the input with one
            value per row. A column of the input whose name is in use gets the suffix ``_given``. The index is that of
            the DataFrame that was evaluated; for files and arrays it is the row number, counted from 0.

        Raises
        ------
        OptionError
            The report has no such metric or several of them, the metric was skipped or has no value per row, or the
            report was made with ``pointwise=False``.

        Examples
        --------
        >>> import calcheck
        >>> report = calcheck.evaluate("examples/diabetes.parquet", "crps")
        >>> print(report.rows("crps")[["id", "crps", "y", "mean", "std"]].round(3).head(2).to_string(index=False))
         id   crps     y    mean    std
          0 32.126 151.0 204.343 53.470
          1 12.296  75.0  73.696 52.561
        """
        with keyword_messages():
            metric = canonical_name(metric)
            found = [each for each in self._pointwise if each.metric == metric]
            if len(found) != 1 or not found[0].columns:
                raise OptionError(self._no_rows(metric, len(found)))
            return found[0].to_frame()

    def _no_rows(self, metric: str, count: int) -> str:
        """Return why there are no results of rows for a metric."""
        results, skipped = [each.metric for each in self.results], {each.metric: each.reason for each in self.skipped}
        if count > 1:
            return f"the report has {count} results of {metric}. Evaluate one at a time to get its rows"
        if count:
            available = dict.fromkeys(each.metric for each in self._pointwise if each.columns)
            return f"{metric} has no value per row (metrics with rows: {', '.join(available) or 'none'})"
        if metric in skipped:
            return f"{metric} was skipped: {skipped[metric]}"
        if metric in results:
            return "the report does not hold the results of rows. They come from evaluate, with pointwise=True"
        return f"the report has no metric {metric!r} (metrics: {', '.join(dict.fromkeys(results))})"

    def to_html(self, plot_by: Sequence[str] = ()) -> str:
        """Return the report as one HTML page that needs no network, like that of ``calcheck report``.

        Parameters
        ----------
        plot_by : sequence of str
            Two columns for the map of a report from :func:`calcheck.evaluate`; by default two inputs, or what the
            predictions state.

        Returns
        -------
        str
            The page, with the pictures of ``evaluate(…, pictures=True)``, a map to explore, and the worst rows.
            Studies, and reports with ``pointwise=False``, have tables only.

        Raises
        ------
        DataError, OptionError
            There are no two columns of numbers with these names.

        Examples
        --------
        >>> import calcheck
        >>> page = calcheck.evaluate("examples/diabetes.parquet", ["zms", "coverage"], pictures=True).to_html()
        >>> page[:15]
        '<!DOCTYPE html>'
        """
        if not self._pointwise:
            return render(self._document())
        return page.render_page(page_of([self.model(plot_by)]))

    def model(self, plot_by: Sequence[str], name: str = "") -> ModelReport:
        """Return what a page shows of the model."""
        held, name = self._pointwise[0], name or (self.input.files[0].path if self.input.files else "predictions")
        if any(file.role == "evaluation_points" for file in self.input.files):
            return ModelReport(name, self, no_map="the metrics are evaluated at other inputs")
        if any(message.code == "grouped-rows" for result in self.results for message in result.warnings):
            return ModelReport(name, self, no_map="rows are grouped by their keys")
        settings = {key: self.settings[key] for key in ("seed", "confidence", "replicates")}
        inputs, used = tuple[str, ...](), set[str]()
        if isinstance(held.source, FileSource):
            inputs, used = held.source.input_names(), held.source.used_columns()
        evaluated, rows = EvaluatedRows(), held.rows()
        for each in self._pointwise:
            if each.transfer is None:
                evaluated.add(each.metric, rows, RowResults(each.columns))
            else:
                evaluated.new = each.rows(), each.transfer
        return model_report(name, self, evaluated, Run(**settings), inputs=inputs, plot_by=plot_by, used=used)

    def __bool__(self) -> bool:
        """Return :attr:`passed`, so that ``assert calcheck.check(…)`` holds if the rules do."""
        return self.passed

    @property
    def passed(self) -> bool:
        """Whether all rules are judged and none is violated."""
        return all(gate.passed for gate in self.gates)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the report to a file, in the format of its name: .html (a page), .json, .csv, .md, .tex, .txt, …, .svg.

        Raises
        ------
        OptionError
            No format has this extension.
        """
        name = fspath(path)
        with keyword_messages():
            if name.lower().endswith(drawing.SUFFIXES):
                self.plot().save(name)
                return
            if not (known := [each for each in formats_of(name) if "report" in FORMATS[each].kinds]):
                suffixes = dict.fromkeys([*(each.suffixes[0] for each in FORMATS.values()), *drawing.SUFFIXES])
                raise OptionError(f"no format of reports has the extension of {name}: use one of {', '.join(suffixes)}")
            text = (
                self.to_html()
                if known[0] == PAGE
                else render_as(self, known[0], lambda _: self._document(), view="file")
            )
            write_text(name, text)

    def screen(self) -> str:
        """Return the first screen as text, as the command prints it: the answer, and metrics that were asked for."""
        return with_keywords(terminal.render(self._document("screen"), "screen").rstrip())

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: the data are left out, which pictures of metrics may need."""
        return {name: part for name, part in vars(self).items() if name != "_again"}

    def __repr__(self) -> str:
        """Return the first screen."""
        return self.screen()

    def _repr_html_(self) -> str:
        """Return the first screen and the pictures, for notebooks; the answer has one."""
        drawn = [answer_picture(self), *(each.picture for each in self.pictures())]
        drawings = [drawing.svg(each) for each in drawn if each is not None]
        return with_keywords(render_fragment(self._document("screen"), drawings))

    def plot(self, metric: str | None = None) -> InteractivePicture:
        """Return the picture of the answer, or of a metric, which notebooks show.

        Parameters
        ----------
        metric : str, optional
            Name or alias of a metric, which is evaluated again for its curves unless the report has them
            (``pictures=True``); by default the answer. Or a file, such as ``"answer.png"``, to which that is written.

        Returns
        -------
        InteractivePicture
            The picture, with a method ``save(path)``. The answer is that of ``evaluate``: the factor of intervals by
            level, the mean error and local errors, beside the tolerance. A study has its own picture.

        Raises
        ------
        OptionError
            There is no such picture.

        Examples
        --------
        >>> import calcheck
        >>> calcheck.evaluate("examples/diabetes.parquet", "zms").plot().picture.title
        'Can the uncertainties be trusted? YES, within 20 %, as far as tested'
        """
        with keyword_messages():
            path, metric = (metric, None) if str(metric).lower().endswith(drawing.SUFFIXES) else (None, metric)
            if metric is None:
                drawn = [answer_picture(self), *(each.picture for each in self.pictures())]
            else:
                name = canonical_name(metric)
                again: Callable[[str], Report] | None = vars(self).get("_again")
                has_curves = again is None or any(each.metric == name and each.curves for each in self.results)
                shown = self if again is None or has_curves else again(name)
                drawn = [metric_picture(shown, result) for result in shown.results if result.metric == name]
            found = next((each for each in drawn if each is not None), None)
            if found is None:
                raise OptionError(f"the report has no picture of {'an answer' if metric is None else metric}")
            picture = InteractivePicture(found)
            if path is not None:
                picture.save(path)
            return picture

    def pictures(self) -> tuple[InteractivePicture, ...]:
        """Return the pictures of the report, which notebooks show.

        Returns
        -------
        tuple
            One picture of a comparison, a sweep or a rejection study; one for each metric that has one, if
            :func:`calcheck.evaluate` was called with ``pictures=True``. Each has a method ``save(path)``.
        """
        draw: Callable[[Report], Sequence[Picture]] = vars(self).get("_draw", metric_pictures)
        return tuple(map(InteractivePicture, draw(self)))

    def _document(self, name: Literal["build", "screen"] = "build") -> Document:
        builder = report_document if name == "build" else screen_document
        build: Callable[[Report], Document] = vars(self).get(f"_{name}", builder)
        return build(self)


@dataclass(frozen=True)
class Page:
    """A page of the reports of one or several models, which notebooks show."""

    reports: Mapping[str, InteractiveReport]  # By the name of the model
    html: str  # The page, which needs no network

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page to a file."""
        write_text(fspath(path), self.html)

    def __repr__(self) -> str:
        """Return the first screen of each report."""
        return "\n\n".join(map(repr, self.reports.values()))

    def _repr_html_(self) -> str:
        """Return the page in a frame."""
        return f'<iframe srcdoc="{escape(self.html)}" width="100%" height="800" title="calcheck"></iframe>'


def _distinguishing_options(results: Sequence[Result]) -> list[str]:
    """Return for each result the options in which results of its metric and slice differ, as text."""
    texts = []
    for result in results:
        others = [other.options for other in results if (other.metric, other.slice) == (result.metric, result.slice)]
        differing = [name for name, value in result.options.items() if any(other[name] != value for other in others)]
        texts.append(", ".join(f"{name}={result.options[name]}" for name in differing))
    return texts


def _typed(values: pd.Series[Any], *, is_number: bool = False) -> pd.Series[Any]:
    """Return a column with one dtype: text as string, integers with absent values as Int64."""
    from pandas.api.types import infer_dtype, is_object_dtype, is_string_dtype

    if is_number:
        return values.astype("float64")
    if is_object_dtype(values):
        return values.astype(DTYPES.get(infer_dtype(values, skipna=True), "object"))
    return values.astype("string") if is_string_dtype(values) else values
