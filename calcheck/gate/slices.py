"""Results of groups and regions of the rows, as rules refer to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from calcheck.report import Result

    ByGroup = dict[str, dict[str, Result]]


@dataclass(frozen=True)
class SliceSummary:
    """What rules can say about all groups or regions together.

    Parameters
    ----------
    min_p : float or None
        Smallest p-value, adjusted for the number of groups and metrics, or of regions.
    groups : int
        Number of groups, or of regions in the report.
    failed : int
        Number of these that fail.
    """

    min_p: float | None
    groups: int
    failed: int

    @classmethod
    def from_groups(cls, groups: ByGroup) -> SliceSummary:
        """Return the summary of the results of each group by metric."""
        results = [result for each in groups.values() for result in each.values()]
        p_values = [result.p_value_adjusted for result in results if result.p_value_adjusted is not None]
        failed = sum(any(result.verdict == "fail" for result in each.values()) for each in groups.values())
        return cls(min(p_values, default=None), len(groups), failed)


def results_by_group(results: Iterable[Result]) -> ByGroup:
    """Return the results of groups or regions, by the name of the group and the metric; those of all rows under ""."""
    found: ByGroup = {"": {}}
    for result in results:
        found.setdefault(str(result.slice.get("group", "")), {})[result.metric] = result
    return found
