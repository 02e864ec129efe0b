"""Legends below tables: one line per term that the table shows, and none with ``legend=False``."""

import pytest

from calcheck.render import FORMATS, render
from calcheck.render.document import DETAILS_LEGENDS, ZETA_LEGEND, legend_lines, report_document
from calcheck.reports import Gate, Input, InputFile, Report, Result

DETAILS = {"dof": 12.5, "rejected": {"count": 3, "inputs": 40}}
DOF, REJECTED = DETAILS_LEGENDS["dof"], DETAILS_LEGENDS["rejected"]


def result_of(metric="cce", zeta=None, details=None):
    return Result(metric=metric, summary="", options={}, unit="1", value=1.0, zeta=zeta, details=details or {})


def report_of(*results, gates=()):
    file = InputFile(role="predictions", path="preds.parquet", sha256="", rows=1)
    read = Input(files=(file,), n=60, dropped=0, predictive="gaussian", columns={})
    return Report(calcheck="0.1.0", input=read, settings={}, results=results, gates=gates)


@pytest.mark.parametrize(
    ("results", "legend"),
    [
        ((), []),
        ((result_of(),), []),
        ((result_of(zeta=0.5),), [ZETA_LEGEND]),
        ((result_of(details=DETAILS),), [DOF, REJECTED]),
        ((result_of(zeta=0.5, details=DETAILS),), [ZETA_LEGEND, DOF, REJECTED]),
        ((result_of(zeta=0.5, details=DETAILS), result_of("ece", zeta=2.0)), [ZETA_LEGEND]),
    ],
)
def test_a_table_explains_each_term_that_it_shows_once(results, legend):
    lines = render(report_of(*results), "table", report_document, view="file").splitlines()
    assert [line for line in lines if line in (ZETA_LEGEND, DOF, REJECTED)] == legend


def test_a_table_of_rules_shows_no_details_and_explains_none():
    gate = Gate(rule="cce > 2", level="fail", passed=True, message="cce is 1", values={"cce": 1.0})
    lines = render(
        report_of(result_of(zeta=0.5, details=DETAILS), gates=(gate,)), "table", report_document, view="file"
    ).splitlines()
    assert [line for line in lines if line in (ZETA_LEGEND, DOF, REJECTED)] == [ZETA_LEGEND]


def test_markdown_explains_zeta_below_the_results():
    lines = render(report_of(result_of(zeta=0.5, details=DETAILS)), "markdown", report_document).splitlines()
    assert lines[-6:] == ["", ZETA_LEGEND, "", DOF, "", REJECTED]


def test_rejected_inputs_are_shown_as_those_of_neighborhoods():
    text = render(report_of(result_of(details=DETAILS)), "table", report_document)
    assert "rejected  in the neighborhood of 3 of 40 inputs" in text


@pytest.mark.parametrize("name", ["table", "markdown"])
def test_omitting_the_legend_changes_nothing_else(name):
    report = report_of(result_of(zeta=0.5, details=DETAILS))
    full, quiet = (
        render(report, name, report_document, legend=legend, view="file").splitlines() for legend in (True, False)
    )
    legend = legend_lines(report, details=True)
    assert [line for line in full if line and line not in legend] == [line for line in quiet if line]
    assert not set(quiet) & set(legend)


@pytest.mark.parametrize("name", sorted(name for name, known in FORMATS.items() if known.data))
def test_data_have_no_legend(name):
    report = report_of(result_of(zeta=0.5, details=DETAILS))
    assert render(report, name, report_document) == render(report, name, report_document, legend=False)


def test_the_legend_fits_a_terminal_of_100_columns():
    assert all(len(text) <= 100 for text in (ZETA_LEGEND, *DETAILS_LEGENDS.values()))
