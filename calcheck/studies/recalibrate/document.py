"""Documents and pictures of recalibration: the methods with their scores, and metrics before and after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from calcheck.charts.picture import Axis, Line, Mark, Panel, Picture, Points, Rule
from calcheck.core.text import p_text, percent
from calcheck.render import document
from calcheck.render import numbers_and_notes as words
from calcheck.render.pictures import numbers

if TYPE_CHECKING:
    from calcheck.recalibration.methods import RecalibrationMap
    from calcheck.reports import Report, Result

NONE = "none"
FACTOR = "width-factor"
PLACES, METHODS = "by how much 90 % intervals would have to be wider", "methods, by cross-validation"
MOST_METRICS = 1  # Maximum number of metrics of other rows on the first screen
MOST_PLACES = 5  # Maximum number of regions and groups on the first screen
OF_PREDICTIONS = ("cv", "sharpness")  # Metrics that have no verdict
BEFORE, AFTER = "before", "after"
OTHER, NEW = "other rows", "new inputs"
TITLES = {
    "out of fold": "{}, each row corrected by a fit to the other folds",
    OTHER: "{}, which were not used to fit",
    NEW: "{}, as foretold by tested rows",
}
OUT_OF_FOLD_LEGEND = (
    "out of fold: the correction is chosen on these rows, so verdicts pass more easily than on other rows"
)

WIDTH_LEGEND = (
    "width-factor: the ⌈np⌉-th of the factors that n rows need at level p, in ascending order; scale takes the root"
    " mean squared z-score instead, and conformal the ⌈(n + 1)p⌉-th, so the three differ"
)


def recalibration_blocks(report: Report) -> Iterator[document.Block]:
    """Yield the document of a recalibration study, or of a correction that was applied."""
    yield document.source(report.input)
    yield from recalibration_tables(report)
    yield from document.note_blocks(words.notes(report))


def recalibration_screen(report: Report) -> Iterator[document.Block]:
    """Yield the first screen, on which regions and metrics of other rows come before the methods."""
    titles = (OTHER, NEW, PLACES, METHODS)

    def place(table: document.Table) -> int:
        return next((number for number, title in enumerate(titles) if table.title.startswith(title)), len(titles))

    answer, *blocks = recalibration_tables(report)
    tables = sorted((each for each in blocks if isinstance(each, document.Table)), key=place)
    yield from (document.source(report.input), answer)
    most = MOST_PLACES - 2 if any(each.title.startswith(OTHER) for each in tables) else MOST_PLACES
    tables = [
        replace(_without_verdicts(each), most=MOST_METRICS) if each.title.startswith(OTHER) else each for each in tables
    ]
    yield from (replace(each, most=most) if each.title.startswith(PLACES) else each for each in tables)
    told = tuple(each for each in report.results if each.metric not in OF_PREDICTIONS)
    errors = tuple(each for each in report.skipped if each.code != "inapplicable")
    yield from document.note_blocks(words.notes(replace(report, results=told, skipped=errors)))


def _without_verdicts(table: document.Table) -> document.Table:
    """Return a table of metrics without their verdicts: the answer says what is within the tolerance."""
    shown = [place for place, column in enumerate(table.columns) if column.name != "verdict"]
    rows = tuple(tuple(row[place] for place in shown) for row in table.rows)
    return replace(table, columns=tuple(table.columns[place] for place in shown), rows=rows)


def recalibration_tables(report: Report) -> Iterator[document.Block]:
    """Yield the correction, the methods with their scores, and the metrics before and after, with their legend."""
    method = str(report.settings["method"])
    scores = [result for result in report.results if "method" in result.slice]
    told = "none: leave the predictions as they are" if method == NONE else method
    steps = (("correction", str(text)) for text in report.settings["steps"])
    details, after = (("method", told), *steps), next(_answer_after(report), None)
    if scores:
        yield _answer(report)
    elif after is None:
        yield document.Details(details)
    else:
        cells = tuple((name, document.Cell(text)) for name, text in details)
        yield document.Answer(AFTER_QUESTION, after[1], cells, _commands(report))
    if scores:
        table = _methods(scores, method)
        yield table
        yield from document.marks_in([table], ("best", "chosen"))
    places = [result for result in report.results if "group" in result.slice and result.metric == FACTOR]
    if places:
        yield _places(places)
    judged = [result for result in report.results if "rows" in result.slice and "group" not in result.slice]
    groups = dict.fromkeys(str(result.slice["rows"]) for result in judged)
    for rows in groups:
        yield _stages([result for result in judged if result.slice["rows"] == rows], rows)
    legend = ["expected: score of the corrected model on these rows if its distributions are right"]
    if "out of fold" in groups:
        legend.append(OUT_OF_FOLD_LEGEND)
    if any(result.metric == "width-factor" for result in report.results):
        legend.append(WIDTH_LEGEND)
    yield document.Legend(tuple(legend))


QUESTION, AFTER_QUESTION = "Does a correction help?", "Can the corrected uncertainties be trusted?"
ANSWERS: dict[str, document.Emphasis] = {"yes": "pass", "no": "fail", "not-shown": "undecided"}


def _relative(difference: float | None, unchanged: float | None) -> str:
    """Return a difference in percent of the score without a correction."""
    return words.ABSENT if difference is None or not unchanged else _percent(100 * difference / abs(unchanged))


def _percent(change: float) -> str:
    return f"{change:+.2f} %" if abs(change) < 10 else f"{change:+.3g} %"  # noqa: PLR2004 - digits


def _answer(report: Report) -> document.Answer:
    """Return whether a correction helps: the chosen one, and by how much its score is better out of fold."""
    if (found := report.settings.get("change")) is None:
        told = document.Cell("NO", "pass", ": leave the predictions as they are")
    else:
        value, low, high = (_percent(found[name]) for name in ("percent", "percent_low", "percent_high"))
        change = f"{report.settings['score']} {value} ({low.removesuffix(' %')} to {high}) out of fold"
        answer = found["helps"].upper().replace("-", " ")
        told = document.Cell(answer, ANSWERS[found["helps"]], f": {report.settings['method']}, {change}")
    counted = report.settings.get("effective_rows")
    told_rows = [] if counted is None else [("rows", f"{counted:,.0f} of {report.input.n:,} tested rows count there")]
    steps = [(name, document.Cell(text)) for name, text in told_rows]
    steps += [("correction", document.Cell(str(text))) for text in report.settings["steps"]]
    if "searched" in report.settings:
        steps.append(_left(report))
    return document.Answer(QUESTION, told, (*steps, *_answer_after(report)), _commands(report))


def _answer_after(report: Report) -> Iterator[tuple[str, document.Cell]]:
    """Yield the answer about the corrected rows, with by how much intervals would have to be wider."""
    if (found := report.conclusion) is None or found.tolerance is None:
        return
    sizes = [
        words.factor((each.value, each.low, each.high)) for each in found.effects if each.topic == "size" and each.value
    ]
    is_other = any(each.slice.get("rows") == OTHER for each in report.results)
    within = f", within {percent(found.tolerance, 1)}" if found.answer == "yes" else words.terms(found)
    told = "".join([within, *(f", {each}" for each in sizes)])
    told += " on other rows" if is_other else " out of fold"
    yield "then", document.answer_cell(found, told)


def _commands(report: Report) -> tuple[str, ...]:
    return () if report.conclusion is None else report.conclusion.next


def _left(report: Report) -> tuple[str, document.Cell]:
    """Return what the search for regions finds after the correction."""
    left = report.settings["left"]
    if left is None:
        return "left", document.Cell(f"no wrong region was found in {', '.join(report.settings['searched'])}", "pass")
    text = f"{left['group']} ({left['rows']:,} rows): {left['direction'].replace('-', ' ')}, {p_text(left['p_value'])}"
    return "left", document.Cell(text, "fail")


def _places(results: Sequence[Result]) -> document.Table:
    """Return the table of the factors that regions and groups need, before and after the correction."""
    by_place: dict[str, dict[str, Result]] = {}
    for each in results:
        by_place.setdefault(str(each.slice["group"]), {})[str(each.slice["stage"])] = each
    rows = []
    for label, own in by_place.items():
        factors = [words.factor((own[stage].value, own[stage].low, own[stage].high)) for stage in (BEFORE, AFTER)]
        rows.append(document.row_of(label, f"{own[BEFORE].slice['n']:,}", *factors))
    columns = (document.Column("where"), *document.number_columns("rows", BEFORE, AFTER))
    return document.Table(columns, tuple(rows), f"{PLACES}, out of fold", "omit", keys=1, remedy="--format csv")


def _methods(results: Sequence[Result], chosen: str) -> document.Table:
    """Return the table of the methods with their scores and the paired differences from no change."""
    differences = {result.slice["method"]: result for result in results if "minus" in result.slice}
    means = [result for result in results if "minus" not in result.slice]
    unchanged = next((result.value for result in means if result.slice["method"] == NONE), None)
    rows = []
    for result in means:
        name = str(result.slice["method"])
        paired = differences.get(name)
        change = words.ABSENT
        if paired is not None:
            change = _relative(paired.value, unchanged)
        texts = (words.ABSENT, words.ABSENT) if paired is None else (words.interval(paired), words.p_value(paired))
        score = document.Cell(words.number(result.number), "best" if name == chosen else "")
        rows.append((document.Cell(name), score, *document.row_of(change, *texts)))
    columns = (
        document.Column("method"),
        document.Column(f"{words.name_with_unit(means[0])} out of fold", "right", "↓"),
        document.Column("change", "right"),
        document.Column("difference from none", "right", rank=2),
        document.Column("p", "right", rank=1),
    )
    return document.Table(columns, tuple(rows), METHODS, "omit", keys=1, remedy="--format csv")


def _stages(results: Sequence[Result], rows: str) -> document.Table:
    """Return the table of metrics before and after the correction."""
    by_stage = {
        stage: {result.metric: result for result in results if result.slice["stage"] == stage}
        for stage in (BEFORE, AFTER)
    }
    stages = [stage for stage, found in by_stage.items() if found]
    names = dict.fromkeys(name for stage in stages for name in by_stage[stage])
    cells = []
    for name in names:
        found = [by_stage[stage].get(name) for stage in stages]
        row = [document.Cell(next(words.name_with_unit(each) for each in found if each is not None))]
        for each in found:
            row += (
                document.row_of(words.ABSENT, words.ABSENT)
                if each is None
                else (document.Cell(words.number(each.number), "strong"), document.Cell(each.verdict, each.verdict))
            )
        last = found[-1]
        cells.append((*row, document.Cell(words.number(None if last is None else last.reference))))
    columns = (
        document.Column("metric"),
        *(column for stage in stages for column in (document.Column(stage, "right"), document.Column("verdict"))),
        document.Column("expected", "right", rank=1),
    )
    return document.Table(columns, tuple(cells), TITLES[rows].format(rows), "omit", keys=1, remedy="--format csv")


def recalibration_picture(report: Report, found: RecalibrationMap) -> Picture:
    """Return the picture of a recalibration study, or of a correction that was applied."""
    return Picture(
        tuple(_panels(report, found)),
        f"Recalibration: {found.method}",
        "A correction that helps lies left of 0; after it, the quantile reliability lies near 0.",
        "Change of the score by each method with its interval, quantile reliability before and after, and the"
        f" correction: {'; '.join(found.texts) or 'none'}.",
    )


def _panels(report: Report, found: RecalibrationMap) -> Iterator[Panel]:
    differences = [result for result in report.results if result.slice.get("minus") and "method" in result.slice]
    if differences:
        yield _choice(differences, found.method)
    groups = dict.fromkeys(str(result.slice["rows"]) for result in report.results if "rows" in result.slice)
    for rows in groups:
        same = [result for result in report.results if result.slice.get("rows") == rows and result.metric == "ece"]
        if curves := [result for result in same if "curve" in result.details]:
            marks: list[Mark] = [Rule(y=0)]
            for result in curves:
                points = result.details["curve"]
                gaps = [point["observed"] - point["level"] for point in points]
                marks.append(Line([point["level"] for point in points], gaps, str(result.slice["stage"])))
            yield Panel(tuple(marks), Axis("level"), Axis("share below − level"), f"quantile reliability, {rows}")
    for step in found.steps:
        for curve in step.curves():
            ends = [float(curve.x[0]), float(curve.x[-1])]
            unchanged = Line(ends, ends, dashed=True) if curve.unchanged is None else Rule(y=curve.unchanged)
            line = Line(curve.x.tolist(), curve.y.tolist(), "correction")
            yield Panel((unchanged, line), Axis(curve.x_label), Axis(curve.y_label), step.kind)


def _choice(differences: Sequence[Result], chosen: str) -> Panel:
    """Return the panel of the changes of the score, one line per method."""
    names = tuple(
        f"{result.slice['method']}{' (chosen)' if result.slice['method'] == chosen else ''}" for result in differences
    )
    values, low, high = (numbers(getattr(result, side) for result in differences) for side in ("value", "low", "high"))
    places = [float(place) for place in range(len(names))]
    points = Points(values, places, "", low, high, horizontal=True)
    label = f"change of {words.name_with_unit(differences[0])}"
    return Panel((Rule(x=0), points), Axis(label), Axis(names=names), "methods, out of fold")
