"""What the machine has left."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

KIB = 1 << 10
GROUPS = (  # files of processes with a limit of their own, as containers have: the limit, and what is used of it
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def available_memory() -> int:
    """Return how many bytes this process can still take, as far as the system tells.

    It decides whether work is begun at all, never how it is done: results do not depend on it.
    """
    return max(0, min(_limits()))


def _limits() -> Iterator[int]:
    """Say what the machine, the process's group, and its own limit leave."""
    page = os.sysconf("SC_PAGE_SIZE")
    yield page * os.sysconf("SC_PHYS_PAGES")
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * KIB
    for limit, used in GROUPS:
        told = [*_lines(limit), *_lines(used)]
        if len(told) == 2 and told[0].isdigit():  # noqa: PLR2004 - both are there; "max" is no limit
            yield int(told[0]) - int(told[1])
    try:
        import resource
    except ImportError:  # Windows
        return
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY:
        yield most - page * sum(int(line.split()[0]) for line in _lines("/proc/self/statm"))


def _lines(path: str) -> list[str]:
    """Read a file of the system's; not every system has it."""
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
