"""Folders and patterns as FILE, and files that are written in blocks."""

import json
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal
from pyarrow import csv

from calcheck.errors import DataError
from calcheck.storage.prediction_files import column_writer
from tests.helpers.files import columns, table, write
from tests.helpers.schemas import validate
from tests.helpers.simulations import slow

QUICK = ("--no-bootstrap", "--no-null")


@pytest.fixture
def folder(tmp_path):
    """Return a folder of two days with two files each."""
    rows = table(columns(n=80))
    for place in range(4):
        path = tmp_path / "preds" / f"day=2026-11-2{place // 2}" / f"hour={place}" / "part.parquet"
        path.parent.mkdir(parents=True)
        write(path, rows.slice(place * 20, 20))
    return tmp_path / "preds"


@pytest.mark.slow
def test_a_folder_and_a_pattern_are_evaluated_as_one_file(calcheck, folder, tmp_path):
    one = write(tmp_path / "one.parquet", table(columns(n=80)))
    options = ("--metrics", "rmse,ece,cce", "--format", "json", *QUICK)
    expected = json.loads(calcheck("evaluate", one, *options).out)
    for name in (folder, f"{folder}/day=*/*/*.parquet", folder.as_uri()):
        found = json.loads(calcheck("evaluate", name, *options).out)
        validate(found)
        assert found["results"] == expected["results"]
        (file,) = found["input"].pop("files")
        assert (file["path"], file["files"], file["rows"]) == (str(name), 4, 80)
        assert found["input"] == {name: value for name, value in expected["input"].items() if name != "files"}
    assert f"{folder} (4 files)" in calcheck("rmse", folder, *QUICK).out.replace("\n", "")


def test_inspect_shows_the_number_of_files(calcheck, folder):
    shown = calcheck("inspect", folder).out
    assert "(4 files)" in " ".join(shown.split())
    assert "format       parquet" in shown
    assert "rows         80" in shown


def test_keys_of_hive_partitions_can_be_used_as_columns(calcheck, folder, tmp_path):
    assert "40 rows" in calcheck("rmse", folder, "--filter", "day=2026-11-21", *QUICK).out
    calcheck("rmse", folder, *QUICK, "--pointwise", tmp_path / "rows.csv")
    assert csv.read_csv(tmp_path / "rows.csv")["hour"].to_pylist() == np.repeat(range(4), 20).tolist()
    ended = calcheck("reject", folder, "--criteria", "hour", "--format", "json")
    assert json.loads(ended.out)["results"][0]["slice"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rmse", "{0}/day=2026-11-20", "{0}/day=2026-11-21"), "a quoted pattern: 'preds/*.parquet'"),
        (("rmse", "{0}/*.csv"), "no file matches"),
        (("rmse", "{0}", "--filter", "day=1999-01-01"), "no file has day=1999-01-01"),
        (("rmse", "{0}", "--truth", "{0}/none/"), "there is no file"),
        (("diff", "{0}", "{0}"), "is a folder. Give a file"),
        (("rmse", "{0}", "-o", "{0}/day=2026-11-20/hour=0/part.parquet"), "would overwrite"),
    ],
)
def test_invalid_folders_and_patterns_are_refused_in_one_line(calcheck, folder, arguments, message):
    assert message in calcheck(*(argument.format(folder) for argument in arguments)).refused()


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_columns_are_written_in_blocks(tmp_path, ending):
    path = tmp_path / f"rows.{ending}"
    path.write_text("what was there")
    with column_writer(str(path)) as append:
        for start in range(0, 30, 10):
            append({"place": np.arange(start, start + 10), "cce": np.full(10, 0.5 + start)})
            assert path.read_text() == "what was there"
    found = pq.read_table(path) if ending == "parquet" else csv.read_csv(path)
    assert_array_equal(found["place"].to_numpy(), np.arange(30))
    assert_array_equal(found["cce"].to_numpy(), np.repeat([0.5, 10.5, 20.5], 10))
    assert list(tmp_path.iterdir()) == [path]


def test_blocks_with_different_columns_are_refused_and_leave_no_file(tmp_path):
    path = tmp_path / "rows.parquet"

    def failing():
        with column_writer(str(path)) as append:
            append({"place": np.arange(3), "cce": np.ones(3)})
            append({"place": np.arange(3)})

    with pytest.raises(DataError, match=r"rows.parquet cannot be written: its rows have different columns \(.*cce"):
        failing()
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code", "ending"),
    [
        (signal.SIGTERM, 143, "parquet"),
        slow((signal.SIGTERM, 143, "csv")),
        slow((signal.SIGINT, 130, "parquet")),
        (signal.SIGINT, 130, "csv"),
    ],
)
def test_a_signal_leaves_no_partial_file(tmp_path, number, code, ending):
    path = tmp_path / f"rows.{ending}"
    path.write_text("what was there")
    program = f"""
import os, signal, time
import numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)
from calcheck import cli
from calcheck.cli import app

def half(**given):
    from calcheck.storage.prediction_files import column_writer
    with column_writer({str(path)!r}) as append:
        append({{"place": np.arange(1000)}})
        os.kill(os.getpid(), {int(number)})
        time.sleep(20)

app.make_program = lambda: half
cli.main()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (code, "")
    assert path.read_text() == "what was there"
    assert list(tmp_path.iterdir()) == [path]


def test_many_files_are_converted_to_one(calcheck, folder, tmp_path):
    assert calcheck("convert", folder, "-o", tmp_path / "one.parquet").code == 0
    found = pq.read_table(tmp_path / "one.parquet")
    assert_array_equal(found["y"].to_numpy(), columns(n=80)["y"])
    assert found["day"].to_pylist()[::40] == ["2026-11-20", "2026-11-21"]


@pytest.fixture
def silent():
    """Return a listening socket, and the URI of an object in a store that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = f"127.0.0.1:{listener.getsockname()[1]}"
        yield listener, f"s3://bucket/preds.parquet?endpoint_override={place}&scheme=http&region=eu-west-1"


@pytest.mark.slow
def test_an_object_store_that_never_answers_has_a_time_limit(process, silent):
    started = time.monotonic()
    ended = process("zms", silent[1], "--timeout", "0.5")  # at its end too, pyarrow would wait for 100 seconds
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"calcheck: {silent[1]} cannot be read: no answer within 0.5 seconds. Pass a longer")
    assert time.monotonic() - started < 30
    assert "--timeout must be a positive number" in process("zms", silent[1], "--timeout", -1).stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_the_wait_for_an_object_store(silent, number, code):
    program = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from calcheck.cli import main
main()
"""
    command = [sys.executable, "-c", program, "zms", silent[1], "--timeout", "300"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as waiting:
        silent[0].settimeout(60)
        connection, _ = silent[0].accept()
        waiting.send_signal(number)
        assert waiting.communicate(timeout=20) == (b"", b"")
        connection.close()
    assert waiting.returncode == code
