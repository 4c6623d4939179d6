"""A study's answers as a table: what is asked of the model beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import pandas as pd

from launchwise.exporting.asked import (
    Declared,
    answerable,
    drawn_problems,
    known_cases,
    spread_problems,
)
from launchwise.exporting.between import calibrated, candidates, held
from launchwise.exporting.entries import Device, Entry, Stored
from launchwise.exporting.formulas import exported_features, name_kinds
from launchwise.exporting.lookup import sortable
from launchwise.exporting.table import AnswerTable, table_of
from launchwise.learning.answering import answers
from launchwise.learning.answers import Answer
from launchwise.learning.features import Domain
from launchwise.learning.final import Final, blind_rows
from launchwise.workloads.parts import GPU_NAMES, Value
from launchwise.workloads.space import gpu_facts
from launchwise.workloads.spec import Spec

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
) -> AnswerTable:
    """Answers for what was measured, and for sizes between, on every GPU of a product.

    ``gpus``: GPUs of the product's domain that it did not learn from, to be answered as well.
    ``declared``: see :func:`launchwise.exporting.asked.drawn_problems`.
    ``times``: GPU to judged times, those of blind tests among them.
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
    drawn = [case for case in drawn if case.key not in keys]
    others = answerable(final, [gpu for gpu in names if gpu not in learnt], spread_problems(final))
    judged: list[pd.DataFrame] = []
    found = answers(final, [*known, *others], SUGGESTIONS, least_gain, processes)
    first, rest = drawn[::FULLY_ASKED], [one for at, one in enumerate(drawn) if at % FULLY_ASKED]
    found += answers(final, first, 1, least_gain, processes, judged)
    among = _chosen(found, domain)
    found += answers(final, rest, 1, least_gain, processes, judged, among)
    places = {gpu: place for place, gpu in enumerate(names)}
    found.sort(key=lambda one: (places[one.gpu], sortable(one.problem.values())))
    configurations: Places = {}
    entries = [_entry(places[one.gpu], one, final.spec, configurations) for one in found]
    features = exported_features(final.spec, name_kinds(final.spec))
    named = [dict(each) for each in configurations]
    stored = Stored(
        workload=final.spec.workload,
        parameters=tuple(final.spec.problem_columns),
        commits=tuple(final.facts["commits"]),
        least_gain=least_gain,
        devices=tuple(_device(gpu, final) for gpu in names),
        configurations=tuple(named),
        candidates=candidates(entries, named, final),
        features=tuple(features),
        entries=tuple(entries),
    )
    table = calibrated(table_of(domain, study, stored), judged, final)
    return held(table, blind_rows(times), final) if times else table


def _device(gpu: str, final: Final) -> Device:
    profile = final.domain.profiles[gpu]
    # Products of earlier versions do not say when.
    told = final.facts.get("measurements", {}).get(gpu, {})
    facts = gpu_facts(profile.model_dump())
    return Device(
        gpu,
        (profile.device_name,),
        tuple(facts[name] for name in GPU_NAMES),
        drivers=tuple(told.get("drivers", ())),
        toolkits=tuple(told.get("toolkits", ())),
        days=tuple(told.get("days", ())),
    )


def _chosen(found: Sequence[Answer], domain: Domain) -> pd.DataFrame:
    """Choices that answers begin with, each once: :attr:`Domain.choice_columns`."""
    whole = ({**domain.spec.neutral, **one.suggestions[0].configuration} for one in found)
    columns = domain.choice_columns
    rows = pd.DataFrame([[one[name] for name in columns] for one in whole], columns=columns)
    return rows.drop_duplicates()


Places = dict[tuple[tuple[str, Value], ...], int]
"""Configurations in the order in which they were met, to their places."""


def placed(places: Places, configuration: Mapping[str, Value]) -> int:
    return places.setdefault(tuple(configuration.items()), len(places))


def _entry(device: int, answer: Answer, spec: Spec, places: Places) -> Entry:
    """An answer as an entry."""
    place = partial(placed, places)
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
        why=answer.why,
        others=tuple((place(one.configuration), one.expected_ms, one.interval_ms) for one in rest),
    )
