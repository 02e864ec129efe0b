"""`calcheck convert`: write predictions of any layout to a file that calcheck reads without options."""

from __future__ import annotations

import sys
from typing import Any

from calcheck.cli.common import COLUMNS, FILE, file_source
from calcheck.cli.options import ConvertOptions
from calcheck.cli.typer_bridge import build, make_command, parameters
from calcheck.errors import OptionError


def _convert(file: str, **given: Any) -> None:
    """Convert predictions to a file with columns that calcheck reads without options.

    The columns are id, y, one form of predictions, and an embedding. In CSV, text that a spreadsheet would evaluate
    (starting with =, +, - or @) is prefixed with an apostrophe, which calcheck removes when it reads the file.
    """
    from calcheck.storage.atomic_write import require_writable
    from calcheck.storage.predictions_writer import suffix_of, write

    path = build(ConvertOptions, given).output
    if not path:
        msg = "convert needs an output file: pass -o PATH"
        raise OptionError(msg)
    suffix_of(path)
    source = file_source(file, given, contents="any", narrow=True)
    require_writable([path], source.reads())
    with source.error_names():
        write(source, path)
    rows = source.predictions()
    family = rows.predictive.display_name if rows.predictive else "no predictions"
    notes = "".join(f"note {message.text}\n" for message in source.warnings())
    sys.stderr.write(f"{path}: {len(rows):,} rows, {family}\n{notes}")


convert_command = make_command(
    "convert",
    _convert,
    [FILE, *parameters(ConvertOptions, "Output"), *COLUMNS],
    example="calcheck convert hub.csv --truth truth.csv -o preds.parquet",
)
