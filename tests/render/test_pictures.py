"""Every picture of every metric is drawn, for each kind of predictions, and shows no more than it may."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest

from calcheck.charts.drawing import draw, svg, vega_lite
from calcheck.charts.picture import JUDGED, MAX_MARKS, Axis, Band, Line
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.inference.metric_protocol import HasCurves
from calcheck.metrics import DECOMPOSITIONS, METRICS
from calcheck.predictions import InMemory
from calcheck.render.data import render_json
from calcheck.render.pictures import EXPECTED, PANELS, answer_picture, metric_picture, metric_pictures
from calcheck.reports import Conclusion, Curve, Report
from calcheck.reports.conclusion import Effect, WidthFactor, WorstRegion
from calcheck.storage.report_json import from_json
from tests.helpers.families import calibrated
from tests.helpers.simulations import slow

FAMILIES = ("gaussian", "samples", "poisson", "quantiles")
DRAWN = [name for name, metric in METRICS.items() if metric.info.conditional or issubclass(metric, HasCurves)]
FEW = Run(curves=True, replicates=39, resamples=200)


def report_of(name, family, *, n=30, run=FEW):
    return evaluate(InMemory(calibrated(family, n=n)), [METRICS[name]()], run=run)


def pictures_of(name, family, **settings):
    """Return the pictures of a metric; none if it does not apply to the family."""
    report = report_of(name, family, **settings)
    assert len(metric_pictures(report)) == len(report.results)
    return metric_pictures(report)


def test_the_pictures_are_those_of_the_metrics_that_the_issue_lists():
    listed = "ece pit coverage ence uce lzms lrce stratified-coverage zms rce cce confidence-curve nll crps"
    assert set(listed.split()) <= set(DRAWN)
    undrawn = {"jmmd", "ammd", "cmmd", "fid", "tail", "width-factor", "pit-independence", *DECOMPOSITIONS}
    assert set(METRICS) - set(DRAWN) == undrawn - {"mean-miscalibration"}


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_every_metric_has_a_picture_of_thirty_rows(family):
    report = evaluate(InMemory(calibrated(family, n=30)), [METRICS[name]() for name in DRAWN], run=FEW)
    assert {"ece", "coverage", "cce"} <= {result.metric for result in report.results}
    for result in report.results:
        picture = metric_picture(report, result)
        assert vega_lite(picture)["concat"]
        assert picture.expected


@pytest.mark.parametrize("name", [slow(name) if place % 2 else name for place, name in enumerate(DRAWN)])
def test_every_picture_is_drawn(name):
    (picture,) = pictures_of(name, "gaussian", run=Run(curves=True, replicates=19, resamples=100))
    assert svg(picture).startswith("<svg")


@pytest.mark.slow
@pytest.mark.parametrize("n", [30, 3000])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", DRAWN)
def test_every_picture_is_drawn_of_every_family(name, family, n):
    for picture in pictures_of(name, family, n=n):
        assert draw(picture, "a.svg")
        assert draw(picture, "a.png")


@pytest.mark.parametrize("name", ["pit", "cce"])
def test_the_same_seed_gives_the_same_picture(name):
    first, again, other = (
        svg(*pictures_of(name, "gaussian", run=Run(curves=True, replicates=39, resamples=0, seed=seed)))
        for seed in (0, 0, 1)
    )
    assert first == again != other


def test_a_report_with_curves_is_the_report_without_them_otherwise():
    """Curves change no number, and reports without curves do not mention them."""
    with_curves, without = (
        json.loads(render_json(report_of("ece", "gaussian", run=Run(curves=curves, replicates=39, resamples=200))))
        for curves in (True, False)
    )
    assert [each["name"] for each in with_curves["results"][0].pop("curves")] == ["reliability"]
    assert with_curves == without


def result_with(curve, metric="ece"):
    """Return a report of a result with a curve, and the result."""
    report = report_of(metric, "gaussian", run=Run(replicates=0, resamples=0))
    return report, replace(report.results[0], curves=(curve,))


def test_the_difference_from_the_level_is_drawn_with_its_band():
    levels = {"x": (0.25, 0.5), "y": (0.5, 0.5), "low": (0.125, 0.25), "high": (0.5, 0.75)}
    shares, differences = metric_picture(*result_with(Curve(name="reliability", **levels))).panels
    assert shares.marks[0] == Band([0.25, 0.5], [0.125, 0.25], [0.5, 0.75], "95 % of perfect models")
    assert differences.marks[0] == Band([0.25, 0.5], [-0.125, -0.25], [0.25, 0.25], "95 % of perfect models")
    assert differences.marks[-1] == Line([0.25, 0.5], [0.25, 0.0], "observed")


def test_cells_outside_the_band_have_a_map_of_their_own():
    """Of four cells, the first is below the band and the last above it; all maps have the same colors and axes."""
    edges = {"x": (0.0, 1, 2, 3), "stop": (1.0, 2, 3, 4), "x2": (0.0,) * 4, "stop2": (1.0,) * 4}
    values = {"y": (1.0, 2, 3, 4), "low": (1.5,) * 4, "high": (3.5,) * 4, "expected": (2.0, 3, 2, 3)}
    curve = Curve(name="map", x_name="a", x2_name="b", rows=(9.0,) * 4, **edges, **values)
    panels = metric_picture(*result_with(curve, "zms")).panels
    assert [panel.title for panel in panels] == ["zms", "perfect models", "outside 95 % of perfect models"]
    shown = [panel.marks[0] for panel in panels]
    assert [np.nan_to_num(cells.value).tolist() for cells in shown] == [[1, 2, 3, 4], [2, 3, 2, 3], [1, 0, 0, 4]]
    assert {(cells.low, cells.high) for cells in shown} == {(1, 4)}
    assert {panel.x for panel in panels} == {Axis("a", low=0, high=4)}


@pytest.mark.parametrize("family", ["cauchy", "poisson", "quantiles"])
def test_every_metric_that_is_computed_has_its_picture(family):
    """Distributions without a standard deviation are sorted by the widths of their intervals."""
    metrics = [METRICS[name]() for name in DRAWN if name != "cce"]
    with_curves, without = (
        evaluate(InMemory(calibrated(family, n=60)), metrics, run=Run(curves=curves, replicates=0, resamples=0))
        for curves in (True, False)
    )
    assert with_curves.skipped == without.skipped
    assert all(result.curves for result in with_curves.results)
    if family == "cauchy":
        assert {curve.x_name for result in with_curves.results for curve in result.curves} == {"", "interval width"}


def test_stored_reports_keep_their_curves():
    report = report_of("cce", "gaussian")
    stored = from_json(Report, json.loads(render_json(report)), "")
    assert stored.results[0].curves == report.results[0].curves
    assert vega_lite(metric_picture(stored, stored.results[0])) == vega_lite(metric_picture(report, report.results[0]))


def test_every_curve_has_a_panel_and_every_picture_its_expectation():
    from typing import get_args

    from calcheck.reports import CurveName

    with_others = {"spread-intervals", "region", "worst", "oracle"}
    assert set(PANELS) == set(get_args(CurveName)) - with_others
    assert set(EXPECTED) <= set(PANELS)


def test_many_rows_have_as_few_marks_as_some():
    for name in ("pit", "zms", "confidence-curve"):
        run = Run(curves=True, replicates=0, resamples=0)
        (picture,) = pictures_of(name, "gaussian", n=200_000, run=run)
        assert len(json.dumps(vega_lite(picture))) < 10 * MAX_MARKS


def test_a_picture_without_replicates_has_no_band_but_the_reason():
    (picture,) = pictures_of("ece", "gaussian", run=Run(curves=True, replicates=0, resamples=0))
    assert "% of perfect models" not in svg(picture)
    assert "no or too few replicates" in picture.expected
    (picture,) = pictures_of("width", "gaussian")
    assert "predictions only" in picture.expected


def drawn(picture):
    """Return all numbers of the marks of a picture."""
    found = [getattr(mark, each.name) for panel in picture.panels for mark in panel.marks for each in fields(mark)]
    return np.array([value for each in found if isinstance(each, list | tuple) for value in each], dtype=float)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_the_numbers_of_a_curve_and_of_its_band_are_those_that_are_drawn(family):
    report = evaluate(InMemory(calibrated(family, n=60)), [METRICS[name]() for name in DRAWN], run=FEW)
    for result in report.results:
        numbers = drawn(metric_picture(report, result))
        for curve in result.curves:
            shown = {"worst": (), "map": (curve.y,)}.get(curve.name, (curve.y, curve.low or (), curve.high or ()))
            values = np.array([value for each in shown for value in each], dtype=float)
            away = np.abs(numbers[:, None] - values[np.isfinite(values)])
            assert np.nanmin(away, axis=0).max(initial=0) < 1e-12, (result.metric, curve.name)


def test_the_picture_of_the_answer_has_the_factors_and_the_errors_beside_the_tolerance():
    effects = (
        Effect(topic="size", value=1.14, low=1.08, high=1.19, within=True, text=""),
        Effect(topic="bias", value=0.02, low=-0.04, high=0.07, within=True, text=""),
        Effect(topic="inputs", kind="scale", value=0.3, low=0.25, within=False, text=""),
        Effect(topic="time", kind="scale", value=-0.1, low=-0.2, text=""),
    )
    factors = (
        WidthFactor(level=0.9, value=1.14, low=1.08, high=1.19),
        WidthFactor(level=0.99, value=1.5, low=1.3, high=None),
    )
    found = Conclusion(answer="no", tolerance=0.2, level=0.9, effects=effects, factors=factors)
    report = replace(
        evaluate(InMemory(calibrated("gaussian", n=30)), [METRICS["zms"]()], run=Run(replicates=39)), conclusion=found
    )
    assert "NO: off by ≥ 25 % along inputs" in answer_picture(report).title
    width, errors = answer_picture(report).panels
    assert width.y.names == ("90 %: ×1.14 (1.08 to 1.19)", "99 %: ×1.50 (1.30 or more)")
    assert errors.y.names == ("bias: +0.02 (-0.04 to +0.07)", "inputs: at least 0.25", "time: none shown")
    assert (width.marks[0].start, width.marks[0].stop) == ([1 / 1.2], [1.2])
    points = {mark.name: (*mark.x, *mark.low, *mark.high) for panel in (width, errors) for mark in panel.marks[2:]}
    within, wrong, neither = JUDGED
    assert points[wrong] == (0.3, 0.25, 0.3)
    assert points[neither] == (0, 0, 0)
    assert points[within] == (0.02, -0.04, 0.07)
    assert (*width.marks[2].x, *width.marks[2].low, *width.marks[2].high) == (1.14, 1.08, 1.19)
    assert width.marks[3].high == (width.x.high,)
    assert width.x.high > 1.5 + 0.03  # the outermost mark is whole
    assert svg(answer_picture(report))
    assert answer_picture(replace(report, conclusion=None)) is None
    place = {"where": "a>7", "filter": "", "rows": 9, "direction": "too-narrow", "p_value": 0.01, "text": ""}
    spans = {"value": 1.6, "low": 1.4, "high": None, "other_value": 0.98, "other_low": 0.9, "other_high": 1.1}
    region = WorstRegion(**place, **spans, level=0.9)
    last = answer_picture(replace(report, region=region)).panels[-1]
    assert (last.title, last.y.names) == (
        "where a>7",
        ("there: ×1.60 (1.40 or more)", "elsewhere: ×0.98 (0.90 to 1.10)"),
    )
    assert [(mark.name, *mark.x, *mark.low) for mark in last.marks[2:]] == [(within, 0.98, 0.9), (wrong, 1.6, 1.4)]
    told = replace(report, region=replace(region, level=None), conclusion=replace(found, answer="yes"))
    last = answer_picture(told).panels[-1]
    assert (last.marks[0].stop, [mark.name for mark in last.marks[2:]]) == ([0.2], [neither])
