"""What the user says about columns, and the names that are known without being told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from calcheck.errors import OptionError
from calcheck.options import option, require_positive_option

TARGETS = ("y", "y_true", "target", "observed", "observation", "oracle_value")
MEANS = ("mean", "y_pred", "y_preds", "pred", "prediction")
STDS = ("std", "sigma", "y_std", "pred_uct", "uE")
ERROR = "error"
SPREADS = ("std", "var", "log_std", "log_var")
DISTS = (  # as in calcheck.predictive.CONVENTIONS, which takes numpy to import; a test compares them
    "gaussian",
    "laplace",
    "student-t",
    "nig",
    "cauchy",
    "lognormal:scipy",
    "lognormal:torch",
    "gamma:scipy",
    "gamma:torch",
    "mixture",
    "mixture:logits",
    "poisson",
    "nbinom:torch",
    "nbinom:logits",
    "nbinom:scipy",
    "nbinom:mu-alpha",
    "nbinom:pymc",
    "double-poisson",
)


@dataclass(frozen=True)
class ColumnOptions:
    """What the user says about the columns of a file."""

    target: str | None = option(
        None, f"Column of targets, or several: y1,y2. Default: {', '.join(TARGETS)}.", metavar="COLUMN"
    )
    error: str | None = option(
        None,
        "Column of errors y - mean, in place of targets and means. Default: error, where there are none.",
        metavar="COLUMN",
    )
    mean: str | None = option(None, f"Column of predictive means. Default: {', '.join(MEANS)}.", metavar="COLUMN")
    std: str | None = option(None, f"Column of standard deviations. Default: {', '.join(STDS)}.", metavar="COLUMN")
    var: str | None = option(None, "Column of variances, in place of --std.", metavar="COLUMN")
    log_std: str | None = option(None, "Column of log standard deviations, in place of --std.", metavar="COLUMN")
    log_var: str | None = option(None, "Column of log variances, in place of --std.", metavar="COLUMN")
    dist: str | None = option(
        None,
        f"Family of distributions given by parameters: {', '.join(DISTS)}.",
        metavar="FAMILY[:CONVENTION]",
    )
    param: tuple[str, ...] = option(
        (), "Column of a parameter of --dist, as in rate=lam; may be repeated.", metavar="NAME=COLUMN"
    )
    samples: str | None = option(
        None,
        "Columns of samples by a pattern ('s*'), or a column of lists. Default: sample_0, sample_1, …, or samples.",
        metavar="COLUMNS",
    )
    embedding: str | None = option(
        None,
        "Embedding of the inputs: a column of lists, columns by a pattern ('emb_*'), or another file (FILE[:COLUMN], "
        ".npy, .npz), joined by id where both have one, else row by row. Default: embedding, or emb_0, emb_1, ….",
        metavar="COLUMNS|FILE",
    )
    inputs: str | None = option(
        None, "Columns of low-dimensional inputs, in place of an embedding: x1,x2.", metavar="COLUMNS"
    )
    id: str | None = option(None, "Column of row keys. Default: id.", metavar="COLUMN")
    min_std: float | None = option(None, "Raise smaller standard deviations to this value.")
    nan_policy: Literal["raise", "omit"] = option(
        "raise", "Refuse rows that lack a number, or leave them out and say how many."
    )

    def __post_init__(self) -> None:
        require_positive_option("min_std", self.min_std)
        spreads = [name for name in SPREADS if getattr(self, name)]
        if len(spreads) > 1:
            msg = f"give one of {', '.join('--' + name.replace('_', '-') for name in spreads)}"
            raise OptionError(msg)
        if self.error and (self.target or self.mean):
            msg = "--error replaces --target and --mean: give the errors, or these two"
            raise OptionError(msg)
        forms = {
            "--dist": self.dist,
            "--samples": self.samples,
            "--error and --std" if self.error else "--mean and --std": self.error or self.mean or bool(spreads) or None,
        }
        given = [name for name, value in forms.items() if value]
        if len(given) > 1:
            msg = f"{' and '.join(given)} describe the predictions twice: give one"
            raise OptionError(msg)
        if self.embedding and self.inputs:
            msg = "--embedding and --inputs both say what calibration is conditioned on: give one"
            raise OptionError(msg)
        if self.min_std is not None and (self.dist or self.samples):
            msg = "--min-std raises standard deviations, but --dist and --samples give none"
            raise OptionError(msg)
        if self.param and not self.dist:
            msg = "--param needs --dist, which says what the parameters mean"
            raise OptionError(msg)
