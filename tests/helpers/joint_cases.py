"""Random cases for the metrics of joint samples: n inputs, r targets each, and a model's predictions."""

import numpy as np
from numpy.testing import assert_allclose

from calcheck.distributions import Gaussian, Independent, Samples
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from tests.helpers import naive_joint as naive
from tests.helpers.naive_joint import standardized

PLAIN = Run(replicates=0, resamples=0)
ESTIMATORS = ["unbiased", "v", "paper"]


def sampled_case(seed, n=14, *, draws=2, targets=1, d=1, columns=1, wrong=0.4):
    """Inputs (n, d), targets (n, r, t) and draws (n, l, t) on different scales; the model is nearly right."""
    rng = np.random.default_rng([seed, n, draws, targets, d, columns])
    x = rng.normal(size=(n, d))
    center = np.sin(x @ rng.normal(size=(d, columns)))[:, None]
    y = center + 0.5 * rng.normal(size=(n, targets, columns))
    model = center + wrong + 0.5 * rng.normal(size=(n, draws, columns))
    unit = 10.0 ** np.arange(columns)
    return 3 * x + np.arange(d), unit * y + 7, unit * model + 7


def flat(values):
    """Return targets or draws, without the last axis if it has one column."""
    return values[..., 0] if values.shape[-1] == 1 else values


def rows_of_case(x, y, predictive):
    """Predictions of n inputs with r targets each: r rows with the same id, and everything else repeated."""
    n, r, _ = y.shape
    which = np.repeat(np.arange(n), r)
    return Predictions(
        y=flat(y.reshape(n * r, -1)),
        predictive=predictive.take(which),
        x=x[which],
        has_embedding=False,
        id=None if r == 1 else which,
    )


def gaussians(mean, std):
    """Normal distributions of means and standard deviations (n, t)."""
    columns = tuple(Gaussian(*each) for each in zip(mean.T, std.T, strict=True))
    return columns[0] if len(columns) == 1 else Independent(columns)


def sampled_rows(x, y, draws):
    """Predictions by draws."""
    return rows_of_case(x, y, Samples(flat(draws)))


def scaled(case, standardize):
    """Return inputs, targets and draws as a metric scales them."""
    x, y, draws = case
    if standardize == "none":
        return case
    return standardized(x), standardized(y), standardized(draws, by=y)


def value(name, rows, **options):
    """The value of a metric, without a reference."""
    report = evaluate(InMemory(rows), [METRICS[name](**options)], run=PLAIN)
    assert not report.skipped, report.skipped
    return report.results[0].value


def assert_equal_to_pooled_samples(rows, case, k_y, options):
    """Assert that cmmd, jmmd and ammd of rows, in all their forms, are those of the inputs, targets and draws."""
    x, y, draws = case
    limits = {"rtol": 1e-10, "atol": 1e-10}
    assert_allclose(value("cmmd", rows, **options), naive.cmmd(x, y, draws, k_y=k_y), **limits)
    for statistic in ESTIMATORS:
        expected = naive.jmmd(x, y, draws, k_y=k_y, statistic=statistic)
        assert_allclose(value("jmmd", rows, statistic=statistic, **options), expected, **limits)
        for constant in (False, True)[: y.shape[1]]:
            given = {"statistic": statistic, "constant": constant}
            expected = naive.ammd(y, draws, k_y=k_y, **given)
            assert_allclose(value("ammd", rows, **given, **options), expected, **limits)
