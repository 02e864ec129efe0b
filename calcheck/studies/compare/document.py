"""Comparisons, and changes between two reports, as documents and pictures."""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from calcheck.charts.picture import Axis, Line, Panel, Picture, Points, Rule
from calcheck.models.best_model import SCORES
from calcheck.models.report_difference import Change, Diff, Unmatched
from calcheck.render import document, new_inputs
from calcheck.render import numbers_and_notes as words
from calcheck.render.pictures import curve, expected_marks, numbers
from calcheck.reports import Report, Result
from calcheck.reports.conclusion import BestModel

RANKS: dict[int, document.Emphasis] = {1: "best", 2: "second"}
MARKED: tuple[document.Mark, ...] = (("best", "best"), ("second", "second"))
PARTS = {"miscalibration": "↓", "discrimination": "↑", "uncertainty": "", "score": "↓"}
"""Parts of a score, miscalibration - discrimination + uncertainty, and which values are better."""
NOT_SHOWN = ("no-interval", "no-verdict", "undecided", "interval-shows-spread")
"""Prefixes of warnings about intervals and verdicts, which the table of values does not show."""


ALL_TARGETS = "all targets"  # Together, beside each of them
QUESTION = "Which model is best?"


def comparison_screen(report: Report) -> Iterator[document.Block]:
    """Yield the first screen of a comparison: which model is best, and a table with a line per metric, scores first."""
    yield document.source(report.input)
    yield from _answer(report)
    order = {name: place for place, name in enumerate(SCORES)}
    rows = tuple(
        (document.Cell(with_dataset(results[0], name)), *(_value(each) for each in results))
        for (_, name), results in sorted(_by_metric(report).items(), key=lambda each: order.get(each[0][1], len(order)))
    )
    columns = (document.Column("metric"), *document.number_columns(*_models(report)))
    values = document.Table(columns, rows, overflow="omit", keys=1, remedy="--table")
    yield values
    yield from document.marks_in([values], *MARKED)
    yield from document.note_blocks(_notes(report))


def _answer(report: Report) -> Iterator[document.Answer]:
    """Yield which model is best, with a line per data set, also at new inputs; nothing if no score says so."""
    if report.best:
        leading = [each for each in report.best if each.dataset == ALL_TARGETS] or report.best
        effects = tuple((each.dataset or each.metric, document.Cell(each.text)) for each in report.best)
        yield document.Answer(QUESTION, _leaders(leading), effects, report.best[0].next)
    if (on := report.on) is not None:
        own = ("best", f"not shown: {on.reason}") if on.best is None else (on.best.metric, on.best.text)
        answers = [(name, new_inputs.answer_text(each)) for name, each in on.models.items()]
        first = next(iter(on.models.values()))
        facts = [("new", new_inputs.rows_text(first)), ("inputs", new_inputs.differ_text(first))]
        facts += [("judged", first.unjudged)] * bool(first.unjudged)
        effects = tuple((name, document.Cell(text)) for name, text in (own, *answers, *facts))
        name = new_inputs.name_of(report)
        yield document.Answer(f"And on {name}?", _leaders([] if on.best is None else [on.best]), effects)


def _leaders(leading: Sequence[BestModel]) -> document.Cell:
    """Return the models that are shown to be best."""
    shown = [each.model for each in leading if any(other.significant for other in each.others)]
    return document.Cell(", ".join(dict.fromkeys(shown)) or "NOT SHOWN", "pass" if shown else "undecided")


def comparison_blocks(report: Report) -> Iterator[document.Block]:
    """Yield the document of a comparison: the best value of each metric is marked, and the second best."""
    yield document.source(report.input)
    yield from _answer(report)
    by_metric = _by_metric(report)
    columns = [
        document.Column(name, "right", _better(results), words.unit(results[0]), dataset)
        for (dataset, name), results in by_metric.items()
    ]
    rows = [
        (document.Cell(model), *(_value(result) for result in own))
        for model, *own in zip(_models(report), *by_metric.values(), strict=True)
    ]
    values = document.Table((document.Column("model"), *columns), tuple(rows), overflow="split", keys=1)
    yield values
    yield from document.marks_in([values], *MARKED)
    yield from (_parts(results) for results in decompositions(report).values())
    yield _differences(report)
    yield from document.note_blocks(_notes(report))


def _value(result: Result) -> document.Cell:
    deviation = result.details.get("deviation")
    after = "" if deviation is None else f" ({words.number(deviation)})"
    return document.Cell(words.number(result.number), RANKS.get(result.details.get("rank", 0), ""), after)


def _parts(results: Sequence[Result]) -> document.Table:
    """Return a table of the parts of a score, with models as rows."""
    scale = words.unit(results[0])
    columns = [document.Column(name, "right", better, scale) for name, better in PARTS.items()]
    rows = [
        document.row_of(model_of(result), *(words.number(result.details[name]) for name in PARTS)) for result in results
    ]
    title = f"parts of the score, {with_dataset(results[0], results[0].metric)}"
    return document.Table((document.Column("model"), *columns), tuple(rows), title)


def _differences(report: Report) -> document.Table:
    """Return a table of the differences from the first model, grouped by data set and model."""
    order = list(dict.fromkeys(with_dataset(result, model_of(result)) for result in report.results))
    found = [result for result in report.results if is_difference(result)]
    found.sort(key=lambda result: order.index(with_dataset(result, model_of(result))))
    rows = []
    for result in found:
        models = with_dataset(result, f"{model_of(result)} − {result.slice['minus']}")
        values = (words.number(result.number), words.interval(result), words.p_value(result))
        rows.append(document.row_of(models, difference_name(result), *values))
    numbers = (document.Column(name, "right", rank=name == "interval") for name in ("value", "interval", "p"))
    columns = (document.Column("difference"), document.Column("metric"), *numbers)
    return document.Table(columns, tuple(rows), groups="title")


def model_of(result: Result) -> str:
    """Return the name of the model of a result."""
    return str(result.slice["model"])


def dataset_of(result: Result) -> str:
    """Return the name of the data set of a result; an empty string if there is only one."""
    return str(result.slice.get("dataset", ""))


def with_dataset(result: Result, text: str) -> str:
    """Return a text with the data set of a result before it, if there are several."""
    return ": ".join(part for part in (dataset_of(result), text) if part)


def _models(report: Report) -> list[str]:
    """Return the names of the models, in order."""
    return list(dict.fromkeys(map(model_of, report.results)))


def is_difference(result: Result) -> bool:
    """Return whether a result is a difference from the first model."""
    return "minus" in result.slice


def difference_name(result: Result) -> str:
    """Return what a difference is of: a metric, or its distance from its ideal value, such as |zms − 1|."""
    ideal = result.details.get("ideal")
    if ideal is None:
        return result.metric
    shown = {words.number(each) for each in ideal}
    if shown == {"0"}:
        return f"|{result.metric}|"
    return f"|{result.metric} − {shown.pop() if len(shown) == 1 else 'reference'}|"


def _by_metric(report: Report) -> dict[tuple[str, str], list[Result]]:
    """Return the results of each data set and metric, one per model."""
    found: dict[tuple[str, str], list[Result]] = {}
    for result in report.results:
        if not is_difference(result):
            found.setdefault((dataset_of(result), result.metric), []).append(result)
    return found


def decompositions(report: Report) -> dict[tuple[str, str], list[Result]]:
    """Return the results of each data set and metric that is a part of a score, one per model."""
    return {name: results for name, results in _by_metric(report).items() if "discrimination" in results[0].details}


def _better(results: Sequence[Result]) -> str:
    """Return an arrow to the better values; the arrow to a number needs it to be the same for all models."""
    if results[0].orientation == "reference":
        references = {words.number(result.reference) for result in results}
        return f"→ {references.pop()}" if len(references) == 1 else "→ reference"
    return {"smaller": "↓", "larger": "↑", "zero": "→ 0"}.get(results[0].orientation, "")


def _notes(report: Report) -> list[str]:
    """Return the notes: each warning once, with its metrics and models unless it applies to all."""
    datasets = list(dict.fromkeys(map(dataset_of, report.results)))
    several = len(_models(report)) > 2  # noqa: PLR2004 - two have one difference
    by_text: dict[str, dict[str, dict[str, list[str]]]] = {}
    for result in report.results:
        for message in result.warnings:
            if is_difference(result) or message.code not in NOT_SHOWN:
                by, called = by_text.setdefault(message.text, {}).setdefault(dataset_of(result), {}), model_of(result)
                if is_difference(result):
                    called = f"difference of {called}" if several else "difference"
                by.setdefault(called, []).append(result.metric)
    lines = []
    for note, found in by_text.items():
        groups = list(found.values())
        shared = list(found) == datasets and all(each == groups[0] for each in groups)
        for dataset, by in ({"": groups[0]} if shared else found).items():
            lines.append(": ".join(part for part in (dataset, _note(report, note, by)) if part))
    return lines + words.skipped_notes(report)


def _note(report: Report, note: str, by: dict[str, list[str]]) -> str:
    """Return a warning with its metrics and models unless it applies to all."""
    metrics = list(by.values())
    if list(by) == _models(report) and all(each == metrics[0] for each in metrics):
        every = {result.metric for result in report.results}
        return note if set(metrics[0]) == every else f"{', '.join(metrics[0])}: {note}"
    return f"{'; '.join(', '.join([model, *names]) for model, names in by.items())}: {note}"


PERCENT = 100
NUMBERS, TEXTS = ("old", "new", "change", "relative"), ("in old interval", "verdict")
VERDICT_RANKS = {"change": 2, "relative": 1}
"""Columns that a narrow terminal lacks, the least important with the highest rank."""
WORSE: dict[str, document.Emphasis] = {"worse": "fail", "not-shown": "", "not-worse": "pass"}
ROUNDING = 1e-9  # Relative difference of equal values, such as those of another machine
SHOWN = 12  # number of characters shown of a SHA-256 hash
FINGERPRINT = 64  # length of a SHA-256 hash in hexadecimal
LONGEST, MOST = 500, 200  # maximum characters per note, and maximum notes; JSON contains all of them


def diff_blocks(diff: Diff) -> Iterator[document.Block]:
    """Yield the document of the changes between two reports."""
    if diff.answers:
        answers = tuple(document.row_of(each.path, _answered(each.old), _answered(each.new)) for each in diff.answers)
        yield document.Table(tuple(map(document.Column, ("", "old", "new"))), answers)
    if diff.worsenings:
        head = (document.Column("if no row is in both"), document.Column("new, before, and whether it is worse"))
        rows = tuple(
            (document.Cell(each.name), document.Cell(each.text, WORSE[each.outcome]))
            for each in sorted(diff.worsenings, key=lambda each: [*WORSE].index(each.outcome))
        )
        yield document.Table(head, rows)
    if diff.changes:
        columns = (
            *(document.Column(name, "right", rank=VERDICT_RANKS.get(name, 0)) for name in NUMBERS),
            *map(document.Column, TEXTS),
        )
        changes = sorted(diff.changes, key=lambda each: (each.old_verdict == each.new_verdict, _is_unchanged(each)))
        yield document.Table(
            (document.Column("metric"), *columns),
            tuple(map(_row, changes)),
            overflow="omit",
            keys=1,
            remedy="--format json",
        )
    yield from document.note_blocks(_diff_notes(diff))


def _answered(answer: str | None) -> str:
    return "no answer" if answer is None else answer.upper().replace("-", " ")


def _is_unchanged(change: Change) -> bool:
    """Return whether values differ by rounding at most."""
    if change.old is None or change.new is None:
        return change.old == change.new
    return math.isclose(change.old, change.new, rel_tol=ROUNDING)


def _row(change: Change) -> tuple[document.Cell, ...]:
    """Return the cells of a change: values, absolute and relative change, whether in the old interval, verdicts."""
    by, relative = "0", "0 %"
    if not _is_unchanged(change) or change.change is None:
        by = words.ABSENT if change.change is None else f"{change.change:+.3g}"
        relative = words.ABSENT if change.relative is None else f"{PERCENT * change.relative:+.3g} %"
    inside = {None: words.ABSENT, True: "yes", False: "no"}[change.inside]
    disjoint = ", intervals disjoint" if change.overlap is False else ""
    texts = document.row_of(
        _report_name(change),
        words.number(change.old),
        words.number(change.new),
        by,
        relative,
        inside + disjoint,
    )
    if change.old_verdict == change.new_verdict:
        return (*texts, document.Cell(change.new_verdict))
    return (*texts, document.Cell(f"{change.old_verdict} → {change.new_verdict}", change.new_verdict))


def _report_name(result: Change | Unmatched, *, options: bool = False) -> str:
    """Return the name of a metric with its subset of rows and, if requested, its options."""
    target = "".join(f"{value} " for name, value in result.slice.items() if name == "target")
    parts = [f"{name} {value}" for name, value in result.slice.items() if name != "target" and value != ""]
    given = {name: value for name, value in result.options.items() if value is not None} if options else {}
    parts += [f"{name} {_option(value)}" for name, value in given.items()]
    subset = f" ({', '.join(parts)})" if parts else ""
    return f"{target}{result.metric}{subset}"


def _option(value: Any) -> str:
    """Return the value of an option as text; lists as on the command line."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _diff_notes(diff: Diff) -> list[str]:
    """Return notes about results in only one of the reports, and about differing input, settings and versions."""
    notes = []
    for where, other, results in (("old", "new", diff.only_old), ("new", "old", diff.only_new)):
        for result in results:
            reason = f"; skipped in the {other} report: {result.reason}" if result.reason else ""
            name = _report_name(result, options=True)
            notes.append(f"only in the {where} report: {name}, {words.number(result.value)}{reason}")
    lacking = [side for side in ("old", "new") if all(getattr(each, side) is None for each in diff.answers)]
    if lacking:
        notes.append(f"no answer in the {' and the '.join(lacking)} report: those of calcheck evaluate have one")
    differs = [f"{each.path}: {_shown(each.old)} → {_shown(each.new)}" for each in diff.differences]
    if not diff.changes and not notes:
        notes.append("neither report contains a result")
    notes += differs or ["input, settings and versions are identical"]
    shown = [note if len(note) <= LONGEST else f"{note[:LONGEST]}…" for note in notes[:MOST]]
    return shown + ([f"… {len(notes):,} notes in total: --format json shows all of them"] if len(notes) > MOST else [])


def _shown(value: Any) -> str:
    """Return the value of a setting as text; a hash is abbreviated."""
    if isinstance(value, str) and len(value) == FINGERPRINT:
        return f"{value[:SHOWN]}…"
    return words.ABSENT if value is None else value if isinstance(value, str) else json.dumps(value)


BETTER = {"smaller": ", left is better", "larger": ", right is better"}


def comparison_picture(report: Report) -> Picture:
    """Return a panel per data set and metric, scores first, with a line per model, and planes of parts of scores."""
    differences = [result for result in report.results if is_difference(result) and result.value is not None]
    differences.sort(key=lambda each: SCORES.index(each.metric) if each.metric in SCORES else len(SCORES))
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
    scale = words.name_with_unit(results[0]).removeprefix(results[0].metric)
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
    scale = words.name_with_unit(results[0]).removeprefix(results[0].metric)
    title = f"{with_dataset(results[0], results[0].metric)}, dashed: equal scores, better above"
    return Panel(
        (*lines, *points), Axis(f"miscalibration{scale}, left is better", low=0), Axis(f"discrimination{scale}"), title
    )


def trend_picture(report: Report) -> Picture:
    """Return the picture of a series: a panel per metric, with intervals and limits of perfect models."""
    panels = []
    for results in words.results_by(report.results, "metric").values():
        places = [float(result.slice["at"]) for result in results]
        values, low, high = (numbers(getattr(result, side) for result in results) for side in ("value", "low", "high"))
        if any("deviation" in result.details for result in results):  # Over trials
            spread = [result.details.get("deviation", 0.0) for result in results]
            low, high = ([value + sign * s for value, s in zip(values, spread, strict=True)] for sign in (-1, 1))
        marks = (*expected_marks(results, places), *curve("observed", places, values, (low, high)))
        panels.append(Panel(marks, Axis("position of the file"), Axis(words.name_with_unit(results[0]))))
    return Picture(
        tuple(panels),
        "Metrics over the series of files",
        "A right model stays within the limits of perfect models; a metric that sees the disturbance leaves them.",
        "Metrics against the position of the file, with their intervals or deviations.",
    )
