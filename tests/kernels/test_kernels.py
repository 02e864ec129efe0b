"""Kernels, features, Gram matrices in tiles, solvers and dof, on any device and in any precision."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from calcheck.core.lazy_inputs import Categories, LazyInputs
from calcheck.distributions import Gaussian, Samples
from calcheck.embeddings.distance import MIN_DOF, few_dof
from calcheck.embeddings.rbf import output_features, residual_of_points
from calcheck.embeddings.ridge import KernelRidge
from calcheck.embeddings.target_kernels import FeatureBounds, residual_warnings
from calcheck.errors import DataError, NumericalError, OptionError
from calcheck.execution.backend import backend
from calcheck.execution.run import Run, default_memory, parse_memory, silent
from calcheck.kernels.bandwidths import (
    Scaling,
    bandwidth,
    fit_scaling,
    narrow_kernel_warnings,
    neighbors,
    sample_inputs,
)
from calcheck.kernels.kernel_functions import Laplace, Polynomial, Rbf
from calcheck.linalg.gram import Gram
from calcheck.linalg.solvers import Cholesky, conjugate_gradients
from calcheck.metrics import METRICS
from calcheck.metrics.cce import Cce
from calcheck.predictions import Predictions
from tests.helpers.naive import input_kernel
from tests.helpers.shorthand import cce, gaussian_case, rows_of, texts

KERNELS = {
    "rbf": (Rbf(0.3), {"gamma": 0.3}),
    "laplace": (Laplace(0.2), {"gamma": 0.2}),
    "polynomial": (Polynomial(3, 0.5, 1.0), {"gamma": 0.5}),
    "quintic": (Polynomial(5, 0.1, 0.7), {"gamma": 0.1, "degree": 5, "coef0": 0.7}),
    "linear": (Polynomial(1, 2.0, 0.0), {"gamma": 2.0, "degree": 1, "coef0": 0.0}),
}
CUDA = pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU"))
DEVICES = [None, "cpu", CUDA]
AS_IT_IS = Scaling(np.zeros(1), np.ones(1), unit_norm=False)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("d", [1, 4, 5, 40])
def test_kernels_agree_with_their_formulas(name, d, device):
    rng = np.random.default_rng(d)
    a, b = rng.normal(size=(300, d)), rng.normal(size=(900, d))
    kernel, shape = KERNELS[name]
    expected = input_kernel("polynomial" if name in ("quintic", "linear") else name, **shape)(a, b)
    engine = backend(device, "float64")
    found = engine.to_numpy(kernel.gram(engine.asarray(a), engine.asarray(b)))
    assert_allclose(found, expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("tile", [(1, 1), (7, 7), (7, 30), (64, 100), (1000, 1000), None])
@pytest.mark.parametrize("memory", [0, 1 << 30])
def test_products_do_not_depend_on_tiles_or_storage(tile, memory):
    rng = np.random.default_rng(0)
    x, b = rng.normal(size=(150, 6)), rng.normal(size=(150, 3))
    gram = Gram(Rbf(0.3), x, memory=memory, progress=silent, tile=tile)
    full = input_kernel("rbf", 0.3)(x, x)
    for _ in range(2):  # the second pass uses the cache
        assert_allclose(gram @ b, full @ b, rtol=1e-12)
    assert_allclose(gram.dense(), full, rtol=1e-12)
    assert gram.kept == (memory > 0)


@pytest.mark.parametrize("device", DEVICES)
def test_solvers_agree(device):
    rng = np.random.default_rng(1)
    engine = backend(device, "float64")
    x, rhs = engine.asarray(rng.normal(size=(200, 5))), engine.asarray(rng.normal(size=(200, 4)))
    gram = Gram(Rbf(0.1), x, memory=1 << 30, progress=silent)
    direct = Cholesky(gram, 2.0, silent)
    iterative = conjugate_gradients(gram, 2.0, rhs, tolerance=1e-13, progress=silent)
    exact = np.linalg.solve(engine.to_numpy(gram.dense()) + 2 * np.eye(200), engine.to_numpy(rhs))
    assert_allclose(engine.to_numpy(direct.solve(rhs).coefficients), exact, rtol=0, atol=1e-12)
    assert_allclose(engine.to_numpy(iterative.coefficients), exact, rtol=0, atol=1e-12)
    inverse = np.linalg.inv(engine.to_numpy(gram.dense()) + 2 * np.eye(200))
    assert_allclose(direct.trace_of_inverse, np.trace(inverse), rtol=1e-10)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("degree", "coef0", "columns"), [(3, 1.0, 20), (2, 0.0, 10), (1, 2.5, 4), (4, 0.3, 35)])
def test_monomials_of_a_polynomial_kernel_solve_as_its_matrix_does(device, degree, coef0, columns):
    """C(d + degree, degree) monomials, some of them 0 for coef0 = 0; products, solutions and traces are equal."""
    rng, engine = np.random.default_rng(1), backend(device, "float64")
    values, right = rng.normal(size=(250, 3)), rng.normal(size=(250, 4))
    x, rhs = engine.asarray(values), engine.asarray(right)
    kernel, full = Polynomial(degree, 0.7, coef0), (0.7 * values @ values.T + coef0) ** degree
    z = engine.to_numpy(kernel.monomials(x, 40))
    assert z.shape == (250, columns)
    assert kernel.monomials(x, columns - 1) is None
    assert_allclose(z @ z.T, full, rtol=0, atol=1e-13 * full.max())
    gram = Gram(kernel, x, memory=0, progress=silent)
    assert gram.features is not None
    direct, inverse = Cholesky(gram, 2.0, silent), np.linalg.inv(full + 2 * np.eye(250))
    assert_allclose(engine.to_numpy(gram @ rhs), full @ right, rtol=0, atol=1e-12 * full.max())
    assert_allclose(engine.to_numpy(direct.solve(rhs).coefficients), inverse @ right, rtol=0, atol=1e-11)
    assert_allclose(engine.to_numpy(direct.fitted(rhs)), full @ inverse @ right, rtol=0, atol=1e-10)
    assert_allclose(direct.trace_of_inverse, np.trace(inverse), rtol=1e-9)


def test_conjugate_gradients_handle_dependent_right_hand_sides():
    rng = np.random.default_rng(2)
    x, column = rng.normal(size=(100, 3)), rng.normal(size=(100, 1))
    gram = Gram(Rbf(0.5), x, memory=1 << 30, progress=silent)
    rhs = column @ np.array([[1.0, -2.0, 0.0, 1e-14]])
    found = conjugate_gradients(gram, 1.0, rhs, tolerance=1e-12, progress=silent)
    assert_allclose(found.coefficients, np.linalg.solve(gram.dense() + np.eye(100), rhs), atol=1e-11)
    nothing = conjugate_gradients(gram, 1.0, 0 * rhs, tolerance=1e-12, progress=silent)
    assert_allclose(nothing.coefficients, 0)


@pytest.mark.parametrize("kernel", ["rbf", "polynomial"])
@pytest.mark.parametrize("ridge", [0.1, 0.001])
def test_dof_agrees_with_the_trace(kernel, ridge):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(300, 4))
    values = np.linalg.eigvalsh(KERNELS[kernel][0].gram(x, x))
    trace = np.sum(values / (values + 300 * ridge))
    outputs = rng.normal(size=(300, 3))
    for solver in ("cholesky", "cg"):
        dof = KernelRidge(KERNELS[kernel][0], x, Run(), solver=solver).solve(outputs, ridge).dof
        assert abs(dof.value - trace) <= 5 * dof.error + 1e-8 * trace
        assert dof.error < 0.06 * trace


def test_the_error_of_dof_is_its_deviation_over_seeds():
    x, outputs = np.random.default_rng(3).normal(size=(300, 4)), np.zeros((300, 1))
    found = [KernelRidge(Rbf(0.3), x, Run(seed=seed), solver="cg").solve(outputs, 0.001).dof for seed in range(12)]
    assert 0.5 < np.std([dof.value for dof in found]) / np.mean([dof.error for dof in found]) < 2


@pytest.mark.parametrize("order", ["C", "F"])
def test_torch_takes_arrays_that_may_not_be_changed(order):
    values = np.asarray(np.arange(6.0).reshape(2, 3), order=order)
    values.flags.writeable = False
    array = backend("cpu", "float64").asarray(values)  # without a warning, which would be an error here
    array += 1
    assert_array_equal(values, np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize("run", [Run(), Run(memory=1), Run(device="cpu"), Run(device="cpu", memory=1)])
@pytest.mark.parametrize("tile", [(5, 50), (31, 31), None])
def test_regressions_do_not_depend_on_solver_device_or_memory(run, tile):
    rng = np.random.default_rng(4)
    x, outputs, at = rng.normal(size=(120, 3)), rng.normal(size=(120, 6)), rng.normal(size=(50, 3))
    exact = np.linalg.solve(Rbf(0.4).gram(x, x) + 12 * np.eye(120), outputs)
    for solver in ("cg", "cholesky") if run.memory > 1 else ("cg",):
        ridge = KernelRidge(Rbf(0.4), x, run, solver=solver, tile=tile)
        solution = ridge.solve(outputs, 0.1)
        assert_allclose(ridge.fitted(outputs, solution.coefficients, 0.1), Rbf(0.4).gram(x, x) @ exact, atol=1e-9)
        predicted = np.concatenate(list(ridge.predict(at, solution.coefficients)))
        assert_allclose(predicted, Rbf(0.4).gram(at, x) @ exact, atol=1e-9)


def test_small_systems_are_factorized_and_large_ones_iterated():
    x = np.zeros((2049, 1))
    assert KernelRidge(Rbf(1.0), x[:-1], Run()).solver == "cholesky"
    assert KernelRidge(Rbf(1.0), x, Run()).solver == "cg"
    assert KernelRidge(Rbf(1.0), x, Run(memory=1)).is_cached is False
    with pytest.raises(OptionError, match=r"0\.0 GiB for 2,049 rows.*--solver cg"):
        KernelRidge(Rbf(1.0), x, Run(memory=1), solver="cholesky")


@pytest.mark.parametrize(("residual", "refused"), [(0.009, False), (0.011, True), (np.nan, True)])
def test_a_solution_with_a_large_residual_is_refused(monkeypatch, residual, refused):
    ridge = KernelRidge(Rbf(0.5), np.random.default_rng(0).normal(size=(20, 1)), Run(), solver="cholesky")
    monkeypatch.setattr(ridge, "_residual", lambda *_: residual)
    if refused:
        with pytest.raises(NumericalError, match=r"ill-conditioned\. Pass a larger --lambda"):
            ridge.solve(np.ones((20, 1)), 0.1)
    else:
        assert ridge.solve(np.ones((20, 1)), 0.1).residual == residual


def test_a_matrix_that_is_not_positive_definite_is_refused_with_a_remedy():
    x = np.random.default_rng(5).normal(size=(50, 1)) * 1e3
    gram = Gram(Polynomial(9, 1.0, 1.0), x, memory=1 << 30, progress=silent)
    with pytest.raises(NumericalError, match="--lambda"):
        Cholesky(gram, 1e-9, silent)


@pytest.mark.parametrize("gamma", [1e-3, 0.5, 30.0])
def test_features_reproduce_the_kernel_on_targets(gamma):
    rng = np.random.default_rng(6)
    y = np.concatenate([rng.normal(size=200), [40.0, -900.0]])[:, None]
    features = output_features(y, Gaussian(y[:, 0] + 1, np.full(202, 0.7)), np.array([gamma]), rng)
    psi = features.of_points(y)
    assert_allclose(psi @ psi.T, np.exp(-gamma * (y - y.T) ** 2), atol=1e-11)
    assert residual_of_points(psi) <= 1e-12
    assert features.rank < 1000


def test_features_cover_distributions_far_from_the_targets():
    rng = np.random.default_rng(7)
    y = rng.normal(size=(100, 1))
    for shift, std in ((0.0, 0.1), (50.0, 1.0), (0.0, 300.0), (1e4, 1e5), (-1e7, 1.0)):
        predictive = Gaussian(y[:, 0] + shift, np.full(100, std))
        features = output_features(y, predictive, np.array([0.5]), rng)
        embedded = features.of_distributions(predictive)
        assert features.residual_of_distributions(predictive, embedded) <= 1e-12
        expected = predictive.kernel_mean(y, np.array([0.5])).T  # <phi(y_j), E phi(Y_i)>
        assert_allclose(features.of_points(y) @ embedded.T, expected, atol=1e-11)


def test_features_of_vectors_report_their_residual():
    rng = np.random.default_rng(8)
    y = rng.normal(size=(300, 2))
    features = output_features(y, Samples(y[:, None, :] + 0.1), np.array([0.25, 0.25]), rng)
    psi = features.of_points(y)
    missed = 1 - np.sum(psi**2, axis=1)
    assert_allclose(residual_of_points(psi), missed.max(), atol=1e-12)
    assert missed.max() < 1e-10


def test_normalization_uses_statistics_of_the_fitted_rows():
    x = np.array([[3.0, 4.0], [0.0, 2.0]])
    assert_allclose(fit_scaling(x, "l2", "polynomial")(x), [[0.6, 0.8], [0, 1]])
    standardized = fit_scaling(x, "standardize", "polynomial")
    assert_allclose(standardized(x), np.array([[1, 1], [-1, -1]]) / 2**0.5)
    assert_allclose(standardized(np.array([[1.5, 5.0]])), [[0, 2**0.5]])
    assert_allclose(fit_scaling(x, "none", "polynomial")(x), x)
    assert_allclose(fit_scaling(x, "none", "rbf")(x).mean(axis=0), 0)
    constant = np.array([[1.0, 5.0], [2.0, 5.0]])
    assert_allclose(fit_scaling(constant, "standardize", "rbf")(constant)[:, 1], 0)


def test_standardized_categories_have_the_same_distances_for_all_shares():
    """Shares of 1/4, 3/4 and 0: the variances 3/16 · 4/3 of both columns are 1/2 in total, and distances 2 / (1/2)."""
    x = np.array([[1.0, 0, 0, 5], [0, 1, 0, 7], [0, 1, 0, 6], [0, 1, 0, 6]])
    scaled = fit_scaling(x, "standardize", "rbf", [Categories("region", ("a", "b", "c"), 0)])
    points = scaled(np.pad(np.eye(3), ((0, 0), (0, 1))))
    assert_allclose([np.sum((points[i] - points[j]) ** 2) for i, j in ((0, 1), (0, 2), (1, 2))], 4.0)
    assert_allclose(scaled(x)[:, 3], fit_scaling(x, "standardize", "rbf")(x)[:, 3])


def test_zero_embeddings_are_refused():
    x = np.array([[0.0, 0.0], [0.0, 2.0]])
    with pytest.raises(DataError, match=r"x must be nonzero, but 1 of 2 rows is not \(row 0.*--normalize"):
        fit_scaling(x, "l2", "polynomial")(x)
    with pytest.raises(DataError, match="evaluation inputs have 3 columns, expected 2"):
        fit_scaling(x, "none", "rbf")(np.zeros((1, 3)))


def test_bandwidths_by_hand():
    """x = 0, 1, 3: distances 1, 3, 2; median 2, median of squares 4; variance 7/3, summed over columns."""
    x = np.array([[0.0], [1.0], [3.0]])
    assert_allclose(bandwidth("median", x, AS_IT_IS, "rbf"), 1 / 4)
    assert_allclose(bandwidth("median", x, AS_IT_IS, "laplace"), 1 / 2)
    assert_allclose(bandwidth("variance", x, AS_IT_IS, "rbf"), 3 / 14)
    assert_allclose(bandwidth("1/d", np.zeros((2, 8)), AS_IT_IS, "polynomial"), 1 / 8)
    assert_allclose(bandwidth(0.3, x, AS_IT_IS, "rbf"), 0.3)
    with pytest.raises(OptionError, match="does not fit the polynomial kernel"):
        bandwidth("median", x, AS_IT_IS, "polynomial")
    with pytest.raises(OptionError, match="does not fit the laplace kernel"):
        bandwidth("variance", x, AS_IT_IS, "laplace")
    with pytest.raises(DataError, match="inputs that vary"):
        bandwidth("median", np.zeros((4, 1)), AS_IT_IS, "rbf")


def test_the_median_bandwidth_of_many_rows_uses_a_sample():
    x = np.random.default_rng(9).normal(size=(5000, 1))
    found = bandwidth("median", x, AS_IT_IS, "rbf")
    # |x - x'| / sqrt 2 is half-normal with median 0.6745; 2,000 rows give the scale squared to 3 %
    assert_allclose(found, 1 / (2 * 0.6745**2), rtol=0.1)


def test_few_inputs_in_blocks_are_scaled_as_those_in_memory():
    """Of seven rows, divisors n and n - 1 differ by 8 %."""
    x = np.random.default_rng(1).normal([1, -30], [2, 0.1], (7, 2))
    deferred = LazyInputs(lambda: iter([x[:3], x[3:]]), x.shape, x.dtype)
    for kernel in ("rbf", "polynomial"):
        own, lazy = (fit_scaling(inputs, "standardize", kernel) for inputs in (x, deferred))
        assert_allclose(own.divisor, x.std(axis=0, ddof=1), rtol=1e-12)
        assert_allclose(lazy.divisor, own.divisor, rtol=1e-12)
        assert_allclose(lazy.shift, own.shift, rtol=1e-12)
    expected = 1 / (2 * x.var(axis=0, ddof=1).sum())
    for inputs in (x, deferred):
        assert_allclose(bandwidth("variance", inputs, fit_scaling(x, "none", "rbf"), "rbf"), expected, rtol=1e-12)


@pytest.mark.parametrize("n", [2, 30, 2500])
def test_neighbors_of_equal_inputs_are_all_others_even_of_a_sample(n):
    assert_allclose(neighbors(Rbf(1.0), np.zeros((n, 1))), n - 1, rtol=1e-12)


def test_rows_for_the_median_depend_on_the_inputs_only():
    """They depend on neither order, seed, targets nor blocks of the file; equal rows are sampled in part."""
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(size=(2500, 2)), np.zeros((2500, 2))]).astype(np.float32)
    some = sample_inputs(x, 2000)
    shuffled = x[rng.permutation(len(x))]
    deferred = LazyInputs(lambda: iter(np.split(shuffled, 10)), x.shape, x.dtype)
    for same in (shuffled, shuffled.astype(np.float64), deferred):
        assert_array_equal(np.sort(sample_inputs(same, 2000), axis=0), np.sort(some, axis=0))
    assert 900 < (some == 0).all(axis=1).sum() < 1100  # 1,000 expected, with standard deviation 17
    chosen = Cce(kernel_x="rbf", gamma_x="median", normalize="l2")
    y = rng.normal(size=(2, len(x)))
    found = [
        chosen.settings(
            Predictions(y=targets, predictive=Gaussian(targets, np.ones(len(x))), x=inputs), Run(seed=seed)
        ).details["inputs"]["gamma"]
        for seed, targets, inputs in ((0, y[0], x + 1), (1, y[1], shuffled + 1))
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("scale", [1.0, 100.0])
@pytest.mark.parametrize("lambda_", [0.1, 1e-3])
@pytest.mark.parametrize("device", DEVICES)
def test_float32_agrees_with_float64(scale, lambda_, device):
    """Also for raw embeddings with kernel values of 10^6, where explicit inverses in float32 give NaN."""
    rng = np.random.default_rng(10)
    x, y, predictive = gaussian_case(rng, 500, 40)
    options = {"normalize": "none", "gamma_x": 1 / 40, "lambda_": lambda_}
    double = cce(scale * x, y, predictive, **options)
    single = cce(scale * x, y, predictive, run=Run(precision="float32", device=device), **options)
    assert np.isfinite(single).all()
    assert_allclose(single.mean(), double.mean(), rtol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("memory", [1, 1 << 30])
def test_single_precision_agrees_with_double_to_six_digits(device, memory):
    """Products, predictions at other inputs, solutions and dof, against dense float64."""
    rng = np.random.default_rng(21)
    x, outputs, at = rng.normal(size=(900, 6)), rng.normal(size=(900, 5)), rng.normal(size=(70, 6))
    scaling = fit_scaling(x, "l2", "polynomial")
    run, kernel = Run(precision="float32", device=device, memory=memory), Polynomial(3, 1.0, 1.0)
    ridge = KernelRidge(kernel, scaling.rounded(x, precision="float32"), run, solver="cg", tile=(100, 300))
    assert ridge.x.dtype == run.backend().dtype
    full, found = kernel.gram(scaling(x), scaling(x)), ridge.solve(outputs, 0.1)
    product = ridge.backend.to_numpy(ridge.gram @ ridge.backend.asarray(outputs))
    assert_allclose(product, full @ outputs, rtol=0, atol=1e-6 * np.abs(full @ outputs).max())
    exact = np.linalg.solve(full + 90 * np.eye(900), outputs)
    assert_allclose(ridge.backend.to_numpy(found.coefficients), exact, rtol=0, atol=2e-6 * np.abs(exact).max())
    predicted = np.concatenate(list(ridge.predict(scaling(at), found.coefficients)))
    expected = kernel.gram(scaling(at), scaling(x)) @ exact
    assert_allclose(predicted, expected, rtol=0, atol=5e-6 * np.abs(expected).max())
    double = KernelRidge(kernel, scaling(x), Run(), solver="cg").solve(outputs, 0.1)
    assert_allclose(found.dof.value, double.dof.value, rtol=1e-5)
    assert found.residual < 2e-6


@pytest.mark.slow
def test_many_inputs_are_normalized_block_by_block():
    x = np.random.default_rng(22).normal(3.0, 2.0, size=(60_000, 40)).astype(np.float32)
    double = x.astype(float)
    unit = double / np.linalg.norm(double, axis=1, keepdims=True)
    standard = (double - double.mean(axis=0)) / double.std(axis=0, ddof=1)
    for name, expected in (("l2", unit), ("standardize", standard), ("none", double)):
        scaling = fit_scaling(x, name, "polynomial")
        assert_allclose(scaling(x), expected, rtol=1e-10, atol=1e-12)
        assert_array_equal(scaling.rounded(x, precision="float32"), scaling(x).astype(np.float32))
    x[50_000] = 0
    with pytest.raises(DataError, match="row 50000"):
        fit_scaling(x, "l2", "polynomial")(x)


def test_unavailable_devices_are_refused():
    with pytest.raises(OptionError, match="torch cannot use device 'abacus'"):
        backend("abacus", "float64")


def test_memory_sizes_are_parsed_with_their_unit():
    assert parse_memory("800MB") == 800_000_000
    assert parse_memory("2 GiB") == 2 << 30
    assert parse_memory("1000") == 1000
    for text in ("", "lots", "-1GB", "3 XB", "infGB"):
        with pytest.raises(OptionError, match="800MB"):
            parse_memory(text)
    assert 0 < default_memory() <= 4 << 30


def test_negative_seeds_are_refused():
    with pytest.raises(OptionError, match="seed must be >= 0, got -1"):
        Run(seed=-1)


@pytest.mark.parametrize("lambda_", [1e-6, 1e-8, 1e-10])
def test_iterations_continue_if_the_residual_first_rises(lambda_):
    """At small lambda the residual grows by orders of magnitude before it falls."""
    rng = np.random.default_rng(14)
    x, y, predictive = gaussian_case(rng, 300, 3)
    options = {"kernel_x": "rbf", "gamma_x": 0.3, "normalize": "none", "lambda_": lambda_}
    direct = cce(x, y, predictive, solver="cholesky", **options)
    # the accuracy at condition numbers of 1e6 to 1e10
    assert_allclose(cce(x, y, predictive, solver="cg", **options), direct, atol=1e-16 / lambda_ + 1e-8)


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
@pytest.mark.parametrize("options", [{"degree": 2000}, {"coef0": 1e200}, {"gamma_x": 1e300}])
def test_kernels_that_overflow_are_refused(solver, options):
    x, y, predictive = gaussian_case(np.random.default_rng(15), 60, 3)
    with np.errstate(all="ignore"), pytest.raises(NumericalError, match="--lambda"):
        cce(x, y, predictive, solver=solver, **options)


def test_inaccurate_float32_is_refused_or_gives_a_warning():
    rng = np.random.default_rng(16)
    x, y, predictive = gaussian_case(rng, 300, 3)
    rows = Predictions(y=y, predictive=predictive, x=x)
    found = {}
    for lambda_ in (1e-1, 1e-6, 1e-8):
        metric = Cce(kernel_x="rbf", gamma_x=0.3, normalize="none", lambda_=lambda_, solver="cholesky")
        exact = rows_of(metric, rows).columns["cce"].mean()
        try:
            single = rows_of(metric, rows, run=Run(precision="float32"))
        except NumericalError:
            found[lambda_] = "refused"
            continue
        error = abs(single.columns["cce"].mean() / exact - 1)
        warned = any("rounding in float32" in warning for warning in texts(single.warnings))
        assert warned or error < 1e-4
        found[lambda_] = "warned" if warned else "right"
    assert found[1e-1] == "right"
    assert found[1e-8] != "right"


@pytest.mark.parametrize("offset", [1e3, 1e5, 1e7])
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_small_distances_far_from_the_origin_are_accurate(offset, precision):
    """Two clusters far apart in ten dimensions: |x|^2 - 2 x.x' + |x'|^2 would cancel."""
    rng = np.random.default_rng(17)
    x = rng.normal(size=(80, 10))
    x[:40, 0] += offset
    x[40:, 0] -= offset
    kernel = Rbf(0.05)
    engine = backend(None, precision)
    centered = engine.asarray(fit_scaling(x, "none", "rbf")(x))
    expected = input_kernel("rbf", 0.05)(x, x)
    grid = np.spacing(np.float32(offset)) if precision == "float32" else 0.0  # the resolution of float32 inputs
    assert_allclose(kernel.gram(centered, centered), expected, atol=1e-9 + grid + 1e-5 * (grid > 0))


def test_a_constant_column_is_recognized_despite_rounding():
    """0.1 has no exact float: its mean over 1,000 rows is not 0.1, and its standard deviation not 0."""
    x = np.random.default_rng(18).normal(size=(1000, 2))
    for constant in (0.1, 1 / 3, 1e9 + 0.1, -7.7):
        both = np.column_stack([x, np.full(1000, constant)])
        assert_allclose(fit_scaling(both, "standardize", "polynomial")(both)[:, 2], 0)


@pytest.mark.parametrize("normalize", ["l2", "standardize"])
def test_inputs_of_any_magnitude_are_normalized(normalize):
    x = np.random.default_rng(19).normal(size=(50, 4))
    expected = fit_scaling(x, normalize, "polynomial")(x)
    for factor in (1e-170, 1e160):
        assert_allclose(fit_scaling(factor * x, normalize, "polynomial")(factor * x), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("solver", "memory", "share"), [("cholesky", 1 << 30, 1.0), ("cg", 1 << 30, 0.55), ("cg", 1, 0.0)]
)
def test_solvers_store_no_square_matrix_except_the_gram_matrix(solver, memory, share):
    """n = 1,500 in tiles of 100 x 500: one matrix factorized in place, half of one stored, or none.

    In addition: 2 tiles, and 2 blocks of 256 columns of the inverse or 10 arrays of n x 44 (outputs, dof's directions).
    """
    n, rng = 1500, np.random.default_rng(20)
    x, outputs = rng.normal(size=(n, 8)), rng.normal(size=(n, 20))
    small = KernelRidge(Rbf(0.1), x[:50], Run(memory=1 << 30), solver=solver)
    small.solve(outputs[:50], 0.1)  # so that imports are not counted
    tracemalloc.start()
    try:
        ridge = KernelRidge(Rbf(0.1), x, Run(memory=memory), solver=solver, tile=(100, 500))
        for penalty in (0.1, 0.05):  # lambda and lambda': one matrix after the other
            ridge.solve(outputs, penalty)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    beside = 2 * 100 + (2 * 256 if solver == "cholesky" else 10 * 44)
    assert peak / (8 * n) < share * n + beside


@pytest.mark.parametrize("larger", ["points", "rows"])
def test_the_larger_residual_of_output_features_is_warned_of(larger):
    """Residuals of targets and of distributions, of which either may exceed the limit."""
    bounds = FeatureBounds(rank=3, points=1e-9, rows=1e-9)
    assert residual_warnings(bounds) == []
    (warning,) = residual_warnings(replace(bounds, **{larger: 1e-3}))
    assert warning.code == "feature-residual"
    assert "up to 1.0e-03 of a squared norm" in warning.text


def test_kernels_that_are_too_narrow_or_too_wide_are_warned_of():
    def codes(gamma):
        rng = np.random.default_rng(0)
        rows = Predictions(
            y=rng.normal(size=40), predictive=Gaussian(np.zeros(40), np.ones(40)), x=rng.normal(size=(40, 2))
        )
        names = {"jmmd": METRICS["jmmd"](kernel_x="rbf", gamma_x=gamma), "cce": Cce(kernel_x="rbf", gamma_x=gamma)}
        return {name: {each.code for each in rows_of(metric, rows).warnings} for name, metric in names.items()}

    assert "narrow-kernel" in codes(1e6)["jmmd"]
    assert "narrow-kernel" not in codes(0.5)["jmmd"]
    assert "low-dof" in codes(1e-6)["cce"]
    assert "low-dof" not in codes(0.5)["cce"]
    assert [len(narrow_kernel_warnings(neighbors, "row", "1")) for neighbors in (None, 1.0, 0.99)] == [0, 0, 1]
    assert [len(few_dof(dof)) for dof in (MIN_DOF, 0.99 * MIN_DOF)] == [0, 1]
