"""The commands that undo causes, as they can be pasted into a shell."""

import json
import re
import shlex

from calcheck.causes.candidates import Candidate
from calcheck.reports import Input

WRITTEN = {
    "csv": ("read_csv", 'to_csv("mended.csv", index=False)'),
    "parquet": ("read_parquet", 'to_parquet("mended.parquet")'),
}  # Functions of pandas that read and write a file, by its ending
SPREADS = ("--std", "--var", "--log-std", "--log-var")


def column_of(read: Input, *flags: str) -> str:
    """Return the column that an option names; empty if none does."""
    pairs = dict(zip(read.options, read.options[1:], strict=False))
    return next((pairs[flag] for flag in flags if flag in pairs), "")


def spread_column(read: Input) -> str:
    """Return the column of the standard deviations, or of the scales of normal distributions."""
    if column_of(read, "--dist") != "gaussian":
        return column_of(read, *SPREADS)
    return next((text.removeprefix("scale=") for text in read.options if text.startswith("scale=")), "")


def command_of(cause: Candidate, read: Input) -> str:
    """Return the command that undoes a cause in the file that was read; empty if none does."""
    files = [each for each in read.files if each.role == "predictions"]
    several = "," in column_of(read, "--target") and not column_of(read, "--only")
    if len(files) != 1 or files[0].files != 1 or files[0].path == "-" or several:
        return ""
    path, options = files[0].path, list(read.options)
    if cause.correction or cause.method:
        return shlex.join(["calcheck", "recalibrate", path, *options, *_correction(cause, read)])
    if cause.options and cause.options[0] not in SPREADS:
        return shlex.join(["calcheck", "evaluate", path, *options, *cause.options])
    if cause.options and (given := next((each for each in SPREADS if each in options), "")):
        replaced = [cause.options[0] if each == given else each for each in options]
        return shlex.join(["calcheck", "evaluate", path, *replaced])
    return _edit(cause.edit, path, read)


def _correction(cause: Candidate, read: Input) -> list[str]:
    """Return the options of recalibrate that mend a cause."""
    columns = [each.format(mean=column_of(read, "--mean")) for each in cause.correction]
    by = ",".join(filter(None, columns))
    return [*(["--method", cause.method] if cause.method else []), *(["--by", by] if by else [])]


def _edit(edit: str, path: str, read: Input) -> str:
    """Return the command that writes a mended table; empty if the file has no such column, or is no table."""
    functions = WRITTEN.get(path.rpartition(".")[2].lower())
    pattern = column_of(read, "--samples")
    drawn = f"^{re.escape(pattern)}$".replace(r"\*", ".*") if "*" in pattern else ""
    columns = {
        "y": column_of(read, "--target"),
        "std": spread_column(read),
        "samples": drawn,
    }
    needed = {name for name in columns if f"{{{name}}}" in edit}
    if functions is None or not edit or any(not columns[name] or "," in columns[name] for name in needed):
        return ""
    for name in needed:
        edit = edit.replace(f"{{{name}}}", json.dumps(columns[name], ensure_ascii=False))
    modules = "numpy as np, pandas as pd" if "np." in edit else "pandas as pd"
    code = f"import {modules}; f = pd.{functions[0]}({json.dumps(path, ensure_ascii=False)}); {edit}; f.{functions[1]}"
    return f"python -c {shlex.quote(code)}"
