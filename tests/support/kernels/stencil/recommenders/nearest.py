"""A workload's own kind: what was best at the nearest size, with its held-out score."""

from __future__ import annotations

from typing import Any

from launchwise.learning.baselines import NearestSize


class NearestRecommender(NearestSize):
    """The configurations of the nearest training problem, best first."""

    title = "nearest"
    cross_validated = True

    def summary(self) -> dict[str, Any]:
        """No feature is dropped."""
        return {**super().summary(), "features_dropped": []}
