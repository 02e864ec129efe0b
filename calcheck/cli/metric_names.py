"""Names of metrics on the command line."""

from __future__ import annotations

import sys

from calcheck.metrics import ALIASES


def metric_name(name: str) -> str:
    """Return the name of a metric; for an alias, also write to standard error which metric it stands for."""
    if name not in ALIASES:
        return name
    alias = ALIASES[name]
    sys.stderr.write(f"calcheck: {name} ({alias.meaning}) is {alias}\n")
    return alias.metric
