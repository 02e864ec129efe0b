"""Options of `calcheck mcmd` and `calcheck mmd`: evaluation points, and the permutation test."""

from dataclasses import dataclass

from calcheck.errors import OptionError
from calcheck.metrics.mcmd import Mcmd
from calcheck.metrics.mmd import Mmd
from calcheck.options import Argument, group, option
from calcheck.studies import Study
from calcheck.studies.options import ENGINE, PLOT, POINTWISE, REPORT, SAMPLES, SEED, SIGNIFICANCE


@dataclass(frozen=True)
class GridOptions:
    """Options for the evaluation points of two samples."""

    grid: int | None = option(
        "Number of equally spaced evaluation points between the smallest and the largest input of both files. For "
        "one-dimensional inputs only. Default: 200."
    )
    at: str | None = option(
        "Evaluate at the inputs of a file (A, B or another one), which needs no targets: FILE[:COLUMN], .npy or .npz. "
        "Default for inputs with several dimensions: A.",
        metavar="FILE",
    )


@dataclass(frozen=True)
class PermutationOptions:
    """Options for the permutation test of two samples."""

    confidence: float = option("Confidence level of verdicts.", 0.95)
    permutations: int | None = option(
        "Number of permutations. Each exchanges rows of the two files, as if their distributions were equal. Default: "
        "199.",
        off=("no_null", "Run no permutation test, and give no verdict."),
    )

    def __post_init__(self) -> None:
        from calcheck.execution.run import MIN_REPLICATES

        if self.permutations is not None and 0 < self.permutations < MIN_REPLICATES:
            raise OptionError(f"--permutations must be at least {MIN_REPLICATES}, got {self.permutations}")


FILES = (
    Argument("a", "A", "File of the first sample, with inputs and targets; - reads standard input."),
    Argument("b", "B", "File of the second sample; its inputs may differ from those of A."),
)
ROWS, PERMUTATIONS = group("Rows", GridOptions), group("Inference", PermutationOptions)
MCMD = Study(
    "mcmd",
    "Compare the conditional distributions of two samples of inputs and targets, at each input.",
    "study.run_mcmd",
    arguments=FILES,
    groups=(group("Metric", Mcmd), SAMPLES, ROWS, PERMUTATIONS, SIGNIFICANCE, REPORT, POINTWISE, PLOT, SEED, ENGINE),
    example="calcheck mcmd a.parquet b.parquet --inputs x",
)
MMD = Study(
    "mmd",
    "Compare the distributions of two samples: of their targets, or of their inputs and targets (--joint).",
    "study.run_mmd",
    arguments=FILES,
    groups=(group("Metric", Mmd), SAMPLES, PERMUTATIONS, REPORT, SEED, ENGINE),
    example="calcheck mmd a.parquet b.parquet --joint --inputs x",
)
