"""Quadratic forms in Gram matrices, exact and by low-rank features."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.execution.run import Run
from calcheck.kernels.kernel_functions import KERNELS
from calcheck.linalg.gram import Nystroem
from calcheck.mmd.quadratic_forms import ExactGram, LowRankGram, QuadraticForm

N = 60
KERNEL = KERNELS["rbf"](gamma=0.4)
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 3))
K = KERNEL.gram(X, X)
FORMS = [
    QuadraticForm(rng.normal(size=(N, 4)), rng.normal(size=N), 0.3),
    QuadraticForm(rng.normal(size=(N, 2)), rng.normal(size=N), 0.2, rng.normal(size=(N, 2))),
    QuadraticForm(rng.normal(size=(N, 1)), np.zeros(N)),
]


def dense(form, k):
    """Sum_ij K_ij w_i . u_j - sum_i c_i K_ii, with all of K."""
    left = form.scale * form.u if form.w is None else form.w
    return np.sum(k * (left @ form.u.T)) - form.c @ k.diagonal()


def every_pair(run=Run()):  # noqa: B008 - frozen
    return ExactGram(KERNEL, X, run)


def features():
    array = Run().backend()
    return Nystroem.from_cholesky(KERNEL, array.asarray(X[:20]), array)


def low_rank_gram():
    """Nystroem's K, by its formula, with the diagonal of K."""
    values = K[:, :20]
    found = values @ np.linalg.solve(K[:20, :20], values.T)
    np.fill_diagonal(found, K.diagonal())
    return found


@pytest.mark.parametrize("forms", [FORMS, FORMS[:1], FORMS[1:2], FORMS[::2]])
@pytest.mark.parametrize(
    ("pairs", "gram"), [(every_pair, lambda: K), (lambda: LowRankGram(features(), X, Run()), low_rank_gram)]
)
def test_totals_are_sums_over_the_whole_gram_matrix(pairs, gram, forms):
    pairs, gram = pairs(), gram()
    assert_allclose(pairs.totals(forms), [dense(form, gram) for form in forms], rtol=1e-8, atol=1e-10)
    by_row = [form.terms(pairs.products(form.u), pairs.diagonal).sum() for form in forms]
    assert_allclose(by_row, pairs.totals(forms), rtol=1e-8, atol=1e-10)


def test_only_inaccurate_sums_are_warned_of():
    pairs = LowRankGram(features(), X, Run())
    assert pairs.warnings == []
    for accurate in (True, False):
        pairs.details = {"method": "low rank", "rank": 20, "error": 0.25, "accurate": accurate}
        assert [each.code for each in pairs.warnings] == [] if accurate else ["low-rank-error"]
    assert "(20 features of inputs) causes an error of about 2.5e-01" in pairs.warnings[0].text


def test_diagonal_terms_agree_with_the_diagonal_of_the_gram_matrix():
    for form in FORMS:
        assert_allclose(form.diagonal_total(K.diagonal()), dense(form, np.diag(K.diagonal())), rtol=1e-12)


def test_forms_of_a_subset_of_rows_are_rescaled():
    """With equal values a subset gives the total of all rows: 1 over all pairs, and up to 1/m over different ones."""
    ones, some = np.ones((N, 1)), np.arange(0, N, 3)
    every = QuadraticForm(ones, np.zeros(N), 1 / N**2)
    different = QuadraticForm(ones, np.full(N, 1 / (N * (N - 1))), 1 / (N * (N - 1)))
    printed = QuadraticForm(ones, np.zeros(N), w=ones / N**2)
    k = np.ones((len(some), len(some)))
    assert_allclose([dense(form.from_rows(some), k) for form in (every, printed)], 1, rtol=1e-12)
    assert_allclose(dense(different.from_rows(some), k), (1 - 1 / 20) / (1 - 1 / 60), rtol=1e-12)


def test_signs_do_not_change_diagonal_terms():
    signs = rng.choice([-1.0, 1.0], N)
    for form in FORMS:
        assert_allclose(
            form.with_signs(signs).diagonal_total(K.diagonal()), form.diagonal_total(K.diagonal()), rtol=1e-12
        )
        turned = signs[:, None] * K * signs
        assert_allclose(dense(form.with_signs(signs), K), dense(form, turned), rtol=1e-10)
