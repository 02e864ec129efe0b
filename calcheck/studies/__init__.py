"""What people do with metrics: one folder for each study, and an entry here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calcheck.studies.base import Study


class Registry(Mapping[str, "Study"]):
    """Studies by name, each imported when it is first used: ``reject`` is ``REJECT`` in `options.py` of its folder."""

    def __init__(self, folders: Mapping[str, str]) -> None:
        self.folders = dict(folders)

    def __getitem__(self, name: str) -> Study:
        found: Study = getattr(import_module(f"{__name__}.{self.folders[name]}.options"), name.upper())
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.folders)

    def __len__(self) -> int:
        return len(self.folders)


STUDIES = Registry(
    {
        "compare": "compare",
        "slices": "slices",
        "monitor": "monitor",
        "recalibrate": "recalibrate",
        "reject": "reject",
        "sweep": "sweep",
        "validity": "validity",
        "diff": "compare",
        **dict.fromkeys(("mcmd", "mmd"), "two_samples"),
        "prune": "reject",
        "trend": "compare",
    }
)
"""The folder of each study, in the order of the help."""
