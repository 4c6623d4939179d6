"""A table of answers that any language can look up: problems, configurations, and a default.

Lookup, the same in every exported form:

1. the device by its name in the settings or by what CUDA calls it;
2. of its entries those with the same texts (such as a type);
3. of these the one nearest in size, the first of equal ones
   (:func:`launchwise.exporting.lookup.distance`);
4. without any, the usual choice for the problem; where nothing is usual, the default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

import launchwise
from launchwise.exporting.formulas import ExportedFormulas
from launchwise.exporting.lookup import asked_cases, distance
from launchwise.learning.answering import answers
from launchwise.learning.answers import Answer, Interval
from launchwise.learning.final import Final
from launchwise.workloads.launch_shapes import LaunchShape, Limits, launch_shapes
from launchwise.workloads.parts import Value
from launchwise.workloads.space import baseline
from launchwise.workloads.spec import Spec


@dataclass(frozen=True)
class Entry:
    """An answer."""

    device: int  # number of its device
    problem: tuple[Value, ...]  # values in the order of the parameters
    configuration: tuple[Value, ...]  # values in the order of the tunables, the variant first
    # Measured or expected, and over the usual choice; None where nothing is known.
    time_ms: float | None
    gain: float | None
    basis: str  # see `launchwise.learning.answers.BASES`
    # How its kernels are launched; none where host code decides.
    launches: tuple[LaunchShape, ...] = ()
    # Limits of the intervals of both, 95 % of ``measured``, else 90 %; None where unknown.
    interval_ms: Interval | None = None
    gain_interval: Interval | None = None
    # The usual choice for the problem, likewise in the order of the tunables.
    usual: tuple[Value, ...] = ()

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        # asdict copies every value of thousands of entries.
        return {**vars(self), "launches": tuple(asdict(one) for one in self.launches)}


@dataclass(frozen=True)
class Device:
    """A GPU that has entries."""

    name: str  # in the settings
    cuda_names: tuple[str, ...]  # what CUDA calls it
    # With which it was measured; empty where nothing was, or where nobody recorded it.
    drivers: tuple[str, ...] = ()
    toolkits: tuple[str, ...] = ()
    days: tuple[str, ...] = ()  # first and last day of measurements, YYYY-MM-DD; likewise

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


@dataclass(frozen=True)
class AnswerTable:
    """Everything that an exported file holds."""

    study: str  # what the answers are of
    workload: str
    title: str
    commits: tuple[str, ...]  # commits at which it was measured
    parameters: tuple[str, ...]  # names
    tunables: tuple[str, ...]  # names, the variant first
    texts: frozenset[str]  # those of them whose values are texts
    devices: tuple[Device, ...]  # in the order of their numbers
    version: str  # version of launchwise
    default: tuple[Value, ...]  # configuration where nothing else is known
    entries: tuple[Entry, ...]  # sorted by device, then by problem
    limits: Limits  # problems that have an answer
    neutral: tuple[Value, ...]  # value of each tunable where nothing sets it, the variant's empty
    # The usual choice for a problem, and how a configuration is launched.
    formulas: ExportedFormulas

    @property
    def day(self) -> str:
        """Day of the newest measurement, YYYY-MM-DD; empty where none is recorded. Exports hold no
        day of their own: equal measurements give equal files."""
        return max([day for one in self.devices for day in one.days], default="")

    def lookup(self, device: str, problem: Mapping[str, Value]) -> Entry | None:
        """The entry that answers; None where none does."""
        numbers = [place for place, one in enumerate(self.devices) if device in one.names]
        asked = [problem[name] for name in self.parameters]
        best: Entry | None = None
        least = float("inf")
        for entry in self.entries:
            if not numbers or entry.device != numbers[0]:
                continue
            far = distance(asked, entry.problem)
            if far < least:
                best, least = entry, far
        return best

    def configuration(self, entry: Entry | None) -> dict[str, Value]:
        """Configuration of an entry, or the default, with every tunable in it."""
        values = self.default if entry is None else entry.configuration
        return dict(zip(self.tunables, values, strict=True))

    def usual_choice(self, problem: Mapping[str, Value]) -> dict[str, Value] | None:
        """The usual choice for a problem, with every tunable; None where nothing is usual."""
        neutral = dict(zip(self.tunables, self.neutral, strict=True))
        return self.formulas.usual_choice(problem, neutral)

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            **asdict(replace(self, entries=())),
            "entries": tuple(one.plain() for one in self.entries),
            "day": self.day,
            "texts": sorted(self.texts),
        }


def answer_table(
    final: Final,
    study: str,
    gpus: Iterable[str] = (),
    least_gain: float | None = None,
    processes: int = 1,
    cuda_names: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> AnswerTable:
    """Answers for what was measured, and for sizes between, on every GPU of a product.

    ``gpus``: GPUs of the product's domain that it did not learn from, to be answered as well.
    ``least_gain``, ``processes``: as of :func:`launchwise.learning.answering.answers`.
    ``cuda_names``: card of ``data/cards.csv`` to what CUDA calls its devices.
    """
    spec, domain = final.spec, final.domain
    names = list(dict.fromkeys([*final.facts["gpus"], *gpus]))
    cases = asked_cases(final, names)
    found = answers(final, cases, least_gain=least_gain, processes=processes)
    return AnswerTable(
        study=study,
        workload=spec.workload,
        title=spec.title,
        commits=tuple(final.facts["commits"]),
        parameters=tuple(spec.problem_columns),
        tunables=tuple(spec.tunable_columns),
        texts=frozenset(_texts(spec)),
        devices=tuple(_device(gpu, final, cuda_names) for gpu in names),
        version=launchwise.__version__,
        default=tuple(baseline(spec).values()),
        entries=tuple(_entry(names.index(each.gpu), each, spec) for each in found),
        limits=Limits.of(spec),
        neutral=("", *spec.neutral.values()),
        formulas=ExportedFormulas.of(domain),
    )


def _device(gpu: str, final: Final, cuda_names: Mapping[str, Sequence[str]]) -> Device:
    """A profile made of a datasheet names the card, which CUDA may call several names."""
    own = final.domain.profiles[gpu].device_name
    # Products of earlier versions do not say when.
    told = final.facts.get("measurements", {}).get(gpu, {})
    return Device(
        gpu,
        tuple(dict.fromkeys(cuda_names.get(own, [own]))),
        **{name: tuple(told.get(name, ())) for name in ("drivers", "toolkits", "days")},
    )


def _texts(spec: Spec) -> set[str]:
    found = {name for name, one in spec.tunables.items() if isinstance(one.neutral, str)}
    found |= {
        name
        for name, one in spec.problem.items()
        if one.values is not None and any(isinstance(value, str) for value in one.values)
    }
    return {"variant", *found}


def _entry(device: int, answer: Answer, spec: Spec) -> Entry:
    first = answer.suggestions[0]
    return Entry(
        device=device,
        problem=tuple(answer.problem[name] for name in spec.problem_columns),
        configuration=_in_order(first.configuration, spec),
        time_ms=first.expected_ms,
        gain=first.gain,
        basis=answer.basis,
        launches=tuple(launch_shapes(spec, answer.problem, first.configuration)),
        interval_ms=first.interval_ms,
        gain_interval=first.gain_interval,
        usual=_in_order(answer.usual, spec),
    )


def _in_order(configuration: Mapping[str, Value], spec: Spec) -> tuple[Value, ...]:
    """Values of every tunable; neutral where the variant does not have it."""
    whole = {**spec.neutral, **configuration}
    return tuple(whole[name] for name in spec.tunable_columns)
