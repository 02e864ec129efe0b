"""Reduction on a Dask cluster: workers sum the partitions of a source, and a tree adds the sums."""

from __future__ import annotations

import asyncio
import atexit
import logging
import multiprocessing
import os
import socket
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import uuid4

from calcheck.errors import DataError, OptionError
from calcheck.execution.run import SumT, reduce_locally

if TYPE_CHECKING:
    from calcheck.predictions import Predictions, Source

LOCAL = "local:"
TIMEOUT_SECONDS = 15  # Timeout for connecting to a scheduler, and for its first answer
PROCESSES_PER_CORE = 4  # Maximum of local processes
MAX_FAILURES = 10  # Worker failures per partition before the computation fails


@dataclass(frozen=True)
class Cluster:
    """Dask workers that reduce partitions of sources."""

    client: Any  # The connection to the scheduler

    def reduce(
        self, parts: Sequence[Source], work: Callable[[Predictions], SumT], progress: Callable[[float], None]
    ) -> SumT | None:
        """Return the sum of ``work(batch)`` by a tree that depends on the partitions only; None without rows."""
        from distributed import as_completed
        from distributed.scheduler import KilledWorker

        client, name = self.client, f"calcheck-{uuid4().hex}"
        # The work is sent once, and again if its worker fails
        remote_work = client.submit(_same, work, key=f"{name}-work", pure=False)
        level = [
            client.submit(reduce_locally, part, remote_work, key=f"{name}-part-{place}", pure=False)
            for place, part in enumerate(parts)
        ]
        leaves, depth = list(level), 0
        while len(level) > 1:
            pairs = [level[place : place + 2] for place in range(0, len(level), 2)]
            depth += 1
            level = [
                client.submit(_added, *pair, key=f"{name}-sum-{depth}-{place}", pure=False)
                if len(pair) > 1
                else pair[0]
                for place, pair in enumerate(pairs)
            ]
        try:
            for done, future in enumerate(as_completed(leaves), 1):
                if future.status == "error":
                    break  # The result below raises the error
                progress(done / len(parts))
            total: SumT | None = level[0].result()
        except KilledWorker as error:
            msg = f"Dask workers failed {MAX_FAILURES} times on the same rows: check that they have enough memory"
            raise DataError(msg) from error
        except CancelledError as error:
            msg = "the connection to the Dask cluster was lost: check that its scheduler is still running"
            raise DataError(msg) from error
        return total


def _same(work: Any) -> Any:
    return work


def _added(one: Any, other: Any) -> Any:
    """Return the sum of two sums without changing them: they may be needed again if a worker fails."""
    if one is None or other is None:
        return other if one is None else one
    total = deepcopy(one)
    total.add(other)
    return total


@contextmanager
def cluster_at(address: str) -> Iterator[Cluster]:
    """Connect to a scheduler, or start worker processes on this machine."""
    count = _count(address)
    try:
        import dask
        import distributed  # noqa: F401 - its defaults, before they are changed for a while
    except ImportError as error:
        raise OptionError("--dask needs Dask: pip install 'calcheck[dask]'") from error
    settings = {
        "distributed.scheduler.allowed-failures": MAX_FAILURES,
        "distributed.comm.timeouts.connect": TIMEOUT_SECONDS,
        "distributed.admin.large-graph-warning-threshold": "1GiB",
    }
    with warnings.catch_warnings(), dask.config.set(settings), _no_log():
        warnings.simplefilter("ignore")  # About versions, ports and sizes
        with _local_client(count) if count else _client(address) as client:
            yield Cluster(client)


@contextmanager
def _no_log() -> Iterator[None]:
    """Log nothing in the block, whose errors are reported as one line; nor after an interrupt, when threads go on."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        yield
    except Exception:
        logging.disable(before)
        raise
    logging.disable(before)


@contextmanager
def _client(address: str) -> Iterator[Any]:
    """Connect to a scheduler."""
    from distributed import Client
    from distributed.utils import LoopRunner

    try:
        parts = urlsplit(address if "://" in address else f"tcp://{address}")
        if parts.scheme in ("tcp", "tls") and parts.hostname and parts.port:
            # distributed tries a refused connection again and again until its time limit
            socket.create_connection((parts.hostname, parts.port), TIMEOUT_SECONDS).close()
        LoopRunner().run_sync(_require_scheduler, address)  # also in a notebook, which has a loop of its own
        client = Client(address, timeout=TIMEOUT_SECONDS)
    except Exception as error:
        if isinstance(error, MemoryError):  # the length of a message, read from the words of another protocol
            reason = "another service listens there, perhaps the dashboard"
        else:
            reason = getattr(error, "strerror", None) or str(error) or f"no answer within {TIMEOUT_SECONDS} s"
        raise OptionError(f"--dask {address}: no scheduler responds at this address ({reason})") from error
    with client:
        yield client


async def _require_scheduler(address: str) -> None:
    """Raise unless a scheduler answers at an address: the client would wait for ever for another service's answer."""
    from distributed import rpc

    async with rpc(address, timeout=TIMEOUT_SECONDS) as remote:
        found = await asyncio.wait_for(remote.identity(), TIMEOUT_SECONDS)
    if found["type"] != "Scheduler":
        raise ValueError(f"it is that of a {found['type'].lower()}")


@contextmanager
def _local_client(count: int) -> Iterator[Any]:
    """Start worker processes on this machine; they end with the block, and at once if it is interrupted."""
    from distributed import Client, LocalCluster, Status
    from distributed.deploy.spec import close_clusters

    with ExitStack() as started:
        workers: dict[Any, Any] = {}
        try:
            local = LocalCluster(n_workers=count, threads_per_worker=1, processes=True, dashboard_address=None)
            cluster, workers = started.enter_context(local), local.workers
            yield started.enter_context(Client(cluster, timeout=TIMEOUT_SECONDS))
        except (KeyboardInterrupt, SystemExit):
            started.pop_all()  # closing waits for the workers
            atexit.unregister(close_clusters)
            for worker in workers.values():
                worker.status = Status.closing  # else it starts another process, which ends with a traceback
            for process in multiprocessing.active_children():
                process.kill()
            raise


def _count(address: str) -> int:
    """Return the number of local processes to start; 0 for the address of a scheduler."""
    if not address.startswith(LOCAL):
        if "://" not in address and ":" not in address:
            raise OptionError(f"--dask must be an address such as tcp://host:8786, or local:N, got {address!r}")
        return 0
    number = address.removeprefix(LOCAL)
    if not number.isdigit() or not int(number):
        raise OptionError(f"--dask local:N needs a number of processes, at least 1, got {address!r}")
    cores = os.cpu_count() or 1
    if int(number) > PROCESSES_PER_CORE * cores:
        most = f"at most {PROCESSES_PER_CORE * cores} processes here, {PROCESSES_PER_CORE} for each of {cores} cores"
        raise OptionError(f"--dask {address} is too many: {most}")
    return int(number)
