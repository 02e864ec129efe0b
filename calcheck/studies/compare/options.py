"""Options of `calcheck compare` and `calcheck diff`: models, series of files, and reports side by side."""

from dataclasses import dataclass

from calcheck.options import Argument, Group, group, option
from calcheck.render import format_names
from calcheck.studies import Study, Variant
from calcheck.studies.options import COLUMNS, DEPENDENCE, INFERENCE, OUTPUTS, OVERWRITTEN, SCREEN, SUFFIXES, WEIGHTS

POSITIONS = (
    "The files are a series, the undisturbed one first, at these positions, such as the strength of a disturbance: show"
    " how metrics change."
)
DISCRETISE = (
    "For targets that are counts: nll gives continuous distributions the masses of whole numbers, F(y + 1/2) -"
    " F(y - 1/2), to compare them with distributions of counts."
)


@dataclass(frozen=True)
class ComparisonOptions:
    """Options for the comparison of models."""

    metrics: tuple[str, ...] | None = option(
        "Metrics to compute, e.g. zms,rce. Default: all that apply to every file, without parts of pit and scores.",
        metavar="NAMES",
        common=True,
    )
    names: tuple[str, ...] | None = option(
        "Names of the models, e.g. a,b. Default: the file names.", metavar="NAMES", common=True
    )
    by_folder: bool = option(
        "The files are named DATASET/MODEL: compare the models on several data sets, side by side. Each folder"
        " has a file for every model.",
        default=False,
    )
    permutations: int | None = option(
        "Number of permutations of the paired permutation test, which swaps the two models row by row. It gives the"
        " p-values of metrics that are means over rows. With 0, no metric has a p-value. Default: 9999."
    )
    positions: tuple[float, ...] | None = option(POSITIONS)
    discretise: bool = option(DISCRETISE, default=False)
    on: str | None = option(
        "Also say which model would be best for new inputs, and what holds there: rows of another file with the columns"
        " of --inputs or --embedding, FILE[:COLUMN], of which targets are not used.",
        metavar="FILE",
        common=True,
    )


@dataclass(frozen=True)
class TrendOptions:
    """Options for a series of files."""

    metrics: tuple[str, ...] | None = option(
        "Metrics to compute, e.g. cce,ece,crps. Default: all that apply to the first file.", metavar="NAMES"
    )
    positions: tuple[float, ...] | None = option(f"{POSITIONS} Default: 0,1,2,….")
    discretise: bool = option(DISCRETISE, default=False)


@dataclass(frozen=True)
class DiffReportOptions:
    """Options for the format and the destination of the changes between two reports."""

    format: str = option("Format of the changes.", "table", choices=format_names("diff"))
    output: str | None = option(
        f"Write the changes to a file instead of standard output. {SUFFIXES}",
        metavar="PATH",
        short="-o",
        by_hand=OVERWRITTEN,
    )


TRIALS = Group("Metric cce", metrics=("cce",)).keep("draws", "trials")
COMPARE = Study(
    "compare",
    "Compare models on the same rows: mark the best for each metric, and test the differences.",
    "study.run",
    arguments=(
        Argument(
            "files",
            "A B [C …]",
            "Files of saved predictions, one per model; - reads standard input. Column options of one file follow its"
            " name: a.csv@dist=poisson.",
            list[str],
        ),
    ),
    groups=(group("Comparison", ComparisonOptions), TRIALS, COLUMNS, WEIGHTS, INFERENCE, DEPENDENCE, SCREEN, *OUTPUTS),
    variants={"positions": Variant("trend", "a series of files (--positions)")},
    document="document.comparison_blocks",
    screen="document.comparison_screen",
    picture="document.comparison_picture",
    example="calcheck compare a.parquet b.parquet --metrics crps,zms",
)
TREND = Study(
    "trend",
    "Show how metrics change over a series of files, such as predictions for inputs with more and more noise.",
    "study.run_trend",
    arguments=(
        Argument(
            "files",
            "BASE F1 [F2 …]",
            "Files of saved predictions, the undisturbed one first. Column options of one file follow its name:"
            " a.csv@dist=poisson.",
            list[str],
        ),
    ),
    groups=(group("Series", TrendOptions), TRIALS, COLUMNS, INFERENCE, DEPENDENCE, *OUTPUTS),
    picture="document.trend_picture",
    example="calcheck trend clean.parquet noise1.parquet noise2.parquet --positions 0,0.5,1",
)
DIFF = Study(
    "diff",
    "Show what changed between two reports: values, verdicts, input, settings and versions.",
    "study.run_diff",
    arguments=(
        Argument(
            "old", "OLD.json", "A report written with --format json, or a page of calcheck report; - reads stdin."
        ),
        Argument("new", "NEW.json", "A later report, in the same formats."),
    ),
    groups=(group("Output", DiffReportOptions),),
    document="document.diff_blocks",
    example="calcheck diff old.json new.json",
)
