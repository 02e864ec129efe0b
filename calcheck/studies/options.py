"""Options that several commands share: input, rows, inference, output and computation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from calcheck.errors import OptionError
from calcheck.execution import run
from calcheck.io.column_names import ColumnOptions
from calcheck.io.object_store import TIMEOUT_SECONDS
from calcheck.options import Argument, NotNegative, flag_of, group, option, require_positive_option, share_suggestion
from calcheck.render import format_names

INPUT_FORMATS = Literal["parquet", "csv", "tsv", "arrow", "jsonl", "npy", "npz", "safetensors", "netcdf", "excel"]

OVERWRITTEN = "the name of an output file"
SUFFIXES = (
    "The file name extension selects the format: .json, .csv, .md, .tex, …, and .html a page with pictures, unless"
    " --format html asks for the table alone."
)


@dataclass(frozen=True)
class InputOptions:
    """Options for the format of the input file."""

    input_format: INPUT_FORMATS | None = option(
        "Format of FILE. Default: by the file name extension. Required for standard input."
    )
    timeout: float = option(
        "Seconds to wait for each answer of an object store, such as s3:// or gs://.",
        TIMEOUT_SECONDS,
        metavar="SECONDS",
    )


@dataclass(frozen=True)
class GroupOptions:
    """Options for groups of the rows."""

    by: tuple[str, ...] | None = option(
        "Compare groups of the rows, as calcheck slices does: sex,region or age:5. Default: all rows together.",
        metavar="COLUMNS",
    )


@dataclass(frozen=True)
class RefitOptions:
    """Options for the groups of several columns, and for metrics that are no means over rows."""

    cross: bool = option("With --by, also compare the combinations of the groups of several columns.", default=False)

    refit: bool = option(
        "With --by, compute metrics that are no means over rows, such as cce and ence, on the rows of each group"
        " alone. Default: cce has one fit to all rows, whose values are averaged in each group.",
        default=False,
    )

    def require_groups(self, by: Sequence[Any] | None) -> None:
        """Raise if an option is given, and no columns form groups."""
        for name in ("refit", "cross"):
            if getattr(self, name) and not by:
                raise OptionError(f"--{name} applies to groups: also pass the columns that form them, e.g. --by sex")


@dataclass(frozen=True)
class WeightOptions:
    """Options for sampling weights."""

    weights: str | None = option(
        "Column of sampling weights: all means over rows are weighted means, also in resamples and in replicates of a"
        " perfect model. Bins, and the shares that confidence-curve removes, are cut by rows: there, a weight of 2 is"
        " not a row twice.",
        metavar="COLUMN",
    )


@dataclass(frozen=True)
class RowOptions:
    """Options that select rows, and the evaluation points of a conditional metric."""

    subsample: int | None = option("Number of rows of FILE to use, drawn at random. Default: all rows.")
    at: str | None = option(
        "Evaluate at the inputs of another file, which needs no targets: FILE[:COLUMN], .npy or .npz.", metavar="FILE"
    )
    grid: int | None = option(
        "Evaluate at this many equally spaced points between the smallest and the largest input. For one-dimensional "
        "inputs only."
    )


@dataclass(frozen=True)
class AnyReportOptions:
    """Options for the format and the destination of a report; subclasses name the formats."""

    format: str = option("Format of the report.", "table")
    output: str | None = option(
        f"Write the report to a file instead of standard output. {SUFFIXES}",
        metavar="PATH",
        short="-o",
        by_hand=OVERWRITTEN,
        common=True,
    )
    quiet: bool = option("Omit the legend below the table.", default=False)


@dataclass(frozen=True)
class ReportOptions(AnyReportOptions):
    """Options for the format and the destination of a report of metrics."""

    format: str = option("Format of the report.", "table", choices=format_names("report"), common=True)


MOST_TOLERATED = 4  # A factor of 5; larger numbers are meant as percent


@dataclass(frozen=True)
class ToleranceOptions:
    """Options for errors that do not matter."""

    tolerance: float = option(
        "Errors that do not matter: 0.2 for intervals up to 20 % too narrow or too wide, and means off by 0.2 predicted"
        " standard deviations. The answer is YES if the errors are shown to be smaller.",
        0.2,
    )

    def __post_init__(self) -> None:
        require_positive_option("tolerance", self.tolerance)
        if self.tolerance > MOST_TOLERATED:
            hint = share_suggestion(self.tolerance)
            raise OptionError(f"--tolerance must be at most {MOST_TOLERATED}, got {self.tolerance:g}{hint}")


@dataclass(frozen=True)
class AnswerOptions(ToleranceOptions):
    """Options for the answer whether the uncertainties can be trusted."""

    groups: str | None = option(
        "Column of groups, numbers or dates along which the answer also looks for errors: by how much predictions are"
        " off from one group to another, as local-scale --along. Default in check: the column of --by, if it is one.",
        metavar="COLUMN",
    )
    power: bool = option(
        "Simulate how often faults of several kinds and sizes would make the answer NO on these rows, and show a"
        " table. Takes seconds to minutes.",
        default=False,
    )


@dataclass(frozen=True)
class NewInputsOptions(NotNegative):
    """Options for the answer about inputs without targets."""

    on: str | None = option(
        "Also answer for new inputs, which need no targets: rows of another file with the columns of --inputs or"
        " --embedding, FILE[:COLUMN]. Predictions and targets there are used, too. --pointwise then has these rows, and"
        " says which lie beyond the tested inputs.",
        metavar="FILE",
        common=True,
    )
    label: int = option(
        "Number of rows of --on whose targets would make the answer most certain, which --pointwise ranks.", 0
    )

    not_negative: ClassVar = ("label",)
    contradicting: ClassVar = frozenset({"weights"})  # Options of which rows count how much
    exclusive: ClassVar = ((frozenset({"on"}), contradicting),)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.label and self.on is None:
            raise OptionError("--label chooses rows of new inputs: also pass --on FILE")


@dataclass(frozen=True)
class PageReportOptions(AnyReportOptions):
    """Options for the format and the destination of a page."""

    format: str = option("Format of the report. Other formats are printed.", "page", choices=format_names("report"))
    output: str | None = option(
        "HTML file to write, by default report.html; - writes to standard output. Another extension selects another"
        " format, as in calcheck evaluate.",
        metavar="PATH",
        short="-o",
        by_hand=OVERWRITTEN,
        common=True,
    )


@dataclass(frozen=True)
class PageOptions:
    """Options for what a page shows."""

    plot_by: tuple[str, ...] | None = option(
        "Two columns of numbers for the map, e.g. lat,lon. Default: two inputs (those of the worst region),"
        " two principal components of an embedding, or the predicted mean and uncertainty.",
        metavar="COLUMNS",
    )
    names: tuple[str, ...] | None = option(
        "Names of the models, e.g. a,b. Default: the file names.", metavar="NAMES", common=True
    )
    validation: str | None = option(
        "Other predictions of the same model with targets. A correction is fitted to them, and the page shows FILE "
        "before and after it, as calcheck recalibrate does.",
        metavar="FILE",
        common=True,
    )


@dataclass(frozen=True)
class GateReportOptions(AnyReportOptions):
    """Options for the format and the destination of a report with rules."""

    format: str = option(
        "Format of the report. junit and github contain only the rules.",
        "table",
        choices=format_names("rules"),
        common=True,
    )


@dataclass(frozen=True)
class RuleOptions:
    """Options for rules on reports."""

    fail_on: tuple[str, ...] = option(
        "Exit with 1 if this condition is true, e.g. 'ece > 0.05', 'abs(zms.zeta) > 1', 'cce.p_value < 0.01 and input.n"
        " > 500', or of monitor, whose metrics are those of the last window, 'monitor.e_value > 20'. May be repeated. A"
        " metric name alone is its value; other fields are those of the JSON report. In check, replaces fail-on in"
        " [gates] of calcheck.toml.",
        (),
        metavar="RULE",
        repeated=True,
        common=True,
    )
    warn_on: tuple[str, ...] = option(
        "Warn if this condition is true; the exit code does not change. May be repeated. In check, replaces warn-on in"
        " [gates] of calcheck.toml.",
        (),
        metavar="RULE",
        repeated=True,
    )
    exit_zero: bool = option(
        "Exit with 0 even if rules are violated, or cannot be judged.",
        default=False,
        by_hand="the choice to ignore violated rules",
    )


@dataclass(frozen=True)
class RuleMetricOptions:
    """Options for metrics beside those in rules."""

    metrics: tuple[str, ...] | None = option(
        "Metrics to compute in addition to those in the rules, e.g. zms,rce.", metavar="NAMES"
    )
    strict: bool = option(
        "Fail on any answer but a YES that holds at every level and from row to row.", default=False, common=True
    )


@dataclass(frozen=True)
class AgainstOptions(NotNegative):
    """Options for the comparison with a baseline."""

    against: str | None = option(
        "Baseline: the predictions of another model or time, than which these must not be worse (--no-worse). Or a "
        "report (--format json, or a page of calcheck report), whose metrics are computed again with the stored "
        "options: fail if a value changed by more than the tolerance.",
        metavar="BASE",
        short="--baseline",
        common=True,
    )
    no_worse: bool = option(
        "Fail only if a value became worse, in the direction of its metric. If the predictions of the baseline "
        "have the same rows, differences are paired. Otherwise the effects of the answer and the scores must not be "
        "significantly worse, unless by less than --tolerance. With --rtol or --atol, that tolerance decides.",
        default=False,
    )
    rtol: float | None = option(
        "Relative tolerance: allowed change as a fraction of the stored value, added to --atol. Default: 0.05, or 0 "
        "with --atol."
    )
    atol: float | None = option(
        "Absolute tolerance: allowed change in the unit of the value, added to --rtol. Default: 0."
    )
    within_interval: bool = option(
        "Allow any value inside the stored interval, instead of --rtol and --atol.", default=False
    )

    not_negative: ClassVar = ("rtol", "atol")
    exclusive: ClassVar = ((frozenset({"rtol", "atol"}), frozenset({"within_interval"})),)

    @property
    def is_tolerant(self) -> bool:
        """Whether a tolerance of values is stated."""
        return self.rtol is not None or self.atol is not None

    def __post_init__(self) -> None:
        given = [
            flag_of(name) for name in ("rtol", "atol", "within_interval") if getattr(self, name) not in (None, False)
        ]
        if given and self.against is None:
            msg = f"{given[0]} sets the tolerance for a comparison with a stored report: also pass --against BASE.json"
            raise OptionError(msg)
        if self.no_worse and self.against is None:
            raise OptionError("--no-worse compares with a baseline: also pass --against BASE.json")
        if self.no_worse and self.within_interval:
            raise OptionError("--no-worse and --within-interval contradict each other: pass only one of them")
        if self.within_interval and len(given) > 1:
            raise OptionError(f"{given[0]} and --within-interval contradict each other: pass only one of them")
        super().__post_init__()


@dataclass(frozen=True)
class ConvertOptions:
    """Options for the destination of converted predictions."""

    output: str | None = option(
        "Write the predictions to a file that needs no options: .parquet, .csv, .feather or .arrow.",
        metavar="PATH",
        short="-o",
        by_hand=OVERWRITTEN,
        common=True,
    )


@dataclass(frozen=True)
class MetricSelectionOptions:
    """Options that select metrics."""

    metrics: tuple[str, ...] | None = option(
        "Metrics to compute, e.g. zms,rce. Default: all that apply to the file, without parts of pit and scores.",
        metavar="NAMES",
        common=True,
    )


@dataclass(frozen=True)
class ShownOptions(NotNegative):
    """Options for what is printed, drawn and written beside a report."""

    table: bool = option(
        "Print everything: all tables, legends and notes, instead of the first screen. Files and other formats"
        " always have everything.",
        default=False,
        short="-v",
        common=True,
    )
    summary: str | None = option(
        "Also append the report as Markdown to a file, such as $GITHUB_STEP_SUMMARY.",
        metavar="PATH",
        by_hand=OVERWRITTEN,
    )
    brief: bool = option("Show the conclusion, and a note if rows depend on each other; omit the rest.", default=False)
    pointwise: str | None = option(
        "Write the results of each row, together with the other columns of the file, to .parquet or .csv.",
        metavar="PATH",
        by_hand=OVERWRITTEN,
    )
    worst: int = option(
        "Number of rows with the largest values to list. For cce, also list this many rejected inputs, those with the "
        "smallest p-values, which are those of their neighborhoods.",
        0,
    )
    best: int = option("Number of rows with the smallest values to list.", 0)
    plot: str | None = option("Also draw a picture to a .svg, .png or .pdf file.", metavar="PATH", by_hand=OVERWRITTEN)

    not_negative: ClassVar = ("worst", "best")


@dataclass(frozen=True)
class PlotByOptions:
    """Options for the rows that a picture of a metric shows together."""

    plot_by: tuple[str, ...] | None = option(
        "Column along which --plot shows the metric, or two columns for a map. Default: the predicted standard"
        " deviation.",
        metavar="COLUMNS",
    )


@dataclass(frozen=True)
class PredictionPlotOptions:
    """Options for a picture of single predictions."""

    plot_by: str | None = option(
        "Column of numbers along which --plot also shows the predictions. Default: the input, if it is one number."
    )


FILE_TEXT = "Saved predictions: a file, a folder, or a quoted pattern; - reads standard input."
FILE = Argument("file", "FILE", FILE_TEXT)
COLUMNS = group("Columns", ColumnOptions, InputOptions)
ROWS = group("Rows", RowOptions)
WEIGHTS = group("Rows", WeightOptions)
BOOTSTRAP = group("Inference", run.BootstrapOptions)
CONFIDENCE = group("Inference", run.ConfidenceOptions)
REFERENCE = group("Inference", run.ConfidenceOptions, run.NullOptions)
SIGNIFICANCE = group("Inference", run.SignificanceOptions)
INFERENCE = group("Inference", run.BootstrapOptions, run.ConfidenceOptions, run.NullOptions, run.SignificanceOptions)
DEPENDENCE = group("Inference", run.RowDependence)
REPORT = group("Output", ReportOptions)
SHOWN = group("Output", ShownOptions)
SCREEN, PLOT, POINTWISE = SHOWN.keep("table"), SHOWN.keep("plot"), SHOWN.keep("pointwise")
SEED = group("Computation", run.SeedOptions)
ENGINE = group("Computation", run.EngineOptions)
OUTPUTS = (REPORT, PLOT, SEED, ENGINE)
SAMPLES = COLUMNS.keep("target", "embedding", "inputs", "id", "model", "filter", "nan_policy", "input_format")
"""Options about the columns of samples, which have no predictions."""


@dataclass(frozen=True)
class StateOptions:
    """Options for streaming, where memory does not grow with the number of rows and states can be merged."""

    save_state: str | None = option(
        "Read the rows in batches, and save the accumulated state to a file, which calcheck evaluate combines with "
        "other states.",
        metavar="FILE",
        by_hand=OVERWRITTEN,
    )
    settings_from: str | None = option(
        "Use the settings of a saved state, so that the two can be merged: its metrics, options, bin edges and "
        "landmarks.",
        metavar="STATE",
    )
    dask: str | None = option(
        "Process the batches on a Dask cluster: tcp://host:8786, or local:N for N processes on this machine. Requires "
        "distributed, the extra dask.",
        metavar="ADDRESS",
    )
    checkpoint: str | None = option(
        "Save the progress of this run to a file, which is removed when the run completes.",
        metavar="FILE",
        by_hand=OVERWRITTEN,
    )
    resume: bool = option("Continue an interrupted run from its --checkpoint file, if that exists.", default=False)

    def __post_init__(self) -> None:
        if self.resume and self.checkpoint is None:
            raise OptionError("--resume needs the checkpoint file of the interrupted run: also pass --checkpoint FILE")
        if self.checkpoint is not None and self.dask is not None:
            raise OptionError(
                "--checkpoint and --dask cannot be combined: a checkpoint is for a single machine, and a cluster"
                " continues when a worker fails. Omit one of them"
            )
