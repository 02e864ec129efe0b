"""`calcheck guide`: the list, one guide, an unknown topic, and a terminal."""

import subprocess
import sys

import pytest

from calcheck.cli.guide import FORMER, GROUPS, read_guides, strip_comments


def test_all_guides_are_listed_by_kind_with_their_first_sentence(calcheck):
    ended = calcheck("guide")
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    topics = [line.split()[0] for line in lines if line and not line.startswith(" ") and "  " in line]
    assert sorted(topics) == sorted(read_guides())
    assert [line for line in lines if line in GROUPS] == list(GROUPS)
    assert "reference-json" in ended.out.partition("\nReference\n")[2]
    assert "Every field of the reports" in ended.out
    assert lines[-1] == "Show one with: calcheck guide TOPIC"


@pytest.mark.parametrize("topic", ["reference-files", "reference-files.md"])
def test_a_guide_is_plain_markdown_in_a_pipe(calcheck, topic):
    ended = calcheck("guide", topic)
    assert ended.code == 0
    assert ended.out == read_guides()["reference-files"]
    assert ended.out.startswith("# Files")


@pytest.mark.parametrize("topic", FORMER)
def test_the_name_of_a_former_guide_shows_the_guide_that_has_its_text(calcheck, topic):
    assert topic not in read_guides()
    assert calcheck("guide", topic).out == read_guides()[FORMER[topic]]


def test_guides_do_not_show_comments():
    assert [topic for topic, text in read_guides().items() if "[[[cog" in text or "[[[end]]]" in text] == []


def test_comments_in_code_blocks_are_shown():
    text = "# A\n<!-- [[[cog\nrun('x') ]]] -->\n```html\n<!-- kept -->\n```\n<!-- [[[end]]] -->\n"
    assert strip_comments(text) == "# A\n```html\n<!-- kept -->\n```\n"


def test_an_unknown_topic_is_refused_with_the_nearest_and_all_others(calcheck):
    line = calcheck("guide", "reference-jsn").refused()
    assert "there is no guide 'reference-jsn'. Available guides: " in line
    assert line.endswith("Did you mean 'reference-json'?\n")
    assert all(topic in line for topic in read_guides())
    assert "Did you mean" not in calcheck("guide", "zzz").refused()


def test_a_terminal_gets_formatted_text_through_the_pager(terminal):
    out = terminal(
        "guide", "reference-files", PAGER=f"{sys.executable} -c 'import sys; print(sys.stdin.read(), \"end\")'"
    )
    assert "\x1b[" in out
    assert "Files, columns and families" in out
    assert "# Files" not in out
    assert out.rstrip().endswith("end")


@pytest.mark.slow
def test_closing_the_pager_early_is_not_an_error(terminal):
    assert "Traceback" not in terminal("guide", "reference-commands", PAGER="true")


def test_the_program_starts_without_modules_that_only_guides_need():
    code = (
        "import sys, calcheck.cli.app\n"
        "print([name for name in ('rich.markdown', 'pydoc', 'importlib.resources') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
