"""Laws for all inputs.

1. Writing predictions of any family and reading them back is the identity, in every format.
2. Features of targets reproduce the kernel between any targets, with a small residual.
3. CCE does not depend on the solver, the storage, or the order of rows.
4. CCE is 0 where every draw is the target, and at most sqrt(2) (1 + 1 / sqrt(lambda)) anywhere.
5. Memory sizes in bytes are parsed.
"""

import io
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from calcheck import InMemory, Predictions, read, write
from calcheck.distributions import Gaussian, Independent, Samples
from calcheck.embeddings.rbf import output_features, residual_of_points
from calcheck.execution.run import Run, parse_memory
from tests.helpers.families import FAMILIES
from tests.helpers.files import wide
from tests.helpers.files import write as write_columns
from tests.helpers.shorthand import cce
from tests.helpers.simulations import examples

finite = st.floats(-1e6, 1e6, allow_subnormal=False)
positive = st.floats(1e-3, 1e3)
law = examples(25)


@st.composite
def gaussian_files(draw):
    """Columns of a file of Gaussian predictions."""
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    return {
        "id": np.array(
            draw(st.lists(st.text("abc019_-é", min_size=1, max_size=6), min_size=n, max_size=n, unique=True))
        ),
        "y": draw(arrays(np.float64, n, elements=finite)),
        "mean": draw(arrays(np.float64, n, elements=finite)),
        "std": draw(arrays(np.float64, n, elements=positive)),
        "embedding": draw(arrays(np.float32, (n, d), elements=st.floats(-1e3, 1e3, width=32, allow_subnormal=False))),
    }


@law
@given(gaussian_files(), st.sampled_from(["parquet", "csv", "feather", "arrow"]), st.booleans())
def test_writing_and_reading_back_is_the_identity(parts, ending, piped):
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"preds.{ending}"
        write_columns(path, wide(parts) if ending == "csv" else parts)
        stdin = io.TextIOWrapper(io.BytesIO(path.read_bytes()))
        source = read("-", input_format="arrow" if ending == "feather" else ending) if piped else read(str(path))
        with patch.object(sys, "stdin", stdin):
            rows = source.predictions()
    assert_array_equal(rows.y, parts["y"])
    assert_array_equal(rows.predictive.mean(), parts["mean"])
    assert_array_equal(rows.predictive.std(), parts["std"])
    assert_allclose(rows.x, parts["embedding"], rtol=1e-7)
    assert rows.id.astype(str).tolist() == parts["id"].tolist()  # CSV does not distinguish 7 from "7"


@law
@given(
    st.sampled_from(sorted(FAMILIES)),
    st.integers(1, 12),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["parquet", "csv", "feather", "arrow"]),
    st.booleans(),
)
def test_predictions_of_every_family_are_read_back_unchanged(family, n, seed, ending, piped):
    rng = np.random.default_rng(seed)
    predictive = FAMILIES[family](rng, n)
    rows = Predictions(
        y=predictive.sample(rng, 1)[:, 0],
        predictive=predictive,
        x=rng.normal(size=(n, 2)).astype(np.float32),
        id=rng.permutation(n),
        columns={"group": np.array(["a", "b"] * n)[:n]},
    )
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / f"preds.{ending}")
        write(InMemory(rows), path)
        stdin = io.TextIOWrapper(io.BytesIO(Path(path).read_bytes()))
        source = read("-", input_format="arrow" if ending == "feather" else ending) if piped else read(path)
        with patch.object(sys, "stdin", stdin):
            found = source.predictions()
    assert_array_equal(found.y, rows.y)
    assert_allclose(found.x, rows.x, rtol=1e-7)
    assert_array_equal(found.id, rows.id)
    one, other = predictive.parameters(), found.predictive.parameters()
    assert one[0] == other[0]
    assert one[1].keys() == other[1].keys()
    for name, values in one[1].items():
        assert_array_equal(other[1][name], values)


@law
@given(st.integers(1, 6), st.integers(2, 4), st.sampled_from(["gaussian", "samples"]), st.integers(0, 2**32 - 1))
def test_several_targets_are_read_back_unchanged(n, t, family, seed):
    rng = np.random.default_rng(seed)
    marginals = tuple(Gaussian(rng.normal(size=n), rng.uniform(0.1, 1, n)) for _ in range(t))
    predictive = Independent(marginals) if family == "gaussian" else Samples(rng.normal(size=(n, 3, t)))
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "preds.parquet")
        write(InMemory(Predictions(y=rng.normal(size=(n, t)), predictive=predictive)), path)
        found = read(path).predictions()
    assert found.y.shape == (n, t)
    if family == "samples":
        assert_array_equal(found.predictive.draws, predictive.draws)
    else:
        assert_array_equal(found.predictive.mean(), predictive.mean())
        assert_array_equal(found.predictive.std(), predictive.std())


@pytest.mark.slow
@law
@given(
    arrays(np.float64, st.integers(2, 30), elements=finite),
    st.floats(1e-3, 1e3),
    st.floats(1e-3, 1e6),
)
def test_features_reproduce_the_kernel(y, gamma, std):
    gamma = np.array([gamma / max(1.0, np.ptp(y)) ** 2])
    predictive = Gaussian(y[::-1].copy(), np.full(len(y), std))
    features = output_features(y[:, None], predictive, gamma, np.random.default_rng(0))
    psi, embedded = features.of_points(y[:, None]), features.of_distributions(predictive)
    bound = residual_of_points(psi) + features.residual_of_distributions(predictive, embedded)
    assert bound < 1e-10
    assert_allclose(psi @ psi.T, np.exp(-gamma * (y[:, None] - y) ** 2), atol=1e-10)
    assert_allclose(psi @ embedded.T, predictive.kernel_mean(y[:, None], gamma).T, atol=1e-10)


@pytest.mark.slow
@law
@given(
    st.integers(2, 25),
    st.integers(1, 4),
    st.integers(0, 2**32 - 1),
    st.floats(0.01, 10),
    st.sampled_from(["rbf", "laplace", "polynomial"]),
)
def test_cce_does_not_depend_on_solver_device_or_row_order(n, d, seed, lambda_, kernel):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, d)), rng.normal(size=n)
    predictive = Gaussian(rng.normal(size=n), rng.uniform(0.1, 3, n))
    options = {"kernel_x": kernel, "gamma_x": 0.5, "normalize": "none", "lambda_": lambda_}
    expected = cce(x, y, predictive, solver="cholesky", **options)
    order = rng.permutation(n)
    assert_allclose(cce(x[order], y[order], predictive.take(order), **options), expected[order], atol=1e-9)
    for run in (Run(), Run(memory=1), Run(device="cpu", memory=1)):
        assert_allclose(cce(x, y, predictive, solver="cg", run=run, **options), expected, atol=1e-9)


@law
@given(arrays(np.float64, st.integers(2, 20), elements=st.floats(-10, 10), unique=True), st.floats(0.01, 1))
def test_cce_is_zero_for_an_oracle_and_bounded_for_any_model(y, lambda_):
    x = np.arange(len(y), dtype=float)[:, None]
    oracle, anyone = Samples(np.tile(y[:, None], 3)), Samples(y[::-1, None].copy())
    assert_allclose(cce(x, y, oracle, lambda_=lambda_), 0, atol=1e-7)
    assert cce(x, y, anyone, lambda_=lambda_).max() <= 2**0.5 * (1 + lambda_**-0.5)


@law
@given(st.integers(1, 10**12))
def test_memory_sizes_in_bytes_are_parsed(size):
    assert parse_memory(f"{size}B") == parse_memory(str(size)) == size
