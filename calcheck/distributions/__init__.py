"""Predictive distributions: families and common parameterizations, imported on first use as help needs names."""

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calcheck.distributions.base import Predictive
    from calcheck.distributions.continuous import Gaussian
    from calcheck.distributions.joint import Independent, JointGaussian
    from calcheck.distributions.quantiles import Intervals, Quantiles
    from calcheck.distributions.samples import Samples


@dataclass(frozen=True)
class Convention:
    """A parameterization of a family."""

    spelling: str  # Name in `--dist`: the family, followed by the convention if there are several: `gamma:torch`
    accepted: str  # Accepted column names of each parameter, separated by commas; the first is the canonical name
    meaning: str  # Description of the parameters, for help and messages
    # Class or function in `distributions` that creates the distributions from arrays, one keyword argument per
    # parameter: "positive.gamma_from_torch". It is imported when it is called.
    builder: str
    location: str | None = None  # Location parameter, for files that contain errors y - location
    grouped: bool = False  # Whether every parameter is a group of columns: arrays (n, k)
    optional: tuple[str, ...] = ()  # Parameters that may be absent
    joint: bool = False  # Whether the distributions are of several targets; groups of columns then differ in size

    @cached_property
    def parameters(self) -> dict[str, tuple[str, ...]]:
        """Accepted column names of each parameter, by its canonical name."""
        return {names.split()[0]: tuple(names.split()) for names in self.accepted.split(", ")}

    @property
    def family(self) -> str:
        """Name of the family."""
        return self.spelling.partition(":")[0]

    def __call__(self, **parameters: Any) -> "Predictive":
        """Return the distributions, with parameters converted to double precision."""
        import numpy as np

        module, name = self.builder.split(".")
        build = getattr(import_module(f"calcheck.distributions.{module}"), name)
        made: Predictive = build(**{name: np.asarray(values, dtype=np.float64) for name, values in parameters.items()})
        return made


CONVENTIONS: dict[str, Convention] = {
    convention.spelling: convention
    for convention in (
        Convention(
            "gaussian",
            "loc mean mu, scale std sigma",
            "mean loc, standard deviation scale",
            "continuous.Gaussian",
            location="loc",
        ),
        Convention(
            "laplace",
            "loc mu, scale b",
            "mean loc, standard deviation scale sqrt(2)",
            "continuous.Laplace",
            location="loc",
        ),
        Convention(
            "student-t",
            "df nu, loc mu, scale sigma",
            "median loc, standard deviation scale sqrt(df / (df - 2))",
            "continuous.StudentT",
            location="loc",
        ),
        Convention(
            "nig",
            "gamma, v nu lambda, alpha, beta",
            "evidential regression: mean gamma, variance beta (1 + v) / (v (alpha - 1))",
            "continuous.from_evidential",
            location="gamma",
        ),
        Convention(
            "cauchy",
            "loc xzero, scale gamma",
            "median loc, half width at half maximum scale",
            "continuous.Cauchy",
            location="loc",
        ),
        Convention(
            "lognormal:scipy",
            "s, scale",
            "median scale, standard deviation s of the log, as scipy.stats",
            "positive.lognormal_from_scipy",
        ),
        Convention(
            "lognormal:torch",
            "loc mu, scale sigma",
            "mean loc and standard deviation scale of the log, as torch.distributions",
            "positive.lognormal_from_torch",
        ),
        Convention(
            "gamma:scipy", "a, scale", "mean a scale, variance a scale^2, as scipy.stats", "positive.gamma_from_scipy"
        ),
        Convention(
            "gamma:torch",
            "concentration alpha, rate beta",
            "mean concentration / rate, as torch.distributions",
            "positive.gamma_from_torch",
        ),
        Convention(
            "weibull:scipy",
            "c, scale",
            "shape c, mean scale Gamma(1 + 1 / c), as scipy.stats.weibull_min",
            "positive.Weibull",
        ),
        Convention(
            "mixture",
            "loc mu mean, scale std sigma, weight weights pi",
            "normal components with means loc, standard deviations scale, and weights that sum to 1; or equal ones",
            "mixture.from_weights",
            grouped=True,
            optional=("weight",),
        ),
        Convention(
            "mixture:logits",
            "loc mu mean, scale std sigma, logits",
            "normal components with means loc, standard deviations scale, and weights softmax(logits)",
            "mixture.from_logits",
            grouped=True,
        ),
        Convention(
            "joint-gaussian:covariance",
            "loc mean mu, covariance covariance_matrix cov",
            "several targets with means loc and covariances, row by row: the lower triangle or the whole matrix",
            "joint.from_covariance",
            grouped=True,
            joint=True,
        ),
        Convention(
            "joint-gaussian:cholesky",
            "loc mean mu, cholesky scale_tril chol",
            "several targets with means loc and lower Cholesky factors of the covariances, row by row",
            "joint.from_cholesky",
            grouped=True,
            joint=True,
        ),
        Convention("poisson", "rate mu lambda lamb loc", "mean rate", "count_families.Poisson"),
        Convention(
            "nbinom:torch",
            "total_count r, probs p",
            "mean total_count probs / (1 - probs), as torch.distributions",
            "count_families.nbinom_from_torch",
        ),
        Convention(
            "nbinom:logits",
            "total_count r, logits",
            "mean total_count exp(logits), as torch.distributions with the log odds of probs",
            "count_families.nbinom_from_logits",
        ),
        Convention("nbinom:scipy", "n, p", "mean n (1 - p) / p, as scipy.stats", "count_families.nbinom_from_scipy"),
        Convention(
            "nbinom:mu-alpha",
            "mu, alpha",
            "variance mu + alpha mu^2, as statsmodels' NB2",
            "count_families.nbinom_from_mu_alpha",
        ),
        Convention(
            "nbinom:pymc", "mu, alpha", "variance mu + mu^2 / alpha, as PyMC", "count_families.nbinom_from_pymc"
        ),
        Convention(
            "double-poisson",
            "mu, phi",
            "location mu, inverse dispersion phi: variance about mu / phi",
            "count_families.DoublePoisson",
        ),
    )
}  # All parameterizations, by their names in `--dist`

FAMILIES: dict[str, tuple[Convention, ...]] = {
    family: tuple(convention for convention in CONVENTIONS.values() if convention.family == family)
    for family in dict.fromkeys(convention.family for convention in CONVENTIONS.values())
}  # The conventions of each family, by the name of the family

__all__ = ["Gaussian", "Independent", "Intervals", "JointGaussian", "Predictive", "Quantiles", "Samples"]

MODULES = dict(
    zip(__all__, ("continuous", "joint", "quantiles", "joint", "base", "quantiles", "samples"), strict=True)
)  # Modules of public names, which are imported on first use, so that the command line starts quickly


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{MODULES[name]}"), name)
