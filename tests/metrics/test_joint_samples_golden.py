"""JMMD, CMMD and FID of two samples at different inputs equal naive sums over the pairs of each sample."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.embeddings.permutations import joint_strata, low_rank_kernel, one_stratum, strata
from calcheck.errors import DataError
from calcheck.execution.run import Run
from calcheck.inference.null_distribution import NullSimulator
from calcheck.kernels.kernel_functions import Polynomial
from calcheck.metrics.jmmd import Cmmd, Fid, Jmmd
from calcheck.metrics.mmd import Mmd
from calcheck.models.two_samples import PooledSamples, two_samples
from calcheck.predictions import InMemory, Predictions
from tests.helpers.naive import input_kernel, target_kernel
from tests.helpers.naive_joint import standardized

RUN = Run(replicates=19, resamples=0)
K_X = input_kernel("rbf", 0.5)
SHAPES = {"rbf": (0.5, {}), "laplace": (1.0, {}), "polynomial": (None, {"degree": 3, "coef0": 1.0})}


def samples(seed, n=13, m=17, d=2, columns=1):
    """Return inputs and targets of two samples, with shifted inputs and another relation."""
    rng = np.random.default_rng([seed, d, columns])
    return [
        (x, np.sin(x @ np.ones((d, columns))) + shift + 0.3 * rng.normal(size=(size, columns)))
        for size, shift in ((n, 0.0), (m, 0.4))
        for x in (3 * rng.normal(size=(size, d)) + shift,)
    ]


def source(part):
    return InMemory(Predictions(x=part[0], y=part[1], has_embedding=False))


def both_standardized(parts):
    """Return both samples, with each column standardized over both."""
    columns = [np.concatenate(each) for each in zip(*parts, strict=True)]
    return [tuple(standardized(own, by) for own, by in zip(part, columns, strict=True)) for part in parts]


def naive_jmmd(first, second, k_y, statistic):
    """Averages of k_X k_Y over pairs: of different rows of one sample (v: all), and of rows of both."""

    def mean(a, b, kept):
        return (K_X(a[0], b[0]) * k_y(a[1], b[1]))[kept].mean()

    def within(part):
        n = len(part[0])
        return mean(part, part, np.ones((n, n), bool) if statistic == "v" else ~np.eye(n, dtype=bool))

    cross = mean(first, second, np.ones((len(first[0]), len(second[0])), bool))
    return (0 if statistic == "paper" else within(first)) + within(second) - 2 * cross


def naive_cmmd(first, second, k_y, ridge=0.1):
    """Inner products of operators sum_ij W_ij k(x_i, .) phi(y_j), W = (K + m lambda I)^-1."""

    def weighted(part):
        return np.linalg.inv(K_X(part[0], part[0]) + len(part[0]) * ridge * np.eye(len(part[0])))

    def inner(a, b):
        return np.trace(weighted(a) @ K_X(a[0], b[0]) @ weighted(b) @ k_y(b[1], a[1]))

    return inner(first, first) - 2 * inner(first, second) + inner(second, second)


def naive_fid(first, second):
    """Squared distance of means, and trace of S + S' - 2 (S S')^(1/2), by the eigenvalues of S S'."""
    (m, s), (other, t) = ((joint.mean(axis=0), np.cov(joint.T)) for joint in map(np.hstack, (first, second)))
    roots = np.sqrt(np.linalg.eigvals(s @ t).real)
    return np.sum((m - other) ** 2) + np.trace(s) + np.trace(t) - 2 * roots.sum()


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("kernel", SHAPES)
@pytest.mark.parametrize("standardize", ["data", "none"])
def test_kernel_metrics_of_two_samples_equal_the_naive_sums(columns, kernel, standardize):
    parts = samples(1, columns=columns)
    first, second = both_standardized(parts) if standardize == "data" else parts
    if standardize == "data" and kernel == "polynomial":  # it depends on the origin, which stays
        scale = np.concatenate([part[1] for part in parts]).std(axis=0, ddof=1)
        first, second = ((x, part[1] / scale) for (x, _), part in zip((first, second), parts, strict=True))
    gamma, shape = SHAPES[kernel]
    k_y = target_kernel(gamma or 1 / columns, kernel, **shape)
    found = partial(value, parts, kernel_y=kernel, standardize=standardize)
    for statistic in ("unbiased", "v", "paper"):
        expected = naive_jmmd(first, second, k_y, statistic)
        assert_allclose(found(Jmmd, statistic=statistic), expected, rtol=1e-10, atol=1e-11)
    assert_allclose(found(Cmmd), naive_cmmd(first, second, k_y), rtol=1e-10)
    assert_allclose(value(parts, Fid, standardize=standardize), naive_fid(first, second), rtol=1e-9)


def value(parts, metric, **options):
    """Return the value of a metric of two samples, as the study computes it."""
    report = two_samples(*map(source, parts), metric(**options).of_samples(), run=Run(replicates=0, resamples=0))
    return report.results[0].value


def test_two_rows_in_each_sample_by_hand():
    """K_X = 1 within x = 0 and x = 100, 0 between them; gamma_y = 1/2, e = exp(-1/2) for targets at distance 1.

    First sample: y = 0 and 1 at x = 0; second: y = 0 at x = 0, and 0 at x = 100. JMMD, unbiased: e + 0 - 2 (1 + e) / 4.
    """
    parts = [(np.zeros((2, 1)), np.array([[0.0], [1.0]])), (np.array([[0.0], [100.0]]), np.zeros((2, 1)))]
    e = np.exp(-0.5)
    assert_allclose(value(parts, Jmmd, standardize="none"), e - (1 + e) / 2, rtol=1e-12)


@pytest.mark.parametrize("metric", [Jmmd, Cmmd, Fid])
def test_two_samples_are_not_compared_with_two_others(metric):
    both = PooledSamples(*map(source, samples(2))).predictions()
    reason = f"{metric.info.name} of two samples is not compared with that of two others, row by row"
    with pytest.raises(DataError, match=reason):
        metric().of_samples().influences(both, RUN)


def naive_permuted_cmmd(x, y, labels, divisions, ridge=0.1):
    """CMMD^2 of both samples; of divisions, what they have more than the samples after a regression of all rows.

    The residuals R psi, R = I - K (K + n lambda I)^-1, have the kernel matrix R K_Y R.
    """
    everything, k_y = np.arange(len(x)), target_kernel(0.5)
    left = np.linalg.inv(np.eye(len(x)) + K_X(x, x) / (len(x) * ridge))
    residuals = left @ k_y(y, y) @ left

    def distance(division, gram):
        parts = ((x[rows], everything[rows]) for rows in (division, ~division))
        return naive_cmmd(*parts, lambda one, other: gram[np.ix_(one, other)])

    own = distance(labels, k_y(y, y)) - distance(labels, residuals)
    return [own + distance(division, residuals) for division in divisions]


@pytest.mark.parametrize("d", [1, 2])
def test_each_permutation_has_the_naive_value_of_its_labels(d):
    parts = samples(2, d=d)
    pooled = PooledSamples(*map(source, parts))
    rows = pooled.predictions()
    for metric, naive in (
        (Jmmd(), lambda *two: naive_jmmd(*two, target_kernel(0.5), "unbiased")),
        (Cmmd(), None),
        (Fid(), naive_fid),
    ):
        of_samples = metric.of_samples()
        fit, simulation = of_samples.fit(pooled, RUN), NullSimulator(rows, RUN)
        found = of_samples.null_distribution(fit, simulation, RUN)
        x, y = (np.concatenate(each) for each in zip(*both_standardized(parts), strict=True))
        groups = strata(x, fit.labels, lambda: features(x)) if isinstance(metric, Cmmd) else one_stratum(fit.labels)  # noqa: B023
        divisions = groups.permuted(simulation.rng(), len(simulation))
        expected = (
            naive_permuted_cmmd(x, y, fit.labels, divisions)
            if naive is None
            else [naive((x[labels], y[labels]), (x[~labels], y[~labels])) for labels in divisions]
        )
        assert_allclose(found.values, expected, rtol=1e-8, atol=1e-11)
        assert_allclose(found.data_value, value(parts, type(metric)), rtol=1e-12)


def features(x):
    """Return features of the cubic kernel, from which propensity scores are estimated; the inputs are standardized."""
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    return low_rank_kernel(Polynomial(degree=3, gamma=1 / x.shape[1], coef0=1.0), x, x[:1], len(x) // 4).rows


@pytest.mark.parametrize(("metric", "share"), [(Cmmd, (0, 0.2)), (Jmmd, (0.8, 1)), (Fid, (0.8, 1))])
def test_shifted_inputs_are_rejected_by_joint_metrics_only(metric, share):
    """The distributions of targets given inputs are equal."""
    rng = np.random.default_rng(3)
    p = []
    for _ in range(20):
        inputs = rng.normal(size=(60, 1)), rng.normal(size=(60, 1)) + 1
        parts = [(x, np.sin(x) + 0.3 * rng.normal(size=x.shape)) for x in inputs]
        p.append(two_samples(*map(source, parts), metric().of_samples(), run=RUN).results[0].p_value)
    assert share[0] <= np.mean(np.array(p) <= 0.05) <= share[1]


@pytest.mark.parametrize("metric", [Cmmd, Jmmd, Fid])
def test_equal_samples_are_rejected_at_the_level_of_the_test(metric):
    rng = np.random.default_rng(4)
    p = []
    for _ in range(40):
        parts = [(x, np.sin(x) + 0.3 * rng.normal(size=x.shape)) for x in rng.normal(size=(2, 30, 1))]
        p.append(two_samples(*map(source, parts), metric().of_samples(), run=RUN).results[0].p_value)
    assert np.mean(np.array(p) <= 0.05) <= 0.15
    assert 0.3 < np.mean(p) < 0.7


@pytest.mark.parametrize("metric", [Cmmd, Jmmd, Fid, partial(Mmd, joint=True)])
@pytest.mark.parametrize(("shift", "rejected"), [(0.0, (0, 5)), (0.4, (15, 20))])
def test_samples_at_the_same_inputs_are_compared_by_exchanging_their_targets(metric, shift, rejected):
    """20 pairs of 40 rows, shifted by 0 or 4/3 of the noise; any other exchange makes the inputs differ.

    At the level of 5 %, more than 5 of 20 are rejected with a probability of 0.03 %.
    """
    p = []
    for seed in range(20):
        rng = np.random.default_rng([6, seed])
        x = rng.normal(size=(40, 2))
        parts = [(x, np.sin(x[:, :1]) + add + 0.3 * rng.normal(size=(40, 1))) for add in (0, shift)]
        chosen = metric() if isinstance(metric, partial) else metric().of_samples()
        found = two_samples(*map(source, parts), chosen, run=RUN).results[0]
        assert found.details["null"]["labels"] == "permuted by equal inputs"
        p.append(found.p_value)
    assert rejected[0] <= np.sum(np.array(p) <= 0.05) <= rejected[1]


def test_inputs_are_the_same_if_they_are_equally_frequent_in_both_samples():
    """Two draws of a model at each input of the data; with another one at a single input, any rows are exchanged."""
    x = np.array([[1.0], [2.0], [3.0]])
    labels = np.repeat([True, False], [3, 6])
    assert joint_strata(np.concatenate([x, x, x]), labels).by == "equal inputs"
    assert joint_strata(np.concatenate([x, x, x[:2], x[:1]]), labels).by == "all rows"
    assert joint_strata(np.concatenate([x, x, x, x[:1]]), np.append(labels, False)).by == "all rows"


def test_different_inputs_do_not_hide_a_shift_from_cmmd():
    """Three inputs: the regressions of the two samples differ much more by their inputs than by the shift of y."""
    p = []
    for seed in range(15):
        rng = np.random.default_rng([8, seed])
        inputs = rng.normal(size=(2, 60, 3))
        parts = [(x, 2 * x[:, :1] + add + rng.normal(size=(60, 1))) for x, add in zip(inputs, (0, 1.2), strict=True)]
        p.append(two_samples(*map(source, parts), Cmmd().of_samples(), run=RUN).results[0].p_value)
    assert np.sum(np.array(p) <= 0.05) >= 12
