"""Predictive distributions: the families, and the parameterizations in common use.

The classes are imported on first use, because names of families are needed for `calcheck --help`, and NumPy is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.core.lazy_attributes import lazy_attributes
from calcheck.distributions.families import CONVENTIONS, FAMILIES, Convention

if TYPE_CHECKING:
    from calcheck.distributions.base import Predictive
    from calcheck.distributions.continuous import Gaussian
    from calcheck.distributions.intervals import Intervals
    from calcheck.distributions.joint import Independent, JointGaussian
    from calcheck.distributions.quantiles import Quantiles
    from calcheck.distributions.samples import Samples

__all__ = [
    "CONVENTIONS",
    "FAMILIES",
    "Convention",
    "Gaussian",
    "Independent",
    "Intervals",
    "JointGaussian",
    "Predictive",
    "Quantiles",
    "Samples",
]

__getattr__ = lazy_attributes(
    __name__,
    {
        "Gaussian": "calcheck.distributions.continuous",
        "Independent": "calcheck.distributions.joint",
        "Intervals": "calcheck.distributions.intervals",
        "JointGaussian": "calcheck.distributions.joint",
        "Predictive": "calcheck.distributions.base",
        "Quantiles": "calcheck.distributions.quantiles",
        "Samples": "calcheck.distributions.samples",
    },
)
