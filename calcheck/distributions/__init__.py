"""Predictive distributions: families and common parameterizations, imported on first use as help needs names."""

from dataclasses import dataclass
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
    parameters: dict[str, tuple[str, ...]]  # Accepted column names of each parameter; the first is the canonical name
    meaning: str  # Description of the parameters, for help and messages
    # Class or function in `distributions` that creates the distributions from arrays, one keyword argument per
    # parameter: "positive.gamma_from_torch". It is imported when it is called.
    builder: str
    location: str | None = None  # Location parameter, for files that contain errors y - location
    grouped: bool = False  # Whether every parameter is a group of columns: arrays (n, k)
    optional: tuple[str, ...] = ()  # Parameters that may be absent
    joint: bool = False  # Whether the distributions are of several targets; groups of columns then differ in size

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
            {"loc": ("loc", "mean", "mu"), "scale": ("scale", "std", "sigma")},
            "mean loc, standard deviation scale",
            "continuous.Gaussian",
            location="loc",
        ),
        Convention(
            "laplace",
            {"loc": ("loc", "mu"), "scale": ("scale", "b")},
            "mean loc, standard deviation scale sqrt(2)",
            "continuous.Laplace",
            location="loc",
        ),
        Convention(
            "student-t",
            {"df": ("df", "nu"), "loc": ("loc", "mu"), "scale": ("scale", "sigma")},
            "median loc, standard deviation scale sqrt(df / (df - 2))",
            "continuous.StudentT",
            location="loc",
        ),
        Convention(
            "nig",
            {"gamma": ("gamma",), "v": ("v", "nu", "lambda"), "alpha": ("alpha",), "beta": ("beta",)},
            "evidential regression: mean gamma, variance beta (1 + v) / (v (alpha - 1))",
            "continuous.from_evidential",
            location="gamma",
        ),
        Convention(
            "cauchy",
            {"loc": ("loc", "xzero"), "scale": ("scale", "gamma")},
            "median loc, half width at half maximum scale",
            "continuous.Cauchy",
            location="loc",
        ),
        Convention(
            "lognormal:scipy",
            {"s": ("s",), "scale": ("scale",)},
            "median scale, standard deviation s of the log, as scipy.stats",
            "positive.lognormal_from_scipy",
        ),
        Convention(
            "lognormal:torch",
            {"loc": ("loc", "mu"), "scale": ("scale", "sigma")},
            "mean loc and standard deviation scale of the log, as torch.distributions",
            "positive.lognormal_from_torch",
        ),
        Convention(
            "gamma:scipy",
            {"a": ("a",), "scale": ("scale",)},
            "mean a scale, variance a scale^2, as scipy.stats",
            "positive.gamma_from_scipy",
        ),
        Convention(
            "gamma:torch",
            {"concentration": ("concentration", "alpha"), "rate": ("rate", "beta")},
            "mean concentration / rate, as torch.distributions",
            "positive.gamma_from_torch",
        ),
        Convention(
            "weibull:scipy",
            {"c": ("c",), "scale": ("scale",)},
            "shape c, mean scale Gamma(1 + 1 / c), as scipy.stats.weibull_min",
            "positive.Weibull",
        ),
        Convention(
            "mixture",
            {"loc": ("loc", "mu", "mean"), "scale": ("scale", "std", "sigma"), "weight": ("weight", "weights", "pi")},
            "normal components with means loc, standard deviations scale, and weights that sum to 1; or equal ones",
            "mixture.from_weights",
            grouped=True,
            optional=("weight",),
        ),
        Convention(
            "mixture:logits",
            {"loc": ("loc", "mu", "mean"), "scale": ("scale", "std", "sigma"), "logits": ("logits",)},
            "normal components with means loc, standard deviations scale, and weights softmax(logits)",
            "mixture.from_logits",
            grouped=True,
        ),
        Convention(
            "joint-gaussian:covariance",
            {"loc": ("loc", "mean", "mu"), "covariance": ("covariance", "covariance_matrix", "cov")},
            "several targets with means loc and covariances, row by row: the lower triangle or the whole matrix",
            "joint.from_covariance",
            grouped=True,
            joint=True,
        ),
        Convention(
            "joint-gaussian:cholesky",
            {"loc": ("loc", "mean", "mu"), "cholesky": ("cholesky", "scale_tril", "chol")},
            "several targets with means loc and lower Cholesky factors of the covariances, row by row",
            "joint.from_cholesky",
            grouped=True,
            joint=True,
        ),
        Convention(
            "poisson",
            {"rate": ("rate", "mu", "lambda", "lamb", "loc")},
            "mean rate",
            "count_families.poisson_from_rate",
        ),
        Convention(
            "nbinom:torch",
            {"total_count": ("total_count", "r"), "probs": ("probs", "p")},
            "mean total_count probs / (1 - probs), as torch.distributions",
            "count_families.nbinom_from_torch",
        ),
        Convention(
            "nbinom:logits",
            {"total_count": ("total_count", "r"), "logits": ("logits",)},
            "mean total_count exp(logits), as torch.distributions with the log odds of probs",
            "count_families.nbinom_from_logits",
        ),
        Convention(
            "nbinom:scipy",
            {"n": ("n",), "p": ("p",)},
            "mean n (1 - p) / p, as scipy.stats",
            "count_families.nbinom_from_scipy",
        ),
        Convention(
            "nbinom:mu-alpha",
            {"mu": ("mu",), "alpha": ("alpha",)},
            "variance mu + alpha mu^2, as statsmodels' NB2",
            "count_families.nbinom_from_mu_alpha",
        ),
        Convention(
            "nbinom:pymc",
            {"mu": ("mu",), "alpha": ("alpha",)},
            "variance mu + mu^2 / alpha, as PyMC",
            "count_families.nbinom_from_pymc",
        ),
        Convention(
            "double-poisson",
            {"mu": ("mu",), "phi": ("phi",)},
            "location mu, inverse dispersion phi: variance about mu / phi",
            "count_families.DoublePoisson",
        ),
    )
}  # All parameterizations, by their names in `--dist`

FAMILIES: dict[str, tuple[Convention, ...]] = {
    family: tuple(convention for convention in CONVENTIONS.values() if convention.family == family)
    for family in dict.fromkeys(convention.family for convention in CONVENTIONS.values())
}  # The conventions of each family, by the name of the family
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

MODULES = {
    "Gaussian": "calcheck.distributions.continuous",
    "Independent": "calcheck.distributions.joint",
    "Intervals": "calcheck.distributions.quantiles",
    "JointGaussian": "calcheck.distributions.joint",
    "Predictive": "calcheck.distributions.base",
    "Quantiles": "calcheck.distributions.quantiles",
    "Samples": "calcheck.distributions.samples",
}  # Modules of public names, which are imported on first use, so that the command line starts quickly


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(MODULES[name]), name)
