"""How a metric moves with its settings: tables, and a plot."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

from calcheck.errors import OptionError
from calcheck.render.cells import ABSENT, number, short
from calcheck.render.plot import Curve, Panel, Plot
from calcheck.render.tables import Pivot, pivots_to_markdown, pivots_to_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from calcheck.report import Report, Result

BEST, LEGEND = "*", "* best"
RANKED = 3  # models from which on tau tells more than the mark does
LOG_FROM = 10  # times as much at the last place as at the first, from which on an axis is logarithmic
MOST_PANELS = 12
PERCENT = " %"
NAN = float("nan")


def sweep_to_table(report: Report) -> str:
    """Render a sweep for a terminal of at least 80 columns."""
    return pivots_to_table(report, list(_pivots(report)))


def sweep_to_markdown(report: Report) -> str:
    """Render a sweep in Markdown."""
    return pivots_to_markdown(report, list(_pivots(report)))


def require_few_panels(over: Mapping[str, Sequence[str]], *, all_combinations: bool) -> None:
    """Raise, before the work starts, if a plot would have too many panels.

    Raises
    ------
    OptionError
        It would.
    """
    panels = len(_panels(over, all_combinations=all_combinations))
    if panels > MOST_PANELS:
        msg = f"--plot draws at most {MOST_PANELS} panels, and --vary makes {panels:,}: vary fewer settings"
        raise OptionError(msg)


def sweep_plot(report: Report) -> Plot:
    """Describe a panel for each setting that is varied; of a all_combinations, for each combination of all but the first."""
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
    """List what is on the x-axis of each panel, and what is fixed there."""
    if not all_combinations:
        return [(name, {}) for name in over]
    first, *others = over
    return [(first, dict(zip(others, values, strict=True))) for values in product(*(over[name] for name in others))]


def _places(told: Sequence[str]) -> list[float] | None:
    """Return values as numbers; None where they are words, or of both kinds, rows and shares of rows."""
    if 0 < sum(value.endswith(PERCENT) for value in told) < len(told):
        return None
    try:
        return [float(value.removesuffix(PERCENT)) for value in told]
    except ValueError:
        return None


def _pivots(report: Report) -> Iterator[Pivot]:
    over = report.settings["vary"]
    groups = [list(over)] if report.settings["all_combinations"] else [[name] for name in over]
    *others, last = (_pivot(report, names) for names in groups)
    yield from (*(replace(pivot, legend="") for pivot in others), last)


def _pivot(report: Report, names: Sequence[str]) -> Pivot:
    """Lay out settings as rows and models as columns; the first row is the metric as it is."""
    models = _models(report)
    at = {_key(result): result for result in report.results}
    rows, marked = [], False
    for setting in [{}, *_settings(report, names)]:
        own = [at[_key_of({**model, **setting})] for model in models]
        told = [setting[name] if setting else _default(own[0], name) for name in names]
        cells = [_cell(result) for result in own]
        marked |= any(BEST in cell for cell in cells)
        tau = [_tau(own[0])] if len(models) >= RANKED else []
        rows.append((*told, *cells, *tau))
    head = [model.get("model", "value") for model in models] + (["tau"] if len(models) >= RANKED else [])
    result = report.results[0]
    unit = "" if result.unit == "1" else f" [{result.unit}]"
    title = f"{result.metric}{unit} by {' and '.join(names)}"
    if any("±" in cell for row in rows for cell in row):
        title += f", mean ± standard deviation of {report.settings['subsets']} random subsets"
    return Pivot(title, (*names, *head), tuple(rows), keys=len(names), legend=LEGEND if marked else "")


def _settings(report: Report, names: Sequence[str]) -> list[dict[str, str]]:
    """List what is varied of some names, in order."""
    over = report.settings["vary"]
    return [dict(zip(names, values, strict=True)) for values in product(*(over[name] for name in names))]


def _models(report: Report) -> list[dict[str, str]]:
    """List what tells models apart in subsets: nothing for a single one."""
    return [{"model": name} for name in report.settings.get("models", ())] or [{}]


def _key(result: Result) -> frozenset[tuple[str, Any]]:
    return _key_of(result.slice)


def _key_of(subset: Mapping[str, Any]) -> frozenset[tuple[str, Any]]:
    return frozenset(subset.items())


def _default(result: Result, name: str) -> str:
    """Write what a setting is where it is not varied."""
    if name == "subsample":
        return "all rows"
    value = result.options[name.replace("-", "_")]
    return "default" if value is None else f"{value} (as set)"


def _cell(result: Result) -> str:
    """Write a value, its mark, and its deviation over random subsets."""
    mark = BEST if result.details.get("rank") == 1 else " " if "rank" in result.details else ""
    deviation = result.details.get("deviation")
    return f"{number(result.value)}{mark}" + ("" if deviation is None else f" ± {short(deviation)}")


def _tau(result: Result) -> str:
    tau = result.details["tau"]
    return ABSENT if tau is None else f"{tau:.2f}"
