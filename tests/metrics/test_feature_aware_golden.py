"""The kernel ((1 - epsilon) k(f, f') + epsilon) k(y, y'): the last target columns are features f of the others."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.distributions import Independent
from calcheck.distributions.joint import JointGaussian
from calcheck.distributions.positive import Gamma
from calcheck.errors import OptionError
from calcheck.execution.run import Run
from calcheck.inference.bootstrap import statistic_of
from calcheck.inference.null_distribution import NullSimulator
from calcheck.metrics import METRICS
from calcheck.metrics.jmmd import Jmmd
from calcheck.models.two_samples import two_samples
from calcheck.predictions import InMemory, Predictions
from tests.helpers import naive_joint as naive
from tests.helpers.joint_cases import (
    assert_equal_to_pooled_samples,
    gaussians,
    rows_of_case,
    sampled_case,
    sampled_rows,
    scaled,
    value,
)
from tests.helpers.naive import target_kernel
from tests.helpers.simulations import slow

EPSILON, GAMMA, OF_FEATURES = 0.3, 0.6, 0.2
OPTIONS = {"feature_targets": 2, "epsilon": EPSILON, "gamma_y": GAMMA, "gamma_features": OF_FEATURES}
COLUMNS = 3
LIMITS = {"rtol": 1e-10, "atol": 1e-10}


def k_y(a, b):
    """Target column 0 is y, columns 1 and 2 are f."""
    of_features = target_kernel(OF_FEATURES)(a[:, 1:], b[:, 1:])
    return ((1 - EPSILON) * of_features + EPSILON) * target_kernel(GAMMA)(a[:, :1], b[:, :1])


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("standardize", ["data", "none"])
def test_metrics_of_draws_equal_those_of_pooled_samples(targets, standardize):
    case = sampled_case(1, draws=3, targets=targets, d=2, columns=COLUMNS)
    x, y, draws = case
    case = (x, (y - 7) / 10.0 ** np.arange(COLUMNS), (draws - 7) / 10.0 ** np.arange(COLUMNS))
    rows, (x, y, draws) = sampled_rows(*case), scaled(case, standardize)
    options = {**OPTIONS, "standardize": standardize}
    assert_equal_to_pooled_samples(rows, (x, y, draws), k_y, options)


@pytest.mark.parametrize(("epsilon", "joint"), [(0.0, False), (EPSILON, False), (1.0, False), slow((EPSILON, True))])
def test_normal_distributions_equal_a_sum_of_two_closed_forms(epsilon, joint):
    """(1 - epsilon) times the RBF kernel of all columns, and epsilon times that of y."""
    x, y, draws = sampled_case(2, d=2, columns=COLUMNS)
    y, draws = ((each - 7) / 10.0 ** np.arange(COLUMNS) for each in (y, draws))
    mean, std = draws[:, 0], np.abs(draws[:, 1]) + 0.2
    predictive = JointGaussian(mean, std[:, :, None] * np.eye(COLUMNS)) if joint else gaussians(mean, std)
    rows = rows_of_case(x, y, predictive)
    every, own = np.array([GAMMA, OF_FEATURES, OF_FEATURES]), np.array([GAMMA, 0, 0])
    embeddings = [
        (1 - epsilon) * one + epsilon * other
        for one, other in zip(*(naive.gaussian_embeddings(y, mean, std, each) for each in (every, own)), strict=True)
    ]
    k, options = naive.kernel_on(x)(x, x), {**OPTIONS, "epsilon": epsilon, "standardize": "none"}
    limits = {"rtol": 1e-6} if joint else LIMITS  # features of joint distributions are chosen among draws
    assert_allclose(value("cmmd", rows, **options), naive.cmmd_of(k, embeddings), **limits)
    assert_allclose(value("jmmd", rows, **options), naive.jmmd_of(k, embeddings), **limits)
    assert_allclose(value("ammd", rows, **options), naive.ammd_of(embeddings), **limits)


def test_columns_without_closed_forms_are_skipped_where_the_kernel_does_not_use_them():
    """epsilon = 1 leaves the kernel of y only: gamma distributions of the features do not matter.

    Features of several targets are chosen among draws, which represent the predictions to about 1e-7.
    """
    x, y, draws = sampled_case(3, d=2, columns=2)
    mean, std = draws[:, 0, 0], np.abs(draws[:, 1, 0]) + 0.2
    rate = Gamma(np.full(len(x), 2.0), np.full(len(x), 3.0))
    both = rows_of_case(x, np.abs(y), Independent((gaussians(mean[:, None], std[:, None]), rate)))
    alone = rows_of_case(x, np.abs(y[..., :1]), gaussians(mean[:, None], std[:, None]))
    for name in ("jmmd", "cmmd", "ammd"):
        found = value(name, both, feature_targets=1, epsilon=1.0)
        assert_allclose(found, value(name, alone), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", ["jmmd", "cmmd", "ammd"])
@pytest.mark.parametrize("family", ["samples", "gaussian"])
def test_every_replicate_has_the_value_that_it_has_alone(name, family):
    x, y, draws = sampled_case(4, n=18, draws=4, d=2, columns=COLUMNS)
    predictive = gaussians(draws[:, 0], np.abs(draws[:, 1]) / 20 + 0.1)
    rows = sampled_rows(x, y, draws) if family == "samples" else rows_of_case(x, y, predictive)
    metric, run = METRICS[name](**OPTIONS), Run(replicates=19)
    simulation = NullSimulator(rows, run)
    found = metric.null_distribution(metric.fit(InMemory(rows), run), simulation, run)
    alone = [
        statistic_of(metric, metric.evaluate(metric.fit(InMemory(each), run), InMemory(each), run)).estimate()
        for each in (rows, *simulation)
    ]
    assert_allclose(np.append(found.data_value, found.values), alone, rtol=3e-5)


def test_two_samples_are_compared_by_the_same_kernel():
    x, y, _ = sampled_case(5, n=11, d=2, columns=COLUMNS)
    other = replace_case(x, y)
    sources = [InMemory(Predictions(x=a, y=b[:, 0], has_embedding=False)) for a, b in ((x, y), other)]
    report = two_samples(*sources, Jmmd(standardize="none", **OPTIONS).of_samples(), run=Run(replicates=0, resamples=0))
    k_x = naive.kernel_on(x)

    def mean(a, b, *, same):
        gram = k_x(a[0], b[0]) * k_y(a[1][:, 0], b[1][:, 0])
        return gram[~np.eye(len(gram), dtype=bool)].mean() if same else gram.mean()

    first, second = (x, y), other
    expected = mean(first, first, same=True) + mean(second, second, same=True) - 2 * mean(first, second, same=False)
    assert_allclose(report.results[0].value, expected, rtol=1e-10)


def replace_case(x, y):
    """Return a second sample at other inputs."""
    return x + 0.3, y[::-1] + 0.1


def test_features_and_their_weight_are_checked():
    x, y, draws = sampled_case(6, columns=2)
    for options, message in (
        ({"epsilon": 1.5}, "epsilon a number from 0 to 1, got 0 and 1.5"),
        ({"feature_targets": 1, "kernel_y": "laplace"}, "--feature-targets requires --kernel-y rbf, got laplace"),
    ):
        with pytest.raises(OptionError, match=message):
            Jmmd(**options)
    metric = Jmmd(feature_targets=2)
    with pytest.raises(OptionError, match="--feature-targets 2 leaves no target: the targets have 2 columns"):
        metric.fit(InMemory(sampled_rows(x, y, draws)), Run())
    assert replace(metric, feature_targets=1).target_kernel.details["feature_targets"] == 1
