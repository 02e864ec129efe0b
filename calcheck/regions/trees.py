"""Trees of bins in which row scores deviate from those of a perfect model."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from calcheck.core.filter_conditions import DIFFERENT, EQUAL, Condition
from calcheck.regions.partition import Partition
from calcheck.regions.scan import excess_of, standardize
from calcheck.typing import Indices, Mask, Values


class Split(NamedTuple):
    """A split of a node: some bins of a column, and the others."""

    column: int
    place: int  # Number of the split among those of the column


class Node(NamedTuple):
    """A node of a tree."""

    parent: int | None  # Number of the node that was split; None for the root
    split: Split | None  # The split of the parent
    first: bool  # Whether the node has the rows of the first side of the split
    rows: int
    deviations: tuple[float, float]  # Sums of the scores in units of their standard deviations
    spreads: tuple[float, float]  # Sums of squared differences of the scores from their means in the node
    variances: tuple[float, float]  # Sums of their variances for a perfect model


@dataclass(frozen=True, eq=False)
class Trees:
    """Greedy trees of n rows, one per data set, split where the squared deviations of parts increase most.

    Ordered bins are cut, and other bins split from all others; a column with missing values is cut only where these are
    split off already.
    """

    partitions: tuple[Partition, ...]  # Bins of the columns
    variances: Values  # (n, 2), variances of the scores of a perfect model, the same for all data sets
    depth: int  # Maximum number of splits above a leaf
    min_rows: int  # Minimum number of rows of a leaf

    @cached_property
    def sides(self) -> list[Mask]:
        """The bins on the first side of each split of each column, (s, k) each: first cuts, then single bins."""
        found = []
        for partition in self.partitions:
            bins = np.arange(len(partition.bins))
            single = [each for each in bins[partition.ordered :] if len(partition.bins[each]) == 1]
            cuts = [bins <= place for place in range(len(partition.cuts))]
            found.append(np.array([*cuts, *(bins == each for each in single)], dtype=np.bool_).reshape(-1, len(bins)))
        return found

    def grow(self, scores: Values) -> list[Node]:
        """Return the nodes of the tree of a data set with scores (n, 2), the root first, parents before children."""
        values = np.concatenate([scores, self.variances, scores**2], axis=1)
        nodes = [_node(None, None, np.append(len(scores), values.sum(axis=0)), first=True)]
        rows, place = np.arange(len(scores)), np.zeros(len(scores), dtype=np.intp)  # Place among the nodes to split
        waiting = [0]
        for _ in range(self.depth):
            splits = self._best_splits(rows, place, values, len(waiting))
            children: list[int] = []
            target = np.full((len(waiting), 2), -1)
            for number, found in enumerate(splits):
                if found is None:
                    continue
                split, parts = found
                for side, part in enumerate(parts):
                    target[number, side] = len(children)
                    children.append(len(nodes))
                    nodes.append(_node(waiting[number], split, part, first=side == 0))
            place = target[place, self._side(rows, place, splits)]
            rows, place, waiting = rows[place >= 0], place[place >= 0], children
            if not waiting:
                break
        return nodes

    def _best_splits(
        self, rows: Indices, place: Indices, values: Values, count: int
    ) -> list[tuple[Split, tuple[Values, Values]] | None]:
        """Return the best split of each of ``count`` nodes, with the sums of its two parts; None if there is none."""
        best: list[tuple[Split, tuple[Values, Values]] | None] = [None] * count
        gains = np.full(count, -np.inf)
        columns = np.ascontiguousarray(values[rows].T)
        for number, (partition, sides) in enumerate(zip(self.partitions, self.sides, strict=True)):
            k = len(partition.bins)
            cell = place * k + partition.label[rows]
            sums = [np.bincount(cell, weights, count * k) for weights in (None, *columns)]
            by_bin = np.stack(sums, axis=1).astype(np.float64).reshape(count, k, 7)
            first = np.einsum("sk,mkc->msc", sides.astype(np.float64), by_bin)
            second = by_bin.sum(axis=1)[:, None] - first
            gain = self._gains(partition, by_bin, first, second)
            for node in np.flatnonzero(gain.max(axis=1, initial=-np.inf) > gains):
                chosen = int(gain[node].argmax())
                gains[node] = gain[node, chosen]
                best[node] = Split(number, chosen), (first[node, chosen], second[node, chosen])
        return best

    def _gains(self, partition: Partition, by_bin: Values, first: Values, second: Values) -> Values:
        """Return by how much squared deviations increase, (m, s); -inf where a split is not allowed."""
        parent = first + second
        gain = (_squares(first) + _squares(second) - _squares(parent)).max(axis=2)
        allowed = np.minimum(first[..., 0], second[..., 0]) >= self.min_rows
        unordered = by_bin[:, partition.ordered :, 0].sum(axis=1) > 0
        cuts = np.arange(first.shape[1]) < len(partition.cuts)
        return np.where(allowed & ~(unordered[:, None] & cuts), gain, -np.inf)

    def _side(
        self, rows: Indices, place: Indices, splits: Sequence[tuple[Split, tuple[Values, Values]] | None]
    ) -> Indices:
        """Return on which side of the split of its node each row is, 0 or 1; 1 if there is none."""
        found = np.ones(len(rows), dtype=np.intp)
        for number, split in enumerate(splits):
            if split is not None:
                inside = place == number
                column, chosen = split[0]
                found[inside] = ~self.sides[column][chosen][self.partitions[column].label[rows[inside]]]
        return found

    def excess(self, nodes: Sequence[Node]) -> Values:
        """Return how far the deviations of nodes exceed what is usual for regions of their size, (m, 2)."""
        rows = np.array([each.rows for each in nodes], dtype=np.float64)
        return excess_of(np.array([each.deviations for each in nodes]), rows[:, None], len(self.variances))

    def gains(self, nodes: Sequence[Node]) -> Values:
        """Return by how much the squared deviations of the parts of each node exceed its own, (m,); -inf for leaves.

        They are relative to the variance within the parts: where a model is wrong everywhere alike, scores vary more.
        """
        children: dict[int, list[Node]] = {}
        for each in nodes:
            if each.parent is not None:
                children.setdefault(each.parent, []).append(each)
        found = np.full(len(nodes), -np.inf)
        for number, parts in children.items():
            squares = [np.square(each.deviations) for each in (*parts, nodes[number])]
            within = np.sum([each.spreads for each in parts], axis=0)
            expected = np.sum([each.variances for each in parts], axis=0)
            gain = (squares[0] + squares[1] - squares[2]) * expected
            found[number] = np.divide(gain, within, out=np.where(gain > 0, np.inf, 0.0), where=within > 0).max()
        return found

    def masks(self, nodes: Sequence[Node]) -> list[Mask]:
        """Return which rows are in each node, (n,) each."""
        found: list[Mask] = []
        for node in nodes:
            if node.parent is None or node.split is None:
                found.append(np.ones(len(self.variances), dtype=np.bool_))
                continue
            column, place = node.split
            first = self.sides[column][place][self.partitions[column].label]
            found.append(found[node.parent] & (first == node.first))
        return found

    def condition(self, node: Node) -> Condition | None:
        """Return the condition of a node on the rows of its parent; None for the root."""
        if node.split is None:
            return None
        partition, place = self.partitions[node.split.column], node.split.place
        if place < len(partition.cuts):
            below, above = partition.cuts[place]
            return below if node.first else above
        bin_ = int(np.flatnonzero(self.sides[node.split.column][place])[0])
        (only,) = partition.bins[bin_]
        return only if node.first else only.opposite()

    def conditions(self, nodes: Sequence[Node], number: int) -> tuple[Condition, ...]:
        """Return the conditions of the rows of a node, without those that follow from limits of deeper nodes."""
        found: list[Condition] = []
        node = nodes[number]
        while node.parent is not None:
            condition = self.condition(node)
            if condition is not None and not any(_implies(each, condition) for each in found):
                found.append(condition)
            node = nodes[node.parent]
        return tuple(reversed(found))


def _implies(inner: Condition, outer: Condition) -> bool:
    """Return whether a deeper condition implies another: a limit one on its side, a value that it is not another."""
    if inner.column != outer.column or inner.operator == DIFFERENT:
        return False
    if inner.operator == EQUAL:
        return outer.operator == DIFFERENT
    return inner.operator == outer.operator or (outer.operator, outer.value) == (DIFFERENT, "")


def _squares(sums: Values) -> Values:
    """Return the squared deviations of parts, (..., 2), given their counts, sums of scores and variances, (..., 7)."""
    return standardize(sums[..., 1:3], sums[..., 3:5]) ** 2


def _node(parent: int | None, split: Split | None, sums: Values, *, first: bool) -> Node:
    """Return a node, given its count, and its sums of scores, variances and squared scores, (7,)."""
    rows, scores, variances = sums[0], sums[1:3], sums[3:5]
    spreads = np.maximum(sums[5:7] - scores**2 / rows, 0)
    deviations = standardize(scores, variances)
    return Node(parent, split, first, int(rows), _pair(deviations), _pair(spreads), _pair(variances))


def _pair(values: Values) -> tuple[float, float]:
    bias, dispersion = values
    return float(bias), float(dispersion)
