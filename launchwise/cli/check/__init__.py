"""``launchwise check``: steps of the check of a workload, and what they come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.names import SPEC_FILE

OK = "ok"
OPEN = "open"
LEFT_OUT = "left out"
REFUSED = "refused"
SOME_REFUSED = "some refused"
WRONG = "wrong"
FAILED = "failed"
"""Statuses of steps; ``open``: a draft with questions; ``wrong``, ``failed``: runs on the CPU."""

MOST_REASONS = 3  # Reasons of the last line for what was left out


@dataclass(frozen=True)
class Step:
    """A part of the check, with its status and one line."""

    name: str  # `spec`, `expressions`, `sweep`, `host`, `compile`, `cpu` or `values`
    status: str  # one of `OK` and those below it
    said: str  # what was found, or the reason; of a run its name in front
    variant: str = ""  # variant of a run; '' where a whole problem is left out
    larger: bool = False  # whether a run has sizes above the smallest, which were drawn with it

    @property
    def reason(self) -> str:
        """What is said of a run, without its name."""
        return self.said.partition(": ")[2]

    def as_facts(self) -> dict[str, Any]:
        facts = {"name": self.name, "status": self.status, "said": self.said}
        return {**facts, "passed": self.status in (OK, OPEN)}


def verdict(folder: Path, steps: Sequence[Step], cpu: bool) -> str:
    """Why a check that came to its end is no success; '' where it is one. ``cpu``: whether runs on
    the CPU were asked for. Raises UserError for the first run whose results are wrong, or that
    fails."""
    runs = [step for step in steps if step.name == "cpu"]
    if wrong := [step for step in runs if step.status in (WRONG, FAILED)]:
        name, _, why = wrong[0].said.partition(": ")
        more = f"; {len(wrong) - 1} others are wrong or fail" if len(wrong) > 1 else ""
        message = f"{wrong[0].status} on the CPU: {why} ({name}){more}"
        raise UserError(folder / SPEC_FILE, f"variants.{wrong[0].variant}", message)
    larger = [step for step in runs if step.larger]
    if cpu and not any(step.status == OK for step in larger or runs):
        what = " above the smallest sizes" if any(step.status == OK for step in runs) else ""
        said = f", {summary(runs)}" if runs else ": no configuration is feasible"
        return f"nothing{what} was verified on the CPU{said}"
    compiled = [step for step in steps if step.name == "compile"]
    if not cpu and compiled and all(step.status == LEFT_OUT for step in compiled):
        return f"nothing was compiled: {compiled[0].said}"
    return ""


def summary(steps: Sequence[Step]) -> str:
    """How many runs on the CPU are left out, with the most frequent reasons; '' without any."""
    runs = [step for step in steps if step.name == "cpu"]
    reasons: Counter[str] = Counter()
    for step in runs:
        if step.status == LEFT_OUT:
            reasons[step.reason] += 1
    if not reasons:
        return ""
    most = reasons.most_common(MOST_REASONS)
    said = "; ".join(f"{count}: {reason}" for reason, count in most) if most[1:] else most[0][0]
    others = reasons.total() - sum(count for _, count in most)
    more = f"; {others} for other reasons" if others else ""
    return f"{reasons.total()} of {len(runs)} runs are left out: {said}{more}"
