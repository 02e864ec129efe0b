"""The matrix that smooths, A = K(points, x) (K + n lambda I)^-1, agrees with dense algebra by every method."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.embeddings import distance
from calcheck.embeddings.distance import noise
from calcheck.embeddings.ridge import CholeskySmoother, KernelRidge, NystroemSmoother, smoother
from calcheck.errors import NumericalError
from calcheck.execution.run import Limits, Run
from calcheck.kernels.kernel_functions import KERNELS
from tests.helpers.naive import input_kernel, weights

N, M, PENALTY = 120, 30, 0.05
RUNS = {"numpy": Run(), "torch": Run(device="cpu")}
RNG = np.random.default_rng(0)
X, POINTS, OUTPUTS = RNG.normal(size=(N, 2)), RNG.normal(size=(M, 2)), RNG.normal(size=(N, 5))


def ridge(solver="cholesky", run=None, *, x=X, kernel="rbf", gamma=0.3, **shape):
    return KernelRidge(KERNELS[kernel](gamma=gamma, **shape), x, run or Run(), solver=solver)


def dense(points, *, x=X, penalty=PENALTY):
    """Return A, (m, n), by an explicit inverse."""
    return weights(input_kernel("rbf", 0.3), x, x if points is None else points, penalty).T


@pytest.mark.parametrize("points", [None, POINTS], ids=["there", "elsewhere"])
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize(("solver", "tolerance"), [("cholesky", 1e-12), ("cg", 1e-4)])
@pytest.mark.parametrize("block", [1 << 26, 8 * N * 7])
def test_the_cholesky_smoother_agrees_with_dense_algebra(points, run, solver, tolerance, block):
    """To rounding in double precision; with the cg solver, the factor is in single precision."""
    run = replace(run, limits=Limits(smoother_bytes=block))  # all rows at once, or 7 or 14 at a time
    found, expected = CholeskySmoother(ridge(solver, run), PENALTY, points), dense(points)
    size = np.abs(expected @ OUTPUTS).max()
    assert_allclose(found.smooth(OUTPUTS), expected @ OUTPUTS, rtol=0, atol=tolerance * size)
    squared = expected**2 @ OUTPUTS
    assert_allclose(found.smooth_squared(OUTPUTS), squared, rtol=0, atol=tolerance * np.abs(squared).max())
    assert found.details == {"method": "cholesky"}


def test_ill_conditioned_factors_use_double_precision():
    """1 + tr K / (n lambda) is 1 + 1 / lambda here: 3 at lambda 0.5, and 10,001 at 0.0001."""
    iterated = ridge("cg")
    assert CholeskySmoother(iterated, 0.5, None).array.itemsize == 4
    for penalty in (0.01, 0.0005):
        found = CholeskySmoother(iterated, penalty, None)
        assert found.array.itemsize == (4 if penalty == 0.01 else 8)
        expected = dense(None, penalty=penalty) @ OUTPUTS
        assert_allclose(found.smooth(OUTPUTS), expected, rtol=0, atol=(1e-3 if penalty == 0.01 else 1e-9))
    large = ridge("cg", kernel="polynomial", gamma=1.0, degree=5, coef0=1.0)  # tr K / n is in the thousands
    assert CholeskySmoother(large, PENALTY, None).array.itemsize == 8
    assert CholeskySmoother(large, 1e5, None).array.itemsize == 4


def test_a_run_in_single_precision_stays_so_or_is_refused():
    single = Run(precision="float32")
    assert CholeskySmoother(ridge("cg", single), PENALTY, None).array.itemsize == 4
    twins = np.repeat(X[:3], 40, axis=0)
    with pytest.raises(NumericalError, match="larger --lambda"):
        CholeskySmoother(ridge("cg", single, x=twins), 1e-12, None)


@pytest.mark.parametrize("points", [None, POINTS], ids=["there", "elsewhere"])
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_the_nystroem_smoother_agrees_with_its_low_rank_kernel(points, run):
    """K ~ K_nM K_MM^-1 K_Mn at M = 20 of the inputs, by dense algebra."""
    found = NystroemSmoother(ridge("cg", run), PENALTY, points, 20)
    landmarks = run.backend().to_numpy(found.nystroem.landmarks)
    assert len(landmarks) == 20
    assert {tuple(row) for row in landmarks} <= {tuple(row) for row in X}
    k_x = input_kernel("rbf", 0.3)
    inner = np.linalg.pinv(k_x(landmarks, landmarks) + 1e-12 * np.eye(20))
    kernel = k_x(X, landmarks) @ inner @ k_x(landmarks, X)
    at = k_x(X if points is None else points, landmarks) @ inner @ k_x(landmarks, X)
    expected = at @ np.linalg.inv(kernel + N * PENALTY * np.eye(N))
    assert_allclose(found.smooth(OUTPUTS), expected @ OUTPUTS, rtol=0, atol=1e-5)
    assert_allclose(found.smooth_squared(OUTPUTS), expected**2 @ OUTPUTS, rtol=0, atol=1e-6)


def test_the_nystroem_smoother_with_all_inputs_is_exact():
    found = NystroemSmoother(ridge("cg"), PENALTY, POINTS, N)
    assert_allclose(found.smooth(OUTPUTS), dense(POINTS) @ OUTPUTS, rtol=0, atol=1e-5)
    assert found.details == {"method": "low rank", "rank": N, "relative_error": 0.0}


def chosen(solver="cg", *, factor_rows=50, ranks=(5, 10, 20), memory=1 << 30, points=None, **options):
    """Choose a smoother with smaller limits on rows and ranks."""
    limits = Limits(factor_rows=factor_rows, nystroem_ranks=ranks)
    return smoother(ridge(solver, Run(memory=memory, limits=limits), **options), PENALTY, points, lambda: OUTPUTS)


def test_a_cheap_or_existing_factor_is_used():
    assert chosen("cholesky").method == "cholesky"
    assert chosen(factor_rows=N).method == "cholesky"
    assert chosen(factor_rows=N - 1, gamma=1e-3).method == "low rank"


def test_the_smallest_accurate_rank_is_used():
    """A wide kernel has few directions: 5 landmarks suffice, though 20 would be better."""
    found = chosen(gamma=1e-3)
    assert (found.method, found.rank) == ("low rank", 5)
    assert 0 <= found.missed <= 1e-3
    elsewhere = chosen(gamma=1e-3, points=POINTS)
    assert (elsewhere.method, elsewhere.missed) == ("low rank", found.missed)
    assert elsewhere.smooth(OUTPUTS).shape == (M, 5)


def test_the_error_of_a_low_rank_smoother_is_a_share_of_the_squared_norm():
    """A narrow kernel: the share of the smoothed outputs' squared norm that 10 landmarks miss, by dense algebra."""
    found = chosen(gamma=30.0, ranks=(10,), memory=4 * N * N - 1)
    kernel = input_kernel("rbf", 30.0)
    expected = np.sum((weights(kernel, X, X, PENALTY).T @ OUTPUTS) ** 2)
    assert (found.method, found.rank) == ("low rank", 10)
    assert_allclose(found.missed, 1 - np.sum(found.smooth(OUTPUTS) ** 2) / expected, rtol=1e-6)
    assert 0.1 < found.missed < 1


def test_a_factor_is_used_if_low_rank_is_inaccurate_and_memory_suffices():
    """A factor takes 4 n² bytes; otherwise the largest rank with at least six rows per landmark is used."""
    assert chosen(gamma=30.0, memory=4 * N * N).method == "cholesky"
    found = chosen(gamma=30.0, ranks=(5, 10, 20, 21), memory=4 * N * N - 1)
    assert (found.method, found.rank) == ("low rank", 20)
    assert chosen(gamma=30.0, ranks=(21,), memory=4 * N * N - 1).method == "cholesky"  # no rank is small enough


@pytest.mark.parametrize("points", [None, POINTS], ids=["there", "elsewhere"])
def test_noise_is_the_sum_of_squared_weights_times_sizes(points):
    """Exact by a factor; by random signs within the stated error."""
    sizes = RNG.uniform(0.1, 2, N)
    expected = dense(points) ** 2 @ sizes
    exact, error = noise(ridge(), sizes, PENALTY, points)
    assert_allclose(exact, expected, rtol=1e-10)
    assert error == 0
    for seed in range(4):
        estimate, error = noise(ridge("cg", Run(seed=seed)), sizes, PENALTY, points)
        assert abs(estimate.mean() - expected.mean()) < 4 * error
        assert error < 0.15 * expected.mean()
        assert_allclose(estimate, expected, rtol=0.6)


def test_a_rough_smoother_has_a_low_rank_and_states_the_noise_that_it_misses():
    """The mean square of smoothed noise is that of the rough smoother and a share of that of the noise."""
    rng = np.random.default_rng(5)
    fit = ridge("cg", x=rng.normal(size=(500, 6)), gamma=0.5)
    found = smoother(fit, PENALTY, None, lambda: rng.normal(size=(500, 20)), rough=True)
    assert found.details["method"] == "low rank"
    assert found.details["rank"] == 64
    assert found.details["relative_error"] > 0.2
    fresh = rng.normal(size=(500, 300))
    exact, rough = (np.mean(each.smooth(fresh) ** 2) for each in (CholeskySmoother(fit, PENALTY, None), found))
    assert_allclose(exact, rough + found.missed_noise * np.mean(fresh**2), rtol=0.03)


def test_a_rough_smoother_of_a_kernel_of_low_rank_is_exact_and_not_measured():
    fit = ridge("cg", x=RNG.normal(size=(500, 2)), kernel="polynomial", gamma=0.5, degree=2, coef0=1.0)
    found = smoother(fit, PENALTY, POINTS, lambda: pytest.fail("measured"), rough=True)
    outputs = RNG.normal(size=(500, 3))
    expected = CholeskySmoother(fit, PENALTY, POINTS).smooth(outputs)
    assert_allclose(found.smooth(outputs), expected, rtol=0, atol=1e-4 * np.abs(expected).max())
    assert found.missed_noise == 0


def test_squared_norms_in_both_kernels_are_right_if_their_roots_have_different_ranks():
    """With few rows the kernels of the data and of a data set have other ranks."""
    rng = np.random.default_rng(0)
    values, roots = rng.normal(size=(5, 3, 4)), (rng.normal(size=(4, 2)), rng.normal(size=(4, 4)))
    found = distance._Columns(0, values, roots, (1.0, 1.0)).squares(values)
    for squares, root in zip(found, roots, strict=True):
        assert_allclose(squares, ((values @ root) ** 2).sum(axis=2), rtol=1e-12)
