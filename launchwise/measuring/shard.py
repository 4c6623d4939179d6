"""A shard of a sweep: problems, configurations, card and method, and the locks on its problems.

Each problem is measured by the shard that takes it first. How long one takes is known once it was
measured. Shares dealt out beforehand, by bytes and FLOP, would have kept four cards busy for 73 to
95 % of the time and eight for 57 to 82 % (reckoned from the journals of four sweeps); taken one by
one, the heaviest first, none waits longer than one problem takes (Graham 1969).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.errors import UserError
from launchwise.base.storage import digest
from launchwise.experiment.method import Method
from launchwise.gpus.profile import GpuProfile
from launchwise.measuring.job import Parts
from launchwise.workloads.near_problems import Prior
from launchwise.workloads.space import Configuration, Narrowing, Problem, configurations
from launchwise.workloads.spec import Spec

if TYPE_CHECKING:
    # It loads pandas, which most sweeps need only for their tables.
    from launchwise.measuring.earlier_rows import Extension


TIMING_RULES_VERSION = 2
"""Version of the timing rules, raised when the engine times something differently.

2: L2 is emptied for all configurations of a problem or for none.
"""


@dataclass(frozen=True)
class Shard:
    """A part of a sweep, ready to be measured."""

    spec: Spec
    folder: Path
    problems: list[Problem]  # its known problems; `claims` add more
    method: Method
    seed: int
    gpu_facts: Mapping[str, Any]  # names for constraints (see launchwise.workloads.parts.GPU_NAMES)
    # Columns that are the same in every row: gpu, workload, card, driver, toolkit, backend, commit.
    labels: Mapping[str, str]
    command: list[str]  # how to start the measuring process; `job` is what else it must know
    environment: Mapping[str, str]
    parts: Parts  # source of its kernels
    job: Mapping[str, Any] = field(default_factory=dict)
    # What is measured of problems by their values (see narrowings); everything of those that it
    # does not name.
    parts_of: Mapping[tuple[Any, ...], Narrowing] = field(default_factory=dict)
    # Configurations that an explorer tries first for a problem, best first.
    guesses: Callable[[Problem], list[Configuration]] | None = None
    # Rows of other GPUs, for an explorer that starts from them.
    prior: Callable[[Problem], Prior] | None = None
    gpu: Mapping[str, Any] = field(default_factory=dict)  # by what it weighs those GPUs
    claims: Claims | None = None  # source of further problems
    # Rows of an earlier sweep that stay: only what they lack is measured.
    extension: Extension | None = None
    # Time after which an explorer ends a problem, s; None for as long as it takes.
    problem_seconds: float | None = None
    _sizes: dict[tuple[Any, ...], int] = field(default_factory=dict, repr=False, compare=False)

    def sharing(self, claims: Claims, rows: list[dict[str, Any]]) -> Shard:
        """This shard with the problems that it took, and those free ones that have ``rows``."""
        there = {tuple(row[name] for name in self.spec.problem_columns) for row in rows}
        for problem in claims.free():
            if tuple(problem.values()) in there:
                claims.claim(problem)
        return replace(self, problems=claims.mine(), claims=claims)

    def with_something_to_measure(self) -> Shard:
        """This shard without the problems of which its extension has every row."""
        if self.extension is None or self.method.strategy.searches:
            return self
        return replace(self, problems=[each for each in self.problems if self._size_of(each)])

    def take(self) -> Problem | None:
        """One more problem, from now on this shard's; None when none is left."""
        problem = self.claims.take() if self.claims else None
        if problem is not None:
            self.problems.append(problem)
        return problem

    def own(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Rows of this shard's problems: a journal may hold others, of an earlier list."""
        wanted = {tuple(problem.values()) for problem in self.problems}
        columns = self.spec.problem_columns
        return [row for row in rows if tuple(row[name] for name in columns) in wanted]

    @property
    def budget(self) -> int | None:
        """Most rows that an explorer measures of a problem; None where all are measured."""
        if not self.method.strategy.searches:
            return None
        return self.method.strategy.budget or self.spec.size

    @property
    def exploration(self) -> dict[str, Any]:
        """How far an explorer goes, for the journal: a later visit may allow more."""
        limits = self.method.strategy.model_dump(include={"minutes", "stop_below_percent"})
        return {"budget": self.budget, **limits}

    @property
    def searches_from_others(self) -> bool:
        """Whether a search starts from rows of other GPUs, and of other problems on this one."""
        return self.method.strategy.kind == "transfer"

    def size(self) -> int:
        """Rows that the finished shard will have; of an explorer, at most. Counts this shard's
        share of the problems that are still free."""
        size = sum(map(self._size_of, self.problems))
        if self.claims is None:
            return size
        return size + round(sum(map(self._size_of, self.claims.free())) / self.claims.shards)

    def _size_of(self, problem: Problem) -> int:
        if self.budget is not None:
            return self.budget
        key = tuple(problem.values())
        if key not in self._sizes:
            self._sizes[key] = len(self.configurations(problem))
        return self._sizes[key]

    def configurations(self, problem: Problem) -> list[Configuration]:
        """Configurations that an exhaustive sweep measures for a problem, the baseline first."""
        narrowing = self.parts_of.get(tuple(problem.values()))
        listed = configurations(self.spec, problem, self.gpu_facts, narrowing)
        return self.extension.missing(problem, listed) if self.extension else listed

    def fingerprint(self, profile: GpuProfile, kernels: str) -> str:
        """Hash of everything that must be the same for rows to stand in one sweep; ``kernels``:
        that of the compiled ones. Excludes the problems and the strategy: more problems must not
        discard rows. Includes driver and backend: another version shifts times by 2 to 3 %,
        unnoticed. An extension's includes which recorded rows are measured anew."""
        how = self.method.model_dump(mode="json", exclude={"strategy"})
        made_with = [self.labels["driver"], self.labels["backend"]]
        made_by: list[Any] = [TIMING_RULES_VERSION, kernels, how, made_with]
        if self.extension is not None:
            made_by.append([dict(each) for each in self.extension.anew])
        return digest([profile.name, profile.device_name, profile.sms, *made_by])


@dataclass(frozen=True)
class Claims:
    """A folder with a mark for each problem that a shard has taken, for good. A mark is a symbolic
    link to the shard's name. A file system makes one at once or not at all, over NFS too, so no two
    shards take the same problem, and none is half taken by a shard that was killed. Raises
    UserError when marks cannot be made there."""

    _folder: Path  # belongs to one sweep: the same kernels, method and number of shards
    _shard: str  # whose claims these are
    shards: int  # how many take part
    _problems: list[Problem]  # all of the sweep, in the order in which they are taken

    def __post_init__(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(self._folder, "", f"cannot be made: {error.strerror}") from error

    def _mark(self, problem: Problem) -> Path:
        return self._folder / digest(problem)

    def mine(self) -> list[Problem]:
        """Problems that this shard has taken, now or in an earlier visit."""
        return [problem for problem in self._problems if self._owner(problem) == self._shard]

    def free(self) -> list[Problem]:
        """Problems that no shard has taken yet."""
        return [problem for problem in self._problems if self._owner(problem) is None]

    def _owner(self, problem: Problem) -> str | None:
        try:
            return os.readlink(self._mark(problem))
        except FileNotFoundError:
            return None

    def claim(self, problem: Problem) -> bool:
        """Take a problem; False when a shard, this one or another, has it already."""
        try:
            os.symlink(self._shard, self._mark(problem))
        except FileExistsError:
            return False
        except OSError as error:
            message = f"problems cannot be divided among shards: {error.strerror}"
            raise UserError(self._folder, "", message) from error
        return True

    def take(self) -> Problem | None:
        """The first problem that is free, from now on this shard's; None when there is none."""
        return next((problem for problem in self._problems if self.claim(problem)), None)
