"""The lookup of the front page: an answer for any size on any GPU, with its basis.

Answers come from the study's product (``results/lookup/``) with times, gains and intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from launchwise.base.vectors import is_simple, nested
from launchwise.exporting.entries import TIME, Device, Places
from launchwise.exporting.formulas import name_kinds, with_arguments
from launchwise.exporting.lookup import SQUARINGS
from launchwise.exporting.table import AnswerTable
from launchwise.learning.answers import (
    BASES,
    MEASURED,
    NO_TIME,
    UNKNOWN_LINK,
    UNORDERED,
    percent_of,
)
from launchwise.report import numbers, wording
from launchwise.report.answer.predicted_times import Spread, within
from launchwise.report.blocks import Finder
from launchwise.report.numbers import records, scores_on, shown_problem
from launchwise.report.pages.sweep_health import Health
from launchwise.report.site.rendering import in_preorder
from launchwise.report.study_tables import StudyData
from launchwise.tables.measurements import SPEEDUPS
from launchwise.workloads import launch_shapes as problem_limits
from launchwise.workloads.launch_shapes import LaunchExpressions, launch_expressions
from launchwise.workloads.parts import Value
from launchwise.workloads.space import baseline, used

WORDS = {
    "measured": "measured on this GPU",
    "within": "between measured sizes, by the answering model",
    "beyond": "beyond what this GPU measured, by the answering model",
    "usual": BASES["usual"],
    "default": BASES["default"],
    "new_gpu": "no measurement on this GPU: by the answering model",
    "datasheet": "no measurement on this GPU, known from its datasheet: by the answering model",
}
"""Basis of an answer to words."""

assert WORDS.keys() == {*BASES, "datasheet"}

Values = Mapping[str, Value]


def block(studies: Sequence[StudyData], settings_files: Sequence[str] = ()) -> Finder | None:
    """The lookup over all studies; None where none has answers. Without ``settings_files``,
    config.yaml is all."""
    known = [study for study in studies if study.answers]
    if not known:
        return None
    # A kernel that a reader can put in the place of theirs comes first.
    first = min(known, key=lambda one: one.spec.several_runs([shown_problem(one)["variant"]]))
    shown = shown_problem(first)
    return Finder(
        id="find",
        studies=[(study.name, study.settings.title) for study in known],
        first={
            **{"study": first.name, "gpu": shown["gpu"]},
            "problem": {name: shown[name] for name in first.problem_columns},
        },
        workloads={study.name: study.spec.workload for study in known},
        options=[word for path in settings_files for word in ("--configfile", path)],
    )


def doubts(
    study: StudyData, sweeps: Sequence[Health], problems: Mapping[Any, int]
) -> dict[str, list[Any]]:
    """GPU to what is in doubt of its sweep, in words, and the places of the problems in doubt."""
    return {
        each.gpu: [
            "; ".join(each.complaints),
            [problems[one] for one in each.worst_problems if one in problems],
        ]
        for each in sweeps
        if each.complaints and each.workload == study.spec.workload and each.gpu in study.sweeps
    }


def data(
    study: StudyData, apart: Spread | None = None, sweeps: Sequence[Health] = ()
) -> dict[str, Any]:
    """Data of the lookup for the page's script, as JSON values.

    GPUs, problems, bases and configurations are listed once, and places in their lists elsewhere.
    ``entries`` hold: GPU, problem, basis, configuration, the usual one, time (ms) and its limits,
    gain and its limits, improvement and its limits, whether the gains were measured in pairs,
    whether a blind test alone measured it, the other configurations with times and limits, by which
    work its time is scaled, how many measured ones are as good, and how many times its time the
    slowest takes that cannot be told apart. What the page offers as a choice has no limit among
    ``limits``. ``several`` has a sentence on each variant that replaces several launches; ``why``
    says of each entry why it is the answer, where another objective than time chooses. Other parts
    are what functions of these names return. ``sweeps``: how sound those of the report are.
    """
    answers = study.answers
    assert study.table
    keys = [tuple(each["problem"][name] for name in study.problem_columns) for each in answers]
    gpus, problems, bases = Places(), Places(), Places(WORDS)
    configurations = Places()

    def place(values: Values) -> int:
        return configurations.of_items(used(neutral(values, study), study.spec))

    of_baseline = place(baseline(study.spec))
    entries = [
        [
            gpus.of(each["gpu"]),
            problems.of(key),
            bases.of("datasheet" if each["gpu"] in study.described else each["basis"]),
            *_choices_and_times(each, place),
        ]
        for each, key in zip(answers, keys, strict=True)
    ]
    between, objective = rule(study.table, place, gpus), study.table.stored.objective
    return {
        "title": study.settings.title,
        "workload": study.spec.workload,
        "parameters": _parameters(study, keys),
        "gpus": list(gpus),
        "problems": [list(key) for key in problems],
        "first": [shown_problem(study)[name] for name in study.problem_columns],
        "bases": list(WORDS.values()),
        "percents": [percent_of(name) for name in bases],
        "measured": bases.of(MEASURED),
        "between": [bases.of(name) for name in ("within", "beyond", "usual", "default")],
        "configurations": [
            {
                "words": wording.configuration(neutral(dict(items), study), study.spec),
                "values": [list(item) for item in items],
            }
            for items in configurations
        ],
        "usual": study.usual_reasons,
        "words": {"order": UNORDERED, "link": UNKNOWN_LINK, "beyond": NO_TIME},
        "heldOut": held_out(study),
        "covered": [covered(study, gpu) for gpu in gpus],
        "off": within(apart),
        "doubts": doubts(study, sweeps, problems),
        "several": {
            name: f"It replaces several launches of yours.{words}"
            for name in study.spec.variants
            if (words := study.spec.several_runs([name]))
        },
        "limits": limits(study),
        "launches": launches(study),
        "hosted": study.spec.has_host_code,
        "macros": macros(study),
        "neutral": dict(study.spec.neutral),
        "baseline": of_baseline,
        "tested": tested(study),
        "libraries": libraries(study),
        "kinds": [nested(when) for when in study.settings.peer_kinds.values()],
        "rule": between,
        "judges": judges(study.table, gpus),
        "entries": entries,
        "why": [] if objective == TIME else [one.why for one in study.table.entries],
    }


def rule(table: AnswerTable, place: Callable[[Values], int], gpus: Mapping[str, int]) -> Any:
    """What a problem without an entry is answered by (:mod:`launchwise.exporting.lookup`), with
    expressions as nested lists. ``place`` numbers configurations, ``gpus`` GPUs."""
    formulas, stored = table.formulas, table.stored
    devices = _in_order(table, gpus)

    def pairs(named: Iterable[tuple[str, str]]) -> list[list[Any]]:
        return [[name, nested(text)] for name, text in named]

    return {
        "derived": pairs(formulas.derived),
        "usual": [
            [nested(one.when), pairs(one.configuration), list(map(nested, one.conditions))]
            for one in formulas.usual
        ],
        "follows": pairs(formulas.follows),
        "fits": {name: list(map(nested, texts)) for name, texts in formulas.fits.items()},
        "work": list(map(nested, formulas.work)),
        "features": [[nested(text) for text in both] for both in stored.features],
        "candidates": [place(stored.configurations[one]) for one in stored.candidates],
        "facts": [one.named_facts for one in devices],
        "between": [[one.between_ms, one.between_gain, one.reach] for one in devices],
        "reached": ["; ".join(table.said(one)) for one in devices],
        "leastGain": stored.least_gain,
        "squarings": SQUARINGS,
    }


def judges(table: AnswerTable, gpus: Mapping[str, int]) -> list[Any]:
    """Trees of each GPU (:func:`in_preorder`); None without any."""
    return [one.judge and in_preorder(one.judge) for one in _in_order(table, gpus)]


def _in_order(table: AnswerTable, gpus: Mapping[str, int]) -> list[Device]:
    """GPUs with an entry, by their places."""
    known = [one for one in table.devices if one.name in gpus]
    return sorted(known, key=lambda one: gpus[one.name])


TIMES = ("time_ms", "time_low_ms", "time_high_ms")

RATIOS = tuple(f"{name}{end}" for name in ("gain", "improvement") for end in ("", "_low", "_high"))


def _choices_and_times(each: Mapping[str, Any], place: Callable[[Values], int]) -> list[Any]:
    """An answer after its basis; ``place`` numbers configurations."""

    def times(other: Mapping[str, Any]) -> list[float | None]:
        shown = TIMES if other["time_low_ms"] is not None else TIMES[:1]
        return [_rounded(other[name]) for name in shown]

    return [
        place(each["configuration"]),
        place(each["usual"]),
        *(_rounded(each[name]) for name in (*TIMES, *RATIOS)),
        int(each["paired"]),
        int(each["blind"]),
        [[place(other["configuration"]), *times(other)] for other in each["others"]],
        each["scale"],
        each["alike"],
        _rounded(each["unsure"]),
    ]


def _parameters(study: StudyData, keys: Sequence[tuple[Value, ...]]) -> list[dict[str, Any]]:
    """Name, unit, values of each problem parameter, and whether a reader may give others."""
    return [
        {
            "name": name,
            "unit": study.spec.problem[name].unit,
            "free": study.spec.problem[name].values is None,
            "values": sorted({key[place] for key in keys}),
        }
        for place, name in enumerate(study.problem_columns)
    ]


def limits(study: StudyData) -> list[tuple[str, Any]]:
    """Limits of the problems that a configuration may run: as text, and as nested lists."""
    every = problem_limits.Limits.of(study.spec)
    named = {
        name: one.model_copy(update={"values": None}) for name, one in every.parameters.items()
    }
    return [(text, nested(text)) for text in replace(every, parameters=named).texts]


def launches(study: StudyData) -> dict[str, list[dict[str, Any]]]:
    """Variant to its launches: ``kernel``, ``block``, ``grid`` and ``shared`` as nested lists.
    Expressions over the problem and the configuration (:mod:`launchwise.base.vectors`); None where
    Triton decides, or one needs what a page cannot compute. A ``kernel`` that is a template is a
    list of its name and its arguments."""
    found = {}
    for name, variant in study.spec.variants.items():
        found[name] = [
            {
                "kernel": _kernel(one, study),
                "block": [_nested(text, study) for text in one.block],
                "grid": [_nested(text, study) for text in one.grid],
                "shared": None if one.shared_bytes is None else _nested(one.shared_bytes, study),
            }
            for one in launch_expressions(variant)
        ]
    return found


def _kernel(one: LaunchExpressions, study: StudyData) -> Any:
    named = with_arguments(one, study.spec, name_kinds(study.spec))
    arguments = [_nested(text, study) for text in named.arguments]
    return [named.kernel, *arguments] if arguments and None not in arguments else one.kernel


def macros(study: StudyData) -> list[tuple[str, Any]]:
    """Macros of the spec, whose values are nested lists as in :func:`launches`. Those whose
    expression needs what a page cannot compute are left out."""
    written = {name: _nested(text, study) for name, text in study.spec.macros.items()}
    return [(name, value) for name, value in written.items() if value is not None]


def _nested(text: str, study: StudyData) -> Any:
    try:
        whole = problem_limits.inlined(text, study.spec.derived)
    except ValueError:
        return None
    return nested(whole) if is_simple(whole) else None


def tested(study: StudyData) -> dict[str, list[list[Any]]]:
    """GPU to the answers that a blind test checked: problem, fraction of the best speed, gain over
    the usual choice and its limits, whether it was that."""
    columns = ("fraction", "gain", "gain_low", "gain_high", "is_usual")
    found = {}
    for gpu, table in study.scores.items():
        found[gpu] = [
            [
                [row[name] for name in study.problem_columns],
                *(_rounded(float(row[name])) for name in columns),
            ]
            for row in records(table[table["status"] == "ok"])
        ]
    return found


def libraries(study: StudyData) -> dict[str, list[list[Any]]]:
    """GPU to the libraries that ran in pairs: problem, name, and its time relative to the sweep's
    fastest and to the usual choice, each with its limits."""
    columns = [f"{name}{end}" for name in SPEEDUPS for end in ("", "_low", "_high")]
    return {
        gpu: [
            [
                [row[name] for name in study.problem_columns],
                f"{row['peer']} ({row['version']})",
                *(_rounded(row[name]) for name in columns),
            ]
            for row in records(table[table["speedup"].notna()])
        ]
        for gpu, table in study.peers.items()
    }


def held_out(study: StudyData) -> str:
    """How answers of this model did on GPUs without measurements, in words; empty if unknown."""
    name = numbers.answering(study)
    for split, asked in study.settings.splits.items():
        if name is None or asked.kind != "leave_one_gpu_out":
            continue
        got = {row["model"]: row for row in records(scores_on(study, split, numbers.ALL_GPUS))}
        if name in got:
            rows = study.evaluation[study.evaluation["split"] == split]
            gpus = sorted(set(rows["gpu"]))
            alike = len({study.profiles[gpu].capability_text for gpu in gpus}) == 1
            return (
                f"{wording.listed(gpus)}{', of one generation,' if alike else ''} were left out of "
                "training in turn: there, and nowhere else, answers of this model reached "
                f"{wording.fixed(got[name]['fraction'])} of the best speed in the geometric mean "
                f"over {wording.plural(got[name]['problems'], 'problem')}."
            )
    return ""


def covered(study: StudyData, gpu: str) -> str:
    """What intervals held in the blind test on a GPU, in words; empty where it did not tell."""
    got = study.blind.get(gpu, {})
    held = [
        f"{wording.percent(got[name], 0)} % of the {what}"
        for name, what in (("times_covered", "times"), ("covered", "gains"))
        if not wording.is_missing(got.get(name))
    ]
    if not held:
        return ""
    return f"The blind test's intervals were meant to hold 90 %; they held {wording.listed(held)}."


def neutral(configuration: Values, study: StudyData) -> dict[str, Value]:
    """A configuration with every tunable: those that its variant lacks at their neutral value."""
    return study.spec.neutral | dict(configuration)


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.5g}")
