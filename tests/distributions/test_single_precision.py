"""Predictions stored in single precision are computed in double precision, and iterations converge."""

from dataclasses import fields

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from calcheck.distributions import CONVENTIONS, Quantiles, Samples
from calcheck.distributions.mixture import Mixture
from tests.helpers.families import FAMILIES, example_parameters

ROWS = 20


def parameters_of(family, dtype):
    given = {field.name: getattr(family, field.name) for field in fields(family)}
    return {name: values.astype(dtype) for name, values in given.items() if values is not None}


@pytest.mark.parametrize("name", FAMILIES)
def test_single_precision_parameters_are_converted_to_double(name):
    family = FAMILIES[name](np.random.default_rng(0), ROWS)
    narrow = parameters_of(family, np.float32)
    if name == "quantiles":
        narrow["values"].sort(axis=1)
    wide = {key: values.astype(np.float64) for key, values in narrow.items()}
    single, double = type(family)(**narrow), type(family)(**wide)
    assert {getattr(single, name).dtype for name in narrow} == {np.dtype(np.float64)}
    y = double.sample(np.random.default_rng(1), 1)[:, 0]
    for function in ("cdf", "crps"):
        assert_array_equal(getattr(single, function)(y), getattr(double, function)(y))
    for p in (0.05, 0.5, 0.9):
        assert_array_equal(single.quantile(p), double.quantile(p))
    if name not in ("samples", "quantiles"):
        assert_array_equal(single.log_prob(y), double.log_prob(y))
    points, gamma = y[:3, None], np.array([0.3])
    assert_array_equal(single.kernel_mean(points, gamma), double.kernel_mean(points, gamma))
    assert_array_equal(single.kernel_norm(gamma), double.kernel_norm(gamma))


@pytest.mark.parametrize("spelling", CONVENTIONS)
def test_conventions_compute_in_double(spelling):
    convention = CONVENTIONS[spelling]
    values = {"probs": 0.37, "p": 0.37, "alpha": 2.7, "df": 5.3, "nu": 5.3}
    single = {name: made.astype(np.float32) for name, made in example_parameters(convention, values).items()}
    built = convention(**single)
    double = convention(**{name: each.astype(np.float64) for name, each in single.items()})
    for field in fields(built):
        assert_array_equal(getattr(built, field.name), getattr(double, field.name))


def test_quantiles_of_a_mixture_in_single_precision_converge():
    rng = np.random.default_rng(0)
    loc, scale = rng.normal(size=(50, 5)).astype(np.float32), np.ones((50, 5), dtype=np.float32)
    mixture = Mixture(loc, scale, np.full((50, 5), 0.2, dtype=np.float32))
    np.testing.assert_allclose(mixture.cdf(mixture.quantile(0.9)), 0.9, rtol=1e-12)


@pytest.mark.parametrize("size", [1e-74, 1.0, 1e75])
def test_quantiles_of_a_mixture_converge_at_any_scale(size):
    mixture = Mixture(np.array([[-1.0, 1.0]]) * size, np.array([[0.1, 0.1]]) * size, np.array([[0.5, 0.5]]))
    assert mixture.quantile(0.25)[0] == pytest.approx(-size, rel=1e-12)


def test_draws_and_quantiles_in_single_precision_have_moments_in_double():
    draws = np.array([[16777216.0, 16777218.0, 16777220.0]], dtype=np.float32)  # spacing 2 in single precision
    assert Samples(draws).mean()[0] == 16777218
    assert Samples(draws).std()[0] == 2
    assert Quantiles(np.array([0.25, 0.75], dtype=np.float32), draws[:, :2]).quantile(0.5)[0] == 16777217
