"""calcheck tells whether the uncertainties in a file of saved predictions can be trusted."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from calcheck.version import __version__

if TYPE_CHECKING:
    from calcheck.evaluation import evaluate
    from calcheck.io import read
    from calcheck.metrics import METRICS
    from calcheck.predictions import InMemory, Predictions
    from calcheck.report import Report
    from calcheck.storage.predictions_writer import write

__all__ = ["METRICS", "InMemory", "Predictions", "Report", "__version__", "evaluate", "read", "write"]

_HOMES = {
    "METRICS": "calcheck.metrics",
    "InMemory": "calcheck.predictions",
    "Predictions": "calcheck.predictions",
    "Report": "calcheck.report",
    "evaluate": "calcheck.evaluation",
    "read": "calcheck.io",
    "write": "calcheck.storage.predictions_writer",
}


def __getattr__(name: str) -> Any:
    """Load public names when they are first used: the command line must start at once."""
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(_HOMES[name]), name)
