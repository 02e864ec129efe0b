"""Check the uncertainty estimates of saved regression predictions."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from calcheck.core import __version__

if TYPE_CHECKING:
    from calcheck.api.arguments import metric
    from calcheck.api.functions import (
        assert_calibrated,
        check,
        compare,
        compare_samples,
        evaluate,
        monitor,
        reject,
        report,
        slices,
        sweep,
    )
    from calcheck.api.notebook_report import InteractiveReport
    from calcheck.api.recalibration import recalibrate
    from calcheck.errors import CalcheckError, DataError, FileError, NumericalError, OptionError
    from calcheck.io import read
    from calcheck.metrics import METRICS
    from calcheck.predictions import InMemory, Predictions
    from calcheck.reports import Report
    from calcheck.storage.prediction_files import write

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
    "assert_calibrated",
    "check",
    "compare",
    "compare_samples",
    "evaluate",
    "metric",
    "monitor",
    "read",
    "recalibrate",
    "reject",
    "report",
    "slices",
    "sweep",
    "write",
]

MODULES = {
    "METRICS": "calcheck.metrics",
    "CalcheckError": "calcheck.errors",
    "DataError": "calcheck.errors",
    "FileError": "calcheck.errors",
    "NumericalError": "calcheck.errors",
    "OptionError": "calcheck.errors",
    "InMemory": "calcheck.predictions",
    "InteractiveReport": "calcheck.api.notebook_report",
    "Predictions": "calcheck.predictions",
    "Report": "calcheck.reports",
    "assert_calibrated": "calcheck.api.functions",
    "check": "calcheck.api.functions",
    "compare": "calcheck.api.functions",
    "compare_samples": "calcheck.api.functions",
    "evaluate": "calcheck.api.functions",
    "metric": "calcheck.api.arguments",
    "monitor": "calcheck.api.functions",
    "read": "calcheck.io",
    "recalibrate": "calcheck.api.recalibration",
    "reject": "calcheck.api.functions",
    "report": "calcheck.api.functions",
    "slices": "calcheck.api.functions",
    "sweep": "calcheck.api.functions",
    "write": "calcheck.storage.prediction_files",
}  # Modules of public names, which are imported on first use, so that the command line starts quickly


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    return getattr(import_module(MODULES[name]), name)


def __dir__() -> list[str]:
    """Return the public names, so that notebooks complete them before they are imported."""
    return __all__
