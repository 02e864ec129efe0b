"""The result of ``calcheck.recalibrate``: a report, and the correction that can be applied and stored."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Self

from calcheck.api.interactive import InteractiveReport
from calcheck.io import read
from calcheck.io.source import FileSource
from calcheck.predictions import Predictions, Source
from calcheck.recalibration.recalibration_map import RecalibrationMap
from calcheck.report import Report
from calcheck.storage.report_json import write_map
from calcheck.storage.writers import canonical_columns
from calcheck.studies.recalibrate.document import recalibration_document

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

    @classmethod
    def from_study(cls, report: Report, found: RecalibrationMap, source: Source) -> Self:
        """Return the result of a study, with the source to whose rows the correction was fitted."""
        own = cls.from_report(report, build=recalibration_document)
        object.__setattr__(own, "map", found)
        object.__setattr__(own, "_source", source)
        return own

    @property
    def table(self) -> pd.DataFrame:
        """The methods with their scores by cross-validation.

        Columns ``value`` (mean score), ``difference`` (from no change), ``p_value`` (that it is below 0) and ``reason``
        (why a method does not apply); the index is ``method``.
        """
        import pandas as pd

        rows = [vars(score) for score in self.map.choice.table]
        return pd.DataFrame(rows).set_index("method")

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
            Columns that calcheck reads without options: ``y``, the corrected predictions (``mean`` and ``std``,
            ``samples``, or quantiles), and all other columns with one value per row.

        Raises
        ------
        DataError
            The data are of another family, or lack a column.
        """
        import pandas as pd

        source = self._opened(data, columns)
        rows = source if isinstance(source, Predictions) else source.predictions()
        found = canonical_columns(self.map.apply(rows))
        frame = pd.DataFrame(
            {name: list(values) if values.ndim > 1 else values for name, values in found.items()}  # arrays as cells
        )
        index = getattr(getattr(source, "file", None), "index", None)
        return frame if index is None else frame.set_axis(index.take(rows.row_numbers()), axis=0)

    def _opened(self, data: Any, columns: dict[str, Any]) -> Source | Predictions:
        if isinstance(data, (Source, Predictions)):
            return data
        found = read(str(data) if isinstance(data, PathLike) else data, **columns)
        fitted = self._source
        if not columns and isinstance(fitted, FileSource):
            found = replace(fitted, file=found.file)
        return replace(found, contents="any", narrow=True, also=self.map.columns)

    def save(self, path: str) -> None:
        """Write the correction as JSON, for ``calcheck recalibrate --map``; an existing file is replaced."""
        write_map(self.map, str(path))
