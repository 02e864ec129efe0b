"""The weighted interval score by hand, by its other formulas, and on files of quantiles."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scoringrules import interval_score

from calcheck.distributions import Gaussian, Quantiles
from calcheck.errors import OptionError
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.metrics.scores import HUB_LEVELS, Wis
from calcheck.predictions import InMemory, Predictions
from calcheck.streaming.metric_accumulators import MeanAccumulator
from tests.helpers.families import calibrated
from tests.helpers.shorthand import texts

PLAIN = Run(resamples=0, replicates=0)
COMPONENTS = ("overprediction", "underprediction", "dispersion")
OBSERVED = np.array([1.0, -15.0, 22.0])
FIVE = Quantiles(
    np.array([0.1, 0.25, 0.5, 0.75, 0.9]), np.array([[-1, 0, 1, 2, 3], [-2, 1, 2, 2, 4], [-2, 0, 3, 3, 4]])
)


def result(y, predictive, name="wis", **options):
    """Return the only result of a metric, which must not be skipped."""
    rows = Predictions(y=np.asarray(y, float), predictive=predictive)
    report = evaluate(InMemory(rows), [METRICS[name](**options)], run=PLAIN)
    assert not report.skipped, report.skipped
    return report.results[0]


def of_quantiles(levels, values):
    return Quantiles(np.asarray(levels), np.asarray(values, float))


@pytest.mark.parametrize(
    ("row", "over", "under", "width"),
    [
        (0, 0, 0, 0.1 * 4 + 0.25 * 2),  # 1 is the median
        (1, 17 / 2 + 13 + 16, 0, 0.1 * 6 + 0.25 * 1),  # -15 is below the median 2 and the limits -2 and 1
        (2, 0, 19 / 2 + 18 + 19, 0.1 * 6 + 0.25 * 3),  # 22 is above 3, 4 and 3
    ],
)
def test_wis_by_hand(row, over, under, width):
    """The example of scoringutils (`wis` with its tests, after covidHubUtils): 0.36, 15.34 and 19.14.

    Each part is divided by 2 + 1/2.
    """
    found = result(OBSERVED[[row]], FIVE.take([row]))
    assert_allclose(found.value, [0.36, 15.34, 19.14][row], rtol=1e-13)
    assert_allclose([found.details[name] for name in COMPONENTS], np.array([over, under, width]) / 2.5, atol=1e-13)
    assert found.details["levels"] == [0.1, 0.25, 0.5, 0.75, 0.9]


def test_the_median_is_optional():
    """Levels 0.1 and 0.9 of the same rows: 0.1 4, 0.1 6 + 13 and 0.1 6 + 18. The median alone: 0, 17 and 19."""
    ends = of_quantiles([0.1, 0.9], FIVE.values[:, [0, -1]])
    assert_allclose(result(OBSERVED, ends).value, (0.4 + 13.6 + 18.6) / 3, rtol=1e-13)
    assert_allclose(result(OBSERVED, FIVE, levels=(0.5,)).value, (17 + 19) / 3, rtol=1e-13)


@pytest.mark.parametrize("family", ["gaussian", "laplace", "student-t", "samples", "poisson", "lognormal"])
def test_wis_agrees_with_interval_scores_and_with_the_pinball_loss(family):
    """Interval scores by scoringrules, weighted, and half of the median error; and twice the pinball loss.

    scoringrules 0.10 has a weighted interval score too, but adds the median instead of its error.
    """
    rows = calibrated(family, n=50)
    y, predictive = rows.y + np.where(np.arange(50) == 0, 90, 0), rows.predictive  # one target is far from the limits
    if family == "student-t":  # of one shape in all rows, as normal distributions are
        predictive = replace(predictive, df=np.full(50, 6.0))
    total = np.abs(y - predictive.quantile(0.5)) / 2
    for level in HUB_LEVELS[:11]:
        limits = predictive.quantile(level), predictive.quantile(1 - level)
        total += level * interval_score(y, *limits, 2 * level, backend="numpy")
    found = result(y, predictive)
    assert_allclose(found.value, total.mean() / 11.5, rtol=1e-12)
    assert_allclose(found.value, 2 * result(y, predictive, "pinball", levels=HUB_LEVELS).value, rtol=1e-12)
    assert_allclose(sum(found.details[name] for name in COMPONENTS), found.value, rtol=1e-13)


def test_wis_of_many_levels_approximates_the_crps():
    rows = calibrated("gaussian", n=50)
    levels = tuple((np.arange(500) + 0.5) / 500)
    assert_allclose(
        result(rows.y, rows.predictive, levels=levels).value, result(rows.y, rows.predictive, "crps").value, rtol=2e-3
    )


def test_widths_are_accurate_far_from_zero():
    far = 1e9
    near, away = (result([at], Gaussian(np.array([at]), np.array([1e-3]))) for at in (0.0, far))
    assert_allclose(near.details["dispersion"], away.details["dispersion"], rtol=1e-3)


def test_levels_without_a_counterpart_are_not_used():
    """Levels 0.1, 0.5, 0.7 and 0.9 score like 0.1, 0.5 and 0.9."""
    found = result(OBSERVED, of_quantiles([0.1, 0.5, 0.7, 0.9], FIVE.values[:, [0, 2, 3, 4]]))
    fewer = result(OBSERVED, of_quantiles([0.1, 0.5, 0.9], FIVE.values[:, [0, 2, 4]]))
    assert found.value == fewer.value
    assert found.details["levels"] == [0.1, 0.5, 0.9]
    assert "quantiles at levels without a counterpart are not used: 0.7" in texts(found.warnings)
    assert not any("counterpart" in text for text in texts(fewer.warnings))


def test_levels_that_are_symmetric_up_to_rounding_are_pairs():
    levels = np.array([0.1, 1 - 0.7, 0.7, 1 - 0.1])
    assert_allclose(result(OBSERVED, of_quantiles(levels, FIVE.values[:, [0, 1, 3, 4]])).details["levels"], levels)


def test_files_without_a_central_interval_have_no_wis():
    rows = Predictions(y=OBSERVED, predictive=of_quantiles([0.5, 0.9], FIVE.values[:, [2, 4]]))
    (skipped,) = evaluate(InMemory(rows), [Wis()], run=PLAIN).skipped
    assert "no two quantiles form a central interval: level 0.9 has no quantile at 0.1" in skipped.reason


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ((), r"--levels takes 1 to 1,000 levels, got 0"),
        ((0.1, 1.0), r"--levels must lie strictly between 0 and 1, got 1"),
        ((0.1, 0.9, 0.1), r"--levels must differ, got 0.1 twice"),
        ((0.1, 0.5, 0.8), r"--levels must be pairs p and 1 - p, got 0.1 without 0.9"),
    ],
)
def test_levels_are_checked(levels, message):
    with pytest.raises(OptionError, match=message):
        Wis(levels=levels)


@pytest.mark.parametrize("name", ["wis", "pinball"])
def test_scores_of_a_quantile_file_use_its_levels_and_have_no_verdict(name):
    rows = Predictions(y=np.tile(OBSERVED, 20), predictive=FIVE.take(np.tile(np.arange(3), 20)))
    (found,) = evaluate(InMemory(rows), [METRICS[name]()], run=Run(resamples=0, replicates=19)).results
    assert (found.verdict, found.reference, found.p_value) == ("none", None, None)
    two = of_quantiles([0.2, 0.8], FIVE.values[:, [0, -1]])
    assert_allclose(result(OBSERVED, two, name).value, result(OBSERVED, two, name, levels=(0.2, 0.8)).value)


def test_batches_give_the_same_components():
    rows = Predictions(y=OBSERVED, predictive=FIVE)
    accumulator = MeanAccumulator(Wis())
    sums = accumulator.sum_batch(None, rows.take([0]))
    sums.add(accumulator.sum_batch(None, rows.take([1, 2])))
    found = accumulator.rows(None, sums, PLAIN)
    whole = result(OBSERVED, FIVE)
    assert_allclose([found.details[name] for name in COMPONENTS], [whole.details[name] for name in COMPONENTS])
    assert found.details["levels"] == whole.details["levels"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wis", "pinball"])
def test_too_many_quantiles_to_keep_give_the_same_score(name):
    """20,000 rows at 999 levels are 20 million quantiles; 10,000 rows are kept."""
    rows, levels = calibrated("gaussian", n=20_000), tuple(np.arange(1, 1000) / 1000)
    half = np.arange(10_000)
    parts = [result(rows.y[each], rows.predictive.take(each), name, levels=levels) for each in (half, half + 10_000)]
    assert_allclose(
        result(rows.y, rows.predictive, name, levels=levels).value, np.mean([part.value for part in parts]), rtol=1e-12
    )


@pytest.mark.parametrize("name", ["wis", "pinball"])
def test_replicates_share_the_quantiles_of_the_predictions(name, monkeypatch):
    rows, asked = calibrated("gamma", n=50), []
    quantile = type(rows.predictive).quantile
    monkeypatch.setattr(type(rows.predictive), "quantile", lambda self, p: asked.append(p) or quantile(self, p))
    evaluate(InMemory(rows), [METRICS[name](levels=(0.1, 0.9))], run=Run(resamples=0, replicates=19))
    assert sorted(asked) == [0.1, 0.9]
