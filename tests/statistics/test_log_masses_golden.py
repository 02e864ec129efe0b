"""Masses that continuous distributions give to whole numbers, to forty digits in the tails."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.distributions import Gaussian
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from calcheck.statistics.scores import log_masses


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.0])
@pytest.mark.parametrize("z", [0.0, 1.5, -4.0, 9.0, -20.0])
def test_masses_of_normal_distributions_are_accurate_in_both_tails(z, scale):
    k = np.rint(z * scale)
    (found,) = log_masses(Gaussian(np.zeros(1), np.array([scale])), np.array([k]))
    with mpmath.workdps(400):
        low, high = ((mpmath.mpf(float(k)) + half) / mpmath.mpf(scale) for half in (-0.5, 0.5))
        expected = float(mpmath.log(mpmath.ncdf(high) - mpmath.ncdf(low)))
    assert_allclose(found, expected, rtol=1e-9)


def test_a_right_model_of_rounded_targets_passes():
    """Replicates are rounded like targets: rounding changes no mass."""
    rng = np.random.default_rng(1)
    mean, std = rng.uniform(0, 9, 400), np.full(400, 0.4)
    y = np.rint(rng.normal(mean, std))
    rows = Predictions(y=y, predictive=Gaussian(mean, std))
    (found,) = evaluate(InMemory(rows), [METRICS["nll"](discretise=True)], run=Run(resamples=0, replicates=99)).results
    assert found.verdict == "pass"
    assert abs(found.value - found.reference) < 0.1
