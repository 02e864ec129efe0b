"""p-values of metrics of joint distributions have the right level, also with repeated targets.

`python -m tests.benchmarks.significance levels --targets 3 --metrics ammd jmmd cmmd fid` has more data sets.
"""

from dataclasses import replace

import numpy as np
import pytest

from calcheck.distributions import Samples
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory
from tests.helpers.joint_cases import gaussians, rows_of_case
from tests.helpers.simulations import band, sets, slow

LEVEL, SETS = 0.1, sets(100, 8)
NAMES = ("ammd", "jmmd", "cmmd", "fid")
RUN = Run(replicates=19, resamples=0)
RIGHT = [("gaussian", 3), ("samples 1", 1), ("samples 1", 3), ("samples 5", 3)]  # others: test_levels.py


def case(family, targets, seed, n=25):
    """Return inputs, targets and the distributions of the targets; ensembles have the distribution of the targets."""
    rng = np.random.default_rng([seed, targets])
    x = rng.normal(size=(n, 1))
    mean, std = np.sin(2 * x), np.exp(0.4 * np.sin(x))
    values = mean[:, None] + std[:, None] * rng.normal(size=(n, targets + 5, 1))
    y, draws = values[:, :targets], values[:, targets:, 0]
    return x, y, gaussians(mean, std) if family == "gaussian" else Samples(draws[:, : int(family.split()[1])])


def p_values(rows, seed, names):
    report = evaluate(InMemory(rows), [METRICS[name]() for name in names], run=replace(RUN, seed=seed))
    assert not report.skipped
    return [result.p_value for result in report.results]


@pytest.mark.slow
@pytest.mark.parametrize(("family", "targets"), [RIGHT[0], RIGHT[1], slow(RIGHT[2]), slow(RIGHT[3])])
def test_right_models_are_rejected_at_the_level_of_the_test(family, targets):
    """The counts of all cells are within their limits with a probability of 99.9 %, if p-values are exact."""
    names = NAMES[1:] if family == "samples 1" else NAMES  # one draw has no unbiased AMMD
    found = [p_values(rows_of_case(*case(family, targets, seed)), seed, names) for seed in range(SETS)]
    low, high = band(SETS, LEVEL, 0.001 / len(NAMES) / len(RIGHT))
    for name, column in zip(names, np.array(found).T, strict=True):
        count = np.sum(column <= LEVEL * (1 + 1e-12))
        assert low <= count <= high, (name, count)


@pytest.mark.parametrize(("family", "targets"), RIGHT)
def test_models_far_from_the_targets_are_rejected(family, targets):
    names = NAMES[1:] if family == "samples 1" else NAMES
    for seed in range(4):
        x, y, predictive = case(family, targets, seed, n=60)
        found = p_values(rows_of_case(x, y + 1.5, predictive), seed, names)
        assert max(found) <= LEVEL * (1 + 1e-12), dict(zip(names, found, strict=True))
