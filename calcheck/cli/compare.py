"""`calcheck compare`: several models on the same rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from calcheck.cli.common import (
    BOOTSTRAP,
    ENGINE,
    SEED,
    SIGNIFICANCE,
    files_and_columns,
    make_run,
    open_source,
    select_metrics,
)
from calcheck.cli.options import ComparedNullOptions, ComparisonOptions, ComparisonReportOptions
from calcheck.cli.output import Pointwise, deliver_text, require_deliverable
from calcheck.cli.progress import progress_bar
from calcheck.cli.typer_bridge import build, parameters, with_signature
from calcheck.errors import FileError, OptionError
from calcheck.render.cells import reasons

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.io.source import FileSource
    from calcheck.studies.align import Model

STDIN = "-"


def _compare(files: list[str], **given: Any) -> None:
    """Compare models on the same rows: the best of each metric, and whether differences are more than chance."""
    from calcheck.render import COMPARISON_FORMATS
    from calcheck.studies.compare import compare

    options, report_to = build(ComparisonOptions, given), build(ComparisonReportOptions, given)
    if len(files) < 2:  # noqa: PLR2004 - two are compared
        msg = f"compare takes the files of at least two models, got {files[0]} alone"
        raise OptionError(msg)
    names = model_names(files, options.names)
    metrics = select_metrics(options.metrics, given["settings"])
    sources = [open_source(file, given, metrics, narrow=False) for file in files]
    require_deliverable(report_to, Pointwise(None), [name for source in sources for name in source.reads()])
    models = [model_of(name, source) for name, source in zip(names, sources, strict=True)]
    with progress_bar() as progress:
        report = compare(models, metrics, swaps=options.permutations, run=replace(make_run(given), progress=progress))
    if not report.results:
        told = "; ".join(f"{metrics}: {reason}" for metrics, reason in reasons(report.skipped))
        msg = f"no metric applies to {', '.join(names)}. {told}"
        raise FileError(msg)
    deliver_text(COMPARISON_FORMATS[report_to.format](report), report_to)


def model_of(name: str, source: FileSource) -> Model:
    """Make a model of a file."""
    from calcheck.io.columns.roles import ParametersRole, ResidualRole
    from calcheck.studies.align import Model

    role = source.roles.predictive
    of_errors = isinstance(role, ResidualRole) or (isinstance(role, ParametersRole) and bool(role.error))
    return Model(name, source, of_errors=of_errors)


def model_names(files: Sequence[str], names: str | None) -> list[str]:
    """Name the models: as the user says, or as their files, by as much of their paths as tells them apart.

    Raises
    ------
    OptionError
        Two are standard input, the names are too few or too many, or two are the same.
    """
    if files.count(STDIN) > 1:
        msg = "standard input is one file: give the others by name"
        raise OptionError(msg)
    if names is not None:
        told = [name.strip() for name in names.split(",")]
        if len(told) != len(files) or len(set(told)) < len(told) or not all(told):
            msg = f"--names takes {len(files)} different names, one a file, got {names!r}"
            raise OptionError(msg)
        return told
    paths = [PurePath(file) for file in files]
    for depth in range(1, max(len(path.parts) for path in paths) + 1):
        told = ["/".join([*path.parts[-depth:-1], path.stem]) for path in paths]
        if len(set(told)) == len(told):
            return told
    told = [path.name for path in paths]
    return (
        told if len(set(told)) == len(told) else [f"{path.stem} ({place})" for place, path in enumerate(paths, start=1)]
    )


compare_command = with_signature(
    _compare,
    [
        *files_and_columns("A B [C …]", "Saved predictions of each model; - reads standard input."),
        *parameters(ComparisonOptions, "Comparison"),
        *BOOTSTRAP,
        *parameters(ComparedNullOptions, "Inference"),
        *SIGNIFICANCE,
        *parameters(ComparisonReportOptions, "Output"),
        *SEED,
        *ENGINE,
    ],
)
