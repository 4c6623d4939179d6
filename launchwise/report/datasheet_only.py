"""Datasheet-only GPUs: what the lookup answers for a study, by generation of the cards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from launchwise.learning.merit import geometric_mean
from launchwise.learning.rooflines import least_ms
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Column, Fold, Section, Table, Text, table
from launchwise.report.gpus import by_generation
from launchwise.report.numbers import records, winners
from launchwise.report.predictions import percent, whole_split
from launchwise.report.spread import UNKNOWN, Spread
from launchwise.report.study import StudyData, remembered

DIGITS = 2
"""Digits of a predicted time: its error leaves no more."""

PREDICTED = "predicted"
"""Role of a predicted row: it is drawn hatched."""

LEARNT = "learnt"
"""Kind of the model that predicts the times: trees that correct the cost model."""

TITLE = "Datasheet-only GPUs"


def described(study: StudyData, apart: Spread | None = None) -> Section | None:
    """Predicted choices and times on datasheet-only GPUs; None where there are none.

    Parameters
    ----------
    apart
        How far predicted times may be off; None where that is unknown.
    """
    left_out = _left_out(study)
    chosen = predicted_choices(study)
    if chosen.empty:
        return Section(f"{study.name}-unmeasured", TITLE, left_out) if left_out else None
    sizes = sorted(chosen[study.size].unique())
    shown = list(dict.fromkeys([sizes[0], sizes[len(sizes) // 2], sizes[-1]]))
    groups = by_generation(study.described, chosen["gpu"].unique())
    text = (
        "These GPUs have no measured rows. The study's answering model chooses for them; times "
        "follow from datasheets, from the cost model of the kernels, and from what trees learn on "
        f"the measured GPUs. {_transfer_error(study)}"
    )
    blocks: list[Block] = [
        Text(text),
        Text(UNKNOWN if apart is None else apart.words, "note"),
        *left_out,
        _overview(study, chosen, groups),
    ]
    for name, gpus in groups.items():
        part = chosen[chosen["gpu"].isin(gpus) & chosen[study.size].isin(shown)]
        title = f"{name}: {wording.listed(gpus)}"
        blocks.append(Fold(title, [_choices(study, part, f"Answers for {title}", apart)]))
    if len(sizes) > len(shown):
        problems = len(chosen[study.problem_columns].drop_duplicates())
        note = (
            "The tables by generation hold the smallest, the middle and the largest of "
            f"{len(sizes)} values of {study.size}. All {wording.plural(problems, 'problem')} are "
            f"in results/lookup/{study.name}.json."
        )
        blocks.append(Text(note, "note"))
    return Section(f"{study.name}-unmeasured", TITLE, blocks)


def _left_out(study: StudyData) -> list[Block]:
    """On which GPUs problems have no time, and which setting they lack."""
    without = [each["gpu"] for each in _asked(study) if each["time_ms"] is None]
    if not without:
        return []
    most = wording.plural(max(Counter(without).values()), "problem")
    text = (
        f"{most[:1].upper()}{most[1:]} of this study copy between host and GPU. No datasheet of a "
        f"card says how fast its host does that, so no time is predicted on "
        f"{wording.listed(dict.fromkeys(without))}. To predict them, state the rate in the "
        "settings: gpus.<name>.host_gbs."
    )
    return [Text(text, "note")]


def _asked(study: StudyData) -> list[Mapping[str, Any]]:
    """The answers for datasheet-only GPUs."""
    return [each for each in study.answers or () if each["gpu"] in study.described]


@remembered
def predicted_choices(study: StudyData) -> pd.DataFrame:
    """The lookup's answers for datasheet-only GPUs that have a time.

    Returns
    -------
    pandas.DataFrame
        Columns ``gpu``, the problem's, the tunables', ``predicted_ms``, ``baseline_ms`` (NaN where
        it is unknown) and ``roofline_ms``.
    """
    rows = [
        {
            "gpu": each["gpu"],
            **each["problem"],
            **study.spec.neutral,
            **each["configuration"],
            "predicted_ms": each["time_ms"],
            "baseline_ms": (each["improvement"] or float("nan")) * each["time_ms"],
        }
        for each in _asked(study)
        if each["time_ms"] is not None
    ]
    if not rows:
        return pd.DataFrame()
    table = pd.DataFrame(rows)
    return table.assign(roofline_ms=least_ms(table, study.spec, study.described))


def _overview(study: StudyData, chosen: pd.DataFrame, groups: Mapping[str, list[str]]) -> Table:
    """One row per GPU over all predicted problems."""
    reference = study.whole[0]
    best = winners(study)
    best = best.loc[best["gpu"] == reference, [*study.problem_columns, "best_ms"]]
    beside = chosen.merge(best, on=study.problem_columns, how="left")
    beside["choice"] = [wording.configuration(row, study.spec) for row in records(beside)]
    problems = len(beside[study.problem_columns].drop_duplicates())
    columns = [
        Column("generation", number=False),
        Column("GPU", number=False),
        Column("predicted time", f"× best of {reference}"),
        Column("predicted gain", "× baseline"),
        Column("most frequent choice", number=False),
        Column("problems", f"of {problems}"),
    ]
    rows = []
    for name, gpus in groups.items():
        for number, gpu in enumerate(gpus):
            own = beside[beside["gpu"] == gpu]
            measured = own[own["best_ms"].notna()]
            choices = own["choice"].value_counts()
            rows.append(
                [
                    "" if number else name,
                    gpu,
                    wording.number(_mean_ratio(measured, "predicted_ms", "best_ms"), DIGITS),
                    wording.number(_mean_ratio(own, "baseline_ms", "predicted_ms"), DIGITS),
                    str(choices.index[0]),
                    wording.count(choices.iloc[0]),
                ]
            )
    caption = (
        f"Datasheet-only GPUs over {wording.plural(problems, 'problem')}: predicted time of the "
        f"answer divided by the best measured time on {reference} (geometric mean)"
    )
    made = table(caption, columns, rows)
    return replace(made, rows=[replace(row, role=PREDICTED) for row in made.rows])


def _mean_ratio(rows: pd.DataFrame, over: str, under: str) -> float:
    """Geometric mean of one column divided by another."""
    return geometric_mean((rows[over] / rows[under]).to_numpy())


def _transfer_error(study: StudyData) -> str:
    """Error of the trees on GPUs that were held out of training."""
    kinds = {name: entry.kind for name, entry in study.entries.items()}
    for split, asked in study.settings.splits.items():
        learnt = [one for one in whole_split(study, split) if kinds.get(one["model"]) == LEARNT]
        if asked.kind == "leave_one_gpu_out" and learnt:
            error = percent(learnt[0]["mape_percent"])
            text = f"On held-out GPUs the trees have a mean error of {error} %"
            return f"{text}; these are slices of one card." if study.cards == 1 else f"{text}."
    return "This study has no split that holds out a GPU, so the error on another GPU is unknown."


def _choices(study: StudyData, chosen: pd.DataFrame, caption: str, apart: Spread | None) -> Table:
    """The answer to each problem beside the roofline."""
    ordered = chosen.sort_values([*study.problem_columns, "predicted_ms"], kind="stable")
    columns = [
        Column("problem", number=False),
        Column("GPU", number=False),
        Column("configuration", number=False),
        Column("time", "ms", group="predicted"),
        Column("90 % interval", "ms", group="predicted"),
        Column("roofline", "ms"),
        Column("gain", "× baseline"),
    ]
    cells = [
        [
            wording.problem(row, study.problem_columns),
            row["gpu"],
            wording.configuration(row, study.spec),
            _time(row["predicted_ms"]),
            MISSING
            if apart is None
            else " to ".join(map(_time, apart.limits(row["predicted_ms"], row["roofline_ms"]))),
            _time(row["roofline_ms"]),
            wording.number(row["baseline_ms"] / row["predicted_ms"], DIGITS),
        ]
        for row in records(ordered)
    ]
    made = table(caption, columns, cells)
    return replace(made, rows=[replace(row, role=PREDICTED) for row in made.rows])


def _time(ms: float) -> str:
    return wording.number(ms, DIGITS)
