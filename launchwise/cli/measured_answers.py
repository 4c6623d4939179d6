"""Measures a few configurations of a question, suggested ones first, and answers from them.

The search is that of ``launchwise tune --evaluations``. It measures the usual choice and what the
product suggests, then starts from what the product expects of all candidates, as much as from the
rows of the project's GPUs and of other problems on this one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from launchwise.base.errors import Interrupted, UserError
from launchwise.base.work import usable_cores
from launchwise.cli.recommending import COMMAND, known_gpus, loaded
from launchwise.cli.stages import Advice, Stages
from launchwise.cli.tuning import Question as Tuning
from launchwise.cli.tuning import prepared
from launchwise.cli.words import gpu_named, problem_of, read_experiment
from launchwise.experiment.experiment import Experiment
from launchwise.experiment.loading import insist_on_kernel
from launchwise.exporting.entries import TIME
from launchwise.learning.answering import answers
from launchwise.learning.answers import Answer
from launchwise.learning.final import Final
from launchwise.learning.product import fastest_measured
from launchwise.learning.row_arrays import keys_of
from launchwise.learning.splits import Case, among
from launchwise.measuring.cards import NO_GPU, Card, arch_here, cards
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.tables.times import judged_times
from launchwise.workloads.parts import Value
from launchwise.workloads.spec import Spec

FOLDER = Path("measured")


def measured_answer(
    study: str,
    gpu: str | None,
    words: Sequence[str],
    files: Sequence[Path],
    top: int,
    least_gain: float | None,
    evaluations: int,
) -> tuple[Answer, Spec]:
    """Answer from at most so many measurements of the problem on this machine's card. Rows stay in
    ``measured/STUDY``: the same question has nothing to measure, and one with more evaluations goes
    on. Parameters are those of :func:`launchwise.cli.recommending.answered`. Raises UserError as
    that function; when this machine has no card, or another than was asked for; when a stage
    fails."""
    experiment = read_experiment(files, Path.cwd(), study)
    if (objective := experiment.settings.objective) != TIME:
        message = f"measures times: the objective of the settings is {objective}"
        raise UserError(COMMAND, "--measure", message)
    insist_on_kernel(study, experiment, COMMAND)
    known_gpus(study, experiment)
    settings = experiment.studies[study]
    # A mistake in the question shows on machines without a GPU, too.
    problem_of(experiment.specs[settings.workload], words, COMMAND)
    present = cards()
    here = _gpu_here(gpu, experiment, present)
    case, final = loaded(study, here, words, experiment)
    # The search looks at everything that may be recommended, and a study may ask about a part.
    is_part = bool(settings.candidates or settings.constraints)
    found = answers(final, [case], evaluations if is_part else 1)[0]
    guesses = [found.usual, *(each.configuration for each in found.suggestions)]
    advice = Advice(guesses, _expected(final, case))
    sweep = _measure(FOLDER / study, words, evaluations, here, advice, final, present)
    least = least_gain or experiment.settings.least_gain
    return answers(with_measured(final, sweep, case), [case], top, least)[0], final.spec


def _gpu_here(named: str | None, experiment: Experiment, present: list[Card]) -> str:
    """Name of this machine's card, or of the GPU that was asked for where it is the same."""
    wanted = named and gpu_named(named, experiment, COMMAND)
    if not present:
        raise UserError(COMMAND, "--measure", NO_GPU)
    names = sorted({card.device_name for card in present})
    here = [gpu_named(name, experiment, COMMAND, "--measure") for name in names]
    gpu = wanted or here[0]
    if gpu not in here or (wanted is None and len(here) > 1):
        advice = f"not {named}" if wanted else "name one with --gpu"
        raise UserError(COMMAND, "--measure", f"this machine has {', '.join(names)}: {advice}")
    return gpu


def _expected(final: Final, case: Case) -> list[tuple[list[Value], float | None]]:
    """Candidates with the times that the product's model expects of them."""
    choices = final.domain.choices([case])
    times = final.recommender.ranking(choices).predicted_ms
    keys = keys_of(choices, final.spec.tunable_columns)
    known = zip(map(list, keys), times.tolist(), strict=True)
    return [(key, time_ms if math.isfinite(time_ms) else None) for key, time_ms in known]


def _measure(
    folder: Path,
    words: Sequence[str],
    evaluations: int,
    gpu: str,
    advice: Advice,
    final: Final,
    present: list[Card],
) -> Path:
    sweeps = Path.cwd() / "results" / "sweeps"
    name = f"{final.spec.workload}.parquet"
    # Where only some of the machine's cards are meant, the first of them tells the others apart.
    devices = [card.device_name for card in present]
    device = None if len(set(devices)) == 1 else final.domain.profiles[gpu].device_name
    tuning = Tuning(
        workload=str(final.spec.folder),
        problem=words,
        gpu=gpu,
        device=device,
        known=[sweeps] if any(sweeps.glob(f"*/{name}")) else [],
        evaluations=evaluations,
        folder=folder,
        cores=usable_cores(),
    )
    arch = arch_here(device, present)
    project = prepared(tuning, arch)
    try:
        Stages(project, device, arch, tuning.cores, present, advice).run()
    except Interrupted as stopped:
        message = f"{stopped}; run the same command again to resume"
        raise UserError(COMMAND, "--measure", message) from stopped
    return project.folder / "results" / "sweeps" / gpu / name


def with_measured(final: Final, sweep: Path, case: Case) -> Final:
    """The product, with what was measured of one case in place of all that it measured."""
    rows = read_table(sweep, measurement_schema(final.spec))
    own = rows[among(rows, [case], final.spec)].reset_index(drop=True)
    times = judged_times(own, (), final.spec)
    return replace(final, fastest=fastest_measured({case.gpu: times}, final.domain))
