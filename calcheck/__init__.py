"""Check the uncertainty estimates of saved regression predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.core import __version__, lazy_attributes

if TYPE_CHECKING:
    from calcheck.api.arguments import metric
    from calcheck.api.functions import (
        compare,
        compare_samples,
        evaluate,
        reject,
        slices,
        sweep,
    )
    from calcheck.api.interactive import InteractiveReport
    from calcheck.api.monitoring import monitor
    from calcheck.api.recalibration import recalibrate
    from calcheck.errors import CalcheckError, DataError, FileError, NumericalError, OptionError
    from calcheck.io import read
    from calcheck.metrics import METRICS
    from calcheck.predictions import InMemory, Predictions
    from calcheck.report import Report
    from calcheck.storage.writers import write

__all__ = [
    "METRICS",
    "CalcheckError",
    "DataError",
    "FileError",
    "InMemory",
    "InteractiveReport",
    "NumericalError",
    "OptionError",
    "Predictions",
    "Report",
    "__version__",
    "compare",
    "compare_samples",
    "evaluate",
    "metric",
    "monitor",
    "read",
    "recalibrate",
    "reject",
    "slices",
    "sweep",
    "write",
]

__getattr__ = lazy_attributes(
    __name__,
    {
        "METRICS": "calcheck.metrics",
        "CalcheckError": "calcheck.errors",
        "DataError": "calcheck.errors",
        "FileError": "calcheck.errors",
        "NumericalError": "calcheck.errors",
        "OptionError": "calcheck.errors",
        "InMemory": "calcheck.predictions",
        "InteractiveReport": "calcheck.api.interactive",
        "Predictions": "calcheck.predictions",
        "Report": "calcheck.report",
        "compare": "calcheck.api.functions",
        "compare_samples": "calcheck.api.functions",
        "evaluate": "calcheck.api.functions",
        "metric": "calcheck.api.arguments",
        "monitor": "calcheck.api.monitoring",
        "read": "calcheck.io",
        "recalibrate": "calcheck.api.recalibration",
        "reject": "calcheck.api.functions",
        "slices": "calcheck.api.functions",
        "sweep": "calcheck.api.functions",
        "write": "calcheck.storage.writers",
    },
)


def __dir__() -> list[str]:
    """Return the public names, so that notebooks complete them before they are imported."""
    return __all__
