"""Bootstrap of functions of means: rows are resampled with replacement, represented by weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from calcheck.execution.context import RandomStream
from calcheck.execution.prefetch import one_blas_thread
from calcheck.statistics.groups import Averages, Means

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.statistics.groups import MeanTerm

BLOCK_DRAWS = 1 << 21  # Row draws per block of resamples: 16 MiB of weights share one pass over the columns
BLOCK_DRAWS_IN_GROUPS = 1 << 18  # The same for grouped terms, which read the weights repeatedly: 2 MiB fit the cache


@dataclass(frozen=True, eq=False)
class Statistic:
    """A function of the means of n rows.

    Parameters
    ----------
    averages : Averages
        The terms that are averaged.
    function : callable
        Takes the means; leading axes index resamples.
    fixed : mapping
        Further arguments of the function that are not means, by name.
    """

    averages: Averages
    function: Callable[[Means], NDArray[np.float64]]
    fixed: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    @classmethod
    def from_terms(
        cls,
        terms: Mapping[str, MeanTerm],
        n: int,
        function: Callable[[Means], NDArray[np.float64]],
    ) -> Statistic:
        """Return a statistic of n rows from the terms that it averages."""
        return cls(Averages(terms, n), function)

    def of_means(self, means: Means) -> NDArray[np.float64]:
        """Return the statistic at the given means."""
        with np.errstate(all="ignore"):  # Empty groups have no mean; callers count non-finite values
            return np.asarray(self.function(means.with_values(self.fixed)))

    def estimate(self) -> float:
        """Return the statistic of the original rows."""
        return float(self.of_means(self.averages.means()))

    def leave_one_out(self) -> NDArray[np.float64]:
        """Return the leave-one-out values of the statistic, (n,)."""
        return self.of_means(self.averages.leave_one_out())


class Replicates:
    """Bootstrap replicates of several statistics of the same rows, under the same resamples; more can be drawn.

    Parameters
    ----------
    statistics : sequence of Statistic
        Statistics of the same n rows.
    run : Run
        Seed and progress.
    number : int
        The number of the random stream, if a run resamples several times.
    stage : str
        The stage name shown by progress.
    """

    def __init__(self, statistics: Sequence[Statistic], run: Run, *, number: int = 0, stage: str = "resamples") -> None:
        self._statistics, self._run, self._stage = statistics, run, stage
        self._n = statistics[0].averages.n
        self._blocks = number << 32  # Each block has its own generator, so further blocks do not change earlier ones
        joined = {(at, name): term for at, each in enumerate(statistics) for name, term in each.averages.terms.items()}
        self._names = {f"{at}.{name}": (at, name) for at, name in joined}
        self._averages = Averages({f"{at}.{name}": term for (at, name), term in joined.items()}, self._n)
        self.values = np.empty((len(statistics), 0))
        """Replicates, (statistics, resamples)."""

    def draw(self, resamples: int) -> None:
        """Draw resamples until ``values`` has ``resamples`` columns."""
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
        means = [Means({}, self._n) for _ in self._statistics]
        for joined, (at, name) in self._names.items():
            means[at][name] = found[joined]
        each = [statistic.of_means(own) for statistic, own in zip(self._statistics, means, strict=True)]
        return np.stack([np.broadcast_to(values, size) for values in each])
