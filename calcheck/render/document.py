"""Documents: what a report says to a reader, as plain data that each format renders; and the document of a report."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any, Literal

from calcheck.core.text import format_p, p_text, percent
from calcheck.render import new_inputs
from calcheck.render import numbers_and_notes as words
from calcheck.reports import Conclusion, Gate, Input, OutputConclusion, Overall, Report, Result, rejects
from calcheck.reports.conclusion import Answered, Effect, Power

Emphasis = Literal["", "strong", "best", "second", "pass", "fail", "undecided", "none"]
Mark = tuple[Literal["best", "second"], str]


@dataclass(frozen=True)
class Source:
    """The data of a report: names of the files, and what was read from them."""

    files: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of text."""

    text: str


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    text: str  # Content
    # Meaning that the format shows by a mark, a font or a color: "strong" for the main number, "best" and "second" for
    # ranks, or a verdict
    emphasis: Emphasis = ""
    after: str = ""  # Text after the content, without emphasis
    link: str = ""  # Identifier of the part of a page that explains the content

    @property
    def full_text(self) -> str:
        """The content with the text after it."""
        return self.text + self.after


PURPOSES = {
    "recalibrate": "mend",
    "check": "gate",
    "assert_calibrated": "gate",
    "slices": "where",
    "monitor": "when",
    "evaluate": "test",
}
"""What commands to run next are for, also those of Python."""


@dataclass(frozen=True)
class Answer:
    """A question with its answer, the effects behind it, and commands that show more."""

    question: str
    answer: Cell
    effects: tuple[tuple[str, Cell], ...]  # Topics with their sentences
    commands: tuple[str, ...] = ()  # Commands to run next
    undoes: int = 0  # How many of the first commands undo a cause
    lined: bool = False  # Whether texts have columns, which need letters of one width

    @property
    def purposes(self) -> list[tuple[str, str]]:
        """What each command is for, in a word, with the command: a call of a function in Python."""
        names = [re.match(r"(?:calcheck[. ])?(\w+)", each) for each in self.commands]
        found = [PURPOSES.get(name[1], "look") if name else "look" for name in names]
        return list(zip(["undo"] * self.undoes + found[self.undoes :], self.commands, strict=True))


@dataclass(frozen=True)
class Details:
    """Names with their values as text."""

    items: tuple[tuple[str, str], ...]
    prefix: str = ""  # Before the names, in the identifiers by which links find them; "" for none


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str  # Name of the column
    align: Literal["left", "right"] = "left"  # "left" for text, "right" for numbers
    better: str = ""  # Which values are better: "↓", "↑", "→ 1" or ""
    unit: str = ""  # Unit of the values; "" if they have none
    group: str = ""  # Head above neighboring columns that belong together, such as a data set; "" for none
    # Order in which columns are left out of a table that is too wide: higher ranks first, and within a rank the last
    # column first
    rank: int = 0

    @property
    def scale(self) -> str:
        """Which values are better, and their unit: ``"↓ y"``."""
        return " ".join(part for part in (self.better, self.unit) if part)

    @property
    def head(self) -> str:
        """The name with the scale, on one line."""
        return f"{self.name} {self.scale}" if self.scale else self.name


@dataclass(frozen=True)
class Table:
    """A table."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]  # Rows, with one cell per column
    title: str = ""  # Title above the table
    # What happens to a table that is wider than the page: "fold" wraps its texts, "split" continues it in further
    # tables, "omit" leaves out columns
    overflow: Literal["fold", "split", "omit"] = "fold"
    keys: int = 0  # Number of columns on the left that each of the further tables repeats, and that are never left out
    # How rows with the same first cell are set apart where there is room: "gap" by an empty line, with the cell in the
    # first of them only; "title" in tables of their own, with this cell as the title; "" for no groups
    groups: Literal["", "gap", "title"] = ""
    remedy: str = ""  # Option that shows the columns that are left out
    most: int | None = None  # Maximum number of rows on the first screen; 0 for all, None for those that fit
    sortable: bool = False  # Whether readers of a page can sort the rows by a column


@dataclass(frozen=True)
class Marks:
    """Meaning of the emphasis in the tables above."""

    meanings: tuple[Mark, ...]


@dataclass(frozen=True)
class Legend:
    """Explanations of terms, one per line."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Notes:
    """Notes at the end, such as warnings."""

    lines: tuple[str, ...]


Block = Source | Answer | Paragraph | Details | Table | Marks | Legend | Notes


@dataclass(frozen=True)
class Document:
    """A document."""

    blocks: tuple[Block, ...]  # Content, in order
    calcheck: str = ""  # Version of calcheck that made the report; "" if there is none
    title: str = ""  # Title, for formats with headings; "" for none

    def without_legend(self) -> "Document":
        """Return the document without legends and meanings of marks."""
        return replace(self, blocks=tuple(block for block in self.blocks if not isinstance(block, (Legend, Marks))))


def column_groups(table: Table) -> list[tuple[str, int]]:
    """Return the heads above the columns, each with its number of columns; an empty list if no column has one."""
    runs = [(group, len(list(columns))) for group, columns in groupby(column.group for column in table.columns)]
    return runs if any(group for group, _ in runs) else []


def row_of(*texts: str) -> tuple[Cell, ...]:
    """Return a row of cells without emphasis."""
    return tuple(Cell(text) for text in texts)


def number_columns(*names: str) -> Iterator[Column]:
    """Return columns of numbers."""
    return (Column(name, "right") for name in names)


def column_cells(table: Table) -> list[tuple[Cell, ...]]:
    """Return the cells of each column."""
    return [tuple(row[place] for row in table.rows) for place in range(len(table.columns))]


def shown_rows(table: Table) -> list[tuple[Cell, ...]]:
    """Return the rows; with gaps between groups, the first row of a group has its name and what else they share."""
    if table.groups != "gap" or table.sortable:
        return list(table.rows)
    rows = list(table.rows[:1])
    for above, row in pairwise(table.rows):
        same = [one == other for one, other in zip(above, row, strict=True)][: max(1, table.keys - 1)]
        shared = (*same, False).index(False)
        rows.append((*row_of(*[""] * shared), *row[shared:]))
    return rows


def select_columns(table: Table, places: list[int]) -> Table:
    """Return the table with some of its columns."""
    return replace(
        table,
        columns=tuple(table.columns[place] for place in places),
        rows=tuple(tuple(row[place] for place in places) for row in table.rows),
    )


def by_first_cell(table: Table) -> Iterator[Table]:
    """Yield a table for each group of rows, with the first cell as its title."""
    for first, rows in groupby(table.rows, key=lambda row: row[0].text):
        yield Table(table.columns[1:], tuple(row[1:] for row in rows), first)


def source(read: Input) -> Source:
    """Return the block about the files of a report."""
    names, text = words.describe_input(read)
    return Source(tuple(names), text)


def note_blocks(lines: Sequence[str]) -> tuple[Notes, ...]:
    """Return the block of notes; none without notes."""
    return (Notes(tuple(lines)),) if lines else ()


def marks_in(tables: Sequence[Table], *meanings: Mark) -> tuple[Marks, ...]:
    """Return the block about the marks that tables contain; none without marks."""
    found = {cell.emphasis for table in tables for row in table.rows for cell in row}
    used = tuple((mark, text) for mark, text in meanings if mark in found)
    return (Marks(used),) if used else ()


COLUMNS = (
    Column("metric"),
    Column("value", "right"),
    Column("interval", "right", rank=4),
    Column("expected", "right", rank=3),
    Column("p", "right", rank=2),
    Column("adjusted", "right", rank=1),
    Column("verdict"),
)


def group_table(results: Sequence[Result]) -> Table:
    """Return a table with one line per group and metric."""
    columns = (Column("group"), Column("rows", "right", rank=1), *COLUMNS)
    rows = tuple(_row(result) for result in results)
    return Table(columns, rows, "", "omit", keys=3, groups="gap", remedy="--format csv")


def _row(result: Result) -> tuple[Cell, ...]:
    judged: Emphasis = "strong" if result.verdict != "none" else "none"
    texts = (words.interval(result), words.number(result.reference), words.p_value(result), adjusted(result))
    return (
        *row_of(str(result.slice["group"]), f"{result.slice['rows']:,}"),
        Cell(words.name_with_unit(result)),
        Cell(words.number(result.number), judged),
        *row_of(*texts),
        Cell(result.verdict, result.verdict),
    )


def adjusted(result: Result) -> str:
    """Return the adjusted p-value of a result, unless it is wrong since rows depend on each other."""
    return (
        words.ABSENT
        if result.p_value_adjusted is None or words.is_withheld(result)
        else format_p(result.p_value_adjusted)
    )


OUTCOMES: dict[str, Emphasis] = {"passed": "pass", "violated": "fail", "warned": "undecided", "not judged": "undecided"}
QUESTION = "Can the uncertainties be trusted?"
ANSWERS: dict[str, Emphasis] = {"yes": "pass", "no": "fail", "not-shown": "undecided"}
RANKS = {"change": 5, "p": 1, "expected": 2, "interval": 3, "ζ": 4}
"""Columns that a narrow terminal lacks, the least important with the highest rank."""
# Codes of notes of brief reports
DOUBTS = ("dependent-rows", "ordered-rows", "few-clusters", "assumed-level", "assumed-variance")
SHOWN_POINTS, MOST_POINTS = 9, 12  # Points of a longer curve in a table, and of a curve that is shown in full
NEGLIGIBLE = 1e-4  # relative error below which the error of a detail is not shown
EXPECTED_LEGEND = "expected: score of the model on these rows if its distributions are right"
EQUAL_LEGEND = "expected: score of these rows if both samples have the same distribution"
ZETA_LEGEND = "ζ: distance from the expected score, relative to its limit; within ±1 they agree"
ONE_SIDED_LEGEND = "interval of {names}: two one-sided limits of {percent:g} % each"
DETAILS_LEGENDS = {
    "dof": "dof: effective degrees of freedom of the kernel regression",
    "rejected": "rejected: inputs with significant neighborhoods (--fdr), of at least 0.7 of their median error",
}
"""Explanations of details, by name."""


def report_document(report: Report, *, brief: bool = False) -> Document:
    """Return the document of a report; a brief one has the conclusion, if there is one, and what puts it in doubt."""
    title = f"calcheck: {words.headline(report)}" if report.gates else ""
    return Document(tuple(_blocks(report, brief=brief)), report.calcheck, title)


def _blocks(report: Report, *, brief: bool) -> Iterator[Block]:
    detailed = len(report.results) == 1 and not report.gates and not report.outputs
    yield source(report.input)
    if report.conclusion is not None:
        yield with_region(answer(report.conclusion), report)
        yield from answer_on(report)
        yield from power_tables(report.conclusion)
        if brief:
            if report.gates:
                yield gates_table(report.gates)
            yield from note_blocks(doubts(report))
            return
    if report.gates:
        yield gates_table(report.gates)
    if report.overall is not None:
        yield Paragraph(describe_overall(report.overall, report))
    results = [result for result in report.results if "group" not in result.slice]
    if results:
        yield overview(results)
    yield from _output_blocks(report)
    if groups := [result for result in report.results if "group" in result.slice]:
        yield group_table(groups)
    if detailed:
        yield from _details(report.results[0])
    else:
        yield from extreme_rows(report.results)
    if lines := legend_lines(report, details=detailed):
        yield Legend(tuple(lines))
    yield from note_blocks(words.notes(report))


def _output_blocks(report: Report) -> Iterator[Block]:
    """Yield the answer and the metrics of each of several targets."""
    for name, own in report.of_outputs().items():
        if own.conclusion is not None:
            yield with_region(answer_to(name, own.conclusion, words.terms(own.conclusion)), own)
            yield from power_tables(own.conclusion)
        if own.results:
            yield replace(overview(own.results), title="" if own.conclusion else name)
            yield from extreme_rows(own.results)


def document_of_targets(report: Report, documents: Mapping[str, Document]) -> Document:
    """Return the documents of several targets one after the other, with what they share at the end."""
    blocks: list[Block] = [source(report.input)]
    ends: dict[Block, None] = {}
    for name, own in documents.items():
        named = any(isinstance(each, Answer) for each in own.blocks)
        blocks += [] if named else [Paragraph(name)]
        for each in own.blocks:
            if isinstance(each, (Legend, Marks, Notes)):
                ends[each] = None
            elif not isinstance(each, Source):
                blocks.append(replace(each, question=f"{name}  {each.question}") if isinstance(each, Answer) else each)
    told = report.conclusion.effects if report.conclusion else ()
    blocks += [Details(tuple((each.topic, each.text) for each in told))] if told else []
    return Document((*blocks, *ends), report.calcheck)


def screen_of_targets(report: Report, documents: Mapping[str, Document]) -> Document:
    """Return the first screen of several targets: the answer with a line for each, and tables as far as they fit."""
    answers = {name: each for name, own in documents.items() for each in own.blocks if isinstance(each, Answer)}
    if len(answers) < len(documents):
        return document_of_targets(report, documents)
    told = " · ".join(f"{name} {each.answer.text}" for name, each in answers.items())
    worst = min((each.answer.emphasis for each in answers.values()), key=("fail", "undecided", "pass").index)
    lines = []
    for name, own in answers.items():
        texts = (f"{topic} {each.text}{each.after}" if each.after else each.text for topic, each in own.effects)
        lines.append((name, Cell("; ".join(filter(None, [own.answer.after.lstrip(":, "), *texts])))))
    found = report.conclusion or Conclusion(answer="not-shown", effects=())
    lines += [(each.topic, Cell(each.text, _emphasis(each))) for each in found.effects]
    question = next(iter(answers.values())).question
    blocks = [(name, each) for name, own in documents.items() for each in own.blocks]
    tables = [
        replace(each, title=" · ".join(filter(None, (name, each.title))))
        for name, each in blocks
        if isinstance(each, Table)
    ]
    noted = dict.fromkeys(line for _, each in blocks if isinstance(each, Notes) for line in each.lines)
    answer = Answer(question, Cell(told, worst), tuple(lines), found.next)
    return Document((source(report.input), answer, *tables, *note_blocks([*noted])), report.calcheck)


def doubts(report: Report) -> list[str]:
    """Return the notes without which the answer misleads: rows depend on each other."""
    texts = (message.text for result in report.results for message in result.warnings if message.code in DOUBTS)
    return list(dict.fromkeys(texts))


def answer(conclusion: Conclusion) -> Answer:
    """Return the conclusion, with a line per topic."""
    return answer_to(QUESTION, conclusion, words.terms(conclusion))


def answer_on(report: Report) -> Iterator[Answer]:
    """Yield the answer at new inputs with all that is known about them; nothing if there is none."""
    on = report.conclusion and report.conclusion.on
    if on:
        is_unknown = any(each.value is None for each in on.effects)
        told = answer_to(f"On {new_inputs.name_of(report)}?", on, "" if is_unknown else words.terms(on))
        before, after = ([(name, Cell(text)) for name, text in each] for each in new_inputs.facts(on, report.input.n))
        yield replace(told, effects=(*before, *told.effects, *after))


def with_region(told: Answer, report: Report) -> Answer:
    """Return an answer with the region where the model is worst, if there is one."""
    region = report.region
    return told if region is None else replace(told, effects=(*told.effects, ("where", Cell(region.text, "strong"))))


def output_cell(conclusion: OutputConclusion) -> Cell:
    """Return the answer for one of several targets, and why it is no."""
    told = answer_cell(conclusion, words.terms(conclusion))
    found = [each.text for each in conclusion.effects if each.within is False]
    why = "; ".join([*found, *(f"plausible cause: {text}" for text in words.cause_texts(conclusion))])
    return Cell(". ".join(filter(None, (told.text + told.after, why))), "strong" if why else "")


def answer_to(question: str, conclusion: Answered, after: str = "") -> Answer:
    """Return a conclusion as the answer to a question, with a text after it; local biases as far as there are any."""
    shown = [each for each in conclusion.effects if each.kind != "bias" or (each.low or 0.0) > 0]
    by_topic: dict[tuple[str, int], list[Effect]] = {}
    for place, each in enumerate(shown):
        by_topic.setdefault((each.topic, 0 if each.kind else place), []).append(each)
    outputs = ((each.name, output_cell(each)) for each in getattr(conclusion, "outputs", ()))
    effects = (*outputs, *((topic, _sentences(own)) for (topic, _), own in by_topic.items()))
    effects += tuple(("cause", Cell(text, "strong")) for text in words.cause_texts(conclusion, whole=True))
    if expected := [each for each in conclusion.power if each.sets is None]:
        called = ", and a ".join(f"{each.text} in {percent_of_sets(each)} of data sets" for each in expected)
        effects += (("power", Cell(f"these rows would show a {called}", "none")),)
    return Answer(question, answer_cell(conclusion, after), effects, getattr(conclusion, "next", ()))


def answer_cell(conclusion: Answered, after: str) -> Cell:
    """Return the answer in capitals, with a text after it."""
    return Cell(conclusion.answer.upper().replace("-", " "), ANSWERS[conclusion.answer], after)


def _sentences(effects: Sequence[Effect]) -> Cell:
    """Return the sentences about a topic, as strong as the strongest of them."""
    strengths: list[Emphasis] = [_emphasis(each) for each in effects]
    strongest = min(strengths, key=("strong", "", "none").index)
    return Cell("; ".join(each.text for each in effects), strongest)


def percent_of_sets(power: Power) -> str:
    """Return how often a fault is found, in percent; never 0 or 100, unless it was simulated."""
    share = power.share if power.sets else min(max(power.share, 0.01), 0.99)
    return percent(round(share, 2))


def power_tables(conclusion: Answered) -> Iterator[Table]:
    """Yield the table of what the rows could have shown, if faults were simulated."""
    title = "What these rows could have shown" + (f" about {name}" if (name := getattr(conclusion, "name", "")) else "")
    rows = tuple(row_of(each.text, percent_of_sets(each)) for each in conclusion.power if each.sets)
    if rows:
        yield Table((Column("fault"), Column("answer no", "right")), rows, title)


def _emphasis(effect: Effect) -> Emphasis:
    """Return the emphasis of a sentence: of what makes the answer no, or was not tested."""
    if effect.within is False:
        return "strong"
    return "none" if effect.within is None and effect.value is None else ""


MORE = ". All: --table"  # Where the other metrics are


def describe_overall(overall: Overall, report: Report, *, brief: bool = False) -> str:
    """Return the overall verdict in a sentence; unless ``brief``, with the failures that remain if adjusted."""
    results, confidence = report.results, report.settings["confidence"]
    verdict: str = "no verdict" if overall.verdict == "none" else overall.verdict
    if brief and verdict == "fail" and report.conclusion is not None and report.conclusion.answer != "no":
        beyond, is_shown = "at-level" in report.conclusion.qualifiers, report.conclusion.answer == "yes"
        verdict = "differ, but not in what decides" if beyond else "differ too little for a NO"
        verdict = verdict if is_shown else "differ, size not shown"
    text = f"{len(overall.metrics)} metrics together: {verdict}"
    if "dependence_noticed" in report.settings:
        return text
    text += f", {p_text(overall.p_value)}"
    if overall.verdict == "fail":
        text += f" ({overall.leading})" if brief else f", led by {overall.leading}"
    if brief:
        return f"{text}{MORE}"
    failed = [each for each in results if each.verdict == "fail"]
    adjusted = {each.metric: each.p_value_adjusted for each in failed if each.p_value_adjusted is not None}
    if not adjusted:
        return text
    impossible = {each.metric for each in failed if each.is_impossible}
    remaining = [metric for metric, p in adjusted.items() if metric in impossible or rejects(p, confidence)]
    return f"{text}; {_remaining(remaining, len(adjusted))} after adjustment for their number"


def _remaining(remaining: Sequence[str], failures: int) -> str:
    """Return which failures remain, as the beginning of a clause."""
    if not remaining:
        return "no failure remains"
    if len(remaining) == failures:
        return "every failure remains"
    return f"of {failures} failures, {', '.join(remaining)} remain{'s' * (len(remaining) == 1)}"


def gates_table(gates: Sequence[Gate]) -> Table:
    """Return a table with one line per rule."""
    columns = (Column("rule"), Column("outcome"), Column("found"))
    rows = [
        (Cell(words.condition(gate)), Cell(words.outcome(gate), OUTCOMES[words.outcome(gate)]), Cell(gate.message))
        for gate in gates
    ]
    return Table(columns, tuple(rows))


def overview(results: Sequence[Result], *, whole: bool = False) -> Table:
    """Return a table with one line per result; subsets distinguish results of the same metric."""
    subset = list(dict.fromkeys(name for result in results for name in result.slice))
    changes = any("change" in result.details for result in results)
    numbers = [*subset, "value", *(["change"] if changes else []), "interval", "expected", "ζ", "p"]
    middle = (Column(name, "right", rank=RANKS.get(name, 0)) for name in numbers)
    columns = (Column("metric"), *middle, Column("verdict"))
    rows = tuple(_overview_row(result, subset, changes=changes) for result in results)
    keys = 1 + len(subset)
    groups: Literal["", "gap"] = "gap" if subset else ""
    return Table(columns, rows, "", "omit", keys, groups=groups, remedy="--format csv", most=0 if whole else None)


def _overview_row(result: Result, subset: Sequence[str], *, changes: bool) -> tuple[Cell, ...]:
    deviation = result.details.get("deviation")  # over trials
    return (
        *row_of(result.metric, *(str(result.slice.get(name, "")) for name in subset)),
        Cell(words.number(result.number), "strong", "" if deviation is None else f" ± {words.number(deviation)}"),
        *(row_of(words.number(result.details.get("change"))) if changes else ()),
        *row_of(words.interval(result), words.number(result.reference), _zeta(result), words.p_value(result)),
        Cell(result.verdict, result.verdict, f", {result.direction.replace('-', ' ')}" if result.direction else ""),
    )


def _zeta(result: Result) -> str:
    return words.number(None) if result.zeta is None else f"{result.zeta:.2f}"


def _details(result: Result) -> Iterator[Block]:
    """Yield the summary of a result, its details, and a table for each detail that is a list of rows."""
    yield Paragraph(result.summary)
    if items := tuple(_items(result)):
        yield Details(items)
    for name, value in result.details.items():
        if _is_listed(value):
            yield listed(name, _few(value) if name == "curve" else value)


def extreme_rows(results: Sequence[Result]) -> Iterator[Table]:
    """Yield the rows with the largest and the smallest values of several results, as far as they are asked for."""
    for result in results:
        for name in ("worst", "best"):
            if rows := result.details.get(name):
                yield listed(f"{result.metric}: {name}", rows)


def _few(points: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """Return about nine points of a curve, evenly spaced; all of them are in JSON."""
    step = max(1, (len(points) + 1) // (SHOWN_POINTS + 1))
    return points if len(points) <= MOST_POINTS else points[step - 1 :: step]


def _items(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the details of a result that are no list of rows, with their errors."""
    if reference := _reference(result):
        yield "expected", reference
    for name, value in result.details.items():
        if _is_listed(value) or name.endswith("_error"):
            continue
        error = result.details.get(f"{name}_error")
        uncertain = error and error > NEGLIGIBLE * abs(value)
        shown = _neighborhoods(value) if name == "rejected" else words.in_words(value)
        yield name, shown + (f" ± {words.number(error)}" if uncertain else "")


def _neighborhoods(rejected: dict[str, Any]) -> str:
    """Return how many inputs are rejected: a test at an input is one of its neighborhood."""
    count = f"in the neighborhood of {rejected['count']:,} of {rejected['inputs']:,} inputs"
    rest = {name: value for name, value in rejected.items() if name not in ("count", "inputs")}
    return " · ".join(filter(None, (count, words.in_words(rest))))


def _reference(result: Result) -> str:
    """Return what a perfect model scores on the same rows; an empty string if that is unknown."""
    if result.reference is None:
        return ""
    parts = [f"{words.number(result.reference)}, {'exactly' if result.reference_kind == 'exact' else 'on average'}"]
    low, high = result.reference_low, result.reference_high
    if low is not None and high is not None:
        parts.append(f"mostly from {words.number(low)} to {words.number(high)}")
    elif high is not None:
        parts.append(f"mostly below {words.number(high)}")
    elif low is not None:
        parts.append(f"mostly above {words.number(low)}")
    return " · ".join(parts)


def _is_listed(value: Any) -> bool:
    """Return whether a detail is a list of rows, which is shown as a separate table."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def listed(name: str, rows: Sequence[dict[str, Any]]) -> Table:
    """Return a table of listed rows."""
    columns = tuple(
        Column(key, "right" if all(isinstance(row[key], (int, float)) for row in rows) else "left") for key in rows[0]
    )
    cells = tuple(row_of(*(_cell(row[column.name]) for column in columns)) for row in rows)
    return Table(columns, cells, name, overflow="omit", keys=1, remedy="--format json")


def _cell(value: Any) -> str:
    """Return a cell of a list of rows: floats with four significant digits, integers and keys in full."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return words.number(value) if isinstance(value, float) or value is None else str(value)


def one_sided_lines(report: Report) -> list[str]:
    """Return which intervals have one-sided limits, if any have, one line."""
    found = dict.fromkeys(each.metric for each in report.results if each.interval in ("order-statistics", "t"))
    percent = 100 * report.settings.get("confidence", 0.95)
    return [ONE_SIDED_LEGEND.format(names=" and ".join(found), percent=percent)] if found else []


def legend_lines(report: Report, *, details: bool) -> list[str]:
    """Return the legend of a report, one line for each term that needs an explanation."""
    all_rows = [result for result in report.results if "group" not in result.slice]
    expected = EQUAL_LEGEND if report.input.predictive is None else EXPECTED_LEGEND
    lines = [expected] if any(result.reference is not None for result in report.results) else []
    lines += [words.ADJUSTED_LEGEND] if any("group" in result.slice for result in report.results) else []
    lines += [ZETA_LEGEND] if any(result.zeta is not None for result in all_rows) else []
    lines += one_sided_lines(report)
    return lines + [text for name, text in DETAILS_LEGENDS.items() if details and name in report.results[0].details]
