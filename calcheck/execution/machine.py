"""Available memory of the machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from calcheck.errors import OptionError

KIB = 1 << 10
NEEDED_BYTES = 1_900_000 * KIB  # of addresses, for libraries and their threads; most of it is never used
CGROUPS = (  # Control group files (v2 and v1), as in containers: the memory limit and the current usage
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def available_memory() -> int:
    """Return the memory in bytes that this process can still allocate, as far as the system reports it.

    It determines only whether work is started, not how it is done, so results do not depend on it.
    """
    return max(0, min(_limits()))


def _limits() -> Iterator[int]:
    """Yield the memory left by the machine, the control group and the limit of the process."""
    page = os.sysconf("SC_PAGE_SIZE")
    yield page * os.sysconf("SC_PHYS_PAGES")
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * KIB
    for limit, used in CGROUPS:
        values = [*_lines(limit), *_lines(used)]
        if len(values) == 2 and values[0].isdigit():  # noqa: PLR2004 - both files exist; "max" means no limit
            yield int(values[0]) - int(values[1])
    most = address_space_limit()
    if most is not None:
        yield most - page * sum(int(line.split()[0]) for line in _lines("/proc/self/statm"))


def address_space_limit() -> int | None:
    """Return the limit on the memory of this process in bytes, as set by ``ulimit -v``; None if there is none."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if most == resource.RLIM_INFINITY else most


def require_address_space() -> None:
    """Raise if libraries cannot be loaded within the limit on memory: they would crash, or wait for ever."""
    most = address_space_limit()
    if most is not None and most < NEEDED_BYTES:
        msg = f"the limit on memory (ulimit -v {most // KIB}) is too low: at least {NEEDED_BYTES // KIB} are needed"
        raise OptionError(msg)


def _lines(path: str) -> list[str]:
    """Return the lines of a system file; none if it does not exist."""
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
