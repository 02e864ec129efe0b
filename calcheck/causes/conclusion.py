"""Causes in a report whose answer is no, with the commands that undo them."""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from calcheck.causes.candidates import Candidate, Case
from calcheck.causes.search import find_causes
from calcheck.execution.run import RowDependence
from calcheck.options import options_of
from calcheck.predictions import Predictions, Source
from calcheck.reports import Input, Report
from calcheck.reports.conclusion import Cause
from calcheck.typing import AnyArray, Indices, Mask

MOST_ROWS = 2_000  # Rows that causes are looked for in
BLOCKS = 4  # Of consecutive rows, and their mirror images: rows keep their neighbors
OBSERVED = ("--target-std", "--clip", "--rounded")


def with_causes(
    report: Report,
    rows: Predictions,
    inside: Mask | None,
    dependence: RowDependence,
    source: Source | None = None,
) -> Report:
    """Return a report with the plausible causes of a no.

    ``inside`` are the rows of the worst region of the inputs, and a source has further columns.
    """
    found = report.conclusion
    if found is None or found.answer != "no" or rows.y is None or rows.y.ndim > 1:
        return report
    if rows.distributions().targets > 1 or rows.distributions().n_draws == 1:
        return report
    chosen = sampled_rows(len(rows))
    own = rows if chosen is None else rows.take(chosen)
    if rows.predictive is not None:
        own = own.with_targets(own.targets(), own.distributions().load())
    case = Case(
        own,
        form_of(report.input),
        any(flag in report.input.options for flag in OBSERVED),
        region="" if report.region is None else report.region.where,
        inside=inside if chosen is None or inside is None else inside[chosen],
        columns={} if source is None else source.free_columns(),
        names=() if source is None else source.input_names(),
        sampled=chosen,
        every=None if chosen is None else rows,
        total=report.input.n,
        step=1 if dependence.time is None else rows_of_step(rows.columns[dependence.time]),
    )
    stated = [
        word
        for each in options_of(RowDependence)
        if (value := getattr(dependence, each.field)) is not None
        for word in (each.flag, each.text(value))
    ]
    causes = tuple(
        Cause(
            cause=each.candidate.name,
            text=each.candidate.text,
            command=command_of(each.candidate, report.input, stated),
            explained=float(min(max(each.explained, 0.0), 1.0)),
        )
        for each in find_causes(case, seed=int(report.settings.get("seed") or 0))
    )
    return replace(report, conclusion=replace(found, causes=causes))


def rows_of_step(times: AnyArray) -> int:
    """Return how many rows each time has, if rows are in the order of times and all have as many; else 1."""
    changes = np.flatnonzero(times[1:] != times[:-1]) + 1
    lengths = np.diff(changes, prepend=0, append=len(times))
    is_even = len(np.unique(times)) == len(lengths) > 1 and (lengths == lengths[0]).all()
    return int(lengths[0]) if is_even else 1


def form_of(read: Input) -> str:
    """Return what a file states about the size of uncertainties."""
    if any(flag in read.options for flag in OBSERVED):
        return "other"
    if column_of(read, "--var"):
        return "var"
    is_normal = read.predictive is not None and read.predictive.startswith(("gaussian", "residuals"))
    return "std" if is_normal and not column_of(read, "--log-std", "--log-var") else "other"


def sampled_rows(n: int) -> Indices | None:
    """Return the rows that causes are looked for in: blocks, and their mirror images; None for all."""
    if n <= MOST_ROWS:
        return None
    length = MOST_ROWS // (2 * BLOCKS)
    starts = np.linspace(0, n // 2 - length, BLOCKS).astype(np.int64)
    first = np.unique((starts[:, None] + np.arange(length)).ravel())
    return np.unique(np.concatenate([first, n - 1 - first]))


WRITTEN = {
    "csv": ("read_csv", 'to_csv("mended.csv", index=False)'),
    "parquet": ("read_parquet", 'to_parquet("mended.parquet")'),
}  # Functions of pandas that read and write a file, by its ending
PARTIAL = {"--filter", "--nan-policy"}  # Options that leave rows out, which an edit of the whole file would change
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


def command_of(cause: Candidate, read: Input, dependence: Sequence[str] = ()) -> str:
    """Return the command that undoes a cause in the file that was read, given options about rows; else empty."""
    files = [each for each in read.files if each.role == "predictions"]
    several = "," in column_of(read, "--target") and not column_of(read, "--only")
    in_memory = not files and read.options
    if several or not (in_memory or (len(files) == 1 and files[0].files == 1 and files[0].path != "-")):
        return ""
    path, options = "..." if in_memory else files[0].path, [*read.options, *dependence]
    if cause.is_corrected:
        return shlex.join(["calcheck", "recalibrate", path, *options, *cause.options])
    if cause.options and cause.options[0] not in SPREADS:
        return shlex.join(["calcheck", "evaluate", path, *options, *cause.options])
    if cause.options and (given := next((each for each in SPREADS if each in options), "")):
        replaced = [cause.options[0] if each == given else each for each in options]
        return shlex.join(["calcheck", "evaluate", path, *replaced])
    return _edit(cause.edit, path, read)


def _has_commas(path: str) -> bool:
    """Return whether the names of the columns of a text file are separated by commas."""
    with Path(path).open(encoding="utf-8", errors="replace") as lines:
        return "," in lines.readline()


def _edit(edit: str, path: str, read: Input) -> str:
    """Return the command that writes a mended table; empty if the file has no such column, or is no table."""
    functions = WRITTEN.get(path.rpartition(".")[2].lower()) if not PARTIAL & {*read.options} else None
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
    name = json.dumps(path, ensure_ascii=False)
    if functions[0] == "read_csv" and not _has_commas(path):
        name += ', sep=None, engine="python"'
    code = f"import {modules}; f = pd.{functions[0]}({name}); {edit}; f.{functions[1]}"
    return f"python -c {shlex.quote(code)}"
