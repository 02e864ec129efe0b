"""Pivoted Cholesky, truncated eigenbases, Nyström features and the search for a rank, by hand and by dense algebra."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.errors import NumericalError
from calcheck.execution.backend import backend
from calcheck.kernels.kernel_functions import Polynomial, Rbf
from calcheck.linalg.gram import (
    Gram,
    Nystroem,
    PivotedCholesky,
    RowBlocks,
    eigenvectors,
    first_sufficient,
    leading,
    psd_root,
    spanning_points,
    truncated_eigenbasis,
)

ARRAY = backend(None, "float64")


def gram_of_rank(rank, n=30):
    z = np.random.default_rng(0).normal(size=(n, rank))
    return z @ z.T


def factorized(gram, max_rank=99, **options):
    return PivotedCholesky(gram.diagonal(), gram.__getitem__, max_rank, **options)


def test_pivoted_cholesky_of_two_by_two_by_hand():
    """[[1, 2], [2, 13]]: the second first, (2, 13) / sqrt(13); then 1 - 4/13 = 9/13 is left of the first."""
    found = factorized(np.array([[1.0, 2.0], [2.0, 13.0]]))
    found.represent(2, 0.7)
    assert found.pivots == [1]
    assert_allclose(found.residuals, [9 / 13, 0], rtol=1e-14)
    found.represent(2, 0.6)
    assert found.pivots == [1, 0]
    assert_allclose(found.factor, np.array([[2, 13], [3, 0]]) / np.sqrt(13), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("rows", [2, 64])
def test_as_many_pivots_as_the_rank_represent_a_gram_matrix(rows):
    gram = gram_of_rank(7)
    found = factorized(gram, first_rows=rows)
    found.represent(30, 1e-9)
    assert len(found.pivots) == 7
    assert_allclose(found.factor.T @ found.factor, gram, atol=1e-10)


def test_pivots_are_chosen_among_the_first_elements_and_up_to_the_maximum():
    found = factorized(gram_of_rank(9), max_rank=5)
    found.represent(3, 1e-9)
    assert sorted(found.pivots) == [0, 1, 2]
    found.represent(30, 1e-9)
    assert len(found.pivots) == 5


def test_a_tolerance_may_differ_between_elements():
    found = factorized(np.diag([4.0, 3.0, 2.0]))
    found.represent(3, np.array([5.0, 1.0, 5.0]))
    assert found.pivots == [0, 1]  # the largest residual is first, though it is the second that is not yet represented


def test_a_truncated_eigenbasis_leaves_out_a_share_of_the_trace():
    """Of 90, 9 and 1, a hundredth is left out by the first two, and a tenth by the first."""
    turns = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    matrix = turns * [90, 9, 1] @ turns.T
    for tolerance, kept in ((0.011, [9, 90]), (0.009, [1, 9, 90]), (0.11, [90])):
        values, vectors = truncated_eigenbasis(matrix, tolerance)
        assert_allclose(values, kept, rtol=1e-12)
        assert_allclose(matrix @ vectors, vectors * values, rtol=1e-10, atol=1e-12)
    assert not leading(np.zeros(3)).any()


def test_a_root_of_a_singular_matrix_is_a_root():
    matrix = gram_of_rank(2, n=5)
    root = psd_root(matrix)
    assert_allclose(root @ root.T, matrix, atol=1e-12)
    assert_allclose(psd_root(np.array([[-1e-20]])), [[0]])


def test_a_matrix_without_eigenvalues_is_refused(monkeypatch):
    def fails(_):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(np.linalg, "eigh", fails)
    with pytest.raises(NumericalError, match="no eigendecomposition"):
        eigenvectors(np.eye(2))


def test_nystroem_features_are_the_same_kernel_by_cholesky_and_by_eigenvectors():
    """K_xc K_cc^-1 K_cx; exact at the landmarks."""
    x = np.random.default_rng(0).normal(size=(40, 3))
    kernel, landmarks = Rbf(0.3), x[:15]
    inner = np.linalg.solve(kernel.gram(landmarks, landmarks), kernel.gram(landmarks, x))
    expected = kernel.gram(x, landmarks) @ inner
    for found in (
        Nystroem.from_cholesky(kernel, landmarks, ARRAY),
        Nystroem.from_eigenvectors(kernel, landmarks, ARRAY, smallest_share=1e-13),
    ):
        assert found.rank == 15
        z = found(x)
        assert_allclose(z @ z.T, expected, atol=1e-8)
        assert_allclose(z[:15] @ z[:15].T, kernel.gram(landmarks, landmarks), atol=1e-8)
        weights = np.ones((15, 2))
        assert_allclose(found.values(x) @ (found.whitening @ weights), z @ weights, atol=1e-8)


def test_negligible_eigenvalues_of_landmarks_are_dropped_and_overflow_is_refused():
    twins = np.repeat(np.random.default_rng(0).normal(size=(5, 2)), 2, axis=0)
    assert Nystroem.from_eigenvectors(Rbf(1.0), twins, ARRAY, smallest_share=1e-10).rank == 5
    assert Nystroem.from_eigenvectors(Rbf(1.0), twins, ARRAY, smallest=1e9, smallest_share=1e-10).rank == 0
    with np.errstate(over="ignore"), pytest.raises(NumericalError, match="the kernel overflows"):
        Nystroem.from_eigenvectors(
            Polynomial(degree=9, gamma=1.0, coef0=1.0), 1e40 * twins, ARRAY, smallest_share=1e-10
        )


def test_blocks_of_rows_are_computed_once_or_at_every_use():
    made = []

    def compute(rows):
        made.append(rows)
        return np.arange(5)[rows]

    for cached, calls in ((True, 2), (False, 4)):
        made.clear()
        blocks = RowBlocks(5, 3, compute, cached=cached)
        for _ in range(2):
            assert [(rows.start, rows.stop, block.tolist()) for rows, block in blocks] == [
                (0, 3, [0, 1, 2]),
                (3, 5, [3, 4]),
            ]
        assert len(made) == calls
        twice = blocks.map(lambda block: 2 * block)
        blocks.clear()
        for each in (twice, twice.map(np.negative)):
            each.clear()  # Computed again, once
            assert np.abs(np.concatenate([block for _, block in each])).tolist() == [0, 2, 4, 6, 8]


def test_the_search_stops_at_the_first_sufficient_candidate():
    assert first_sufficient(itertools.count(), lambda each: each**2 > 10) == 4
    assert first_sufficient([1, 2, 3], lambda _: False) == 3


def test_an_rbf_kernel_of_one_input_is_a_product_of_few_features():
    """The matrix of 3,000 rows is told by some 25 features up to rounding; of three inputs, it needs too many."""
    x, columns = np.random.default_rng(6).normal(size=(3000, 3)), np.random.default_rng(7).normal(size=(3000, 4))
    kernel, room = Rbf(0.5), 1 << 30
    gram = Gram(kernel, x[:, :1], memory=room, progress=lambda *_: None)
    assert gram.features.shape[1] < 40
    whole = np.exp(-0.5 * (x[:, :1] - x[:, 0]) ** 2)
    assert_allclose(gram @ columns, whole @ columns, rtol=0, atol=1e-10)
    assert Gram(kernel, x, memory=room, progress=lambda *_: None).features is None
    assert Gram(kernel, x[:, :1], memory=1 << 16, progress=lambda *_: None).features is None  # No room for them


@pytest.mark.parametrize("shape", ["normal", "lognormal", "far"])
def test_few_points_represent_an_rbf_kernel_of_one_input(shape):
    """Up to 1e-12 of its diagonal, also for inputs far from all others; a thousand far inputs are too many."""
    rng = np.random.default_rng(1)
    x = {
        "normal": rng.normal(size=(900, 1)),
        "lognormal": rng.lognormal(size=(900, 1)),
        "far": np.append(rng.normal(size=899), 1e6)[:, None],
    }[shape]
    kernel = Rbf(1 / (2 * np.var(x[:899])))
    found = Nystroem.from_cholesky(kernel, spanning_points(kernel, x), ARRAY)(x)
    assert found.shape[1] <= 128
    assert_allclose(found @ found.T, kernel.gram(x, x), rtol=0, atol=1e-11)
    assert spanning_points(kernel, 1e3 * np.arange(1000.0)[:, None]) is None
    assert spanning_points(Polynomial(2, 1.0, 1.0), x) is None
