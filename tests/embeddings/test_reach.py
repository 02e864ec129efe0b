"""Reach and effective neighbors of a conditional mean embedding, by hand and by explicit inverses."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.distributions import Gaussian
from calcheck.embeddings.distance import effective_neighbors, reach
from calcheck.embeddings.ridge import KernelRidge
from calcheck.evaluation import evaluate
from calcheck.execution.run import Limits, Run
from calcheck.kernels.bandwidths import Scaling, fit_scaling
from calcheck.kernels.kernel_functions import Polynomial, Rbf
from calcheck.metrics.cce import Cce
from calcheck.predictions import InMemory, Predictions
from tests.helpers.naive import input_kernel, weights

AS_IT_IS = Scaling(np.zeros(1), np.ones(1), unit_norm=False)


def neighbors_of(x, **options):
    """Return the reach in the report, and effective neighbors at each input."""
    n, found = len(x), {}
    rows = Predictions(y=np.arange(float(n)), predictive=Gaussian(np.zeros(n), np.ones(n)), x=x)
    report = evaluate(
        InMemory(rows),
        [Cce(**options)],
        run=Run(replicates=0),
        sink=lambda *handed: found.update(handed[-1].columns),
    )
    return report.results[0].details["reach"], found["effective_neighbors"]


@pytest.mark.parametrize("solver", ["cholesky", "cg", "nystroem"])
def test_effective_neighbors_of_two_inputs_by_hand(solver):
    """K = [[1, k], [k, 1]] has eigenvalues 1 + k and 1 - k; with s = n lambda, those of K (K + s)^-1 are
    p = (1 + k) / (1 + k + s) and q = (1 - k) / (1 - k + s): a row's own weight is (p + q) / 2, the other's (p - q) / 2.
    They sum to p, their squares to (p^2 + q^2) / 2, so each input has 2 p^2 / (p^2 + q^2) effective neighbors.
    """
    k, s = np.exp(-0.3 * 2.0**2), 2 * 0.1
    p, q = (1 + k) / (1 + k + s), (1 - k) / (1 - k + s)
    options = {"kernel_x": "rbf", "gamma_x": 0.3, "lambda_": 0.1, "gamma_y": 1.0, "solver": solver}
    _, found = neighbors_of(np.array([[0.0], [2.0]]), **options)
    assert_allclose(found, 2 * p**2 / (p**2 + q**2), rtol=1e-9)


def test_the_reach_of_two_inputs_by_hand():
    """The other row's share of the noise is (p - q)^2 / (2 p^2 + 2 q^2), of the two inputs above: with s = 0.2, k = 0.3
    that is 0.003, and the reach is 0; with s = 20, k = 0.9 it is 0.443, and the reach is their distance.
    """
    for k, lambda_, share in ((0.3, 0.1, 0.003), (0.9, 10.0, 0.443)):
        p, q = (1 + k) / (1 + k + 2 * lambda_), (1 - k) / (1 - k + 2 * lambda_)
        assert_allclose((p - q) ** 2 / (2 * (p**2 + q**2)), share, atol=5e-4)
        found = reach(Rbf(-np.log(k) / 3.0**2), np.array([[1.0], [4.0]]), AS_IT_IS, lambda_)
        expected = {"distance": 3.0, "share_of_rows": 1.0} if share > 0.1 else {"distance": 0.0, "share_of_rows": 0.5}
        assert found == {**expected, "unit": "of the input"}


def test_the_reach_agrees_with_explicit_weights():
    """Of all pairs of rows, those within the reach have 90 % of the squared weights."""
    x = np.random.default_rng(6).normal(size=(60, 1))
    squares = weights(input_kernel("rbf", 0.5), x, x, 1e-3) ** 2
    distances, shares = np.abs(x - x.T).ravel(), (squares / squares.sum(axis=0)).ravel()
    order = np.argsort(distances)
    expected = distances[order[np.searchsorted(np.cumsum(shares[order]), 0.9 * 60)]]
    found = reach(Rbf(0.5), x, AS_IT_IS, 1e-3)
    assert_allclose(found["distance"], expected, rtol=1e-12)
    assert_allclose(found["share_of_rows"], np.mean(distances <= expected), rtol=1e-12)


def test_equal_inputs_have_all_rows_as_neighbors():
    ridge = KernelRidge(Rbf(1.0), np.zeros((30, 2)), Run())
    assert_allclose(effective_neighbors(ridge, 0.1, None), 30)
    assert_allclose(effective_neighbors(ridge, 0.1, np.full((1, 2), 1e9)), 0)  # all weights are 0


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_effective_neighbors_agree_with_explicit_weights(solver, elsewhere):
    """Also if a low-rank form misses most of the weights, and random signs estimate the rest."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 2))
    points = rng.normal(size=(9, 2)) if elsewhere else None
    a = weights(input_kernel("rbf", 2.0), x, x if points is None else points, 1e-3)
    expected = a.sum(axis=0) ** 2 / (a**2).sum(axis=0)
    ridge = KernelRidge(Rbf(2.0), x, Run(), solver=solver)
    assert_allclose(effective_neighbors(ridge, 1e-3, points), expected, rtol=1e-6)
    ridge = KernelRidge(Rbf(2.0), x, Run(limits=Limits(reach_rank=10, reach_signs=4000)), solver=solver)
    assert_allclose(effective_neighbors(ridge, 1e-3, points), expected, rtol=0.1)


def test_landmarks_give_the_effective_neighbors_of_an_exact_solver():
    x = np.random.default_rng(1).normal(size=(700, 1))
    exact, expected = neighbors_of(x, lambda_=0.01)
    with_landmarks, found = neighbors_of(x, lambda_=0.01, solver="nystroem", landmarks=200)
    assert_allclose(found, expected, rtol=1e-3)
    assert_allclose(with_landmarks["distance"], exact["distance"], rtol=1e-6)


def test_the_reach_has_the_unit_of_a_single_input_or_states_its_unit():
    x = np.random.default_rng(2).normal(size=(400, 1))
    once, hundredfold = (neighbors_of(each)[0] for each in (x, 100 * x))
    assert_allclose(hundredfold["distance"], 100 * once["distance"], rtol=1e-6)
    standard = neighbors_of(100 * x, kernel_x="polynomial", normalize="standardize")[0]
    assert standard["unit"] == "of the input"
    assert 50 < standard["distance"] < 800  # standard deviations are 100
    several = np.random.default_rng(3).normal(size=(50, 3))
    units = {
        "l2": "of inputs with norm 1",
        "standardize": "standard deviations of inputs",
        "none": "of the inputs",
    }
    for normalize, unit in units.items():
        assert neighbors_of(several, normalize=normalize)[0]["unit"] == unit


def test_a_narrower_kernel_and_a_smaller_lambda_reduce_the_reach():
    x = np.random.default_rng(4).uniform(-3, 3, (500, 1))
    far, nearer, nearest = (
        reach(Rbf(gamma), x, AS_IT_IS, lambda_)["distance"] for gamma, lambda_ in ((0.2, 0.1), (5.0, 0.1), (5.0, 1e-3))
    )
    assert far > 2 * nearer > 2 * nearest > 0


def test_the_reach_is_finite_for_extreme_settings():
    x = np.random.default_rng(5).normal(size=(40, 3))
    for kernel in (Rbf(1e-12), Rbf(1e12), Polynomial(9, 1.0, 1.0)):
        for lambda_ in (1e-300, 1e-8, 1e200):
            found = reach(kernel, x, fit_scaling(x, "none", "rbf"), lambda_)
            assert np.isfinite(found["distance"])
            assert 0 < found["share_of_rows"] <= 1
