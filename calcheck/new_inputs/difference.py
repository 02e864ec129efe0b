"""Whether the inputs of new rows differ from those of the tested ones, and in which columns."""

from collections.abc import Sequence

import numpy as np

from calcheck.core import sc
from calcheck.core.lazy_inputs import Inputs
from calcheck.execution.run import RandomStream, Run
from calcheck.inference.p_values_and_verdicts import holm
from calcheck.kernels.bandwidths import Scaling, sample_inputs
from calcheck.kernels.kernel_functions import Rbf
from calcheck.mmd.two_samples import PooledGram
from calcheck.new_inputs.positions import median_gamma
from calcheck.reports.conclusion import ColumnDifference, InputsDiffer
from calcheck.typing import Floats, Values

COMPARED = 1_000  # Most rows of each sample that are compared by all their inputs
SORTED = 100_000  # Most rows of each sample whose columns are compared
PERMUTATIONS = 199


def compare_inputs(
    tested: Inputs, new: Inputs, scaling: Scaling, run: Run, *, names: Sequence[str] = ()
) -> InputsDiffer:
    """Return whether inputs (n, d) and (m, d) differ: all together by their MMD, and columns that have names."""
    few, other = (sample_inputs(x, COMPARED) for x in (tested, new))
    samples = [sample_inputs(x, SORTED) for x in (tested, new)] if names else []
    return InputsDiffer(p=_permutation_p(few, other, scaling, run), columns=_columns(samples, names))


def _permutation_p(tested: Floats, new: Floats, scaling: Scaling, run: Run) -> float:
    """Return the p-value of the MMD of two samples of inputs, with a kernel as wide as the median distance."""
    points = scaling(np.concatenate([tested, new]))
    labels = np.arange(len(points)) < len(tested)
    if min(len(tested), len(new)) <= 1 or not points.var(axis=0).any():  # one row has no distance from others like it
        return 1.0
    gram = PooledGram(Rbf(gamma=median_gamma(points)).gram(points, points))
    rng = run.rng(RandomStream.PERMUTATIONS)
    found = np.concatenate(list(gram.permuted(rng.permutation(labels) for _ in range(PERMUTATIONS))))
    own = gram.distances(labels[None])[0]
    return float((1 + np.count_nonzero(found >= own)) / (1 + PERMUTATIONS))


def _columns(samples: Sequence[Floats], names: Sequence[str]) -> tuple[ColumnDifference, ...]:
    """Return by how much each column differs, the one that differs most first."""
    found = [distance_of_samples(*(x[:, place].astype(np.float64) for x in samples)) for place in range(len(names))]
    adjusted = holm([p for _, p in found])
    each = [
        ColumnDifference(name=name, distance=distance, p=p)
        for name, (distance, _), p in zip(names, found, adjusted, strict=True)
    ]
    return tuple(sorted(each, key=lambda column: -column.distance))


def distance_of_samples(first: Values, second: Values) -> tuple[float, float]:
    """Return the largest difference of the shares of two samples up to a value, and its p-value (Kolmogorov 1933).

    >>> import numpy as np
    >>> distance_of_samples(np.array([1.0, 2.0]), np.array([2.0, 3.0]))[0]
    0.5
    """
    values = np.concatenate([first, second])
    shares = [np.searchsorted(np.sort(each), values, side="right") / len(each) for each in (first, second)]
    distance = float(np.abs(shares[0] - shares[1]).max())
    return distance, float(sc.kolmogorov(distance * np.sqrt(len(first) * len(second) / len(values))))
