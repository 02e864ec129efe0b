"""The picture of the answer has its numbers, in the colors of its judgements."""

from dataclasses import replace

from calcheck.charts.drawing import svg
from calcheck.charts.picture import JUDGED
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory
from calcheck.render.answer_picture import answer_picture
from calcheck.reports.conclusion import Conclusion, Effect, WidthFactor
from tests.helpers.families import calibrated


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
    assert width.y.names == ("90 %: 1.14 (1.08–1.19)", "99 %: 1.5 (1.3–∞)")
    assert errors.y.names == ("bias: 0.02 (-0.04–0.07)", "inputs: at least 0.25", "time: none shown")
    assert (width.marks[0].start, width.marks[0].stop) == ([1 / 1.2], [1.2])
    points = {mark.name: (*mark.x, *mark.low, *mark.high) for panel in (width, errors) for mark in panel.marks[2:]}
    within, wrong, neither = JUDGED
    assert points[wrong] == (0.3, 0.25, 0.3)
    assert points[neither] == (0, 0, 0)
    assert points[within] == (0.02, -0.04, 0.07)
    assert (*width.marks[2].x, *width.marks[2].low, *width.marks[2].high) == (1.14, 1.08, 1.19)
    assert width.marks[3].high == (width.x.high,)
    assert svg(answer_picture(report))
    assert answer_picture(replace(report, conclusion=None)) is None
