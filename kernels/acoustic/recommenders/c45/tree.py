"""C4.5, a classification tree for weighted examples with numeric features.

Quinlan, C4.5: Programs for Machine Learning (1993), with Release 8's treatment of numeric features
(Quinlan, Improved Use of Continuous Attributes in C4.5, JAIR 4, 1996); Weka's J48 is the same
algorithm. Here as there: a threshold is chosen by information gain, the feature by gain ratio among
those of at least average gain; each side of a split holds a minimum of examples; the grown tree is
pruned by pessimistic error estimates, a subtree giving way to a leaf or to its largest branch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Self

import numpy as np

_EQUAL = 1e-6  # difference up to which J48 takes two figures for equal
_MARGIN = 0.1  # pruning takes the smaller tree when it is at most this many estimated errors worse


@dataclass
class Node:
    """A leaf, or a split ``feature <= threshold`` (left) against above it (right). ``distribution``
    holds the weight of each class among the examples that reached the node."""

    distribution: np.ndarray
    feature: int = -1
    threshold: float = 0.0
    left: Node | None = None
    right: Node | None = None

    @property
    def is_leaf(self) -> bool:
        return self.left is None

    @property
    def children(self) -> tuple[Node, ...]:
        return () if self.left is None or self.right is None else (self.left, self.right)

    def become_leaf(self) -> None:
        self.feature, self.left, self.right = -1, None, None

    def errors(self) -> float:
        """Weight of the examples outside the majority class."""
        return float(self.distribution.sum() - self.distribution.max(initial=0.0))


@dataclass(frozen=True)
class _Split:
    feature: int
    threshold: float
    gain: float
    ratio: float


class C45Tree:
    """The tree.

    ``minimum``: least weight of examples on either side of a split (2, as published). Release 8
    raises it to a tenth of a node's examples per class of the whole table, at most 25; so does
    this.
    ``confidence``: confidence of the error estimates that prune (.25, as published); smaller prunes
    more, 1 and above not at all.
    """

    def __init__(self, minimum: float = 2.0, confidence: float = 0.25) -> None:
        self.minimum = minimum
        self.confidence = confidence

    def fit(self, features: np.ndarray, classes: np.ndarray, weights: np.ndarray) -> Self:
        """Grow the tree on weighted examples, then prune it.

        ``features``: float64, shape (examples, features), finite.
        ``classes``: numbers of the classes from 0, int64, shape (examples,).
        ``weights``: positive, shape (examples,).
        Raises ValueError when there are no examples.
        """
        if not len(classes):
            raise ValueError("no examples")
        self._count = int(classes.max()) + 1
        self._values = [np.unique(column) for column in np.asarray(features, dtype=float).T]
        rows = np.arange(len(classes))
        data = (np.asarray(features, dtype=float), classes, np.asarray(weights, dtype=float))
        self.root = self._grow(data, rows)
        if self.confidence < 1:
            self._collapse(self.root)
            self._prune(self.root, data, rows)
        return self

    def _distribution(self, data: Any, rows: np.ndarray) -> np.ndarray:
        return np.bincount(data[1][rows], weights=data[2][rows], minlength=self._count)

    def _grow(self, data: Any, rows: np.ndarray) -> Node:
        node = Node(self._distribution(data, rows))
        total = node.distribution.sum()
        if total < 2 * self.minimum or node.errors() <= 1e-9:
            return node
        split = self._best_split(data, rows, node.distribution)
        if split is None:
            return node
        below = data[0][rows, split.feature] <= split.threshold
        node.feature, node.threshold = split.feature, split.threshold
        node.left = self._grow(data, rows[below])
        node.right = self._grow(data, rows[~below])
        return node

    def _best_split(self, data: Any, rows: np.ndarray, distribution: np.ndarray) -> _Split | None:
        splits = [
            split
            for feature in range(data[0].shape[1])
            if (split := self._threshold(data, rows, feature, distribution)) is not None
        ]
        if not splits:
            return None
        average = sum(split.gain for split in splits) / len(splits)
        # A gain ratio alone favours splits of next to no gain.
        good = [split for split in splits if split.gain >= average - 1e-3]
        return good[_first_of_best(np.array([split.ratio for split in good]))]

    def _threshold(
        self, data: Any, rows: np.ndarray, feature: int, distribution: np.ndarray
    ) -> _Split | None:
        """The threshold of largest gain, or None when no split of this feature gains."""
        values = data[0][rows, feature]
        order = np.argsort(values, kind="stable")
        values, classes, weights = values[order], data[1][rows][order], data[2][rows][order]
        ends = np.flatnonzero(np.diff(values) > 0)  # last example of each distinct value but one
        if not len(ends):
            return None
        one_hot = np.zeros((len(values), self._count))
        one_hot[np.arange(len(values)), classes] = weights
        left = np.cumsum(one_hot, axis=0)[ends]
        right = distribution - left
        total = distribution.sum()
        lefts, rights = left.sum(axis=1), right.sum(axis=1)
        least = min(max(0.1 * total / self._count, self.minimum), max(25.0, self.minimum))
        allowed = (lefts >= least - 1e-9) & (rights >= least - 1e-9)
        # J48 compares the number of examples, whatever they weigh, with the weight of both sides.
        if not allowed.any() or len(rows) < 2 * least:
            return None
        after = (lefts * _entropy(left) + rights * _entropy(right)) / total
        gains = np.where(allowed, float(_entropy(distribution[None])[0]) - after, -np.inf)
        best = _first_of_best(gains)
        # Release 8: choosing among many thresholds costs bits; what is left must still gain.
        gain = float(gains[best]) - math.log2(int(allowed.sum())) / total
        if gain <= 1e-9:
            return None
        sides = np.array([[lefts[best], rights[best]]])
        # The largest value of the whole table up to the middle, whichever examples are here.
        middle = (values[ends[best]] + values[ends[best] + 1]) / 2
        known = self._values[feature]
        threshold = float(known[np.searchsorted(known, middle, side="right") - 1])
        return _Split(feature, threshold, gain, gain / max(float(_entropy(sides)[0]), 1e-12))

    def _collapse(self, node: Node) -> float:
        """Drop splits that do not even lower the training error; give the errors below."""
        if node.is_leaf:
            return node.errors()
        below = sum(self._collapse(child) for child in node.children)
        if below >= node.errors() - 1e-3:
            node.become_leaf()
            return node.errors()
        return below

    def _prune(self, node: Node, data: Any, rows: np.ndarray) -> None:
        if node.left is None or node.right is None:
            return
        below = data[0][rows, node.feature] <= node.threshold
        self._prune(node.left, data, rows[below])
        self._prune(node.right, data, rows[~below])
        # Of two that are as large, J48 takes the later one.
        left, right = (child.distribution.sum() for child in node.children)
        larger = node.right if right >= left - _EQUAL else node.left
        as_tree = self._estimated(node)
        as_leaf = self._pessimistic(node.distribution)
        as_branch = self._estimated_on(larger, data, rows)
        if as_leaf <= as_tree + _MARGIN and as_leaf <= as_branch + _MARGIN:
            node.become_leaf()
        elif as_branch <= as_tree + _MARGIN:
            node.feature, node.threshold = larger.feature, larger.threshold
            node.left, node.right = larger.left, larger.right
            self._redistribute(node, data, rows)
            self._prune(node, data, rows)

    def _pessimistic(self, distribution: np.ndarray) -> float:
        total = float(distribution.sum())
        errors = total - float(distribution.max(initial=0.0))
        return errors + added_errors(total, errors, self.confidence)

    def _estimated(self, node: Node) -> float:
        if node.is_leaf:
            return self._pessimistic(node.distribution)
        return sum(self._estimated(child) for child in node.children)

    def _estimated_on(self, node: Node, data: Any, rows: np.ndarray) -> float:
        """Estimated errors of a branch if all of ``rows`` were sent down it."""
        if node.left is None or node.right is None:
            return self._pessimistic(self._distribution(data, rows))
        below = data[0][rows, node.feature] <= node.threshold
        return self._estimated_on(node.left, data, rows[below]) + self._estimated_on(
            node.right, data, rows[~below]
        )

    def _redistribute(self, node: Node, data: Any, rows: np.ndarray) -> None:
        node.distribution = self._distribution(data, rows)
        if node.left is not None and node.right is not None:
            below = data[0][rows, node.feature] <= node.threshold
            self._redistribute(node.left, data, rows[below])
            self._redistribute(node.right, data, rows[~below])

    def distributions(self, features: np.ndarray) -> np.ndarray:
        """Share of each class in the leaf of each row: float64, shape (rows, classes)."""
        found = np.empty((len(features), self._count))
        for row, values in enumerate(np.asarray(features, dtype=float)):
            node = self.root
            while node.left is not None and node.right is not None:
                node = node.left if values[node.feature] <= node.threshold else node.right
            total = node.distribution.sum()
            # A branch that was moved up may have a leaf that no example reaches: ask above it.
            shares = node.distribution if total > 0 else self.root.distribution
            found[row] = shares / shares.sum()
        return found

    @property
    def leaves(self) -> int:
        return _leaves(self.root)

    def plain(self) -> dict[str, Any]:
        return {"classes": self._count, "root": _plain(self.root)}

    def restore(self, plain: dict[str, Any]) -> Self:
        self._count = int(plain["classes"])
        self.root = _node(plain["root"], self._count)
        return self


def _first_of_best(figures: np.ndarray) -> int:
    """Index of the largest figure, of those that are as large the first one, as J48 goes on."""
    best = 0
    for place, figure in enumerate(figures):
        if figure > figures[best] + _EQUAL:
            best = place
    return best


def added_errors(total: float, errors: float, confidence: float) -> float:
    """Errors to add to the observed ones for a pessimistic estimate.

    The upper limit of a binomial proportion at ``confidence``, by its normal approximation with
    continuity correction; exact without errors, and interpolated below one error (Quinlan 1993,
    chapter 4).

    ``total``: weight of the examples at a leaf.
    ``errors``: weight of those that it gets wrong.
    ``confidence``: between 0 and .5; above, nothing is added.
    """
    if confidence > 0.5 or total <= 0:
        return 0.0
    if errors < 1:
        none = total * (1 - confidence ** (1 / total))
        if errors <= 0:
            return none
        return none + errors * (added_errors(total, 1.0, confidence) - none)
    if errors + 0.5 >= total:
        return max(total - errors, 0.0)
    z = NormalDist().inv_cdf(1 - confidence)
    rate = (errors + 0.5) / total
    spread = z * math.sqrt(rate / total - rate * rate / total + z * z / (4 * total * total))
    limit = (rate + z * z / (2 * total) + spread) / (1 + z * z / total)
    return limit * total - errors


def _entropy(weights: np.ndarray) -> np.ndarray:
    """Entropy in bits, shape (rows,), of class weights, shape (rows, classes)."""
    totals = weights.sum(axis=1, keepdims=True)
    shares = np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0)
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.asarray(-(shares * logs).sum(axis=1))


def _leaves(node: Node) -> int:
    return 1 if node.is_leaf else sum(_leaves(child) for child in node.children)


def _plain(node: Node) -> dict[str, Any]:
    held = {
        str(number): float(node.distribution[number]) for number in node.distribution.nonzero()[0]
    }
    if node.left is None or node.right is None:
        return {"weights": held}
    return {
        "weights": held,
        "feature": node.feature,
        "threshold": node.threshold,
        "left": _plain(node.left),
        "right": _plain(node.right),
    }


def _node(plain: dict[str, Any], count: int) -> Node:
    distribution = np.zeros(count)
    for number, weight in plain["weights"].items():
        distribution[int(number)] = weight
    if "feature" not in plain:
        return Node(distribution)
    return Node(
        distribution,
        int(plain["feature"]),
        float(plain["threshold"]),
        _node(plain["left"], count),
        _node(plain["right"], count),
    )
