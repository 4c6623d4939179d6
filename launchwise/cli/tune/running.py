"""Runs ``launchwise tune``: the stages in this process, or Snakemake."""

from __future__ import annotations

import json
import sys

from launchwise.base.errors import Interrupted, UserError
from launchwise.cli.running import print_line, run_snakemake
from launchwise.cli.tune import printing
from launchwise.cli.tune.question import Question
from launchwise.cli.tune.stages import Stages
from launchwise.cli.tune.tuning import Project, line_of, prepared
from launchwise.measuring.cards import NO_GPU, Card, arch_here, cards, in_words

COMMAND = "tune"

PREVIEWED = "sm_90"
"""Architecture for which a dry run lists its jobs where there is no card: they are the same."""

FAILED = 1
"""Exit code when a stage failed, or nothing was verified."""

INTERRUPTED = 128
"""Added to the number of the signal that stopped it."""

NOTHING = "Nothing to be done: every row was measured, and answers are newer than their inputs."


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
    present = cards()
    refusal = None if asked.dry_run else _refusal(asked, present)
    try:
        project = prepared(asked, _arch(asked, present), refusal)
    except UserError as error:
        if error is not refusal:
            raise
        return _failed(str(error))
    if project.why:
        _say(f"searches, since {project.why} (--all measures all)")
    if project.known:
        _say(f"starts from rows of {', '.join(project.known)}")
    line = line_of(project, asked)
    if not asked.dry_run:
        return _answered(project, asked, line, present, as_json)
    if not present:
        _say(f"{NO_GPU}: jobs as for {PREVIEWED}")
        entry = json.dumps({asked.gpu: {"arch": PREVIEWED}})
        line[line.index("--") : line.index("--")] = ["--config", f"gpus={entry}"]
    run_snakemake(line)
    return 0


def _say(words: str) -> None:
    print(f"launchwise: {words}", file=sys.stderr)


def _failed(words: str, code: int = FAILED) -> int:
    _say(words)
    return code


def _arch(asked: Question, present: list[Card]) -> str:
    """Architecture of this machine's card; '' where that is not one."""
    try:
        return arch_here(asked.device, present)
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
    facts = printing.facts_of(project)
    code = 0
    if complaint := printing.complaint(facts):
        code = _failed(complaint)
    elif project.experiment.studies:
        # Its models and report are for Snakemake; what was made above it finds up to date.
        try:
            run_snakemake(line, say=False)
        except SystemExit as failed:
            # It has said why; there are answers nevertheless.
            code = failed.code if isinstance(failed.code, int) else FAILED
    text = printing.as_json(project, facts) if as_json else printing.as_text(project, facts)
    print(text, flush=True)
    return code


def _make(project: Project, asked: Question, present: list[Card]) -> None:
    """Make the answers: here, or by Snakemake where a sweep stands on a model.

    Raises
    ------
    UserError, Interrupted
        See :meth:`launchwise.cli.tune.stages.Stages.run`.
    """
    strategy = project.experiment.sweeps[project.spec.workload].strategy
    if strategy.guesses is not None:
        run_snakemake(line_of(project, asked, alone=True), say=False)
        return
    arch = arch_here(asked.device, present)
    if not Stages(project, asked.device, arch, asked.cores, present).run():
        print(NOTHING, file=sys.stderr)
