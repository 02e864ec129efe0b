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
        evaluate,
        monitor,
        reject,
        report,
        slices,
        sweep,
    )
    from calcheck.api.notebook_report import InteractiveReport
    from calcheck.api.recalibration import recalibrate
    from calcheck.api.two_samples import compare_samples
    from calcheck.errors import CalcheckError, DataError, FileError, NumericalError, OptionError
    from calcheck.io import read
    from calcheck.metrics import METRICS
    from calcheck.predictions import InMemory, Predictions
    from calcheck.reports import Report
    from calcheck.storage.prediction_files import write

__all__ = ["METRICS", "CalcheckError", "DataError", "FileError", "InMemory", "InteractiveReport", "NumericalError"]
__all__ += ["OptionError", "Predictions", "Report", "__version__", "assert_calibrated", "check", "compare"]
__all__ += ["compare_samples", "evaluate", "metric", "monitor", "read", "recalibrate", "reject", "report", "slices"]
__all__ += ["sweep", "write"]

MODULES = {
    **dict.fromkeys(("CalcheckError", "DataError", "FileError", "NumericalError", "OptionError"), "errors"),
    **dict.fromkeys(("InMemory", "Predictions"), "predictions"),
    "METRICS": "metrics",
    "InteractiveReport": "api.notebook_report",
    "Report": "reports",
    "compare_samples": "api.two_samples",
    "metric": "api.arguments",
    "read": "io",
    "recalibrate": "api.recalibration",
    "write": "storage.prediction_files",
}  # Modules of public names that are not in `api.functions`, imported on first use: the command line starts quickly


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    return getattr(import_module(f"{__name__}.{MODULES.get(name, 'api.functions')}"), name)


def __dir__() -> list[str]:
    """Return the public names, so that notebooks complete them before they are imported."""
    return __all__
