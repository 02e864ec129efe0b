"""Documents in every format: each text is shown, and no text is more than text."""

import re
from html.parser import HTMLParser

import pytest

from calcheck.render import FORMATS
from calcheck.render.document import (
    Cell,
    Column,
    Details,
    Document,
    Legend,
    Marks,
    Notes,
    Paragraph,
    Source,
    Table,
    describe_overall,
    row_of,
    select_columns,
)
from calcheck.render.markdown import escape as markdown_escaped
from calcheck.render.numbers_and_notes import terms
from calcheck.reports import Conclusion, Input, Overall, Report

DOCUMENT_FORMATS = [name for name, known in FORMATS.items() if not known.data]
HOSTILE = (
    "=cmd()|\"&'",
    "<script>alert(1)</script>",
    "<!-- --> ]]> <![CDATA[ </style></title>",
    "a\n::error::b\r\n| c | d |",
    "\x1b[2J\x1b]0;title\x07",
    "\x00\x08\ufffe\ud800\u2028\u202e",
    "[a](javascript:b) *c* _d_ `e` @octocat #1 ~f~ ![g](h)",
    "&lt;&#x1b;&amp;",
    "[bold red]markup[/bold red]",
    r"\input{/etc/passwd} \end{tabular} \\",
    "50%_$x$ & y # ~^",
    "`?'---``! – ζ模型 Modèle",
    "[1ex] * -1e-05",
)


@pytest.fixture
def page(monkeypatch):
    """Set the width of the page."""

    def set_width(width):
        monkeypatch.setattr("calcheck.render.terminal.page_width", lambda: width)
        monkeypatch.setattr("calcheck.render.terminal.page_width", lambda: width)

    return set_width


def rendered(document, name):
    return FORMATS[name].renderer()(document)


def document_of(text):
    """Return a document with a text in every place that takes one."""
    columns = (Column(text), Column(text, "right", better=text, unit=text, group=text))
    rows = (
        (Cell(text), Cell(text, "best", text)),
        (Cell(text), Cell(text, "second")),
        (Cell(text, "fail"), Cell(text, "strong")),
    )
    tables = [
        Table(columns, rows, text, overflow=overflow, keys=1, groups=groups)
        for overflow, groups in (("fold", "gap"), ("split", ""), ("omit", ""), ("fold", "title"))
    ]
    marks = Marks((("best", text), ("second", text)))
    around = (Source((text, text), text), Paragraph(text), Details(((text, text),)), *tables, marks)
    return Document((*around, Legend((text,)), Notes((text,))), text, text)


def values(n_columns=2, **settings):
    """Return a document with a table of models and metrics."""
    columns = [Column("model"), *(Column(f"m{place}", "right", "↓", "y^2") for place in range(n_columns))]
    rows = [
        (Cell("a"), *[Cell("-1.5e-05", "best", " ± 0.1")] * n_columns),
        (Cell("b"), *[Cell("0.25", "second")] * n_columns),
        (Cell("c"), *[Cell("[-0.1, 2]")] * n_columns),
    ]
    marks = Marks((("best", "best"), ("second", "second")))
    return Document((Table(tuple(columns), tuple(rows), **settings), marks), "0.1.0")


def controls(text):
    """Return the characters of a text that could steer a terminal or end a line."""
    return {character for character in text if not character.isprintable()} - {"\n"}


@pytest.mark.parametrize("name", DOCUMENT_FORMATS)
def test_every_text_of_a_document_is_shown(name):
    columns = (Column("head"), Column("number", "right", "↑", "unit"))
    document = Document(
        (
            Source(("file", "other"), "read"),
            Paragraph("paragraph"),
            Details((("detail", "setting"),)),
            Table(columns, ((Cell("text", "pass"), Cell("1", "best", "after")),), "caption"),
            Marks((("best", "meaning"),)),
            Legend(("legend",)),
            Notes(("note",)),
        ),
        "0.1.0",
    )
    text = rendered(document, name)
    words = "file other read paragraph detail setting head number unit text after caption meaning legend note"
    assert [word for word in words.split() if word not in text] == []


@pytest.mark.parametrize("name", DOCUMENT_FORMATS)
def test_without_legend_the_rest_is_shown(name):
    blocks = (Paragraph("paragraph"), Marks((("best", "meaning"),)), Legend(("explanation",)), Notes(("note",)))
    text = rendered(Document(blocks, "0.1.0").without_legend(), name)
    assert "paragraph" in text
    assert "note" in text
    assert not {word for word in ("meaning", "explanation") if word in text}


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("name", DOCUMENT_FORMATS)
def test_no_text_controls_a_terminal_or_adds_a_line(name, text):
    shown = rendered(document_of(text), name)
    assert not controls(shown)
    shown.encode()
    if name != "table":  # a terminal wraps lines
        assert len(shown.splitlines()) == len(rendered(document_of("x"), name).splitlines())


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_is_markup_in_markdown(text):
    shown = re.sub(r"\*\*(.*?)\*\*", r"\1", rendered(document_of(text), "markdown"))
    shown = re.sub(r"</?ins>", "", shown)
    for line in shown.splitlines():
        assert not re.search(r"[<>@]|&(?!lt;|gt;|amp;|#64;)", line)
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 3
        assert not re.search(r"(?<!\\)(?:\\\\)*[*_`~]|(?<!\\)(?:\\\\)*[\[\]](?=\()", line.replace("&#64;", ""))


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_is_a_command_in_latex(text):
    """Groups are closed, cells stay apart, and there are no commands but those of the format."""
    shown = rendered(document_of(text), "latex")
    typeset = "\n".join(line for line in shown.splitlines() if not line.startswith("%"))
    commands = r"begin|end|multicolumn|toprule|midrule|cmidrule|bottomrule|textbf|boldmath|underline|times|zeta|pm"
    escapes = r"text(?:backslash|asciitilde|asciicircum|less|greater|bar|superscript|tt)"
    assert set(re.findall(r"\\([a-zA-Z]+)", typeset)) <= {
        each for each in re.findall(r"\\([a-zA-Z]+)", typeset) if re.fullmatch(f"{commands}|{escapes}", each)
    }
    assert len(re.findall(r"(?<!\\)\{", typeset)) == len(re.findall(r"(?<!\\)\}", typeset))
    rows = [line for line in typeset.splitlines() if line.endswith(r" \\") and not line.startswith(r"\multicolumn")]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in rows} == {1}
    assert typeset.count(r"\begin{tabular}") == typeset.count(r"\end{tabular}") == 4
    assert not re.search(r"(?<!\\)%", typeset)


class Elements(HTMLParser):
    """Collects the tags of a page, its attributes, and its text."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text.append(data)

    def handle_comment(self, _):
        self.tags.append("comment")


def elements_of(text):
    parser = Elements()
    parser.feed(rendered(document_of(text), "html"))
    parser.close()
    return parser


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_is_an_element_in_html(text):
    """A page has the same elements and classes for every text, and shows the text as it is."""
    found, plain = elements_of(text), elements_of("x")
    assert found.tags == plain.tags
    classes = [value for name, value in found.attributes if name == "class"]
    assert classes == [value for name, value in plain.attributes if name == "class"]
    assert not {"script", "comment", "a", "img"} & set(found.tags)
    if text.isprintable():
        assert "".join(found.text).count(text) >= plain.text.count("x")


def test_an_html_page_loads_nothing():
    page = rendered(document_of("x"), "html")
    assert "http://" not in page
    assert "https://" not in page
    assert "src=" not in page
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'\"" in page


def test_html_marks_values_by_classes():
    page = rendered(values(1, title="caption"), "html")
    assert "<caption>caption</caption>" in page
    assert '<td class="right"><span class="best">-1.5e-05</span> ± 0.1</td>' in page
    assert '<td class="right"><span class="second">0.25</span></td>' in page
    assert '<span class="best">bold: best</span> · <span class="second">underlined: second</span>' in page


def test_a_terminal_marks_the_best_and_keeps_numbers_aligned():
    lines = rendered(values(), "table").splitlines()
    assert lines[1].split() == ["model", *["↓", "y^2"] * 2]
    assert lines[3].split()[:2] == ["a", "-1.5e-05*"]
    assert lines[4].endswith("0.25+")
    assert lines[5].endswith("[-0.1, 2]")
    assert lines[-1] == "* best · + second"


@pytest.mark.parametrize(("width", "parts"), [(60, 4), (80, 3), (100, 3)])
def test_a_terminal_splits_wide_tables_and_repeats_the_keys(page, width, parts):
    page(width)
    text = rendered(values(12, overflow="split", keys=1), "table")
    assert text.count("model") == parts
    assert all(f"m{place}" in text for place in range(12))
    assert all(len(line) <= width for line in text.splitlines())


@pytest.mark.parametrize(("width", "heads"), [(60, ["one", "one two", "two"]), (200, ["one two"])])
def test_groups_of_columns_have_their_head_in_each_part_of_a_table(page, width, heads):
    """Ten columns of 11 characters, five in each group; a line of 60 characters takes four beside the keys."""
    page(width)
    names = [f"column{place:>5}" for place in range(10)]
    columns = [Column(name, "right", group="one" if place < 5 else "two") for place, name in enumerate(names)]
    table = Table((Column("model"), *columns), (row_of("a", *"0123456789"),), overflow="split", keys=1)
    lines = rendered(Document((table,)), "table").splitlines()
    assert [" ".join(line.split()) for line in lines if set(line.split()) & {"one", "two"}] == heads


def test_texts_are_wrapped_before_a_head_is_cut(page):
    """The texts of the second column would not become narrower by wrapping, as one word is as long as the longest."""
    page(60)
    columns = (Column("group"), Column("metric"), *(Column(f"number {place}", "right") for place in "123"))
    rows = [
        row_of("a>1 and a<=22", "bias [y]", *["1"] * 3, "pass"),
        row_of("a>22", "dispersion", *["2"] * 3, "fail"),
    ]
    table = Table((*columns, Column("verdict")), tuple(rows), overflow="omit", keys=3)
    lines = rendered(Document((table,)), "table").splitlines()
    assert lines[0].split()[-1] == "verdict"
    assert [line.split()[0] for line in lines[2:5]] == ["a>1", "a<=22", "a>22"]


@pytest.mark.parametrize(("width", "shown"), [(60, 3), (80, 4), (100, 5)])
def test_a_terminal_counts_the_columns_it_omits(page, width, shown):
    """A column takes 15 characters with its mark, and 2 for the gap: 7 + 17 k - 2 characters for k columns."""
    page(width)
    text = rendered(values(12, overflow="omit", keys=1, remedy="--format json"), "table")
    assert text.count("model") == 1
    assert f"m{shown - 1}" in text
    assert f"m{shown}" not in text
    assert f"\n… {12 - shown} columns more: --format json\n" in text
    first = values(12, overflow="omit", keys=1, remedy="--format json")
    assert f"\n… {12 - shown} columns more: --format json\n" in FORMATS["table"].renderer()(first, "screen")
    assert all(len(line) <= width for line in text.splitlines())
    assert "m11" in rendered(values(12, overflow="omit"), "markdown")


def test_columns_with_higher_ranks_are_omitted_first(page):
    """Three columns of 20 characters and two gaps take 64: one has to go."""
    page(60)

    def shown(*ranks):
        columns = tuple(Column(f"c{place}", rank=rank) for place, rank in enumerate(ranks))
        table = Table(columns, (row_of(*["x" * 20] * 3),), overflow="omit", keys=1, remedy="--format csv")
        lines = rendered(Document((table,)), "table").splitlines()
        return lines[0].split(), lines[-1]

    assert shown(0, 0, 0) == (["c0", "c1"], "… 1 column more: --format csv")
    assert shown(0, 1, 0)[0] == ["c0", "c2"]
    assert shown(0, 1, 2)[0] == ["c0", "c1"]
    assert shown(9, 1, 1)[0] == ["c0", "c1"]  # a key is never left out


def test_texts_are_wrapped_at_words_before_columns_are_omitted(page):
    page(60)
    texts = ("short text of several words", "number", "another text of several words")
    table = Table(tuple(map(Column, "abc")), (row_of(*texts), row_of("one", "1.5", "two")), overflow="omit", keys=1)
    text = rendered(Document((table,)), "table")
    assert "more" not in text
    assert all(len(line) <= 60 for line in text.splitlines())
    assert all(word in text.split() for words in texts for word in words.split())


def test_a_terminal_shows_groups_apart_or_under_titles():
    rows = (row_of("a", "1"), row_of("a", "2"), row_of("b", "3"))
    apart, titled = (
        rendered(Document((Table((Column("group"), Column("n")), rows, groups=groups),), ""), "table").splitlines()
        for groups in ("gap", "title")
    )
    assert [line.split() for line in apart[2:]] == [["a", "1"], ["2"], [], ["b", "3"]]
    assert [line.strip("─") for line in titled] == ["a", "n", "", "1", "2", "", "b", "n", "", "3"]


def test_markdown_has_the_best_bold_and_the_second_underlined():
    assert rendered(values(1), "markdown").splitlines() == [
        "| model | m0 ↓ y^2 |",
        "| --- | ---: |",
        "| a | **-1.5e-05** ± 0.1 |",
        "| b | <ins>0.25</ins> |",
        "| c | [-0.1, 2] |",
        "",
        "**bold**: best · <ins>underlined</ins>: second",
    ]


def test_brackets_in_markdown_are_plain_around_numbers_only():
    assert markdown_escaped("[a](b)") == r"\[a\](b)"
    document = Document((Table((Column("x"),), (row_of("[1, 2]"), row_of("[1](b)"))),), "")
    assert rendered(document, "markdown").splitlines()[2:] == ["| [1, 2] |", r"| \[1\](b) |"]


def test_latex_typesets_numbers_and_units():
    assert rendered(values(1, title="a_b"), "latex").splitlines() == [
        r"% \usepackage{booktabs}; calcheck 0.1.0",
        "",
        r"\begin{tabular}{lr}",
        r"\multicolumn{2}{l}{a\_b} \\",
        r"\toprule",
        r"model & m0 $\downarrow$ {[}y\textsuperscript{2}{]} \\",
        r"\midrule",
        r"a & \textbf{\boldmath $-1.5 \times 10^{-5}$} $\pm$ 0.1 \\",
        r"b & \underline{0.25} \\",
        r"c & {[}$-0.1$, 2{]} \\",
        r"\bottomrule",
        r"\end{tabular}",
        "% bold: best",
        "% underlined: second",
    ]


def test_latex_splits_tables_after_eight_columns_of_numbers():
    text = rendered(values(10, overflow="split", keys=1), "latex")
    assert re.findall(r"\\begin\{tabular\}\{(\w+)\}", text) == ["lrrrrrrrr", "lrr"]


GROUPED = Table(
    (Column("group"), Column("rows", "right"), Column("metric"), Column("value", "right")),
    tuple(row_of(*each.split()) for each in ("a 5 zms 1", "a 5 rce 0", "b 5 zms 1", "b 7 zms 1", "b 7 rce 1")),
    keys=3,
    groups="gap",
)


@pytest.mark.parametrize(
    ("name", "pattern"),
    [("markdown", r"^\| (?!---)(.*) \|$"), ("latex", r"^(?!\\)(.*) \\\\$"), ("html", r"<tr>(.*)</tr>")],
)
def test_groups_are_named_in_their_first_row_only(name, pattern):
    """The number of rows is repeated where it differs, or the group does; metrics and values always are."""
    text = rendered(Document((GROUPED,), ""), name)
    lines = [re.split(r" ?\| ?| & |(?:</t.><t..*?>)", each) for each in re.findall(pattern, text, re.MULTILINE)]
    cells = [[re.sub(r"<.*?>", "", cell).strip() for cell in line] for line in lines]
    assert cells[-5:] == [
        ["a", "5", "zms", "1"],
        ["", "", "rce", "0"],
        ["b", "5", "zms", "1"],
        ["", "7", "zms", "1"],
        ["", "", "rce", "1"],
    ]


def test_groups_are_named_in_their_first_row_only_in_a_terminal(page):
    page(100)
    lines = rendered(Document((GROUPED,), ""), "table").splitlines()
    assert [line.split() for line in lines[2:]] == [
        ["a", "5", "zms", "1"],
        ["rce", "0"],
        [],
        ["b", "5", "zms", "1"],
        ["7", "zms", "1"],
        ["rce", "1"],
    ]


def test_heads_of_numbers_continue_after_a_hyphen_before_columns_are_omitted(page):
    """Two heads of 23 characters and 20 of the key take 70 with the gaps; halves of at most 15 take 54."""
    page(60)
    names = ("quantile-miscalibration", "no", "interval-quantile-score")
    columns = (Column("key"), *(Column(name, "right") for name in names))
    table = Table(columns, (row_of("x" * 20, "1", "2", "3"),), overflow="omit", keys=1, remedy="--format csv")
    lines = rendered(Document((table,)), "table").splitlines()
    assert lines[0].split() == ["quantile-", "interval-"]
    assert lines[1].split() == ["key", "miscalibration", "no", "quantile-score"]
    assert lines[-1].split() == ["x" * 20, "1", "2", "3"]
    page(100)
    assert rendered(Document((table,)), "table").splitlines()[0].split() == ["key", *names]


@pytest.mark.parametrize(("needed", "shown"), [(7, "7"), (301, "310"), (310, "310"), (99_001, "100,000")])
def test_the_rows_that_would_show_it_are_rounded_up(needed, shown):
    """301 rows are one more than there are."""
    found = terms(Conclusion(answer="not-shown", effects=(), tolerance=0.2, rows_needed=needed))
    assert f"some {shown} rows would show it" in found


@pytest.mark.parametrize(
    ("answer", "qualifiers", "shown"),
    [
        ("yes", (), "differ too little for a NO"),
        ("yes", ("at-level",), "differ, but not in what decides"),
        ("not-shown", (), "differ, size not shown"),
    ],
)
def test_differences_beyond_the_tolerance_are_not_called_little(answer, qualifiers, shown):
    """A yes at one level says nothing of how much the others differ."""
    answer = Conclusion(answer=answer, effects=(), tolerance=0.2, level=0.9, qualifiers=qualifiers)
    read = Input(files=(), n=60, dropped=0, predictive="gaussian", columns={})
    report = Report(calcheck="1", input=read, settings={"confidence": 0.95}, results=(), conclusion=answer)
    overall = Overall(
        verdict="fail",
        p_value=0.001,
        method="maximum relative to limits",
        replicates=999,
        metrics=("zms", "uce"),
        leading="uce",
    )
    assert describe_overall(overall, report, brief=True).startswith(f"2 metrics together: {shown}, p < 0.01 (uce)")


def test_a_page_has_the_columns_of_a_wide_table_as_rows_and_groups_as_titles():
    """Digits of 24 columns are below each other on paper."""
    names = [f"metric-{place}" for place in range(9)]
    columns = (Column("model"), *(Column(name, "right", "↓", "y", "set") for name in names))
    wide = Table(columns, (row_of("one", *"123456789"), row_of("two", *"abcdefghi")), overflow="split", keys=1)
    assert [*table_rows(wide)][:2] == [["", "one", "two"], ["set: metric-0 ↓ y", "1", "a"]]
    assert table_rows(select_columns(wide, [*range(8)]))[2] == ["one", *"1234567"]
    grouped = Table((Column("of"), Column("metric")), (row_of("b − a", "zms"), row_of("c − a", "ece")), groups="title")
    shown = rendered(Document((grouped,)), "html")
    assert re.findall("<caption>(.*?)</caption>", shown) == ["b − a", "c − a"]
    assert table_rows(grouped) == [["metric"], ["zms"], ["metric"], ["ece"]]


def table_rows(table):
    """Return the texts of the rows of a table in HTML."""
    shown = rendered(Document((table,)), "html")
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall("<tr>(.*?)</tr>", shown)]
