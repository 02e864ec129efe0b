"""Reduction on a Dask cluster: workers sum the partitions of a source, and a tree adds the sums."""

from __future__ import annotations

import logging
import warnings
from concurrent.futures import CancelledError
from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from calcheck.errors import DataError, OptionError
from calcheck.execution.reduce import reduce_locally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from calcheck.execution.executor import SumT
    from calcheck.predictions import Predictions, Source

LOCAL = "local:"
TIMEOUT_SECONDS = 15  # Timeout for connecting to a scheduler
MAX_FAILURES = 10  # Worker failures per partition before the computation fails


class Cluster:
    """Dask workers that reduce partitions of sources.

    Parameters
    ----------
    client : distributed.Client
        The connection to the scheduler.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def reduce(
        self, parts: Sequence[Source], work: Callable[[Predictions], SumT], progress: Callable[[float], None]
    ) -> SumT | None:
        """Return the sum of ``work(batch)`` over the batches of all partitions; None without rows.

        The shape of the reduction tree depends on the number of partitions only. The result therefore does not depend
        on the timing or failure of workers.
        """
        from distributed import as_completed
        from distributed.scheduler import KilledWorker

        client, name = self._client, f"calcheck-{uuid4().hex}"
        # The work is sent once, and again if its worker fails
        remote_work = client.submit(_same, work, key=f"{name}-work", pure=False)
        level = [
            client.submit(_part, part, remote_work, key=f"{name}-part-{place}", pure=False)
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


def _part(part: Source, work: Callable[[Predictions], Any]) -> Any:
    """Return the sum over one partition."""
    return reduce_locally(part, work)


def _added(one: Any, other: Any) -> Any:
    """Return the sum of two sums without changing them: they may be needed again if a worker fails."""
    if one is None or other is None:
        return other if one is None else one
    total = deepcopy(one)
    total.add(other)
    return total


@contextmanager
def cluster_at(address: str) -> Iterator[Cluster]:
    """Connect to a scheduler, or start worker processes on this machine.

    Parameters
    ----------
    address : str
        ``tcp://host:8786``, or ``local:N`` for N processes.

    Raises
    ------
    OptionError
        The scheduler does not respond, or Dask is not installed.
    """
    count = _count(address)
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError as error:
        msg = "--dask needs Dask: pip install 'calcheck[dask]'"
        raise OptionError(msg) from error
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # Errors are reported as one line
    settings = {
        "distributed.scheduler.allowed-failures": MAX_FAILURES,
        "distributed.comm.timeouts.connect": TIMEOUT_SECONDS,
        "distributed.admin.large-graph-warning-threshold": "1GiB",
    }
    with warnings.catch_warnings(), dask.config.set(settings):
        warnings.simplefilter("ignore")  # About versions, ports and sizes
        local = None
        try:
            if count:
                local = LocalCluster(n_workers=count, threads_per_worker=1, processes=True, dashboard_address=None)
            client = Client(address if local is None else local, timeout=TIMEOUT_SECONDS)
        except (OSError, ValueError) as error:
            msg = f"--dask {address}: no scheduler responds at this address ({error})"
            raise OptionError(msg) from error
        try:
            yield Cluster(client)
        finally:
            client.close()
            if local is not None:
                local.close()


def _count(address: str) -> int:
    """Return the number of local processes to start; 0 for the address of a scheduler."""
    if not address.startswith(LOCAL):
        if "://" not in address and ":" not in address:
            msg = f"--dask must be an address such as tcp://host:8786, or local:N, got {address!r}"
            raise OptionError(msg)
        return 0
    number = address.removeprefix(LOCAL)
    if not number.isdigit() or not int(number):
        msg = f"--dask local:N needs a number of processes, at least 1, got {address!r}"
        raise OptionError(msg)
    return int(number)
