"""Kernels, low-rank output features, and kernel ridge regression: the engine of the conditional metrics.

``ammd``, ``jmmd``, ``cmmd``, ``fid`` and ``mcmd`` are for use in other programs: functions of numpy arrays, or of torch
tensors, through which gradients pass.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calcheck.kernels.discrepancies import ammd, cmmd, fid, jmmd, mcmd, standardized

__all__ = ["ammd", "cmmd", "fid", "jmmd", "mcmd", "standardized"]


def __getattr__(name: str) -> Any:
    """Load the functions when they are first used: ``calcheck --help`` reads names from here without numerics."""
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module("calcheck.kernels.discrepancies"), name)
