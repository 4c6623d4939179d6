"""A plan as text and as JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from launchwise.base.names import assigned
from launchwise.cli.plan.planning import Plan
from launchwise.learning.design.greedy import ENOUGH, LEAST_GAIN, Ending

ENDINGS: dict[Ending, str] = {
    "budget": "no further problem fits into the time",
    "candidates": "every candidate is chosen",
    "enough": f"answers are then expected within {100 * ENOUGH:g} % of the best",
    "gain": f"no further problem is expected to gain {100 * LEAST_GAIN:g} %",
}
"""Why a plan has no further problem."""


def percent(regret: float) -> float:
    """Time over the best, %, of a logarithm of time / best."""
    return float(100 * np.expm1(regret))


def command_to_run(plan: Plan, target: Path, files: Sequence[Path]) -> str:
    """What measures the plan and answers anew."""
    words = ["snakemake", "--cores", "all", "--configfile", *map(str, files), str(target)]
    return shlex.join([*words, "--", f"final_{plan.question.study}"])


def as_text(plan: Plan, target: Path, files: Sequence[Path], top: int) -> str:
    """Lines for a terminal: the gain, the first ``top`` problems, and how to run all of them."""
    steps, rows = plan.design.steps, sum(each.rows for each in plan.candidates)
    minutes = sum(each.minutes for each in plan.candidates)
    before, after = percent(plan.design.regret), percent(steps[-1].regret)
    lines = [
        f"{len(steps)} problems, {rows} rows, {minutes:.2g} of {plan.question.minutes:g} min",
        f"expected time of answers over the best, in the declared ranges: {before:.2f} % now, "
        f"{after:.2f} % then",
    ]
    listed = list(zip(steps, plan.candidates, strict=True))[:top]
    for number, (step, each) in enumerate(listed, start=1):
        problem = assigned(step.case.problem)
        lines.append(
            f"{number}. {problem} on {step.case.gpu}: {each.rows} rows, {each.minutes:.2g} min; "
            f"then {percent(step.regret):.2f} %"
        )
    if more := len(steps) - len(listed):
        lines.append(f"and {more} more (--top {len(steps)})")
    lines.append(f"no more: {ENDINGS[plan.design.ended]}")
    return "\n".join([*lines, f"{target}; run: {command_to_run(plan, target, files)}"])


def as_json_text(plan: Plan, target: Path) -> str:
    """Everything, as JSON."""
    problems: list[dict[str, Any]] = [
        {
            "gpu": step.case.gpu,
            "problem": step.case.problem,
            "rows": each.rows,
            "minutes": each.minutes,
            "expected_percent_over_best": percent(step.regret),
        }
        for step, each in zip(plan.design.steps, plan.candidates, strict=True)
    ]
    content = {
        "study": plan.question.study,
        "minutes": plan.question.minutes,
        "expected_percent_over_best": percent(plan.design.regret),
        "problems": problems,
        "ended": plan.design.ended,
        "overlay": str(target),
    }
    return json.dumps(content, indent=2)
