"""Datasheet-only GPUs: predicted choices and run times of a study, by generation of the cards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from launchwise.learning.metrics import geometric_mean
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Column, Fold, Section, Table, Text, table
from launchwise.report.gpus import by_generation
from launchwise.report.numbers import records
from launchwise.report.predictions import percent, whole_split
from launchwise.report.spread import UNKNOWN, Spread
from launchwise.report.study import StudyData
from launchwise.tables.rows import fastest_rows

DIGITS = 2
"""Digits of a predicted time: its error leaves no more."""

PREDICTED = "predicted"
"""Role of a predicted row: it is drawn hatched."""

LEARNT, COST_MODEL = "learnt", "analytical"
"""Predictors of the table of predictions: the trees, and the cost model that they correct."""


def described(study: StudyData, apart: Spread | None = None) -> Section | None:
    """Predicted choices and times on datasheet-only GPUs; None where there are none.

    Parameters
    ----------
    apart
        How far predicted times may be off; None where that is unknown.
    """
    every = study.unmeasured
    if every is None:
        return None
    left_out = _left_out(study)
    if every.empty:
        title = "Datasheet-only GPUs"
        return Section(f"{study.name}-unmeasured", title, left_out) if left_out else None
    sizes = sorted(every[study.size].unique())
    shown = list(dict.fromkeys([sizes[0], sizes[len(sizes) // 2], sizes[-1]]))
    chosen = first_choices(study, every)
    groups = by_generation(study.described, chosen["gpu"].unique())
    text = (
        "These GPUs have no measured rows. Their times follow from datasheets, from the cost model "
        "of the kernels, and from what the trees learn on the measured GPUs. "
        f"{_transfer_error(study)}"
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
        blocks.append(Fold(title, [_choices(study, part, f"Predicted choices on {title}", apart)]))
    if len(sizes) > len(shown):
        problems = len(chosen[study.problem_columns].drop_duplicates())
        note = (
            "The tables by generation hold the smallest, the middle and the largest of "
            f"{len(sizes)} values of {study.size}. All {wording.plural(problems, 'problem')} are "
            f"in results/predictions/{study.name}.parquet."
        )
        blocks.append(Text(note, "note"))
    return Section(f"{study.name}-unmeasured", "Datasheet-only GPUs", blocks)


def _left_out(study: StudyData) -> list[Block]:
    """On which GPUs problems are not predicted, and which setting they lack."""
    counts: Mapping[str, int] = study.unmeasured_facts.get("left_out", {})
    if not counts:
        return []
    most = wording.plural(max(counts.values()), "problem")
    text = (
        f"{most[:1].upper()}{most[1:]} of this study copy between host and GPU. No datasheet of a "
        f"card says how fast its host does that, so no time is predicted on "
        f"{wording.listed(counts)}. To predict them, state the rate in the settings: "
        "gpus.<name>.host_gbs."
    )
    return [Text(text, "note")]


def first_choices(study: StudyData, every: pd.DataFrame) -> pd.DataFrame:
    """The trees' first choice of each problem; ``cost_ms`` is that of the cost model's own."""
    key = ["gpu", *study.problem_columns]
    first = every[every["rank"] == 1]
    cost = first.loc[first["predictor"] == COST_MODEL, [*key, "predicted_ms"]]
    cost = cost.rename(columns={"predicted_ms": "cost_ms"})
    return first[first["predictor"] == LEARNT].merge(cost, on=key, how="left")


def _overview(study: StudyData, chosen: pd.DataFrame, groups: Mapping[str, list[str]]) -> Table:
    """One row per GPU over all predicted problems."""
    reference = study.whole[0]
    best = fastest_rows(study.measured, ["gpu", *study.problem_columns], study.spec)
    best = best.loc[best["gpu"] == reference, [*study.problem_columns, "time_ms"]]
    beside = chosen.merge(best, on=study.problem_columns, how="left")
    beside["choice"] = [wording.configuration(row, study.spec) for row in records(beside)]
    problems = len(beside[study.problem_columns].drop_duplicates())
    columns = [
        Column("generation", number=False),
        Column("GPU", number=False),
        Column("with trees", f"× best of {reference}", group="predicted time"),
        Column("cost model", f"× best of {reference}", group="predicted time"),
        Column("predicted gain", "× baseline"),
        Column("most frequent choice", number=False),
        Column("problems", f"of {problems}"),
        Column("bound by, mostly", number=False),
    ]
    rows = []
    for name, gpus in groups.items():
        for number, gpu in enumerate(gpus):
            own = beside[beside["gpu"] == gpu]
            measured = own[own["time_ms"].notna()]
            choices = own["choice"].value_counts()
            rows.append(
                [
                    "" if number else name,
                    gpu,
                    *(
                        wording.number(_mean_ratio(measured, time, "time_ms"), DIGITS)
                        for time in ("predicted_ms", "cost_ms")
                    ),
                    wording.number(_mean_ratio(own, "baseline_ms", "predicted_ms"), DIGITS),
                    str(choices.index[0]),
                    wording.count(choices.iloc[0]),
                    str(own["bound_by"].mode().iloc[0]),
                ]
            )
    caption = (
        f"Datasheet-only GPUs over {wording.plural(problems, 'test problem')} of the first split: "
        f"predicted time of the predicted best divided by the best measured time on {reference} "
        "(geometric mean)"
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
    """The trees' choice of each problem beside the times of cost model and roofline."""
    ordered = chosen.sort_values([*study.problem_columns, "predicted_ms"], kind="stable")
    columns = [
        Column("problem", number=False),
        Column("GPU", number=False),
        Column("configuration", number=False),
        Column("with trees", "ms", group="predicted best"),
        Column("90 % interval", "ms", group="predicted best"),
        Column("cost model", "ms", group="predicted best"),
        Column("roofline", "ms"),
        Column("gain", "× baseline"),
        Column("bound by", number=False),
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
            _time(row["cost_ms"]),
            _time(row["roofline_ms"]),
            wording.number(row["baseline_ms"] / row["predicted_ms"], DIGITS),
            str(row["bound_by"]),
        ]
        for row in records(ordered)
    ]
    made = table(caption, columns, cells)
    return replace(made, rows=[replace(row, role=PREDICTED) for row in made.rows])


def _time(ms: float) -> str:
    return wording.number(ms, DIGITS)
