"""Documents of recalibration: the methods with their scores, and metrics before and after."""

from collections.abc import Iterator, Sequence

from calcheck.render import document
from calcheck.render.numbers_and_notes import ABSENT, interval, name_with_unit, notes, number, p_value, short
from calcheck.report import Report, Result

NONE = "none"
BEFORE, AFTER = "before", "after"
TITLES = {
    "out of fold": "{}, each row corrected by a fit to the other folds",
    "other rows": "{}, which were not used to fit",
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
    yield from document.note_blocks(notes(report))


def recalibration_tables(report: Report) -> Iterator[document.Block]:
    """Yield the correction, the methods with their scores, and the metrics before and after, with their legend."""
    yield document.Details(tuple(_correction(report)))
    scores = [result for result in report.results if "method" in result.slice]
    if scores:
        table = _methods(scores, str(report.settings["method"]))
        yield table
        yield from document.marks_in([table], ("best", "chosen"))
    groups = dict.fromkeys(str(result.slice["rows"]) for result in report.results if "rows" in result.slice)
    for rows in groups:
        yield _stages([result for result in report.results if result.slice.get("rows") == rows], rows)
    metrics = {result.metric for result in report.results}
    yield document.Legend((*_legend(groups), *([WIDTH_LEGEND] if "width-factor" in metrics else [])))


def _correction(report: Report) -> Iterator[tuple[str, str]]:
    method = str(report.settings["method"])
    yield "method", "none: leave the predictions as they are" if method == NONE else method
    for text in report.settings["steps"]:
        yield "correction", str(text)


def _methods(results: Sequence[Result], chosen: str) -> document.Table:
    """Return the table of the methods with their scores and the paired differences from no change."""
    differences = {result.slice["method"]: result for result in results if "minus" in result.slice}
    means = [result for result in results if "minus" not in result.slice]
    unchanged = next((result.value for result in means if result.slice["method"] == NONE), None)
    rows = []
    for result in means:
        name = str(result.slice["method"])
        paired = differences.get(name)
        texts = (
            (_relative(paired.value, unchanged), interval(paired), p_value(paired))
            if paired is not None
            else (ABSENT, ABSENT, ABSENT)
        )
        rows.append(
            (
                document.Cell(name),
                document.Cell(number(result.number), "best" if name == chosen else ""),
                *document.row_of(*texts),
            )
        )
    score = name_with_unit(means[0])
    columns = (
        document.Column("method"),
        document.Column(f"{score} out of fold", "right", "↓"),
        document.Column("change", "right"),
        document.Column("difference from none", "right", rank=2),
        document.Column("p", "right", rank=1),
    )
    return document.Table(columns, tuple(rows), "methods, by cross-validation", "omit", keys=1, remedy="--format csv")


def _relative(difference: float | None, unchanged: float | None) -> str:
    """Return a difference in percent of the score without a correction."""
    if difference is None or not unchanged:
        return ABSENT
    return f"{100 * difference / abs(unchanged):+.2f} %"


def _stages(results: Sequence[Result], rows: str) -> document.Table:
    """Return the table of metrics before and after the correction."""
    by_stage = {
        stage: {result.metric: result for result in results if result.slice["stage"] == stage}
        for stage in (BEFORE, AFTER)
    }
    stages = [stage for stage, found in by_stage.items() if found]
    names = dict.fromkeys(name for stage in stages for name in by_stage[stage])
    cells = tuple(
        (
            document.Cell(next(name_with_unit(found[name]) for found in by_stage.values() if name in found)),
            *(cell for stage in stages for cell in _stage_cells(by_stage[stage].get(name))),
            document.Cell(_expected(by_stage[stages[-1]].get(name))),
        )
        for name in names
    )
    columns = (
        document.Column("metric"),
        *(column for stage in stages for column in (document.Column(stage, "right"), document.Column("verdict"))),
        document.Column("expected", "right", rank=1),
    )
    return document.Table(columns, cells, TITLES[rows].format(rows), "omit", keys=1, remedy="--format csv")


def _stage_cells(result: Result | None) -> tuple[document.Cell, document.Cell]:
    """Return the value and the verdict of a metric."""
    if result is None:
        return document.Cell(ABSENT), document.Cell(ABSENT)
    return document.Cell(number(result.number), "strong"), document.Cell(result.verdict, result.verdict)


def _expected(result: Result | None) -> str:
    return short(None if result is None else result.reference)


def _legend(groups: dict[str, None]) -> Iterator[str]:
    yield "expected: score of the corrected model on these rows if its distributions are right"
    if "out of fold" in groups:
        yield OUT_OF_FOLD_LEGEND
