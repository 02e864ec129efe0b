"""Rows are sorted into bins by numbers and dates, and grouped by categories."""

import math

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import calcheck
from calcheck.distributions import Gaussian
from calcheck.errors import DataError
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from calcheck.statistics.binning import MAX_CATEGORIES, bins_of
from calcheck.streaming.state import accumulate, merge, report_from_state
from tests.helpers.streams import Batches

RUN = Run(resamples=100, replicates=0)
BARE = {"resamples": 0, "replicates": 0}
KINDS = np.array(["b", "a", "b", "a"], dtype=object)


def predictions(**columns):
    """Return four rows: the mean squares of std and error are 4 and 10 in rows 1 and 3, and 1 and 1 in the others."""
    std = np.array([1.0, 2.0, 1.0, 2.0])
    errors = np.array([1.0, 2.0, -1.0, -4.0])
    return Predictions(y=errors, predictive=Gaussian(np.zeros(4), std), columns=columns)


def many(n=600):
    """Return calibrated rows with a category and a date."""
    rng = np.random.default_rng(7)
    std = rng.uniform(0.5, 2, n)
    days = np.datetime64("2026-01-01T06") + rng.integers(0, 300, n).astype("timedelta64[D]")
    columns = {"topic": rng.choice(np.array(["news", "prose", "web"], dtype=object), n), "day": days}
    columns["sure"] = rng.random(n) < 0.4
    return Predictions(y=std * rng.normal(size=n), predictive=Gaussian(np.zeros(n), std), columns=columns)


def only(report):
    assert not report.skipped, report.skipped
    return report.results[0]


@pytest.mark.parametrize("kind", [KINDS, KINDS.astype(str), KINDS == "b"])
def test_each_category_is_a_bin(kind):
    """ENCE is the mean of |sqrt(4) - sqrt(10)| / sqrt(4) and of |1 - 1| / 1; UCE that of 6 and 0."""
    rows = predictions(kind=kind)
    ence = only(evaluate(InMemory(rows), [METRICS["ence"](by="kind")], run=RUN))
    assert_allclose(ence.value, (math.sqrt(10) / 2 - 1) / 2, rtol=1e-14)
    assert_allclose(only(evaluate(InMemory(rows), [METRICS["uce"](by="kind")], run=RUN)).value, 3.0, rtol=1e-14)
    names = ["false", "true"] if kind.dtype == bool else ["a", "b"]
    assert [(each["from"], each["to"], each["rows"]) for each in ence.details["bins"]] == [(x, x, 2) for x in names]
    assert_allclose([each["rmse"] for each in ence.details["bins"]], [math.sqrt(10), 1], rtol=1e-14)
    assert [each.text for each in ence.warnings if each.code == "few-rows-per-bin"] == [
        "2 rows per bin are few, 30 or more are better: join small categories"
    ]


def test_valid_bins_of_categories_are_those_of_the_rows_of_each():
    rows = many()
    lzms = only(evaluate(InMemory(rows), [METRICS["lzms"](by="topic")], run=RUN))
    for each in lzms.details["bins"]:
        part = rows.take(np.flatnonzero(rows.columns["topic"] == each["from"]))
        zms = only(evaluate(InMemory(part), [METRICS["zms"]()], run=RUN))
        assert_allclose(each["value"], zms.value, rtol=1e-12)
        assert each["low"] < zms.value < each["high"]
    assert lzms.value == np.mean([each["low"] <= 1 <= each["high"] for each in lzms.details["bins"]])


def test_dates_are_in_order_and_bins_have_equal_counts():
    rows = many()
    bins = bins_of(rows, 4, "day")
    ends = np.stack([bins.low, bins.high], axis=1).ravel()
    assert (ends[:-1] <= ends[1:]).all()
    assert_allclose(bins.sums(None), 150)
    days = {"day": rows.columns["day"].astype("datetime64[D]")}
    assert bins.low[0] == "2026-01-01T06:00:00"
    assert bins_of(Predictions(y=rows.y, columns=days), 4, "day").low[0] == "2026-01-01"


@pytest.mark.parametrize("by", ["topic", "sure", "day"])
@pytest.mark.parametrize("name", ["ence", "lrce"])
def test_batches_and_merged_states_have_the_bins_of_all_rows(name, by):
    rows, metric = many(), METRICS[name](by=by)
    whole = only(evaluate(InMemory(rows), [metric], run=RUN))
    state = accumulate(Batches(rows), [metric], RUN)
    assert_allclose(only(report_from_state(state, RUN)).value, whole.value, rtol=1e-12)
    halves = [accumulate(InMemory(rows.take(part)), [metric], RUN, like=state) for part in np.split(np.arange(600), 2)]
    merged = only(report_from_state(merge([("a", halves[0]), ("b", halves[1])]), RUN))
    assert_allclose(merged.value, whole.value, rtol=1e-12)
    ends = [[(each["from"], each["to"]) for each in found.details["bins"]] for found in (merged, whole)]
    assert ends[0] == ends[1]


def test_a_category_without_a_bin_is_refused():
    metric = METRICS["ence"](by="kind")
    state = accumulate(InMemory(predictions(kind=KINDS)), [metric], RUN)
    other = predictions(kind=np.array(["a", "b", "c", "d"], dtype=object))
    report = report_from_state(accumulate(InMemory(other), [metric], RUN, like=state), RUN)
    assert "category 'c' has no bin, because the bins were made of other rows" in report.skipped[0].reason


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            np.array([f"k{row}" for row in range(MAX_CATEGORIES + 1)]),
            "column 'kind' has 1,001 categories .* Group them",
        ),
        (np.array(["a", None, "b", None], dtype=object), "kind must be present, but 2 of 4 rows are not"),
        (np.array([1, 2], "timedelta64[h]"), "must contain numbers, dates or categories"),
    ],
)
def test_columns_that_make_no_bins_are_refused(kind, message):
    with pytest.raises(DataError, match=message):
        bins_of(Predictions(y=np.zeros(len(kind)), columns={"kind": kind}), 10, "kind")


def test_columns_of_frames_are_categories_or_dates():
    rows = predictions()
    frame = pd.DataFrame({"y": rows.y, "mean": 0.0, "std": rows.predictive.std(), "kind": KINDS})
    frame["category"] = pd.Categorical(KINDS)
    frame["number"] = pd.Categorical([7, 3, 7, 3])
    frame["nullable"] = pd.array([True, False, True, False], dtype="boolean")
    frame["day"] = pd.to_datetime(["2026-01-02", "2026-01-01", "2026-01-02", "2026-01-01"])
    names = {
        "kind": ["a", "b"],
        "category": ["a", "b"],
        "number": [3, 7],
        "nullable": ["false", "true"],
        "day": ["2026-01-01", "2026-01-02"],
    }
    for by, expected in names.items():
        metric = calcheck.metric("ence", by=by, **({"bins": 2} if by in ("day", "number") else {}))
        found = calcheck.evaluate(frame, metric, **BARE).results[0]
        assert_allclose(found.value, (math.sqrt(10) / 2 - 1) / 2, rtol=1e-14)
        assert [each["from"] for each in found.details["bins"]] == expected
    frame["gaps"] = pd.Categorical(["a", None, "b", ""])
    with pytest.raises(DataError, match="gaps must be present, but 2 of 4 rows are not"):
        calcheck.evaluate(frame, calcheck.metric("ence", by="gaps"), **BARE)
    found = calcheck.evaluate(frame, calcheck.metric("ence", by="gaps"), nan_policy="omit", **BARE)
    assert found.input.dropped == 2
