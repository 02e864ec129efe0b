"""The metrics, one per file; a name in the registry creates the command, help, schema and common tests of a metric.

Metrics import NumPy, and modules that import it, inside functions, so that the help of commands is fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from calcheck.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calcheck.metrics.base import Metric

__all__ = ["METRICS", "TWO_SAMPLE_METRICS"]


class Registry(Mapping[str, "type[Metric[Any]]"]):
    """Metrics by name, each imported when it is first used.

    A name determines the module and the class: ``interval-score`` is ``IntervalScore`` in ``interval_score.py``.

    Parameters
    ----------
    *names : str
        Names of the metrics, in the order of reports.
    """

    def __init__(self, *names: str) -> None:
        self._names = dict.fromkeys(names)

    def __getitem__(self, name: str) -> type[Metric[Any]]:
        if name not in self._names:
            raise KeyError(name)
        module = import_module(f"{__name__}.{name.replace('-', '_')}")
        found: type[Metric[Any]] = getattr(module, "".join(part.capitalize() for part in name.split("-")))
        return found

    def named(self, name: str, where: str = "") -> type[Metric[Any]]:
        """Return a metric; ``where`` says in messages where it is named: ``"--metric: "``.

        Raises
        ------
        OptionError
            There is no such metric.
        """
        if name not in self:
            msg = f"{where}unknown metric {name!r}. Available metrics: {', '.join(self)}"
            raise OptionError(msg)
        return self[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __or__(self, other: Registry) -> Registry:
        """Return the metrics of both registries."""
        return Registry(*self, *other)


METRICS = Registry(
    *("zms", "rce", "lzms", "lrce"),  # spread: on average, and by bins
    *("ece", "pit", "coverage", "stratified-coverage", "ence", "uce"),  # marginal calibration
    *("cce", "jmmd", "ammd", "cmmd", "fid"),  # conditional calibration
    *("nll", "crps", "interval-score", "pinball"),  # proper scores
    *("mae", "rmse", "bias", "confidence-curve"),  # accuracy
    *("sharpness", "width", "cv"),  # properties of the predictions
)
"""All metrics by name, in the order of reports."""

TWO_SAMPLE_METRICS = Registry("mcmd")
"""Metrics that compare two samples from separate files instead of predictions and targets."""
