"""The metrics, one class each; an entry in the registry creates the command, help, schema and common tests of a metric.

Metrics take NumPy, and modules that import it, from `_lazy`, so that the help of commands is fast.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calcheck.core import Registry
from calcheck.errors import OptionError, suggestion

if TYPE_CHECKING:
    from calcheck.metrics.base import Metric

__all__ = ["ALIASES", "DEFAULT_METRICS", "METRICS", "TWO_SAMPLE_METRICS", "Alias", "canonical_name"]


class Metrics(Registry["type[Metric[Any]]"]):
    """Metrics by name: ``interval-score`` is the class ``IntervalScore``."""

    def named(self, name: str, where: str = "") -> "type[Metric[Any]]":
        """Return a metric; ``where`` says in messages where it is named: ``"--metric: "``."""
        if name not in self:
            hint = suggestion(name, (*self, *ALIASES)) or f"Available metrics: {', '.join(self)}"
            if set(words := name.split()) <= {*self, *ALIASES}:
                hint = f"Several metrics are separated by commas: {','.join(words)}"
            raise OptionError(f"{where}unknown metric {name!r}. {hint}")
        return self[name]


PATH = "calcheck.metrics.{}"
PIT_COMPONENTS = ("pit-bias", "pit-dispersion", "pit-skew", "pit-tails")
LOCAL_ERRORS = ("local-scale", "local-bias")
DECOMPOSITIONS = ("mean-miscalibration", "quantile-miscalibration", "crps-miscalibration")
METRICS = Metrics(
    {
        **dict.fromkeys(("zms", "rce", "lzms", "lrce"), "spread"),  # on average, by bins, and tested bin by bin
        "ece": "pit",  # marginal calibration
        **dict.fromkeys(("pit", *PIT_COMPONENTS, "pit-independence"), "pit"),
        "tail": "tail",
        **dict.fromkeys(LOCAL_ERRORS, "local_error"),  # by inputs, uncertainty, time or a column
        **dict.fromkeys(("coverage", "stratified-coverage"), "coverage"),  # of intervals, and by bins
        "width-factor": "width_factor",
        **dict.fromkeys(("ence", "uce"), "spread"),
        "cce": "cce",  # conditional calibration
        **dict.fromkeys(("jmmd", "ammd"), "jmmd"),
        **dict.fromkeys(("cmmd", "fid"), "jmmd"),
        **dict.fromkeys(("nll", "crps", "interval-score", "wis", "pinball"), "scores"),  # proper scores
        **dict.fromkeys(DECOMPOSITIONS, "decompositions"),  # of proper scores
        **dict.fromkeys(("mae", "rmse", "bias", "standardized-bias"), "accuracy"),
        "confidence-curve": "accuracy",
        **dict.fromkeys(("sharpness", "width", "cv"), "accuracy"),  # properties of the predictions
    },
    PATH,
    str.title,
)  # All metrics by name, in the order of reports

BY_NAME = (
    *(*PIT_COMPONENTS, "pit-independence", "tail", *LOCAL_ERRORS),
    *("width-factor", *DECOMPOSITIONS, "standardized-bias"),
)
DEFAULT_METRICS = METRICS.without(*BY_NAME)
"""The metrics that are computed if none is named: all but parts, of the PIT, of its tails, and of scores; and but those
that need rows in the order of time."""

TWO_SAMPLE_METRICS = Metrics({"mcmd": "mcmd", "mmd": "mmd"}, PATH, str.title)
"""Metrics that compare two samples from separate files instead of predictions and targets."""


@dataclass(frozen=True)
class Alias:
    """Another name of a metric."""

    metric: str
    meaning: str  # What the other name stands for
    difference: str = ""  # How the value differs from what other programs call by that name; empty if it does not

    def __str__(self) -> str:
        """Return the metric, and the difference if there is one."""
        return f"{self.metric} here" + (f", {self.difference}" if self.difference else "")


ALIASES = {
    "picp": Alias("coverage", "prediction interval coverage probability"),
    "mpiw": Alias("width", "mean prediction interval width"),
    "winkler": Alias("interval-score", "Winkler score"),
    "ause": Alias("confidence-curve", "area under the sparsification error", "not divided by the error of all rows"),
    "energy": Alias("crps", "energy score", "which is the energy score for several targets"),
    "mace": Alias("ece", "mean absolute calibration error", "over quantile levels, not over central intervals"),
}  # Names of metrics in other programs and in papers


def canonical_name(name: str) -> str:
    """Return the name of the metric that an alias stands for; any other name unchanged."""
    return ALIASES[name].metric if name in ALIASES else name
