"""The command ``launchwise check``: its steps, and what they come to."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from launchwise.base.errors import UserError
from launchwise.base.names import SPEC_FILE
from launchwise.cli.options import Workload

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
        """As ``--json`` prints it."""
        facts = {"name": self.name, "status": self.status, "said": self.said}
        return {**facts, "passed": self.status in (OK, OPEN)}


def verdict(folder: Path, steps: Sequence[Step], cpu: bool) -> str:
    """Why a check that came to its end is no success; '' where it is one.

    ``cpu``: whether runs on the CPU were asked for.
    Raises UserError for the first run whose results are wrong, or that fails.
    """
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


def check(
    workload: Workload,
    problem: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME=VALUE[,VALUE...]...",
            help="Problems to run on the CPU, such as n=512,1024. Left out: small ones.",
            show_default=False,
        ),
    ] = None,
    arch: Annotated[
        str, typer.Option(help="Architecture that the kernels are compiled for.")
    ] = "sm_90",
    cpu: Annotated[
        bool, typer.Option("--cpu", help="Also run small problems on the CPU, through g++.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the steps as JSON.")] = False,
) -> None:
    """Check a workload without a GPU: files, expressions, host code, compilation.

    Exit code 2: a mistake, or a run on the CPU that is wrong. Exit code 1: nothing was compiled or
    verified.
    """
    from launchwise.base.work import usable_cores
    from launchwise.cli.check.checking import checked
    from launchwise.cli.options import workload_folder

    folder = workload_folder(workload)
    if problem and not cpu:
        raise UserError("check", problem[0], "problems run on the CPU alone: add --cpu")
    steps, told = [], set()
    try:
        for step in checked(folder, arch, usable_cores(), cpu, problem or []):
            steps.append(step)
            key = step.variant, step.reason
            # Each reason is told once per variant.
            again = step.status == LEFT_OUT and step.variant and key in told
            if not as_json and not again:
                print(f"{step.status:8} {step.name}: {step.said}", flush=True)
            told.add(key)
    except UserError as error:
        if all(step.status not in (WRONG, FAILED) for step in steps):
            raise
        # The last line says what is wrong on the CPU.
        print(f"{REFUSED:8} {error}", flush=True)
    if as_json:
        print(json.dumps([step.as_facts() for step in steps], indent=2))
    elif said := summary(steps):
        print(f"{'':8} cpu: {said}")
    if said := verdict(folder, steps, cpu):
        print(f"launchwise: {said}", file=sys.stderr)
        raise typer.Exit(1)
