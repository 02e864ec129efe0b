"""Documents and pictures of sweeps over settings."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from calcheck.charts.picture import Axis, Mark, Panel, Picture
from calcheck.errors import OptionError
from calcheck.render.document import Block, Cell, Table, marks_in, note_blocks, number_columns, row_of, source
from calcheck.render.numbers_and_notes import ABSENT, name_with_unit, notes, number
from calcheck.render.pictures import curve, numbers
from calcheck.reports import Report, Result

RANKED = 3  # minimum number of models for which Kendall's tau is shown


def sweep_blocks(report: Report) -> Iterator[Block]:
    """Yield the document of a sweep: the best model of each row is marked."""
    over = report.settings["vary"]
    groups = [list(over)] if report.settings["all_combinations"] else [[name] for name in over]
    tables = [_table(report, names) for names in groups]
    yield source(report.input)
    yield from tables
    yield from marks_in(tables, ("best", "best"))
    yield from note_blocks(notes(report))


def _table(report: Report, names: Sequence[str]) -> Table:
    """Return a table with settings as rows and models as columns; the first row has the unchanged settings."""
    models = models_of(report)
    at = {slice_key(result.slice): result for result in report.results}
    ranked = len(models) >= RANKED
    rows = []
    over = report.settings["vary"]
    combinations = product(*(over[name] for name in names))
    for setting in [{}, *(dict(zip(names, values, strict=True)) for values in combinations)]:
        own = [at[slice_key({**model, **setting})] for model in models]
        values = [setting[name] if setting else _default(own[0], name) for name in names]
        tau = own[0].details["tau"] if ranked else None
        taus = [ABSENT if tau is None else f"{tau:.2f}"] if ranked else []
        rows.append((*row_of(*values), *map(_cell, own), *row_of(*taus)))
    head = (*names, *(model.get("model", "value") for model in models), *(["tau"] if ranked else []))
    columns = tuple(number_columns(*head))
    title = f"{name_with_unit(report.results[0])} by {' and '.join(names)}"
    if any(cell.after for row in rows for cell in row):
        subsets = any("subsets" in result.details for result in report.results)
        trials = any("deviation" in result.details and "subsets" not in result.details for result in report.results)
        kinds = {f"of {report.settings['subsets']} random subsets": subsets, "over trials": trials}
        title += f", mean ± standard deviation {' and '.join(kind for kind, used in kinds.items() if used)}"
    return Table(columns, tuple(rows), title, overflow="split", keys=len(names))


def models_of(report: Report) -> list[dict[str, str]]:
    """Return the subset of each model; empty for a single model."""
    return [{"model": name} for name in report.settings.get("models", ())] or [{}]


def slice_key(subset: Mapping[str, Any]) -> frozenset[tuple[str, Any]]:
    """Return the slice of a result as a key."""
    return frozenset(subset.items())


def _default(result: Result, name: str) -> str:
    """Return the unchanged value of a setting as text."""
    if name == "subsample":
        return "all rows"
    if "+" in name:
        return "as set"
    value = result.options[name.replace("-", "_")]
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else value
    return "default" if value is None else f"{text} (as set)"


def _cell(result: Result) -> Cell:
    """Return a value, marked if it is the best, with its standard deviation over random subsets or trials."""
    deviation = result.details.get("deviation")
    after = "" if deviation is None else f" ± {number(deviation)}"
    return Cell(number(result.number), "best" if result.details.get("rank") == 1 else "", after)


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
