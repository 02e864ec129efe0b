"""Documents and plots of sweeps over settings."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from calcheck.errors import OptionError
from calcheck.render.builders.parts import marks_in, note_blocks, source
from calcheck.render.cells import ABSENT, name_with_unit, notes, number, short
from calcheck.render.document import Block, Cell, Column, Document, Table, row_of
from calcheck.render.plot import Curve, Panel, Plot

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from calcheck.report import Report, Result

RANKED = 3  # minimum number of models for which Kendall's tau is shown
LOG_FROM = 10  # minimum ratio of the largest to the smallest value for a logarithmic axis
MOST_PANELS = 12  # maximum number of panels in a plot
PERCENT = " %"
NAN = float("nan")


def sweep_document(report: Report) -> Document:
    """Return the document of a sweep: the best model of each row is marked."""
    return Document(tuple(_blocks(report)), report.calcheck)


def require_few_panels(over: Mapping[str, Sequence[str]], *, all_combinations: bool) -> None:
    """Raise, before computing, if a plot would have too many panels.

    Raises
    ------
    OptionError
        The plot would have more than ``MOST_PANELS`` panels.
    """
    panels = len(_panels(over, all_combinations=all_combinations))
    if panels > MOST_PANELS:
        msg = f"--plot draws at most {MOST_PANELS} panels, and --vary needs {panels:,}: vary fewer settings"
        raise OptionError(msg)


def sweep_plot(report: Report) -> Plot:
    """Return the plot of a sweep: one panel per setting, or per combination of all settings but the first."""
    over, models = report.settings["vary"], _models(report)
    at = {_key(result): result for result in report.results}
    panels = []
    for name, fixed in _panels(over, all_combinations=report.settings["all_combinations"]):
        numbers = _places(over[name])
        places = numbers or list(range(len(over[name])))
        curves = [
            _curve(
                model.get("model", ""), places, [at[_key_of({**model, name: value, **fixed})] for value in over[name]]
            )
            for model in models
        ]
        panels.append(
            Panel(
                tuple(curves),
                title=", ".join(f"{other} {value}" for other, value in fixed.items()),
                x_label=f"{name} [%]" if numbers and over[name][0].endswith(PERCENT) else name,
                y_label=report.results[0].metric,
                x_log=numbers is not None and 0 < LOG_FROM * min(numbers) <= max(numbers),
                x_names=() if numbers else tuple(over[name]),
            )
        )
    return Plot(tuple(panels))


def _curve(name: str, places: Sequence[float], own: Sequence[Result]) -> Curve:
    values = [NAN if result.value is None else result.value for result in own]
    if not any("deviation" in result.details for result in own):
        return Curve(name, places, values)
    spread = [result.details.get("deviation", 0.0) for result in own]
    low, high = ([value + sign * each for value, each in zip(values, spread, strict=True)] for sign in (-1, 1))
    return Curve(name, places, values, low, high)


def _panels(over: Mapping[str, Sequence[str]], *, all_combinations: bool) -> list[tuple[str, dict[str, str]]]:
    """Return the setting on the x-axis of each panel, and the fixed values of the others."""
    if not all_combinations:
        return [(name, {}) for name in over]
    first, *others = over
    return [(first, dict(zip(others, values, strict=True))) for values in product(*(over[name] for name in others))]


def _places(values: Sequence[str]) -> list[float] | None:
    """Return values as numbers; None for text, and for a mix of numbers and percentages of rows."""
    if 0 < sum(value.endswith(PERCENT) for value in values) < len(values):
        return None
    try:
        return [float(value.removesuffix(PERCENT)) for value in values]
    except ValueError:
        return None


def _blocks(report: Report) -> Iterator[Block]:
    over = report.settings["vary"]
    groups = [list(over)] if report.settings["all_combinations"] else [[name] for name in over]
    tables = [_table(report, names) for names in groups]
    yield source(report.input)
    yield from tables
    yield from marks_in(tables, ("best", "best"))
    yield from note_blocks(notes(report))


def _table(report: Report, names: Sequence[str]) -> Table:
    """Return a table with settings as rows and models as columns; the first row has the unchanged settings."""
    models = _models(report)
    at = {_key(result): result for result in report.results}
    ranked = len(models) >= RANKED
    rows = []
    for setting in [{}, *_settings(report, names)]:
        own = [at[_key_of({**model, **setting})] for model in models]
        values = [setting[name] if setting else _default(own[0], name) for name in names]
        tau = [_tau(own[0])] if ranked else []
        rows.append((*row_of(*values), *map(_cell, own), *row_of(*tau)))
    head = (*names, *(model.get("model", "value") for model in models), *(["tau"] if ranked else []))
    columns = tuple(Column(name, "right") for name in head)
    title = f"{name_with_unit(report.results[0])} by {' and '.join(names)}"
    if any(cell.after for row in rows for cell in row):
        title += f", mean ± standard deviation of {report.settings['subsets']} random subsets"
    return Table(columns, tuple(rows), title, overflow="split", keys=len(names))


def _settings(report: Report, names: Sequence[str]) -> list[dict[str, str]]:
    """Return all combinations of the values of some settings, in order."""
    over = report.settings["vary"]
    return [dict(zip(names, values, strict=True)) for values in product(*(over[name] for name in names))]


def _models(report: Report) -> list[dict[str, str]]:
    """Return the subset of each model; empty for a single model."""
    return [{"model": name} for name in report.settings.get("models", ())] or [{}]


def _key(result: Result) -> frozenset[tuple[str, Any]]:
    return _key_of(result.slice)


def _key_of(subset: Mapping[str, Any]) -> frozenset[tuple[str, Any]]:
    return frozenset(subset.items())


def _default(result: Result, name: str) -> str:
    """Return the unchanged value of a setting as text."""
    if name == "subsample":
        return "all rows"
    value = result.options[name.replace("-", "_")]
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else value
    return "default" if value is None else f"{text} (as set)"


def _cell(result: Result) -> Cell:
    """Return a value, marked if it is the best, with its standard deviation over random subsets."""
    deviation = result.details.get("deviation")
    after = "" if deviation is None else f" ± {short(deviation)}"
    return Cell(number(result.value), "best" if result.details.get("rank") == 1 else "", after)


def _tau(result: Result) -> str:
    tau = result.details["tau"]
    return ABSENT if tau is None else f"{tau:.2f}"
