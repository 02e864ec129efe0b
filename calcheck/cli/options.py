"""Options that commands share: how results are shown, and how computations run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from calcheck.errors import OptionError
from calcheck.options import flag_of, option, require_count_option

FORMAT_NAMES = Literal["table", "json", "jsonl", "csv", "markdown"]
GATE_FORMAT_NAMES = Literal["table", "json", "jsonl", "csv", "markdown", "junit", "github"]
COMPARISON_FORMAT_NAMES = Literal["table", "json", "jsonl", "csv", "markdown", "latex"]
DIFF_FORMAT_NAMES = Literal["table", "json", "markdown"]
INPUT_FORMATS = Literal["parquet", "csv", "tsv", "arrow", "jsonl", "npy", "npz", "safetensors", "netcdf"]

OVERWRITTEN = "what is overwritten"
MOST_REPEATS = 10_000  # more would tell nothing more


@dataclass(frozen=True)
class InputOptions:
    """What a command reads besides its columns."""

    input_format: INPUT_FORMATS | None = option(
        None, "Format of FILE where its name does not tell; needed for standard input."
    )


@dataclass(frozen=True)
class RowOptions:
    """Which rows a metric uses."""

    subsample: int | None = option(None, "Use so many rows of FILE, chosen at random.")


@dataclass(frozen=True)
class EvaluationPointsOptions:
    """Where a metric is evaluated that has a value at each input."""

    at: str | None = option(
        None,
        "Evaluate at the inputs of another file, no targets needed: FILE[:COLUMN], .npy or .npz.",
        metavar="FILE",
    )


@dataclass(frozen=True)
class ReportOptions:
    """How the report is shown, and where."""

    format: FORMAT_NAMES = option("table", "Format of the report.")
    output: str | None = option(
        None, "Write the report to a file in place of standard output.", metavar="PATH", short="-o", by_hand=OVERWRITTEN
    )


@dataclass(frozen=True)
class GateReportOptions:
    """How a report with gates is shown, and where."""

    format: GATE_FORMAT_NAMES = option("table", "Format of the report; junit and github show the rules only.")
    output: str | None = option(
        None, "Write the report to a file in place of standard output.", metavar="PATH", short="-o", by_hand=OVERWRITTEN
    )


@dataclass(frozen=True)
class ComparisonReportOptions:
    """How a comparison is shown, and where."""

    format: COMPARISON_FORMAT_NAMES = option("table", "Format of the report.")
    output: str | None = option(
        None, "Write the report to a file in place of standard output.", metavar="PATH", short="-o", by_hand=OVERWRITTEN
    )


@dataclass(frozen=True)
class DiffReportOptions:
    """How the changes between two reports are shown, and where."""

    format: DIFF_FORMAT_NAMES = option("table", "Format of the changes.")
    output: str | None = option(
        None, "Write them to a file in place of standard output.", metavar="PATH", short="-o", by_hand=OVERWRITTEN
    )


AnyReportOptions = ReportOptions | GateReportOptions | ComparisonReportOptions | DiffReportOptions


@dataclass(frozen=True)
class SummaryOptions:
    """Where the report goes besides."""

    summary: str | None = option(
        None,
        "Append the report as Markdown to a file too, as to $GITHUB_STEP_SUMMARY.",
        metavar="PATH",
        by_hand=OVERWRITTEN,
    )


@dataclass(frozen=True)
class RuleOptions:
    """What must not be."""

    fail_on: tuple[str, ...] = option(
        (),
        "What must not be, as in 'ece > 0.05', 'abs(zms.zeta) > 1' or 'cce.p_value < 0.01 and input.n > 500'; may be "
        "repeated. A metric's name means its value; fields are those of the JSON report. Replaces fail-on in [gates] "
        "of calcheck.toml.",
        metavar="RULE",
    )
    warn_on: tuple[str, ...] = option(
        (), "The same, but shown only. Replaces warn-on in [gates] of calcheck.toml.", metavar="RULE"
    )
    metrics: str | None = option(
        None, "Metrics to compute besides those that rules name, as in zms,rce.", metavar="NAMES"
    )
    exit_zero: bool = option(
        default=False, text="Exit with 0 where rules are violated too.", by_hand="whether violated rules count"
    )


@dataclass(frozen=True)
class AgainstOptions:
    """What a report is compared with."""

    against: str | None = option(
        None,
        "A stored report (--format json): its metrics are computed again, with their stored options, and must not have "
        "changed.",
        metavar="BASE.json",
    )
    rtol: float | None = option(
        None, "Change that passes, as a share of the stored value, plus --atol. Default: 0.05, or 0 with --atol."
    )
    atol: float | None = option(None, "Change that passes, in the unit of the value, plus --rtol. Default: 0.")
    within_interval: bool = option(
        default=False, text="A change passes inside the stored interval, in place of --rtol."
    )

    def __post_init__(self) -> None:
        given = [
            flag_of(name) for name in ("rtol", "atol", "within_interval") if getattr(self, name) not in (None, False)
        ]
        if given and self.against is None:
            msg = f"{given[0]} says how much may change: give a stored report too, --against BASE.json"
            raise OptionError(msg)
        if self.within_interval and len(given) > 1:
            msg = f"{given[0]} and --within-interval contradict each other: give one"
            raise OptionError(msg)
        for name in ("rtol", "atol"):
            if (getattr(self, name) or 0) < 0:
                msg = f"{flag_of(name)} must be >= 0, got {getattr(self, name)}"
                raise OptionError(msg)


@dataclass(frozen=True)
class ConvertOptions:
    """Where converted predictions go."""

    output: str = option(
        "",
        "Where they go: .parquet, .csv, .feather or .arrow. Needed.",
        metavar="PATH",
        short="-o",
        by_hand=OVERWRITTEN,
    )


@dataclass(frozen=True)
class PointwiseOptions:
    """What is written of each row."""

    pointwise: str | None = option(
        None,
        "Write what is said of each row, with the row's other columns, as .parquet or .csv.",
        metavar="PATH",
        by_hand=OVERWRITTEN,
    )


@dataclass(frozen=True)
class WorstBestOptions:
    """Which rows are listed."""

    worst: int = option(
        0,
        "List so many rows with the largest values; for cce, also the clearest of the incongruent inputs: smallest p.",
    )
    best: int = option(0, "List so many rows with the smallest values.")

    def __post_init__(self) -> None:
        for name in ("worst", "best"):
            if getattr(self, name) < 0:
                msg = f"--{name} must be >= 0, got {getattr(self, name)}"
                raise OptionError(msg)


@dataclass(frozen=True)
class BootstrapOptions:
    """How intervals are made."""

    resamples: int | None = option(
        None,
        "Resamples of the bootstrap. Default: 10000, or 1000 for metrics of many columns; more while a verdict hangs.",
    )
    no_bootstrap: bool = option(default=False, text="No intervals by resampling.")


@dataclass(frozen=True)
class NullOptions:
    """How a metric is compared with what a perfect model scores."""

    confidence: float = option(0.95, "Confidence of intervals and verdicts.")
    replicates: int | None = option(
        None,
        "Draw the targets anew from the predictions so many times: what a perfect model scores on these rows."
        " Default: 199, and up to 9999 while the verdict is open; 1999 for cce, which tests each input, up to 2048 rows"
        " and inputs; 39 for distributions that do not fit in memory and for sums; from a million rows on 59 at first.",
        metavar="INT",
    )
    no_null: bool = option(default=False, text="Simulate nothing: verdicts by zeta, where that is fit.")


@dataclass(frozen=True)
class ComparedNullOptions(NullOptions):
    """The same, where models are compared with each other."""

    replicates: int | None = option(
        None,
        "Draw the targets anew from the predictions so many times, and add to the JSON of each model what a perfect one"
        " scores. Default: 199 where that ranks the models (zms of samples), none else.",
        metavar="INT",
    )


@dataclass(frozen=True)
class PermutationOptions:
    """How two samples are compared with samples of equal distributions."""

    confidence: float = option(0.95, "Confidence of verdicts.")
    permutations: int | None = option(
        None, "Exchange rows of the two files so many times, as if their distributions were equal. Default: 199."
    )
    no_null: bool = option(default=False, text="Exchange nothing: no verdict.")


@dataclass(frozen=True)
class SignificanceOptions:
    """Which inputs are called incongruent."""

    fdr: float = option(0.05, "Share of the inputs called incongruent that may be so by chance.")


@dataclass(frozen=True)
class MetricSelectionOptions:
    """Which metrics are computed."""

    metrics: str | None = option(None, "Metrics to compute, as in zms,rce. Default: all that apply.", metavar="NAMES")


@dataclass(frozen=True)
class ComparisonOptions:
    """Which models are compared, and how."""

    metrics: str | None = option(
        None, "Metrics to compute, as in zms,rce. Default: all that apply to every file.", metavar="NAMES"
    )
    names: str | None = option(None, "What the models are called, as in a,b. Default: as their files.", metavar="NAMES")
    permutations: int | None = option(
        None,
        "Random swaps of the models, row by row, for the p-value of metrics that are means over rows; 0 for no p-value"
        " of any. Default: 9999.",
    )


@dataclass(frozen=True)
class PruneOptions:
    """What is removed."""

    metrics: str = option("zms,rce", "Metrics to compute.", metavar="NAMES")
    max_percent: float = option(10.0, "Largest share of the rows to remove, in percent.")
    step: float = option(1.0, "Steps from 0 to there, in percent.")


@dataclass(frozen=True)
class RejectOptions:
    """What is rejected, and by what."""

    criteria: str | None = option(
        None,
        "What is large where predictions are rejected: cce, std, random, or columns of numbers. "
        "Default: cce where there are inputs, std, random.",
        metavar="NAMES",
    )
    metrics: str | None = option(
        None, "Errors to show, means over rows. Default: mae, rmse, and nll where there is one.", metavar="NAMES"
    )
    step: float = option(10.0, "Steps in which rows are rejected, in percent.")
    max_percent: float = option(90.0, "Largest share of the rows to reject, in percent.")
    coverage: float | None = option(
        None, "Show the thresholds that keep at least this share of the rows, as in 0.9.", metavar="SHARE"
    )


@dataclass(frozen=True)
class SweepOptions:
    """What is varied."""

    vary: tuple[str, ...] = option(
        (),
        "What is varied, and its values: draws=1,2,5, a range of 7 values at equal ratios, lambda=0.001..1, or of 4, "
        "gamma-y=0.1..10:4. Options of the metric, or the rows, at random: subsample=25%,50%,500. May be repeated.",
        metavar="NAME=VALUES",
    )
    metric: str = option("cce", "Metric to compute.", metavar="NAME")
    all_combinations: bool = option(default=False, text="Combine all values, in place of one setting at a time.")
    subsets: int = option(5, "Random subsets of each size.")
    names: str | None = option(None, "What the models are called, as in a,b. Default: as their files.", metavar="NAMES")

    def __post_init__(self) -> None:
        require_count_option("subsets", self.subsets, MOST_REPEATS)


@dataclass(frozen=True)
class OtherInputsOptions:
    """Which rows are rejected."""

    new: str | None = option(
        None,
        "Reject the predictions of another file, which has targets too; FILE then tells cce at its inputs. "
        "FILE[:COLUMN], a column of embeddings.",
        metavar="FILE",
    )


@dataclass(frozen=True)
class GridOptions:
    """Where two samples are compared."""

    grid: int | None = option(
        None,
        "Evaluate at so many inputs from the least to the largest of both files. Default: 200, for inputs of one "
        "number.",
    )
    at: str | None = option(
        None,
        "Evaluate at the inputs of a file, A itself or another, no targets needed: FILE[:COLUMN], .npy or .npz. "
        "Default: A, for inputs of several numbers.",
        metavar="FILE",
    )


@dataclass(frozen=True)
class PlotOptions:
    """A plot beside the report."""

    plot: str | None = option(
        None, "Draw a plot too: .svg, .png or .pdf. Needs the extra plot.", metavar="PATH", by_hand=OVERWRITTEN
    )


@dataclass(frozen=True)
class SeedOptions:
    """What makes random choices repeatable."""

    seed: int = option(0, "Seed of all random choices.")


@dataclass(frozen=True)
class EngineOptions:
    """How kernel computations run; none of it changes results beyond rounding."""

    device: str | None = option(
        None, "Compute with torch on a device: cpu, cuda, cuda:1, mps. Default: numpy.", metavar="DEVICE"
    )
    precision: Literal["float64", "float32"] = option("float64", "Precision of kernel computations.")
    memory: str | None = option(
        None, "Memory for large arrays, as 800MB or 2GiB. Default: 4GiB, or half of the machine's.", metavar="SIZE"
    )
