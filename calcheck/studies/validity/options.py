"""Options of `calcheck validity`: simulated data sets of right models."""

from dataclasses import dataclass
from typing import Literal

from calcheck.options import Argument, group, option
from calcheck.studies import Study
from calcheck.studies.options import COLUMNS, PLOT, REPORT, SEED


@dataclass(frozen=True)
class ValidityOptions:
    """Options for simulated data sets of right models."""

    metrics: tuple[str, ...] = option(
        "Metrics whose value for a right model is known: zms, rce.", ("zms", "rce"), metavar="NAMES"
    )
    nu: tuple[float, ...] | None = option(
        "Degrees of freedom of the uncertainties u: u^2 follows an inverse gamma distribution with shape and scale "
        "nu/2, so small values are heavy tails. A list or a range, 2..10,15,20. Not with FILE. "
        "Default: 2,3,4,6,10,20."
    )
    rows: int | None = option("Number of rows of a data set. Default: those of FILE, or 1000.")
    sets: int = option("Number of data sets.", 200)
    error_dist: Literal["normal", "t6"] = option(
        "Distribution of the errors relative to u: normal, or Student-t with 6 degrees of freedom.", "normal"
    )
    resamples: int = option("Number of bootstrap resamples of each data set.", 500)
    confidence: float = option("Confidence level of the intervals, and of the limits of their share.", 0.95)


VALIDITY = Study(
    "validity",
    """Simulate how often the interval of a metric contains the value of a right model, by the tails of uncertainties.

    The uncertainties are drawn from a distribution with heavy tails (--nu), or from those of FILE.
    """,
    "study.run",
    arguments=(Argument("file", "FILE", "Predictions whose uncertainties are used, instead of --nu.", optional=True),),
    groups=(group("Simulation", ValidityOptions), COLUMNS.omit("error_dist"), REPORT, PLOT, SEED),
    document="document.validity_blocks",
    picture="document.validity_picture",
    each_target=True,
    example="calcheck validity --metrics zms,rce --nu 2..10,15,20 --sets 1000",
)
