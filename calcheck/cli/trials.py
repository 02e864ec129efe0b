"""Options of cce for commands of several metrics: draws, and trials with new draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from calcheck.cli.typer_bridge import metric_parameters, parse_given
from calcheck.errors import OptionError
from calcheck.metrics import METRICS
from calcheck.options import flag_of

if TYPE_CHECKING:
    from calcheck.cli.settings import Settings
    from calcheck.metrics.base import Metric

CCE = "cce"
NAMES = ("draws", "trials")
TRIALS = [parameter for parameter in metric_parameters([METRICS[CCE]], "Metric cce") if parameter.name in NAMES]


def with_trials(metrics: Sequence[Metric[Any]], settings: Settings, given: dict[str, Any]) -> list[Metric[Any]]:
    """Return the metrics, with the given draws and trials for cce."""
    own = parse_given(METRICS[CCE], {name: given.get(name) for name in NAMES})
    if own and all(metric.info.name != CCE for metric in metrics):
        flag = flag_of(next(iter(own)))
        msg = f"{flag} is an option of {CCE}, which is not among the metrics: add it to --metrics, or omit {flag}"
        raise OptionError(msg)
    return [settings.metric(CCE, own) if own and metric.info.name == CCE else metric for metric in metrics]
