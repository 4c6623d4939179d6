"""Runs ``launchwise tune``, the stages in this process or Snakemake, and prints the answers."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from launchwise.base.errors import Interrupted, UserError
from launchwise.base.storage import read_json
from launchwise.cli.options import print_line, run_snakemake
from launchwise.cli.stages import Stages
from launchwise.cli.tuning import Project, Question, extent, line_of, prepared
from launchwise.measuring.cards import NO_GPU, Card, arch_here, cards, in_words
from launchwise.workloads.space import label
from launchwise.workloads.spec import Spec

COMMAND = "tune"

PREVIEWED = "sm_90"  # For which a dry run lists its jobs where there is no card: they are the same

FAILED = 1  # Exit code when a stage failed, or nothing was verified
INTERRUPTED = 128  # Added to the number of the signal that stopped it

NOTHING = "Nothing to be done: every row was measured, and answers are newer than their inputs."


def as_text(spec: Spec, facts: Mapping[str, Any], pages: Sequence[str]) -> str:
    told = (line for answer in facts["answers"] for line in _lines(answer, spec))
    first = f"{spec.title} on {facts['device_name']}"
    return "\n".join([first, *told, *(f"page: {path}" for path in pages)])


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
    words = f"from {sweeps} sweep{'s' if sweeps > 1 else ''} of other GPUs and problems"
    return words if sweeps else "with nothing known"


def _outcome(status: str, outcome: Mapping[str, Any], spec: Spec) -> str:
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


def run(asked: Question, as_json: bool) -> int:
    """Make and print the answers. Returns the exit code: 0, :data:`FAILED`, or that of a signal.
    Raises UserError when workload, problem or folder are wrong."""
    present = cards()
    arch, missing = _card_here(asked, present)
    refusal = None if asked.dry_run else missing
    try:
        project = prepared(asked, arch, refusal)
    except UserError as error:
        if error is not refusal:
            raise
        return _failed(str(error))
    if project.why:
        _say(f"searches, since {project.why} (--all measures all)")
    if left := project.experiment.settings.studies:
        _say(f"leaves out {', '.join(left)}: studies of the workload run in a project (init)")
    if project.known:
        _say(f"starts from rows of {', '.join(project.known)}")
    line = line_of(project, asked)
    if not asked.dry_run:
        return _answered(project, asked, line, present, as_json)
    _say(extent(project, arch))
    if not present:
        _say(f"{NO_GPU}: jobs as for {PREVIEWED}")
        entry = json.dumps({asked.gpu: {"arch": PREVIEWED}})
        line[line.index("--") : line.index("--")] = ["--config", f"gpus={entry}"]
    line.remove("progress")  # With it Snakemake hides the table of jobs, too.
    run_snakemake(line)
    return 0


def _say(words: str) -> None:
    print(f"launchwise: {words}", file=sys.stderr)


def _failed(words: str, code: int = FAILED) -> int:
    _say(words)
    return code


def _card_here(asked: Question, present: list[Card]) -> tuple[str, UserError | None]:
    """Architecture of this machine's card, or of which jobs are shown; why nothing is measured."""
    if not present:
        message = f"{NO_GPU}; check --cpu and tune --dry-run need none"
        return PREVIEWED, UserError(COMMAND, "", message)
    try:
        return arch_here(asked.device, present), None
    except ValueError:
        message = f"name one model: this machine has {in_words(present)}"
        return "", UserError(COMMAND, "--device", message)


def _answered(
    project: Project, asked: Question, line: list[str], present: list[Card], as_json: bool
) -> int:
    """Make the answers, and the study where there is one; print them; the exit code."""
    print_line(line)
    try:
        _make(project, asked, present)
    except UserError as error:
        return _failed(str(error))
    except Interrupted as stopped:
        words = f"{stopped}; run the same command again to resume"
        return _failed(words, INTERRUPTED + stopped.signal)
    facts: dict[str, Any] = read_json(project.folder / project.answers)
    code = 0
    if said := complaint(facts):
        code = _failed(said)
    elif project.experiment.studies:
        # Its models and report are for Snakemake; what was made above it finds up to date.
        try:
            run_snakemake(line, say=False)
        except SystemExit as failed:
            # It has said why; there are answers nevertheless.
            code = failed.code if isinstance(failed.code, int) else FAILED
    pages = [str(path) for path in project.pages if path.is_file()]
    plain = json.dumps({**facts, "pages": pages}, indent=2) if as_json else ""
    print(plain or as_text(project.spec, facts, pages), flush=True)
    return code


def _make(project: Project, asked: Question, present: list[Card]) -> None:
    """Make the answers: here, or by Snakemake where a sweep stands on a model. Raises UserError,
    Interrupted: see :meth:`launchwise.cli.stages.Stages.run`."""
    strategy = project.experiment.sweeps[project.spec.workload].strategy
    if strategy.guesses is not None:
        run_snakemake(line_of(project, asked, alone=True), say=False)
        return
    arch = arch_here(asked.device, present)
    if not Stages(project, asked.device, arch, asked.cores, present).run():
        print(NOTHING, file=sys.stderr)
