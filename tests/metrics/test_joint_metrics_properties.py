"""Metrics of joint distributions: invariances, bounds between them, and data that they refuse."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.distributions import Samples
from calcheck.errors import CalcheckError
from calcheck.evaluation import evaluate
from calcheck.metrics import METRICS
from calcheck.mmd.joint import JointEmbedding
from calcheck.predictions import InMemory
from tests.helpers import naive_joint as naive
from tests.helpers.joint_cases import PLAIN, gaussians, rows_of_case, sampled_case, sampled_rows, scaled, value
from tests.helpers.naive import input_kernel
from tests.helpers.shorthand import rows_of

VARIANTS = [
    *[("ammd", {"statistic": statistic, "constant": True}) for statistic in ("unbiased", "v")],
    *[("ammd", {"statistic": "paper"})],
    *[("jmmd", {"statistic": statistic}) for statistic in ("unbiased", "v", "paper")],
    *[("jmmd", {"kernel_x": "laplace", "gamma_x": gamma}) for gamma in ("1/d", "median")],
    ("jmmd", {"gamma_x": "median"}),
    ("cmmd", {}),
    ("fid", {}),
]
every_variant = pytest.mark.parametrize(
    ("name", "options"), VARIANTS, ids=[f"{name} {' '.join(map(str, options.values()))}" for name, options in VARIANTS]
)


def assert_same(name, rows, others, options, tolerance=1e-10):
    expected = value(name, rows, **options)
    for other in others:
        assert_allclose(value(name, other, **options), expected, rtol=tolerance, atol=1e-12)


@every_variant
@pytest.mark.parametrize("targets", [2, 3])
def test_the_order_of_rows_does_not_change_the_value(name, options, targets):
    """Rows of one id need not be consecutive."""
    rows = sampled_rows(*sampled_case(1, targets=targets, d=2, columns=2))
    shuffled = [rows.take(np.random.default_rng(seed).permutation(len(rows))) for seed in range(3)]
    assert_same(name, rows, shuffled, options)


@every_variant
def test_the_order_of_draws_does_not_change_the_value(name, options):
    x, y, draws = sampled_case(2, draws=5, targets=2, d=2)
    other = np.random.default_rng(0).permuted(draws, axis=1)
    assert_same(name, sampled_rows(x, y, draws), [sampled_rows(x, y, other)], options)


@every_variant
def test_units_do_not_change_the_value(name, options):
    """Each column of inputs and targets has its own unit; for draws and for normal distributions."""
    x, y, draws = sampled_case(3, targets=2, d=3, columns=2)
    units, starts = np.array([1e-6, 2.0, 1e9]), np.array([3e-6, 0.0, -7e9])
    of_targets, start = np.array([1e-4, 3e5]), np.array([2e-4, -6e5])
    other = units * x + starts, of_targets * y + start, of_targets * draws + start
    assert_same(name, sampled_rows(x, y, draws), [sampled_rows(*other)], options, 1e-9)
    std = 0.5 + np.abs(draws[:, 1] - draws[:, 0])
    rows = rows_of_case(x, y, gaussians(draws[:, 0], std))
    assert_same(name, rows, [rows_of_case(*other[:2], gaussians(other[2][:, 0], of_targets * std))], options, 1e-9)


@every_variant
def test_ids_can_be_text(name, options):
    rows = sampled_rows(*sampled_case(4, targets=2))
    from dataclasses import replace

    assert_same(name, rows, [replace(rows, id=np.array([f"input {key}" for key in rows.id]))], options)


@pytest.mark.parametrize("draws", [2, 5])
def test_repeated_inputs_without_ids_are_separate_inputs(draws):
    """The V-statistic and the regression are the same; estimates that exclude pairs of one input are not."""
    x, y, model = sampled_case(5, draws=draws, targets=3)
    from dataclasses import replace

    keyed = sampled_rows(x, y, model)
    plain = replace(keyed, id=None)
    for name, options in (("jmmd", {"statistic": "v"}), ("cmmd", {})):
        options = {**options, "standardize": "none"}
        assert_allclose(value(name, plain, **options), value(name, keyed, **options), rtol=1e-10)
    rows = np.repeat(x, 3, axis=0), y.reshape(-1, 1, 1), np.repeat(model, 3, axis=0)
    for statistic in ("unbiased", "paper"):
        options = {"statistic": statistic, "standardize": "none"}
        assert_allclose(value("jmmd", plain, **options), naive.jmmd(*rows, statistic=statistic), rtol=0, atol=1e-10)


def kernel_ridge_case(seed):
    """Return a case in one to three dimensions; the error of the model grows with the seed."""
    return sampled_case(seed, n=30, draws=1 + seed % 3, d=1 + seed % 3, wrong=0.1 * seed)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("lambda_", [0.1, 0.001])
def test_mean_squared_cce_is_at_most_cmmd(seed, lambda_):
    """Mean CCE^2 <= max k_X CMMD^2, and k_X <= 1: the norm of an operator bounds its value at an input."""
    case = kernel_ridge_case(seed)
    rows = sampled_rows(*case)
    cmmd = value("cmmd", rows, lambda_=lambda_)
    options = {"kernel_x": "rbf", "gamma_x": 0.5, "normalize": "standardize", "lambda_": lambda_}
    gamma_y = 0.5 / case[1].var(ddof=1)
    congruence = rows_of(METRICS["cce"](**options, gamma_y=gamma_y), rows).columns["cce"]
    assert np.mean(congruence**2) <= cmmd * (1 + 1e-12)
    assert np.mean(congruence**2) > 1e-3 * cmmd  # and not negligible


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("targets", [1, 3])
def test_jmmd_is_at_most_ammd_with_its_constant(seed, targets):
    """JMMD_V <= mean k_X mean |delta|^2, by Cauchy and Schwarz; mean |delta|^2 is AMMD_V with its constant."""
    case = sampled_case(seed, n=30, draws=1 + seed % 3, d=1 + seed % 3, wrong=0.1 * seed, targets=targets)
    rows = sampled_rows(*case)
    x, y, model = scaled(case, "data")
    k = input_kernel("rbf", 0.5)(x, x)
    average = naive.ammd(y, model, statistic="v", constant=True)
    if targets > 1:
        assert_allclose(value("ammd", rows, statistic="v", constant=True), average, rtol=1e-10)
    joint = value("jmmd", rows, statistic="v")
    assert 0 <= joint <= k.mean() * average * (1 + 1e-12)


@pytest.mark.parametrize(
    ("name", "options", "evidence"),
    [
        ("ammd", {}, "two-sided"),
        ("ammd", {"constant": True}, "greater"),
        ("jmmd", {}, "greater"),
        ("jmmd", {"statistic": "v"}, "greater"),
        ("jmmd", {"statistic": "paper"}, "two-sided"),
        ("cmmd", {}, "greater"),
        ("fid", {}, "greater"),
    ],
)
def test_distances_are_one_sided_and_estimates_without_the_constant_two_sided(name, options, evidence):
    """The term of the data alone, which a distance needs, varies between data sets."""
    assert METRICS[name](**options).alternative == evidence


def refusal(name, rows, **options):
    """Return why a metric is refused for these rows."""
    try:
        (skipped,) = evaluate(InMemory(rows), [METRICS[name](**options)], run=PLAIN).skipped
    except CalcheckError as error:
        return str(error)
    return skipped.reason


def test_one_draw_has_no_unbiased_ammd():
    rows = sampled_rows(*sampled_case(6, draws=1))
    for statistic in ("unbiased", "paper"):
        reason = refusal("ammd", rows, statistic=statistic)
        assert "draw" in reason
        assert "2" in reason or "two" in reason
    assert value("ammd", rows, statistic="v") == pytest.approx(
        naive.ammd(*scaled(sampled_case(6, draws=1), "data")[1:], statistic="v"), rel=1e-10
    )


def test_the_constant_needs_several_targets_per_id():
    reason = refusal("ammd", sampled_rows(*sampled_case(7)), constant=True)
    assert "target" in reason
    assert "id" in reason


def test_jmmd_cmmd_and_fid_support_one_draw():
    case = sampled_case(8, draws=1, d=2)
    rows, (x, y, model) = sampled_rows(*case), scaled(case, "data")
    for statistic in ("unbiased", "v", "paper"):
        expected = naive.jmmd(x, y, model, statistic=statistic)
        assert_allclose(value("jmmd", rows, statistic=statistic), expected, rtol=0, atol=1e-10)
    assert_allclose(value("cmmd", rows), naive.cmmd(x, y, model), rtol=1e-10)
    assert_allclose(value("fid", rows), naive.fid(x, y, model), rtol=1e-10)


def test_rows_of_one_id_must_have_equal_inputs_and_draws():
    from dataclasses import replace

    rows = sampled_rows(*sampled_case(9, targets=2))
    x, draws = rows.x.copy(), rows.predictive.draws.copy()
    x[0] += 1
    draws[0] += 1
    for name in ("jmmd", "cmmd", "fid"):
        assert "id" in refusal(name, replace(rows, x=x))
    for name in ("ammd", "jmmd", "cmmd", "fid"):
        assert "id" in refusal(name, replace(rows, predictive=Samples(draws)))


@pytest.mark.parametrize("estimator", ["v", "unbiased"])
def test_a_second_form_is_refused_as_the_first_overwrites_the_embeddings_of_the_targets(estimator):
    embedding = JointEmbedding(np.ones((3, 2)), np.full((3, 2), 0.25), targets=1, draws=None)
    embedding.form(estimator)
    assert_allclose(embedding.observed, 0.75)
    with pytest.raises(ValueError, match="read-only"):
        embedding.form(estimator)
