"""Available memory of the machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

KIB = 1 << 10
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
    try:
        import resource
    except ImportError:  # Windows
        return
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY:
        yield most - page * sum(int(line.split()[0]) for line in _lines("/proc/self/statm"))


def _lines(path: str) -> list[str]:
    """Return the lines of a system file; none if it does not exist."""
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
