"""What a table of answers holds, by the names of its study, and what its judges expect.

The rest of :class:`launchwise.exporting.entries.Stored` follows from the study: which problems have
an answer, what is usual, and how a configuration is launched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

import launchwise
from launchwise.base.vectors import Columns
from launchwise.exporting.entries import TIME, Device, Entry, Stored, by_time
from launchwise.exporting.formulas import EXPORTED_FACTS, ExportedFormulas
from launchwise.exporting.lookup import Judge, ratios
from launchwise.learning.answers import MEASURED, NEW_GPU
from launchwise.learning.conformal import MeasuredProblems, texts_of
from launchwise.tables.measurements import faster_libraries
from launchwise.workloads.launch_shapes import Limits, launch_shapes
from launchwise.workloads.parts import Value
from launchwise.workloads.space import baseline, used
from launchwise.workloads.spec import Spec

PIECE = 512  # Problems that are judged at once: all their candidates are in memory


class Expected(NamedTuple):
    """What a judge expects of problems, a row each."""

    losses: np.ndarray  # of each candidate, infinite where it may not run: (problems, candidates)
    usual: np.ndarray  # usual choices by name, None without one: objects, (problems,)
    usual_losses: np.ndarray  # theirs, NaN without one: (problems,)


@dataclass(frozen=True)
class Contents:
    """A table without the rule by which it answers."""

    study: str
    spec: Spec
    stored: Stored
    limits: Limits  # problems that have an answer
    # The usual choice for a problem, what fits it, and how a configuration is launched.
    formulas: ExportedFormulas
    off: str = ""  # how far off times from a datasheet may be, in words; empty where unknown

    version = launchwise.__version__

    @property
    def no_limits(self) -> str:
        """What is said of a time without limits on a GPU that nothing measured."""
        known = f"nine of ten published times of other such cards were {self.off} of such a time"
        return known if self.off else "no measurement tells how far off its time and gain may be"

    @property
    def devices(self) -> tuple[Device, ...]:
        """GPUs that have entries, in the order of their numbers."""
        return self.stored.devices

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Answers, sorted by device, then by problem."""
        return self.stored.entries

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the problem's parameters."""
        return self.stored.parameters

    @property
    def tunables(self) -> tuple[str, ...]:
        """Names of the tunables, the variant first."""
        return tuple(self.spec.tunable_columns)

    @cached_property
    def texts(self) -> frozenset[str]:
        """Names of parameters and tunables whose values are texts."""
        spec = self.spec
        found = {name for name, one in spec.tunables.items() if isinstance(one.neutral, str)}
        for name, one in spec.problem.items():
            if one.values is not None and any(isinstance(value, str) for value in one.values):
                found.add(name)
        return frozenset({"variant", *found})

    @property
    def launches_usual(self) -> bool:
        """Whether it may launch the usual choice, whatever it is: not where builds are few."""
        return self.stored.fallback is None

    @property
    def default(self) -> tuple[Value, ...]:
        """Configuration where nothing else is known."""
        if self.stored.fallback is not None:
            return self.configurations[self.stored.fallback]
        return tuple(baseline(self.spec).values())

    @property
    def neutral(self) -> tuple[Value, ...]:
        """Value of each tunable where nothing sets it, the variant's empty."""
        return ("", *self.spec.neutral.values())

    @property
    def day(self) -> str:
        """Day of the newest measurement, YYYY-MM-DD; empty where none is recorded. Exports hold no
        day of their own: equal measurements give equal files."""
        return max([day for one in self.devices for day in one.days], default="")

    @cached_property
    def listed(self) -> dict[tuple[Any, ...], list[Entry]]:
        """Entries by the number of the device and the texts of the problem."""
        found: dict[tuple[Any, ...], list[Entry]] = {}
        for entry in self.entries:
            found.setdefault((entry.device, *texts_of(entry.problem)), []).append(entry)
        return found

    @cached_property
    def known(self) -> dict[tuple[int | None, tuple[Value, ...]], Entry]:
        """Entries by the number of the device and the problem."""
        return {(entry.device, entry.problem): entry for entry in self.entries}

    @cached_property
    def measured(self) -> Sequence[MeasuredProblems]:
        """What each device measured; of one that measured nothing, its entries."""
        found = [MeasuredProblems({}, device.reach) for device in self.devices]
        for (device, *texts), own in self.listed.items():
            problems = [one.problem for one in own if one.basis in (MEASURED, NEW_GPU)]
            if problems:
                found[device].by_texts[tuple(texts)] = problems
        return found

    def storing(self, **changed: Any) -> Self:
        """With other fields of :class:`launchwise.exporting.entries.Stored`."""
        return replace(self, stored=self.stored.model_copy(update=changed))

    def named_by(self, cuda_names: Mapping[str, Sequence[str]]) -> Self:
        """With what CUDA calls the cards, by their names in ``data/cards.csv``: the profile of a
        datasheet-only GPU names its card."""
        devices = []
        for one in self.devices:
            (own,) = one.cuda_names
            names = tuple(dict.fromkeys(cuda_names.get(own, [own])))
            devices.append(replace(one, cuda_names=names))
        return self.storing(devices=tuple(devices))

    def beside_libraries(self, peers: Iterable[pd.DataFrame]) -> Self:
        """With which libraries are faster, by their pairs with the fastest configurations
        (:func:`launchwise.tables.measurements.peers_schema`)."""
        words: dict[tuple[Value, ...], list[str]] = {}
        for rows in map(faster_libraries, peers):
            keys = rows[["gpu", *self.parameters]].itertuples(index=False, name=None)
            for key, each in zip(keys, rows["words"], strict=True):
                words.setdefault(key, []).append(each)
        keyed = [(self.devices[one.device].name, *one.problem) for one in self.entries]
        entries = tuple(
            replace(one, faster="; ".join(words.get(key, ())))
            for one, key in zip(self.entries, keyed, strict=True)
        )
        return self.storing(entries=entries)

    def said(self, device: Device) -> list[str]:
        """What is said of answers between entries: what they reach, and how they are chosen where
        not by the objective."""
        reached = [device.tested.words] if device.tested else []
        objective = self.stored.objective
        return reached if objective == TIME else [*reached, by_time(objective)]

    def number(self, device: str) -> int | None:
        """Number of a device, by one of its names; None for an unknown one."""
        return next((n for n, one in enumerate(self.devices) if device in one.names), None)

    def problem(self, values: Sequence[Value]) -> dict[str, Value]:
        """A problem by the names of its parameters."""
        return dict(zip(self.parameters, values, strict=True))

    @cached_property
    def configurations(self) -> tuple[tuple[Value, ...], ...]:
        """Configurations by their places: values of the tunables, neutral without one."""
        whole = ({**self.spec.neutral, **one} for one in self.stored.configurations)
        return tuple(tuple(one[name] for name in self.tunables) for one in whole)

    def configuration(self, place: int) -> dict[str, Value]:
        """A configuration of the entries, every tunable by its name."""
        return dict(zip(self.tunables, self.configurations[place], strict=True))

    def usual_choice(self, problem: Mapping[str, Value]) -> dict[str, Value] | None:
        """The usual choice for a problem, with every tunable; None where nothing is usual, or it
        cannot be exported."""
        neutral = dict(zip(self.tunables, self.neutral, strict=True))
        return self.formulas.usual_choice(problem, neutral)

    def expected(self, device: int, shapes: Sequence[Sequence[Value]]) -> Expected | None:
        """What the judge of a device expects of problems; None without one. The latest is kept: a
        load's answers and its builds ask alike."""
        judge, asked = self.devices[device].judge, (device, *map(tuple, shapes))
        if judge is None or not shapes or not self.stored.features:
            return None
        if asked not in self._latest:
            self._latest.clear()
            starts = range(0, len(shapes), PIECE)
            parts = [self._expected(device, judge, shapes[at : at + PIECE]) for at in starts]
            self._latest[asked] = Expected(
                *(np.concatenate(each) for each in zip(*parts, strict=True))
            )
        return self._latest[asked]

    @cached_property
    def _latest(self) -> dict[tuple[Any, ...], Expected]:
        return {}

    def _expected(self, device: int, judge: Judge, shapes: Sequence[Sequence[Value]]) -> Expected:
        places = self.stored.candidates
        choices = [self.configurations[place] for place in places] * len(shapes)
        columns = self.columns(device, [shape for shape in shapes for _ in places], choices)
        allowed = self.formulas.fitting(columns)
        losses = np.where(allowed, self.losses(judge, columns), np.inf).reshape(len(shapes), -1)
        usual = np.array([self.usual_choice(self.problem(shape)) for shape in shapes], object)
        rows = [row for row, each in enumerate(usual) if each is not None]
        of_usual = np.full(len(shapes), np.nan)
        if rows:
            taken = [tuple(each.values()) for each in usual if each is not None]
            columns = self.columns(device, [shapes[row] for row in rows], taken)
            of_usual[rows] = self.losses(judge, columns)
        return Expected(losses, usual, of_usual)

    def moved(
        self, place: int, problem: Mapping[str, Value], facts: Mapping[str, int]
    ) -> dict[str, Value] | None:
        return self.formulas.moved(self.configuration(place), problem, facts)

    def columns(
        self, device: int, shapes: Sequence[Sequence[Value]], choices: Sequence[Sequence[Value]]
    ) -> Columns:
        """Problems on a device, each with a configuration of it, for expressions."""
        names = [*self.parameters, *self.tunables]
        columns = [*zip(*shapes, strict=True), *zip(*choices, strict=True)]
        arrays = {
            name: np.array(values, dtype=object if name in self.texts else np.int64)
            for name, values in zip(names, columns, strict=True)
        }
        facts = self.devices[device].named_facts
        return Columns(dict(self.formulas.derived), {**arrays, **facts})

    def losses(self, judge: Judge, columns: Columns) -> np.ndarray:
        """What a judge expects of each row: log time over that of the best candidate, (rows,)."""
        return judge.sums(np.column_stack([ratios(columns, each) for each in self.stored.features]))

    def time_at(self, entry: Entry, problem: Mapping[str, Value]) -> float | None:
        """The time of an entry, scaled to another problem: ms."""
        if entry.time_ms is None:
            return None
        work = ("", *self.formulas.work)[entry.scale]
        known = self.formulas.work_of(work, self.problem(entry.problem))
        return entry.time_ms * (self.formulas.work_of(work, problem) / known) if known else None

    def plain(self) -> dict[str, Any]:
        """As JSON values, with what to launch for each entry."""
        return {
            "study": self.study,
            "title": self.spec.title,
            **{name: getattr(self, name) for name in _NAMED},
            **self.stored.model_dump(
                exclude={"entries", "configurations", "candidates", "fallback"}
            ),
            "candidates": [self.configurations[place] for place in self.stored.candidates],
            "texts": sorted(self.texts),
            "facts": EXPORTED_FACTS,
            "default": self.default,
            "neutral": self.neutral,
            "limits": self.limits.plain,
            "formulas": asdict(self.formulas),
            "entries": [self._plain_entry(one) for one in self.entries],
        }

    def _plain_entry(self, entry: Entry) -> dict[str, Any]:
        configuration = used(self.configuration(entry.choice), self.spec)
        shapes = launch_shapes(self.spec, self.problem(entry.problem), configuration)
        # asdict copies every value of thousands of entries.
        own = {name: value for name, value in vars(entry).items() if name not in _INSIDE}
        return {
            **own,
            "configuration": self.configurations[entry.choice],
            "usual": self.configurations[entry.usual],
            "launches": [asdict(one) for one in shapes],
        }


_NAMED = ("version", "day", "tunables", "no_limits", "launches_usual")
_INSIDE = ("choice", "usual", "others", "ran", "losses")
"""What an entry holds by places, or for the report alone."""
