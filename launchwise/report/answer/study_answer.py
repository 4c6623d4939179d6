"""The answer of a study: its first page, outside the details."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import pandas as pd

from launchwise.report import scores, theme, wording
from launchwise.report.blocks import (
    MISSING,
    Block,
    Bullets,
    Lookup,
    Section,
    Table,
    Text,
)
from launchwise.report.fields import (
    decimals,
    field,
    grouped,
    percents,
    significant,
    table_of,
)
from launchwise.report.gpus import card_ratios
from launchwise.report.numbers import (
    by_problem,
    records,
    shown_problem,
    single_best,
    winners,
)
from launchwise.report.scores import of_mean
from launchwise.report.study import StudyData

INTERVAL_SEED = 0


def answer(study: StudyData) -> Section:
    """The question of a study, what its answers reach on each whole card, and the lookup."""
    best = winners(study)
    more = study.spec.several_runs(best["variant"].unique())
    fastest = _fastest(study)
    found: list[Block] = [
        Text(study.settings.question, "question"),
        *([] if fastest is None else [Bullets([fastest])]),
        _reached(study, best),
        Text(f"Look up one problem: the fastest configuration that was measured.{more}", "label"),
        _lookup(study, best),
    ]
    return Section(f"{study.name}-answer", study.settings.title, found)


def _fastest(study: StudyData) -> tuple[str, str] | None:
    """The fastest GPU and how much faster than each other one it is."""
    ratios, reference = card_ratios.of_study(study), study.whole[0]
    beside = {one.gpu: one.ratio for one in ratios.values() if one.other == reference}
    first = max(study.gpus, key=lambda gpu: beside.get(gpu, 1.0 if gpu == reference else 0.0))
    found = [ratios[first, gpu] for gpu in study.gpus if (first, gpu) in ratios]
    if not found:
        return None
    found.sort(key=lambda one: one.ratio)
    said = wording.listed(f"{one.other} {one.said}" for one in found)
    head = "Fastest GPU, undecided:" if found[0].verdict else "Fastest GPU:"
    return head, f"{first}. How many times as fast it is as each other GPU: {said}."


REACHED = [
    field("GPU", "gpu"),
    field("answered by", "who", detail=itemgetter("where")),
    field("mean", "fraction", wording.fixed, "of the best", detail=of_mean),
    field("speed-up", "gain", decimals(2), "× usual"),
    field("problems", "problems", wording.count, "count"),
    *grouped(
        "best simple rule",
        field("name", "rule"),
        field("mean", "rule_fraction", wording.fixed, "of the best"),
        field("speed-up", "rule_gain", decimals(2), "× usual"),
    ),
    *grouped(
        "blind test",
        field("problems", "tested", wording.count, "count", detail=itemgetter("new")),
        field("mean", "blind", wording.fixed, "of the best", detail=itemgetter("blind_interval")),
    ),
]
"""What answers reach; an interval (95 %) stands below its mean."""

UNKNOWN: dict[str, Any] = {
    **{str(one.value): None for one in REACHED if one.column.number},
    **{"fraction_interval": None, "where": "", "rule": MISSING, "blind_interval": "", "new": ""},
}


def _reached(study: StudyData, best: pd.DataFrame) -> Table:
    """A row per whole card, and per GPU that only a blind test measured."""
    transfer = scores.first_split_is_transfer(study)
    asked = "trained without the GPU" if transfer else "on held-out sizes"
    gpus = [*study.whole, *scores.only_tested([study])]
    rows = [
        {**UNKNOWN, **_of_split(study, best, gpu), **_of_blind_test(study, gpu)} for gpu in gpus
    ]
    return table_of(f"What answers reach, {asked}", REACHED, rows)


def _of_split(study: StudyData, best: pd.DataFrame, gpu: str) -> dict[str, Any]:
    split = scores.first_split(study)
    name = scores.leader(study, split, gpu)
    if name is None:
        return _of_one_choice(study, int((best["gpu"] == gpu).sum()), gpu)
    answering = name == scores.answering(study)
    found = {"gpu": gpu, "who": "the answering model" if answering else study.title(name)}
    if (rule := scores.best_rule(study, split, gpu)) is not None:
        found |= {"rule": study.title(rule["model"])}
        found |= {f"rule_{each}": rule[each] for each in ("fraction", "gain")}
    return {**scores.score_of(study, split, gpu, name), **found}


def _of_one_choice(study: StudyData, problems: int, gpu: str) -> dict[str, Any]:
    """Where no model was evaluated, the best fixed configuration stands for the answers."""
    for row in records(single_best(study, ["gpu"])):
        if row["gpu"] == gpu:
            whole = row["problems"] == problems
            where = "" if whole else f"possible for {row['problems']} of {problems} problems"
            who = f"{wording.configuration(row, study.spec)} at every problem"
            return {**row, "who": who, "where": where, "gain": None}
    return {"gpu": gpu, "who": MISSING}


def _of_blind_test(study: StudyData, gpu: str) -> dict[str, Any]:
    if (got := study.blind.get(gpu)) is None:
        return {}
    new = "no row of this GPU then" if got["new_gpu"] else ""
    tested = {"tested": got["problems"], "blind": got["fraction_geometric_mean"]}
    return {**tested, "new": new, "blind_interval": of_mean(got)}


def _lookup(study: StudyData, best: pd.DataFrame) -> Lookup:
    item = study.spec.work.item
    shares = [field("of copy limit", "limit_share", percents(0), "%")]
    fields = [
        field("GPU", "gpu"),
        # A phone shows the first columns alone.
        field("speed", "gain", decimals(2), "× baseline"),
        field("time", "best_ms", significant(4), "ms"),
        field("fastest configuration", "configuration"),
        field("rate", "rate", significant(4), f"1e9 {item}/s"),
        *(shares if theme.copies_matter(best) else []),
    ]
    answers: dict[str, list[list[str]]] = {}
    for record in records(by_problem(study, best)):
        key = "|".join(str(record[name]) for name in study.problem_columns)
        answers.setdefault(key, []).append([one.cell(record).text for one in fields])
    first = shown_problem(study) if answers else dict.fromkeys(study.problem_columns, "")
    return Lookup(
        id=f"{study.name}-lookup",
        parameters={
            name: [str(value) for value in sorted(best[name].unique())]
            for name in study.problem_columns
        },
        units={name: study.spec.problem[name].unit for name in study.problem_columns},
        chosen={name: str(first[name]) for name in study.problem_columns},
        columns=[one.column for one in fields],
        answers=answers,
    )
