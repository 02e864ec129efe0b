"""Options of `calcheck reject`: which predictions are rejected, and what is computed on the rest."""

from dataclasses import dataclass

from calcheck.options import Group, group, option
from calcheck.studies import Study, Variant
from calcheck.studies.options import COLUMNS, DEPENDENCE, ENGINE, FILE, INFERENCE, PLOT, REPORT, SEED


@dataclass(frozen=True)
class RejectOptions:
    """Options for the rejection of predictions."""

    criteria: tuple[str, ...] | None = option(
        "Criteria: predictions with the largest values are rejected first. cce, std, random, or numeric columns. "
        "Default: std, random, and cce if there are inputs.",
        metavar="NAMES",
    )
    metrics: tuple[str, ...] | None = option(
        "Error metrics, which must be means over rows unless --refit. Default: mae, rmse, and nll if it applies; zms"
        " and rce with --refit.",
        metavar="NAMES",
    )
    refit: bool = option(
        "Compute any metrics, such as ence, on the remaining rows alone, as the rows with the largest predicted"
        " standard deviations are rejected.",
        default=False,
    )
    step: float | None = option(
        "Step size of the rejected fraction, in percent of the rows. Default: 10, or 1 with --refit."
    )
    max_percent: float | None = option("Maximum percentage of the rows to reject. Default: 90, or 10 with --refit.")
    coverage: float | None = option(
        "Show the thresholds that keep at least this fraction of the rows, e.g. 0.9.", metavar="SHARE"
    )

    new: str | None = option(
        "Reject the predictions of this second file, which needs targets too. cce is then fitted on FILE and evaluated "
        "at the inputs of the second file. Format: FILE[:COLUMN], where COLUMN holds embeddings.",
        metavar="FILE",
    )


@dataclass(frozen=True)
class PruneOptions:
    """Options for the removal of rows with large uncertainties."""

    metrics: tuple[str, ...] | None = option("Metrics to compute. Default: zms,rce.", metavar="NAMES")
    max_percent: float | None = option("Maximum percentage of the rows to remove. Default: 10.")
    step: float | None = option("Step size from 0 to --max-percent, in percent of the rows. Default: 1.")


FURTHER = (COLUMNS, INFERENCE, DEPENDENCE, REPORT, PLOT, SEED, ENGINE)
REJECT = Study(
    "reject",
    "Show the error of the retained predictions as those with the largest cce or std are rejected.",
    "study.run",
    arguments=(FILE,),
    groups=(group("Rejection", RejectOptions), Group("Criterion cce", metrics=("cce",)), *FURTHER),
    variants={"refit": Variant("prune", "metrics of the remaining rows (--refit)")},
    document="document.rejection_blocks",
    picture="document.rejection_picture",
    each_target=True,
    example="calcheck reject val.parquet --new test.parquet --coverage 0.9",
)
PRUNE = Study(
    "prune",
    "Show how metrics change as the rows with the largest uncertainties are removed.",
    "study.run_prune",
    arguments=(FILE,),
    groups=(group("Removal", PruneOptions), *FURTHER),
    picture="document.prune_picture",
    each_target=True,
    example="calcheck reject preds.parquet --refit --metrics zms,rce",
)
