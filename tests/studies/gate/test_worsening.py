"""Gates that know better from worse, and the paired differences of losses that they use."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from calcheck.distributions import Gaussian
from calcheck.errors import DataError, Message
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.models.alignment import Model
from calcheck.predictions import InMemory, Predictions
from calcheck.reports import Inference, Result
from calcheck.studies.gate.baseline import NotWorse, Tolerance, loss_differences

TOLERANCE = Tolerance(rtol=0.0, atol=0.1)


def result(value, orientation="smaller", **more):
    return Result(metric="m", summary="", options={}, unit="1", value=value, orientation=orientation, **more)


def gate(now, stored, **allowed):
    return NotWorse(TOLERANCE, **allowed).gate(now, stored)


def paired(**inference):
    return {"differences": {"m": Inference(**inference)}}


@pytest.mark.parametrize(
    ("orientation", "stored", "better", "worse"),
    [
        ("smaller", 2.0, -9.0, 2.2),
        ("larger", 2.0, 9.0, 1.8),
        ("zero", -2.0, 1.9, 2.2),
        ("zero", 2.0, -1.9, -2.2),
        ("reference", 0.5, 1.4, 1.7),  # the reference is 1: distances 0.5, 0.4, 0.7
        ("reference", 1.5, 0.6, 0.3),
    ],
)
def test_an_improvement_passes_and_a_worsening_beyond_the_tolerance_does_not(orientation, stored, better, worse):
    before = result(stored, orientation, reference=1.0)
    assert gate(replace(before, value=better), before).passed
    assert gate(replace(before, value=better), before).message == f"m is {better:g}, better"
    assert gate(before, before).message == f"m is {stored:g}, as good"
    assert not gate(replace(before, value=worse), before).passed
    assert f"m is {worse:g}, " in gate(replace(before, value=worse), before).message


def test_a_worsening_within_the_tolerance_passes_and_the_message_states_both():
    found = gate(result(1.05), result(1.0), unpaired="the file is gone")
    assert found.passed
    assert found.rule == "m is not worse than 1"
    assert found.message == "m is 1.05, larger by 0.05; at most 0.1 is allowed (the file is gone)"
    assert found.values == {"m": 1.05, "base.m.value": 1.0}


def test_distances_are_compared_by_the_tolerance_not_values():
    """From 0.95 to 1.04 the value changes by 0.09, its distance from 1 falls by 0.01; to 1.2 it rises by 0.15."""
    before = result(0.95, "reference", reference=1.0)
    assert gate(replace(before, value=1.04), before).passed
    found = gate(replace(before, value=1.2), before)
    assert not found.passed
    assert found.message.startswith("m is 1.2, farther from its reference by 0.15; at most 0.1")
    assert "farther from 0 by 0.5" in gate(result(-1.5, "zero"), result(1, "zero")).message
    assert "smaller by 0.5" in gate(result(0.5, "larger"), result(1, "larger")).message


@pytest.mark.parametrize(("low", "passed", "words"), [(-0.1, True, "contains 0"), (0.1, False, "does not contain 0")])
def test_a_paired_interval_replaces_the_tolerance(low, passed, words):
    found = gate(result(9.0), result(1.0), **paired(low=low, high=20.0, interval="bca", p_value=0.5))
    assert found.passed is passed
    assert found.message == f"m is 9, larger by 8; the paired 95 % interval of the difference, [{low}, 20], {words}"


def test_a_percentile_interval_does_not_decide_but_the_p_value_does():
    """Resampling adds noise to such metrics, so their interval of the difference shows its spread only."""
    spread = {"low": 1.0, "high": 2.0, "interval": "percentile"}
    found = gate(result(9.0), result(1.0), **paired(**spread, p_value=0.2))
    assert found.passed
    assert found.message.endswith("the paired p-value 0.2 is above 0.05")
    found = gate(result(9.0), result(1.0), **paired(**spread, p_value=0.08), confidence=0.9)
    assert not found.passed
    assert found.message.endswith("the paired p-value 0.08 is at most 0.1")


def test_without_a_paired_test_the_tolerance_decides_and_the_message_states_the_reason():
    reasons = (Message("no-interval", "no interval: of bins"), Message("no-p-value", "no p-value: none is known"))
    found = gate(result(1.05), result(1.0), **paired(warnings=reasons))
    assert found.passed
    assert found.message.endswith("at most 0.1 is allowed (no interval: of bins)")


def test_a_metric_without_a_direction_is_not_judged():
    found = gate(result(9.0, "none"), result(1.0, "none"))
    assert found.passed
    assert found.message == "m is 9, not judged, because no value is better"


@pytest.mark.parametrize(
    ("now", "stored", "missing"),
    [
        (result(None), result(1.0), "m"),
        (result(1.0), result(None), "base.m.value"),
        (result(1.0, "reference"), result(1.0, "reference", reference=1.0), "m.reference"),
        (result(1.0, "reference", reference=1.0), result(1.0, "reference"), "base.m.reference"),
    ],
)
def test_a_missing_number_violates(now, stored, missing):
    found = gate(now, stored)
    assert not found.passed
    assert missing in found.missing
    assert f"{missing} is null (" in found.message
    assert found.message.endswith("not comparable")


def model(name, mean, std, y):
    return Model(name, InMemory(Predictions(y=y, predictive=Gaussian(mean, std))))


@pytest.fixture
def two():
    """Return a calibrated model, and one with other errors and too small a spread, for the same rows."""
    rng = np.random.default_rng(2)
    signal, n = rng.normal(size=150), 150
    y = signal + rng.normal(size=n)
    return model("a", signal, np.ones(n), y), model("b", signal + 0.4 * rng.normal(size=n), np.full(n, 0.9), y)


def errors(each):
    rows = each.source.predictions()
    return rows.y - rows.predictive.mean(), rows.predictive.std()


def deviations(two):
    """Return the terms of metrics whose ideal value is a reference or 0, and that value, by hand."""
    z = [(error / std) ** 2 for error, std in map(errors, two)]
    plain = [error for error, _ in map(errors, two)]
    return {"zms": (z, 1), "bias": (plain, 0)}


@pytest.mark.parametrize("name", ["zms", "bias"])
def test_the_interval_of_a_distance_agrees_with_scipy(two, name):
    """scipy 1.15 or later: bootstrap(paired, BCa) of b - a and of b + a, for deviations a and b from the ideal value.

    The extreme values of |b| - |a| over both intervals are in their corners.
    """
    report, found = loss_differences(two, [METRICS[name]()], Run(resamples=20_000, replicates=0))
    (first, second), ideal = deviations(two)[name]
    limits = [
        stats.bootstrap(
            (first, second),
            lambda a, b, axis: b.mean(axis=axis) - ideal + sign * (a.mean(axis=axis) - ideal),  # noqa: B023
            paired=True,
            vectorized=True,
            n_resamples=20_000,
            method="BCa",
            rng=np.random.default_rng(1),
        ).confidence_interval
        for sign in (-1, 1)
    ]
    ends = [abs(minus + total) / 2 - abs(total - minus) / 2 for minus, total in product(*limits)]
    assert [each.metric for each in report.results] == [name]
    low, high = min(ends), max(ends)
    assert_allclose([found[name].low, found[name].high], [low, high], atol=0.03 * (high - low))


def test_metrics_without_an_interval_have_a_p_value_and_others_no_difference(two):
    metrics = [METRICS[name]() for name in ("ece", "lzms", "width", "mae")]
    _, found = loss_differences(two, metrics, Run(resamples=200, replicates=0))
    assert found.keys() == {"ece", "lzms", "mae"}
    assert found["ece"].interval == "percentile"
    assert found["ece"].p_value is not None
    assert (found["lzms"].interval, found["lzms"].p_value) == (None, None)
    assert (found["mae"].interval, found["mae"].p_value) == ("bca", None)


def test_models_with_other_rows_have_no_differences(two):
    y = np.zeros(3)
    with pytest.raises(DataError, match="without ids the rows cannot be matched"):
        loss_differences((two[0], model("c", y, y + 1, y)), [METRICS["mae"]()], Run())
