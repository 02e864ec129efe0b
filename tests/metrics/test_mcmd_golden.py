"""MCMD: derived by hand for few rows, by explicit inverses on random data; and its null distribution."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.distributions import Samples
from calcheck.embeddings.permutations import input_kernel_of, strata
from calcheck.execution.run import Run
from calcheck.inference.null_distribution import NullSimulator
from calcheck.metrics._joint_mmd import SAMPLE
from calcheck.metrics.mcmd import Mcmd
from calcheck.models.two_samples import two_samples
from calcheck.predictions import InMemory, Predictions
from tests.helpers.naive import form, input_kernel, target_kernel, weights
from tests.helpers.shorthand import cce, rows_of
from tests.helpers.simulations import band, sets


def pooled(first, second):
    """Return the rows (x, y) of two samples, with the column that distinguishes them."""
    x, y = (np.concatenate(parts) for parts in zip(first, second, strict=True))
    return Predictions(
        x=x, y=y, has_embedding=False, columns={SAMPLE: np.repeat([0, 1], [len(first[0]), len(second[0])])}
    )


def mcmd(first, second, *, at=None, run=None, **options):
    """Return MCMD at the given points, or at all rows."""
    points = None if at is None else Predictions(x=at, has_embedding=False)
    return rows_of(Mcmd(**options), pooled(first, second), at=points, run=run).columns["mcmd"]


def mcmd_squared(first, second, *, k_x, ridges, at, gamma_y=None, k_y=None):
    """|sum_i a_i phi(y_i) - sum_j b_j phi(y'_j)|^2, a = (K_X + n lambda I)^-1 k_X(x), b with X', m and lambda'."""
    (x, y), (other_x, other_y) = first, second
    k_y = k_y or target_kernel(gamma_y)
    a, b = weights(k_x, x, at, ridges[0]), weights(k_x, other_x, at, ridges[1])
    return form(a, k_y(y, y), a) - 2 * form(a, k_y(y, other_y), b) + form(b, k_y(other_y, other_y), b)


def sample(rng, n, d, t=1, shift=0.0):
    x = rng.normal(size=(n, d))
    y = np.sin(x @ rng.normal(size=(d, t))) + 0.3 * rng.normal(size=(n, t)) + shift
    return x, y * 10.0 ** np.arange(t)


def test_two_rows_against_three_by_hand():
    """Inputs whose kernel is 0 (K = I): rows do not influence each other; n lambda = 0.2 and m lambda' = 0.9.

    At x = 0: U = phi(0) / 1.2 and U' = phi(2) / 1.9, k(0, 2) = e^(-2) for gamma_y = 0.5. At x = 1000 both are
    multiples of phi(1); at x = 2000 only U' is not 0.
    """
    first = np.array([[0.0], [1e3]]), np.array([[0.0], [1.0]])
    second = np.array([[0.0], [1e3], [2e3]]), np.array([[2.0], [1.0], [5.0]])
    found = mcmd(first, second, at=np.array([[0.0], [1e3], [2e3], [3e3]]), gamma_y=0.5, lambda_b=0.3)
    expected = [
        1 / 1.2**2 + 1 / 1.9**2 - 2 * np.exp(-2) / (1.2 * 1.9),
        (1 / 1.2 - 1 / 1.9) ** 2,
        1 / 1.9**2,
        0,
    ]
    assert_allclose(found**2, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("d", [1, 8])
@pytest.mark.parametrize("t", [1, 3])
@pytest.mark.parametrize("sizes", [(40, 40), (55, 31)])
@pytest.mark.parametrize("ridge_b", [None, 0.02])
def test_samples_at_different_inputs_equal_explicit_inverses(d, t, sizes, ridge_b):
    """gamma_y = 1 / (2 t s^2), s^2 of the first sample; the square to 1e-10, by every kernel and solver."""
    rng = np.random.default_rng([d, t, *sizes])
    first, second = sample(rng, sizes[0], d, t), sample(rng, sizes[1], d, t, shift=0.4)
    at = rng.normal(size=(25, d))
    gamma_y = 1 / (2 * t * first[1].var(axis=0, ddof=1))
    for kernel, shape in {
        "rbf": {"gamma": 0.3 / d},
        "laplace": {"gamma": 0.2 / d},
        "polynomial": {"gamma": 0.5 / d, "degree": 3, "coef0": 1.0},
    }.items():
        ridges = 0.1, ridge_b or 0.1
        squared = mcmd_squared(first, second, k_x=input_kernel(kernel, **shape), gamma_y=gamma_y, ridges=ridges, at=at)
        options = {"kernel_x": kernel, "gamma_x": shape["gamma"], "normalize": "none", "lambda_b": ridge_b}
        for solver in ("cholesky", "cg"):
            found = mcmd(first, second, at=at, solver=solver, **options)
            assert_allclose(found**2, squared, rtol=0, atol=1e-10)


@pytest.mark.parametrize("t", [1, 2])
@pytest.mark.parametrize(
    ("kernel", "shape"),
    [
        ("laplace", {"gamma": 0.3}),
        ("polynomial", {"gamma": 0.05, "degree": 3, "coef0": 1.0}),
        ("polynomial", {"gamma": 0.1, "degree": 2, "coef0": 0.5}),
    ],
)
def test_other_kernels_on_targets_equal_explicit_inverses(kernel, shape, t):
    rng = np.random.default_rng([t, len(kernel)])
    first, second = sample(rng, 40, 1, t), sample(rng, 35, 1, t, shift=0.4)
    at = rng.normal(size=(25, 1))
    k_x, k_y = input_kernel("rbf", 1.0), input_kernel(kernel, **shape)
    squared = mcmd_squared(first, second, k_x=k_x, k_y=k_y, ridges=(0.1, 0.1), at=at)
    options = {name: value for name, value in shape.items() if name != "gamma"}
    for solver in ("cholesky", "cg"):
        found = mcmd(first, second, at=at, kernel_y=kernel, gamma_y=shape["gamma"], solver=solver, **options)
        assert_allclose(found**2, squared, rtol=1e-10, atol=1e-10)


def test_other_kernels_on_targets_have_scales_of_both_samples_by_default():
    """Laplace: 1 / s; polynomial: 1 / (2 s^2), s the deviation of all targets; a change of unit changes nothing."""
    rng = np.random.default_rng(4)
    first, second = sample(rng, 40, 1), sample(rng, 35, 1, shift=0.4)
    spread = np.concatenate([first[1], second[1]]).std(ddof=1)
    for kernel, gamma in (("laplace", 1 / spread), ("polynomial", 1 / (2 * spread**2))):
        found = mcmd(first, second, kernel_y=kernel)
        assert_allclose(found, mcmd(first, second, kernel_y=kernel, gamma_y=gamma), rtol=1e-10)
        scaled = ((x, 1000 * y) for x, y in (first, second))
        assert_allclose(found, mcmd(*scaled, kernel_y=kernel), rtol=1e-10)


def test_repeated_targets_have_one_feature():
    """Targets 0, 1 and 2: a Laplace kernel has three features, and a polynomial of degree 1 has two."""
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(30, 1)), rng.integers(0, 3, (30, 1)).astype(float)
    for options, rank in (({"kernel_y": "laplace"}, 3), ({"kernel_y": "polynomial", "degree": 1}, 2)):
        details = rows_of(Mcmd(**options), pooled((x, y), (x[:20], y[:20]))).details
        assert details["features"]["rank"] == rank


def test_the_mean_square_is_that_of_explicit_inverses():
    """The square of the mean is at most the mean of squares, of the samples and of each permutation."""
    rng = np.random.default_rng(2)
    first, second = sample(rng, 30, 1), sample(rng, 35, 1, shift=3.0)
    sources = [InMemory(Predictions(x=x, y=y, has_embedding=False)) for x, y in (first, second)]
    plain, squared = (
        two_samples(*sources, Mcmd(squared=squared), grid=9, run=Run(replicates=49)).results[0]
        for squared in (False, True)
    )
    at = np.linspace(*np.quantile(np.concatenate([first[0], second[0]]), [0, 1]), 9)[:, None]
    gamma_y = 1 / (2 * first[1].var(ddof=1))
    expected = mcmd_squared(first, second, k_x=input_kernel("rbf", 1.0), gamma_y=gamma_y, ridges=(0.1, 0.1), at=at)
    assert_allclose(squared.value, expected.mean(), rtol=0, atol=1e-10)
    assert plain.value**2 <= squared.value < plain.value
    assert plain.reference**2 <= squared.reference < plain.reference


def test_by_default_a_single_input_has_gamma_1():
    rng = np.random.default_rng(1)
    first, second = sample(rng, 40, 1), sample(rng, 50, 1)
    at = np.linspace(-2, 2, 7)[:, None]
    gamma_y = 1 / (2 * first[1].var(ddof=1))
    squared = mcmd_squared(first, second, k_x=input_kernel("rbf", 1.0), gamma_y=gamma_y, ridges=(0.1, 0.1), at=at)
    assert_allclose(mcmd(first, second, at=at) ** 2, squared, rtol=0, atol=1e-10)


@pytest.mark.parametrize("d", [1, 4])
@pytest.mark.parametrize("lambdas", [(0.1, None), (0.1, 0.03)])
def test_on_equal_inputs_mcmd_equals_cce_with_one_draw(d, lambdas):
    """A model with one draw per input is a second sample at these inputs."""
    rng = np.random.default_rng(d)
    x, y = sample(rng, 60, d)
    drawn = y + 0.2 * rng.normal(size=y.shape)
    at = rng.normal(size=(20, d))
    common = {"gamma_x": 0.7, "normalize": "none", "lambda_": lambdas[0]}
    expected = cce(x, y[:, 0], Samples(drawn), at=at, has_embedding=False, lambda_model=lambdas[1], **common)
    found = mcmd((x, y), (x, drawn), at=at, lambda_b=lambdas[1], **common)
    assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("d", "equal", "options"),
    [
        (1, False, {}),
        (1, True, {}),
        (1, True, {"lambda_b": 0.03}),
        (1, False, {"kernel_x": "laplace"}),  # of full rank
        (1, False, {"kernel_y": "laplace"}),
        (3, False, {"kernel_y": "polynomial"}),
        (3, False, {"lambda_b": 0.03}),
        (3, True, {"gamma_y": 0.4}),
    ],
    ids=str,
)
def test_the_null_distribution_equals_mcmd_of_permuted_rows(d, equal, options):
    """Everything is computed again for each permutation, also the kernel on targets from the new first sample."""
    rng = np.random.default_rng(3)
    first, second = sample(rng, 40, d), sample(rng, 40 if equal else 33, d, shift=0.5)
    if equal:
        second = first[0][rng.permutation(40)], second[1]
    rows, run, metric = pooled(first, second), Run(replicates=19), Mcmd(**options)
    at = InMemory(Predictions(x=rng.normal(size=(15, d)), has_embedding=False))
    source = InMemory(rows)
    fit = metric.at_inputs(metric.fit(source, run), at)
    simulation = NullSimulator(rows, run)
    found = metric.null_distribution(fit, simulation, run)
    labels = rows.columns[SAMPLE] == 0
    x = fit.inputs.scaling(rows.x)
    _, centered = input_kernel_of(fit.inputs.kernel, x, fit.inputs.scaling(at.rows.x), run)
    groups = strata(x, labels, lambda: centered.rows)
    assert found.data_value == pytest.approx(rows_of(metric, rows, at=at.rows).columns["mcmd"].mean(), rel=1e-5)
    for value, exchanged in zip(found.values, groups.permuted(simulation.rng(), 19), strict=True):
        other = replace(rows, columns={SAMPLE: np.where(exchanged, 0, 1)})
        assert_allclose(value, rows_of(metric, other, at=at.rows).columns["mcmd"].mean(), rtol=1e-5)
        assert exchanged.sum() == labels.sum()


@pytest.mark.slow
def test_on_equal_inputs_p_is_the_share_of_all_permutations():
    """Seven pairs at seven inputs: 2^7 permutations of equal probability, enumerated."""
    rng = np.random.default_rng(4)
    x = np.arange(7.0)[:, None]
    y, other = rng.normal(size=(7, 1)), rng.normal(size=(7, 1)) + 1.7
    values = []
    for chosen in product([False, True], repeat=7):
        swapped = np.array(chosen)[:, None]
        values.append(
            mcmd((x, np.where(swapped, other, y)), (x, np.where(swapped, y, other)), at=x, gamma_y=0.5).mean()
        )
    exact = np.mean(np.array(values) >= values[0] * (1 - 1e-9))
    first, second = (InMemory(Predictions(x=x, y=part[:, 0], has_embedding=False)) for part in (y, other))
    (found,) = two_samples(first, second, Mcmd(gamma_y=0.5), at=first, run=Run(replicates=1999)).results
    assert_allclose(found.p_value, exact, atol=4 * np.sqrt(exact * (1 - exact) / 1999))
    assert 0.01 < exact < 0.5


def drawn(rng, x, shift=0.0):
    y = np.sin(x[:, 0]) + (0.2 + 0.1 * np.abs(np.sin(x[:, 0]))) * rng.normal(size=len(x))
    return InMemory(Predictions(x=x, y=y + shift, has_embedding=False))


def rejected(inputs, count, *, n, shift=0.0):
    """Return the share of data sets that fail; the conditional distribution is the same but for the shift."""
    found = []
    for seed in range(count):
        rng = np.random.default_rng([11, seed])
        first, second = (draw(rng, n) for draw in inputs)
        report = two_samples(drawn(rng, first), drawn(rng, second, shift), Mcmd(), grid=50, run=Run(replicates=39))
        found.append(report.results[0].verdict == "fail")
    return np.mean(found)


def uniform(rng, n):
    return rng.uniform(0, 2 * np.pi, (n, 1))


def denser_to_the_right(rng, n):
    return 2 * np.pi * rng.beta(2, 1, (n, 1))


def to_the_left(rng, n):
    return rng.normal(2.4, 1.2, (n, 1))


def to_the_right(rng, n):
    return rng.normal(3.9, 1.2, (n, 1))


every_pair_of_inputs = pytest.mark.parametrize(
    "inputs",
    [(uniform, uniform), (uniform, denser_to_the_right), (to_the_left, to_the_right)],
    ids=["the same", "denser", "shifted"],
)


@pytest.mark.slow
@every_pair_of_inputs
def test_equal_distributions_are_rejected_at_5_percent_for_all_inputs(inputs):
    """At most 8 of 60 data sets (0.1 % probability at 5 %); if any rows were permuted, nearly all would fail."""
    count = sets(60)
    assert rejected(inputs, count, n=60) * count <= band(count, 0.05, 0.002)[1]


@pytest.mark.slow
def test_different_distributions_are_detected_at_different_inputs():
    assert rejected((uniform, denser_to_the_right), 12, n=100, shift=0.4) > 0.9


@pytest.mark.slow
@every_pair_of_inputs
def test_the_level_is_5_percent_over_many_data_sets(inputs):
    """400 data sets of 100 rows: 5 % and four standard errors."""
    assert 0.01 < rejected(inputs, 400, n=100) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 400)


def test_the_differentiable_function_gives_the_same_values():
    from calcheck.discrepancies import mcmd as of_arrays

    rng = np.random.default_rng(8)
    first, second = sample(rng, 30, 2), sample(rng, 45, 2, shift=0.3)
    at = rng.normal(size=(12, 2))
    expected = of_arrays(*first, *second, at, gamma_x=0.4, gamma_y=0.7)
    found = mcmd(first, second, at=at, kernel_x="rbf", normalize="none", gamma_x=0.4, gamma_y=0.7)
    assert_allclose(found, expected, rtol=1e-8)
