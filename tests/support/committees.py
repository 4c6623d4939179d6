"""Answering methods of members that are plain kinds of models and simple rules."""

from __future__ import annotations

from typing import Any

from launchwise.learning.baselines import BASELINES
from launchwise.learning.features import Domain
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.recommenders.committee import CommitteeRecommender


def committee(
    domain: Domain, members: str = "knn, tree, nearest_size", **parameters: Any
) -> CommitteeRecommender:
    """A committee that is not fitted, of members that are named as their kinds."""
    names = members.split(", ")
    made = CommitteeRecommender(domain, members=members, **parameters)
    return made.of(
        {name: (BASELINES.get(name) or recommender_class(name))(domain) for name in names},
        {name: name for name in names},
    )
