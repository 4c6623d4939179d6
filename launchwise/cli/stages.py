"""The stages from a kernel to its answers, in one process.

They are those of Snakemake's rules, with the same functions and files: check, describe, compile,
prior, sweep, gather, answer. Starting Snakemake and a process per stage takes longer than measuring
a small space. Here nvcc, the measuring process and the loading of pandas run side by side.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.places import commit, now, versions
from launchwise.base.scripting import in_lines
from launchwise.base.storage import own_place, write_json
from launchwise.cli.tuning import SETTINGS, Project
from launchwise.experiment.method import Method
from launchwise.gpus.profile import GpuProfile, read_profile, write_profile
from launchwise.measuring.bundle import Bundle
from launchwise.measuring.cards import Card, free_card, kept_or_measured_profile, selects
from launchwise.measuring.compile import left_out, nvcc_release
from launchwise.measuring.job import Alongside, Beforehand, Parts, measuring_command, shard_fields
from launchwise.measuring.journal import read_journal
from launchwise.measuring.process import MeasuringProcess
from launchwise.measuring.shard import Shard
from launchwise.measuring.source_states import deciding_files, fingerprint
from launchwise.measuring.sweep import builds_of, problem_seconds, visit
from launchwise.workflow.plan import RECORD
from launchwise.workflow.sweeps import prior_facts, prior_sweeps
from launchwise.workloads.builds import Build
from launchwise.workloads.near_problems import Prior, with_expected
from launchwise.workloads.parts import Value
from launchwise.workloads.space import Configuration, Problem, narrowings

log = logging.getLogger("launchwise")

NICENESS = 10  # Loading libraries must not take cores from nvcc


class Files:
    """Files of one workload on one GPU, where Snakemake's rules have them. Written in this order,
    so that none is older than what it is made of: then Snakemake finds them up to date."""

    def __init__(self, folder: Path, workload: str, gpu: str, arch: str) -> None:
        results = folder / "results"
        self.check = results / "checks" / f"{gpu}.json"
        self.profile = results / "gpus" / f"{gpu}.json"
        self.bundle = results / "build" / workload / f"{arch}.cubins"
        self.prior = results / "priors" / gpu / f"{workload}.parquet"
        # Of the only shard; the journal is no target.
        self.journal = results / "journal" / gpu / workload / "1.jsonl"
        self.shard = results / "sweeps" / gpu / workload / "1.parquet"
        self.sweep = results / "sweeps" / gpu / f"{workload}.parquet"
        self.facts = results / "answers" / gpu / f"{workload}.json"
        self.page = results / "answers" / gpu / f"{workload}.html"
        self.log = results / "logs" / "tune" / f"{gpu}.{workload}.log"

    def are_newer_than(self, inputs: Sequence[Path], journal_ns: int) -> bool:
        """Whether tables and answers are there, and none is older than any input. ``journal_ns``:
        time of the journal's last row."""
        made = [self.shard, self.sweep, self.facts, self.page]
        times = [_changed_ns(path) for path in (*inputs, self.profile, self.bundle)]
        return all(path.is_file() for path in made) and max(*times, journal_ns) <= min(
            map(_changed_ns, made)
        )


def _rows(journal: Path) -> int:
    return len(read_journal(journal)[1]) if journal.is_file() else 0


def _changed_ns(path: Path) -> int:
    return path.stat().st_mtime_ns if path.is_file() else 0


@dataclass(frozen=True)
class Advice:
    guesses: list[Configuration]  # configurations that are measured first, in order
    # Values of configurations, with the times that it expects of them (as a prior has them).
    expected: list[tuple[list[Value], float | None]]


@dataclass
class Stages:
    """Stages of one workload on one card of this machine."""

    project: Project
    device: str | None  # part of the card's name, where that matters
    arch: str  # architecture of the card
    cores: int  # runs of nvcc at a time
    present: list[Card]  # cards of this machine
    advice: Advice | None = None  # what a search knows besides

    def __post_init__(self) -> None:
        experiment = self.project.experiment
        self._gpu, self._spec = self.project.gpu, self.project.spec
        workload = self._spec.workload
        self._folder = experiment.folders[workload]
        self._others = prior_sweeps(experiment, self._gpu, workload)
        self._facts_of_others = prior_facts(experiment, self._gpu, workload)
        self._files = Files(self.project.folder, workload, self._gpu, self.arch)
        sweep = experiment.sweeps[workload]
        self._how = sweep.model_dump(mode="json", exclude={"problems", "anew"})
        self._method = Method.model_validate(self._how)
        self._searches = self._method.strategy.searches
        self._problems = experiment.problems_of(self._gpu, workload)
        self._blocks = experiment.blocks_of(self._gpu, workload)
        self._toolkit = nvcc_release()

    def run(self) -> bool:
        """Make every target that is missing or no longer true; whether there was any. Raises
        UserError when a stage fails; rows that were measured stay in the journal. Raises
        Interrupted after SIGTERM or SIGINT: the journal is whole."""
        files = self._files
        own = [self.project.folder / name for name in (SETTINGS, RECORD)]
        known = [Path(each["path"]) for each in self._others]
        inputs = [*own, *known, *deciding_files(self._folder)]
        # Every visit adds to the journal, also one that measures nothing.
        written_ns, known_rows = _changed_ns(files.journal), _rows(files.journal)
        with logging_to(files.log), contextlib.ExitStack() as stack:
            if not files.are_newer_than(inputs, written_ns):
                stack.enter_context(ThreadPoolExecutor(1)).submit(load)
            found = self._measured(stack)
            if _rows(files.journal) == known_rows and files.are_newer_than(inputs, written_ns):
                return False
            self._write_tables(found)
        return True

    def _measured(self, stack: contextlib.ExitStack) -> str:
        """Fingerprint of the sweep; all rows are in the journal."""
        kernels = self._kernels(stack)
        compiling = kernels if isinstance(kernels, Alongside) else None
        prior = self._prior(stack) if self._others else None
        wanted = f"{self.device or 'a card'} of {self.arch}"
        fits = selects(self.arch, self.device)
        card = stack.enter_context(free_card(self._gpu, fits, wanted, present=self.present))
        started: list[MeasuringProcess] = []

        def process() -> MeasuringProcess:
            if not started:
                started.append(MeasuringProcess(**measuring_command(card)))
                stack.callback(started[0].close)
            return started[0]

        profile = self._known_profile(card)
        if compiling is not None:
            process()
        if profile is None:
            profile = self._described(card, process)
            self._write_check(profile)
            write_profile(self._files.profile, profile)
        shard = self._shard(card, profile, kernels, prior)
        journal = self._files.journal
        first = started[0] if started else None
        measured = visit(shard, profile, card, kernels, journal, 1, lambda: first)
        if compiling is not None and not self._searches:
            compiling.write(self._files.bundle)
        return measured.fingerprint

    def _kernels(self, stack: contextlib.ExitStack) -> Parts:
        """The bundle, if it holds every build as the sources are now; else nvcc. A search has no
        bundle: what it will propose is not known."""
        builds = builds_of(self._folder, self._spec, self._problems, self._blocks, self._method)
        if not self._searches and self._is_whole(builds):
            return Beforehand(self._files.bundle)
        # Without a bundle Snakemake would compile.
        return stack.enter_context(
            Alongside(self._folder, self._spec, builds, self.arch, self.cores)
        )

    def _is_whole(self, builds: list[Build]) -> bool:
        made_of = fingerprint(self._folder, self._toolkit)
        # Without one, or with a damaged one, nvcc runs.
        with contextlib.suppress(UserError):
            bundle = Bundle(self._files.bundle)
            # Since then the compiler of a source may have been installed.
            missing = left_out(builds, self.arch) if bundle.left_out else {}
            known = bundle.left_out.keys() <= missing.keys() and all(map(bundle.holds, builds))
            return known and bundle.fingerprint == made_of
        return False

    def _known_profile(self, card: Card) -> GpuProfile | None:
        """The profile that is there, if it is one of such a card and says enough."""
        path = self._files.profile
        try:
            found = read_profile(path, self._gpu)
        except UserError:
            return None
        same = (found.device_name, found.arch) == (card.device_name, card.arch)
        enough = not found.has_attributes_alone or not self.project.experiment.studies
        whole = found.sms == found.whole_card_sms
        return found if same and enough and whole and found.driver == card.driver else None

    def _described(self, card: Card, process: Callable[[], MeasuringProcess]) -> GpuProfile:
        """Profile of a card: its attributes, with measured ceilings where models learn from them.
        Raises UserError when the machine cannot measure: every missing item."""
        try:
            if self.project.experiment.studies:
                return kept_or_measured_profile(self._gpu, card, None)
            known = process().attributes(self._folder, None)
        except UserError as error:
            from launchwise.measuring.cards import check_machine

            _, missing = check_machine(self.arch, self.device)
            if not missing:
                raise
            message = f"{socket.gethostname()} cannot measure on this GPU: {'; '.join(missing)}"
            raise UserError("config.yaml", f"gpus.{self._gpu}", message) from error
        return GpuProfile.of_attributes(
            **known,
            name=self._gpu,
            card=card.mark,
            driver=card.driver,
            toolkit=self._toolkit,
            commit=commit(),
            measured_at=now(),
        )

    def _prior(self, stack: contextlib.ExitStack) -> Callable[[Problem], Prior]:
        """Rows of other GPUs by problem, written as Snakemake's rule does while nvcc works."""
        path = self._files.prior

        def known() -> Callable[[Problem], Prior]:
            from launchwise.measuring.earlier_rows import read_prior, write_prior
            from launchwise.tables.files import read_tables
            from launchwise.tables.measurements import measurement_schema

            names = [each["gpu"] for each in self._others]
            paths = [Path(each["path"]) for each in self._others]
            tables = read_tables(names, paths, measurement_schema(self._spec))
            if near := write_prior(path, self._spec, tables, self._problems, self._facts_of_others):
                log.info("%d of %d problems were measured by no other GPU: rows of the nearest "
                         "one stand in", near, len(self._problems))  # fmt: skip
            return read_prior(path, self._spec)

        found = stack.enter_context(ThreadPoolExecutor(1)).submit(known)
        return lambda problem: found.result()(problem)

    def _shard(
        self,
        card: Card,
        profile: GpuProfile,
        kernels: Parts,
        prior: Callable[[Problem], Prior] | None,
    ) -> Shard:
        advice = self.advice
        return Shard(
            **shard_fields(self._folder, self._spec, profile, card, kernels),
            problems=list(self._problems),
            method=self._method,
            seed=self.project.experiment.settings.seed,
            parts_of=narrowings(self._spec, self._blocks),
            guesses=None if advice is None else lambda _: advice.guesses,
            prior=prior
            if advice is None
            # What is expected has as much weight as all that is known.
            else lambda each: with_expected(prior(each) if prior else [], ({}, advice.expected)),
            problem_seconds=problem_seconds(self._method, len(self._problems), 1),
        )

    def _write_tables(self, fingerprint: str) -> None:
        from launchwise.measuring.earlier_rows import gather
        from launchwise.measuring.journal import counted_rows, read_notes
        from launchwise.measuring.sweep import Measured, write_shard
        from launchwise.report.sweep_page import write_answers

        files, folder, spec = self._files, self._folder, self._spec
        wanted = {tuple(each[name] for name in spec.problem_columns) for each in self._problems}
        # The file holds both attempts of a row that was measured again.
        rows = counted_rows(read_journal(files.journal)[1], spec.key_columns)
        own = [
            row
            for row in rows.values()
            if tuple(row[name] for name in spec.problem_columns) in wanted
        ]
        write_shard(
            files.shard, Measured(fingerprint, own, read_notes(files.journal)), folder, spec
        )
        gather(folder, [files.shard], None, self._how, files.sweep)
        write_answers(folder, self._gpu, files.sweep, files.profile, files.facts, files.page)

    def _write_check(self, profile: GpuProfile) -> None:
        used = versions()
        facts: dict[str, Any] = {
            "gpu": self._gpu,
            "host": socket.gethostname(),
            "device_name": profile.device_name,
            "card": profile.card,
            "driver": profile.driver,
            "toolkit": self._toolkit,
            "pycuda": used.get("pycuda", ""),
            "cuda_bindings": used.get("cuda-bindings", ""),
        }
        write_json(self._files.check, {**facts, "checked_at": now()})


def load() -> None:
    """Load what tables and pages stand on, in a thread that gives way to other processes. pandas
    and what stands on it take a second or more: meanwhile nvcc and the measuring process work."""
    # To Linux, a thread has a priority of its own.
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
    import launchwise.measuring.earlier_rows
    import launchwise.measuring.sweep
    import launchwise.report.sweep_page  # noqa: F401


@contextlib.contextmanager
def logging_to(path: Path) -> Iterator[None]:
    """Warnings of the block go to standard error and to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handlers = [
        in_lines(logging.StreamHandler(sys.stderr)),
        in_lines(logging.FileHandler(own_place(path), mode="w", encoding="utf-8")),
    ]
    before = log.handlers, log.level, log.propagate
    log.handlers, log.propagate = handlers, False
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        for handler in handlers:
            handler.close()
        log.handlers, log.propagate = before[0], before[2]
        log.setLevel(before[1])
