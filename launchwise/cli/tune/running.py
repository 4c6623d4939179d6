"""Runs ``launchwise tune``: nothing, the stages in this process, or Snakemake."""

from __future__ import annotations

import json
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from launchwise.base.errors import UserError
from launchwise.cli.running import print_line, run_snakemake
from launchwise.cli.tune import record
from launchwise.cli.tune.question import Question
from launchwise.cli.workloads import workload_folder
from launchwise.measuring.cards import NO_GPU, Card, arch_here, cards, in_words

if TYPE_CHECKING:
    from launchwise.cli.tune.tuning import Project

__all__ = ["Question", "run"]

COMMAND = "tune"

PREVIEWED = "sm_90"
"""Architecture for which a dry run lists its jobs where there is no card: they are the same."""

FAILED = 1
"""Exit code when a stage failed, or nothing was verified."""

INTERRUPTED = 128
"""Added to the number of the signal that stopped it."""

NOTHING = "Nothing to be done: answers and their inputs are as they were."


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


def run(asked: Question, as_json: bool) -> int:
    """Make and print the answers.

    Returns
    -------
    int
        Exit code: 0, :data:`FAILED`, or that of a signal.

    Raises
    ------
    UserError
        When workload, problem or folder are wrong.
    """
    # NVML takes a while to begin, most of it without Python.
    with ThreadPoolExecutor(1) as pool:
        return _run(asked, as_json, pool, pool.submit(cards))


def _run(
    asked: Question, as_json: bool, pool: ThreadPoolExecutor, present: Future[list[Card]]
) -> int:
    workload = workload_folder(asked.workload)
    known = record.Asked(
        workload=workload,
        problem=list(asked.problem),
        gpu=asked.gpu,
        device=asked.device,
        search=[
            asked.evaluations,
            asked.minutes,
            asked.within,
            asked.every,
            *map(str, asked.known),
        ],
        folder=asked.folder or Path("tuned", workload.name),
    )
    if not asked.dry_run and (found := record.recorded(known, present.result)):
        print(NOTHING, file=sys.stderr)
        print(found.as_json if as_json else found.text)
        return 0
    # Files that change from here on are something to do for the next run.
    inputs = pool.submit(lambda: record.inputs_of(known, present.result()))
    from launchwise.cli.tune import tuning

    refusal = None if asked.dry_run else _refusal(asked, present.result())
    try:
        project = tuning.prepared(asked, _arch(asked, present), refusal)
    except UserError as error:
        if error is not refusal:
            raise
        print(f"launchwise: {error}", file=sys.stderr)
        return FAILED
    if project.why:
        print(f"launchwise: searches, since {project.why} (--all measures all)", file=sys.stderr)
    if project.known:
        print(f"launchwise: starts from rows of {', '.join(project.known)}", file=sys.stderr)
    line = tuning.command(project, asked)
    if asked.dry_run:
        if not present.result():
            print(f"launchwise: {NO_GPU}: jobs as for {PREVIEWED}", file=sys.stderr)
            entry = json.dumps({asked.gpu: {"arch": PREVIEWED}})
            line[line.index("--") : line.index("--")] = ["--config", f"gpus={entry}"]
        run_snakemake(line)
        return 0
    code, text, dense = _answered(project, asked, line, present.result())
    if text:
        print(dense if as_json else text, flush=True)
    if text and not code:
        record.keep(known, inputs.result(), project.made, text, dense)
    return code


def _arch(asked: Question, present: Future[list[Card]]) -> str:
    """Architecture of this machine's card; '' where that is not one."""
    try:
        return arch_here(asked.device, present.result())
    except ValueError:
        return ""


def _refusal(asked: Question, present: list[Card]) -> UserError | None:
    """Why nothing can be measured on this machine; None where a card is there."""
    if not present:
        return UserError(COMMAND, "", f"{NO_GPU}; check --cpu and tune --dry-run need none")
    try:
        arch_here(asked.device, present)
    except ValueError:
        message = f"name one model: this machine has {in_words(present)}"
        return UserError(COMMAND, "--device", message)
    return None


def _answered(
    project: Project, asked: Question, line: list[str], present: list[Card]
) -> tuple[int, str, str]:
    """Exit code, and the answers as text and as JSON; both empty where there are none."""
    from launchwise.base.errors import Interrupted
    from launchwise.cli.tune import printing

    print_line(line)
    try:
        _make(project, asked, present)
    except UserError as error:
        print(f"launchwise: {error}", file=sys.stderr)
        return FAILED, "", ""
    except Interrupted as stopped:
        print(f"launchwise: {stopped}; run the same command again to resume", file=sys.stderr)
        return INTERRUPTED + stopped.signal, "", ""
    facts = printing.facts_of(project)
    code = 0
    if complaint := printing.complaint(facts):
        code = FAILED
        print(f"launchwise: {complaint}", file=sys.stderr)
    elif project.experiment.studies:
        # Its models and report are for Snakemake; what was made above it finds up to date.
        try:
            run_snakemake(line, say=False)
        except SystemExit as failed:
            # It has said why; there are answers nevertheless.
            code = failed.code if isinstance(failed.code, int) else FAILED
    return code, printing.as_text(project, facts), printing.as_json(project, facts)


def _make(project: Project, asked: Question, present: list[Card]) -> None:
    """Make the answers: here, or by Snakemake where a sweep stands on a model.

    Raises
    ------
    UserError, Interrupted
        See :meth:`launchwise.cli.tune.stages.Stages.run`.
    """
    from launchwise.cli.tune.stages import Stages
    from launchwise.cli.tune.tuning import answers_line

    arch = arch_here(asked.device, present)
    strategy = project.experiment.sweeps[project.spec.workload].strategy
    if strategy.guesses is not None:
        run_snakemake(answers_line(project, asked), say=False)
    else:
        Stages(project, asked.device, arch, asked.cores, present).run()
