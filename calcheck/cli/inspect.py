"""`calcheck inspect` and `calcheck convert`: how a file is read."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calcheck.cli.inputs_and_outputs import draw, file_source, require_deliverable
from calcheck.cli.typer_options import argument, build, make_command, parameters_of
from calcheck.core.text import count_of
from calcheck.distributions import Predictive
from calcheck.errors import DataError, OptionError
from calcheck.options import flag_of, group
from calcheck.studies.options import COLUMNS, FILE_TEXT, PLOT, ConvertOptions, PredictionPlotOptions

if TYPE_CHECKING:
    from calcheck.io.file_source import FileSource
    from calcheck.predictions import Predictions

SHOWN = 3


def first_rows(rows: Predictions) -> list[tuple[str, str]]:
    """Return descriptions of the first rows, with their numbers or ids; empty if there are no predictions."""
    import numpy as np

    first = rows.take(slice(0, SHOWN))
    if first.predictive is None:
        return []
    with np.errstate(all="ignore"):  # infinite and undefined numbers are shown as such
        descriptions = [f"predicts {words}" for words in first.predictive.describe()]
        ends = _compared(first.predictive, first)
    if ends:
        descriptions = [f"{words}, observed {end}" for words, end in zip(descriptions, ends, strict=True)]
    keys = first.row_numbers() if first.id is None else first.id
    label = "row" if first.id is None else first.id_name
    return [(f"{label} {key}", words) for key, words in zip(keys, descriptions, strict=True)]


def _compared(predictive: Predictive, rows: Predictions) -> list[str]:
    """Return the observed value of each row, and its position in the predictive distribution."""
    import numpy as np

    from calcheck.distributions.special import format_plain

    y = rows.y
    if y is None:
        return []
    if y.ndim > 1:
        return [", ".join(map(format_plain, row)) for row in y]
    if (levels := predictive.interval_levels) is not None:
        limits = [predictive.central_interval(level) for level in levels.tolist()]
        sides = [np.select([y < low, y > high], ["below", "above"], "inside") for low, high in limits]
        return [f"{format_plain(value)}: {', '.join(row)}" for value, *row in zip(y, *sides, strict=True)]
    if not predictive.has_atoms and predictive.n_draws is None and not predictive.caveat:
        try:
            z = (y - predictive.mean()) / predictive.std()
        except DataError:  # the distribution has no mean or no standard deviation
            pass
        else:
            return [f"{format_plain(value)}: z = {score:.2f}" for value, score in zip(y, z, strict=True)]
    return [f"{format_plain(value)}: P(Y ≤ y) = {share:.2g}" for value, share in zip(y, predictive.cdf(y), strict=True)]


def _convert(file: str, **given: Any) -> None:
    """Convert predictions to a file with columns that calcheck reads without options."""
    from calcheck.storage.atomic_write import require_writable
    from calcheck.storage.prediction_files import suffix_of, write

    path = build(ConvertOptions, given).output
    if path is None:
        raise OptionError("convert needs an output file: pass -o PATH")
    suffix_of(path)
    source = replace(file_source(file, given, contents="any", narrow=True), observed=False)
    require_writable([path], source.reads())
    with source.error_names():
        write(source, path)
    rows = source.predictions()
    family = rows.predictive.display_name if rows.predictive else "no predictions"
    notes = "".join(f"note {message.text}\n" for message in source.warnings())
    sys.stderr.write(f"{path}: {count_of(len(rows), 'row')}, {family}\n{notes}")


FILE = argument("file", "FILE", FILE_TEXT)
convert_command = make_command(
    "convert",
    _convert,
    [FILE, *parameters_of([group("Output", ConvertOptions), COLUMNS])],
    example="calcheck inspect hub.csv --truth truth.csv -o preds.parquet",
)


def _inspect(file: str, **given: Any) -> None:
    """Show what calcheck finds in a file, its first rows in words, and the equivalent explicit options.

    With -o, write the predictions to another file instead, with columns that calcheck reads without options: id, y,
    one form of predictions, and an embedding. In CSV, text that a spreadsheet would evaluate (starting with =, +, - or
    @) is prefixed with an apostrophe, which calcheck removes when it reads the file.
    """
    if build(ConvertOptions, given).output is not None:
        for name in ("plot", "plot_by"):
            if given.get(name):
                raise OptionError(
                    f"{flag_of(name)} draws what is found in a file, and -o writes another file: pass only one of them"
                )
        _convert(file, **given)
        return
    from calcheck.core.text import strip_control
    from calcheck.io.crossing import SORT_CROSSING
    from calcheck.render.document import Details, Document
    from calcheck.render.terminal import render

    plot, plot_by = given["plot"], build(PredictionPlotOptions, given).plot_by
    also = (plot_by,) if plot_by else ()
    source = file_source(file, given | {"crossing": "sort"}, contents="any", also=also)
    if plot_by and not plot:
        raise OptionError("--plot-by sets what the picture shows: also pass --plot FILE")
    if plot:
        require_deliverable({"plot": plot}, source.reads())
    found = _found(source)
    if (crossing := source.reading.crossing).count:
        found["crossing quantiles"] = f"{crossing.description()}. {SORT_CROSSING}"
    if used := given["settings"].used:
        found["settings"] = ", ".join(f"{setting.option.flag} by {setting.where}" for setting in used)
    parts = [tuple(found.items())]
    if problems := source.missing():
        parts += [(("missing", problem),) for problem in problems]
        parts.append(tuple((field.name or "(no name)", str(field.type)) for field in source.table.schema))
    parts += [tuple(first)] if (first := first_rows(source.predictions())) else []
    explicit = strip_control(shlex.join(source.explicit()))
    footer = f"\nThe equivalent explicit options:\n  {explicit}\n" if explicit else ""
    if plot:
        with source.error_names():
            _draw(plot, source, plot_by or "")
    sys.stdout.write(render(Document(tuple(map(Details, parts)))) + footer)


def _draw(path: str, source: FileSource, by: str) -> None:
    """Draw intervals of rows with their targets."""
    from calcheck.metrics.coverage import Coverage
    from calcheck.statistics.curves import row_intervals
    from calcheck.studies.page.picture import predictions_picture

    rows = source.predictions()
    if rows.predictive is None and (problems := source.missing()):
        raise DataError(problems[0])
    shown = row_intervals(rows, Coverage().level_of(rows.distributions()), by, source.roles.x)
    draw(predictions_picture(shown), path)


def _found(source: FileSource) -> dict[str, str]:
    """Return a description of the file, by topic."""
    rows = source.predictions()
    read = source.input_info()
    there = read.files[0].rows
    parts = [f"{there:,} in the file"] if there != read.n + read.dropped else []
    parts += [f"{read.dropped:,} dropped"] if read.dropped else []
    found = {
        "file": source.name + (f" ({len(source.file.paths):,} files)" if len(source.file.paths) > 1 else ""),
        "format": ", ".join(filter(None, [source.file.format, read.layout])),
        "rows": f"{read.n:,}" + (f" ({', '.join(parts)})" if parts else ""),
        "predictions": read.predictive or "none found",
    }
    found |= read.columns
    if rows.x is not None:
        kind = "embedding" if rows.has_embedding else "inputs"
        found["x"] += f" ({kind}, {rows.x.shape[1]:,} numbers a row, {rows.x.dtype})"
    return found


inspect_command = make_command(
    "inspect",
    _inspect,
    [
        FILE,
        *parameters_of([group("Output", ConvertOptions), PLOT, group("Output", PredictionPlotOptions), COLUMNS]),
    ],
    example="calcheck inspect hub.csv --truth truth.csv -o preds.parquet",
)
