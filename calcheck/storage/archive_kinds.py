"""Kinds of archives that calcheck writes, by which a file is recognized before what reads it is loaded."""

from calcheck.storage.npz import is_archive

STATE, MONITOR_STATE, CHECKPOINT = "state", "monitor state", "checkpoint"


def is_monitor_state(path: str) -> bool:
    """Return whether a file is the state of a monitored model."""
    return is_archive(path, MONITOR_STATE)
