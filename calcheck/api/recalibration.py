"""The result of ``calcheck.recalibrate``: a report, and the correction that can be applied and stored."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from calcheck.api import arguments
from calcheck.api.arguments import Data, Metrics, RecalibrationArguments
from calcheck.api.notebook_report import InteractiveReport
from calcheck.api.requests import KeywordRequest, interactive
from calcheck.io import read
from calcheck.io.file_source import FileSource
from calcheck.predictions import Predictions, Source
from calcheck.recalibration.methods import AUTO, RecalibrationMap
from calcheck.storage.prediction_files import canonical_columns, columns_like
from calcheck.storage.report_json import write_map
from calcheck.studies import STUDIES

if TYPE_CHECKING:
    import pandas as pd


class Recalibration(InteractiveReport):
    """A fitted correction with its report; notebooks show it as tables.

    Attributes
    ----------
    map : RecalibrationMap
        The correction: its method, steps, and the table of the choice.
    """

    map: ClassVar[RecalibrationMap]  # set for each object
    _source: ClassVar[Source]

    @property
    def table(self) -> pd.DataFrame:
        """The methods with their scores by cross-validation.

        Columns ``value`` (mean score), ``difference`` (from no change), ``p_value`` (that it is below 0) and ``reason``
        (why a method does not apply); the index is ``method``, or ``target`` and ``method`` for several targets.
        """
        import pandas as pd

        frames = {name: pd.DataFrame(map(vars, each.choice.table)) for name, each in self.map.targets.items()}
        if frames:
            return pd.concat(frames, names=["target"]).set_index("method", append=True).droplevel(1)
        return pd.DataFrame(map(vars, self.map.choice.table)).set_index("method")

    def apply(self, data: Any, **columns: Any) -> pd.DataFrame:
        """Return corrected predictions, with one row per row of the data.

        Parameters
        ----------
        data : path, DataFrame, table, Source or Predictions
            Predictions of the same family, with or without targets. Columns have the same names as those of the data to
            which the correction was fitted, unless keywords name them.
        **columns
            Keywords of :func:`calcheck.read`.

        Returns
        -------
        DataFrame
            Columns that calcheck reads without options: the corrected predictions under the names of the data, or
            ``mean`` and ``std``, ``samples``, or quantiles if these have others or another form; and all other columns
            with one value per row.

        Raises
        ------
        DataError
            The data are of another family, or lack a column.
        """
        import pandas as pd

        source: Source | Predictions = data
        if not isinstance(data, (Source, Predictions)):
            found = read(str(data) if isinstance(data, PathLike) else data, **columns)
            if not columns and isinstance(self._source, FileSource):
                found = replace(self._source, file=found.file)
            source = replace(found, contents="new", observed=False, narrow=True, also=self.map.columns)
        rows = source if isinstance(source, Predictions) else source.predictions()
        corrected = self.map.apply(rows)
        columns = columns_like(corrected, source) if isinstance(source, Source) else canonical_columns(corrected)
        frame = pd.DataFrame(
            {name: list(values) if values.ndim > 1 else values for name, values in columns.items()}  # arrays as cells
        )
        index = getattr(getattr(source, "file", None), "index", None)
        return frame if index is None else frame.set_axis(index.take(rows.row_numbers()), axis=0)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the correction as JSON, for ``calcheck recalibrate --map``; an existing file is replaced."""
        write_map(self.map, str(path))


@arguments.public
def recalibrate(
    data: Data = None,
    method: str = AUTO,
    *,
    to: Data = None,
    on: Data = None,
    metrics: Metrics | None = None,
    **options: Unpack[RecalibrationArguments],
) -> Recalibration:
    """Return a correction of the uncertainties, chosen by cross-validation, with metrics before and after.

    Parameters
    ----------
    data : path, DataFrame, table, Source or Predictions, optional
        Predictions with targets, as for :func:`evaluate`, to which the correction is fitted.
    method : str
        ``"auto"``, or a method: ``"scale"``, ``"shift-scale"``, ``"power"``, ``"bias"``, ``"local"``,
        ``"isotonic-variance"``, ``"bvs"``, ``"student-t"``, ``"beta"``, ``"pit"``, ``"conformal"``, or steps in order,
        joined by ``+``: ``"bias+local+pit"``.
    to : path, DataFrame, table, Source or Predictions, optional
        Other predictions with targets, which are judged before and after as well.
    on : path, DataFrame, table or array-like (m, d), optional
        New inputs, for which the correction is fitted and chosen; they need no targets.
    metrics : str, Metric, or sequence of these, optional
        Metrics before and after.
    by : str or sequence of str, optional
        Columns, and ``"std"`` and ``"mean"`` for the predicted ones, on which ``bias`` and ``local`` depend. By default
        those of all columns on which errors depend.
    form : str, optional
        ``"same"``, to keep the form of the predictions; ``"quantiles"``, to compare methods that write quantiles like
        the others. By default these must be clearly better.
    folds : int
        Number of folds, from 2 to 100.
    cluster, time : str, optional
        Column whose groups stay in one fold, or by which folds are blocks of time.
    block : int
        Number of consecutive times that depend on each other; of rows without ``time``, whose folds are blocks of rows.
    score : str
        ``"crps"``, ``"nll"`` or ``"interval"``, by which methods are compared.
    bins : int
        Number of bins of ``bvs``.
    levels : sequence of float
        Levels of the intervals that ``conformal`` makes of distributions, in (0, 1).
    relative : bool
        Whether conformal scores are relative to the widths of intervals.
    **options
        Keywords of the run and of reading, as for :func:`evaluate`.

    Returns
    -------
    Recalibration
        A report with ``apply``, which corrects other predictions, ``save``, and ``table``, the scores of the methods.

    Raises
    ------
    DataError
        There are too few rows, the method does not apply, or ``to`` has rows of ``data``.
    OptionError
        A keyword has an invalid value.

    Examples
    --------
    >>> found = recalibrate("examples/diabetes.parquet", "scale", metrics="zms", replicates=0)
    >>> found.map.texts, [round(result.value, 3) for result in found.results if result.metric == "zms"]
    (('uncertainties ×0.99, the root mean squared z-score',), [0.985, 1.002])
    """
    study, request = STUDIES["recalibrate"], KeywordRequest(locals(), RecalibrationArguments)
    answer = study.answer(request)
    found = interactive(Recalibration, study, answer)
    object.__setattr__(found, "map", *answer.extras)
    object.__setattr__(found, "_source", answer.source)  # whose rows the correction was fitted to
    return found
