"""Recommendations of a study's product, for ``launchwise recommend``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.names import assigned
from launchwise.cli.gpu_names import gpu_named
from launchwise.cli.predict.answering import named
from launchwise.cli.problems import problem_of
from launchwise.cli.products import RECOMMEND, known_gpus, load_final
from launchwise.cli.studies import read_experiment
from launchwise.experiment.experiment import Experiment
from launchwise.learning.answering import answers, why_none
from launchwise.learning.answers import BASES, Answer, Suggestion
from launchwise.learning.final import Final
from launchwise.learning.splits import Case
from launchwise.report import wording
from launchwise.workloads.launch_shapes import launch_shapes
from launchwise.workloads.spec import Spec

COMMAND = RECOMMEND


@dataclass(frozen=True)
class Question:
    """Arguments of the command."""

    # Names (see :mod:`launchwise.cli.gpu_names`); without a GPU the only one that the study
    # measured.
    study: str
    gpu: str | None
    # Words ``NAME=VALUE``.
    problem: Sequence[str]
    # Number of configurations.
    top: int
    # Settings; each file overrides those before it.
    files: Sequence[Path]
    # Gain that must be sure (``least_gain`` of the settings, unless it is given here).
    least_gain: float | None = None


def answered(asked: Question, root: Path) -> tuple[Answer, Spec]:
    """Answer of the product that lies in ``root``, and its workload.

    Raises
    ------
    UserError
        When there is no such study, product, GPU or problem, or nothing may run the problem.
    """
    experiment = read_experiment(asked.files, root, asked.study)
    case, final = loaded(asked, experiment)
    least_gain = asked.least_gain or experiment.settings.least_gain
    return answers(final, [case], asked.top, least_gain)[0], final.spec


def loaded(asked: Question, experiment: Experiment) -> tuple[Case, Final]:
    """What is asked about, and the product that answers.

    Raises
    ------
    UserError
        See :func:`answered`.
    """
    gpus = known_gpus(asked.study, experiment)
    if asked.gpu is None and len(gpus) > 1:
        raise UserError(COMMAND, "--gpu", f"choose one: {asked.study} measured {', '.join(gpus)}")
    gpu = gpu_named(asked.gpu or gpus[0], experiment, COMMAND)
    final = load_final(asked.study, experiment, [gpu])
    problem = problem_of(final.spec, asked.problem, COMMAND)
    case = Case(gpu, problem)
    if reason := why_none(final.domain, case):
        raise UserError(COMMAND, "problem", reason)
    return case, final


def as_json_text(found: Answer, spec: Spec) -> str:
    """The answer as JSON, with what to launch for each configuration."""
    plain = asdict(found)
    for one in plain["suggestions"]:
        shapes = launch_shapes(spec, found.problem, one["configuration"])
        one["launches"] = [asdict(shape) for shape in shapes]
    more = {"percent_of_intervals": found.percent, "basis_in_words": BASES[found.basis]}
    return json.dumps({**plain, **more}, indent=2)


def as_text(found: Answer, spec: Spec) -> str:
    """Lines for a terminal: configurations, what to launch, gains and basis."""
    lines = [f"{assigned(found.problem)} on {found.gpu}: {BASES[found.basis]}"]
    for each in found.suggestions:
        number = f"{each.rank}. " if len(found.suggestions) > 1 else ""
        lines.append(f"{number}{_named(each.configuration)}")
        lines += [f"   {line}" for line in _expectations(each, found)]
        lines += [
            f"   launch {shape.words}"
            for shape in launch_shapes(spec, found.problem, each.configuration)
        ]
    lines += [f"usual choice: {_named(found.usual)}", f"why: {found.why}"]
    return "\n".join(lines)


def _expectations(one: Suggestion, answer: Answer) -> list[str]:
    found = []
    if one.expected_ms is not None:
        limits = _limits(one.interval_ms, 4, answer.percent)
        slower = ""
        first_ms = answer.suggestions[0].expected_ms
        if one.rank > 1 and first_ms is not None:
            slower = f", {100 * (one.expected_ms / first_ms - 1):+.2g} %"
        found.append(f"time {wording.number(one.expected_ms, 4)} ms{limits}{slower}")
    if one.is_usual:
        found.append("this is the usual choice")
    elif one.gain is not None:
        limits = _limits(one.gain_interval, 3, answer.percent)
        pairs = ", measured in pairs" if one.paired else ""
        found.append(f"{one.gain:.3g} times as fast as the usual choice{limits}{pairs}")
    return found


def _limits(interval: tuple[float, float] | None, digits: int, percent: int) -> str:
    if interval is None:
        return ""
    low, high = interval
    return f" ({percent} % interval {low:.{digits}g} to {high:.{digits}g})"


def _named(configuration: Mapping[str, Any]) -> str:
    tunables = {name: value for name, value in configuration.items() if name != "variant"}
    return named(str(configuration["variant"]), tunables)
