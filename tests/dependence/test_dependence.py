"""Clusters, series, block lengths, and inference for rows that depend on each other."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import linalg, stats

import calcheck
from calcheck.dependence.clusters import (
    MOST_INFLATION,
    Autoregression,
    Clusters,
    _coefficients,
    autocovariances,
    dependence_scores,
    dependence_warnings,
    design_effects,
    find_clusters,
    series_dependence,
    series_memory,
    without_trend,
)
from calcheck.distributions import Gaussian
from calcheck.errors import DataError, OptionError
from calcheck.evaluation import Answer, evaluate
from calcheck.execution.run import RowDependence, Run
from calcheck.inference import paired_comparison
from calcheck.inference.bootstrap import Statistic, clustered
from calcheck.inference.null_distribution import multiplier_noise
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from calcheck.render.pictures import metric_pictures
from calcheck.statistics.groups import Groups, MeanTerm
from calcheck.studies.slices.groups import clusters_within
from tests.helpers.simulations import autoregressive, sets

SIMULATED = ("zms", "ece", "pit", "coverage")


def series(rng, n, correlation, **columns):
    errors = autoregressive(rng, n, correlation)
    mean = rng.normal(size=n)
    return Predictions(
        y=mean + errors, predictive=Gaussian(mean, np.ones(n)), columns={"time": np.arange(n), **columns}
    )


def report(rows, names=SIMULATED, **options):
    run = Run(replicates=39, resamples=500, dependence=RowDependence(**options))
    return evaluate(InMemory(rows), [METRICS[name]() for name in names], run=run)


def results(rows, names=SIMULATED, **options):
    return {result.metric: result for result in report(rows, names, **options).results}


def test_autocovariances_are_the_mean_products_at_each_lag():
    found = autocovariances(np.array([1.0, 2.0, 4.0, 1.0]))
    away = np.array([-1, 0, 2, -1])
    expected = [away @ away / 4, away[1:] @ away[:-1] / 4, away[2:] @ away[:-2] / 4, away[3] * away[0] / 4]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("correlation", [0.5, 0.8])
def test_the_memory_of_a_first_order_autoregression_has_its_closed_form(correlation):
    found = Autoregression.fit(autoregressive(np.random.default_rng(0), 200_000, correlation))
    assert found.variance_ratio == pytest.approx((1 + correlation) / (1 - correlation), rel=0.05)
    assert found.memory == pytest.approx(2 * correlation / (1 - correlation**2), rel=0.1)


def test_weak_correlations_of_few_rows_are_found():
    """The gain in likelihood of a correlation of 0.3, n log(1 / (1 - 0.09)) = 28, is above the penalty of 2."""
    found = [Autoregression.fit(autoregressive(np.random.default_rng(seed), 300, 0.3)) for seed in range(20)]
    assert np.median([each.variance_ratio for each in found]) == pytest.approx(1.3 / 0.7, rel=0.2)
    assert np.median([each.memory for each in found]) > 0.3


def test_a_daily_cycle_of_hourly_rows_is_remembered_for_days():
    rng = np.random.default_rng(1)
    days = rng.normal(size=(200, 24))
    for day in range(1, 200):
        days[day] += 0.7 * days[day - 1]
    assert Autoregression.fit(days.ravel()).memory > 24


def test_constant_series_have_no_memory():
    assert Autoregression.fit(np.ones(50)) == Autoregression(1.0, 0.0)


def test_clusters_of_equal_sizes_have_as_many_degrees_of_freedom_as_clusters_less_one():
    assert Clusters(np.repeat(np.arange(7), 3)).degrees_of_freedom == pytest.approx(6)
    assert Clusters(np.array([0] * 8 + [1, 2])).degrees_of_freedom == pytest.approx(100 / 66 - 1 if 100 / 66 > 2 else 1)


def test_clusters_of_unequal_sizes_have_fewer_degrees_of_freedom():
    """Of 4, 2, 2 and 2 rows: 10² / (16 + 4 + 4 + 4) equal clusters have the same information."""
    found = Clusters(np.repeat(np.arange(4), [4, 2, 2, 2]), inflation=1.5)
    assert found.degrees_of_freedom == pytest.approx(100 / 28 - 1)
    assert found.variance_factor == pytest.approx(1.5 * 4 / 3)


def test_short_blocks_of_a_series_are_corrected_for_what_they_share():
    """The variance between blocks of 20 is too small by the share memory / 20, and by no more than a limit."""
    rows = series(np.random.default_rng(10), 400, 0.7)
    memory = series_memory(dependence_scores(rows), np.arange(400))
    assert memory > 1
    assert find_clusters(rows, RowDependence(block=20)).inflation == pytest.approx(1 / (1 - memory / 20))
    assert find_clusters(rows, RowDependence(block=1)).inflation == MOST_INFLATION


@pytest.mark.parametrize("n", [300, 1000])
def test_a_change_of_the_errors_is_no_dependence(n):
    """Independent errors twice as large in the last third, with which an autoregression has a long memory."""
    rng = np.random.default_rng(12)
    rows = series(rng, n, 0.0)
    errors = (rows.y - rows.predictive.loc) * np.where(np.arange(n) < 2 * n // 3, 1, 2)
    rows = replace(rows, y=rows.predictive.loc + errors)
    assert series_dependence(dependence_scores(rows), np.arange(n)).memory > 1
    assert series_memory(dependence_scores(rows), np.arange(n)) < 0.3
    assert len(find_clusters(rows, RowDependence(time="time"))) > 30


def test_dependence_is_no_trend():
    """A trend of four cosines is kept by chance alone: at a penalty of 8, for at most 9 % of white noise."""
    rng = np.random.default_rng(13)
    counts = np.ones(300, dtype=int)
    kept = [without_trend(each, counts) is not each for each in (autoregressive(rng, 300, 0.5) for _ in range(40))]
    assert sum(kept) <= stats.binom.ppf(0.9999, 40, 0.09)
    trend = np.cos(np.pi * (np.arange(300) + 0.5) / 300)
    assert np.abs(without_trend(trend + 1e-3 * rng.normal(size=300), counts)).max() < 0.01


@pytest.mark.parametrize(("count", "warned"), [(19, True), (20, False)])
def test_fewer_than_twenty_clusters_are_warned_of(count, warned):
    rows = series(np.random.default_rng(11), 60, 0.0, patient=np.arange(60) % count)
    codes = [each.code for each in find_clusters(rows, RowDependence(cluster="patient")).messages]
    assert codes == ["dependence", *(["few-clusters"] if warned else [])]


def test_the_nominal_confidence_gives_the_limits_of_a_t_interval():
    """With ten clusters: t quantile at 9 degrees of freedom, 2.262157, times the square root of 10/9."""
    found = Clusters(np.repeat(np.arange(10), 4)).expanded(0.95)
    assert stats.norm.ppf((1 + found) / 2) == pytest.approx(2.2621571628 * np.sqrt(10 / 9))


def test_noise_of_a_bin_has_the_degrees_of_freedom_of_its_own_clusters():
    """Sums of +1 and -1 over 12 clusters, of which all or the first six are in a bin: t with 11 and 5 degrees."""
    residuals = np.tile([[1.0, 1.0], [-1.0, -1.0]], (6, 1))
    members = np.stack([np.full(12, 3.0), np.repeat([3.0, 0.0], 6)], axis=1)
    residuals[6:, 1] = 0
    (noise,) = multiplier_noise([(residuals, members)], 1.0, Run())
    for column, count in zip(noise.T, (12, 6), strict=True):
        scaled = column / np.sqrt(count * count / (count - 1))  # the variance of a sum, times g / (g - 1)
        assert stats.kstest(scaled, stats.t(count - 1).cdf).pvalue > 0.01


def test_noise_of_neighboring_blocks_has_the_inflation_of_their_variance():
    residuals, members = np.tile([[1.0], [-1.0]], (6, 1)), np.full((12, 1), 3.0)
    (plain,), (inflated,) = (multiplier_noise([(residuals, members)], each, Run()) for each in (1.0, 4.0))
    np.testing.assert_allclose(inflated, 2 * plain)


def by_cluster(rng, count, size, factor=1.0):
    """Return rows of right predictions with one std a cluster, and errors that clusters share; wrong in half of them.

    The std of half of the clusters is larger by the factor than that of the errors.
    """
    label, n = np.repeat(np.arange(count), size), count * size
    errors = np.sqrt(0.5) * (np.repeat(rng.normal(size=count), size) + rng.normal(size=n))
    std = np.exp(0.3 * rng.normal(size=count))[label]
    stated = std * np.where(label % 2, factor, 1.0)
    return Predictions(y=std * errors, predictive=Gaussian(np.zeros(n), stated), columns={"patient": label})


BINNED = ("ence", "uce", "stratified-coverage")


def test_bins_of_few_clusters_give_no_verdict():
    """Ten bins of 20 clusters hold two each: sums that are centered in a bin nearly vanish."""
    found = report(by_cluster(np.random.default_rng(23), 20, 10), (*BINNED, "zms", "ece"), cluster="patient")
    for result in found.results[:3]:
        assert (result.verdict, result.p_value) == ("none", None)
        reasons = [each.reason for each in result.warnings if each.code == "no-verdict"]
        assert reasons == ["a bin has rows of 2 clusters, and at least 5 are needed to judge it: use fewer --bins"]
    assert found.overall.metrics == ("zms", "ece")


@pytest.mark.slow
def test_bins_of_enough_clusters_are_judged():
    """Right models with six clusters a bin seldom fail; those with wrong bins fail, given more rows."""
    number = sets(8)
    failures = dict.fromkeys(BINNED, 0)
    for seed in range(number):
        for name, result in results(by_cluster(np.random.default_rng(seed), 60, 5), BINNED, cluster="patient").items():
            failures[name] += result.p_value <= 0.05
    assert max(failures.values()) <= stats.binom.ppf(0.9999, number, 0.05)
    wrong = results(by_cluster(np.random.default_rng(24), 200, 10, 3.0), BINNED, cluster="patient")
    assert {result.verdict for result in wrong.values()} == {"fail"}


def test_influences_with_a_large_kurtosis_have_fewer_degrees_of_freedom():
    """Two effective clusters of ten: 2 * 10 * 2 / 8 - 1 = 4 degrees of freedom, with the quantile 2.776445 at 0.975."""
    clusters = Clusters(np.repeat(np.arange(10), 4))
    found = clusters.expanded(0.95, effective=2.0)
    assert stats.norm.ppf((1 + found) / 2) == pytest.approx(2.7764451052 * np.sqrt(10 / 9))
    assert clusters.expanded(0.95, effective=10 / 3) == pytest.approx(clusters.expanded(0.95))  # as normal ones


def test_the_interval_of_the_mean_of_few_clusters_is_that_of_student_t():
    """Eight clusters of equal rows: symmetric means have no acceleration."""
    means = np.array([-2, -1, -1, -0.5, 0.5, 1, 1, 2])
    label = np.repeat(np.arange(8), 5)
    rows = Predictions(y=means[label], predictive=Gaussian(np.zeros(40), np.ones(40)), columns={"patient": label})
    found = results(rows, ("bias",), cluster="patient")["bias"]
    half = stats.t.ppf(0.975, 7) * means.std(ddof=1) / np.sqrt(8)
    assert (found.low, found.high, found.interval) == (pytest.approx(-half), pytest.approx(half), "abc")


def test_the_order_of_an_autoregression_minimizes_the_corrected_criterion():
    """The variance of the errors of each order is from the Yule-Walker equations, solved directly."""
    for seed in range(12):
        series = np.random.default_rng(seed).normal(size=30)
        covariances = autocovariances(series)
        variances = [covariances[0]]
        for order in range(1, 15):
            solved = linalg.solve_toeplitz(covariances[:order], covariances[1 : order + 1])
            variances.append(covariances[0] - solved @ covariances[1 : order + 1])
        orders = np.arange(15)
        criterion = 30 * np.log(variances) + 2 * orders * 30 / (30 - orders - 2)
        assert len(_coefficients(covariances)[0]) == np.argmin(criterion)


def test_sums_of_clusters_give_the_statistic_of_rows():
    rng = np.random.default_rng(3)
    values, label = rng.normal(size=30), rng.integers(0, 4, 30)
    groups = Groups(rng.integers(0, 3, 30), 3, cumulative=True)
    terms = {"a": MeanTerm(values), "b": MeanTerm(values**2, groups), "rows": MeanTerm()}
    plain = Statistic(terms, 30, lambda means: means["a"] + (means["b"] * [1, 2]).sum(-1) * means["rows"])
    found = clustered(plain, Clusters(label))
    assert found.estimate() == pytest.approx(plain.estimate(), rel=1e-12)
    count = Statistic({"a": MeanTerm(values)}, 30, lambda means: means["a"] * 0 + means.n)
    assert clustered(count, Clusters(label)).estimate() == 30
    kept = label != 2
    own = values[kept]
    below = [(own**2 * (groups.label[kept] <= place)).sum() / kept.sum() for place in (0, 1)]
    assert found.leave_one_out()[2] == pytest.approx(own.mean() + below[0] + 2 * below[1], rel=1e-12)


def test_rows_of_one_time_are_in_one_block():
    rng = np.random.default_rng(4)
    rows = series(rng, 300, 0.8, day=np.repeat(np.arange(100), 3))
    found = find_clusters(rows, RowDependence(time="day"))
    assert (found.label.reshape(100, 3) == found.label.reshape(100, 3)[:, :1]).all()


def test_blocks_do_not_depend_on_the_order_of_the_file():
    rows, order = series(np.random.default_rng(5), 200, 0.5), np.random.default_rng(6).permutation(200)
    first, second = (find_clusters(each, RowDependence(time="time")) for each in (rows, rows.take(order)))
    np.testing.assert_array_equal(first.label[order], second.label)


def test_very_many_clusters_are_joined():
    rows = series(np.random.default_rng(22), 9_000, 0.0, patient=np.arange(9_000) // 3)
    found = find_clusters(rows, RowDependence(cluster="patient"))
    assert (len(found), found.details["clusters"], found.sizes.sum()) == (2_000, 3_000, 9_000)
    assert (np.ptp(found.label.reshape(3_000, 3), axis=1) == 0).all()
    assert len(find_clusters(rows, RowDependence(time="time"))) <= 2_000


def test_a_given_length_sets_the_blocks():
    found = find_clusters(series(np.random.default_rng(7), 120, 0.0), RowDependence(block=10))
    assert set(found.sizes) == {10}
    assert found.details == {"time": None, "block": 10.0, "clusters": 12}


def test_independent_rows_are_blocks_of_one():
    found = find_clusters(series(np.random.default_rng(9), 400, 0.0), RowDependence(time="time"))
    assert found.details["block"] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cluster": "two"}, "column 'two' has 2 clusters: at least 5"),
        ({"cluster": "gaps"}, "column 'gaps' has no value in row 1"),
        ({"time": "words"}, "column 'words' has 'soon', which is no time"),
        ({"time": "two"}, "column 'two' has 2 different times"),
        ({"block": 30}, "--block 30 leaves fewer than 5 blocks"),
        ({"cluster": "none"}, "there is no column 'none'"),
    ],
)
def test_columns_without_clusters_are_refused(options, message):
    columns = {
        "two": np.arange(60) % 2,
        "gaps": np.where(np.arange(60) == 1, np.nan, np.arange(60) // 5),
        "words": np.array(["soon"] * 60, dtype=object),
    }
    with pytest.raises((DataError, OptionError), match=message.replace("(", r"\(")):
        find_clusters(series(np.random.default_rng(8), 60, 0.0, **columns), RowDependence(**options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cluster": "a", "time": "b"}, "--cluster and --time"),
        ({"cluster": "a", "block": 3}, "--cluster and --block"),
        ({"block": 0}, "--block must be at least 1"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        RowDependence(**options)


@pytest.mark.parametrize("count", [8, 40])
def test_p_values_of_a_mean_are_those_of_a_t_test_between_clusters(count):
    """The bias of standard normal errors: the variance within clusters is known, its increase is from the data."""
    rng = np.random.default_rng(10)
    label, n = np.repeat(np.arange(count), 5), 5 * count
    errors = (np.repeat(rng.normal(size=count), 5) + rng.normal(size=n)) / np.sqrt(2)
    errors += 0.25 * np.sqrt(40 / count) - errors.mean()
    rows = Predictions(y=errors, predictive=Gaussian(np.zeros(n), np.ones(n)), columns={"patient": label})
    run = Run(replicates=999, resamples=500, dependence=RowDependence(cluster="patient"))
    (found,) = evaluate(InMemory(rows), [METRICS["pit-bias"]()], run=run).results
    scores = np.sqrt(3) * (2 * stats.norm.cdf(errors) - 1)
    away = scores - scores.mean()
    error = np.sqrt(np.sum(np.bincount(label, away) ** 2) * count / (count - 1) / np.mean(away**2)) / n
    expected = 2 * stats.t.sf(abs(scores.mean()) / error, count - 1)
    assert found.p_value == pytest.approx(expected, rel=0.1)
    assert found.details["null"]["clusters"] == count
    assert found.details["null"]["degrees_of_freedom"] == pytest.approx(count - 1)


def test_intervals_resample_whole_clusters():
    """Copies of a row are one observation: the interval is that of the rows without copies."""
    rng = np.random.default_rng(11)
    errors, label = rng.normal(size=60), np.repeat(np.arange(60), 4)
    one = Predictions(y=errors, predictive=Gaussian(np.zeros(60), np.ones(60)), columns={"a": np.arange(60)})
    copies = one.take(label)
    wide, same = (results(each, ("zms", "ece"), cluster="a") for each in (one, copies))
    for name in ("zms", "ece"):
        assert (same[name].low, same[name].high) == pytest.approx((wide[name].low, wide[name].high))


def test_ence_fails_models_that_are_far_too_narrow():
    """Draws with squared errors below 0 count as 0, and not as larger than the value."""
    rng = np.random.default_rng(15)
    rows, std = series(rng, 400, 0.9), 0.2 * np.exp(rng.normal(size=400))
    narrow = replace(rows, predictive=Gaussian(rows.predictive.loc, std))
    assert results(narrow, ("ence",), time="time")["ence"].verdict == "fail"


def test_metrics_without_a_valid_test_say_so():
    rows = series(np.random.default_rng(12), 200, 0.5)
    rows = rows.with_targets(rows.y, Gaussian(rows.predictive.loc, np.linspace(1, 2, 200)))  # bins that differ
    for result in report(rows, ("confidence-curve", "lzms"), time="time").results:
        assert result.p_value is None
        assert result.verdict == "none"
        assert result.low is None
        assert any("depend on each other" in message.text for message in result.warnings)


def test_few_clusters_are_warned_of():
    rows = series(np.random.default_rng(13), 60, 0.0, patient=np.repeat(np.arange(6), 10))
    assert "few-clusters" in [message.code for message in results(rows, ("zms",), cluster="patient")["zms"].warnings]


def test_reports_state_the_blocks():
    found = report(series(np.random.default_rng(14), 300, 0.5), ("zms",), time="time")
    (message,) = (each for each in found.results[0].warnings if each.code == "dependence")
    assert "blocks of about" in message.text
    assert found.settings["dependence"]["time"] == "time"


@pytest.mark.slow
def test_right_models_of_series_fail_as_often_as_they_should():
    """At a correlation of 0.8 about half of the sets fail without the option; see tests/benchmarks/dependence.py."""
    failures = dict.fromkeys(SIMULATED, 0)
    number = sets(60)
    for seed in range(number):
        rows = series(np.random.default_rng(seed), 200, 0.8)
        for name, result in results(rows, time="time").items():
            failures[name] += result.p_value <= 0.05
    assert max(failures.values()) <= stats.binom.ppf(0.9999, number, 0.06)


def test_the_python_interface_takes_the_same_options():
    rng = np.random.default_rng(15)
    table = {
        "y": rng.normal(size=100),
        "mean": np.zeros(100),
        "std": np.ones(100),
        "patient": np.arange(100) // 5,
    }
    found = calcheck.evaluate(table, "zms", cluster="patient", replicates=39)
    assert found.settings["dependence"] == {"cluster": "patient", "clusters": 20}
    with pytest.raises(OptionError, match="cluster"):
        calcheck.sweep(table, "zms", {"subsample": [0.5]}, cluster="patient")


def test_models_are_compared_by_whole_clusters():
    """Equal errors of a model in each cluster: with clusters, the difference is far less certain."""
    rng = np.random.default_rng(16)
    label, y = np.arange(200) // 10, rng.normal(size=200)
    shifts = [np.repeat(rng.normal(size=20), 10) for _ in range(2)]
    models = {
        name: pd.DataFrame({"id": range(200), "y": y, "mean": y + shift, "std": 1.0, "patient": label})
        for name, shift in zip("ab", shifts, strict=True)
    }
    plain, whole = (
        calcheck.compare(models, "mae", id="id", **options).results[-1] for options in ({}, {"cluster": "patient"})
    )
    assert whole.p_value > plain.p_value
    assert whole.high - whole.low > 2 * (plain.high - plain.low)
    assert {message.code for message in whole.warnings} == set()


def test_p_values_of_a_series_of_differences_use_the_inflation_of_its_blocks(monkeypatch):
    rng, studentized = np.random.default_rng(24), []
    actual = paired_comparison._p_of_ratio

    def recorded(ratios, difference, influences):
        studentized.append(difference)
        return actual(ratios, difference, influences)

    monkeypatch.setattr(paired_comparison, "_p_of_ratio", recorded)
    first = pd.DataFrame({"step": np.arange(300), "y": autoregressive(rng, 300, 0.8), "mean": 0.0, "std": 1.0})
    second = first.assign(mean=0.3 * autoregressive(rng, 300, 0.8))
    found = calcheck.compare({"a": first, "b": second}, "mae", time="step").results[-1]
    blocks = [
        find_clusters(
            Predictions(
                y=each["y"].to_numpy(),
                predictive=Gaussian(each["mean"].to_numpy(), np.ones(300)),
                columns={"step": np.arange(300)},
            ),
            RowDependence(time="step"),
        )
        for each in (first, second)
    ]
    inflation = min(blocks, key=len).inflation
    assert inflation > 1.05
    assert studentized == [pytest.approx(found.value / np.sqrt(inflation))]


def test_dependence_by_a_date_or_a_key_is_noticed(tmp_path):
    rng = np.random.default_rng(17)
    dates = pd.date_range("2026-01-01", periods=400)
    errors = autoregressive(rng, 400, 0.5)
    table = pd.DataFrame({"date": dates, "y": errors, "mean": 0.0, "std": 1.0})
    table.to_parquet(tmp_path / "series.parquet")
    (result,) = calcheck.evaluate(tmp_path / "series.parquet", "zms", replicates=39).results
    (message,) = (each for each in result.warnings if each.code == "dependent-rows")
    assert "Pass --time date" in message.text
    stated = calcheck.evaluate(tmp_path / "series.parquet", "zms", time="date", replicates=39).results[0]
    assert "dependent-rows" not in [each.code for each in stated.warnings]
    shared = table.assign(y=np.repeat(rng.normal(size=40), 10)).rename(columns={"date": "patient_id"})
    shared["patient_id"] = np.arange(400) // 10
    shared.to_parquet(tmp_path / "clusters.parquet")
    (result,) = calcheck.evaluate(tmp_path / "clusters.parquet", "zms", replicates=39).results
    assert any("Pass --cluster patient_id" in each.text for each in result.warnings)


@pytest.mark.parametrize("n", [60, 300])
@pytest.mark.parametrize("name", ["time", "index"])
def test_independent_rows_are_seldom_warned_of(n, name):
    """A file loses its verdicts: at most 2 in 100 right files, by a time, ten keys, and a number of the row."""
    number, noticed = sets(200), 0
    for seed in range(number):
        rows = series(np.random.default_rng(seed), n, 0.0)
        columns = {name: np.arange(n), "site": np.arange(n) % 10, "patient": np.arange(n) // 5}
        noticed += bool(dependence_warnings(replace(rows, columns=columns)))
    assert noticed <= stats.binom.ppf(0.9999, number, 0.02)


@pytest.mark.parametrize("step", [np.arange(300), np.arange(300) // 2 + 7, np.linspace(0, 1, 300), np.int8(1)])
def test_numbers_that_only_increase_are_times(step):
    rows = series(np.random.default_rng(25), 300, 0.8)
    found = design_effects(replace(rows, columns={"hour_of_run": np.broadcast_to(step, 300)}))
    assert [(each.column, each.kind) for each in found] == ([("hour_of_run", "time")] if np.ndim(step) else [])


def test_keys_of_rows_that_only_increase_are_times():
    rows = series(np.random.default_rng(26), 300, 0.8)
    found = design_effects(replace(rows, columns={}, id=np.arange(300), id_name="nr"))
    assert [each.option for each in found] == ["--time nr"]


@pytest.mark.parametrize("by", ["y", "mean", "std", "error", "squared"])
@pytest.mark.parametrize("sign", [1, -1])
def test_orders_by_targets_predictions_or_errors_are_no_times(by, sign):
    """Neighboring rows are alike then, however independent they are."""
    rng = np.random.default_rng(27)
    std, mean = np.exp(rng.normal(size=300)), rng.normal(size=300)
    error = rng.normal(size=300) * std
    values = {"y": mean + error, "mean": mean, "std": std, "error": error, "squared": error**2}
    rows = Predictions(y=mean + error, predictive=Gaussian(mean, 0.3 * std**2))
    ordered = replace(rows.take(np.argsort(sign * values[by])), columns={"index": np.arange(300)}, row=None)
    assert not design_effects(ordered)


def test_named_inputs_are_no_times():
    rng = np.random.default_rng(28)
    table = pd.DataFrame({"age": np.arange(300), "y": autoregressive(rng, 300, 0.8), "mean": 0.0, "std": 1.0})
    noticed, judged = (
        calcheck.evaluate(table, "pit", replicates=39, **options).results[0].verdict
        for options in ({}, {"inputs": "age"})
    )
    assert noticed == "none"
    assert judged != "none"


def test_nothing_is_judged_without_the_option():
    """Verdicts that assume independent rows are absent; a test of independence itself is not."""
    rows = series(np.random.default_rng(29), 300, 0.8)
    metrics = [METRICS[name]() for name in ("zms", "pit", "coverage", "pit-independence")]
    found = evaluate(InMemory(rows), metrics, run=Run(replicates=39, resamples=500), answer=Answer())
    judged = {each.metric: each.verdict for each in found.results}
    assert judged == {"zms": "none", "pit": "none", "coverage": "none", "pit-independence": "fail"}
    reason = "rows depend on each other by 'time': pass --time time"
    assert all(f"no verdict: {reason}" in [each.text for each in result.warnings] for result in found.results[:3])
    assert found.overall.verdict == "none"
    assert (found.conclusion.answer, [each.text for each in found.conclusion.effects]) == (
        "not-shown",
        [f"nothing is judged, since {reason}"],
    )
    assert "none" not in {each.verdict for each in report(rows, ("zms", "pit"), time="time").results}


def test_pictures_state_no_p_values_of_rows_that_depend_on_each_other():
    rows = series(np.random.default_rng(29), 300, 0.8)
    for options, expected in (({}, False), ({"time": "time"}, True)):
        run = Run(replicates=39, resamples=200, curves=True, dependence=RowDependence(**options))
        pictures = metric_pictures(evaluate(InMemory(rows), [METRICS["pit"](), METRICS["coverage"]()], run=run))
        assert [", p " in str(each) for each in pictures] == [expected] * 2


def test_groups_and_regions_are_not_judged_without_the_option_and_differences_note_it():
    rng = np.random.default_rng(30)
    table = pd.DataFrame(
        {
            "step": np.arange(300),
            "half": np.arange(300) % 2,
            "y": autoregressive(rng, 300, 0.9),
            "mean": 0.0,
            "std": 0.5,
        }
    )
    options = {"metrics": ["zms", "pit-bias"], "replicates": 39, "resamples": 200}
    groups, regions = calcheck.slices(table, by="half", **options), calcheck.slices(table, replicates=39)
    for found in (groups, regions):
        assert {each.verdict for each in found.results} == {"none"}
        assert found.conclusion.answer == "not-shown"
    stated = calcheck.slices(table, by="half", time="step", **options)
    assert "fail" in {each.verdict for each in stated.results}
    models = {"a": table, "b": table.assign(std=1.0)}
    difference = calcheck.compare(models, "crps").results[-1]
    assert "dependent-rows" in [each.code for each in difference.warnings]


def test_numbers_are_no_keys():
    rows, order = series(np.random.default_rng(18), 300, 0.8), np.random.default_rng(19).permutation(300)
    assert not design_effects(replace(rows, columns={"age": order, "group": np.linspace(0, 1, 300)[order]}))


def clustered_table(rng, clusters=30, size=8):
    label = np.repeat(np.arange(clusters), size)
    errors = (np.repeat(rng.normal(size=clusters), size) + rng.normal(size=clusters * size)) / np.sqrt(2)
    half = np.where(label % 2, "odd", "even")
    return pd.DataFrame({"y": errors, "mean": 0.0, "std": 1.0, "patient": label, "half": half})


def test_groups_are_compared_by_whole_clusters():
    """All rows have the p-value of evaluate, and a group that of its own rows, up to the simulation."""
    table = clustered_table(np.random.default_rng(19))
    options = {"metrics": ["bias", "zms"], "cluster": "patient", "replicates": 199}
    by_group = calcheck.slices(table, by="half", **options).results
    found = {(each.slice["group"], each.metric): each for each in by_group}
    for filter_, group in (([], "all rows"), (["half=odd"], "half=odd")):
        alone = calcheck.evaluate(table, filter=filter_, **options).results
        for each in alone:
            same = found[group, each.metric]
            assert same.p_value == pytest.approx(each.p_value, abs=0.04)
            assert same.high - same.low == pytest.approx(each.high - each.low, rel=0.1)


def test_clusters_of_a_group_are_numbered_from_0_and_keep_their_inflation():
    clusters = Clusters(np.repeat(np.arange(8), 3), inflation=1.7)
    found = clusters_within(clusters, np.arange(4, 24, 2))
    assert found.label.tolist() == [0, 1, 1, 2, 3, 3, 4, 5, 5, 6]
    assert found.inflation == 1.7
    assert clusters_within(clusters, np.arange(12)) is None


def test_groups_of_few_clusters_are_not_judged():
    table = clustered_table(np.random.default_rng(20)).assign(few=lambda each: each["patient"] < 3)
    results = calcheck.slices(table, by="few", metrics="bias", cluster="patient", min_rows=5).results
    (few,) = (each for each in results if each.slice["rows"] == 24)
    assert (few.verdict, few.p_value) == ("none", None)
    assert "groups with fewer than 5 clusters are not judged" in [each.text for each in few.warnings]


def test_regions_are_not_searched_among_dependent_rows():
    with pytest.raises(OptionError, match="independent rows only"):
        calcheck.slices(clustered_table(np.random.default_rng(21)), cluster="patient")
