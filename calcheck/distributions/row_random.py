"""Random numbers per row that depend only on the key of the row, not on other rows or their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from numpy.random import Generator

    from calcheck.typing import AnyArray, Indices, Mask, Values


Words = NDArray[np.uint64]
Size = int | tuple[int, int]
Random: TypeAlias = "Generator | RowRandom"
PART = 1 << 15  # Rows per batch: 0.25 MB per array, which fits in the cache
DROPPED_BITS = np.uint64(12)  # Dropped of 64 bits; the other 52 bits plus 1/2 are an exact float
ROUNDED_BITS = np.uint64(1 << 20)  # Unit of the last bit kept of a number, which keeps 10 significant digits
MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))  # Constants of SplitMix64's finalizer
SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
STEPS = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0x8CB92BA72F3D8DD7)  # Odd hash offsets per replicate, call and number
INVERTED_BELOW = 10.0  # Poisson rates below this use inversion, others Hormann's rejection method
MAX_INVERTED = 100  # Maximum Poisson value by inversion: P(Y >= 100) < 1e-60
MAX_ATTEMPTS = 400  # Maximum attempts of rejection sampling; each is rejected with probability below 0.4
NUMBERS = 4  # Random numbers per attempt, at most


def mix(words: Words) -> Words:
    """Return hashes of words by the finalizer of SplitMix64 (Steele, Lea, Flood 2014)."""
    hashed = words >> SHIFTS[0]
    hashed ^= words
    hashed *= MULTIPLIERS[0]
    hashed ^= hashed >> SHIFTS[1]
    hashed *= MULTIPLIERS[1]
    hashed ^= hashed >> SHIFTS[2]
    return hashed


def hash_rows(columns: list[AnyArray], key: int) -> Words:
    """Return a hash of each row of columns (n, ...), (n,), which is that of equal numbers at any position."""
    hashed = np.full(len(columns[0]), key, dtype=np.uint64)
    for column in columns:
        rows = column.reshape(len(column), -1)
        factors = mix(np.arange(1, rows.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
        for part in _parts(len(rows), rows.shape[1]):
            hashed[part] = mix(hashed[part] ^ (mix(_words(rows[part])) * factors).sum(axis=1))
    return hashed


def _words(values: AnyArray) -> Words:
    """Return numbers as 64-bit words without their last digits, in which computations differ between machines."""
    if values.dtype == np.uint64:
        return values
    words = np.ascontiguousarray(values + 0.0, dtype=np.float64).view(np.uint64)
    return (words + ROUNDED_BITS // np.uint64(2)) & ~(ROUNDED_BITS - np.uint64(1))


class RowRandom:
    """Random numbers for n rows and a sequence of replicates, with methods of :class:`numpy.random.Generator`.

    Each number is a hash of the key of its row, the index of its replicate, and its index within both. A replicate can
    thus be drawn without the previous ones, and a row without the other rows.

    Results are (n, size) with one replicate per column, or (n,) for the first replicate only. Uniform numbers have
    52 bits and are in (0, 1). Methods: normal by Box and Muller (1958), for two replicates at a time; Student-t by
    Bailey (1994); gamma by Marsaglia and Tsang (2000); Poisson by inversion and, for rates of at least 10, by Hormann's
    PTRS (1993) with log probabilities that are accurate at any rate.
    """

    def __init__(
        self,
        keys: Words,  # (n,) of whole numbers, key of each row
        first: int = 0,  # Index of the first replicate
        calls: int = 0,  # Number of earlier method calls
    ) -> None:
        self._keys, self._first, self._calls = keys, first, calls

    def for_replicate(self, replicate: int) -> RowRandom:
        """Return the random numbers that start ``replicate`` replicates later."""
        return RowRandom(self._keys, self._first + replicate, self._calls)

    def take(self, rows: slice) -> RowRandom:
        """Return the random numbers of the selected rows."""
        return RowRandom(self._keys[rows], self._first, self._calls)

    def random(self, size: Size) -> Values:
        """Return uniform numbers in (0, 1)."""
        return self._draw_batches(size, lambda numbers: numbers.uniform(0))

    def integers(self, low: int, high: int, size: Size) -> Indices:
        """Return uniform whole numbers from low to high - 1."""
        return np.asarray(low + np.floor((high - low) * self.random(size)), dtype=np.intp)

    def standard_normal(self, size: Size) -> Values:
        """Return standard normal numbers."""
        result, call = self._begin(size)
        step, stop = 2 * max(1, PART // len(self._keys)), self._first + len(result)
        for start in range(self._first // 2 * 2, stop, step):  # of pairs of replicates
            own = range(max(start, self._first), min(start + step, stop))
            offsets = [STEPS[0] * (pair + 1) % (1 << 64) for pair in range(start // 2, (own.stop + 1) // 2)]
            for rows in _parts(len(self._keys)):
                keys = self._keys[rows] + np.array(offsets, np.uint64)[:, None]
                pairs = np.stack(_Numbers(keys, STEPS[1] * call).normal_pair(), axis=1).reshape(2 * len(offsets), -1)
                result[own.start - self._first : own.stop - self._first, rows] = pairs[own.start - start :][: len(own)]
        return _reshape(result, size)

    def standard_cauchy(self, size: Size) -> Values:
        """Return standard Cauchy numbers."""
        return np.asarray(np.tan(np.pi * (self.random(size) - 0.5)))

    def laplace(self, loc: float = 0.0, scale: float = 1.0, size: Size = 1) -> Values:
        """Return Laplace numbers."""
        away = self.random(size) - 0.5
        return np.asarray(loc - scale * np.sign(away) * np.log1p(-2 * np.abs(away)))

    def lognormal(self, mean: Values, sigma: Values, size: Size) -> Values:
        """Return log-normal numbers; infinite on overflow."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(mean + sigma * self.standard_normal(size)))

    def standard_t(self, df: Values, size: Size) -> Values:
        """Return Student-t numbers."""
        return self._draw_batches(size, _student_t, df)

    def gamma(self, shape: Values, scale: Values | float, size: Size) -> Values:
        """Return gamma numbers."""
        return scale * self._draw_batches(size, _gamma, shape)

    def poisson(self, lam: Values, size: Size) -> Values:
        """Return Poisson numbers, as floats."""
        return self._draw_batches(size, _poisson, lam)

    def _begin(self, size: Size) -> tuple[Values, int]:
        """Return an empty array for results, (replicates, n), and the index of this call."""
        self._calls += 1
        return np.empty((size[1] if isinstance(size, tuple) else 1, len(self._keys))), self._calls

    def _draw_batches(self, size: Size, draw: Callable[..., Values], *parameters: Values) -> Values:
        """Return the numbers that ``draw`` returns for batches of rows; parameters are (n, 1) or (n, size)."""
        result, call = self._begin(size)
        arrays = [np.broadcast_to(values, result.T.shape) for values in parameters]
        for line, values in enumerate(result):
            offset = STEPS[0] * (self._first + line + 1) + STEPS[1] * call
            for rows in _parts(len(self._keys)):
                numbers = _Numbers(self._keys[rows], offset)
                values[rows] = draw(numbers, *(array[rows, line] for array in arrays))
        return _reshape(result, size)


@dataclass(frozen=True, eq=False)
class _Numbers:
    """The random numbers of rows in one replicate."""

    keys: Words  # (k,), keys of the rows
    offset: int  # Offset of the replicate and the call

    def take(self, rows: Indices) -> _Numbers:
        """Return the random numbers of the selected rows."""
        return _Numbers(self.keys[rows], self.offset)

    def later(self, numbers: int) -> _Numbers:
        """Return the random numbers after the first ``numbers`` of each row."""
        return _Numbers(self.keys, self.offset + STEPS[2] * numbers)

    def uniform(self, number: int) -> Values:
        """Return the uniform number with a given index for each row, (k,)."""
        words = mix(self.keys + np.uint64((self.offset + STEPS[2] * number) % (1 << 64)))
        words >>= DROPPED_BITS
        result = words.astype(np.float64)
        result += 0.5
        result *= 2.0**-52
        return result

    def normal_pair(self) -> tuple[Values, Values]:
        """Return two independent standard normal numbers per row, from its first two uniform numbers."""
        radius, half = np.sqrt(-2 * np.log(self.uniform(0))), np.tan(np.pi * self.uniform(1))
        square = half * half
        radius /= 1 + square
        return radius * (1 - square), 2 * half * radius


def _student_t(numbers: _Numbers, df: Values) -> Values:
    with np.errstate(over="ignore"):  # overflow to inf for very small df
        radius = np.sqrt(df * np.expm1(-2 / df * np.log(numbers.uniform(0))))
    return np.asarray(radius * np.cos(2 * np.pi * numbers.uniform(1)))


def _gamma(numbers: _Numbers, shape: Values) -> Values:
    """Return gamma numbers of scale 1; for shapes < 1, those of shape + 1 times a power of a uniform number."""
    raised = np.where(shape < 1, shape + 1, shape) - 1 / 3

    def propose(numbers: _Numbers, rows: Indices) -> tuple[Values, Mask]:
        most = raised[rows]
        normal = numbers.normal_pair()[0]
        step = normal / (3 * np.sqrt(most))
        excess = step * (3 + step * (3 + step))  # (1 + step)^3 - 1
        log = np.log1p(excess, out=np.full_like(excess, -np.inf), where=excess > -1)
        return most * (1 + excess), np.log(numbers.uniform(2)) < normal**2 / 2 + most * (log - excess)

    result = _rejection_sample(numbers.later(1), propose)
    power = np.exp(np.log(numbers.uniform(0)) / np.minimum(shape, 1))
    return np.where(shape < 1, result * power, result)


def _poisson(numbers: _Numbers, rate: Values) -> Values:
    result = np.empty(len(rate))
    for rows, draw in ((rate < INVERTED_BELOW, _poisson_by_inversion), (rate >= INVERTED_BELOW, _poisson_by_rejection)):
        chosen = np.flatnonzero(rows)
        result[chosen] = draw(numbers.take(chosen), rate[chosen])
    return result


def _poisson_by_inversion(numbers: _Numbers, rate: Values) -> Values:
    left, mass = numbers.uniform(0), np.exp(-rate)
    result, rows = np.zeros(len(rate)), np.arange(len(rate))
    for count in range(1, MAX_INVERTED + 1):
        left = left - mass
        more = left > 0
        rows, left, mass = rows[more], left[more], mass[more] * rate[rows[more]] / count
        if not len(rows):
            break
        result[rows] = count
    return result


def _poisson_by_rejection(numbers: _Numbers, rate: Values) -> Values:
    from calcheck.distributions.special import log_poisson

    b = 0.931 + 2.53 * np.sqrt(rate)
    a, inverse_alpha, v_r = -0.059 + 0.02483 * b, 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)

    def propose(numbers: _Numbers, rows: Indices) -> tuple[Values, Mask]:
        near, v = numbers.uniform(0) - 0.5, numbers.uniform(1)
        left = 0.5 - np.abs(near)
        count = np.floor((2 * a[rows] / left + b[rows]) * near + rate[rows] + 0.43)
        fine = (left >= 0.07) & (v <= v_r[rows])  # noqa: PLR2004 - Hormann's constants
        never = (count < 0) | ((left < 0.013) & (v > left))  # noqa: PLR2004
        rest = np.flatnonzero(~(fine | never))
        at = rows[rest]
        height = np.log(v[rest] * inverse_alpha[at] / (a[at] / left[rest] ** 2 + b[at]))
        fine[rest] = height <= log_poisson(count[rest], rate[at])
        return count, fine

    return _rejection_sample(numbers, propose)


def _rejection_sample(numbers: _Numbers, propose: Callable[[_Numbers, Indices], tuple[Values, Mask]]) -> Values:
    """Return the first accepted proposal of each row, by rejection sampling."""
    result, rows = np.empty(len(numbers.keys)), np.arange(len(numbers.keys))
    for attempt in range(MAX_ATTEMPTS):
        values, fine = propose(numbers.later(NUMBERS * attempt).take(rows), rows)
        result[rows] = values
        rows = rows[~fine]
        if not len(rows):
            break
    return result


def _parts(n: int, width: int = 1) -> Iterator[slice]:
    """Yield slices of n rows, of ``width`` numbers each, that fit in the cache."""
    size = max(1, PART // width)
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def _reshape(result: Values, size: Size) -> Values:
    return result.T if isinstance(size, tuple) else result[0]


def hash_order(y: AnyArray) -> int:
    """Return a hash of the sort order of the targets, which does not depend on their unit."""
    order = np.argsort(y, axis=None, kind="stable").astype("<i8", copy=False)
    return int.from_bytes(blake2b(order.data, digest_size=8).digest())


def occurrences(values: Words) -> Words:
    """Return the number of equal values before each value, (n,)."""
    order = np.argsort(values, kind="stable")
    places = np.arange(len(values))
    first = np.concatenate([[True], np.diff(values[order]) != 0])
    found = np.empty(len(values), dtype=np.uint64)
    found[order] = places - np.maximum.accumulate(np.where(first, places, 0))
    return found


def bottom_k(hashes: NDArray[np.uint64], size: int) -> Indices:
    """Return the positions of the smallest of (n,) hashes, in ascending order of hashes, (min(n, size),)."""
    if size >= len(hashes):
        return np.argsort(hashes, kind="stable")
    found = np.argpartition(hashes, size)[:size]
    return found[np.lexsort((found, hashes[found]))]
