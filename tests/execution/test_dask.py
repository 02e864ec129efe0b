"""Accumulators on a Dask cluster: a real scheduler, and workers that are separate processes."""

import asyncio
import logging
import os
import re
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.errors import OptionError
from calcheck.execution import dask
from calcheck.execution.dask import cluster_at
from calcheck.execution.run import Run
from calcheck.metrics import DECOMPOSITIONS, METRICS
from calcheck.streaming.state import accumulate, report_from_state
from tests.helpers.files import columns, write
from tests.helpers.streams import Files

pytest.importorskip("distributed")

ROOT = Path(__file__).parents[2]
RUN = Run(resamples=100, replicates=19)
ACCUMULATED = [
    METRICS[name]()
    for name in METRICS
    if name not in (*DECOMPOSITIONS, "cce", "jmmd", "ammd", "cmmd", "fid", "tail", "pit-independence")
]


@contextmanager
def workers(folder, count):
    """Start a scheduler and workers; yield the path of the scheduler file, and the processes."""
    scheduler_file = folder / "scheduler.json"
    common = {"cwd": ROOT, "env": os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    base = [sys.executable, "-m", "distributed.cli"]
    scheduler = [f"{base[2]}.dask_scheduler", "--port", "0", "--no-dashboard", "--host", "127.0.0.1"]
    worker = [f"{base[2]}.dask_worker", "--no-nanny", "--nthreads", "1", "--no-dashboard", "--death-timeout", "30"]
    file = ["--scheduler-file", str(scheduler_file)]
    running = [subprocess.Popen([*base[:2], *scheduler, *file], **common, **quiet)]
    running += [
        subprocess.Popen([*base[:2], *worker, *file, "--local-directory", str(folder)], **common, **quiet)
        for _ in range(count)
    ]
    try:
        yield file[1], running
    finally:
        for process in running:
            process.kill()
        for process in running:
            process.wait()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Return the address of a scheduler with three workers."""
    from distributed import Client

    folder = tmp_path_factory.mktemp("dask")
    with workers(folder, 3) as (file, running):
        with Client(scheduler_file=file, timeout=60) as client:
            client.wait_for_workers(3, timeout=60)
            found = client.scheduler.address
        yield found, running


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """Return the paths of twelve files."""
    folder, whole = tmp_path_factory.mktemp("files"), columns(n=600)
    parts = np.array_split(np.arange(600), 12)
    return tuple(
        write(folder / f"{number}.parquet", {name: values[part] for name, values in whole.items()})
        for number, part in enumerate(parts)
    )


def on_cluster(source, address, metrics=ACCUMULATED):
    with cluster_at(address) as cluster:
        return report_from_state(accumulate(source, metrics, replace(RUN, executor=cluster)), RUN)


def require_same(found, expected):
    assert [each.metric for each in found.results] == [each.metric for each in expected.results]
    assert found.skipped == expected.skipped
    for ours, theirs in zip(found.results, expected.results, strict=True):
        for name in ("value", "low", "high", "p_value", "reference"):
            one, other = getattr(ours, name), getattr(theirs, name)
            assert (one is None) == (other is None)
            if one is not None:
                assert_allclose(one, other, rtol=1e-10, atol=1e-7 if name in ("low", "high") else 0, err_msg=name)


@pytest.mark.slow
def test_three_workers_give_the_same_results_as_one_process(address, paths):
    local = report_from_state(accumulate(Files(paths), ACCUMULATED, RUN), RUN)
    require_same(on_cluster(Files(paths), address[0]), local)


def test_three_workers_give_the_same_cce_as_one_process(address, tmp_path):
    whole = columns(n=300)
    whole["embedding"] = whole["embedding"].astype(float)
    parts = np.array_split(np.arange(300), 6)
    paths = tuple(
        write(tmp_path / f"{number}.parquet", {name: values[part] for name, values in whole.items()})
        for number, part in enumerate(parts)
    )
    metrics = [METRICS["cce"](landmarks=64)]
    local = report_from_state(accumulate(Files(paths), metrics, RUN), RUN)
    assert local.results[0].details["rows"] == 300
    require_same(on_cluster(Files(paths), address[0], metrics), local)


def test_a_scheduler_is_found_inside_a_running_event_loop_as_in_a_notebook(address):
    async def connect():
        with cluster_at(address[0]):
            return True

    with ThreadPoolExecutor(1) as other:  # this thread may have a loop, of tests in a browser
        assert other.submit(lambda: asyncio.run(connect())).result()


def test_a_file_on_the_command_line_is_processed_by_workers(address, paths, calcheck):
    asked = ("evaluate", paths[0], "--no-bootstrap", "--metrics", "zms,ence")
    ended = calcheck(*asked, "--dask", address[0])
    assert (ended.code, ended.err) == (0, "")
    assert "ence" in ended.out
    local = calcheck(*asked, "--save-state", f"{paths[0]}.state")
    assert local.out == ended.out


def test_errors_in_workers_have_the_same_message_as_local_ones(address, calcheck, tmp_path):
    broken = write(tmp_path / "broken.csv", {"y": np.ones(4), "mean": np.ones(4), "std": np.array([1.0, 1, -1, 1])})
    here = calcheck("zms", broken, "--save-state", tmp_path / "a.state").refused()
    assert calcheck("zms", broken, "--dask", address[0]).refused() == here


@pytest.mark.slow
def test_a_killed_worker_does_not_change_the_results(address, paths, tmp_path):
    local = report_from_state(accumulate(Files(paths), ACCUMULATED, RUN), RUN)
    alive = [process.poll() is None for process in address[1]]
    found = on_cluster(Files(paths, deadly=str(tmp_path / "died")), address[0])
    assert (tmp_path / "died").exists()
    assert sum(process.poll() is None for process in address[1]) == sum(alive) - 1
    require_same(found, local)


@pytest.mark.parametrize("text", ["nowhere", "local:", "local:0", "local:two"])
def test_invalid_addresses_are_refused(text, calcheck, paths):
    assert "--dask" in calcheck("zms", paths[0], "--dask", text).refused()


def test_local_processes_are_limited_by_the_cores(calcheck, paths, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    line = calcheck("zms", paths[0], "--dask", "local:100000").refused()
    assert line.endswith("--dask local:100000 is too many: at most 8 processes here, 4 for each of 2 cores\n")
    assert [dask._count(f"local:{count}") for count in (1, 8)] == [1, 8]
    assert "at most 8" in calcheck("zms", paths[0], "--dask", "local:9").refused()


@pytest.fixture
def service():
    """Return a function that starts a service with an answer to whoever connects, and returns its port."""
    listener, connections = socket.create_server(("127.0.0.1", 0)), []

    def serve(answer):
        while True:
            try:
                connections.append(listener.accept()[0])
                connections[-1].sendall(answer)
            except OSError:
                return

    def start(answer):
        threading.Thread(target=serve, args=(answer,), daemon=True).start()
        return listener.getsockname()[1]

    yield start
    listener.close()
    for each in connections:
        each.close()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", "no answer within 1 s"),
        (b"SSH-2.0-OpenSSH_8.9p1 Ubuntu-3\r\n", "another service listens there, perhaps the dashboard"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "another service listens there, perhaps the dashboard"),
        (bytes(64), ""),
    ],
)
def test_a_service_that_is_no_scheduler_is_refused_in_time(calcheck, paths, monkeypatch, service, answer, reason):
    monkeypatch.setattr(dask, "TIMEOUT_SECONDS", 1)
    started = time.monotonic()
    address = f"tcp://127.0.0.1:{service(answer)}"
    line = calcheck("zms", paths[0], "--dask", address).refused()
    assert f"--dask {address}: no scheduler responds at this address ({reason}" in line
    assert time.monotonic() - started < 20


def test_the_address_of_a_worker_is_refused(address, calcheck, paths):
    from distributed import Client

    with Client(address[0], timeout=60) as client:
        worker = next(iter(client.scheduler_info()["workers"]))
    assert "(it is that of a worker)" in calcheck("zms", paths[0], "--dask", worker).refused()


def test_distributed_logs_nothing_beside_the_message_of_an_error(address):
    logger = logging.getLogger("distributed.client")

    def lose_the_connection():
        with cluster_at(address[0]):
            assert not logger.isEnabledFor(logging.CRITICAL)
            raise OptionError

    assert logger.isEnabledFor(logging.CRITICAL)
    with pytest.raises(OptionError):
        lose_the_connection()
    assert logger.isEnabledFor(logging.CRITICAL)


@pytest.mark.slow
def test_a_signal_ends_local_processes_at_once_and_without_a_traceback():
    code = """
import os, signal, sys, time
from calcheck.execution.dask import cluster_at

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with cluster_at("local:1") as cluster:
        started = cluster.client.submit(time.sleep, 60)
        print(*cluster.client.run(os.getpid).values(), flush=True)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=50)
    assert (ended.returncode, ended.stderr) == (143, "")
    assert re.fullmatch(r"\d+\n", ended.stdout)
    assert not Path(f"/proc/{ended.stdout.strip()}").exists()


@pytest.mark.slow
def test_a_refused_connection_ends_at_once(calcheck, paths):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    start = time.monotonic()
    ended = calcheck("evaluate", paths[0], "--dask", address)
    assert (ended.code, ended.out) == (2, "")
    assert f"--dask {address}: no scheduler responds at this address (Connection refused)" in ended.err
    assert time.monotonic() - start < 5  # distributed tries for 15 s
