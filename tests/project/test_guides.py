"""The guides are complete, have working links, and agree with the program."""

import re
from dataclasses import replace

import pytest

import calcheck
from calcheck.api import functions
from calcheck.cli.guide import GROUPS, first_sentence, group_of, read_guides
from calcheck.io.naming_schemes import QUANTILE_NAMES, SAMPLE
from calcheck.io.tables import READERS
from calcheck.metrics import METRICS, TWO_SAMPLE_METRICS
from calcheck.storage.schema import SCHEMAS
from calcheck.studies import STUDIES
from tests import reference

README = reference.GUIDES.parents[1] / "README.md"
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in [README, *sorted(reference.GUIDES.glob("*.md"))]}
LINK = re.compile(r"\]\(([^)\s]+)\)")


def without_code(text):
    """Return Markdown without blocks and spans of code, which contain no links and no headings."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))


def anchors(text):
    """Return the anchors of the headings of a guide."""
    plain = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return {reference._anchor(title) for title in re.findall(r"^#+ (.*)$", plain, re.MULTILINE)}


def property_names(schema):
    """Yield every name of a property in a JSON Schema."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for part in schema.values():
            yield from property_names(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from property_names(part)


@pytest.mark.slow
def test_an_outdated_reference_is_reported(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(reference, "GUIDES", tmp_path / "guides")
    monkeypatch.setattr(reference, "pages", lambda: {"a.md": "new\n", "b.md": "same\n"})
    assert reference.main([]) == 0
    assert reference.main(["--check"]) == 0
    (tmp_path / "guides" / "a.md").write_text("old\n")
    capsys.readouterr()
    assert reference.main(["--check"]) == 1
    assert capsys.readouterr().out == "a.md is not up to date: run python -m tests.reference\n"


def test_every_command_and_every_option_is_in_the_reference():
    text = TEXTS["reference-commands.md"]
    for name, command in reference.commands().items():
        assert f"\n### calcheck {name}\n" in text
        section = text.partition(f"\n### calcheck {name}\n")[2].partition("\n### ")[0]
        for option in reference._options(command):
            assert any(f"`{flag}`" in section for flag in option.opts), (name, option.opts)
            assert all(f"`{flag}`" in text for flag in option.opts), (name, option.opts)


def test_every_metric_is_in_the_reference():
    text = TEXTS["reference-metrics.md"]
    for name, metric in (METRICS | TWO_SAMPLE_METRICS).items():
        section = text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert "\n- Source: " in section, name
        assert "```math" in section, name
        for option in reference.options_of(metric):
            assert f"`{option.flag}`" in section, (name, option.flag)


@pytest.mark.slow
def test_every_field_of_the_json_is_in_the_reference():
    text = TEXTS["reference-json.md"]
    for schema in SCHEMAS.values():
        for name in set(property_names(schema())):
            assert re.search(rf"[`.]{re.escape(name)}`", text), name


def test_every_field_of_the_json_is_described():
    for fields in reference.json_fields():
        assert [path for path, _, text in fields if not text] == []


def test_every_format_of_files_is_in_the_reference():
    assert reference.FORMATS.keys() == READERS.keys()


@pytest.mark.parametrize(("tool", "names"), reference.QUANTILE_EXAMPLES.items())
def test_the_examples_of_quantile_columns_are_read(tool, names):
    assert all(re.fullmatch(QUANTILE_NAMES[tool], name) for name in names)


def test_the_examples_of_sample_columns_are_read():
    assert all(SAMPLE.fullmatch(name) for name in reference.SAMPLE_EXAMPLES)
    assert reference.QUANTILE_EXAMPLES.keys() == QUANTILE_NAMES.keys()


@pytest.mark.parametrize("topic", read_guides())
def test_every_guide_starts_with_a_title_and_a_sentence(topic):
    text = read_guides()[topic]
    assert re.match(r"# \S", text)
    assert len(first_sentence(text)) > 20


def test_the_list_of_kinds_names_guides_that_exist():
    assert {topic for topics in GROUPS.values() for topic in topics} <= set(read_guides())


def test_guides_have_a_kind():
    assert group_of("tutorial") == "Tutorial"
    assert group_of("reference-json") == "Reference"
    assert group_of("glossary") == "Explanation"
    assert group_of("files") == "How-to"


@pytest.mark.parametrize("name", TEXTS)
def test_every_relative_link_leads_to_a_file_and_a_heading(name):
    folder = README.parent if name == "README.md" else reference.GUIDES
    for link in LINK.findall(without_code(TEXTS[name])):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, heading = link.partition("#")
        target = folder / path if path else folder / name
        assert target.exists(), link
        if heading:
            assert heading in anchors(target.read_text(encoding="utf-8")), link


@pytest.mark.slow
def test_tables_of_the_reference_have_as_many_cells_as_columns():
    for name in reference.pages():
        width = 0
        for line in TEXTS[name].splitlines():
            cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
            assert not width or not cells or cells == width, line
            width = cells


def test_a_function_that_differs_from_the_declaration_of_its_study_is_reported():
    study, complete = STUDIES["recalibrate"], calcheck.recalibrate
    assert list(reference.signature_mismatches(study, complete)) == []

    written = vars(functions).copy()
    fewer = 'def fewer(*, method: str = "scale", **options: Unpack[arguments.Options]): ...'
    exec(f"from __future__ import annotations\n{fewer}", written)  # noqa: S102
    found = list(reference.signature_mismatches(study, written["fewer"]))
    assert "recalibrate: calcheck.recalibrate has no keyword folds: int = 5" in found
    assert "recalibrate: method is str = 'scale' in Python, declared str = 'auto'" in found
    found = list(reference.signature_mismatches(replace(study, groups=study.groups[1:]), complete))
    assert "recalibrate: the study does not declare folds of calcheck.recalibrate" in found


@pytest.mark.parametrize("name", ["validity", "prune"])
def test_the_function_of_a_study_is_written_from_its_declaration(name):
    written = vars(functions).copy()
    exec(f"from __future__ import annotations\n{reference.function_text(STUDIES[name])}", written)  # noqa: S102
    assert list(reference.signature_mismatches(STUDIES[name], written[name])) == []
