"""Curves of errors over rejected predictions: by hand, with ties, and for a model that is wrong in part."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.distributions import Gaussian, Samples
from calcheck.distributions.positive import LogNormal
from calcheck.errors import DataError, OptionError
from calcheck.execution.run import Run
from calcheck.inference.metric_protocol import RowResults
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from calcheck.studies.reject.study import RejectionCurves, RejectionGrid, reject
from tests.helpers.shorthand import cce, texts

FAST = Run(resamples=200)
NONE = Run(resamples=0)


def predictions(error, std=None, x=None, **columns):
    """Return rows with the given errors of a Gaussian at 0."""
    error = np.asarray(error, float)
    std = np.ones(len(error)) if std is None else np.asarray(std, float)
    return Predictions(
        y=error, predictive=Gaussian(np.zeros(len(error)), std), x=x, has_embedding=False, columns=columns
    )


def results_of(rows, *metrics, run=NONE, **options):
    """Return lists of results by metric and criterion."""
    report = reject(InMemory(rows), [METRICS[name]() for name in metrics or ("mae",)], run=run, **options)
    found = {}
    for result in report.results:
        found.setdefault((result.metric, result.slice["by"]), []).append(result)
    return found


def values(results):
    """Return the curve."""
    steps = [each for each in results if each.slice["rejected"] != "area" and "threshold" not in each.slice]
    return [each.value for each in steps]


def area_of(results, minus=None):
    (found,) = [each for each in results if each.slice["rejected"] == "area" and each.slice.get("minus") == minus]
    return found


QUARTERS = RejectionGrid(step=25, max_percent=75)


def test_the_curve_the_area_and_the_gain_by_hand():
    """Errors 1, 2, 3, 6 with std 1, 2, 3, 4: all are retained, then all but 6, then 1 and 2, then 1.

    MAE 3, 2, 1.5, 1; area by the trapezoidal rule over 0, 25, 50, 75 %: 0.25 (1.5 + 2 + 1.5 + 0.5) = 1.375.
    At random MAE is 3, with area 3 * 0.75 = 2.25. RMSE: roots of 50/4, 14/3, 5/2, 1.
    """
    found = results_of(predictions([1, -2, 3, -6], [1, 2, 3, 4]), "mae", "rmse", by=["std", "random"], steps=QUARTERS)
    by_std = found["mae", "std"]
    assert_allclose(values(by_std), [3, 2, 1.5, 1], rtol=1e-14)
    assert [each.slice["rows"] for each in by_std[:4]] == [4, 3, 2, 1]
    assert [each.slice["rejected"] for each in by_std[:4]] == ["0 %", "25 %", "50 %", "75 %"]
    assert_allclose(area_of(by_std).value, 1.375, rtol=1e-14)
    assert_allclose(area_of(by_std, "random").value, 1.375 - 2.25, rtol=1e-14)
    assert_allclose(values(found["mae", "random"]), [3] * 4, rtol=1e-14)
    assert_allclose(area_of(found["mae", "random"]).value, 2.25, rtol=1e-14)
    assert_allclose(values(found["rmse", "std"]), [math.sqrt(12.5), math.sqrt(14 / 3), math.sqrt(2.5), 1], rtol=1e-14)


@pytest.mark.parametrize("metric", ["mae", "nll", "crps"])
def test_ties_give_the_mean_over_all_their_orders(metric):
    """Of six rows three share the largest std and two the next: the naive mean over all orders that std allows."""
    error, std = np.array([0.1, 2.0, -1.0, 3.0, 0.5, -4.0]), np.array([1.0, 2.0, 2.0, 3.0, 3.0, 3.0])
    rows = predictions(error, std)
    (found,) = results_of(rows, metric, by=["std"], steps=RejectionGrid(step=100 / 6, max_percent=500 / 6)).values()
    one = [METRICS[metric]().compute(rows.take(np.array([place]))).columns for place in range(6)]
    scores = np.array([next(iter(columns.values()))[0] for columns in one])
    orders = [order for order in itertools.permutations(range(6)) if (np.diff(std[list(order)]) >= 0).all()]
    naive = [np.mean([scores[list(order[:kept])].mean() for order in orders]) for kept in (6, 5, 4, 3, 2, 1)]
    assert_allclose(values(found), naive, rtol=1e-12)


def test_the_order_of_the_file_does_not_matter():
    rng = np.random.default_rng(0)
    error, std = rng.normal(size=50), rng.integers(1, 5, 50) / 2
    turned = rng.permutation(50)
    first, second = (
        results_of(rows, "mae", "rmse", by=["std"], steps=RejectionGrid(coverage=0.5))
        for rows in (predictions(error, std), predictions(error[turned], std[turned]))
    )
    for pair in first:
        assert_allclose([each.value for each in first[pair]], [each.value for each in second[pair]], rtol=1e-12)


def test_random_orders_agree_with_the_exact_standard_error():
    """The band contains 95 % of the means of 30 of 100 rows, whose standard error is known exactly."""
    rng = np.random.default_rng(1)
    error = np.abs(rng.normal(size=100))
    found = results_of(
        predictions(error), by=["random"], steps=RejectionGrid(step=70, max_percent=70), run=Run(resamples=20_000)
    )
    _, kept, _ = found["mae", "random"]
    spread = error.std(ddof=1) * math.sqrt((1 / 30) * (1 - 0.3))
    assert kept.interval == "random orders"
    assert_allclose([kept.low, kept.high], error.mean() + 1.96 * spread * np.array([-1, 1]), atol=0.1 * spread)


def test_resampled_curves_agree_with_a_loop():
    """The curve of each resample is the naive curve of its rows."""
    rng = np.random.default_rng(2)
    n, criterion, lost = 12, rng.normal(size=12), np.abs(rng.normal(size=12))
    study = RejectionCurves(
        [(METRICS["mae"](), RowResults({"absolute_error": lost}))],
        {"c": criterion},
        np.array([0, 0.25, 0.75]),
        Run(resamples=100),
    )
    (curves,) = study.resampled.values()
    from calcheck.execution.run import RandomStream
    from calcheck.statistics.groups import resampled_weights

    weights = resampled_weights(n, 100, Run().rng(RandomStream.RESAMPLES, 0)).astype(int)
    for curve, counts in zip(curves, weights, strict=True):
        drawn = np.repeat(np.arange(n), counts)
        ordered = lost[drawn[np.argsort(criterion[drawn])]]
        assert_allclose(curve, [ordered[:kept].mean() for kept in (12, 9, 3)], rtol=1e-12)


def test_an_informative_criterion_is_significant_and_an_uninformative_one_is_not():
    rng = np.random.default_rng(3)
    error = rng.normal(size=200)
    rows = predictions(error, column=np.abs(error), noise=rng.normal(size=200), against=-np.abs(error))
    found = results_of(rows, by=["column", "noise", "against"], run=FAST)
    chances = {name: area_of(found["mae", name], "random").p_value for name in ("column", "noise", "against")}
    assert chances["column"] == 1 / 201
    assert 0.05 < chances["noise"] < 0.95
    assert chances["against"] == 1
    gain = area_of(found["mae", "column"], "random")
    assert gain.low < gain.value < gain.high < 0


def test_p_values_of_uninformative_criteria_are_uniform():
    """Of 200 such criteria 5 % are below 5 %, within 4 standard errors."""
    rng = np.random.default_rng(4)
    error = rng.normal(size=40)
    names = [f"c{place}" for place in range(200)]
    rows = predictions(error, **{name: rng.normal(size=40) for name in names})
    found = results_of(rows, by=names, run=Run(resamples=199), steps=RejectionGrid(step=30))
    chances = np.array([area_of(found["mae", name], "random").p_value for name in names])
    assert abs(np.mean(chances <= 0.05) - 0.05) < 4 * math.sqrt(0.05 * 0.95 / 200)
    assert abs(chances.mean() - 0.5) < 4 / math.sqrt(12 * 200)


@pytest.mark.slow  # the next test compares the band with curves one by one
def test_whole_curves_of_uninformative_criteria_lie_in_the_band_of_random_orders():
    """Of 200 such criteria 5 % leave it anywhere, within 4 standard errors; 20 % leave limits of each step."""
    rng = np.random.default_rng(5)
    error = rng.normal(size=60)
    names = [f"c{place}" for place in range(200)]
    rows = predictions(error, **{name: rng.normal(size=60) for name in names})
    found = results_of(rows, by=[*names, "random"], run=Run(resamples=999))
    band = [(each.low, each.high) for each in found["mae", "random"][1:10]]
    outside = [
        any(not low <= value <= high for value, (low, high) in zip(values(found["mae", name])[1:], band, strict=True))
        for name in names
    ]
    assert abs(np.mean(outside) - 0.05) < 4 * math.sqrt(0.05 * 0.95 / 200)


def test_the_band_of_a_criterion_contains_whole_curves_of_resampled_rows():
    rng = np.random.default_rng(6)
    error, std = rng.normal(size=50), rng.uniform(1, 2, 50)
    rows, run = predictions(error, std), Run(resamples=400)
    found = results_of(rows, by=["std"], run=run)["mae", "std"][:10]
    rejected = RejectionGrid().shares()
    study = RejectionCurves(
        [(METRICS["mae"](), RowResults({"absolute_error": np.abs(error)}))],
        {"std": std},
        rejected,
        run,
    )
    (curves,) = study.resampled.values()
    low, high = (np.array([getattr(each, side) for each in found]) for side in ("low", "high"))
    inside = ((curves >= low) & (curves <= high)).all(axis=1).mean()
    assert 0.95 <= inside < 0.97
    assert (found[0].interval, found[0].low is not None) == ("percentile", True)


def test_the_threshold_is_the_smallest_with_enough_coverage_and_keeps_ties():
    """60 % of 5 rows are 3; the third and fourth are tied at 3, so four remain."""
    found = results_of(
        predictions([1, 1, 2, 4, 9], [1, 2, 3, 3, 5]), by=["std", "random"], steps=RejectionGrid(coverage=0.6)
    )
    (at,) = [each for each in found["mae", "std"] if "threshold" in each.slice]
    assert at.slice == {"by": "std", "rejected": "20 %", "rows": 4, "threshold": 3.0}
    assert_allclose(at.value, 2.0)
    assert not [each for each in found["mae", "random"] if "threshold" in each.slice]
    for coverage, kept in ((1.0, 5), (0.2, 1), (0.21, 2), (1e-9, 1)):
        found = results_of(
            predictions([1, 1, 2, 4, 9], [1, 2, 3, 3.5, 5]), by=["std"], steps=RejectionGrid(coverage=coverage)
        )
        assert found["mae", "std"][-1].slice["rows"] == kept


def sine(n, seed):
    """A sine wave whose trough the model misses, with constant std (examples/misfit.py)."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 2 * np.pi, n)
    y = np.sin(x) + (0.1 + 0.2 * np.sin(x / 2)) * rng.normal(size=n)
    return Predictions(
        y=y, predictive=Gaussian(np.maximum(np.sin(x), 0), np.full(n, 0.35)), x=x[:, None], has_embedding=False
    )


@pytest.mark.parametrize("seed", range(5))
def test_rejecting_by_cce_beats_rejecting_at_random_from_10_to_50_percent(seed):
    """The claim of Figure 7 [CCE, C.1]: cce is fitted on labeled rows; the others' targets only give errors."""
    report = reject(
        InMemory(sine(300, 2 * seed)),
        [METRICS[name]() for name in ("mae", "rmse", "nll")],
        at=InMemory(sine(300, 2 * seed + 1)),
        run=FAST,
    )
    for metric in ("mae", "rmse", "nll"):
        curves = {
            by: [each for each in report.results if (each.metric, each.slice["by"]) == (metric, by)][1:6]
            for by in ("cce", "std", "random")
        }
        assert [each.slice["rejected"] for each in curves["cce"]] == ["10 %", "20 %", "30 %", "40 %", "50 %"]
        for by_cce, by_std, at_random in zip(*curves.values(), strict=True):
            assert by_cce.value < at_random.low
            assert_allclose(by_std.value, at_random.value, rtol=1e-9)  # constant std
        (gain,) = [each for each in report.results if each.metric == metric and each.slice["by"] == "cce"][-1:]
        assert gain.slice["minus"] == "random"
        assert gain.high < 0


def test_cce_of_other_rows_does_not_use_their_targets():
    """Other targets of the evaluated rows do not change which rows are rejected."""
    reference, place = sine(60, 0), sine(40, 1)
    others = place.with_targets(place.y[::-1].copy(), place.predictive)
    thresholds = []
    for rows in (place, others):
        report = reject(
            InMemory(reference),
            [METRICS["mae"]()],
            by=["cce"],
            at=InMemory(rows),
            steps=RejectionGrid(coverage=0.5),
            run=NONE,
        )
        thresholds.append(report.results[-1].slice["threshold"])
    assert thresholds[0] == thresholds[1]
    at = cce(reference.x, reference.y, reference.predictive, at=place.x, has_embedding=False)
    assert_allclose(thresholds[0], np.sort(at)[19], rtol=1e-12)


def test_cce_at_its_own_rows_gives_a_warning():
    notes = [note for each in results_of(sine(60, 0))["mae", "cce"] for note in texts(each.warnings)]
    assert any("optimistic" in note for note in notes)
    report = reject(InMemory(sine(60, 0)), [METRICS["mae"]()], at=InMemory(sine(60, 1)), run=NONE)
    assert not any("optimistic" in note for each in report.results for note in texts(each.warnings))


def test_without_inputs_cce_is_skipped_or_refused_if_requested():
    found = results_of(predictions([1, 2, 3]))
    assert {by for _, by in found} == {"std", "random"}
    assert any("it needs inputs" in note for note in texts(found["mae", "std"][0].warnings))
    with pytest.raises(DataError, match="cce needs inputs"):
        results_of(predictions([1, 2, 3]), by=["cce"])


def test_a_metric_that_does_not_apply_is_skipped():
    rows = Predictions(y=np.arange(5.0), predictive=Samples(np.random.default_rng(0).normal(size=(5, 4))))
    report = reject(InMemory(rows), [METRICS["mae"](), METRICS["nll"]()], run=NONE)
    assert {each.metric for each in report.results} == {"mae"}
    assert [each.metric for each in report.skipped] == ["nll"]


def test_infinite_values_are_named():
    """An impossible target makes the mean infinite."""
    rows = Predictions(y=np.array([1.0, -1.0, 1.0]), predictive=LogNormal(np.zeros(3), np.array([1, 0.5, 0.25])))
    report = results_of(rows, "nll", by=["std"], steps=RejectionGrid(30, 60), run=FAST)
    first, *_ = report["nll", "std"]
    assert first.value is None
    assert any("the value is infinite" in note for note in texts(first.warnings))


def test_few_rows_give_a_warning_and_a_single_row_has_no_interval():
    assert any(
        "3 rows are few" in note
        for note in texts(results_of(predictions([1, 2, 3]), run=FAST)["mae", "std"][0].warnings)
    )
    single = results_of(predictions([1]), run=FAST)["mae", "std"][0]
    assert single.low is None
    assert any("single row" in note for note in texts(single.warnings))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_percent": 0}, "--max-percent must be"),
        ({"max_percent": 100}, "--max-percent must be"),
        ({"step": 0}, "--step must be"),
        ({"step": 91}, "--step must be"),
        ({"step": 0.001}, "more than 1,000 steps"),
        ({"coverage": 0}, "--coverage must be"),
        ({"coverage": 1.1}, "--coverage must be"),
        ({"coverage": float("nan")}, "--coverage must be"),
    ],
)
def test_invalid_percentages_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        RejectionGrid(**options)


def test_criteria_must_be_columns_of_numbers():
    rows = predictions([1, 2, 3], name=np.array(["a", "b", "c"]), gap=np.array([1, np.nan, 2]))
    for name, message in (("name", "is not numeric"), ("gap", "must be finite"), ("absent", "there is no column")):
        with pytest.raises(DataError, match=message):
            results_of(rows, by=[name])


@pytest.mark.parametrize("metric", ["ece", "cce", "sharpness", "lzms"])
def test_only_means_of_errors_are_accepted(metric):
    with pytest.raises(OptionError, match=f"got {metric}, which is not"):
        results_of(predictions([1, 2, 3]), metric)
