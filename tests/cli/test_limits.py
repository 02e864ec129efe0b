"""Requests beyond any machine are refused in one line before the computation; so are endless and closed streams."""

import io
import os
import sys
from pathlib import Path

import pytest

from tests.helpers.files import columns, write


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "ece --n-levels 99999999999999999999",
            "--n-levels must be at least 1 and at most 10,000, got 99999999999999999999",
        ),
        ("ece --n-levels 1000000000", "--n-levels must be at least 1 and at most 10,000"),
        ("pit --bins 1000000000", "--bins must be at least 1 and at most 10,000"),
        ("cce --embedding embedding --draws 10000000", "--draws must be at least 1 and at most 100,000"),
        ("cce --embedding embedding --draws 1 --trials 1000000000", "--trials must be at least 1 and at most 10,000"),
        ("cce --embedding embedding --draws 100000 --trials 1000", "--memory allows"),
        ("cce --embedding embedding --draws 100000 --memory 1MB", "and --memory allows 0.0 GiB: use fewer"),
        (
            "cce --embedding embedding --replicates 1000000 --memory 1MB",
            "--replicates 1,000,000 at 40 inputs takes 0.3 GiB",
        ),
        ("zms --replicates 1000000000", "--replicates must be at least 19 and at most 1,000,000"),
        ("zms --resamples 1000000000", "--resamples must be at least 100 and at most 10,000,000"),
        ("sweep --vary subsample=20 --subsets 1000000000", "--subsets must be at least 1 and at most 10,000"),
    ],
)
def test_excessive_option_values_are_refused(calcheck, preds, command, message):
    name, *options = command.split()
    assert message in calcheck(name, preds, *options).refused()


def test_too_many_permutations_are_refused(calcheck, preds, tmp_path):
    other = write(tmp_path / "other.parquet", columns(n=40))
    refused = calcheck("compare", preds, other, "--metrics", "zms", "--permutations", "1000000000").refused()
    assert "--permutations must be >= 0 and at most 10,000,000, got 1000000000" in refused


# closed outputs


def closed(*descriptors):
    """Close outputs in the child, as a shell does with >&-."""
    return {"preexec_fn": lambda: [os.close(descriptor) for descriptor in descriptors]}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="descriptors are inherited otherwise")
def test_a_closed_standard_output_is_reported_in_one_line(process, preds):
    for command in (["mae", preds, "--no-null", "--no-bootstrap"], ["--version"]):
        ended = process(*command, **closed(1))
        assert ended.returncode == 2
        assert ended.stderr == "calcheck: cannot write to standard output: Bad file descriptor\n"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="descriptors are inherited otherwise")
def test_closed_outputs_that_are_not_needed_are_ignored(process, preds, tmp_path):
    output = tmp_path / "report.json"
    command = ("mae", preds, "--no-null", "--no-bootstrap", "--format", "json", "-o", output)
    assert process(*command, **closed(0, 1, 2)).returncode == 0
    assert output.read_text().startswith("{")
    assert process("zms", "nothing.parquet", **closed(2)).returncode == 2


# inputs and outputs that are not regular files


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no such device")
def test_endless_devices_are_refused(calcheck, preds, monkeypatch):
    message = "/dev/zero is a device that never ends. Give a file"
    for command in (["inspect", "/dev/zero"], ["zms", preds, "--truth", "/dev/zero"], ["diff", "/dev/zero", preds]):
        assert message in calcheck(*command).refused()
    assert (
        "larger than 1 MiB, the maximum size of a settings file"
        in calcheck("--config", "/dev/zero", "zms", preds).refused()
    )
    with Path("/dev/zero").open() as zeros:
        monkeypatch.setattr(sys, "stdin", zeros)
        refused = calcheck("zms", "-", "--input-format", "csv").refused()
    assert "standard input is a device that never ends" in refused


def test_a_pipe_larger_than_memory_is_refused(calcheck, monkeypatch):
    monkeypatch.setattr("calcheck.io.files.available_memory", lambda: 3_000)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"y,mean,std\n" + b"1,1,1\n" * 1000)))
    refused = calcheck("zms", "-", "--input-format", "csv").refused()
    assert "standard input holds more than 1,000 bytes" in refused


@pytest.mark.slow
def test_a_report_can_be_written_to_devices_of_standard_output_and_error(calcheck, process, preds, tmp_path):
    command = ("zms", preds, "--no-null", "--no-bootstrap", "--format", "csv")
    expected = calcheck(*command).out
    assert process(*command, "-o", "/dev/stdout").stdout == expected
    output = tmp_path / "reports.csv"
    output.write_text("before\n")
    with output.open("a") as appended:
        process(*command, "-o", "/dev/fd/1", stdout=appended, capture_output=False)
    assert output.read_text() == f"before\n{expected}"
    assert process(*command, "-o", "/dev/stderr").stderr == expected
