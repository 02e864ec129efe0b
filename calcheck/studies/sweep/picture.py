"""Picture of sweeps over settings."""

from collections.abc import Mapping, Sequence
from itertools import product

from calcheck.charts.picture import Axis, Mark, Panel, Picture
from calcheck.errors import OptionError
from calcheck.render.metric_pictures import curve, numbers
from calcheck.render.numbers_and_notes import name_with_unit
from calcheck.reports import Report
from calcheck.studies.sweep.document import models_of, slice_key

LOG_FROM = 10  # minimum ratio of the largest to the smallest value for a logarithmic axis
MOST_PANELS = 12  # maximum number of panels in a picture
PERCENT = " %"


def require_few_panels(over: Mapping[str, Sequence[str]], *, all_combinations: bool) -> None:
    """Raise, before computing, if a plot would have too many panels."""
    panels = len(_panels(over, all_combinations=all_combinations))
    if panels > MOST_PANELS:
        msg = f"--plot draws at most {MOST_PANELS} panels, and --vary needs {panels:,}: vary fewer settings"
        raise OptionError(msg)


def sweep_picture(report: Report) -> Picture:
    """Return the picture of a sweep: one panel per setting, or per combination of all settings but the first."""
    panels = _panels(report.settings["vary"], all_combinations=report.settings["all_combinations"])
    metric = report.results[0].metric
    return Picture(
        tuple(_panel(report, name, fixed) for name, fixed in panels),
        f"{metric} by setting",
        "Robust settings: the lines are flat, and their order does not change.",
        f"{metric} against the values of its settings, one line for each model.",
    )


def _panel(report: Report, name: str, fixed: Mapping[str, str]) -> Panel:
    values = report.settings["vary"][name]
    at = {slice_key(result.slice): result for result in report.results}
    known = _numbers(values)
    places = known or list(range(len(values)))
    marks: list[Mark] = []
    for model in models_of(report):
        own = [at[slice_key({**model, name: value, **fixed})] for value in values]
        heights, limits = numbers(result.value for result in own), None
        if any("deviation" in result.details for result in own):  # Over random subsets, or trials
            spread = [result.details.get("deviation", 0.0) for result in own]
            low, high = ([value + sign * s for value, s in zip(heights, spread, strict=True)] for sign in (-1, 1))
            limits = low, high
        marks += curve(model.get("model", ""), places, heights, limits)
    log = known is not None and 0 < LOG_FROM * min(known) <= max(known)
    x_label = f"{name} [%]" if known and values[0].endswith(PERCENT) else name
    x = Axis(x_label, log=log, names=() if known else tuple(values))
    title = ", ".join(f"{other} {value}" for other, value in fixed.items())
    return Panel(tuple(marks), x, Axis(name_with_unit(report.results[0])), title)


def _panels(over: Mapping[str, Sequence[str]], *, all_combinations: bool) -> list[tuple[str, dict[str, str]]]:
    """Return the setting on the x-axis of each panel, and the fixed values of the others."""
    if not all_combinations:
        return [(name, {}) for name in over]
    first, *others = over
    return [(first, dict(zip(others, values, strict=True))) for values in product(*(over[name] for name in others))]


def _numbers(values: Sequence[str]) -> list[float] | None:
    """Return values as numbers; None for text, and for a mix of numbers and percentages of rows."""
    if 0 < sum(value.endswith(PERCENT) for value in values) < len(values):
        return None
    try:
        return [float(value.removesuffix(PERCENT)) for value in values]
    except ValueError:
        return None
