"""Kernels of every array library, as functions."""

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb, factorial

import numpy as np

from calcheck.execution.backend import namespace
from calcheck.typing import Array

CACHE_BYTES = 1 << 19  # Bytes per chunk: half of a typical level 2 cache
MAX_SCALED_NORM = 300.0  # Limit on gamma |x|^2; above it, |x|^2 - 2 x.x' + |x'|^2 is too inaccurate for small distances


@dataclass(frozen=True)
class Kernel(ABC):
    """A positive definite function of two inputs."""

    @abstractmethod
    def gram(self, a: Array, b: Array) -> Array:
        """Return k(a_i, b_j) for (p, d) and (q, d) inputs, (p, q)."""

    def diagonal(self, a: Array) -> Array:
        """Return k(a_i, a_i), (p,): 1 for translation-invariant kernels."""
        return namespace(a).ones(len(a), dtype=a.dtype, device=a.device)


@dataclass(frozen=True)
class Rbf(Kernel):
    """RBF kernel exp(-gamma |x - x'|^2) with the Euclidean norm; gamma in 1 / unit^2."""

    gamma: float

    def gram(self, a: Array, b: Array) -> Array:
        xp = namespace(a)
        squares_a, squares_b = xp.vecdot(a, a), xp.vecdot(b, b)
        if a.shape[1] == 1 or self.gamma * xp.max(squares_b) > MAX_SCALED_NORM:
            return _exponential(_summed_differences(a, b, squared=True), -self.gamma)
        block = a @ b.T
        for start, part in _in_cache(block):
            part *= -2
            part += squares_a[start : start + len(part), None]
            part += squares_b
        return _exponential(block, -self.gamma)


@dataclass(frozen=True)
class Laplace(Kernel):
    """Laplace kernel exp(-gamma |x - x'|_1) with the L1 norm, not squared; gamma in 1 / unit."""

    gamma: float

    def gram(self, a: Array, b: Array) -> Array:
        return _exponential(_summed_differences(a, b, squared=False), -self.gamma)


@dataclass(frozen=True)
class Polynomial(Kernel):
    """Polynomial kernel (gamma x . x' + coef0)^degree."""

    degree: int
    gamma: float
    coef0: float

    def gram(self, a: Array, b: Array) -> Array:
        block = a @ b.T
        for _, part in _in_cache(block):
            if self.gamma != 1:
                part *= self.gamma
            part += self.coef0
            _raise(part, self.degree)
        return block

    def diagonal(self, a: Array) -> Array:
        return (self.gamma * namespace(a).vecdot(a, a) + self.coef0) ** self.degree

    def monomials(self, a: Array, most: int) -> Array | None:
        """Return monomials Z (p, q) of (p, d) inputs, with K = Z Z^T; None if there are more than ``most``."""
        if self.coef0 < 0 or comb(a.shape[1] + self.degree, self.degree) > most:
            return None
        xp, found = namespace(a), []
        for powers in combinations_with_replacement(range(a.shape[1] + 1), self.degree):
            counts, column = Counter(powers), math.sqrt(factorial(self.degree)) * xp.ones_like(a[:, 0])
            for place, count in counts.items():
                scale = self.coef0 if place == a.shape[1] else self.gamma
                root = math.sqrt(scale**count / factorial(count))
                column = column * (root if place == a.shape[1] else root * a[:, place] ** count)
            found.append(column)
        return xp.stack(found, axis=1)


@dataclass(frozen=True)
class FeatureAware(Kernel):
    """Kernel ((1 - epsilon) k_1(f, f') + epsilon) k_2(y, y'); the last columns are features f of the others, y."""

    rest: Kernel  # k_2
    features: Kernel  # k_1
    count: int  # Number of features
    epsilon: float  # Weight of the kernel without features, from 0 to 1

    def gram(self, a: Array, b: Array) -> Array:
        of_features = self.features.gram(a[:, -self.count :], b[:, -self.count :])
        mixed = (1 - self.epsilon) * of_features + self.epsilon
        return mixed * self.rest.gram(a[:, : -self.count], b[:, : -self.count])


KERNELS: dict[str, Callable[..., Kernel]] = {"rbf": Rbf, "laplace": Laplace, "polynomial": Polynomial}


def _in_cache(block: Array) -> Iterator[tuple[int, Array]]:
    """Yield the start row and the values of each chunk of a block; other libraries than NumPy get one chunk."""
    rows = len(block)
    if isinstance(block, np.ndarray):
        rows = max(1, CACHE_BYTES // max(1, block[:1].nbytes))
    for start in range(0, len(block), rows):
        yield start, block[start : start + rows]


def _summed_differences(a: Array, b: Array, *, squared: bool) -> Array:
    """Return sum_k |a_ik - b_jk|, or the sum of squared differences, (p, q)."""
    xp = namespace(a)
    block = xp.zeros((len(a), len(b)), dtype=a.dtype, device=a.device)
    for start, part in _in_cache(block):
        rows = a[start : start + len(part)]
        for column in range(a.shape[1]):
            difference = rows[:, column, None] - b[:, column]
            part += difference * difference if squared else xp.abs(difference)
    return block


def _exponential(block: Array, factor: float) -> Array:
    """Compute exp(factor * block) in place."""
    xp = namespace(block)
    for _, part in _in_cache(block):
        part *= factor
        part[...] = xp.exp(part)
    return block


def _raise(part: Array, degree: int) -> None:
    """Raise to a power in place, by repeated squaring: ten times faster than a general power function."""
    base = part * 1
    for bit in bin(degree)[3:]:
        part *= part
        if bit == "1":
            part *= base
