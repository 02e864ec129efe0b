"""Options of `calcheck sweep`: which settings of a metric are varied, and how."""

from dataclasses import dataclass

from calcheck.metrics import METRICS, TWO_SAMPLE_METRICS
from calcheck.options import Argument, Group, group, option, require_count_option
from calcheck.studies import Study
from calcheck.studies.options import COLUMNS, OUTPUTS

MAX_SUBSETS = 10_000  # maximum number of random subsets per size


@dataclass(frozen=True)
class SweepOptions:
    """Options for a sweep over settings."""

    vary: tuple[str, ...] = option(
        "Setting to vary and its values, e.g. draws=1,2,5, or a log-spaced range of 7 values, lambda=0.001..1, or of 4 "
        "values, gamma-y=0.1..10:4. NAME is an option of the metric, or subsample for random subsets of the rows, "
        "subsample=25%,50%,500. May be repeated.",
        (),
        metavar="NAME=VALUES",
        repeated=True,
    )
    metric: str = option("Metric to compute.", "cce", metavar="NAME")
    all_combinations: bool = option(
        "Compute all combinations of the values, instead of varying one setting at a time.", default=False
    )
    subsets: int = option("Number of random subsets per size.", 5)
    two_samples: bool = option(
        "For --metric jmmd, cmmd or fid: the two files are samples, of data and of draws of a model, whose "
        "inputs may differ, as for calcheck jmmd DATA MODEL. Without it, files are models on the same rows. mcmd "
        "and mmd always compare two samples.",
        default=False,
    )
    grid: int | None = option(
        "Number of evaluation points for --metric mcmd, as for calcheck mcmd. Default: 200 for one input column."
    )
    names: tuple[str, ...] | None = option("Names of the models, e.g. a,b. Default: the file names.", metavar="NAMES")

    def __post_init__(self) -> None:
        require_count_option("subsets", self.subsets, MAX_SUBSETS)


METRIC = Group("Metric", metrics=(*METRICS, *TWO_SAMPLE_METRICS)).omit("level")
SWEEP = Study(
    "sweep",
    "Show how a metric, and the ranking of models by it, changes with its settings and the number of rows.",
    "study.run",
    arguments=(
        Argument(
            "files",
            "FILE [FILE …]",
            "Files of saved predictions on the same rows, one per model; or two samples, with --two-samples or --metric"
            " mcmd or mmd; - reads standard input.",
            list[str],
        ),
    ),
    groups=(group("Sweep", SweepOptions), METRIC, COLUMNS, *OUTPUTS),
    document="document.sweep_blocks",
    picture="document.sweep_picture",
    example="calcheck sweep a.parquet b.parquet --vary lambda=0.001..1",
)
