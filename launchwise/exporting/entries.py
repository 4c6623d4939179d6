"""What a product's table of answers holds: entries, devices, its file; its choices by an objective.

Pairs run a few configurations of a problem back to back, for long enough that the card may be at
its power limit. A table of answers holds what these took (:class:`Ran`); whoever reads it names the
objective. An answer changes where another of them takes less by more than two visits of one
configuration differ; everywhere else the choice stays the one by time."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from launchwise.base.errors import UserError
from launchwise.base.storage import read_sealed_json
from launchwise.base.typed import Strict, validated
from launchwise.experiment.settings import OBJECTIVE
from launchwise.exporting.formulas import EXPORTED_FACTS, Ratio
from launchwise.exporting.lookup import LARGEST_LOSS, Judge
from launchwise.learning.answers import BASES
from launchwise.workloads.parts import Value

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Interval = tuple[Positive, Positive]

THOUSANDTHS = 1000  # Of a logarithm: what :attr:`Entry.losses` count in
Loss = Annotated[int, Field(ge=0, le=LARGEST_LOSS * THOUSANDTHS)]


class Places(dict[Any, int]):
    """Things in the order in which they were met, to their places."""

    def __init__(self, met: Iterable[Any] = ()) -> None:
        super().__init__((each, place) for place, each in enumerate(met))

    def of(self, each: Any) -> int:
        """Its place, the next one if it is new."""
        return self.setdefault(each, len(self))

    def of_items(self, each: Mapping[str, Any]) -> int:
        """The place of a mapping, such as a configuration."""
        return self.of(tuple(each.items()))


@dataclass(frozen=True)
class Ran:
    """A configuration that ran back to back in pairs."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    place: int  # in :attr:`Stored.configurations`
    time_ms: Positive  # of a launch alone
    sustained_ms: Positive  # of a launch back to back
    energy_j: float | None  # likewise, J; None where the card did not tell


@dataclass(frozen=True)
class Entry:
    """An answer; configurations by their places in :attr:`Stored.configurations`."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    device: int  # number of its device
    problem: tuple[Value, ...]  # values in the order of the parameters
    choice: int
    usual: int  # the usual choice for the problem
    # Measured or expected, and over the usual choice; None where nothing is known.
    time_ms: Positive | None
    gain: Positive | None
    basis: str  # see `launchwise.learning.answers.BASES`
    # Limits of the intervals of both, 95 % of ``measured``, else 90 %; None where unknown.
    interval_ms: Interval | None = None
    gain_interval: Interval | None = None
    improvement: Positive | None = None  # over the baseline
    improvement_interval: Interval | None = None
    paired: bool = False  # whether the gains were measured in pairs
    blind: bool = False  # whether a blind test alone measured it
    alike: int | None = None  # see :class:`launchwise.learning.answers.Answer`
    unsure: Positive | None = None  # likewise
    why: str = ""  # one sentence
    faster: str = ""  # which libraries beat the fastest measured configuration, in words
    # What to try next, in order: configuration, its time and limits (measured: beside this time).
    others: tuple[tuple[int, Positive | None, Interval | None], ...] = ()
    # By which work (:attr:`launchwise.exporting.formulas.ExportedFormulas.work`, from 1) its time
    # is scaled for another problem; 0: it is not.
    scale: int = 0
    ran: tuple[Ran, ...] = ()  # what ran back to back, for other objectives than time
    # Where the model answered: log time of each of :attr:`Stored.candidates` over the least that it
    # expects, in thousandths; None: it may not run the problem.
    losses: tuple[Loss | None, ...] = ()

    def choosing(
        self,
        choice: int,
        time_ms: float,
        why: str,
        limits: Interval | None,
        before_ms: float | None = None,
    ) -> Entry:
        """The same problem with another choice, its time and its limits; no time where this one has
        none. ``before_ms``: what this one takes by the same estimate, by default its time."""
        factor = time_ms / (before_ms or self.time_ms or math.nan)
        # Endless where nothing says what this one takes: then no ratio is known.
        known = factor > 0
        gain, improvement = (
            one / factor if one and known else None for one in (self.gain, self.improvement)
        )
        return replace(
            self,
            choice=choice,
            time_ms=self.time_ms and time_ms,
            why=why,
            alike=None,
            unsure=None,
            gain_interval=None,
            improvement_interval=None,
            losses=(),
            interval_ms=limits if self.time_ms else None,
            gain=1.0 if choice == self.usual else gain,
            improvement=improvement,
        )

    def but_libraries(self, why: str) -> str:
        """A reason, and which libraries are faster."""
        return f"{why}; but {self.faster}" if self.faster else why


@dataclass(frozen=True)
class Tested:
    """How answers between entries do where a blind test measured the problem since: asked anew,
    with what was measured after the test, unlike the answers that the test froze."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    problems: Annotated[int, Field(ge=1)]
    # Geometric mean of the speed of the answer over that of the fastest.
    fraction: Annotated[float, Field(gt=0)]

    @property
    def words(self) -> str:
        return (
            f"such answers, asked anew, reach {self.fraction:.3f} of the best speed at "
            f"{self.problems} blind problems"
        )


@dataclass(frozen=True)
class Device:
    """A GPU that has entries."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: str  # in the settings
    cuda_names: tuple[str, ...]  # what CUDA calls it
    facts: tuple[int, ...]  # in the order of `launchwise.exporting.formulas.EXPORTED_FACTS`
    # What judges candidates for a problem without an entry; None where the model judged none.
    judge: Judge | None = None
    # Limits of what is stated of such a problem, as factors of it; None where unknown.
    between_ms: Interval | None = None
    between_gain: Interval | None = None
    tested: Tested | None = None  # None where no blind test measured enough problems
    # Usual distance of a measured problem to the nearest other one; None without any.
    reach: Positive | None = None
    # How far two visits lie apart: see `launchwise.exporting.building.apart`.
    apart: dict[str, float] = field(default_factory=dict)
    # With which it was measured; empty where nothing was, or where nobody recorded it.
    drivers: tuple[str, ...] = ()
    toolkits: tuple[str, ...] = ()
    days: tuple[str, ...] = ()  # first and last day of measurements, YYYY-MM-DD; likewise

    @property
    def named_facts(self) -> dict[str, int]:
        return dict(zip(EXPORTED_FACTS, self.facts, strict=True))

    @property
    def names(self) -> tuple[str, ...]:
        """Names by which it is looked up."""
        return (self.name, *self.cuda_names)

    @property
    def measured(self) -> str:
        """With what and when it was measured, in words."""
        if not self.days:
            return "no dates of measurements recorded"
        words = f"measured {' to '.join(dict.fromkeys(self.days))}"
        kinds = {"driver": self.drivers, "CUDA": self.toolkits}
        return ", ".join(
            [words, *(f"{kind} {', '.join(each)}" for kind, each in kinds.items() if each)]
        )


class Stored(Strict):
    """What a product's file holds of a table: the rest follows from the study."""

    workload: str
    parameters: tuple[str, ...]  # names of the problem's parameters
    commits: tuple[str, ...]  # commits at which it was measured
    least_gain: float | None  # gain over the usual choice that must be sure; see the settings
    devices: tuple[Device, ...]  # in the order of their numbers
    # Every configuration of the entries once: the variant, and every tunable that it has.
    configurations: tuple[dict[str, Value], ...]
    candidates: tuple[int, ...]  # places of those that are judged
    features: tuple[Ratio, ...]  # what the trees of judges compare
    entries: tuple[Entry, ...]  # sorted by device, then by problem
    # Place of the configuration where nothing else is known; None: the workload's default.
    fallback: int | None = None
    objective: str = "time"  # by which entries are chosen; in a product's file always time


def read_stored(path: Path) -> Stored:
    """Read a product's table without its study; errors as of :func:`read_answer_table`."""
    stored = validated(Stored, read_sealed_json(path), path)
    for key, complaint in _strange(stored):
        raise UserError(path, key, complaint)
    return stored


def _strange(stored: Stored) -> Iterator[tuple[str, str]]:
    """Keys of a table whose values do not belong together, and why."""
    count, known = len(stored.configurations), len(stored.devices)
    places = [*stored.candidates, *([] if stored.fallback is None else [stored.fallback])]
    for one in stored.entries:
        places += [one.choice, one.usual, *(place for place, *_ in one.others)]
        places += [each.place for each in one.ran]
        if not 0 <= one.device < known or len(one.problem) != len(stored.parameters):
            yield "entries", "are of other devices or parameters"
        if one.losses and len(one.losses) != len(stored.candidates):
            yield "entries", "judge other candidates"
        if one.basis not in BASES:
            yield "entries", f"{one.basis!r} is no basis"
    if any(not 0 <= place < count for place in places):
        yield "configurations", "some are missing"
    for each in stored.devices:
        if len(each.facts) != len(EXPORTED_FACTS):
            yield "devices", f"{each.name}: needs {len(EXPORTED_FACTS)} facts"
        if each.judge and not each.judge.is_whole(len(stored.features)):
            yield "devices", f"{each.name}: its trees have other nodes"


def named_answers(stored: Stored) -> list[dict[str, Any]]:
    """Entries with names, for the report.

    Returns ``gpu``, ``problem``, ``basis`` (a key of :data:`launchwise.learning.answers.BASES`),
    ``blind`` (a blind test alone measured it), ``alike`` and ``unsure`` as in the entry;
    ``configuration`` (the variant and the tunables that it has), ``is_usual``, ``usual`` (that of
    the usual choice); ``time_ms``, ``gain`` over the usual choice and ``improvement`` over the
    baseline, each with ``_low`` and ``_high``, None where nothing is known; ``paired`` (the gains
    were measured in pairs); ``others``: configurations to try next, in order, with their times;
    ``scale`` as in the entry.
    """
    configurations = stored.configurations

    def limited(
        value: float | None, limits: Interval | None, *names: str
    ) -> dict[str, float | None]:
        return dict(zip(names, (value, *(limits or (None, None))), strict=True))

    times = ("time_ms", "time_low_ms", "time_high_ms")
    gains = ("gain", "gain_low", "gain_high")
    improvements = ("improvement", "improvement_low", "improvement_high")
    return [
        {
            "gpu": stored.devices[one.device].name,
            "problem": dict(zip(stored.parameters, one.problem, strict=True)),
            **{
                name: getattr(one, name)
                for name in ("basis", "blind", "alike", "unsure", "paired", "scale")
            },
            "configuration": configurations[one.choice],
            "usual": configurations[one.usual],
            "is_usual": one.choice == one.usual,
            **limited(one.time_ms, one.interval_ms, *times),
            **limited(one.gain, one.gain_interval, *gains),
            **limited(one.improvement, one.improvement_interval, *improvements),
            "others": [
                {"configuration": configurations[place], **limited(time_ms, limits, *times)}
                for place, time_ms, limits in one.others
            ],
        }
        for one in stored.entries
    ]


TIME = "time"
COLUMNS = {
    "sustained time": ("sustained_ms", "ms back to back"),
    "energy": ("energy_j", "J per run"),
}
"""Objective to a column of what ran back to back, and its unit."""


def by_objective(stored: Stored, text: str) -> Stored:
    """A table with the choices by an objective of the settings."""
    found = re.fullmatch(OBJECTIVE, text)
    if not found or not found[1]:
        return stored
    within = math.inf if found[2] is None else float(found[2]) / 100
    entries = [
        _by(found[1], within, one, stored.devices[one.device].apart) for one in stored.entries
    ]
    return stored.model_copy(update={"entries": tuple(entries), "objective": text})


def _by(name: str, within: float, entry: Entry, visits: Mapping[str, float]) -> Entry:
    """``within``: most loss of time that is allowed, relative to the choice by time."""
    column, unit = COLUMNS[name]
    values = {one.place: float(value) for one in entry.ran if (value := getattr(one, column))}
    if entry.choice not in values or column not in visits:
        return replace(entry, why=f"{entry.why}; {by_time(name)}")
    times = {one.place: one.time_ms for one in entry.ran}
    own, own_ms, error = values[entry.choice], times[entry.choice], math.exp(visits[column])
    less = [
        place
        for place, value in values.items()
        if value * error < own and times[place] <= own_ms * (1 + within)
    ]
    number = f"{len(values)} configurations that ran back to back"
    if not less:
        return replace(entry, why=f"{entry.why}; none of {number} surely takes less {name}")
    # Of those that cannot be told apart the usual choice, then the one of least time.
    least = min(values[place] for place in less) * error
    near = [place for place in less if values[place] <= least]
    chosen = min(near, key=lambda place: (place != entry.usual, times[place], place))
    why = (
        f"of {number} this takes least {name}: {values[chosen]:.3g} {unit}, "
        f"{100 * (1 - values[chosen] / own):.0f} % less than the choice by time, at "
        f"{100 * (times[chosen] / own_ms - 1):+.1f} % of its time alone"
    )
    others = [one for one in entry.others if one[0] != chosen]
    limits = {place: limits for place, _, limits in entry.others}.get(chosen)
    before = (entry.choice, entry.time_ms, entry.interval_ms)
    return replace(entry.choosing(chosen, times[chosen], why, limits), others=(before, *others))


def by_time(name: str) -> str:
    """What is said of an answer where an objective is not known."""
    return f"chosen by time: no {name} is known of it here"
