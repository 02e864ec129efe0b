"""Conjugate gradients with a Nystroem preconditioner: the same result in fewer iterations, if that pays off."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from calcheck.embeddings.ridge import KernelRidge
from calcheck.execution.backend import backend
from calcheck.execution.run import Run, silent
from calcheck.kernels.kernel_functions import Laplace, Rbf
from calcheck.linalg.gram import Gram
from calcheck.linalg.solvers import Preconditioner, conjugate_gradients, pays_off
from calcheck.metrics.cce import Cce
from calcheck.predictions import Predictions
from tests.helpers.naive import input_kernel
from tests.helpers.shorthand import gaussian_case, rows_of

CUDA = pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU"))
DEVICES = [None, "cpu", CUDA]
ROOM = 1 << 30
FEATURES = 1_000_000  # bytes: memory for features of 100 landmarks, but not for all pairs of 800 rows


def gram_of(x, kernel, engine):
    return Gram(kernel, engine.asarray(x), memory=ROOM, progress=silent)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("memory", [ROOM, 0])
def test_the_preconditioner_is_the_inverse_of_its_matrix(device, memory):
    """s (Q + s I)^-1 R with Q = K_nM K_MM^-1 K_Mn, with dense n x n matrices."""
    rng = np.random.default_rng(0)
    x, columns = rng.normal(size=(700, 4)), rng.normal(size=(700, 3))
    landmarks, shift = np.sort(rng.choice(700, 50, replace=False)), 0.3
    engine = backend(device, "float64")
    found = Preconditioner(gram_of(x, Laplace(0.2), engine), shift, landmarks, engine, memory=memory)
    full = input_kernel("laplace", 0.2)(x, x)
    low_rank = full[:, landmarks] @ np.linalg.solve(full[np.ix_(landmarks, landmarks)], full[landmarks])
    expected = shift * np.linalg.solve(low_rank + shift * np.eye(700), columns)
    assert found.rank == 50
    assert_allclose(engine.to_numpy(found(engine.asarray(columns))), expected, rtol=0, atol=1e-10)


def test_recomputed_features_are_the_same():
    rng = np.random.default_rng(1)
    x, columns = rng.normal(size=(600, 3)), rng.normal(size=(600, 2))
    engine = backend(None, "float32")
    gram = gram_of(x, Rbf(0.3), engine)
    stored, recomputed = (Preconditioner(gram, 1e-3, np.arange(80), engine, memory=memory) for memory in (ROOM, 0))
    assert_array_equal(stored(engine.asarray(columns)), recomputed(engine.asarray(columns)))


def test_negligible_eigenvalues_are_dropped():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(500, 2))
    engine = backend(None, "float64")
    gram = gram_of(x, Rbf(0.3), engine)
    ranks = [Preconditioner(gram, shift, np.arange(100), engine, memory=ROOM).rank for shift in (10.0, 0.1, 1e-4)]
    assert 0 < ranks[0] < ranks[1] < ranks[2] < 100


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("precision", "tolerance", "accuracy"), [("float64", 1e-11, 1e-9), ("float32", 1e-5, 1e-3)])
@pytest.mark.parametrize("tried", [1, 3])
def test_the_preconditioner_saves_iterations_and_does_not_change_the_result(
    device, precision, tolerance, accuracy, tried
):
    rng = np.random.default_rng(3)
    x, rhs = rng.normal(size=(600, 5)), rng.normal(size=(600, 4))
    engine = backend(device, precision)
    gram, shift, columns = gram_of(x, Rbf(0.1), engine), 600 * 1e-4, engine.asarray(rhs)
    preconditioner = Preconditioner(gram, shift, np.arange(0, 600, 4), engine, memory=ROOM)
    options = {"tolerance": tolerance, "progress": silent}
    without = conjugate_gradients(gram, shift, columns, **options)
    found = conjugate_gradients(
        gram, shift, columns, suggest=lambda iterations, _: preconditioner if iterations == tried else None, **options
    )
    exact = np.linalg.solve(input_kernel("rbf", 0.1)(x, x) + shift * np.eye(600), rhs)
    assert_allclose(engine.to_numpy(found.coefficients), exact, rtol=0, atol=accuracy * np.abs(exact).max())
    assert (found.preconditioner, without.preconditioner) == (preconditioner.rank, 0)
    assert found.iterations < 0.5 * without.iterations


def many_iterations(run):
    """Regress on wide inputs, with expensive products, and a small lambda."""
    rng = np.random.default_rng(4)
    scale = 0.93 ** np.arange(400)
    x, outputs = rng.normal(size=(800, 400)) * scale, rng.normal(size=(800, 3))
    ridge = KernelRidge(Rbf(0.05), x, run, solver="cg")
    return x, outputs, ridge, ridge.solve(outputs, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_small_regularizers_of_wide_inputs_are_preconditioned(device):
    x, outputs, ridge, found = many_iterations(Run(memory=FEATURES, device=device))
    assert found.preconditioner > 0
    expected = np.linalg.solve(input_kernel("rbf", 0.05)(x, x) + 800e-6 * np.eye(800), outputs)
    assert_allclose(ridge.backend.to_numpy(found.coefficients), expected, rtol=0, atol=1e-7 * np.abs(expected).max())
    assert found.residual < 1e-10
    assert ridge.solve(outputs, 0.1).preconditioner == 0  # a few iterations


@pytest.mark.slow
def test_the_same_seed_gives_identical_results():
    (*_, one), (*_, two) = (many_iterations(Run(memory=FEATURES, seed=3)) for _ in range(2))
    assert one.iterations == two.iterations
    assert_array_equal(one.coefficients, two.coefficients)


def test_the_preconditioner_pays_off_for_many_expensive_iterations():
    """100,000 rows with 12 or 4 iterations in total; cached kernel values; few columns."""

    def pays(n, d, residual, *, cached):
        return pays_off((n, d), 64, cached=cached, cached_features=True, residual=residual, tolerance=1e-6)

    assert pays(100_000, 512, 1e-2, cached=False)
    assert not pays(100_000, 512, 1e-6, cached=False)
    assert not pays(4_000, 512, 1e-2, cached=True)
    assert not pays(4_000, 8, 1e-2, cached=False)


@pytest.mark.slow
def test_the_report_contains_the_preconditioner():
    rng = np.random.default_rng(5)
    _, y, predictive = gaussian_case(rng, 600, 3)
    x = rng.normal(size=(600, 300)) * 0.9 ** np.arange(300)
    predictions = Predictions(y=y, predictive=predictive, x=x)
    solvers = []
    for lambda_ in (0.1, 1e-6):
        metric = Cce(lambda_=lambda_, solver="cg", kernel_x="rbf", normalize="none", gamma_x=0.1)
        solvers.append(rows_of(metric, predictions, run=Run(memory=FEATURES)).details["solver"])
    assert "preconditioner" not in solvers[0]
    assert solvers[1]["preconditioner"]["name"] == "nystroem"
    assert solvers[1]["preconditioner"]["rank"] > 0
