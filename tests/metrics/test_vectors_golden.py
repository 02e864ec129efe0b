"""Several targets: scores by scoringrules, pre-ranks by hand, and the dependence that they show."""

import numpy as np
import pytest
import scoringrules
from numpy.testing import assert_allclose

from calcheck.distributions import Gaussian, Samples
from calcheck.distributions.joint import Independent
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics.pit import Pit
from calcheck.metrics.scores import Crps
from calcheck.predictions import InMemory, Predictions
from calcheck.statistics.multivariate import average_rank, band_depth, multivariate_rank, rank_pit, variogram
from tests.helpers.simulations import sets

EXAMPLE = Predictions(
    y=np.array([[0.1, 0.5, -0.2]]),
    predictive=Samples(np.array([[[0, 0.2, -0.1], [0.5, 1, 0], [-0.3, 0.1, -0.6], [0.2, 0.4, 0.3]]])),
)
PRE_RANKS = ("variogram", "band-depth", "average", "multivariate")


def ensemble(n=40, m=9, t=4, seed=1):
    rng = np.random.default_rng(seed)
    return Predictions(y=rng.normal(size=(n, t)), predictive=Samples(rng.normal(size=(n, m, t))))


def score(rows, **options):
    """Return the score of each row."""
    return Crps(**options).compute(rows).columns["crps"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"vector_score": "energy", "ensemble": "biased"}, 0.229805917),
        ({"vector_score": "energy"}, 0.121831353),
        ({"vector_score": "variogram", "ensemble": "biased"}, 0.074630950),
        ({"vector_score": "variogram"}, 0.001541348),
    ],
)
def test_scores_have_the_values_of_scoringrules_0_10(options, expected):
    assert_allclose(score(EXAMPLE, **options), expected, atol=5e-10)


@pytest.mark.parametrize(("ensemble_option", "estimator"), [("fair", "fair"), ("biased", "nrg")])
def test_scores_of_many_rows_are_those_of_scoringrules(ensemble_option, estimator):
    rows = ensemble()
    y, draws = rows.y, rows.predictive.draws
    energy = scoringrules.es_ensemble(y, draws, estimator=estimator)
    variograms = scoringrules.vs_ensemble(y, draws, p=0.5, estimator=estimator)
    assert_allclose(score(rows, ensemble=ensemble_option), energy, rtol=1e-12)
    assert_allclose(score(rows, ensemble=ensemble_option, vector_score="variogram"), variograms, rtol=1e-12)


def test_the_energy_score_of_equal_targets_is_the_crps_times_the_root_of_their_number():
    rows = ensemble(t=1)
    tripled = Predictions(
        y=np.repeat(rows.y, 3, axis=1), predictive=Samples(np.repeat(rows.predictive.draws, 3, axis=2))
    )
    single = Predictions(y=rows.y[:, 0], predictive=Samples(rows.predictive.draws[..., 0]))
    assert_allclose(score(tripled), np.sqrt(3) * score(single), rtol=1e-12)


def test_pre_ranks_are_those_worked_out_by_hand():
    """Three vectors (0, 0), (1, 2), (2, 1): the ranks of the coordinates are (1, 1), (2, 3), (3, 2)."""
    pooled = np.array([[[0.0, 0.0], [1.0, 2.0], [2.0, 1.0]]])
    assert_allclose(average_rank(pooled), [[1, 2.5, 2.5]])
    assert_allclose(band_depth(pooled), [[0, 0.5, 0.5]])  # (3 - 1) 0 = 0; (3 - 2) 1 = 1 and (3 - 3) 2 = 0
    assert_allclose(multivariate_rank(pooled), [[1, 2, 2]])
    spread = np.sqrt(2 / 3)
    assert_allclose(variogram(pooled), [[0, 1 / spread, 1 / spread]], atol=1e-9)
    rows = Predictions(y=pooled[:, 1], predictive=Samples(pooled[:, [0, 2]]))
    for name, limits in {"average": (1 / 3, 1), "variogram": (1 / 3, 1), "multivariate": (1 / 3, 1)}.items():
        assert_allclose([each[0] for each in rank_pit(rows, name)], limits)


@pytest.mark.parametrize("pre_rank", PRE_RANKS)
def test_ranks_do_not_change_if_the_target_is_exchanged_with_a_draw_of_its_rank(pre_rank):
    """Each of the m + 1 vectors has its own rank, and these are all ranks: 1 to m + 1, with ties."""
    rows = ensemble(n=1, m=7)
    found = []
    for chosen in range(8):
        y, predictive = rows.predictive.exchange(rows.y, np.array([chosen]))
        found.append([each[0] for each in rank_pit(Predictions(y=y, predictive=predictive), pre_rank)])
    low, high = np.sort(found, axis=0).T
    if pre_rank == "multivariate":
        assert (high - low >= 1 / 8 - 1e-12).all()
    else:
        assert_allclose((low + high).sum(), 8)


@pytest.mark.parametrize("pre_rank", PRE_RANKS)
def test_ranks_do_not_depend_on_the_units_of_the_targets(pre_rank):
    rows = ensemble()
    factors = np.array([1e-6, 1.0, 30.0, 1e6])
    scaled = Predictions(y=rows.y * factors + 5, predictive=Samples(rows.predictive.draws * factors + 5))
    for one, other in zip(rank_pit(rows, pre_rank), rank_pit(scaled, pre_rank), strict=True):
        assert_allclose(one, other)


def forecasts(seed, rho, n=500, *, ensembles=False, t=2):
    """Return normal forecasts of two targets as if they were independent; their errors have a correlation."""
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=(n, t)), rng.uniform(0.5, 2, (n, t))
    z = np.sqrt(rho) * rng.normal(size=(n, 1)) + np.sqrt(1 - rho) * rng.normal(size=(n, t))
    columns = [Gaussian(mean[:, place], std[:, place]) for place in range(t)]
    draws = mean[:, None] + std[:, None] * rng.normal(size=(n, 20, t))
    return Predictions(y=mean + std * z, predictive=Samples(draws) if ensembles else Independent(tuple(columns)))


def p_value(rows, metric, seed):
    return evaluate(InMemory(rows), [metric], run=Run(replicates=39, resamples=0, seed=seed)).results[0].p_value


@pytest.mark.parametrize("ensembles", [False, True], ids=["families", "ensembles"])
def test_dependent_targets_predicted_as_independent_are_rejected(ensembles):
    assert all(p_value(forecasts(seed, 0.5, ensembles=ensembles), Pit(), seed) <= 0.05 for seed in range(4))


@pytest.mark.slow
@pytest.mark.parametrize("ensembles", [False, True], ids=["families", "ensembles"])
def test_right_models_of_several_targets_are_rejected_in_about_5_percent(ensembles):
    """Of 120 data sets at most 15 (99.9 % of a binomial of 5 %); a quarter of them by default, at most 7."""
    number = sets(120)
    rejected = sum(
        p_value(forecasts(seed, 0.0, 60, ensembles=ensembles), Pit(), seed) <= 0.05 for seed in range(number)
    )
    assert rejected <= (15 if number > 30 else 7)


def test_own_draws_do_not_depend_on_the_targets_or_on_the_order_of_rows():
    rows = forecasts(1, 0.5, 30)
    order = np.random.default_rng(0).permutation(30)
    assert_allclose(score(rows.take(order)), score(rows)[order], rtol=1e-12)


def test_one_draw_and_a_single_target_are_refused():
    one = ensemble(m=1)
    single = Predictions(y=np.zeros(5), predictive=Gaussian(np.zeros(5), np.ones(5)))
    for rows, metric, message in (
        (one, Pit(), "one draw per row does not show how the targets depend on each other"),
        (single, Pit(pre_rank="average"), "--pre-rank is for several targets"),
        (single, Crps(vector_score="energy"), "--vector-score is for several targets"),
    ):
        (skipped,) = evaluate(InMemory(rows), [metric], run=Run(replicates=0)).skipped
        assert message in skipped.reason
