"""What ``launchwise tune`` prints: answers, and how many configurations ended how, and why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from launchwise.base.storage import read_json
from launchwise.cli.tune.tuning import Project
from launchwise.workloads.space import label
from launchwise.workloads.spec import Spec


def facts_of(project: Project) -> dict[str, Any]:
    """Answers as the file holds them."""
    found: dict[str, Any] = read_json(project.folder / project.answers)
    return found


def as_json(project: Project, facts: Mapping[str, Any]) -> str:
    """Answers with the paths of the pages, as JSON."""
    pages = [str(path) for path in project.pages if path.is_file()]
    return json.dumps({**facts, "pages": pages}, indent=2)


def as_text(project: Project, facts: Mapping[str, Any]) -> str:
    """Answers for people."""
    lines = [f"{project.spec.title} on {facts['device_name']}"]
    for answer in facts["answers"]:
        lines += _lines(answer, project.spec)
    lines += [f"page: {path}" for path in project.pages if path.is_file()]
    return "\n".join(lines)


def complaint(facts: Mapping[str, Any]) -> str:
    """Why there is no answer at all; '' where some configuration was verified and timed."""
    counts: dict[str, int] = {}
    for answer in facts["answers"]:
        for status, count in answer["statuses"].items():
            counts[status] = counts.get(status, 0) + count
    if counts.get("ok"):
        return ""
    if not counts:
        return "nothing was measured: no configuration is feasible"
    return f"no configuration is ok: {_counted(counts)}"


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {status}" for status, count in counts.items())


def _lines(answer: Mapping[str, Any], spec: Spec) -> list[str]:
    lines = ["", ", ".join(f"{name}={answer['problem'][name]}" for name in spec.problem)]
    if answer["configuration"] is None:
        lines.append("  no configuration is ok")
    else:
        lines.append(
            f"  fastest  {answer['time_ms']:.4g} ms  {label(answer['configuration'], spec)}"
        )
        if answer["speedup"] is not None:
            lines.append(
                f"  default  {answer['baseline_ms']:.4g} ms  "
                f"the fastest is {answer['speedup']:.2f} times as fast"
            )
        if answer["block"] is not None:
            block, grid = ("x".join(map(str, answer[key])) for key in ("block", "grid"))
            lines.append(f"  launch   block {block}, grid {grid}")
        is_triton = spec.variants[answer["configuration"]["variant"]].is_triton
        if macros := _macros(answer["configuration"], spec, is_triton):
            lines.append(f"  {'keywords' if is_triton else 'macros':8} {macros}")
        if answer["tied"]:
            lines.append(f"  tied     {answer['tied']} others, within the measurement error")
    if search := answer.get("search"):
        chance, percent = search["chance_left"], search["within_percent"]
        lines.append(
            f"  left     {chance:.0%} chance that another is faster by more than {percent:g} %; "
            f"ten more rows take {10 * search['seconds_per_row']:.2g} s"
        )
        lines.append(f"  began    {_began(search['started_from'])}")
    lines.append(f"  rows     {_counted(answer['statuses'])}")
    lines += [_outcome(status, each, spec) for status, each in answer["outcomes"].items()]
    return lines


def _began(sweeps: int) -> str:
    if not sweeps:
        return "with nothing known"
    return f"from {sweeps} sweep{'s' if sweeps > 1 else ''} of other GPUs and problems"


def _outcome(status: str, outcome: Mapping[str, Any], spec: Spec) -> str:
    """Most frequent reason of a status and a configuration that has it."""
    count, alike = outcome["count"], outcome["alike"]
    of = f"{alike} of {count}" if alike < count else str(count)
    why = f": {outcome['reason']}" if outcome["reason"] else ""
    return f"  {status:8} {of}{why} ({label(outcome['configuration'], spec)})"


def _macros(configuration: Mapping[str, Any], spec: Spec, is_triton: bool) -> str:
    """Build tunables as options of nvcc, or as keywords of a launch of Triton."""
    given = {
        name: value
        for name, value in configuration.items()
        if name in spec.tunables and spec.tunables[name].kind == "build"
    }
    if is_triton:
        return ", ".join(f"{name}={value!r}" for name, value in given.items())
    return " ".join(f"-D{name}={value}" for name, value in given.items())
