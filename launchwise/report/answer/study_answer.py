"""The answer of a study: its first page, outside the details."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from operator import itemgetter
from typing import Any

import pandas as pd

from launchwise.base.robust import FASTER, TIE, UNDECIDED, outcome
from launchwise.learning.merit import geometric_mean, resampled_means
from launchwise.report import scores, theme, wording
from launchwise.report.blocks import (
    MISSING,
    Block,
    Bullets,
    Cell,
    Lookup,
    Section,
    Table,
    Text,
)
from launchwise.report.fields import (
    by_gpu,
    decimals,
    field,
    grouped,
    percents,
    significant,
    table_of,
)
from launchwise.report.numbers import (
    by_problem,
    records,
    shown_problem,
    single_best,
    winners,
)
from launchwise.report.scores import of_mean
from launchwise.report.study import StudyData
from launchwise.workloads.space import baseline

INTERVAL_SEED = 0


def answer(study: StudyData) -> Section:
    """The question of a study, what its answers reach on each whole card, and the lookup."""
    best = winners(study)
    fastest = _fastest(study, best)
    found: list[Block] = [
        Text(study.settings.question, "question"),
        *([] if fastest is None else [Bullets([fastest])]),
        _reached(study, best),
        Text("Look up one problem: the fastest configuration that was measured.", "label"),
        _lookup(study, best),
    ]
    return Section(f"{study.name}-answer", study.settings.title, found)


def choices(study: StudyData) -> Section:
    """Best fixed configuration per kind of problem and GPU, and the basis of its gains."""
    title = "One fixed configuration per kind of problem"
    lacking = Text("No two configurations were measured at every problem.", "note")
    found = lacking if single_best(study, ["gpu"]).empty else _short_table(study)
    return Section(f"{study.name}-choices", title, [found])


def _fastest(study: StudyData, best: pd.DataFrame) -> tuple[str, str] | None:
    times = best.pivot(index=study.problem_columns, columns="gpu", values="best_ms").dropna()
    if len(study.gpus) < 2 or times.empty:
        return None
    wins = times.idxmin(axis=1).value_counts()
    first = str(wins.index[0])
    slower: list[str] = []
    alike: list[str] = []
    undecided: list[str] = []
    others = [gpu for gpu in study.gpus if gpu != first]
    for gpu in sorted(others, key=lambda gpu: _ratio(times, gpu, first)):
        limits = _ratio_interval(times, gpu, first, study.problem_columns)
        said = FASTER if limits is None else outcome(*limits)
        if said in (TIE, UNDECIDED):
            (alike if said == TIE else undecided).append(f"{gpu} ({wording.interval(limits)})")
            continue
        between = "" if limits is None else f" ({wording.interval(limits)})"
        slower.append(f"{wording.number(_ratio(times, gpu, first))}{between} on {gpu}")
    problems = wording.plural(len(times), "problem")
    counted = f"{wins.iloc[0]} of the {problems}" if len(times) > 1 else "the one problem"
    text = f"{first}, on {counted} that all of them measured."
    if slower:
        text += f" Best times relative to it (geometric means): {wording.listed(slower)}."
    if alike:
        text += (
            f" A tie with {wording.listed(alike)}: the 95 % interval of the ratio is narrow and "
            "holds 1."
        )
    if undecided:
        text += (
            f" Undecided with {wording.listed(undecided)}: the 95 % interval of the ratio holds 1."
        )
    return "Fastest GPU:", text


def _ratio(times: pd.DataFrame, gpu: str, first: str) -> float:
    return geometric_mean((times[gpu] / times[first]).to_numpy())


def _ratio_interval(
    times: pd.DataFrame, gpu: str, first: str, columns: list[str]
) -> tuple[float, float] | None:
    """95 % interval of :func:`_ratio` over problems; None for fewer than five."""
    ratios = (times[gpu] / times[first]).rename("fraction").reset_index()
    means = resampled_means(ratios.assign(model=gpu, gpu=gpu), columns, INTERVAL_SEED)
    return means.interval(gpu)


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


def _short_table(study: StudyData) -> Table:
    """A row per kind of problem, and one for all problems; a column per whole card."""
    groups = list(theme.kinds_of(study, single_best(study, ["gpu", *study.kinds])))
    if len(groups) > 1:
        groups.append(("all problems", single_best(study, ["gpu"])))
    known: dict[str, dict[str, Mapping[str, Any]]] = {gpu: {} for gpu in study.whole}
    for kind, rows in groups:
        for record in records(rows[rows["gpu"].isin(study.whole)]):
            known[record["gpu"]][kind] = record

    def choice(own: Mapping[str, Mapping[str, Any]], kind: str) -> Cell:
        return _choice(study, own[kind]) if kind in own else Cell("not compared")

    fields = [field(kind or "all", partial(choice, kind=kind)) for kind, _ in groups]
    caption = f"One fixed configuration for every {study.size}"
    return by_gpu(caption, "problems", fields, known, number=False)


def _choice(study: StudyData, record: Mapping[str, Any]) -> Cell:
    mean, worst = (wording.percent(record[name], 0) for name in ("fraction", "worst"))
    share = (
        f"{mean} % of best over {wording.plural(record['problems'], 'problem')}, {worst} at worst"
    )
    single = "" if record["gpu"] in study.pairs else " (single rows)"
    beside = f"{wording.fixed(record['gain'], 2)} × baseline{single}"
    if _is_baseline(record, study):
        beside = "the baseline itself"
    return Cell(wording.configuration(record, study.spec), detail=f"{beside}, {share}")


def _is_baseline(record: Mapping[str, Any], study: StudyData) -> bool:
    return all(record[name] == value for name, value in baseline(study.spec).items())


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
