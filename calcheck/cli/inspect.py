"""`calcheck inspect`: show what calcheck finds in a file, before it computes any metric."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

from calcheck.cli.common import COLUMNS, FILE, file_source
from calcheck.cli.options import PredictionPlotOptions
from calcheck.cli.output import draw
from calcheck.cli.preview import first_rows
from calcheck.cli.typer_bridge import build, make_command, parameters
from calcheck.errors import DataError, OptionError

if TYPE_CHECKING:
    from calcheck.io.source import FileSource
    from calcheck.report import Input


def _inspect(file: str, **given: Any) -> None:
    """Show what calcheck finds in a file, its first rows in words, and the equivalent explicit options."""
    from calcheck.distributions.intervals import REMEDY
    from calcheck.plain_text import strip_control
    from calcheck.render.document import Details, Document
    from calcheck.render.terminal import render

    options = build(PredictionPlotOptions, given)
    also = (options.plot_by,) if options.plot_by else ()
    source = file_source(file, given | {"crossing": "sort"}, contents="any", also=also)
    _require_picture(options, source)
    found = _found(source)
    if source.crossing.count:
        found["crossing quantiles"] = f"{source.crossing.description()}. {REMEDY}"
    if used := given["settings"].used:
        found["settings"] = ", ".join(f"{setting.option.flag} by {setting.where}" for setting in used)
    parts = [tuple(found.items())]
    if problems := source.missing():
        parts += [(("missing", problem),) for problem in problems]
        parts.append(tuple((field.name or "(no name)", str(field.type)) for field in source.table.schema))
    parts += [tuple(first)] if (first := first_rows(source.predictions())) else []
    explicit = strip_control(shlex.join(source.explicit()))
    footer = f"\nThe equivalent explicit options:\n  {explicit}\n" if explicit else ""
    if options.plot:
        with source.error_names():
            _draw(options.plot, source, options.plot_by or "")
    sys.stdout.write(render(Document(tuple(map(Details, parts)))) + footer)


def _require_picture(options: PredictionPlotOptions, source: FileSource) -> None:
    """Raise, before reading rows, if the picture cannot be written."""
    from calcheck.charts.image import require_image
    from calcheck.storage.atomic_write import require_writable

    if options.plot_by and not options.plot:
        msg = "--plot-by sets what the picture shows: also pass --plot FILE"
        raise OptionError(msg)
    if options.plot:
        require_image(options.plot)
        require_writable([options.plot], source.reads())


def _draw(path: str, source: FileSource, by: str) -> None:
    """Draw intervals of rows with their targets."""
    from calcheck.metrics.coverage import Coverage
    from calcheck.render.pictures.predictions import predictions_picture
    from calcheck.statistics.row_intervals import row_intervals

    rows = source.predictions()
    if rows.predictive is None and (problems := source.missing()):
        raise DataError(problems[0])
    shown = row_intervals(rows, Coverage().level_of(rows.distributions()), by, source.roles.x)
    draw(predictions_picture(shown), path)


def _found(source: FileSource) -> dict[str, str]:
    """Return a description of the file, by topic."""
    rows = source.predictions()
    read = source.input_info()
    found = {
        "file": source.name + (f" ({source.file.count:,} files)" if source.file.count > 1 else ""),
        "format": ", ".join(filter(None, [source.file.format, read.layout])),
        "rows": _counted(read),
        "predictions": read.predictive or "none found",
    }
    found |= read.columns
    if rows.x is not None:
        kind = "embedding" if rows.has_embedding else "inputs"
        found["x"] += f" ({kind}, {rows.x.shape[1]:,} numbers a row, {rows.x.dtype})"
    return found


def _counted(read: Input) -> str:
    """Return the number of rows used, and the numbers of rows in the file and dropped."""
    there = read.files[0].rows
    parts = [f"{there:,} in the file"] if there != read.n + read.dropped else []
    parts += [f"{read.dropped:,} dropped"] if read.dropped else []
    return f"{read.n:,}" + (f" ({', '.join(parts)})" if parts else "")


inspect_command = make_command("inspect", _inspect, [FILE, *parameters(PredictionPlotOptions, "Output"), *COLUMNS])
