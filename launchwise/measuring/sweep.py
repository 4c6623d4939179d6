"""One visit of a job to its sweep: from a shard to rows in a journal, and a table.

The supervisor never touches CUDA. It knows which configuration is being measured, so a crash, a
hang or a lost context becomes a row with a status and a reason, and a new process goes on. Rows in
doubt (throttling, drift, repeats far apart) are measured once more at the end.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from launchwise.base.places import versions
from launchwise.base.storage import digest, read_json
from launchwise.experiment.method import Method
from launchwise.gpus.profile import GpuProfile
from launchwise.measuring.cards import Card
from launchwise.measuring.job import Parts
from launchwise.measuring.journal import Journal
from launchwise.measuring.listening import Listener, supervise
from launchwise.measuring.process import MeasuringProcess
from launchwise.measuring.progress import Progress
from launchwise.measuring.repeats import make_row, rows_to_table
from launchwise.measuring.shard import Claims, Shard
from launchwise.measuring.source_states import earlier_fingerprints, source_state
from launchwise.measuring.tasks import (
    claim_control,
    control_of,
    energy_tasks,
    remaining,
    second_attempts,
)
from launchwise.measuring.telemetry import Telemetry, nvml_source
from launchwise.workloads.builds import Build
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.sampling import drawn_of
from launchwise.workloads.space import Problem, ProblemBlock, baseline, narrowings
from launchwise.workloads.spec import Spec
from launchwise.workloads.workload import Workload, builds_in_order

if TYPE_CHECKING:
    from launchwise.measuring.earlier_rows import Extension


def measure_shard(
    shard: Shard,
    journal: Journal,
    telemetry: Telemetry | None = None,
    progress: Progress | None = None,
    started: MeasuringProcess | None = None,
) -> None:
    """Measure the rows of ``shard`` that ``journal`` (open) lacks: its own problems, then those
    that it takes from others, then what is in doubt a second time, then energies.

    ``telemetry``: what the card does meanwhile, running; its figures stay empty without.
    ``started``: a measuring process that waits for its job, for the first tasks.
    Raises UserError, Interrupted: see :func:`launchwise.measuring.listening.supervise`.
    """

    def afterwards() -> list[dict[str, Any]]:
        return (
            (remaining(shard, journal) if shard.searches_from_others else [])
            or _newly_taken(shard, journal, progress)
            or second_attempts(shard, journal)
            or (energy_tasks(shard, journal) if telemetry else [])
        )

    with stop_requests() as stop:
        claim_control(shard)
        _note_what_does_not_fit(shard, journal, shard.problems)
        supervise(
            "sweep",
            lambda: remaining(shard, journal) or afterwards(),
            lambda: Listener(shard, journal, stop, telemetry, progress, afterwards),
            lambda: control_of(shard, journal),
            started,
        )


def seconds_of(notes: list[dict[str, Any]]) -> dict[str, float]:
    """Seconds that a sweep took by what was done, over every visit, from its journal's notes.

    ``total`` is the supervisor's clock; ``start`` to open the device, ``inputs`` to make inputs and
    references, ``verify``, ``warm_up``, ``time``, ``control`` and ``energy`` the measuring process;
    ``compile`` nvcc, beside the rest; ``write`` the journal. What is left of the total is Python
    and waiting.
    """
    seconds: dict[str, float] = {}
    for note in notes:
        if note["note"] == "seconds":
            for name, value in {"total": note["total"], **note["spent"]}.items():
                seconds[name] = seconds.get(name, 0.0) + value
    return {name: round(value, 3) for name, value in seconds.items()}


def _newly_taken(shard: Shard, journal: Journal, progress: Progress | None) -> list[dict[str, Any]]:
    """Tasks of the next problem that no shard has measured yet, if there is one."""
    tasks: list[dict[str, Any]] = []
    while not tasks and (problem := shard.take()):
        _note_what_does_not_fit(shard, journal, [problem])
        tasks = remaining(shard, journal, [problem])
    if progress:
        progress.expect(shard.size())
    return tasks


def _note_what_does_not_fit(shard: Shard, journal: Journal, problems: list[Problem]) -> None:
    """Write rows, without a launch, for problems whose buffers exceed the card's memory."""
    capacity = shard.gpu_facts["gpu_memory_bytes"]
    for problem in problems:
        needed = shard.spec.value(shard.spec.work.footprint_bytes, problem)
        if needed <= capacity:
            continue
        reason = f"needs {needed / 1e9:.1f} GB, the card has {capacity / 1e9:.1f} GB"
        found = {"status": "out_of_memory", "reason": reason}
        for task in remaining(shard, journal, [problem]):
            if task.get("explore"):
                journal.note("explored", problem=problem, **shard.exploration)
            # An explorer's baseline stands for all that was not tried.
            for configuration in task["configurations"] or [baseline(shard.spec)]:
                journal.append(make_row(shard.labels, {**problem, **configuration}, found))


@contextlib.contextmanager
def stop_requests() -> Iterator[list[int]]:
    """A list that fills when SIGTERM or SIGINT arrives; handlers are put back afterwards."""
    received: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        received.append(number)

    old = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield received
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


@dataclass(frozen=True)
class Measured:
    """What a journal holds of a shard after a visit; nothing where no row had to be measured."""

    fingerprint: str = ""
    rows: list[dict[str, Any]] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)


def visit(
    shard: Shard,
    profile: GpuProfile,
    card: Card,
    parts: Parts,
    journal_path: Path,
    shards: int,
    starts: Callable[[], MeasuringProcess | None] = lambda: None,
) -> Measured:
    """Measure what the journal of a shard lacks. ``shards``: jobs that share the sweep; they take
    problems one by one. ``starts``: gives a measuring process that waits for its job, if there is
    one. Raises UserError, Interrupted: see :func:`launchwise.measuring.sweep.measure_shard`."""
    shard = shard.with_something_to_measure()
    fingerprint = shard.fingerprint(profile, parts.fingerprint)
    earlier = [
        shard.fingerprint(profile, each)
        for each in earlier_fingerprints(shard.folder, parts.toolkit)
    ]
    # On a cluster a job may outlive the workflow that made it, and meet its successor.
    patient = "SLURM_JOB_ID" in os.environ
    with contextlib.ExitStack() as stack:
        telemetry = stack.enter_context(Telemetry(nvml_source(card.uuid)))
        journal = stack.enter_context(
            Journal(journal_path, fingerprint, shard.spec.key_columns, patient, earlier)
        )
        if shards > 1:
            # A changed sweep or number of shards starts new locks.
            strategy = shard.method.strategy.model_dump(mode="json")
            folder = journal_path.parent / "claims" / digest([fingerprint, shards, strategy])
            claims = Claims(folder, journal_path.stem, shards, shard.problems)
            shard = shard.sharing(claims, journal.rows)
        progress = stack.enter_context(Progress(shard.size(), profile.name))
        progress.skip(len(shard.own(journal.rows)))
        measure_shard(shard, journal, telemetry, progress, starts())
        return Measured(fingerprint, shard.own(journal.rows), list(journal.notes))


def asked_problems(
    spec: Spec, given: Path | tuple[Any, Any]
) -> tuple[list[Problem], list[ProblemBlock]]:
    """Problems of a sweep, and their keys in the settings, whose entries may narrow configurations:
    as the rule gives both, or in the file that holds them."""
    if isinstance(given, Path):
        content = read_json(given)
        given = content["problems"], content["blocks"]
    problems, blocks = given
    # JSON objects come back sorted by name.
    return [{name: each[name] for name in spec.problem_columns} for each in problems], blocks


def builds_of(
    folder: Path,
    spec: Spec,
    problems: list[Problem],
    blocks: Sequence[ProblemBlock],
    method: Method,
    extension: Extension | None = None,
) -> list[Build]:
    """Every build that the sweep needs, in the order of need; of a search what it needs whatever
    will be proposed."""
    workload = load_workload(folder, spec)
    if method.strategy.searches:
        needed = dict.fromkeys(_first_builds(workload, problems))
    else:
        needed = dict.fromkeys(builds_in_order(workload, problems, narrowings(spec, blocks)))
    if extension:
        # They may lie outside of what the problems are narrowed to.
        for problem in problems:
            for anchor in extension.anchors(problem):
                needed[workload.build(problem, anchor)] = None
    return list(needed)


def _first_builds(workload: Workload, problems: list[Problem]) -> Iterator[Build]:
    """What checks outputs, and one build of each variant whose compiler may be missing."""
    for problem in problems:
        yield from workload.check_builds(problem)
    for name, variant in workload.spec.variants.items():
        if variant.offloads or variant.is_triton:
            for problem in problems:
                if drawn := drawn_of(workload.spec, problem, name, 0):
                    yield workload.build(problem, drawn)
                    break


def problem_seconds(method: Method, problems: int, shards: int) -> float | None:
    """Time per problem that a strategy allows, s; None without a limit."""
    if method.strategy.minutes is None:
        return None
    return 60 * method.strategy.minutes / math.ceil(problems / shards)


def searched(notes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What each search said at its end: ``problem``, ``within_percent``, ``chance_left``. And
    ``started_from`` (see :meth:`TransferExplorer.conclusion`; 0 in journals that do not say it). Of
    a problem that was searched in several visits, the last one counts."""
    kept = ("problem", "within_percent", "chance_left")
    ends = [note for note in notes if note["note"] == "explored" and "chance_left" in note]
    last = {tuple(note["problem"].items()): note for note in ends}
    return [
        {**{name: note[name] for name in kept}, "started_from": note.get("started_from", 0)}
        for note in last.values()
    ]


def write_shard(
    output: Path,
    measured: Measured,
    folder: Path,
    spec: Spec,
    compilers: Mapping[str, str] | None = None,
) -> None:
    """Write the table of a shard; ``compilers`` are those beside nvcc, with their releases."""
    from launchwise.tables.files import write_table
    from launchwise.tables.measurements import measurement_schema

    table = rows_to_table(measured.rows, measured.notes, spec)
    state = source_state(folder, spec).as_facts()
    facts = {
        **({"fingerprint": measured.fingerprint} if measured.fingerprint else {}),
        "versions": versions() | dict(compilers or {}),
        "seconds": seconds_of(measured.notes),
        "searched": searched(measured.notes),
        "states": dict.fromkeys(sorted(set(table["commit"])), state),
    }
    write_table(output, table, measurement_schema(spec), facts)
