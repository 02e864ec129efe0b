"""Names of columns: as the user states them, and those known by default."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from calcheck.core.filter_conditions import Condition
from calcheck.distributions import CONVENTIONS
from calcheck.errors import OptionError
from calcheck.options import option, require_positive_option, require_share_option

INPUTS = ("embedding", "inputs")  # Options that name the inputs
TARGETS = ("y", "y_true", "target", "observed", "observation", "oracle_value")
MEANS = ("mean", "y_pred", "y_preds", "pred", "prediction")
STDS = ("std", "sigma", "y_std", "pred_uct", "uE")
OTHER_NAMES = {
    "target": ("y_test", "actual", "actuals", "ground_truth", "obs", "measured", "truth"),
    "mean": (
        *("mu", "y_mean", "yhat", "y_hat", "predicted", "predictions", "fit", "Estimate"),
        *(".pred", "Point Forecast", "Point.Forecast", "forecast"),
    ),
    "std": (
        *("sd", "y_sd", "std_dev", "stddev", "pred_std", "y_pred_std", "y_hat_std", "pred_sd", "prediction_std"),
        *("forecast_std", "forecast_sd", "predicted_std", "predicted_sd"),
    ),
}  # Names of columns by role that are looked for after those above
VARIANCES = ("variance", "var", "y_var", "pred_var")  # Names of variances that are looked for after all of the std
ERROR, RENAMED = "error", "_given"  # Suffix of columns in written files whose own name plays a role there
STD_WORDS = frozenset({"std", "sd", "sigma", "stddev", "stdev"})
MEAN_WORDS = frozenset(
    ["pred", "predicted", "prediction", "forecast", "mean", "mu", "hat", "yhat", "fit", "fitted", "estimate"]
)
TARGET_WORDS = frozenset(("true", "truth", "actual", "obs", "observed", "measured", "target", "label", "outcome"))
SPREADS = ("std", "var", "log_std", "log_var")
_SPREAD = frozenset(SPREADS)


@dataclass(frozen=True)
class ColumnOptions:
    """Options for the columns of a file."""

    exclusive: ClassVar = (
        (
            _SPREAD | {"mean", "min_std", "error_dist"},
            frozenset({"dist", "param"}),
            frozenset({"samples"}),
            frozenset({"quantiles"}),
        ),
        *(
            (frozenset({"lower", "upper", "intervals"}), frozenset({other}))
            for other in (*SPREADS, "min_std", "error_dist", "dist", "param", "samples", "quantiles")
        ),
        (frozenset({"lower", "upper"}), frozenset({"intervals"})),
        tuple(frozenset({name}) for name in SPREADS),
        (frozenset({"error"}), frozenset({"target", "mean", "truth", "join_on"})),
        (frozenset({"target"}), frozenset({"truth", "join_on"})),
        (frozenset({"embedding"}), frozenset({"inputs"})),
    )  # Options that contradict each other

    target: str | None = option(
        f"Column of targets, or several: y1,y2. Default: {', '.join(TARGETS)}.", metavar="COLUMN", common=True
    )
    error: str | None = option(
        "Column of errors y - mean, instead of targets and means. Default: error, if there are no targets and means.",
        metavar="COLUMN",
    )
    mean: str | None = option(
        f"Column of predictive means. Default: {', '.join(MEANS)}.", metavar="COLUMN", common=True
    )
    std: str | None = option(
        f"Column of standard deviations. Default: {', '.join(STDS)}.", metavar="COLUMN", common=True
    )
    var: str | None = option("Column of variances, instead of --std.", metavar="COLUMN")
    log_std: str | None = option("Column of log standard deviations, instead of --std.", metavar="COLUMN")
    log_var: str | None = option("Column of log variances, instead of --std.", metavar="COLUMN")
    dist: str | None = option(
        f"Family of distributions given by their parameters: {', '.join(CONVENTIONS)}. normal is gaussian.",
        metavar="FAMILY[:CONVENTION]",
    )
    param: tuple[str, ...] = option(
        "Column of a parameter of --dist, as in rate=lam; can be repeated.", (), metavar="NAME=COLUMN", repeated=True
    )
    samples: str | None = option(
        "Columns of samples as a pattern ('s*'), or a column of lists. Default: sample_0, sample_1, …, or samples.",
        metavar="COLUMNS",
    )
    quantiles: str | None = option(
        "Columns of quantiles as a pattern ('q_*'), with levels in their names. Default: q_0.05, …, or 0.05, ….",
        metavar="COLUMNS",
    )
    lower: str | None = option(
        "Columns of lower limits of prediction intervals: lower, or one for each level. Default: lower, lo, y_lower, "
        "pi_lower_90, obs_ci_lower, yhat_lower, ….",
        metavar="COLUMNS",
    )
    upper: str | None = option(
        "Columns of upper limits, in the order of --lower. Default: upper, hi, y_upper, ….", metavar="COLUMNS"
    )
    intervals: str | None = option(
        "Column of lists with both limits, shape (2, k) for k levels, instead of --lower and --upper. Default: y_pis, "
        "or intervals.",
        metavar="COLUMN",
    )
    level: tuple[float, ...] = option(
        "Levels of prediction intervals, such as 0.9, if they are not in the column names; or those to use.", ()
    )
    embedding: str | None = option(
        "Embedding of the inputs: a column of lists, columns as a pattern ('emb_*'), or another file (FILE[:COLUMN], "
        ".npy, .npz), joined by id if both files have it, else row by row. Default: embedding, or emb_0, emb_1, ….",
        metavar="COLUMNS|FILE",
        common=True,
    )
    inputs: str | None = option(
        "Columns of low-dimensional inputs, instead of an embedding: x1,x2. A column of text is one of categories. "
        "Default: input_0, input_1, ….",
        metavar="COLUMNS",
        common=True,
    )
    id: str | None = option("Column of row keys. Default: id.", metavar="COLUMN")
    truth: str | None = option(
        "Targets in another file, joined by --join-on, else row by row; FILE:COLUMN names their column.",
        metavar="FILE[:COLUMN]",
    )
    join_on: str | None = option(
        "Key columns of both files: a,b, or a=b if the key is a in FILE and b in --truth. Default: the key columns that"
        " both files have, and the date of the observation.",
        metavar="COLUMNS",
    )
    model: str | None = option(
        "Model to use if the file has several, as named in a column of models or as a prefix of column names; all uses"
        " the rows of all models.",
        metavar="NAME",
    )
    filter: tuple[str, ...] = option(
        "Use only rows with this value in a column, as in sex=f, or on one side of it, as in 'age>60'; can be"
        " repeated. It selects among predictions; rows of --on are all used.",
        (),
        metavar="COLUMN=VALUE",
        repeated=True,
    )
    error_dist: Literal["normal", "t6"] | None = option(
        "Error distribution, if the file has only means or errors with standard deviations: normal, or Student-t with 6"
        " degrees of freedom. By default, means imply a normal distribution; for errors it is unknown, and verdicts"
        " that depend on it are omitted."
    )
    only: str | None = option("The only one of several targets to use: y_2.", metavar="TARGET")
    min_std: float | None = option("Minimum standard deviation: smaller values are raised to it.")
    target_std: str | None = option(
        "Standard deviation of the measurement errors of targets, which are part of what is observed, and not of what"
        " is predicted. This and the next two: one for all targets, or one for each, separated by commas.",
        metavar="COLUMN|NUMBER",
    )
    clip: str | None = option(
        "Limits at which observed targets are clipped, after measurement errors: 0,5, or ,5 for an upper limit only;"
        " also columns. Also for detection limits.",
        metavar="LOW,HIGH",
    )
    rounded: str | None = option(
        "Step to whose multiples observed targets are rounded, at last.", metavar="COLUMN|NUMBER"
    )
    crossing: Literal["raise", "sort"] = option(
        "Rows whose quantiles cross: raise an error, or sort the quantiles and report how many rows.", "raise"
    )
    nan_policy: Literal["raise", "omit"] = option(
        "Rows with missing numbers: raise an error, or omit them and report how many.", "raise"
    )

    def __post_init__(self) -> None:
        require_positive_option("min_std", self.min_std)
        spreads = [name for name in SPREADS if getattr(self, name)]
        if len(spreads) > 1:
            raise OptionError(f"pass only one of {', '.join('--' + name.replace('_', '-') for name in spreads)}")
        if self.error and (self.target or self.mean):
            raise OptionError("--error replaces --target and --mean. Pass --error, or the other two")
        given = self._forms()
        if len(given) > 1:
            raise OptionError(f"{' and '.join(given)} both describe the predictions. Pass only one")
        self._check_joins()
        self._check_intervals()
        if self.embedding and self.inputs:
            raise OptionError("--embedding and --inputs both set what calibration is conditioned on. Pass only one")
        without_std = [name for name in given if not name.endswith("--std")]
        if self.min_std is not None and without_std:
            raise OptionError(f"--min-std raises standard deviations, but {without_std[0]} has none")
        if self.error_dist is not None and without_std:
            raise OptionError(f"--error-dist applies to means and standard deviations, not to {without_std[0]}")
        if self.clip is not None and self.clip.count(",") % 2 != 1:
            raise OptionError(f"--clip takes two limits, of which one may be empty: 0,5 or ,5. Got {self.clip!r}")
        if self.param and not self.dist:
            raise OptionError("--param needs --dist, which defines the parameters")

    def _forms(self) -> list[str]:
        """Return the given options that specify the form of the predictions; --error with --dist counts as one."""
        spread = any(getattr(self, name) for name in SPREADS)
        limits = self.lower or self.upper or self.intervals
        gaussian = (self.mean and not limits) or spread or (self.error and not self.dist)
        forms = {
            "--dist": self.dist,
            "--samples": self.samples,
            "--quantiles": self.quantiles,
            "--intervals": self.intervals,
            "--lower and --upper": self.lower or self.upper,
            "--error and --std" if self.error else "--mean and --std": gaussian,
        }
        return [name for name, value in forms.items() if value]

    @property
    def input_names(self) -> tuple[str, ...]:
        """The named columns of inputs."""
        return tuple(part.strip() for part in self.inputs.split(",")) if self.inputs else ()

    @property
    def names_form(self) -> bool:
        """Whether an option specifies the form of the predictions, so that it is not inferred."""
        return bool(self._forms())

    def _check_intervals(self) -> None:
        for level in self.level:
            require_share_option("level", level)
        if len(set(self.level)) < len(self.level):
            raise OptionError(f"--level names a level twice: {', '.join(f'{level:g}' for level in self.level)}")
        if bool(self.lower) != bool(self.upper):
            there, missing = ("--lower", "--upper") if self.lower else ("--upper", "--lower")
            raise OptionError(f"{there} names one side of the intervals. Pass {missing} too")

    def _check_joins(self) -> None:
        for text in self.filter:
            Condition.parse(text)
        if self.truth and (self.target or self.error):
            raise OptionError(f"--truth replaces --{'target' if self.target else 'error'}. Pass only one")
        if self.join_on and not self.truth:
            raise OptionError("--join-on joins the rows of --truth. Pass --truth too")
