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
DISTS = (  # as in calcheck.distributions.CONVENTIONS, which takes numpy to import; a test compares them
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
    quantiles: str | None = option(
        None,
        "Columns of quantiles by a pattern ('q_*'); their names tell the levels. Default: q_0.05, …, or 0.05, ….",
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
    truth: str | None = option(
        None,
        "Targets in another file, joined by --join-on, else row by row; FILE:COLUMN says which column they are.",
        metavar="FILE[:COLUMN]",
    )
    join_on: str | None = option(
        None,
        "Key columns of both files, as a,b; a=b where FILE calls a what --truth calls b. Default: the key columns that"
        " both have, and the date of the observation.",
        metavar="COLUMNS",
    )
    model: str | None = option(
        None,
        "Which model, where the file has several: by its column of models, or its columns' prefix; all takes the rows"
        " of all of them.",
        metavar="NAME",
    )
    filter: tuple[str, ...] = option(
        (), "Use the rows whose column has a value, as in horizon=1; may be repeated.", metavar="COLUMN=VALUE"
    )
    error_dist: Literal["normal", "t6"] | None = option(
        None,
        "Shape of the distributions where the file has means or errors with standard deviations only: normal, or"
        " Student-t with 6 degrees of freedom. Without it, means are taken as normal, and errors have no shape:"
        " verdicts that depend on one are left out.",
    )
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
        given = self._forms()
        if len(given) > 1:
            msg = f"{' and '.join(given)} describe the predictions twice: give one"
            raise OptionError(msg)
        self._check_joins()
        if self.embedding and self.inputs:
            msg = "--embedding and --inputs both say what calibration is conditioned on: give one"
            raise OptionError(msg)
        if self.min_std is not None and (self.dist or self.samples or self.quantiles):
            msg = "--min-std raises standard deviations, but --dist, --samples and --quantiles give none"
            raise OptionError(msg)
        if self.error_dist is not None and (self.dist or self.samples or self.quantiles):
            msg = (
                "--error-dist says what means and standard deviations do not, but --dist, --samples and --quantiles do"
            )
            raise OptionError(msg)
        if self.param and not self.dist:
            msg = "--param needs --dist, which says what the parameters mean"
            raise OptionError(msg)

    def _forms(self) -> list[str]:
        """List the options that say what form the predictions have; --error alone, and --dist with it, are one."""
        spread = any(getattr(self, name) for name in SPREADS)
        gaussian = self.mean or spread or (self.error and not self.dist)
        forms = {
            "--dist": self.dist,
            "--samples": self.samples,
            "--quantiles": self.quantiles,
            "--error and --std" if self.error else "--mean and --std": gaussian,
        }
        return [name for name, value in forms.items() if value]

    @property
    def names_form(self) -> bool:
        """Whether an option says what form the predictions have, so that none is looked for."""
        return bool(self._forms())

    def _check_joins(self) -> None:
        for text in self.filter:
            if not text.partition("=")[0] or "=" not in text:
                msg = f"--filter takes COLUMN=VALUE, got {text!r}"
                raise OptionError(msg)
        if self.truth and (self.target or self.error):
            msg = f"--truth replaces --{'target' if self.target else 'error'}: the targets are in the other file"
            raise OptionError(msg)
        if self.join_on and not self.truth:
            msg = "--join-on says how the rows of --truth are found: give that too"
            raise OptionError(msg)
