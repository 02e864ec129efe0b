"""Predictive distributions of several targets."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from calcheck.core import sc
from calcheck.core.validation import LEAST, UNIT, require, require_moderate
from calcheck.distributions.base import METHOD, Predictive, forwarded
from calcheck.distributions.continuous import Gaussian
from calcheck.distributions.row_random import Random
from calcheck.distributions.samples import Samples
from calcheck.distributions.special import format_plain, joint_normal_kernel_mean
from calcheck.errors import DataError, ExtremeValuesError
from calcheck.typing import Indices, Values

ASYMMETRY = 1e-5  # Maximum difference of two equal covariances, in standard deviations; files may have single precision
BLOCK_VALUES = 1 << 20  # Maximum numbers per block of points
FARTHEST = 37.0  # Largest normal score with a probability beyond it
PAIR = 2  # Number of targets with one correlation


@dataclass(frozen=True, eq=False)
class _Marginals(Predictive):
    """One distribution per target column: methods return (n, t) in place of (n,)."""

    marginals: tuple[Predictive, ...]  # One batch of n distributions per target column

    def validate_targets(self, y: Values) -> None:
        for marginal, column in zip(self.marginals, y.T, strict=True):
            marginal.validate_targets(column)

    @property
    def targets(self) -> int:
        return len(self.marginals)

    def of_target(self, place: int) -> Predictive:
        return self.marginals[place]

    @property
    def display_name(self) -> str:
        return ", ".join(dict.fromkeys(marginal.display_name for marginal in self.marginals))

    @property
    def kernel_error(self) -> float:
        return sum(marginal.kernel_error for marginal in self.marginals)

    def describe(self) -> list[str]:
        return ["; ".join(row) for row in zip(*(marginal.describe() for marginal in self.marginals), strict=True)]

    def parameters(self) -> tuple[str, dict[str, Values]]:
        raise DataError(
            "files cannot hold other distributions of several targets than normal ones and draws: pass --only TARGET"
        )

    def _stacked(self, name: str, *given: float) -> Values:
        """Return the results of a method of the marginal distributions, (n, t)."""
        return np.stack([getattr(marginal, name)(*given) for marginal in self.marginals], axis=1)

    def _stacked_at(self, name: str, y: Values) -> Values:
        """Return the results of a method of the marginal distributions at targets, (n, t)."""
        columns = zip(self.marginals, y.T, strict=True)
        return np.stack([getattr(marginal, name)(column) for marginal, column in columns], axis=1)

    mean, std, quantile = map(partial(METHOD, _stacked), ("mean", "std", "quantile"))
    cdf, cdf_left, log_prob, crps = map(partial(METHOD, _stacked_at), ("cdf", "cdf_left", "log_prob", "crps"))

    def support_interval(self, tail: float) -> tuple[Values, Values]:
        low, high = zip(*(marginal.support_interval(tail) for marginal in self.marginals), strict=True)
        return np.stack(low, axis=1), np.stack(high, axis=1)


@dataclass(frozen=True, eq=False)
class Independent(_Marginals):
    """One distribution per target column, independent given the input."""

    family: ClassVar[str] = "independent"

    def sample(self, rng: Random, size: int) -> Values:
        """Return draws of the target vectors, (n, size, t)."""
        return np.stack([marginal.sample(rng, size) for marginal in self.marginals], axis=2)

    def normal(self) -> tuple[Values, Values] | None:
        columns = [marginal.normal() for marginal in self.marginals]
        known = [column for column in columns if column is not None]
        if len(known) < len(columns):
            return None
        means, stds = zip(*known, strict=True)
        return np.concatenate(means, axis=1), np.concatenate(stds, axis=1)

    def mixed_moments(self, exponents: Indices) -> Values:
        of_columns = zip(self.marginals, exponents.T, strict=True)
        return np.asarray(np.prod([each.mixed_moments(powers[:, None]) for each, powers in of_columns], axis=0))

    def kernel_mean(self, points: Values, gamma: Values) -> Values:
        product = np.ones((len(self), len(points)))
        for column, marginal in enumerate(self.marginals):
            if not np.any(gamma[..., column]):
                continue  # the kernel does not depend on this column
            product *= marginal.kernel_mean(points[:, column, None], gamma[..., column, None])
        return product

    def kernel_norm(self, gamma: Values) -> Values:
        pairs = zip(gamma[:, None], self.marginals, strict=True)
        norms = [marginal.kernel_norm(each) for each, marginal in pairs if each[0]]
        return np.asarray(np.prod(norms, axis=0))


@dataclass(frozen=True, eq=False)
class NormalCopula(_Marginals):
    """One distribution per target column; their normal scores are those of joint normal distributions."""

    family: ClassVar[str] = "normal copula"
    cholesky: Values  # (n, t, t), lower triangular factors of the correlations of the scores

    @property
    def has_atoms(self) -> bool:
        return any(marginal.has_atoms for marginal in self.marginals)

    def sample(self, rng: Random, size: int) -> Values:
        """Return draws of the target vectors, (n, size, t)."""
        scores = JointGaussian(np.zeros((len(self), self.targets)), self.cholesky).sample(rng, size)
        drawn = [
            marginal.at_scores(each) for marginal, each in zip(self.marginals, np.moveaxis(scores, 2, 0), strict=True)
        ]
        return np.stack(drawn, axis=2)

    def joint_log_prob(self, y: Values) -> Values:
        if self.has_atoms:
            raise self._without_formula("the likelihood")
        below, above = self.cdf(y), self._stacked_at("above", y)
        scores = np.clip(np.where(below < above, sc.ndtri(below), -sc.ndtri(above)), -FARTHEST, FARTHEST)
        zero = np.zeros_like(scores)
        own = Gaussian(zero.ravel(), np.ones(zero.size)).log_prob(scores.ravel()).reshape(scores.shape)
        joint = JointGaussian(zero, self.cholesky).joint_log_prob(scores)
        return np.asarray(joint + np.sum(self.log_prob(y) - own, axis=1))

    def _without_formula(self, what: str) -> DataError:
        return DataError(
            f"{what} of correlated targets that are {self.display_name} has no formula: pass --only TARGET"
        )

    def _refused(self, *_: Values) -> Values:
        raise self._without_formula("the kernel mean")

    mixed_moments = kernel_mean = kernel_norm = METHOD(_refused)


@dataclass(frozen=True, eq=False)
class JointGaussian(Predictive):
    """Normal distributions of t >= 2 dependent targets: methods return (n, t), but kernel means and draws are joint."""

    family: ClassVar[str] = "joint-gaussian"
    loc: Values  # (n, t), means, in the units of the targets
    cholesky: Values  # (n, t, t), lower triangular factors L of the covariances L L^T, with a positive diagonal

    def __post_init__(self) -> None:
        self.hold_in_double()
        _require_several_targets(self.loc)
        n, t = self.loc.shape
        if self.cholesky.shape != (n, t, t):
            msg = f"cholesky must have shape {(n, t, t)} for the means of shape {(n, t)}, got {self.cholesky.shape}"
            raise DataError(msg)
        require_moderate("loc", self.loc)
        require_moderate("cholesky", self.cholesky)
        require("cholesky", np.triu(self.cholesky, 1) == 0, "must be lower triangular", "Is it a covariance?")
        diagonal = np.diagonal(self.cholesky, axis1=1, axis2=2)
        require("cholesky", diagonal > 0, "must have a positive diagonal")
        rule = f"must have a diagonal of at least {LEAST:.0e} to be squared"
        require("cholesky", diagonal >= LEAST, rule, UNIT, ExtremeValuesError)

    @property
    def targets(self) -> int:
        return int(self.loc.shape[1])

    @cached_property
    def independent(self) -> Independent:
        """The distributions of each target by itself."""
        return Independent(tuple(Gaussian(loc, std) for loc, std in zip(self.loc.T, self.std().T, strict=True)))

    def of_target(self, place: int) -> Predictive:
        return self.independent.marginals[place]

    def parameters(self) -> tuple[str, dict[str, Values]]:
        rows, columns = np.tril_indices(self.targets)
        return "joint-gaussian:cholesky", {"loc": self.loc, "cholesky": self.cholesky[:, rows, columns]}

    def describe(self) -> list[str]:
        pairs = zip(self.independent.describe(), self.cholesky, strict=True)
        return [f"{marginals}; {_describe_correlations(factor)}" for marginals, factor in pairs]

    def mean(self) -> Values:
        return self.loc

    def std(self) -> Values:
        return np.asarray(np.hypot.reduce(self.cholesky, axis=2))  # squares may overflow

    cdf, cdf_left, log_prob, crps, quantile = forwarded(
        "independent", "cdf", "cdf_left", "log_prob", "crps", "quantile"
    )

    def joint_log_prob(self, y: Values) -> Values:
        away, z = y - self.loc, np.zeros_like(self.loc)
        scales = np.diagonal(self.cholesky, axis1=1, axis2=2)
        for target in range(self.targets):  # L z = y - loc, from the first target on
            explained = np.sum(self.cholesky[:, target, :target] * z[:, :target], axis=1)
            z[:, target] = (away[:, target] - explained) / scales[:, target]
        return np.asarray(-np.sum(z**2 / 2 + np.log(scales) + np.log(2 * np.pi) / 2, axis=1))

    def sample(self, rng: Random, size: int) -> Values:
        """Return draws of the target vectors, (n, size, t)."""
        normal = [rng.standard_normal((len(self), size)) for _ in range(self.targets)]
        drawn = np.repeat(self.loc[:, None], size, axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            for row, column in zip(*np.tril_indices(self.targets), strict=True):
                drawn[:, :, row] += self.cholesky[:, row, column, None] * normal[column]
        return drawn

    def mixed_moments(self, exponents: Indices) -> Values:
        """Return the moments by E Y_c f(Y) = loc_c E f(Y) + sum_d cov_cd E df/dy_d (Stein's lemma)."""
        covariance = self.cholesky @ np.swapaxes(self.cholesky, 1, 2)
        known = {(0,) * self.targets: np.ones(len(self))}

        def moment(powers: tuple[int, ...]) -> Values:
            if powers in known:
                return known[powers]
            column = int(np.argmax(powers))
            rest = _lowered(powers, column)
            known[powers] = self.loc[:, column] * moment(rest) + sum(
                covariance[:, column, other] * power * moment(_lowered(rest, other))
                for other, power in enumerate(rest)
                if power
            )
            return known[powers]

        return np.stack([moment(tuple(map(int, powers))) for powers in exponents], axis=1)

    def kernel_mean(self, points: Values, gamma: Values) -> Values:
        mean = np.empty((len(self), len(points)))
        size = max(1, BLOCK_VALUES // (len(self) * self.targets**2))
        for start in range(0, len(points), size):
            part = slice(start, start + size)
            distances, gammas = (
                points[part].T[:, None] - self.loc.T[:, :, None],
                gamma if gamma.ndim == 1 else gamma[part],
            )
            mean[:, part] = joint_normal_kernel_mean(distances, self.cholesky, gammas)
        return mean

    def kernel_norm(self, gamma: Values) -> Values:
        same = np.zeros((self.targets, len(self), 1))  # Y - Y' is normal with twice the covariance
        return joint_normal_kernel_mean(same, np.sqrt(2) * self.cholesky, gamma)[:, 0]


def _lowered(powers: tuple[int, ...], column: int) -> tuple[int, ...]:
    """Return the exponents with that of one column reduced by 1."""
    return tuple(power - (place == column) for place, power in enumerate(powers))


def from_cholesky(loc: Values, cholesky: Values) -> JointGaussian:
    """Return distributions with means (n, t) and factors (n, t, t), or (n, t (t + 1) / 2) or (n, t t) row by row."""
    _require_several_targets(loc)
    return JointGaussian(loc, _matrices("cholesky", cholesky, loc.shape[1]))


def from_covariance(loc: Values, covariance: Values) -> JointGaussian:
    """Return the distributions with means (n, t) and covariances, which have the forms of :func:`from_cholesky`."""
    _require_several_targets(loc)
    lower = _matrices("covariance", covariance, loc.shape[1])
    require_moderate("covariance", lower, power=2)
    matrices = np.tril(lower) + np.swapaxes(np.tril(lower, -1), 1, 2)
    factors = _cholesky_factors(matrices)
    if np.any(np.triu(lower, 1)):
        std = np.linalg.norm(factors, axis=2)
        error = np.abs(lower - matrices) / (std[:, None] * std[:, :, None])
        require("covariance", error <= ASYMMETRY, "must be symmetric", "Is it a Cholesky factor?")
    return JointGaussian(loc, factors)


def _require_several_targets(loc: Values) -> None:
    if loc.ndim != 2 or loc.shape[1] < PAIR:  # noqa: PLR2004 - rows and targets
        found = loc.shape[1] if loc.ndim == 2 else f"shape {loc.shape}"  # noqa: PLR2004
        raise DataError(
            f"joint normal distributions need a mean loc for each of at least 2 targets, got {found}. For one target,"
            " pass --dist gaussian"
        )


def _matrices(name: str, values: Values, t: int) -> Values:
    """Return (n, t, t) matrices from their lower triangles or from all of their numbers."""
    numbers = values.reshape(len(values), -1)
    if numbers.shape[1] == t * t:
        return numbers.reshape(-1, t, t)
    rows, columns = np.tril_indices(t)
    if numbers.shape[1] != len(rows):
        raise DataError(
            f"{name} has {numbers.shape[1]} numbers per row, and loc has {t}: {name} needs {len(rows)}, the lower"
            f" triangle row by row, or {t * t}"
        )
    matrices = np.zeros((len(numbers), t, t))
    matrices[:, rows, columns] = numbers
    return matrices


def _cholesky_factors(matrices: Values) -> Values:
    """Return the Cholesky factors of symmetric matrices (n, t, t)."""
    try:
        return np.asarray(np.linalg.cholesky(matrices))
    except np.linalg.LinAlgError:
        good = np.array([_is_positive_definite(matrix) for matrix in matrices])
        require("covariance", good, "must be positive definite", "Are variances 0, or targets functions of the others?")
        raise


def _is_positive_definite(matrix: Values) -> bool:
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


def _describe_correlations(factor: Values) -> str:
    """Return the correlation of two targets, or the range of those of more, given a Cholesky factor."""
    directions = factor / np.hypot.reduce(factor, axis=1, keepdims=True)
    correlations = (directions @ directions.T)[np.tril_indices(len(factor), -1)]
    if len(factor) == PAIR:
        return f"correlation {format_plain(correlations[0])}"
    return f"correlations from {format_plain(correlations.min())} to {format_plain(correlations.max())}"


DEPENDENT = (JointGaussian, NormalCopula)


def with_marginals(joint: Predictive, marginals: Sequence[Predictive]) -> Predictive:
    """Return the distributions of several targets with other marginal distributions and the same dependence.

    Draws have the ranks that they had, and other dependent distributions the normal scores. Intervals alone state no
    dependence.
    """
    if any(each.interval_levels is not None for each in marginals):
        return Independent(tuple(marginals))
    if isinstance(joint, Samples):
        return _draws_by_rank(joint, marginals)
    if isinstance(joint, NormalCopula):
        return NormalCopula(tuple(marginals), joint.cholesky)
    if not isinstance(joint, JointGaussian):
        return Independent(tuple(marginals))
    correlations = joint.cholesky / joint.std()[:, :, None]
    normal = Independent(tuple(marginals)).normal()
    if normal is None:
        return NormalCopula(tuple(marginals), correlations)
    loc, std = normal
    return JointGaussian(loc, correlations * std[:, :, None])


def _draws_by_rank(joint: Samples, marginals: Sequence[Predictive]) -> Samples:
    """Return draws of other marginal distributions in the order of those that are given (Schefzik et al. 2013)."""
    draws = [each.draws for each in marginals if isinstance(each, Samples)]
    if len(draws) == len(marginals):
        return Samples(np.stack(draws, axis=2))
    levels = np.arange(1, joint.n_draws + 1) / (joint.n_draws + 1)
    ordered = [np.stack([each.quantile(float(level)) for level in levels], axis=1) for each in marginals]
    ranks = np.argsort(np.argsort(joint.draws, axis=1, kind="stable"), axis=1)
    return Samples(np.take_along_axis(np.stack(ordered, axis=2), ranks, axis=1))
