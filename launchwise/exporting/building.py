"""A study's answers as a table: problems that are asked for beforehand, and what the model says."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from launchwise.experiment.load import Load
from launchwise.experiment.study import Blind, Range
from launchwise.exporting.between import calibrated, candidates, held
from launchwise.exporting.entries import Device, Entry, Places, Ran, Stored
from launchwise.exporting.formulas import exported_facts, exported_features, name_kinds
from launchwise.exporting.table import AnswerTable, table_of
from launchwise.learning.answering import answers, why_none
from launchwise.learning.answers import Answer
from launchwise.learning.blind import drawn_problem
from launchwise.learning.features import Domain
from launchwise.learning.final import Final, blind_rows
from launchwise.learning.row_arrays import records_of
from launchwise.learning.splits import Case
from launchwise.tables.times import APART
from launchwise.tables.visits import FEWEST, SHARE
from launchwise.workloads.metrics import BACK_TO_BACK
from launchwise.workloads.near_problems import distances, sortable
from launchwise.workloads.parts import Value
from launchwise.workloads.space import Problem, plain, used
from launchwise.workloads.spec import Spec

UNMEASURED = 12
"""Most problems that are asked for on a GPU without measurements: a model has to answer each."""

DRAWN = 32  # Drawn problems of a kind, for each fourfold of another size that varies
TRIES = 4  # Draws for each problem that is wanted
MOST_DRAWN = 512  # Most drawn problems a GPU
LISTED = 2  # One in so many has an entry; judges learn from all
MOST_LOADED = 256  # Most problems of a load that have an entry of their own

Declared = Mapping[str, Range | list[Value]]
"""Parameter of a problem to its range, or its values."""


def known_cases(final: Final) -> list[Case]:
    """Measured problems on every GPU that the product learnt from, and those of blind tests on
    theirs."""
    columns, gpus = final.spec.problem_columns, list(final.facts["gpus"])
    cases = answerable(final, gpus, measured_problems(final))
    known = {case.key for case in cases}
    for row in final.tested.to_dict("records"):
        case = Case(str(row["gpu"]), plain(row, columns))
        if case.gpu in gpus and case.key not in known:
            cases.append(case)
    return cases


def answerable(final: Final, gpus: Sequence[str], problems: Sequence[Problem]) -> list[Case]:
    """Each problem on each GPU that some configuration may run."""
    domain = final.domain
    cases = [Case(gpu, problem) for gpu in gpus for problem in problems]
    return [case for case in cases if why_none(domain, case) is None]


def measured_problems(final: Final) -> list[Problem]:
    """Measured problems that are still problems of the workload, sorted."""
    columns = final.spec.problem_columns
    rows = final.measured[columns].drop_duplicates().itertuples(index=False, name=None)
    values = sorted((tuple(map(_plain, row)) for row in rows), key=sortable)
    problems = [dict(zip(columns, row, strict=True)) for row in values]
    return [problem for problem in problems if final.spec.check_problem(problem) is None]


def drawn_problems(final: Final, declared: Declared | None) -> list[Problem]:
    """Problems that nobody measured, drawn from the declared ranges: the more sizes vary and the
    more kinds there are, the more of them. Always the same.

    ``declared``: values or range of each parameter; by default those that were measured.
    """
    parameters = dict(declared or measured_ranges(final))
    sizes = [one for one in parameters.values() if isinstance(one, Range)]
    kinds = math.prod(len(one) for one in parameters.values() if not isinstance(one, Range))
    if not sizes:
        return []
    count = min(MOST_DRAWN, DRAWN * kinds * 4 ** len(sizes))
    known = {tuple(problem.values()) for problem in measured_problems(final)}
    found: dict[tuple[Value, ...], Problem] = {}
    dice = random.Random(f"between {final.spec.workload}")
    asked = Blind(parameters=parameters)
    for _ in range(TRIES * count):
        problem = drawn_problem(asked, final.spec, dice, move=True)
        if problem is not None and tuple(problem.values()) not in known:
            found.setdefault(tuple(problem.values()), problem)
        if len(found) == count:
            break
    return list(found.values())


def measured_ranges(final: Final) -> Declared:
    """The measured values of each parameter, or their range."""
    found: dict[str, Range | list[Value]] = {}
    for name, one in final.spec.problem.items():
        values = sorted({_plain(value) for value in final.measured[name]})
        free = one.values is None and 0 < int(values[0]) < int(values[-1])
        logarithmic = {"minimum": values[0], "maximum": values[-1], "scale": "logarithmic"}
        found[name] = Range.model_validate(logarithmic) if free else values
    return found


def spread_problems(final: Final) -> list[Problem]:
    """Measured problems, at most :data:`UNMEASURED`, as far from each other as they can be. Far is
    what the lookup of an unlisted size means by it (:func:`distances`): each further one is the
    farthest from those before. Problems that all whole cards measured come first: on these,
    predictions stand beside the times of every card."""
    columns = final.spec.problem_columns
    whole = [gpu for gpu, one in final.domain.profiles.items() if not one.is_slice]
    known = final.measured[[*columns, "gpu"]].drop_duplicates()
    measured = known.loc[known["gpu"].isin(whole), columns].itertuples(index=False, name=None)
    cards = Counter(tuple(map(_plain, values)) for values in measured)
    rows = [tuple(one.values()) for one in measured_problems(final)]
    chosen: list[tuple[Value, ...]] = []
    for least in (max((cards[row] for row in rows), default=0), 0):
        allowed = [row for row in rows if cards[row] >= least]
        while len(chosen) < UNMEASURED:
            far = distances(allowed, chosen).min(axis=1, initial=np.inf)
            if far.max(initial=1.0) <= 1:
                break
            chosen.append(allowed[int(far.argmax())])
    return [dict(zip(columns, row, strict=True)) for row in sorted(chosen, key=sortable)]


def _plain(value: Any) -> Value:
    return value if isinstance(value, str) else int(value)


SUGGESTIONS = 4  # Suggestions of an entry: the one to take, and those to try next
SLICE_SHARE = 4  # On slices of a card a fourth of the problems is drawn
FULLY_ASKED = 4
"""Of one in so many drawn problems the model judges every candidate, of the others what was chosen
before: it takes a fraction of the time, and judges learn of no others."""


def answer_table(
    final: Final,
    study: str,
    gpus: Iterable[str] = (),
    least_gain: float | None = None,
    processes: int = 1,
    declared: Declared | None = None,
    times: Mapping[str, pd.DataFrame] | None = None,
    load: Load | None = None,
) -> AnswerTable:
    """Answers for what was measured, and for sizes between, on every GPU of a product.

    ``gpus``: GPUs of the product's domain that it did not learn from, to be answered as well.
    ``declared``: see :func:`drawn_problems`.
    ``times``: GPU to judged times, those of blind tests among them.
    ``load``: its problems, the most frequent ones, are asked about, too.
    ``least_gain``, ``processes``: as of :func:`launchwise.learning.answering.answers`.
    """
    domain, learnt = final.domain, list(final.facts["gpus"])
    names = list(dict.fromkeys([*learnt, *gpus]))
    problems = drawn_problems(final, declared)
    few = [gpu for gpu in learnt if domain.profiles[gpu].is_slice]
    drawn = answerable(final, [gpu for gpu in learnt if gpu not in few], problems)
    drawn += answerable(final, few, problems[: len(problems) // SLICE_SHARE])
    known = known_cases(final)
    keys = {case.key for case in known}
    loaded = [load.problem(one) for one in load.counts][:MOST_LOADED] if load else []
    asked = answerable(final, [gpu for gpu in learnt if gpu not in few], loaded)
    asked = [case for case in asked if case.key not in keys]
    keys |= {case.key for case in asked}
    drawn = [case for case in drawn if case.key not in keys]
    own = {tuple(problem.values()) for problem in problems[::LISTED]}
    listed = [case for case in drawn if tuple(case.problem.values()) in own]
    unlisted = [case for case in drawn if tuple(case.problem.values()) not in own]
    others = answerable(final, [gpu for gpu in names if gpu not in learnt], spread_problems(final))
    judged: list[pd.DataFrame] = []
    found = answers(final, [*known, *others], SUGGESTIONS, least_gain, processes)
    first, rest = listed[::FULLY_ASKED], [one for at, one in enumerate(listed) if at % FULLY_ASKED]
    found += answers(final, [*asked, *first], 1, least_gain, processes, judged)
    among = _chosen(found, domain)
    both = answers(final, [*rest, *unlisted], 1, least_gain, processes, judged, among)
    found += both[: len(rest)]
    places = {gpu: place for place, gpu in enumerate(names)}
    found.sort(key=lambda one: (places[one.gpu], sortable(one.problem.values())))
    configurations = Places()
    entries = [_entry(places[one.gpu], one, final.spec, configurations) for one in found]
    rows = {gpu: own for gpu, own in (times or {}).items() if gpu in places}
    place = configurations.of_items
    ran = {places[gpu]: back_to_back(own, final.spec, place) for gpu, own in rows.items()}
    entries = [replace(one, ran=ran.get(one.device, {}).get(one.problem, ())) for one in entries]
    features = exported_features(final.spec, name_kinds(final.spec))
    named = [dict(each) for each in configurations]
    stored = Stored(
        workload=final.spec.workload,
        parameters=tuple(final.spec.problem_columns),
        commits=tuple(final.facts["commits"]),
        least_gain=least_gain,
        devices=tuple(_device(gpu, final, rows.get(gpu)) for gpu in names),
        configurations=tuple(named),
        candidates=candidates(entries, named, final),
        features=tuple(features),
        entries=tuple(entries),
    )
    table = calibrated(table_of(domain, study, stored), judged, final)
    return held(table, blind_rows(times), final) if times else table


def _device(gpu: str, final: Final, times: pd.DataFrame | None) -> Device:
    profile = final.domain.profiles[gpu]
    # Products of earlier versions do not say when.
    told = final.facts.get("measurements", {}).get(gpu, {})
    return Device(
        gpu,
        (profile.device_name,),
        tuple(exported_facts(profile).values()),
        drivers=tuple(told.get("drivers", ())),
        toolkits=tuple(told.get("toolkits", ())),
        days=tuple(told.get("days", ())),
        apart={} if times is None else apart(times),
        reach=final.known.reach(gpu),
    )


def _chosen(found: Sequence[Answer], domain: Domain) -> pd.DataFrame:
    """Choices that answers begin with, each once: :attr:`Domain.choice_columns`."""
    whole = ({**domain.spec.neutral, **one.suggestions[0].configuration} for one in found)
    columns = domain.choice_columns
    rows = pd.DataFrame([[one[name] for name in columns] for one in whole], columns=columns)
    return rows.drop_duplicates()


def _entry(device: int, answer: Answer, spec: Spec, places: Places) -> Entry:
    place = places.of_items
    first, *rest = answer.suggestions
    return Entry(
        device=device,
        problem=tuple(answer.problem[name] for name in spec.problem_columns),
        choice=place(first.configuration),
        usual=place(answer.usual),
        time_ms=first.expected_ms,
        gain=first.gain,
        basis=answer.basis,
        interval_ms=first.interval_ms,
        gain_interval=first.gain_interval,
        improvement=first.improvement,
        improvement_interval=first.improvement_interval,
        paired=first.paired,
        blind=answer.blind,
        alike=answer.alike,
        unsure=answer.unsure,
        why=answer.why,
        others=tuple((place(one.configuration), one.expected_ms, one.interval_ms) for one in rest),
    )


def apart(times: pd.DataFrame) -> dict[str, float]:
    """Column of :data:`BACK_TO_BACK` to the logarithm of the ratio that 95 % of configurations stay
    below in two visits; without those of which too few were measured twice. The energy is a time
    and a power: where only energies were measured twice, sustained times differ by no more.

    ``times``: judged times of a GPU."""
    found = {}
    for name, column in zip(BACK_TO_BACK, APART, strict=True):
        known = times[column].abs().dropna()
        if len(known) >= FEWEST:
            found[name] = float(np.quantile(known, SHARE))
    energy, sustained = BACK_TO_BACK
    return {sustained: found[energy], **found} if energy in found else found


def back_to_back(
    times: pd.DataFrame, spec: Spec, place: Callable[[Mapping[str, Value]], int]
) -> dict[tuple[Value, ...], tuple[Ran, ...]]:
    """Problem to what ran back to back there. ``times``: judged times of a GPU; ``place`` numbers
    configurations."""
    found: dict[tuple[Value, ...], tuple[Ran, ...]] = {}
    for row in records_of(times[times["sustained_ms"].notna() & times["time_ms"].notna()]):
        problem = tuple(plain(row, spec.problem_columns).values())
        energy_j = None if pd.isna(row["energy_j"]) else float(row["energy_j"])
        at = place(used(plain(row, spec.tunable_columns), spec))
        one = Ran(at, float(row["time_ms"]), float(row["sustained_ms"]), energy_j)
        found[problem] = (*found.get(problem, ()), one)
    return found
