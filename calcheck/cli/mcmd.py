"""`calcheck mcmd` and `calcheck mmd`: compare two samples in two files."""

from __future__ import annotations

from typing import Any

from calcheck.cli.common import (
    COLUMNS,
    ENGINE,
    REPORT,
    SEED,
    SIGNIFICANCE,
)
from calcheck.cli.samples import SAMPLE_OPTIONS, compare_samples
from calcheck.cli.typer_bridge import argument, build, make_command, parameters
from calcheck.metrics.mcmd import Mcmd
from calcheck.metrics.mmd import Mmd
from calcheck.studies.options import GridOptions, PermutationOptions, PlotOptions, PointwiseOptions


def _mcmd(a: str, b: str, **given: Any) -> None:
    """Compare the conditional distributions of two samples of inputs and targets, at each input."""
    compare_samples(build(Mcmd, given), (a, b), _as_replicates(given))


def _mmd(a: str, b: str, **given: Any) -> None:
    """Compare the distributions of two samples: of their targets, or of their inputs and targets (--joint)."""
    compare_samples(build(Mmd, given), (a, b), _as_replicates(given))


def _as_replicates(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a command, with the number of permutations as that of replicates."""
    return {**given, "replicates": build(PermutationOptions, given).permutations, "no_null": False}


FILES = [
    argument("a", "A", "File of the first sample, with inputs and targets; - reads standard input."),
    argument("b", "B", "File of the second sample; its inputs may differ from those of A."),
]
SAMPLE_COLUMNS = [parameter for parameter in COLUMNS if parameter.name in SAMPLE_OPTIONS]

mcmd_command = make_command(
    "mcmd",
    _mcmd,
    [
        *FILES,
        *parameters(Mcmd, "Metric"),
        *SAMPLE_COLUMNS,
        *parameters(GridOptions, "Rows"),
        *parameters(PermutationOptions, "Inference"),
        *SIGNIFICANCE,
        *REPORT,
        *parameters(PointwiseOptions, "Output"),
        *parameters(PlotOptions, "Output"),
        *SEED,
        *ENGINE,
    ],
    example="calcheck mcmd a.parquet b.parquet --inputs x",
)

mmd_command = make_command(
    "mmd",
    _mmd,
    [
        *FILES,
        *parameters(Mmd, "Metric"),
        *SAMPLE_COLUMNS,
        *parameters(PermutationOptions, "Inference"),
        *REPORT,
        *SEED,
        *ENGINE,
    ],
    example="calcheck mmd a.parquet b.parquet --joint --inputs x",
)
