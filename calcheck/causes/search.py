"""The causes that explain a fault, by likelihoods on rows that nothing was fitted to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calcheck.causes import fits
from calcheck.causes.candidates import CONSTANT_STD, FAR, READINGS, UNEVEN, Candidate, Case, candidates
from calcheck.causes.fits import NORMAL, Fit, Likely, Scored
from calcheck.statistics.zscores import ranks
from calcheck.typing import Mask, Values

FEWEST_ROWS = 30
MOST_CAUSES = 3
BETTER = 2.5  # Log-likelihood by which a cause must exceed all plain corrections
MUCH_BETTER, MUCH_BETTER_LEAST = 10.0, 0.5  # From which on half of the fault is enough
AS_GOOD = -3.5  # The same, for a cause that stretches all predictions by about one factor that is far from 1
AS_GOOD_TAILS = -8.0  # The same, for heavy tails
NEAR = 6.0  # Log-likelihood within which further causes are told
LEAST_FAULT = 0.005
MOST_EXPLAINED = 0.9  # Least share of the fault that a cause explains which leaves a factor
LARGE = 1.6  # Minimum logarithm of a factor that a cause explains in part: 5
NEARLY = 0.03  # Log-likelihood per row that such a cause may lack
MEDIAN = 0.6745  # Of the absolute value of normal numbers


class Explanation(NamedTuple):
    """A cause with its log-likelihood of all rows on held-out halves, and the share of the fault that it explains."""

    candidate: Candidate
    log_likelihood: float
    explained: float


def find_causes(case: Case, *, seed: int = 0) -> list[Explanation]:
    """Return the causes that explain the fault of predictions, the most likely first."""
    if len(case.rows) < FEWEST_ROWS:
        return []
    with np.errstate(all="ignore"):
        halves = _halves(len(case.rows), seed)
        fault = Fault(case)
        stated = held_out(fits.as_stated(case.scored, (NORMAL,)), halves)
        before = fault.size(stated.pit)
        if before < LEAST_FAULT:
            return []
        plain = [best_plain(case, halves, freedoms) for freedoms in ((NORMAL,), fits.FREEDOMS)]
        tried = [(each, held_out(each.fit, halves)) for each in candidates(case)]
        found = [
            Explanation(each, float(likely.log_density.sum()), 1 - fault.size(likely.pit) / before)
            for each, likely in tried
        ]
        trial = Trial(case, halves, *plain)
        able = [each for each in found if each.explained >= trial.least(each)]
        told = [each for each in able if trial.counts(each) or trial.is_nearer(each)]
        alike = {each.candidate.alike for each in told} - {""}
        return _chosen([*told, *(each for each in able if each.candidate.alike in alike)])


def best_plain(case: Case, halves: Sequence[Mask], freedoms: Sequence[float]) -> float:
    """Return the largest log-likelihood of predictions with no or a free shift, and no or a free factor."""
    every = [fits.as_stated(case.scored, freedoms)]
    every += [
        fits.recalibrated(case.scored, shift=shift, scale=scale, freedoms=freedoms)
        for shift, scale in ((True, False), (False, True), (True, True))
    ]
    return max(float(held_out(each, halves).log_density.sum()) for each in every)


def _chosen(told: list[Explanation]) -> list[Explanation]:
    """Return the causes that are told: the most likely and those nearly as likely; an uneven std only beside noise."""
    told.sort(key=lambda each: (each.candidate.name == UNEVEN, each.candidate.surplus - each.log_likelihood))
    best: dict[str, Explanation] = {}
    for each in told:
        is_other = each.candidate.name != UNEVEN or told[0].candidate.alike == UNEVEN
        if is_other and each.log_likelihood >= told[0].log_likelihood - NEAR:
            best.setdefault(each.candidate.name, each)
    return list(best.values())[:MOST_CAUSES]


@dataclass(frozen=True)
class Trial:
    """Whether causes explain a fault better than plain corrections of the predictions."""

    case: Case
    halves: Sequence[Mask]
    normal: float  # Log-likelihood of the best plain correction, with normal errors
    any_tail: float  # The same, with errors that may have heavy tails

    def least(self, each: Explanation) -> float:
        """Return the least share of the fault that a cause must explain, which is a half if it is far more likely."""
        than = self.normal if self._has_tails(each) else self.any_tail
        is_clear = each.candidate.is_corrected and each.log_likelihood - than >= MUCH_BETTER
        return MUCH_BETTER_LEAST if is_clear else each.candidate.least

    def counts(self, each: Explanation) -> bool:
        """Return whether a cause is more likely than plain corrections, or as likely and far from none."""
        own = each.candidate
        surplus = each.log_likelihood - self.any_tail
        if self._has_tails(each):  # which corrections may have, too
            return surplus >= AS_GOOD_TAILS and each.log_likelihood - self.normal >= BETTER
        if surplus >= BETTER + own.surplus:
            return True
        if own.stretched is None or surplus < AS_GOOD + own.surplus:
            return False
        factor = float(np.median(np.log(own.stretched.spread / self.case.scored.spread)))
        return abs(factor) >= FAR and self._total(fits.as_stated(own.stretched, (NORMAL,))) >= self.normal + AS_GOOD

    def _has_tails(self, each: Explanation) -> bool:
        """Return whether a cause changes the tails of errors only."""
        return each.candidate.name == "heavy-tails" or each.candidate.alike == CONSTANT_STD

    def is_nearer(self, each: Explanation) -> bool:
        """Return whether another reading of the std explains most of a large factor, and is nearly as likely."""
        own = each.candidate
        if own.name not in READINGS or own.stretched is None or each.explained < MOST_EXPLAINED:
            return False
        before, after = (abs(np.log(size_of(one))) for one in (self.case.scored, own.stretched))
        if before < LARGE or after > before / 2:
            return False
        free = fits.recalibrated(own.stretched, shift=True, scale=True)
        return self._total(free) >= self.any_tail - NEARLY * len(self.case.rows)

    def _total(self, fit: Fit) -> float:
        return float(held_out(fit, self.halves).log_density.sum())


def size_of(scored: Scored) -> float:
    """Return the median size of normal scores, relative to that of a right model."""
    return float(np.median(np.abs(scored.evaluate()[0]))) / MEDIAN


def _halves(n: int, seed: int) -> list[Mask]:
    """Return two random halves of the rows."""
    first = np.zeros(n, np.bool_)
    first[np.random.default_rng(seed).permutation(n)[: n // 2]] = True
    return [first, ~first]


def held_out(fit: Fit, halves: Sequence[Mask]) -> Likely:
    """Return how likely the targets of each half are after a fit to the other."""
    parts = [fit(each) for each in halves]
    return Likely(*(np.where(halves[0], second, first) for first, second in zip(*parts, strict=True)))


class Fault:
    """By how much probability integral transforms differ from those of a right model, on average and along columns."""

    def __init__(self, case: Case) -> None:
        extra = [] if case.inside is None else [case.inside.astype(np.float64)]
        columns = (case.scored.spread, *case.numbers.values(), *extra)
        self.along = [each for column in columns for each in _standard(column)]

    def size(self, pit: Values) -> float:
        """Return the sum of squared means of Legendre polynomials, less what chance adds; at least 0."""
        u = np.clip(pit, 0, 1)
        first, second = np.sqrt(3) * (2 * u - 1), np.sqrt(5) * (6 * u**2 - 6 * u + 1)
        third = np.sqrt(7) * (20 * u**3 - 30 * u**2 + 12 * u - 1)
        fourth = 3 * (70 * u**4 - 140 * u**3 + 90 * u**2 - 20 * u + 1)
        parts = [first, second, third, fourth, *(each * g for g in self.along for each in (first, second))]
        return max(sum(float(np.mean(each)) ** 2 for each in parts) - len(parts) / len(u), 0.0)


def _standard(column: Values) -> Iterator[Values]:
    """Yield the standardized ranks of a column, unless it is constant."""
    if np.ptp(column) > 0:
        values = ranks(column)
        yield (values - values.mean()) / values.std()
