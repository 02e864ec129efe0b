"""The papers' discrepancies as functions: their formulas, in numpy and torch, with gradients."""

import tracemalloc

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.autograd import gradcheck

from calcheck.discrepancies import ammd, ammd_terms, cmmd, fid, jmmd, mcmd, standardized
from calcheck.errors import DataError, OptionError
from calcheck.mmd import quadratic_forms as pairs
from calcheck.mmd.frechet import Moments, frechet
from tests.helpers import naive

ESTIMATORS = ["unbiased", "v", "paper"]
OF_ROWS = {
    "ammd": lambda _, y, draws: ammd(y, draws, gamma_y=0.7),
    "ammd, v": lambda _, y, draws: ammd(y, draws, gamma_y=0.7, statistic="v"),
    "ammd, v, constant": lambda _, y, draws: ammd(y, draws, gamma_y=0.7, statistic="v", constant=True),
    "ammd, paper": lambda _, y, draws: ammd(y, draws, gamma_y=0.7, statistic="paper"),
    "jmmd": lambda x, y, draws: jmmd(x, y, draws, gamma_x=0.3, gamma_y=0.7),
    "jmmd, v": lambda x, y, draws: jmmd(x, y, draws, gamma_x=0.3, gamma_y=0.7, statistic="v"),
    "jmmd, paper": lambda x, y, draws: jmmd(x, y, draws, gamma_x=0.3, gamma_y=0.7, statistic="paper"),
    "cmmd": lambda x, y, draws: cmmd(x, y, draws, gamma_x=0.3, gamma_y=0.7, lambda_=0.05),
    "fid": fid,
}


def case(n=6, d=2, t=1, r=1, size=3, seed=0):
    """Return inputs (n, d), targets (n, r, t) and draws (n, l, t) that depend on them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    signal = x.sum(axis=1)[:, None, None]
    return x, signal + rng.normal(size=(n, r, t)), 0.5 * signal + 1.3 * rng.normal(size=(n, size, t))


def k(gamma, u, v):
    return np.exp(-gamma * np.sum((np.asarray(u) - np.asarray(v)) ** 2))


def naive_ammd_terms(y, draws, gamma, *, diagonal, constant):
    """By row and pair, with or without the pairs of a point with itself."""
    found = []
    for own, drawn in zip(y, draws, strict=True):
        r, size = len(own), len(drawn)
        term = sum(-2 / (r * size) * k(gamma, u, v) for u in own for v in drawn)
        for points in (drawn, own) if constant else (drawn,):
            count = len(points)
            values = [k(gamma, points[a], points[b]) for a in range(count) for b in range(count) if diagonal or a != b]
            term += sum(values) / len(values)
        found.append(term)
    return np.array(found)


def naive_jmmd(x, y, draws, gamma_x, gamma_y, statistic):
    """All pairs of weighted points: targets weigh 1 / r, draws -1 / l."""
    n, r, size = len(y), y.shape[1], draws.shape[1]
    data = [(i, u, 1 / r) for i in range(n) for u in y[i]]
    model = [(i, v, -1 / size) for i in range(n) for v in draws[i]]

    def value(one, other):
        return k(gamma_x, x[one[0]], x[other[0]]) * k(gamma_y, one[1], other[1])

    if statistic == "paper":
        m = len(model)
        cross = sum(value(one, other) for one in data for other in model)
        own = sum(value(model[a], model[b]) for a in range(m) for b in range(m) if a != b)
        return -2 / (n**2 * r * size) * cross + own / (m * (m - 1))
    total = sum(
        one[2] * other[2] * value(one, other)
        for one in data + model
        for other in data + model
        if statistic == "v" or one[0] != other[0]
    )
    return total / (n**2 if statistic == "v" else n * (n - 1))


def naive_cmmd(x, y, draws, gamma_x, gamma_y, ridge):
    """The paper's three traces, with explicit inverses, over repeated inputs.

    Points of one input share its coefficients evenly: that is the ridge regression of their mean.
    """
    n, r, size = len(y), y.shape[1], draws.shape[1]
    gram = naive.input_kernel("rbf", gamma_x)(x, x)
    inverse = np.linalg.inv(gram + n * ridge * np.eye(n))
    share = {"y": np.repeat(np.eye(n), r, axis=1) / r, "draws": np.repeat(np.eye(n), size, axis=1) / size}
    points = {"y": y.reshape(n * r, -1), "draws": draws.reshape(n * size, -1)}
    target = naive.target_kernel(gamma_y)

    def trace(a, b):
        return np.trace(gram @ inverse @ share[a] @ target(points[a], points[b]) @ share[b].T @ inverse)

    return trace("y", "y") - 2 * trace("y", "draws") + trace("draws", "draws")


def naive_fid(x, y, draws):
    """By covariances, which must be regular, and a matrix square root."""
    from scipy.linalg import sqrtm

    def moments(points):
        n, size = points.shape[:2]
        joint = np.concatenate([np.repeat(x, size, axis=0), points.reshape(n * size, -1)], axis=1)
        return joint.mean(axis=0), np.cov(joint.T, bias=True) * n / (n - 1)

    (mean, cov), (other_mean, other) = moments(y), moments(draws)
    return np.sum((mean - other_mean) ** 2) + np.trace(cov + other - 2 * np.real(sqrtm(cov @ other)))


@pytest.mark.parametrize("t", [1, 3])
@pytest.mark.parametrize("r", [1, 3])
@pytest.mark.parametrize("size", [2, 5])
@pytest.mark.parametrize("d", [1, 8])
def test_values_agree_with_naive_formulas(d, size, r, t):
    x, y, draws = case(n=7, d=d, t=t, r=r, size=size)
    gammas = {"gamma_x": 0.2, "gamma_y": 0.6}
    for statistic in ESTIMATORS:
        for constant in (False, True) if r > 1 or statistic == "v" else (False,):
            terms = ammd_terms(y, draws, gamma_y=0.6, statistic=statistic, constant=constant)
            expected = naive_ammd_terms(y, draws, 0.6, diagonal=statistic == "v", constant=constant)
            assert_allclose(terms, expected, rtol=1e-12, atol=1e-13)
            assert_allclose(ammd(y, draws, gamma_y=0.6, statistic=statistic, constant=constant), expected.mean())
        expected = naive_jmmd(x, y, draws, 0.2, 0.6, statistic)
        assert_allclose(jmmd(x, y, draws, statistic=statistic, **gammas), expected, rtol=1e-11, atol=1e-13)
    assert_allclose(cmmd(x, y, draws, lambda_=0.03, **gammas), naive_cmmd(x, y, draws, 0.2, 0.6, 0.03), rtol=1e-11)
    if d == 1:  # with d = 8 and 7 rows covariances are singular
        assert_allclose(fid(x, y, draws), naive_fid(x, y, draws), rtol=1e-10)


def test_ammd_of_two_rows_by_hand():
    """gamma_y = log 2 makes k(u, v) = 2^-(u - v)^2. Draws (0, 1) and (1, 3), targets 0 and 1.

    Row 1: cross (1 + 1/2) / 2, draws 1/2: -2 * 3/4 + 1/2 = -1. Row 2: cross (1 + 1/16) / 2, draws 1/16: -17/16 + 1/16.
    With the diagonal the draws' means are (1 + 1/2) / 2 and (1 + 1/16) / 2: -3/2 + 3/4 and -17/16 + 17/32.
    """
    y, draws = np.array([0.0, 1.0]), np.array([[0.0, 1.0], [1.0, 3.0]])
    assert_allclose(ammd_terms(y, draws, gamma_y=np.log(2)), [-1, -1], rtol=1e-14)
    v = ammd_terms(y, draws, gamma_y=np.log(2), statistic="v")
    assert_allclose(v, [-3 / 4, -17 / 32], rtol=1e-14)
    with_constant = ammd(y, draws, gamma_y=np.log(2), statistic="v", constant=True)
    assert_allclose(with_constant, 1 - (3 / 4 + 17 / 32) / 2, rtol=1e-14)


def test_the_constant_by_hand():
    """Targets (0, 1) of one input: mean over the pair of different ones 1/2; draws (0, 0): cross 3/4, their pair 1."""
    y, draws = np.array([[[0.0], [1.0]]]), np.zeros((1, 2))
    assert_allclose(ammd(y, draws, gamma_y=np.log(2)), -1.5 + 1, rtol=1e-14)
    assert_allclose(ammd(y, draws, gamma_y=np.log(2), constant=True), -1.5 + 1 + 0.5, rtol=1e-14)


def test_jmmd_of_two_rows_by_hand():
    """k_X(0, 1) = k_Y(0, 1) = 1/2. Inputs 0, 1; targets 0, 0; draws 0, 1 (one each): delta_1 = 0.

    |delta_2|^2 = 1 - 2/2 + 1 = 1: V is 1 / 4. Unbiased: 2 * (1/2) delta_1 . delta_2 / 2 = 0. As printed: cross is K_11
    k(0, 0) + K_12 k(0, 1) + K_21 k(0, 0) + K_22 k(0, 1) = 1 + 1/4 + 1/2 + 1/2, times -2/4; draws 2 K_12 k(0, 1) / 2.
    """
    x, y, draws = np.array([[0.0], [1.0]]), np.zeros(2), np.array([[0.0], [1.0]])
    gammas = {"gamma_x": np.log(2), "gamma_y": np.log(2)}
    assert_allclose(jmmd(x, y, draws, statistic="v", **gammas), 1 / 4, rtol=1e-14)
    assert_allclose(jmmd(x, y, draws, **gammas), 0, atol=1e-16)
    assert_allclose(jmmd(x, y, draws, statistic="paper", **gammas), -9 / 8 + 1 / 4, rtol=1e-14)


def test_cmmd_and_mcmd_by_hand():
    """|delta|^2 = 2 (1 - 1/2) = 1. One row, lambda = 1/3: B = delta / (1 + 1/3), and CMMD^2 = 9/16.

    Two inputs far apart, lambda = 1/2: K = I and n lambda = 1, so B = delta / 2 in both rows, 1/4 each.
    """
    x, y, draws = np.zeros((1, 1)), np.zeros(1), np.ones((1, 1))
    assert_allclose(cmmd(x, y, draws, gamma_y=np.log(2), lambda_=1 / 3), 9 / 16, rtol=1e-14)
    found = mcmd(x, y, x, draws, x, gamma_x=1.0, gamma_y=np.log(2), lambda_=1 / 3)
    assert_allclose(found, [3 / 4], rtol=1e-14)
    x, y, draws = np.array([[0.0], [99.0]]), np.zeros(2), np.ones((2, 1))
    assert_allclose(cmmd(x, y, draws, gamma_y=np.log(2), lambda_=0.5), 1 / 2, rtol=1e-14)
    found = mcmd(x, y, x, draws, x[:1], gamma_x=1.0, gamma_y=np.log(2), lambda_=0.5)
    assert_allclose(found, [1 / 2], rtol=1e-14)


def test_fid_by_hand():
    """Means (1, 0) and (1, 3). (x, y) lie on y = x - 1 with var x = 2; draws on y = 3 + 2 (x - 1): both singular.

    C = 2 (1, 1)(1, 1)^T and C' = 2 (1, 2)(1, 2)^T: the nuclear norm is 2 |(1, 1) . (1, 2)| = 6, traces 4 and 10.
    """
    x, y, draws = np.array([[0.0], [2.0]]), np.array([-1.0, 1.0]), np.array([[1.0], [5.0]])
    assert_allclose(fid(x, y, draws), 9 + 4 + 10 - 2 * 6, rtol=1e-14)
    assert_allclose(fid(x, y, y[:, None]), 0, atol=1e-14)
    one, other = Moments(np.zeros(2), np.diag([3.0, 0.0])), Moments(np.ones(2), np.diag([0.0, 4.0]))
    assert_allclose(frechet(one, other), 2 + 9 + 16, rtol=1e-14)  # orthogonal ranges


def test_fid_weights_inputs_equally():
    """Each draw written twice, or every row's pair of draws as two rows of halved weight, is the same distribution."""
    x, y, draws = case(size=2)
    assert_allclose(fid(x, y, np.repeat(draws, 2, axis=1)), fid(x, y, draws), rtol=1e-12)
    assert_allclose(fid(x, np.repeat(y, 3, axis=1), draws), fid(x, y, draws), rtol=1e-12)


@pytest.mark.parametrize("t", [1, 2])
def test_mcmd_agrees_with_explicit_inverses(t):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 2)), rng.normal(size=(20, t))
    other_x, other_y, at = rng.normal(size=(33, 2)), 1 + rng.normal(size=(33, t)), rng.normal(size=(5, 2))
    k_x, k_y = naive.input_kernel("rbf", 0.4), naive.target_kernel(0.8)
    a, b = naive.weights(k_x, x, at, 0.02), naive.weights(k_x, other_x, at, 0.02)
    expected = (
        naive.form(a, k_y(y, y), a) - 2 * naive.form(a, k_y(y, other_y), b) + naive.form(b, k_y(other_y, other_y), b)
    )
    options = {"gamma_x": 0.4, "gamma_y": 0.8, "lambda_": 0.02}
    assert_allclose(mcmd(x, y, other_x, other_y, at, squared=True, **options), expected, rtol=1e-11)
    assert_allclose(mcmd(x, y, other_x, other_y, at, **options), np.sqrt(expected), rtol=1e-11)
    assert_allclose(mcmd(x, y, x, y, at, **options), 0, atol=1e-7)


def test_a_single_column_may_be_one_dimensional():
    x, y, draws = case(d=1)
    for name, function in OF_ROWS.items():
        expected = function(x, y, draws)
        for inputs, targets, drawn in ((x[:, 0], y[:, 0, 0], draws[:, :, 0]), (x, y[:, 0], draws)):
            assert_allclose(function(inputs, targets, drawn), expected, rtol=1e-14, err_msg=name)
    at = x[:2]
    expected = mcmd(x, y[:, 0], x, draws[:, 0], at, gamma_x=1.0, gamma_y=1.0)
    flat = mcmd(x[:, 0], y[:, 0, 0], x[:, 0], draws[:, 0, 0], at[:, 0], gamma_x=1.0, gamma_y=1.0)
    assert_allclose(flat, expected, rtol=1e-14)


@pytest.mark.parametrize("name", OF_ROWS)
@pytest.mark.parametrize(("t", "r"), [(1, 1), (2, 3)])
def test_torch_and_numpy_agree(name, t, r):
    arrays = case(n=9, t=t, r=r)
    found = OF_ROWS[name](*(torch.tensor(each) for each in arrays))
    assert isinstance(found, torch.Tensor)
    assert_allclose(found.item(), OF_ROWS[name](*arrays), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", OF_ROWS)
@pytest.mark.parametrize(("d", "t", "r"), [(1, 1, 1), (6, 2, 2)])
@pytest.mark.filterwarnings("error")
def test_gradients_of_inputs_targets_and_draws_are_correct(name, d, t, r):
    n = 5 if name != "fid" else 12  # enough for covariances of full rank
    tensors = [torch.tensor(each, requires_grad=True) for each in case(n=n, d=d, t=t, r=r, size=2)]
    assert gradcheck(OF_ROWS[name], tensors)
    only_draws = [each.detach() for each in tensors[:2]]
    assert gradcheck(lambda draws: OF_ROWS[name](*only_draws, draws), tensors[2:])


@pytest.mark.parametrize("squared", [False, True])
def test_gradients_of_mcmd_are_correct(squared):
    rng = np.random.default_rng(0)
    shapes = [(6, 1), (6,), (5, 1), (5,), (3, 1)]
    tensors = [torch.tensor(rng.normal(size=shape), requires_grad=True) for shape in shapes]
    assert gradcheck(lambda *each: mcmd(*each, gamma_x=0.5, gamma_y=0.5, squared=squared), tensors)


def test_gradients_of_ammd_terms_with_the_constant_are_correct():
    y, draws = (torch.tensor(each, requires_grad=True) for each in case(r=2)[1:])
    assert gradcheck(lambda *each: ammd_terms(*each, constant=True), [y, draws])


def test_squared_mcmd_has_a_finite_gradient_at_0():
    x = torch.linspace(0, 1, 4, dtype=torch.float64)
    y = torch.sin(x).requires_grad_()
    mcmd(x, y.detach(), x, y, x, gamma_x=1.0, gamma_y=1.0, squared=True).sum().backward()
    assert_allclose(y.grad.numpy(), 0, atol=1e-12)


@pytest.fixture
def one_thread():
    """Use one thread of torch: several are slow on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_gradient_descent_moves_draws_to_the_distribution_of_targets():
    """Adam on free draws: training on ammd, jmmd or cmmd reduces all four discrepancies."""
    x, y, _ = case(n=30, d=1)
    start = np.random.default_rng(1).normal(3, 0.1, (30, 5))
    for train in ("ammd", "jmmd", "cmmd"):
        draws = torch.tensor(start, requires_grad=True)
        optimizer = torch.optim.Adam([draws], lr=0.2)
        for _ in range(30):
            optimizer.zero_grad()
            OF_ROWS[train](torch.tensor(x), torch.tensor(y), draws).backward()
            optimizer.step()
        for judge in ("ammd", "jmmd", "cmmd", "fid"):
            assert OF_ROWS[judge](x, y, draws.detach().numpy()) < OF_ROWS[judge](x, y, start), (train, judge)


@pytest.mark.parametrize("block", [1, 50, 1 << 20])
@pytest.mark.parametrize("name", OF_ROWS)
def test_values_do_not_depend_on_the_block_size(monkeypatch, name, block):
    arrays = case(n=11, t=2, r=2)
    expected = OF_ROWS[name](*arrays)
    monkeypatch.setattr(pairs, "BLOCK_PAIRS", block)  # functions for training take arrays, and no limits
    assert_allclose(OF_ROWS[name](*arrays), expected, rtol=1e-12)


def test_memory_of_ammd_and_jmmd_is_bounded_by_blocks():
    rng = np.random.default_rng(0)
    y, draws, x = rng.normal(size=200_000), rng.normal(size=(200_000, 2)), rng.normal(size=(1500, 3))
    for function, arrays in ((ammd, (y, draws)), (jmmd, (x, y[:1500], draws[:1500]))):
        function(*(each[:2] for each in arrays))
        tracemalloc.start()
        function(*arrays)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20e6  # pairs take 3,000^2 * 8 bytes = 72 MB


@pytest.mark.parametrize("seed", range(5))
def test_discrepancies_satisfy_known_inequalities(seed):
    """Mean CCE^2 <= max k_X CMMD^2, for k_X(x, x) = 1, and JMMD^2_V <= mean k_X * mean |delta_i|^2 (k_X >= 0)."""
    x, y, draws = case(n=60, d=2, t=2, size=4, seed=seed)
    gammas = {"gamma_x": 0.5, "gamma_y": 0.5}
    model = np.repeat(x, 4, axis=0), draws.reshape(240, 2)
    squares = mcmd(x, y[:, 0], *model, x, squared=True, **gammas)
    assert 0 < squares.mean() <= cmmd(x, y, draws, **gammas)
    sizes = ammd(y, draws, statistic="v", constant=True)
    assert 0 < jmmd(x, y, draws, statistic="v") <= naive.input_kernel("rbf", 0.5)(x, x).mean() * sizes


def test_unbiased_estimates_average_to_0_for_equal_distributions():
    """2,000 data sets, within 4 standard errors; the V-statistic is far from 0."""
    rng = np.random.default_rng(0)
    found = {"jmmd": [], "jmmd, v": [], "ammd": []}
    for _ in range(2000):
        x = rng.normal(size=(10, 1))
        y, draws = x[:, :, None] + rng.normal(size=(10, 2, 1)), x + rng.normal(size=(10, 3))
        found["jmmd"].append(jmmd(x, y, draws))
        found["jmmd, v"].append(jmmd(x, y, draws, statistic="v"))
        found["ammd"].append(ammd(y, draws, constant=True))
    t = {name: np.mean(each) / (np.std(each) / 2000**0.5) for name, each in found.items()}
    assert abs(t["jmmd"]) < 4
    assert abs(t["ammd"]) < 4
    assert t["jmmd, v"] > 50


def test_standardized_columns_have_mean_0_and_deviation_1():
    rng = np.random.default_rng(0)
    y = rng.normal(5, [3, 1e-3, 0], size=(40, 3))
    for by in (y, torch.tensor(y)):
        found = np.asarray(standardized(by, by))
        assert_allclose(found.mean(axis=0), 0, atol=1e-12)
        assert_allclose(found.std(axis=0, ddof=1), [1, 1, 0], atol=1e-12)
    draws = rng.normal(size=(40, 6, 3))
    expected = (draws - y.mean(axis=0)) / np.where([1, 1, 0], y.std(axis=0, ddof=1), 1)
    assert_allclose(standardized(draws, y), expected)
    assert_allclose(standardized(draws, y[:, None]), expected)
    assert_allclose(standardized(draws[..., 0], y[:, 0]), expected[..., 0])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda _, y, draws: ammd(y[:-1], draws), DataError, r"\(5, 1, 1\) and draws have shape \(6, 3, 1\)"),
        (lambda _, __, draws: ammd(np.zeros((6, 2)), draws), DataError, r"\(6, 2\).*targets.*\(n, r, t\)"),
        (lambda _, y, draws: ammd(y, draws[:, 0, 0]), DataError, r"draws have shape \(6,\)"),
        (lambda _, y, draws: ammd(y[None], draws), DataError, r"\(1, 6, 1, 1\)"),
        (lambda _, y, draws: ammd(y, draws.astype(int)), DataError, "draws has dtype int64.*floating"),
        (lambda _, y, draws: ammd(y, draws[:, :1]), DataError, "'unbiased' needs at least 2 draws per row, got 1.*'v'"),
        (lambda _, y, draws: ammd(y, draws, constant=True), DataError, "at least 2 targets per row, got 1"),
        (lambda _, y, draws: ammd(y, draws, statistic="u"), OptionError, "unknown statistic 'u'.*unbiased, v, paper"),
        (lambda x, y, draws: jmmd(x, y, draws, statistic="V"), OptionError, "unknown statistic 'V'"),
        (lambda x, y, draws: jmmd(x[:4], y, draws), DataError, "x has 4 rows and y has 6"),
        (lambda x, y, draws: jmmd(x[:1], y[:1], draws[:1]), DataError, "'unbiased' needs at least 2 rows"),
        (lambda x, y, draws: jmmd(x[:1], y[:1], draws[:1, :1], statistic="paper"), DataError, "at least 2 draws, got"),
        (lambda x, y, draws: fid(x[:1], y[:1], draws[:1]), DataError, "cannot compute a covariance from 1 row"),
        (lambda x, y, draws: cmmd(x[None], y, draws), DataError, r"x has shape \(1, 6, 2\)"),
        (
            lambda x, y, _: mcmd(x, y[:, 0], x, y[:, 0], x[:, :1], gamma_x=1, gamma_y=1),
            DataError,
            "at has 1 columns, x has 2",
        ),
        (
            lambda x, y, draws: mcmd(x, y[:, 0], x, draws[:, :2, 0], x, gamma_x=1, gamma_y=1),
            DataError,
            "y_model has 2 columns, y has 1",
        ),
    ],
)
def test_arrays_and_options_that_do_not_fit_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call(*case())
