"""Typed models of what a committee holds as JSON (see :mod:`launchwise.learning.stored`)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, FiniteFloat

from launchwise.base.typed import Strict
from launchwise.learning.choosing.situations import Situation
from launchwise.learning.stored import Count, Log


class StoredPlan(Strict):
    """As :class:`launchwise.learning.choosing.plans.Plan`."""

    members: Annotated[list[str], Field(min_length=1)]
    caution: Log
    cases: Count
    loss: Log | None
    harmed: Count
    abstained: Count
    offsets: tuple[Log, Log] | None
    timer: str | None
    time_offsets: tuple[Log, Log] | None


class StoredKnown(Strict):
    """As :class:`launchwise.learning.choosing.situations.Known`."""

    gpus: list[str]
    ranges: dict[str, tuple[FiniteFloat, FiniteFloat]]
    values: dict[str, list[str]]


class CommitteeState(Strict):
    """State of a committee."""

    plans: dict[Situation, StoredPlan]
    known: StoredKnown
    cards: dict[str, str]
