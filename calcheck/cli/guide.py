"""`calcheck guide`, and the versions of the program and its libraries."""

import json
import os
import re
import signal
import sys
from typing import Annotated

import typer

from calcheck.cli.typer_options import make_command
from calcheck.core import __version__
from calcheck.errors import OptionError, with_suggestion
from calcheck.metrics import ALIASES, METRICS, TWO_SAMPLE_METRICS

LIBRARIES = (
    *("numpy", "scipy", "pandas", "pyarrow", "scoringrules", "torch", "array-api-compat", "threadpoolctl"),
    *("typer", "pydantic", "rich", "vl-convert-python"),
    *("h5py", "openpyxl", "distributed"),
)  # The dependencies, with those of extras last


def describe_versions() -> str:
    """Return the version of calcheck, and in further lines those of Python and of each dependency."""
    import platform

    versions = {"calcheck": __version__, "Python": platform.python_version()}
    versions |= {library: _version(library) for library in LIBRARIES}
    return "".join(f"{name} {version}\n" for name, version in versions.items())


def _version(library: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(library)
    except PackageNotFoundError:
        return "(not installed)"


def list_metrics() -> None:
    """List all metrics: what each measures, its source, its unit and the columns it needs."""
    from calcheck.render.document import Column, Document, Table, row_of
    from calcheck.render.terminal import render

    rows = []
    for name, metric in (METRICS | TWO_SAMPLE_METRICS).items():
        aliases = [other for other, alias in ALIASES.items() if alias.metric == name]
        also = f". Also called {', '.join(aliases)}." if aliases else ""
        description = f"{metric.summary()} {metric.info.source}{also}"
        rows.append(row_of(name, description, metric.info.unit, ", ".join(metric.info.needs)))
    columns = tuple(map(Column, ("metric", "description", "unit", "needs")))
    sys.stdout.write(render(Document((Table(columns, tuple(rows)),))))


def print_schema(
    of: Annotated[
        str, typer.Argument(metavar="[report|diff|map]", help="Which schema to print.", show_default=False)
    ] = "report",
) -> None:
    """Print the JSON Schema of reports, of the output of calcheck diff, or of recalibration maps."""
    from calcheck.storage.schema import SCHEMAS

    if of not in SCHEMAS:
        raise OptionError(f"unknown schema {of!r}. Available schemas: {', '.join(SCHEMAS)}")
    sys.stdout.write(json.dumps(SCHEMAS[of](), indent=2) + "\n")


metrics_command = make_command("metrics", list_metrics)
schema_command = make_command("schema", print_schema)

REFERENCE_PREFIX = "reference-"
GROUPS: dict[str, tuple[str, ...]] = {
    "Tutorial": ("tutorial",),
    "How-to": (),
    "Explanation": ("which-metric", "verdicts", "papers", "glossary"),
    "Reference": (),
}  # Kinds of guides in the order of the list, each with its topics; other topics are references or how-to guides
FORMER = dict.fromkeys(("states", "many-files", "million-rows"), "large-data")  # Topics that are part of another guide

HIDDEN = re.compile(r"^(?P<code>```.*?^```$)|[ \t]*<!--.*?-->[ \t]*\n?", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
NEARBY_LINK = re.compile(r"\[([^\]]*)\]\((?:(?P<topic>[\w-]+)\.md)?(?:#[\w-]+)?\)")
SENTENCE = re.compile(r".+?[.!?](?=\s|$)")


def show_guide(
    topic: Annotated[
        str | None, typer.Argument(metavar="[TOPIC]", help="Guide to show. Default: the list.", show_default=False)
    ] = None,
) -> None:
    """List the guides, or show one: a tutorial, how-to guides, explanations, the reference."""
    guides = read_guides()
    if topic is None:
        sys.stdout.write(_list(guides))
        return
    name = topic.removesuffix(".md")
    name = FORMER.get(name, name)
    if name not in guides:
        raise OptionError(
            with_suggestion(f"there is no guide {topic!r}. Available guides: {', '.join(guides)}", topic, guides)
        )
    _show(guides[name])


def read_guides() -> dict[str, str]:
    """Return the text of each guide by its topic, without HTML comments."""
    from importlib.resources import files

    folder = files("calcheck") / "guides"
    paths = sorted((path for path in folder.iterdir() if path.name.endswith(".md")), key=lambda path: path.name)
    return {path.name.removesuffix(".md"): strip_comments(path.read_text(encoding="utf-8")) for path in paths}


def strip_comments(text: str) -> str:
    r"""Remove HTML comments, except in blocks of code.

    >>> strip_comments("a\n<!-- [[[cog\nrun() ]]] -->\nb")
    'a\nb'
    """
    return HIDDEN.sub(lambda match: match["code"] or "", text)


def group_of(topic: str) -> str:
    """Return the kind of guide that a topic is."""
    if topic.startswith(REFERENCE_PREFIX):
        return "Reference"
    return next((group for group, topics in GROUPS.items() if topic in topics), "How-to")


def first_sentence(text: str) -> str:
    r"""Return the first sentence below the title of a guide as plain text; empty text if there is none.

    >>> first_sentence("# Files\n\nRead `.csv` and [Parquet](x.md). More.")
    'Read .csv and Parquet.'
    """
    paragraphs = re.split(r"\n\s*\n", text.strip())
    if len(paragraphs) == 1 or not paragraphs[0].startswith("# "):
        return ""
    plain = LINK.sub(r"\1", " ".join(paragraphs[1].split())).replace("`", "").replace("**", "")
    match = SENTENCE.match(plain)
    return match[0] if match else ""


def name_guides(text: str) -> str:
    """Replace links to guides by the commands that show them, and links within a guide by their text.

    >>> name_guides("See [Read my files](files.md#names), [above](#top).")
    'See Read my files (`calcheck guide files`), above.'
    """
    return NEARBY_LINK.sub(
        lambda match: f"{match[1]} (`calcheck guide {match['topic']}`)" if match["topic"] else match[1], text
    )


def _list(guides: dict[str, str]) -> str:
    """Return the list of guides by kind, each with its first sentence."""
    from rich.table import Table
    from rich.text import Text

    from calcheck.render.terminal import render_text, safe_text

    width = max(map(len, guides))
    parts: list[Table | Text] = []
    for group, first in GROUPS.items():
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True, width=width)
        grid.add_column()
        topics = [topic for topic in guides if group_of(topic) == group]
        for topic in sorted(topics, key=(*first, *topics).index):
            grid.add_row(topic, safe_text(first_sentence(guides[topic])))
        parts += [Text(group, style="bold"), grid] if topics else []
    return render_text(*parts, Text("Show one with: calcheck guide TOPIC"))


def _show(text: str) -> None:
    """Write a guide: formatted and in a pager for a terminal, as Markdown otherwise."""
    if not sys.stdout.isatty():
        sys.stdout.write(text)
        return
    import pydoc

    from rich.markdown import Markdown

    from calcheck.render.terminal import join_percents, render_text

    pages = render_text(Markdown(join_percents(name_guides(text)), hyperlinks=False, code_theme="ansi_dark"))
    os.environ["LESS"] = f"{os.environ.get('LESS', '-FX')} -R"  # less shows colors, and ends at once if all fits
    pipe = getattr(signal, "SIGPIPE", None)
    before = pipe and signal.signal(pipe, signal.SIG_IGN)  # leaving the pager early is no error
    try:
        pydoc.pager(pages)
    finally:
        if pipe:
            signal.signal(pipe, before)


guide_command = make_command("guide", show_guide)
