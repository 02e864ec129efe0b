"""What these rows could have shown: faults that are planted into right data sets, and how often they are found."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import kstest, t

from calcheck import evaluation
from calcheck.distributions.continuous import Gaussian
from calcheck.distributions.count_families import Poisson
from calcheck.inference.power import FAULTS, expected_power, planted
from calcheck.predictions import Predictions
from tests.helpers.files import write

BY_NAME = {fault.name: fault for fault in FAULTS}


def right(n=4_000, seed=0):
    """Return right normal predictions of three inputs."""
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=n), np.exp(0.5 * rng.normal(size=n))
    return Predictions(y=rng.normal(mean, std), predictive=Gaussian(mean, std), x=rng.normal(size=(n, 3)))


def z_scores(fault, rows):
    found = planted(BY_NAME[fault], rows, np.random.default_rng(1))
    return (found.targets() - rows.predictive.mean()) / rows.predictive.std()


@pytest.mark.parametrize(("fault", "share"), [("narrow-10", 0.1), ("narrow-25", 0.25), ("narrow-50", 0.5)])
def test_stated_standard_deviations_are_too_small_by_the_share(fault, share):
    rows = right()
    own = (rows.targets() - rows.predictive.mean()) / rows.predictive.std()
    assert_allclose(z_scores(fault, rows) * (1 - share), own, atol=1e-9)


def test_a_bias_is_in_predicted_standard_deviations():
    rows = right()
    own = (rows.targets() - rows.predictive.mean()) / rows.predictive.std()
    assert_allclose(z_scores("bias-0.5", rows) - own, 0.5)


def test_errors_with_heavy_tails_follow_a_t_distribution_of_unit_variance():
    assert kstest(z_scores("heavy-tails", right()), t(4, scale=np.sqrt(1 / 2)).cdf).pvalue > 0.01


def test_a_region_is_the_tenth_of_the_rows_around_a_row():
    rows = right()
    own = (rows.targets() - rows.predictive.mean()) / rows.predictive.std()
    ratio = z_scores("region-2", rows) / own
    assert_allclose(np.sort(ratio)[[3_599, 3_600]], [1, 2])
    spread = rows.x[ratio > 1.5].std(axis=0)
    assert (spread < 0.8 * rows.x.std(axis=0)).all()


def test_a_lost_ranking_keeps_the_sizes_of_errors():
    rows = right()
    found = planted(BY_NAME["ranking-lost"], rows, np.random.default_rng(1))
    errors = np.abs(found.targets() - rows.predictive.mean())
    assert abs(np.corrcoef(np.log(errors), np.log(rows.predictive.std()))[0, 1]) < 0.05
    assert_allclose(np.mean(errors**2), np.mean(rows.predictive.std() ** 2), rtol=0.1)


def test_planted_counts_are_counts():
    rng = np.random.default_rng(0)
    rows = Predictions(y=rng.poisson(3, 500).astype(float), predictive=Poisson(np.full(500, 3.0)))
    y = planted(BY_NAME["narrow-50"], rows, rng).targets()
    assert (y >= 0).all()
    assert (y == np.rint(y)).all()


@pytest.mark.parametrize(("n", "share"), [(30, 0.65), (60, 0.90), (100, 0.97), (300, 1.0)])
def test_the_expected_power_is_near_that_of_simulations(n, share):
    """The shares of NO for a std 25 % too small are those of METHODS: 400 sets each, error up to .024."""
    z = np.random.default_rng(0).normal(size=(2_000, n))
    narrow, bias = expected_power([np.sqrt((z**2).mean(axis=1))], [z.mean(axis=1)], 0.2, 0.95)
    assert narrow.fault == "narrow-25"
    assert_allclose(narrow.share, share, atol=0.1)
    assert_allclose(bias.share, 1 - t.cdf(1.96 - 0.5 * np.sqrt(n), 1e9), atol=0.05)


@pytest.mark.slow
def test_a_table_of_planted_faults_is_printed_and_stored(calcheck, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluation, "POWER_SETS", 10)
    rows = right(60)
    columns = {"y": rows.y, "mean": rows.predictive.mean(), "std": rows.predictive.std()}
    path = write(tmp_path / "right.parquet", columns)
    options = ("--metrics", "bias", "--no-bootstrap", "--replicates", 39, "--power")
    power = json.loads(calcheck(path, *options, "--format", "json").out)["conclusion"]["power"]
    found = {each["fault"]: each["share"] for each in power}
    assert {each["sets"] for each in power} == {10}
    assert found["narrow-50"] > 0.9
    assert found["narrow-10"] < found["narrow-50"]
    assert "region-2" not in found
    assert "What these rows could have shown" in calcheck(path, *options).out
    assert "--power simulates independent rows" in calcheck(path, *options, "--block", 5).refused()


def test_states_have_no_rows_to_plant_faults_into(calcheck, tmp_path):
    rows = right(60)
    columns = {"y": rows.y, "mean": rows.predictive.mean(), "std": rows.predictive.std()}
    path, state = write(tmp_path / "right.parquet", columns), tmp_path / "a.state"
    assert calcheck("evaluate", path, "--metrics", "bias", "--no-bootstrap", "--save-state", state).code == 0
    assert "--power needs all rows in memory" in calcheck("evaluate", state, "--power").refused()
