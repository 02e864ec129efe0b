"""Predictive distributions: one module per family, and the parameterizations in common use.

The classes are imported on first use, because names of families are needed for `calcheck --help`, and NumPy is not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from calcheck.distributions.families import CONVENTIONS, FAMILIES, Convention

if TYPE_CHECKING:
    from calcheck.distributions.base import Predictive
    from calcheck.distributions.gaussian import Gaussian
    from calcheck.distributions.independent import Independent
    from calcheck.distributions.quantiles import Quantiles
    from calcheck.distributions.samples import Samples

__all__ = ["CONVENTIONS", "FAMILIES", "Convention", "Gaussian", "Independent", "Predictive", "Quantiles", "Samples"]

_MODULES = {
    "Gaussian": "gaussian",
    "Independent": "independent",
    "Predictive": "base",
    "Quantiles": "quantiles",
    "Samples": "samples",
}


def __getattr__(name: str) -> Any:
    """Return a public class, imported on first use."""
    if name not in _MODULES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
