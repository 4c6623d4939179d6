"""The answer of a study: its first page, outside the details."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd

from launchwise.base.paired import FASTER, TIE, UNDECIDED, outcome
from launchwise.learning.intervals import resampled_means
from launchwise.learning.merit import geometric_mean
from launchwise.report import blind_tests, figures, scores, wording
from launchwise.report.blocks import Block, Bullets, Cell, Lookup, Section, Table, Text
from launchwise.report.fields import by_gpu, decimals, field, percents, significant
from launchwise.report.numbers import (
    by_problem,
    fractions,
    records,
    shown_problem,
    single_best,
    winners,
)
from launchwise.report.study import StudyData
from launchwise.tables.rows import is_baseline
from launchwise.workloads.space import baseline

INTERVAL_SEED = 0


def answer(study: StudyData) -> Section:
    """The question of a study, one sentence per GPU as the answer, and the lookup."""
    best = winners(study)
    items = [
        _fastest(study, best),
        *(_sentence(study, best, gpu) for gpu in study.gpus),
        *(
            (f"{gpu}:", f"{blind_tests.sentence(study, gpu)}.")
            for gpu in blind_tests.only_tested([study])
        ),
    ]
    found: list[Block] = [
        Text(study.settings.question, "question"),
        Bullets([item for item in items if item is not None]),
        Text("Look up one problem: the fastest configuration that was measured.", "label"),
        _lookup(study, best),
    ]
    return Section(f"{study.name}-answer", study.settings.title, found)


def choices(study: StudyData) -> Section:
    """Best fixed configuration per kind of problem and GPU, and the basis of its gains."""
    title = "One fixed configuration per kind of problem"
    return Section(f"{study.name}-choices", title, [_short_table(study), *_single_rows(study)])


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


def _asked(study: StudyData) -> str:
    """Test condition of the first split in words: held-out sizes or GPU."""
    transfer = scores.first_split_is_transfer(study)
    return "trained without this GPU" if transfer else "on held-out sizes"


def _sentence(study: StudyData, best: pd.DataFrame, gpu: str) -> tuple[str, str]:
    split = scores.first_split(study)
    name = scores.leader(study, split, gpu)
    if name is not None:
        got = scores.score_of(study, split, gpu, name)
        who = "the answering model" if name == scores.answering(study) else study.title(name)
        text = (
            f"{who}, {_asked(study)}, reaches {_reached(got)} over "
            f"{wording.plural(got['problems'], 'problem')}"
        )
        if (rule := scores.best_rule(study, split, gpu)) is not None:
            text += f"; the best simple rule, {study.title(rule['model'])}, {_reached(rule)}"
    else:
        one = single_best(study, ["gpu"])
        one = one[one["gpu"] == gpu]
        if one.empty:
            return f"{gpu}:", "nothing was measured."
        row, problems = records(one)[0], int((best["gpu"] == gpu).sum())
        itself = ", the baseline itself," if _is_baseline(row, study) else ""
        text = (
            f"{wording.configuration(row, study.spec)}{itself} at every problem reaches "
            f"{wording.percent(row['fraction'], 0)} % of the best speed"
        )
        if int(row["problems"]) < problems:
            text += f" (possible for {int(row['problems'])} of {problems} problems)"
    if (tested := blind_tests.sentence(study, gpu)) is not None:
        text += f"; {tested}"
    return f"{gpu}:", text + "."


def _reached(got: Mapping[str, Any]) -> str:
    limits = got["fraction_interval"]
    between = "" if limits is None else f" ({wording.interval(tuple(limits))})"
    return (
        f"{wording.fixed(got['fraction'])} of the best speed{between} and "
        f"{wording.fixed(got['gain'], 2)} times that of the usual choice"
    )


def _short_table(study: StudyData) -> Table:
    """A row per kind of problem and a column per GPU."""
    best = single_best(study, ["gpu", *study.kinds])
    known: dict[str, dict[str, Mapping[str, Any]]] = {gpu: {} for gpu in study.gpus}
    kinds = []
    for kind, rows in figures.kinds_of(study, best):
        kinds.append(kind)
        for record in records(rows):
            known[record["gpu"]][kind] = record

    def choice(own: Mapping[str, Mapping[str, Any]], kind: str) -> Cell:
        return _choice(study, own[kind]) if kind in own else Cell("not measured")

    fields = [field(kind or "all", partial(choice, kind=kind)) for kind in kinds]
    caption = f"One fixed configuration for every {study.size}"
    return by_gpu(caption, "problems", fields, known, number=False)


def _choice(study: StudyData, record: Mapping[str, Any]) -> Cell:
    share = f"{wording.percent(record['fraction'], 0)} % of best"
    single = "" if record["gpu"] in study.pairs else " (single rows)"
    beside = f"{wording.fixed(record['gain'], 2)} × baseline{single}"
    if _is_baseline(record, study):
        beside = "the baseline itself"
    return Cell(wording.configuration(record, study.spec), detail=f"{beside}, {share}")


def _is_baseline(record: Mapping[str, Any], study: StudyData) -> bool:
    return all(record[name] == value for name, value in baseline(study.spec).items())


CLOCKS_APART = 0.02
"""Relative difference of SM clocks from which a gain of single rows holds clock as well."""


def _single_rows(study: StudyData) -> list[Block]:
    """GPUs whose gains rest on single rows, and how often the clocks differ."""
    said = []
    for gpu in study.gpus:
        if gpu in study.pairs:
            continue
        apart, problems = clocks_apart(study, gpu)
        clocks = (
            "clocks unknown"
            if not problems
            else f"clocks more than {wording.percent(CLOCKS_APART, 0)} % apart at {apart} of "
            f"{wording.plural(problems, 'problem')}"
        )
        said.append(f"{gpu} ({clocks})")
    text = (
        "Gains of these GPUs compare single rows of a sweep, not pairs: "
        f"{wording.listed(said)}. A difference of clocks is part of such a gain."
    )
    return [Text(text, "note")] if said else []


def clocks_apart(study: StudyData, gpu: str) -> tuple[int, int]:
    """Problems whose fastest row and baseline ran under other SM clocks, and problems known."""
    columns = study.problem_columns
    own = (study.measured["gpu"] == gpu) & (study.measured["sm_clock_mhz"] > 0)
    fast = study.measured[own & (fractions(study)["fraction"] == 1)].drop_duplicates(columns)
    start = study.measured[own & is_baseline(study.measured, study.spec)]
    both = fast[[*columns, "sm_clock_mhz"]].merge(start[[*columns, "sm_clock_mhz"]], on=columns)
    ratio = both["sm_clock_mhz_x"] / both["sm_clock_mhz_y"]
    return int((abs(ratio - 1) > CLOCKS_APART).sum()), len(both)


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
        *(shares if figures.copies_matter(best) else []),
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
