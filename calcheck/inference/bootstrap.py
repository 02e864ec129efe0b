"""The bootstrap of functions of means: rows resampled with replacement, as weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from calcheck.execution.context import RandomStream
from calcheck.execution.prefetch import one_blas_thread
from calcheck.statistics.groups import Averages

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.statistics.groups import Means, MeanTerm

BLOCK_DRAWS = (
    1 << 21
)  # of rows, in one block of resamples: 16 MiB of weights, so that many share a pass over the columns
BLOCK_DRAWS_IN_GROUPS = 1 << 18  # groups as many as rows take several passes over the weights: 2 MiB stay in the cache


@dataclass(frozen=True, eq=False)
class Statistic:
    """A function of the means of n rows.

    Parameters
    ----------
    averages : Averages
        What is averaged.
    function : callable
        Takes the means, by name, and n; leading axes count resamples.
    fixed : mapping
        What it takes besides means, by name.
    """

    averages: Averages
    function: Callable[[Mapping[str, NDArray[np.float64]], int], NDArray[np.float64]]
    fixed: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    @classmethod
    def from_terms(
        cls,
        terms: Mapping[str, MeanTerm],
        n: int,
        function: Callable[[Mapping[str, NDArray[np.float64]], int], NDArray[np.float64]],
    ) -> Statistic:
        """Make a statistic of n rows from what is averaged."""
        return cls(Averages(terms, n), function)

    def of_means(self, means: Means, n: int) -> NDArray[np.float64]:
        """Return the statistic at some means."""
        with np.errstate(all="ignore"):  # a group without rows has no mean; what is not finite is counted
            return np.asarray(self.function({**means, **self.fixed}, n))

    def estimate(self) -> float:
        """Return the statistic of the rows themselves."""
        return float(self.of_means(self.averages.means(), self.averages.n))

    def leave_one_out(self) -> NDArray[np.float64]:
        """Return the statistic without each row in turn, (n,)."""
        return self.of_means(self.averages.leave_one_out(), self.averages.n - 1)


class Replicates:
    """Statistics of the same rows under the same resamples, which can be added to.

    Parameters
    ----------
    statistics : sequence of Statistic
        All of them of the same n rows.
    run : Run
        Seed and progress.
    number : int
        Which of several resamplings in this run.
    stage : str
        What progress calls the work.
    """

    def __init__(
        self, statistics: Sequence[Statistic], run: Run, *, number: int = 0, stage: str = "resampling"
    ) -> None:
        self._statistics, self._run, self._stage = statistics, run, stage
        self._n = statistics[0].averages.n
        self._blocks = number << 32  # each block has a generator of its own, so that more of them change none
        joined = {(at, name): term for at, each in enumerate(statistics) for name, term in each.averages.terms.items()}
        self._names = {f"{at}.{name}": (at, name) for at, name in joined}
        self._averages = Averages({f"{at}.{name}": term for (at, name), term in joined.items()}, self._n)
        self.values = np.empty((len(statistics), 0))
        """(statistics, resamples)"""

    def draw(self, resamples: int) -> None:
        """Resample until there are so many."""
        draws = BLOCK_DRAWS if self._averages.plain else BLOCK_DRAWS_IN_GROUPS
        size = max(1, draws // self._n)
        parts, have, first = [self.values], self.values.shape[1], self.values.shape[1]
        with one_blas_thread():
            while have < resamples:
                parts.append(self._block(min(size, resamples - have)))
                have += parts[-1].shape[1]
                self._run.progress(self._stage, (have - first) / (resamples - first))
        self.values = np.concatenate(parts, axis=1)

    def _block(self, size: int) -> NDArray[np.float64]:
        rng = self._run.rng(RandomStream.RESAMPLES, self._blocks)
        self._blocks += 1
        found = self._averages.resampled(size, rng)
        means: list[Means] = [{} for _ in self._statistics]
        for joined, (at, name) in self._names.items():
            means[at][name] = found[joined]
        each = [statistic.of_means(own, self._n) for statistic, own in zip(self._statistics, means, strict=True)]
        return np.stack([np.broadcast_to(values, size) for values in each])
