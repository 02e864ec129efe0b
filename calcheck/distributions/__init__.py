"""Predictive distributions: one module per family, and the parameterizations in common use."""

from calcheck.distributions import (
    cauchy,
    double_poisson,
    gamma,
    gaussian,
    laplace,
    lognormal,
    mixture,
    nbinom,
    poisson,
    student_t,
)
from calcheck.distributions.base import Convention, Predictive
from calcheck.distributions.gaussian import Gaussian
from calcheck.distributions.independent import Independent
from calcheck.distributions.quantiles import Quantiles
from calcheck.distributions.samples import Samples

__all__ = ["CONVENTIONS", "FAMILIES", "Convention", "Gaussian", "Independent", "Predictive", "Quantiles", "Samples"]

CONVENTIONS: dict[str, Convention] = {
    convention.spelling: convention
    for module in (gaussian, laplace, student_t, cauchy, lognormal, gamma, mixture, poisson, nbinom, double_poisson)
    for convention in module.CONVENTIONS
}
"""All parameterizations, by their names in ``--dist``."""

FAMILIES: dict[str, tuple[Convention, ...]] = {
    family: tuple(convention for convention in CONVENTIONS.values() if convention.family == family)
    for family in dict.fromkeys(convention.family for convention in CONVENTIONS.values())
}
"""The conventions of each family, by the name of the family."""
