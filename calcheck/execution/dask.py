"""Sums over the parts of a source on a cluster of Dask: each part on some worker, added up in a tree."""

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
PATIENCE_SECONDS = 15  # until a scheduler answers
DEATHS = 10  # of workers that a part survives


class Cluster:
    """Workers that sum parts of sources.

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
        """Add up what ``work`` makes of the batches of all parts; None where there are no rows.

        Sums are added in a tree whose shape hangs on the number of parts alone, so the result does not hang on which
        worker was faster, or died.
        """
        from distributed import as_completed
        from distributed.scheduler import KilledWorker

        client, name = self._client, f"calcheck-{uuid4().hex}"
        held = client.submit(_same, work, key=f"{name}-work", pure=False)  # sent once; made again if its worker dies
        level = [
            client.submit(_part, part, held, key=f"{name}-part-{place}", pure=False) for place, part in enumerate(parts)
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
                    break  # the sum tells of it
                progress(done / len(parts))
            total: SumT | None = level[0].result()
        except KilledWorker as error:
            msg = f"workers of the cluster died {DEATHS} times at the same rows: have they enough memory?"
            raise DataError(msg) from error
        except CancelledError as error:
            msg = "the connection to the cluster was lost: is its scheduler still there?"
            raise DataError(msg) from error
        return total


def _same(work: Any) -> Any:
    return work


def _part(part: Source, work: Callable[[Predictions], Any]) -> Any:
    """Sum one part."""
    return reduce_locally(part, work)


def _added(one: Any, other: Any) -> Any:
    """Add two sums; neither is changed, as they may be asked for again when a worker dies."""
    if one is None or other is None:
        return other if one is None else one
    total = deepcopy(one)
    total.add(other)
    return total


@contextmanager
def cluster_at(address: str) -> Iterator[Cluster]:
    """Connect to a scheduler, or start processes on this machine.

    Parameters
    ----------
    address : str
        ``tcp://host:8786``, or ``local:N`` for N processes.

    Raises
    ------
    OptionError
        There is no such scheduler, or Dask is not installed.
    """
    count = _count(address)
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError as error:
        msg = "--dask needs Dask: pip install 'calcheck[dask]'"
        raise OptionError(msg) from error
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters is told in one line
    settings = {
        "distributed.scheduler.allowed-failures": DEATHS,
        "distributed.comm.timeouts.connect": PATIENCE_SECONDS,
        "distributed.admin.large-graph-warning-threshold": "1GiB",
    }
    with warnings.catch_warnings(), dask.config.set(settings):
        warnings.simplefilter("ignore")  # of versions, ports and sizes
        local = None
        try:
            if count:
                local = LocalCluster(n_workers=count, threads_per_worker=1, processes=True, dashboard_address=None)
            client = Client(address if local is None else local, timeout=PATIENCE_SECONDS)
        except (OSError, ValueError) as error:
            msg = f"--dask {address}: no scheduler answers there ({error})"
            raise OptionError(msg) from error
        try:
            yield Cluster(client)
        finally:
            client.close()
            if local is not None:
                local.close()


def _count(address: str) -> int:
    """Return how many processes are to be started here; 0 for a scheduler elsewhere.

    Raises
    ------
    OptionError
        The address is none.
    """
    if not address.startswith(LOCAL):
        if "://" not in address and ":" not in address:
            msg = f"--dask takes an address such as tcp://host:8786, or local:N, got {address!r}"
            raise OptionError(msg)
        return 0
    number = address.removeprefix(LOCAL)
    if not number.isdigit() or not int(number):
        msg = f"--dask local:N takes a number of processes, at least 1, got {address!r}"
        raise OptionError(msg)
    return int(number)
