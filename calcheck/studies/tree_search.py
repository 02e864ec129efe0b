"""A tree that summarizes where uncertainties or predictions are wrong, with p-values from trees of replicates."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.inference.p_values import rejects
from calcheck.regions.binning import words_of
from calcheck.regions.scan import p_values_of
from calcheck.regions.scores import SCORES
from calcheck.regions.sentences import describe_faults
from calcheck.regions.tree import Trees
from calcheck.report import Conclusion, Finding, Report
from calcheck.studies.fault_findings import by_group, fault_findings, with_p_values
from calcheck.studies.searched_rows import FoundRegion, SearchedRows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from calcheck.regions.tree import Node
    from calcheck.report import Result

    Values = NDArray[np.float64]

NO_FAULT, NOT_JUDGED = "no fault found", "not judged"


class TreeSearch:
    """A tree of some rows.

    The nodes of the tree of the data are compared with those of the trees of all replicates, grown in the same way: the
    p-value of a node is the share of data sets of which any node has as large an excess, for either score; that of a
    split, the share of which any split has as large a gain. Splits are kept that are significant or above such splits,
    or above a significant node that is below none: a fault that is the same in all rows needs no split.

    Parameters
    ----------
    searched : SearchedRows
        The rows.
    depth : int
        Maximum number of splits above a leaf.
    """

    def __init__(self, searched: SearchedRows, depth: int) -> None:
        self.searched, self.depth = searched, depth

    @cached_property
    def trees(self) -> Trees:
        """How trees are grown, with the variances of the scores over the data and all replicates."""
        squares, count = np.zeros((len(self.searched.rows), 2)), 0
        for scores in self.searched.scores("variances: replicates"):
            squares += scores**2
            count += 1
        return Trees(self.searched.binnings, squares / count, self.depth, self.searched.min_rows)

    @cached_property
    def _grown(self) -> tuple[list[Node], Values]:
        """The nodes of the data; largest excess of a node, and largest gain of a split, by data set, (1 + R, 2)."""
        grown: list[Node] = []
        largest: list[tuple[float, float]] = []
        for scores in self.searched.scores("trees: replicates"):
            nodes = self.trees.grow(scores)
            grown = grown or nodes
            largest.append((float(self.trees.excess(nodes).max()), float(self.trees.gains(nodes).max())))
        return grown, np.array(largest)

    @cached_property
    def nodes(self) -> list[Node]:
        """The nodes of the pruned tree, depth first."""
        grown, _ = self._grown
        order = _depth_first(grown, self._kept(grown))
        number = {each: place for place, each in enumerate(order)}
        return [
            grown[each]._replace(parent=None if (parent := grown[each].parent) is None else number[parent])
            for each in order
        ]

    def _p_values(self, nodes: Sequence[Node]) -> Values:
        """Return the p-values of nodes, (m,)."""
        return p_values_of(self.trees.excess(nodes).max(axis=1), self._grown[1][:, 0])

    def _kept(self, nodes: Sequence[Node]) -> set[int]:
        """Return the nodes whose split is kept."""
        confidence = self.searched.run.confidence
        significant = [rejects(float(p), confidence) for p in self._p_values(nodes)]
        splits = p_values_of(self.trees.gains(nodes), self._grown[1][:, 1])
        kept: set[int] = set()
        for number in range(len(nodes)):
            above = _ancestors(nodes, number)
            if rejects(float(splits[number]), confidence):
                kept |= {number, *above}
            if significant[number] and not any(significant[each] for each in above):
                kept |= set(above)
        return kept

    @cached_property
    def regions(self) -> list[FoundRegion]:
        """The leaves of the pruned tree."""
        masks, parents = self.trees.masks(self.nodes), {each.parent for each in self.nodes}
        return [self._region(number, masks[number]) for number in range(len(self.nodes)) if number not in parents]

    def _region(self, number: int, mask: NDArray[np.bool_]) -> FoundRegion:
        node = self.nodes[number]
        score = int(np.argmax(np.abs(node.deviations)))
        conditions = self.trees.conditions(self.nodes, number)
        p_value = float(self._p_values([node])[0])
        return FoundRegion(conditions, np.flatnonzero(mask), score, node.deviations[score], p_value)

    @property
    def p_value(self) -> float:
        """The p-value of the tree: that of the node that deviates most."""
        return float(self._p_values(self._grown[0]).min())

    def report(self) -> Report:
        """Return the report, with metrics that describe the leaves."""
        from calcheck.version import __version__

        searched = self.searched
        results = [result for leaf in self.regions for result in searched.results(leaf, intervals=True)]
        return Report(
            calcheck=__version__,
            input=searched.source.input_info(),
            settings={
                **searched.settings(),
                "depth": self.depth,
                "p_value": self.p_value,
                "tree": self._described(results),
            },
            results=tuple(results),
            skipped=searched.skipped,
            conclusion=self._conclude(results),
        )

    def _described(self, results: Sequence[Result]) -> list[dict[str, Any]]:
        """Return the nodes for the report, depth first; only leaves have a group and a verdict."""
        p_values, verdicts = self._p_values(self.nodes), _verdicts(results)
        parents, leaves = {each.parent for each in self.nodes}, iter(self.regions)
        groups = [None if number in parents else next(leaves).slice["group"] for number in range(len(self.nodes))]
        return [
            {
                "parent": node.parent,
                "rule": "all rows" if (condition := self.trees.condition(node)) is None else words_of(condition),
                "rows": node.rows,
                "deviations": dict(zip(SCORES, node.deviations, strict=True)),
                "p_value": float(p_value),
                "group": group,
                "verdict": verdicts.get(str(group)),
            }
            for node, p_value, group in zip(self.nodes, p_values, groups, strict=True)
        ]

    def _conclude(self, results: Sequence[Result]) -> Conclusion:
        """Return what is wrong in which leaves."""
        count = f"{len(self._grown[1]) - 1:,} trees of a perfect model"
        if rejects(self.p_value, self.searched.run.confidence):
            return Conclusion(answer="no", findings=with_p_values(fault_findings(results), results, count))
        text = (
            f"no node of a tree differs from a perfect model by more than chance: p = {self.p_value:.2g} over {count}"
        )
        return Conclusion(answer="yes", findings=(Finding(topic="where", state="right", text=text),))


def _verdicts(results: Sequence[Result]) -> dict[str, str]:
    """Return what is wrong in each group, in words."""
    return {
        group: describe_faults(by_metric) or (NO_FAULT if _is_judged(by_metric) else NOT_JUDGED)
        for group, by_metric in by_group(results).items()
    }


def _is_judged(results: Mapping[str, Result]) -> bool:
    return any(each.verdict != "none" for each in results.values())


def _ancestors(nodes: Sequence[Node], number: int) -> list[int]:
    """Return the numbers of the nodes above a node."""
    parent = nodes[number].parent
    return [] if parent is None else [parent, *_ancestors(nodes, parent)]


def _depth_first(nodes: Sequence[Node], split: set[int]) -> list[int]:
    """Return the numbers of the nodes that remain if only some are split, depth first."""
    children: dict[int | None, list[int]] = {}
    for number, node in enumerate(nodes):
        children.setdefault(node.parent, []).append(number)
    found: list[int] = []
    waiting = [0]
    while waiting:
        number = waiting.pop()
        found.append(number)
        waiting += reversed(children.get(number, []) if number in split else [])
    return found
