"""Pictures of single predictions show the intervals and targets of rows that are spread over all predictions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.charts.picture import Line, Points
from calcheck.distributions import Gaussian, Intervals, Samples
from calcheck.errors import DataError
from calcheck.predictions import Predictions
from calcheck.statistics.curves import row_intervals
from calcheck.studies.page.picture import predictions_picture

HALF_WIDTH = 1.6448536269514722  # of the 90 % interval of the standard normal distribution


def gaussian(n=5):
    mean = np.arange(n, dtype=float)[::-1]
    return Predictions(y=mean + 0.5, predictive=Gaussian(mean, np.full(n, 2.0)), columns={"a": mean**2})


def test_intervals_are_in_the_order_of_the_predictions():
    shown = row_intervals(gaussian(), 0.9, "a")
    assert_allclose(shown.center, [0, 1, 2, 3, 4])
    assert_allclose(shown.low, np.arange(5) - 2 * HALF_WIDTH)
    assert_allclose(shown.high, np.arange(5) + 2 * HALF_WIDTH)
    assert_allclose(shown.half_width, 2 * HALF_WIDTH)
    assert_allclose(shown.y, np.arange(5) + 0.5)
    assert_allclose(shown.along, [0, 1, 4, 9, 16])


def test_shown_rows_are_spread_evenly_over_many():
    shown = row_intervals(gaussian(1001), 0.9, size=11)
    assert_allclose(shown.center, 100.0 * np.arange(11))
    assert shown.total == 1001


def test_a_single_input_is_shown_by_default():
    mean = np.arange(4.0)
    rows = Predictions(y=mean, predictive=Gaussian(mean, mean + 1), x=10 * mean[:, None])
    shown = row_intervals(rows, 0.9, inputs=["age"])
    assert shown.along_name == "age"
    assert_allclose(shown.along, 10 * mean)


def test_intervals_without_a_median_are_shown_by_their_middles():
    intervals = Intervals(np.array([0.8]), np.array([[0.0], [4.0]]), np.array([[2.0], [10.0]]))
    shown = row_intervals(Predictions(y=np.zeros(2), predictive=intervals), 0.8)
    assert_allclose(shown.center, [1, 7])


def test_errors_are_compared_with_the_limits_of_the_intervals():
    (*_, errors) = predictions_picture(row_intervals(gaussian(), 0.9)).panels
    *lines, points = errors.marks
    assert_allclose([line.y[-1] / line.x[-1] for line in lines if isinstance(line, Line)], [1, -1])
    assert isinstance(points, Points)
    assert_allclose(points.y, 0.5)


def test_the_order_of_the_targets_is_shown_by_ranks():
    rows = Predictions(y=np.array([3.0, 1.0, 2.0]), predictive=Gaussian(np.arange(3.0), np.ones(3)))
    panels = predictions_picture(row_intervals(rows, 0.9)).panels
    (ranked,) = [panel for panel in panels if panel.title == "in order of the targets"]
    assert_allclose(ranked.marks[0].x, [3, 1, 2])


def test_predictions_without_targets_are_drawn():
    rows = Predictions(predictive=Gaussian(np.arange(3.0), np.ones(3)))
    assert [panel.title for panel in predictions_picture(row_intervals(rows, 0.9)).panels] == ["by prediction"]


def test_several_targets_per_row_are_refused():
    draws = np.random.default_rng(0).normal(size=(4, 7, 2))
    with pytest.raises(DataError, match="one target per row, and these distributions have 2"):
        row_intervals(Predictions(y=draws[:, 0], predictive=Samples(draws)), 0.9)
