"""Joint normal distributions: kernel means by quadrature, the marginals, the dependence, and files of them."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import calcheck
from calcheck.distributions import CONVENTIONS, Gaussian, Independent, JointGaussian, Quantiles, Samples
from calcheck.distributions.continuous import StudentT
from calcheck.distributions.joint import NormalCopula, with_marginals
from calcheck.distributions.noise_clip_rounding import Observation, Observations, clip
from calcheck.distributions.recalibrated import Recalibrator, recalibrate
from calcheck.distributions.row_random import RowRandom
from calcheck.errors import DataError
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics.pit import Pit
from calcheck.metrics.scores import Nll
from calcheck.mmd.frechet import covariances_within_rows
from calcheck.predictions import InMemory, Predictions
from calcheck.statistics.multivariate import predicted_correlations

GAMMA = np.array([0.3, 0.8])
POINTS = np.array([[0.4, -1.0], [2.0, 0.5], [-3.0, 3.0]])
LOC = np.array([[0.0, 0.5], [1.0, -1.0]])
FACTOR = np.array([[[1.2, 0.0], [0.7, 0.5]], [[0.4, 0.0], [-1.1, 0.3]]])
JOINT = JointGaussian(LOC, FACTOR)


def joint(rng, n, t):
    """Return joint normal distributions with random Cholesky factors."""
    factor = np.tril(rng.normal(size=(n, t, t)), -1)
    factor[:, range(t), range(t)] = rng.uniform(0.3, 1.5, (n, t))
    return JointGaussian(rng.normal(size=(n, t)), factor)


def quadrature(values, loc, factor, nodes=80):
    """Return the mean of a function of normal vectors of two targets, by a product of Gauss-Hermite rules."""
    u, weight = np.polynomial.hermite_e.hermegauss(nodes)
    z = np.stack(np.meshgrid(u, u, indexing="ij"), axis=-1).reshape(-1, 2)
    return float(np.outer(weight, weight).ravel() @ values(loc + z @ factor.T)) / (2 * np.pi)


def rbf(y, point, gamma):
    return np.exp(-np.sum(gamma * (y - point) ** 2, axis=-1))


def test_kernel_means_and_norms_are_those_of_quadrature():
    found, norms = JOINT.kernel_mean(POINTS, GAMMA), JOINT.kernel_norm(GAMMA)
    for row, (loc, factor) in enumerate(zip(LOC, FACTOR, strict=True)):
        expected = [quadrature(lambda y, p=p: rbf(y, p, GAMMA), loc, factor) for p in POINTS]
        assert_allclose(found[row], expected, atol=1e-10)
        same = quadrature(lambda y: rbf(y, 0.0, GAMMA), 0.0, np.sqrt(2) * factor, 120)
        assert norms[row] == pytest.approx(same, abs=1e-10)


@pytest.mark.parametrize("t", [2, 3, 5])
def test_kernel_means_are_those_of_the_closed_form(t):
    """With inverses and determinants of whole matrices, det(I + 2 G S G)^-1/2 exp(-d' G (I + 2 G S G)^-1 G d)."""
    rng = np.random.default_rng(0)
    predictive, points, gamma = joint(rng, 4, t), rng.normal(size=(6, t)), rng.uniform(0.1, 2, t)
    root = np.diag(np.sqrt(gamma))
    for row in range(4):
        covariance = root @ predictive.cholesky[row] @ predictive.cholesky[row].T @ root
        matrix = np.eye(t) + 2 * covariance
        away = (points - predictive.loc[row]) @ root
        expected = np.exp(-np.sum(away @ np.linalg.inv(matrix) * away, axis=1)) / np.sqrt(np.linalg.det(matrix))
        assert_allclose(predictive.kernel_mean(points, gamma)[row], expected, rtol=1e-11)
        norm = np.linalg.det(np.eye(t) + 4 * covariance) ** -0.5
        assert predictive.kernel_norm(gamma)[row] == pytest.approx(norm, rel=1e-12)


def test_kernels_per_point_and_blocks_of_points_do_not_change_kernel_means(monkeypatch):
    gammas = np.array([GAMMA, 2 * GAMMA, GAMMA[::-1]])
    one_by_one = [JOINT.kernel_mean(POINTS[[place]], gamma)[:, 0] for place, gamma in enumerate(gammas)]
    assert_allclose(JOINT.kernel_mean(POINTS, gammas), np.transpose(one_by_one), rtol=1e-14)
    whole = JOINT.kernel_mean(POINTS, GAMMA)
    monkeypatch.setattr("calcheck.distributions.joint.BLOCK_VALUES", 1)  # distributions take no limits
    assert_array_equal(JOINT.kernel_mean(POINTS, GAMMA), whole)


@pytest.mark.parametrize("size", [1e-74, 1.0, 1e74])
def test_kernel_means_and_deviations_are_finite_at_any_scale(size):
    predictive = JointGaussian(LOC, size * FACTOR)
    assert_allclose(predictive.std(), size * JOINT.std(), rtol=1e-14)
    assert "correlation 0.814" in predictive.describe()[0]
    for values in (predictive.kernel_mean(POINTS, GAMMA), predictive.kernel_norm(GAMMA)):
        assert ((values >= 0) & (values <= 1)).all()
    if size < 1:
        assert_allclose(predictive.kernel_mean(POINTS, GAMMA), rbf(POINTS, LOC[:, None], GAMMA), rtol=1e-12)


def test_diagonal_covariances_are_independent_targets():
    rng = np.random.default_rng(0)
    loc, scale, y = rng.normal(size=(7, 3)), rng.uniform(0.5, 2, (7, 3)), rng.normal(size=(7, 3))
    whole = JointGaussian(loc, scale[:, :, None] * np.eye(3))
    apart = Independent(tuple(map(Gaussian, loc.T, scale.T)))
    gamma, keys = np.array([0.2, 1.0, 3.0]), np.arange(7, dtype=np.uint64)
    for name, arguments in {
        "mean": (), "std": (), "cdf": (y,), "cdf_left": (y,), "log_prob": (y,), "crps": (y,), "quantile": (0.3,),
        "joint_log_prob": (y,), "kernel_mean": (y, gamma), "kernel_norm": (gamma,),
        "support_interval": (0.1,), "median": (),
    }.items():  # fmt: skip
        assert_allclose(getattr(whole, name)(*arguments), getattr(apart, name)(*arguments), rtol=1e-12, atol=1e-14)
    assert_allclose(whole.sample(RowRandom(keys), 5), apart.sample(RowRandom(keys), 5), rtol=1e-12)
    for one, other in zip(covariances_within_rows(whole), covariances_within_rows(apart), strict=True):
        assert_allclose(one.T @ one, other.T @ other, rtol=1e-12)


def test_marginals_are_those_of_scipy():
    y = np.array([[0.3, -0.2], [1.4, 0.1]])
    std = np.sqrt(np.array([[1.2**2, 0.7**2 + 0.5**2], [0.4**2, 1.1**2 + 0.3**2]]))
    assert_allclose(JOINT.std(), std, rtol=1e-14)
    assert_allclose(JOINT.cdf(y), stats.norm(LOC, std).cdf(y), rtol=1e-13)


@pytest.mark.parametrize("t", [2, 3, 5])
def test_nll_is_the_density_of_scipy(t):
    rng = np.random.default_rng(1)
    predictive, y = joint(rng, 8, t), rng.normal(size=(8, t))
    apart = Independent(tuple(map(Gaussian, predictive.loc.T, predictive.std().T)))
    expected = [
        -stats.multivariate_normal(loc, factor @ factor.T).logpdf(each)
        for loc, factor, each in zip(predictive.loc, predictive.cholesky, y, strict=True)
    ]
    run = Run(replicates=0, resamples=0)
    (found,) = evaluate(InMemory(Predictions(y=y, predictive=predictive)), [Nll()], run=run).results
    assert found.value == pytest.approx(np.mean(expected), rel=1e-12)
    (found,) = evaluate(InMemory(Predictions(y=y, predictive=apart)), [Nll()], run=run).results
    assert found.value == pytest.approx(-stats.norm(predictive.loc, predictive.std()).logpdf(y).sum(axis=1).mean())


@pytest.mark.slow
def test_nll_of_models_that_state_independence_is_worse():
    """Right models of correlation 0.5 promise what they score; those that state independence score worse."""
    right, apart = forecasts(3, 0.5, 0.5), forecasts(3, 0.5, 0.0)
    run = Run(replicates=39, resamples=0)
    scores = [evaluate(InMemory(each), [Nll()], run=run).results[0] for each in (right, apart)]
    assert scores[0].verdict == "pass"
    assert scores[0].value < scores[1].value - 0.1  # -log(1 - 0.5^2) / 2 = 0.144 on average
    (skipped,) = calcheck.evaluate(InMemory(right), [Nll(discretise=True)]).skipped
    assert skipped.reason.startswith("masses of whole numbers are for one target, and there are 2")


def test_draws_have_the_means_and_covariances():
    """With 20,000 draws the standard error of each covariance is below 0.015."""
    for rng in (np.random.default_rng(0), RowRandom(np.arange(2, dtype=np.uint64))):
        drawn = JOINT.sample(rng, 20_000)
        assert drawn.shape == (2, 20_000, 2)
        for row in range(2):
            assert_allclose(drawn[row].mean(axis=0), LOC[row], atol=0.04)
            assert_allclose(np.cov(drawn[row].T), FACTOR[row] @ FACTOR[row].T, atol=0.06)


def test_covariances_within_rows_are_mean_covariances():
    mean, root = covariances_within_rows(JOINT)
    assert_array_equal(mean, LOC)
    assert_allclose(root.T @ root, np.mean([each @ each.T for each in FACTOR], axis=0), rtol=1e-13)


def test_rows_can_be_selected_joined_compared_and_hashed():
    order = np.array([1, 0])
    back = JOINT.take(order).take(slice(0, 1)).join([JOINT.take(slice(0, 1))])
    assert back.equals(JOINT.take(order)).all()
    assert not back.equals(JOINT).any()
    assert_array_equal(back.hashes(3), JOINT.hashes(3)[order])
    other = JointGaussian(LOC, FACTOR * np.array([[1, 1], [-1, 1]]))  # correlations of the other sign
    assert not other.equals(JOINT).any()
    assert (other.hashes(3) != JOINT.hashes(3)).all()
    assert JOINT.describe()[0] == "N(0, 1.2²); N(0.5, 0.86²); correlation 0.814"
    assert joint(np.random.default_rng(0), 1, 3).describe()[0].count("correlations from") == 1


def forecasts(seed, rho, stated, n=500):
    """Return joint normal forecasts of two targets that state a correlation; the errors have another."""
    rng = np.random.default_rng(seed)
    loc, std = rng.normal(size=(n, 2)), rng.uniform(0.5, 2, (n, 2))
    true, said = (std[:, :, None] * np.linalg.cholesky([[1, each], [each, 1]]) for each in (rho, stated))
    y = JointGaussian(loc, true).sample(rng, 1)[:, 0]
    return Predictions(y=y, predictive=JointGaussian(loc, said))


def p_value(seed, stated):
    rows = forecasts(seed, 0.5, stated)
    return evaluate(InMemory(rows), [Pit()], run=Run(replicates=39, resamples=0, seed=seed)).results[0].p_value


@pytest.mark.slow
def test_the_right_dependence_passes_and_independence_is_rejected():
    """Of twelve right models at most three (99.8 % of a binomial of 5 %) are rejected; all wrong ones are."""
    assert sum(p_value(seed, 0.5) <= 0.05 for seed in range(12)) <= 3
    assert all(p_value(seed, 0.0) <= 0.05 for seed in range(4))


# Files


def frame(rows):
    """Return a table with one column for each number."""
    factor = rows.predictive.cholesky
    columns = {"y1": rows.y[:, 0], "y2": rows.y[:, 1], "m1": rows.predictive.loc[:, 0], "m2": rows.predictive.loc[:, 1]}
    return pd.DataFrame(columns | {"l11": factor[:, 0, 0], "l21": factor[:, 1, 0], "l22": factor[:, 1, 1]})


CHOLESKY = {
    "target": "y1,y2",
    "dist": "joint-gaussian:cholesky",
    "param": ("loc=m1,m2", "cholesky=l11,l21,l22"),
}


def test_named_columns_are_read_and_written_and_read_back_without_options(tmp_path):
    rows = forecasts(0, 0.5, 0.5, 20)
    source = calcheck.read(frame(rows), **CHOLESKY)
    assert source.predictions().predictive.equals(rows.predictive).all()
    calcheck.write(source, str(tmp_path / "out.parquet"))
    back = calcheck.read(str(tmp_path / "out.parquet")).predictions()
    assert back.predictive.equals(rows.predictive).all()
    assert_array_equal(back.y, rows.y)
    calcheck.write(calcheck.read(frame(rows), **CHOLESKY), str(tmp_path / "out.feather"))
    assert calcheck.read(str(tmp_path / "out.feather")).predictions().predictive.equals(rows.predictive).all()


@pytest.mark.parametrize("whole", [True, False])
def test_covariances_are_read_from_lists_and_from_numbered_columns(whole, tmp_path):
    rows = forecasts(0, 0.5, 0.5, 20)
    covariance = rows.predictive.cholesky @ np.swapaxes(rows.predictive.cholesky, 1, 2)
    made = pd.DataFrame({"y": list(rows.y), "loc": list(rows.predictive.loc)})
    if whole:
        made["covariance_matrix"] = [[list(row) for row in each] for each in covariance]
    else:
        made[["cov_0", "cov_1", "cov_2"]] = covariance[:, [0, 1, 1], [0, 0, 1]]
    made.to_parquet(tmp_path / "covariances.parquet")
    found = calcheck.read(str(tmp_path / "covariances.parquet"), dist="joint-gaussian").predictions().predictive
    assert_allclose(found.cholesky, rows.predictive.cholesky, rtol=1e-12)


def test_lower_triangles_are_row_by_row():
    """The factor [[1, 0, 0], [2, 3, 0], [4, 5, 6]] as six numbers, as nine, and as its covariance."""
    factor = np.array([[1.0, 0, 0], [2, 3, 0], [4, 5, 6]])
    covariance = [[1.0, 2, 4], [2, 13, 23], [4, 23, 77]]
    loc = np.zeros((1, 3))
    for form in ([[1.0, 2, 3, 4, 5, 6]], factor.reshape(1, 9), factor[None]):
        assert_array_equal(CONVENTIONS["joint-gaussian:cholesky"](loc=loc, cholesky=form).cholesky[0], factor)
    for form in ([[1.0, 2, 13, 4, 23, 77]], np.reshape(covariance, (1, 9)), [covariance]):
        made = CONVENTIONS["joint-gaussian:covariance"](loc=loc, covariance=form)
        assert_allclose(made.cholesky[0], factor, atol=1e-12)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"covariance": [[1.0, 0.5, 1.0], [1.0, 2.0, 1.0]]}, "covariance must be positive definite, but 1 of 2 rows"),
        ({"covariance": [[1.0, 0.5, 0.4, 1.0]] * 2}, "covariance must be symmetric"),
        ({"covariance": [[1.0, np.nan, 1.0]] * 2}, "covariance must be finite"),
        ({"covariance": np.ones((2, 5))}, "covariance has 5 numbers per row, and loc has 2: covariance needs 3"),
        ({"cholesky": np.ones((2, 2))}, "cholesky has 2 numbers per row, and loc has 2: cholesky needs 3, the lower"),
        ({"cholesky": [[1.0, 0.5, 1.0], [1.0, 2.0, -1.0]]}, "cholesky must have a positive diagonal, but 1 of 2 rows"),
        ({"cholesky": [[1.0, 0.5, 0.5, 1.0]] * 2}, "cholesky must be lower triangular"),
        ({"cholesky": np.ones((2, 1)), "loc": np.zeros((2, 1))}, "at least 2 targets, got 1. For one target, pass"),
    ],
)
def test_impossible_parameters_are_refused(parameters, message):
    """Also by name, so that a covariance that is taken for a Cholesky factor is found."""
    form = "covariance" if "covariance" in parameters else "cholesky"
    arrays = {"loc": np.zeros((2, 2))} | {name: np.asarray(values) for name, values in parameters.items()}
    with pytest.raises(DataError, match=message.replace("(", r"\(")):
        CONVENTIONS[f"joint-gaussian:{form}"](**arrays)


def test_shapes_of_arrays_are_checked():
    for loc, factor in ((np.zeros(2), FACTOR), (LOC, FACTOR[:1]), (LOC, FACTOR[:, :1])):
        with pytest.raises(DataError, match="shape"):
            JointGaussian(loc, factor)


MAP = Recalibrator(np.array([0, 0.1, 0.5, 0.9, 1]), np.array([0, 0.2, 0.45, 0.8, 1]))
UNIT = np.tile([[1, 0], [0.6, 0.8]], (3, 1, 1))
NORMALS = Gaussian(np.array([0.0, 1, -2]), np.array([1.0, 0.5, 2]))
MAPPED = recalibrate(NORMALS, MAP)


@pytest.mark.parametrize(
    "margin",
    [
        NORMALS,
        StudentT(NORMALS.loc, NORMALS.scale, np.array([3.0, 4, 5])),
        MAPPED,
        clip(NORMALS, *np.array([[-1] * 3, [1] * 3])),
    ],
)
def test_values_at_normal_scores_are_the_quantiles_at_their_levels(margin):
    z = np.array([-9.0, -2, 0, 0.3, 4])
    expected = np.stack([margin.quantile(float(level)) for level in stats.norm.cdf(z)], axis=1)
    assert_allclose(margin.at_scores(np.tile(z, (3, 1))), expected, rtol=1e-9, atol=1e-12)


def test_the_likelihood_of_corrected_margins_is_that_of_the_normal_copula():
    """By scipy: the density of the scores, divided by those of each of them, times those of the targets."""
    both = with_marginals(JointGaussian(np.zeros((3, 2)), UNIT), [MAPPED, NORMALS])
    y = np.array([[0.3, 1.2], [25.0, 0.1], [-30, 3]])  # the second at 48 standard deviations
    found = both.joint_log_prob(y)
    below, above = MAPPED.cdf(y[:, 0]), MAPPED.above(y[:, 0])
    score = np.where(below < above, stats.norm.ppf(below), -stats.norm.ppf(np.maximum(above, 1e-300)))
    scores = np.stack([score, (y[:, 1] - NORMALS.loc) / NORMALS.scale], axis=1)
    copula = stats.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]]).logpdf(scores) - stats.norm.logpdf(scores).sum(1)
    expected = copula + MAPPED.log_prob(y[:, 0]) + NORMALS.log_prob(y[:, 1])
    assert_allclose(found[[0, 2]], expected[[0, 2]], rtol=1e-9)
    assert np.isfinite(found).all()
    same = NormalCopula((NORMALS, NORMALS), UNIT)
    normal = JointGaussian(np.tile(NORMALS.loc[:, None], 2), UNIT * NORMALS.scale[:, None, None])
    near = normal.loc + normal.std() * np.array([[0.3, -1], [12, -20], [5, 5]])
    assert_allclose(same.joint_log_prob(near), normal.joint_log_prob(near), rtol=1e-9)


def test_probabilities_above_are_accurate_in_the_tail_of_a_corrected_distribution():
    """Beyond the last knot, 1 - R(F) = slope (1 - F); the slope is 0.2 / 0.1."""
    y = NORMALS.loc + 12 * NORMALS.scale
    assert_allclose(MAPPED.above(y), 2 * stats.norm.sf(12), rtol=1e-12)
    inner = NORMALS.loc + NORMALS.scale
    assert_allclose(MAPPED.above(inner), 1 - MAPPED.cdf(inner), rtol=1e-12)


def test_correlations_of_clipped_targets_are_those_of_simulated_scores():
    """Means are 0, stds 1, and targets end at 0.2: scores are those of ranks, those above the limit tied."""
    rng, n = np.random.default_rng(0), 4_000
    zero, root, high = np.zeros((n, 2)), np.tile([[1, 0], [0.6, 0.8]], (n, 1, 1)), np.full(n, 0.2)
    part = Observation(high=high)
    clipped = Observations((part, part)).distributions(JointGaussian(zero, root))
    rows = Predictions(y=np.minimum(JointGaussian(zero, root).sample(rng, 1)[:, 0], 0.2), predictive=clipped)
    y = np.minimum(rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 400_000), 0.2)
    z = stats.norm.ppf((stats.rankdata(y, axis=0) - 0.5) / len(y))
    expected = np.mean(z[:, 0] * z[:, 1]) / np.mean(z[:, 0] ** 2)
    assert_allclose(predicted_correlations(rows), expected, atol=0.005)
    assert abs(expected - 0.6) > 0.04


def test_corrected_draws_keep_their_ranks():
    rng = np.random.default_rng(0)
    joint = Samples(rng.normal(size=(3, 9, 2)))
    margin = at_levels(np.arange(1, 10) / 10)
    found = with_marginals(joint, [margin, joint.of_target(1)])
    assert_array_equal(np.argsort(found.draws, axis=1), np.argsort(joint.draws, axis=1))
    assert_array_equal(np.sort(found.draws[:, :, 0], axis=1), margin.values)
    assert_array_equal(found.draws[:, :, 1], joint.draws[:, :, 1])


def at_levels(levels):
    return Quantiles(levels, np.stack([NORMALS.quantile(float(level)) for level in levels], axis=1))


def test_what_a_normal_copula_has_no_formula_for_is_refused():
    clipped = NormalCopula((clip(NORMALS, np.full(3, -1.0), np.ones(3)), NORMALS), UNIT)
    with pytest.raises(DataError, match=r"kernel mean .* gaussian, clipped, gaussian has no formula: pass --only"):
        clipped.kernel_mean(POINTS, GAMMA)
    with pytest.raises(DataError, match=r"the likelihood of correlated targets .* has no formula: pass --only"):
        clipped.joint_log_prob(np.zeros((3, 2)))
    noisy = Observations((Observation(noise=np.ones(3)), Observation(noise=np.ones(3))))
    with pytest.raises(DataError, match="correlated targets with noise have a formula for normal distributions only"):
        noisy.distributions(NormalCopula((MAPPED, NORMALS), UNIT))
    with pytest.raises(DataError, match="margins that are quantiles have no joint distribution"):
        NormalCopula((at_levels(np.array([0.1, 0.5, 0.9])), NORMALS), UNIT).sample(np.random.default_rng(0), 2)
