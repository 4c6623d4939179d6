"""A workload's own kind: what was best at the nearest size, with its held-out score."""

from __future__ import annotations

from typing import Any, ClassVar

from launchwise.learning.baselines import NearestSize


class NearestRecommender(NearestSize):
    """The configurations of the nearest training problem, best first."""

    title = "nearest"
    cross_validated = True
    defaults: ClassVar[dict[str, Any]] = {"seed": 0}
    allowed: ClassVar[dict[str, Any]] = {"seed": [(0, 2**32 - 1)]}

    def summary(self) -> dict[str, Any]:
        """No feature is dropped."""
        return {**super().summary(), "features_dropped": []}
