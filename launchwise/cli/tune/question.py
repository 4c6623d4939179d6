"""What ``launchwise tune`` is asked, and how it chooses what it measures.

Everything, or what a search proposes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.experiment.method import STATED_PERCENT, ProblemBlock
from launchwise.workflow.estimate import nominal_bandwidth_gbs, volume
from launchwise.workloads.spec import Spec

MOST_EVALUATIONS = 10_000
"""Rows per problem of a search that ends when it is sure."""

LONGEST_S = 60.0
"""Longest estimated time of measuring everything, s, where nothing says how to search."""


@dataclass(frozen=True)
class Question:
    """Arguments of the command; see :func:`launchwise.cli.tune.command.tune`."""

    workload: str
    problem: Sequence[str]
    gpu: str
    device: str | None
    known: Sequence[Path]
    evaluations: int | None
    minutes: float | None
    within: float | None
    every: bool
    folder: Path | None
    cores: int
    dry_run: bool


@dataclass(frozen=True)
class Strategy:
    """Strategy of a sweep as settings have it; empty where everything is measured."""

    settings: Mapping[str, Any]
    # Why a search was chosen, where nobody asked for one; empty otherwise.
    why: str = ""


def percent(text: str | None) -> float | None:
    """A number of percent, such as ``1%`` or ``0.5``.

    Raises
    ------
    UserError
        When it is none between 0 and 100.
    """
    if text is None:
        return None
    try:
        number = float(text.strip().removesuffix("%"))
    except ValueError:
        number = 0.0
    if not 0 < number < 100:
        raise UserError("--within", "", f"{text!r} is no percentage above 0 and below 100")
    return number


def is_search_asked(asked: Question) -> bool:
    """Whether an option says how to search.

    Raises
    ------
    UserError
        When another one says that all configurations shall be measured.
    """
    given = {
        "--known": asked.known or None,
        "--evaluations": asked.evaluations,
        "--minutes": asked.minutes,
        "--within": asked.within,
    }
    names = [name for name, value in given.items() if value is not None]
    if names and asked.every:
        raise UserError("--all", "", f"measures every configuration: leave {names[0]} out")
    return bool(names)


def strategy_of(asked: Question, spec: Spec, blocks: Iterable[ProblemBlock], arch: str) -> Strategy:
    """Strategy for a question.

    Parameters
    ----------
    blocks
        Problems as settings have them.
    arch
        Architecture of the card, such as ``sm_90``; that of the slowest card where it is none.
    """
    if is_search_asked(asked):
        return Strategy(_search(asked))
    if asked.every:
        return Strategy({})
    try:
        found = volume(spec, blocks, None)
    except UserError:
        return Strategy(_search(asked), "too many configurations to list")
    seconds = found.seconds(nominal_bandwidth_gbs(arch))
    if seconds <= LONGEST_S:
        return Strategy({})
    words = f"all {found.rows} configurations would take about {seconds / 60:.0f} min"
    return Strategy(_search(asked), words)


def _search(asked: Question) -> dict[str, Any]:
    unlimited = asked.evaluations is None and asked.minutes is None
    within = STATED_PERCENT if unlimited and asked.within is None else asked.within
    limits = {
        "budget": MOST_EVALUATIONS if unlimited else asked.evaluations,
        "minutes": asked.minutes,
        "stop_below_percent": within,
    }
    return {"kind": "transfer", **{key: each for key, each in limits.items() if each is not None}}
