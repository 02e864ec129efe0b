"""Null distributions of metrics of joint distributions: each replicate equals the naive sums."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.distributions import Gaussian, Samples
from calcheck.distributions.continuous import StudentT
from calcheck.distributions.count_families import NegativeBinomial, Poisson
from calcheck.distributions.positive import LogNormal
from calcheck.execution.run import Run
from calcheck.inference.bootstrap import statistic_of
from calcheck.inference.metric_protocol import Basis, FittedMetric
from calcheck.inference.null_distribution import NullSimulator, SimulatesNull, simulate_null
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions, concat, group_rows
from tests.helpers import naive_joint as naive
from tests.helpers.joint_cases import gaussians, rows_of_case, sampled_case, scaled

RUN = Run(replicates=19)
N, D = 24, 2
VARIANTS = [
    *[("ammd", {"statistic": statistic}) for statistic in ("unbiased", "v")],
    *[("jmmd", {"statistic": statistic}) for statistic in ("unbiased", "v", "paper")],
    *[("jmmd", {"kernel_x": "laplace", "gamma_x": "median", "gamma_y": 2.0}), ("jmmd", {"standardize": "none"})],
    *[("cmmd", {}), ("cmmd", {"lambda_": 0.003, "solver": "cg"})],
    *[("fid", {}), ("fid", {"standardize": "none"})],
]
MODELS = [("samples", 1), ("samples", 3), ("gaussian", 1), ("gaussian", 3)]
every_model = pytest.mark.parametrize(("family", "targets"), MODELS, ids=[f"{each[0]} {each[1]}" for each in MODELS])
SHARED = 3e-5  # relative: features that replicates share omit 1e-7 of the squared size of what varies


def every(variants):
    """Return a parametrization by metrics with their options."""
    ids = [f"{name} {' '.join(map(str, options.values()))}" for name, options in variants]
    return pytest.mark.parametrize(("name", "options"), variants, ids=ids)


def rows_of_model(family, targets, seed=1, wrong=0.4):
    """Return rows with ids, grouped by them."""
    x, y, draws = sampled_case(seed, N, draws=4, targets=targets, d=D, wrong=wrong)
    model = gaussians(draws[:, 0], np.abs(draws[:, 1]) / 20 + 0.1) if family == "gaussian" else Samples(draws[..., 0])
    return group_rows(rows_of_case(x, y, model))


def expected(name, rows, options):
    """Return the naive value of rows with normal distributions or draws."""
    options = {key: value for key, value in options.items() if key != "solver"}
    standardize = options.pop("standardize", "data")
    y, predictive = rows.y.reshape(len(rows), -1, 1), rows.predictive.load()
    known = isinstance(predictive, Gaussian)
    values = predictive.loc[:, None] if known else predictive.draws
    x, y, model = scaled((rows.x, y, values.reshape(len(rows), -1, 1)), standardize)
    std = None
    if known:
        std = predictive.scale[:, None] / (rows.y.std(ddof=1) if standardize == "data" else 1)
    if name == "fid":
        return naive.fid(x, y, model) if std is None else fid_of_normal(x, y, model, std)
    k_x = naive.kernel_on(x, options.pop("kernel_x", "rbf"), options.pop("gamma_x", 0.5))
    kernel = {"gamma_y": options.pop("gamma_y", 0.5)}
    if "lambda_" in options:
        options["ridge"] = options.pop("lambda_")
    if std is None:
        inputs = {} if name == "ammd" else {"k_x": k_x}
        first = (y, model) if name == "ammd" else (x, y, model)
        return getattr(naive, name)(*first, **inputs, **kernel, **options)
    embeddings = naive.gaussian_embeddings(y, model[:, 0], std, **kernel)
    if name == "ammd":
        return naive.ammd_of(embeddings, y.shape[1], **options)
    return getattr(naive, f"{name}_of")(k_x(x, x), embeddings, **options)


def fid_of_normal(x, y, mean, std):
    """Return the FID of two draws per row with this mean and variance, the only moments that FID uses."""
    return naive.fid(x, y, np.concatenate([mean - std[:, None], mean + std[:, None]], axis=1))


def simulated(metric, rows):
    """Return the metric of each replicate, and of the data."""
    source = InMemory(rows)
    fit = metric.fit(source, RUN)
    simulation = NullSimulator(rows, RUN)
    found = metric.null_distribution(fit, simulation, RUN) if isinstance(metric, SimulatesNull) else None
    row_values = metric.evaluate(fit, source, RUN)
    own = statistic_of(metric, row_values).estimate()
    computed = FittedMetric(metric, fit, row_values, own, Basis("p"), found)
    simulate_null([computed], simulation, RUN)
    return computed.null.values, own if computed.null.data_value is None else computed.null.data_value


@every(VARIANTS)
@every_model
def test_every_replicate_equals_the_naive_sums(name, options, family, targets):
    """Targets are standardized again; draws and targets are exchanged, any r of them if there are r targets."""
    rows = rows_of_model(family, targets)
    values, own = simulated(METRICS[name](**options), rows)
    naively = np.array([expected(name, each, options) for each in NullSimulator(rows, RUN)])
    size = np.abs(naively).max()
    assert_allclose(values, naively, rtol=0, atol=SHARED * size)
    assert_allclose(own, expected(name, rows, options), rtol=SHARED, atol=SHARED * size)
    assert values.std() > 1e-3 * size  # they differ


@pytest.mark.parametrize("family", ["student-t", "log-normal", "negative binomial"])
def test_ammd_of_a_replicate_is_the_mean_of_kernel_means(family):
    """With heavy tails, a replicate may be beyond all targets and predictions that features represent."""
    rng = np.random.default_rng(4)
    loc, scale = rng.normal(size=N), np.exp(0.3 * rng.normal(size=N))
    predictive = {
        "student-t": StudentT(loc, scale, np.full(N, 2.5)),
        "log-normal": LogNormal(loc, scale),
        "negative binomial": NegativeBinomial(np.exp(1 + loc), 3 * scale),
    }[family]
    rows = Predictions(y=predictive.sample(rng, 1)[:, 0], predictive=predictive)
    values, own = simulated(METRICS["ammd"](), rows)
    naively = []
    for each in [rows, *NullSimulator(rows, RUN)]:
        gamma = np.array([0.5 / each.y.var(ddof=1)])
        means = np.diag(predictive.kernel_mean(each.y[:, None], gamma))
        naively.append(np.mean(predictive.kernel_norm(gamma) - 2 * means))
    assert_allclose([own, *values], naively, rtol=0, atol=SHARED * np.std(naively))


@pytest.mark.parametrize("statistic", ["unbiased", "v"])
def test_replicates_of_many_draws_equal_the_naive_sums(statistic):
    """Too many to sum all pairs of a row one by one."""
    x, y, draws = sampled_case(2, N, draws=30, targets=2, d=D)
    rows = group_rows(rows_of_case(x, y, Samples(draws[..., 0])))
    values, _ = simulated(METRICS["ammd"](statistic=statistic), rows)
    naively = [expected("ammd", each, {"statistic": statistic}) for each in NullSimulator(rows, RUN)]
    assert_allclose(values, naively, rtol=0, atol=SHARED)


@pytest.mark.slow
def test_replicates_of_many_rows_equal_the_naive_sums():
    """Too many for a Gram matrix in one piece; with one draw per row."""
    x, y, draws = sampled_case(3, 1600, draws=1, d=D)
    rows = rows_of_case(x, y, Samples(draws[..., 0]))
    values, own = simulated(METRICS["jmmd"](), rows)
    for found, each in zip([own, *values[:2]], [rows, *NullSimulator(rows, RUN)], strict=False):
        assert_allclose(found, expected("jmmd", each, {}), rtol=1e-4, atol=1e-9)


def test_replicates_of_counts_equal_the_naive_sums():
    """Three targets per input, drawn for each replicate."""
    rng = np.random.default_rng(5)
    x, rate, support = rng.normal(size=(N, D)), rng.uniform(2, 6, N), np.arange(50.0)
    y = rng.poisson(rate[:, None], (N, 3)).astype(float)[..., None]
    rows = group_rows(rows_of_case(x, y, Poisson(rate)))
    values, _ = simulated(METRICS["jmmd"](), rows)
    mass = np.exp(support * np.log(rate[:, None]) - rate[:, None] - np.cumsum(np.log(np.maximum(support, 1))))
    naively = []
    for each in NullSimulator(rows, RUN):
        assert each.y.shape == (N, 3, 1)
        assert np.mean(each.y[:, 0] != each.y[:, 1]) > 0.5  # drawn independently
        inputs, targets, points = scaled((x, each.y, support[:, None]), "data")
        embeddings = naive.weighted_embeddings(targets, points[:, 0], mass)
        naively.append(naive.jmmd_of(naive.kernel_on(inputs)(inputs, inputs), embeddings))
    assert_allclose(values, naively, rtol=0, atol=SHARED * np.abs(naively).max())


PAIRWISE = [("jmmd", {"standardize": "none", "statistic": each}) for each in ("unbiased", "v", "paper")]


@every([*PAIRWISE, ("cmmd", {"standardize": "none"})])
@every_model
def test_influences_on_a_difference_equal_the_naive_sums(name, options, family, targets):
    """The second model's value minus the first's: unchanged, with the models of a row swapped, with another target.

    It is bilinear in the difference of the models and in the sum of their residuals. Swapping the models of row k
    changes the sign of its first factor; another target of row k changes its second factor.
    """
    first, second = rows_of_model(family, targets), rows_of_model(family, targets, wrong=-0.2)
    second = first.with_targets(first.y, second.predictive)

    def contributions(y):
        return METRICS[name](**options).influences(
            concat([each.with_targets(y, each.predictive) for each in (first, second)]), RUN
        )

    def difference(y, order=None):
        order = np.arange(N) if order is None else order
        both = concat([first, second])
        scores = [
            expected(name, first.with_targets(y, both.take(each).predictive), options)
            for each in (order, (order + N) % (2 * N))
        ]
        return scores[1] - scores[0]

    own, found = difference(first.y), contributions(first.y)
    assert_allclose(found.sum() / 2, own, rtol=0, atol=1e-8 * np.abs(found).sum())
    for row in (0, 7, 23):
        order, y = np.arange(N), first.y.copy()
        order[row] += N
        y[row] += 0.7
        as_first, others = (own - difference(first.y, order)) / 2, contributions(y)
        swapped = (difference(y) - difference(y, order)) / 2
        change = (others[row] - swapped) - (found[row] - as_first)
        assert_allclose(change, difference(y) - own, rtol=0, atol=1e-7 * np.abs(found).sum())
