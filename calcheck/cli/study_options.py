"""Options of single studies."""

from __future__ import annotations

from dataclasses import dataclass

from calcheck.errors import OptionError
from calcheck.options import flag_of, option, require_count_option
from calcheck.studies.options import DISCRETISE, MAX_SUBSETS

POSITIONS = (
    "The files are a series, the undisturbed one first, at these positions, such as the strength of a disturbance: show"
    " how metrics change."
)


@dataclass(frozen=True)
class ComparisonOptions:
    """Options for the comparison of models."""

    metrics: tuple[str, ...] | None = option(
        None,
        "Metrics to compute, e.g. zms,rce. Default: all that apply to every file, without parts of pit and scores.",
        metavar="NAMES",
    )
    names: tuple[str, ...] | None = option(
        None, "Names of the models, e.g. a,b. Default: the file names.", metavar="NAMES"
    )
    by_folder: bool = option(
        default=False,
        text="The files are named DATASET/MODEL: compare the models on several data sets, side by side. Each folder"
        " has a file for every model.",
    )
    permutations: int | None = option(
        None,
        "Number of permutations of the paired permutation test, which swaps the two models row by row. It gives the"
        " p-values of metrics that are means over rows. With 0, no metric has a p-value. Default: 9999.",
    )
    positions: tuple[float, ...] | None = option(None, POSITIONS)
    discretise: bool = option(default=False, text=DISCRETISE)

    def __post_init__(self) -> None:
        for name in ("names", "by_folder", "permutations"):
            if self.positions is not None and getattr(self, name) not in (None, False):
                msg = f"{flag_of(name)} does not apply to a series of files (--positions): remove one of them"
                raise OptionError(msg)


@dataclass(frozen=True)
class TrendOptions:
    """Options for a series of files."""

    metrics: tuple[str, ...] | None = option(
        None, "Metrics to compute, e.g. cce,ece,crps. Default: all that apply to the first file.", metavar="NAMES"
    )
    positions: tuple[float, ...] | None = option(None, f"{POSITIONS} Default: 0,1,2,….")
    discretise: bool = option(default=False, text=DISCRETISE)


@dataclass(frozen=True)
class GroupOptions:
    """Options for groups of the rows."""

    by: tuple[str, ...] | None = option(
        None,
        "Compare groups of the rows, as calcheck slices does: sex,region or age:5. Default: all rows together.",
        metavar="COLUMNS",
    )


@dataclass(frozen=True)
class RefitOptions:
    """Option for metrics of groups that are no means over rows."""

    refit: bool = option(
        default=False,
        text="With --by, compute metrics that are no means over rows, such as cce and ence, on the rows of each group"
        " alone. Default: cce has one fit to all rows, whose values are averaged in each group.",
    )


@dataclass(frozen=True)
class SliceOptions:
    """Options for slices of the rows."""

    by: tuple[str, ...] | None = option(
        None,
        "Columns that form groups, and their combinations: sex,region. Numbers are cut into quantile bins, age:5, or at"
        " edges, age:30/50/70; dates by period, date:month. mean and std are the predicted ones. Default: regions are"
        " searched.",
        metavar="COLUMNS",
    )
    metrics: tuple[str, ...] | None = option(
        None,
        "Metrics by group, which must be means over rows, or cce, unless --refit; or metrics that describe regions. "
        "Default: bias, pit-dispersion, coverage and zms.",
        metavar="NAMES",
    )


@dataclass(frozen=True)
class SweepOptions:
    """Options for a sweep over settings."""

    vary: tuple[str, ...] = option(
        (),
        "Setting to vary and its values, e.g. draws=1,2,5, or a log-spaced range of 7 values, lambda=0.001..1, or of 4 "
        "values, gamma-y=0.1..10:4. NAME is an option of the metric, or subsample for random subsets of the rows, "
        "subsample=25%,50%,500. May be repeated.",
        metavar="NAME=VALUES",
        repeated=True,
    )
    metric: str = option("cce", "Metric to compute.", metavar="NAME")
    all_combinations: bool = option(
        default=False, text="Compute all combinations of the values, instead of varying one setting at a time."
    )
    subsets: int = option(5, "Number of random subsets per size.")
    two_samples: bool = option(
        default=False,
        text="For --metric jmmd, cmmd or fid: the two files are samples, of data and of draws of a model, whose "
        "inputs may differ, as for calcheck jmmd DATA MODEL. Without it, files are models on the same rows. mcmd "
        "and mmd always compare two samples.",
    )
    grid: int | None = option(
        None, "Number of evaluation points for --metric mcmd, as for calcheck mcmd. Default: 200 for one input column."
    )
    names: tuple[str, ...] | None = option(
        None, "Names of the models, e.g. a,b. Default: the file names.", metavar="NAMES"
    )

    def __post_init__(self) -> None:
        require_count_option("subsets", self.subsets, MAX_SUBSETS)
