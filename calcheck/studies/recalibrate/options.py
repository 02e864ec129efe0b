"""Options of `calcheck recalibrate`: how a correction is fitted, and the files that it reads and writes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from calcheck.errors import OptionError
from calcheck.execution.run import RowDependence
from calcheck.options import group, option
from calcheck.recalibration.cross_validation import Form, Score
from calcheck.recalibration.features import PREDICTED
from calcheck.recalibration.methods import AUTO, NONE, STEPS, FitOptions, Method
from calcheck.studies import Study
from calcheck.studies.options import COLUMNS, ENGINE, FILE, INFERENCE, OVERWRITTEN, PLOT, REPORT, SCREEN, SEED

MIN_FOLDS, MOST_FOLDS = 2, 100
EXPORTS = (".json", ".py", ".sql")


@dataclass(frozen=True)
class RecalibrationOptions:
    """Options of a recalibration study."""

    method: str = option(
        f"Method: {', '.join((AUTO, NONE, *STEPS))}, or steps in order, joined by +, such as bias+local+pit. auto "
        "chooses by cross-validation.",
        AUTO,
        metavar="NAME",
        common=True,
    )
    by: tuple[str, ...] | None = option(
        "What bias and local depend on: columns of the file, and std and mean for the predicted ones. Text is a group; "
        "numbers have a spline. Default: those of all columns, or of --inputs, on which errors depend.",
        metavar="COLUMNS",
        common=True,
    )
    form: Form | None = option(
        "same: only methods that keep the form of the predictions; quantiles: methods that write quantiles are no last "
        "resort. Default: these must be clearly better.",
        common=True,
    )
    folds: int = option("Number of folds of the cross-validation.", 5)
    cluster: str | None = option("Column whose groups stay in one fold, such as patients.", metavar="COLUMN")
    block: int | None = option(
        "Rows are a series: number of consecutive rows that depend on each other, or of times with --time. Folds are"
        " blocks of rows in their order.",
        metavar="LENGTH",
    )
    time: str | None = option("Column of times: folds are blocks of time.", metavar="COLUMN")
    score: Score = option("Score by which methods are compared.", "crps")
    bins: int = option("Number of bins of bvs.", 20)
    levels: tuple[float, ...] = option(
        "Levels of the intervals that conformal makes of distributions.", (0.5, 0.8, 0.9, 0.95), metavar="SHARES"
    )
    relative: bool = option(
        "Move the limits of conformal intervals by shares of their widths, not by one amount.", default=False
    )

    def __post_init__(self) -> None:
        if not MIN_FOLDS <= self.folds <= MOST_FOLDS:
            raise OptionError(f"--folds must be between {MIN_FOLDS} and {MOST_FOLDS}, got {self.folds}")
        self.dependence  # noqa: B018 - raises
        if self.bins < 1:
            raise OptionError(f"--bins must be at least 1, got {self.bins}")
        if self.by == ():
            raise OptionError("--by needs at least one column")
        if not self.levels or not all(0 < level < 1 for level in self.levels):
            raise OptionError("--levels must lie strictly between 0 and 1")
        if self.method != AUTO:
            Method.parse(self.method)
            if self.form is not None:
                raise OptionError("--form restricts the choice among methods, and --method names one: pass only one")

    @property
    def dependence(self) -> RowDependence:
        """Which rows depend on each other."""
        return RowDependence(cluster=self.cluster, block=self.block, time=self.time)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns to read, besides targets and predictions."""
        named = (name for name in self.by or () if name not in PREDICTED)
        return tuple(dict.fromkeys((*named, *self.dependence.columns)))

    def fit_options(self, seed: int, tried: Sequence[str]) -> FitOptions:
        """Return the options of the fits; ``tried`` are the columns on which errors may depend, if none are named."""
        chosen = {"by": tuple(tried), "selects": True} if self.by is None else {"by": self.by}
        return FitOptions(**chosen, bins=self.bins, levels=self.levels, relative=self.relative, seed=seed)


@dataclass(frozen=True)
class CorrectionOptions:
    """Options for the files of ``calcheck recalibrate``."""

    to: str | None = option(
        "Predictions to correct, other rows than those of FILE: a file with the same columns. With targets, they are "
        "judged before and after.",
        metavar="FILE",
        common=True,
    )
    on: str | None = option(
        "Fit and choose the correction for new inputs: rows have weights as among those of another file with the"
        " columns of --inputs or --embedding, FILE[:COLUMN], which needs no targets.",
        metavar="FILE",
        common=True,
    )
    corrected: str | None = option(
        "Write the corrected predictions of --to, or else of FILE, each row corrected by a fit to the other folds:"
        " .parquet, .csv, .feather or .arrow.",
        metavar="PATH",
        short="-o",
        by_hand=OVERWRITTEN,
        common=True,
    )
    export: str | None = option(
        "Write the fitted correction: .json, to be applied with --map; or, for normal predictions, .py, a function that"
        " needs numpy only, or .sql, a query.",
        metavar="PATH",
        by_hand=OVERWRITTEN,
        common=True,
    )
    map: str | None = option(
        "Apply a stored correction to FILE, instead of fitting one.",
        metavar="MAP.json",
        by_hand="a fitted file",
        common=True,
    )

    def __post_init__(self) -> None:
        if self.export is not None and Path(self.export).suffix not in EXPORTS:
            raise OptionError(f"--export must end in {', '.join(EXPORTS)}, which selects the format, got {self.export}")
        if self.map is not None and (self.to is not None or self.export is not None):
            other = "--to" if self.to is not None else "--export"
            raise OptionError(f"--map applies a stored correction, and {other} needs a new one: pass only one of them")
        if self.map is not None and self.on is not None:
            raise OptionError("--map applies a stored correction, and --on fits one: pass only one of them")


OPTIONS = group("Correction", RecalibrationOptions, CorrectionOptions)
RECALIBRATE = Study(
    "recalibrate",
    """Find which correction of the uncertainties helps, and apply it to other predictions.

    Corrections are compared by cross-validation on FILE: each row is scored after a fit to the other folds. "none",
    leaving the predictions as they are, wins where nothing helps. Before and after are shown on rows that were not
    used to fit.
    """,
    "study.run",
    arguments=(FILE,),
    groups=(OPTIONS, COLUMNS, INFERENCE, REPORT.omit("output"), SCREEN, PLOT, SEED, ENGINE),
    document="document.recalibration_blocks",
    screen="document.recalibration_screen",
    picture="document.recalibration_picture",
    each_target=True,
    together="study.mend_together",
    example="calcheck recalibrate val.parquet --to test.parquet -o corrected.parquet",
)
