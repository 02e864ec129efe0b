"""Pictures of comparisons and of trends."""

from collections.abc import Sequence

from calcheck.charts.picture import Axis, Line, Panel, Picture, Points, Rule
from calcheck.render.metric_pictures import curve, expected_marks, numbers
from calcheck.render.numbers_and_notes import name_with_unit, results_by
from calcheck.reports import Report, Result
from calcheck.studies.compare.document import decompositions, difference_name, is_difference, model_of, with_dataset

BETTER = {"smaller": ", left is better", "larger": ", right is better"}


def comparison_picture(report: Report) -> Picture:
    """Return a panel per data set and metric, with a line per model after the first, and planes of parts of scores."""
    differences = [result for result in report.results if is_difference(result) and result.value is not None]
    first = str(differences[0].slice["minus"]) if differences else ""
    panels: dict[str, list[Result]] = {}
    for result in differences:
        panels.setdefault(with_dataset(result, result.metric), []).append(result)
    return Picture(
        (
            *(_panel(results, first) for results in panels.values()),
            *(_plane(results) for results in decompositions(report).values()),
        ),
        f"Differences from {first}",
        "Where an interval contains 0, the rows show no difference between the models.",
        f"Differences of the metrics of models from those of {first}, with their intervals.",
    )


def _panel(results: Sequence[Result], first: str) -> Panel:
    names = tuple(map(model_of, results))
    places = [float(place) for place in range(len(names))]
    values, low, high = (numbers(getattr(result, side) for result in results) for side in ("value", "low", "high"))
    points = Points(values, places, "", low, high, horizontal=True)
    title = f"{with_dataset(results[0], results[0].metric)}{BETTER.get(results[0].orientation, '')}"
    scale = name_with_unit(results[0]).removeprefix(results[0].metric)
    axis = f"{difference_name(results[0])}{scale} − {first}"
    return Panel((Rule(x=0), points), Axis(axis), Axis(names=names), title)


def _plane(results: Sequence[Result]) -> Panel:
    """Return the plane of miscalibration and discrimination, with a line of equal scores through each model.

    Source: Dimitriadis, Gneiting, Jordan, Vogel (2024), "Evaluating probabilistic classifiers: the triptych".
    """
    x, y = ([result.details[part] for result in results] for part in ("miscalibration", "discrimination"))
    high = max(x)
    lines = [Line([0.0, high], [gain - loss, gain - loss + high], dashed=True) for loss, gain in zip(x, y, strict=True)]
    points = [Points([loss], [gain], model_of(each)) for each, loss, gain in zip(results, x, y, strict=True)]
    scale = name_with_unit(results[0]).removeprefix(results[0].metric)
    title = f"{with_dataset(results[0], results[0].metric)}, dashed: equal scores, better above"
    return Panel(
        (*lines, *points), Axis(f"miscalibration{scale}, left is better", low=0), Axis(f"discrimination{scale}"), title
    )


def trend_picture(report: Report) -> Picture:
    """Return the picture of a series: a panel per metric, with intervals and limits of perfect models."""
    panels = []
    for results in results_by(report.results, "metric").values():
        places = [float(result.slice["at"]) for result in results]
        values, low, high = (numbers(getattr(result, side) for result in results) for side in ("value", "low", "high"))
        if any("deviation" in result.details for result in results):  # Over trials
            spread = [result.details.get("deviation", 0.0) for result in results]
            low, high = ([value + sign * s for value, s in zip(values, spread, strict=True)] for sign in (-1, 1))
        marks = (*expected_marks(results, places), *curve("observed", places, values, (low, high)))
        panels.append(Panel(marks, Axis("position of the file"), Axis(name_with_unit(results[0]))))
    return Picture(
        tuple(panels),
        "Metrics over the series of files",
        "A right model stays within the limits of perfect models; a metric that sees the disturbance leaves them.",
        "Metrics against the position of the file, with their intervals or deviations.",
    )
