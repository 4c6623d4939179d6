"""How well times are predicted: by study, and all studies side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from launchwise.learning.prediction_errors import ALL
from launchwise.report import maps, models, wording
from launchwise.report.blocks import Block, Cell, Column, Fold, Row, Section, Table, Text
from launchwise.report.blocks import table as table_of
from launchwise.report.numbers import records
from launchwise.report.study import StudyData

Errors = Sequence[Mapping[str, Any]]
"""Records of :func:`launchwise.learning.prediction_errors.prediction_errors`."""

NO_LEARNING = ("roofline", "analytical")
"""Kinds that predict from the GPU's profile alone."""
PREDICTORS = (*NO_LEARNING, "learnt")
"""Kinds that are made to predict times; the others are made to choose."""

NOTE = (
    "The error of a row is |predicted / measured - 1|, over all candidates of the test problems "
    "that were timed more than once; bias is the geometric mean of predicted over measured. Rho "
    "is Spearman's rank correlation, over all rows and within problems (mean): choosing needs only "
    "the latter."
)

COLUMNS = (
    Column("rows", "tested"),
    Column("median", "%", group="error"),
    Column("mean", "%", group="error"),
    Column("90th", "percentile, %", group="error"),
    Column("bias", "×"),
    Column("all", "rho", group="order"),
    Column("within", "rho", group="order"),
)


def _figures(entry: Mapping[str, Any]) -> list[Cell]:
    return [
        Cell(wording.count(entry["rows"])),
        *(
            Cell(_percent(entry[name]))
            for name in ("median_percent", "mape_percent", "p90_percent")
        ),
        Cell(wording.fixed(entry["ratio"], 2)),
        *(Cell(wording.fixed(entry[name], 3)) for name in ("spearman", "spearman_within")),
    ]


def _percent(value: Any) -> str:
    return wording.fixed(value, 1)


def _errors(study: StudyData) -> Errors:
    found: Errors = study.facts.get("predictions", [])
    return found


def _whole(study: StudyData, split: str, gpu: str) -> list[Mapping[str, Any]]:
    """Errors over all rows of a split on a GPU, the best median first."""
    own = [
        one for one in _errors(study) if (one["split"], one["gpu"], one["by"]) == (split, gpu, "")
    ]
    return sorted(own, key=lambda one: (one["median_percent"], one["model"]))


def predictions(study: StudyData) -> Section | None:
    """Measured against predicted time; None where no model predicts any."""
    split = models.first_split(study)
    whole = _whole(study, split, ALL)
    if not whole:
        return None
    found: list[Block] = [Text(_lead(study, whole), "lead"), Text(NOTE)]
    splits = list(dict.fromkeys(one["split"] for one in _errors(study)))
    found.append(_table(study, split, ALL))
    gpus = list(dict.fromkeys(one["gpu"] for one in _errors(study) if one["gpu"] != ALL))
    more: list[Block] = []
    for name in splits:
        parts = [*([ALL] if name != split else []), *(gpus if len(gpus) > 1 else [])]
        more += [_table(study, name, gpu) for gpu in parts if _whole(study, name, gpu)]
    if more:
        found.append(Fold("Other splits, and GPU by GPU", more))
    found += _where(study, split)
    found += _scatter(study, whole)
    return Section(f"{study.name}-predicted", "Predicted against measured time", found)


def _lead(study: StudyData, whole: Errors) -> str:
    """The best of what learns and the best of what does not."""
    kinds = {name: entry.kind for name, entry in study.entries.items()}
    learnt = [one for one in whole if kinds.get(one["model"]) not in NO_LEARNING]
    said = []
    if learnt:
        best = learnt[0]
        said.append(
            f"{study.title(best['model'])} predicts times of problems that were not in training "
            f"with a median error of {_percent(best['median_percent'])} % "
            f"(mean {_percent(best['mape_percent'])} %)."
        )
    without = [one for one in whole if kinds.get(one["model"]) in NO_LEARNING]
    if without:
        words = [
            f"{study.title(one['model'])} {_percent(one['median_percent'])} %" for one in without
        ]
        said.append(f"Without any measurement of the kernels: {wording.listed(words)}.")
    return " ".join(each[:1].upper() + each[1:] for each in said)


def _table(study: StudyData, split: str, gpu: str) -> Table:
    rows = [
        Row([Cell(study.title(one["model"])), *_figures(one)]) for one in _whole(study, split, gpu)
    ]
    on = "all GPUs" if gpu == ALL else gpu
    caption = f"Errors of predicted times, split “{split}”: {study.split_title(split)}, {on}"
    return Table(caption, [Column("model", number=False), *COLUMNS], rows)


def _where(study: StudyData, split: str) -> list[Block]:
    """Median error of the predictors by what rows have in common."""
    shown = [
        name
        for name, entry in study.entries.items()
        if entry.kind in PREDICTORS and any(one["model"] == name for one in _errors(study))
    ]
    parts: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    for one in _errors(study):
        if one["split"] == split and one["by"] and one["model"] in shown:
            parts.setdefault((one["by"], one["value"]), {})[one["model"]] = one
    if not parts:
        return []
    columns = [Column("rows with", number=False), Column("rows", "tested")]
    for name in shown:
        columns += [
            Column("median", "%", group=study.title(name)),
            Column("bias", "×", group=study.title(name)),
        ]
    rows = []
    for (by, value), of_model in parts.items():
        first = next(iter(of_model.values()))
        named = f"{by} {value}" if " " in by else f"{by}={value}"
        cells = [Cell(named), Cell(wording.count(first["rows"]))]
        for name in shown:
            entry = of_model.get(name)
            cells.append(Cell(_percent(entry["median_percent"]) if entry else "–"))
            cells.append(Cell(wording.fixed(entry["ratio"], 2) if entry else "–"))
        rows.append(Row(cells))
    caption = (
        "Where predictions fail: median error and bias of test rows with something in common. "
        "“bound by” is what the cost model takes for the limit of a row."
    )
    return [Fold("Where predictions fail", [Table(caption, columns, rows)])]


def _scatter(study: StudyData, whole: Errors) -> list[Block]:
    key = ["gpu", *study.problem_columns, *study.spec.tunable_columns]
    if study.predictions.empty:
        return []
    joined = study.predictions.merge(study.measured[[*key, "time_ms"]], on=key, how="inner")
    if joined.empty:
        return []
    said = {str(one["model"]): f"median {_percent(one['median_percent'])} %" for one in whole}
    return [maps.predicted(study, joined, said)]


def overall(studies: Sequence[StudyData]) -> Section | None:
    """The predictors of every study side by side, every split on all its GPUs."""
    columns = [Column("study", number=False), Column("split", number=False)]
    columns += [Column("predictor", number=False), *COLUMNS]
    rows = []
    for study in studies:
        for split in study.settings.splits:
            whole = {one["model"]: one for one in _whole(study, split, ALL)}
            shown = [name for name, entry in study.entries.items() if entry.kind in PREDICTORS]
            for name in shown:
                if name in whole:
                    named = [Cell(study.name), Cell(split), Cell(study.title(name))]
                    rows.append(Row([*named, *_figures(whole[name])]))
    if not rows:
        return None
    text = (
        "What a run would take, without running it. The roofline knows the problem's bytes and "
        "FLOP and the GPU's measured ceilings; the cost model also what each kernel does, read off "
        "its source, and micro-benchmarks of the GPU (estimates where its profile has none); trees "
        "then learn from sweeps what the cost model gets wrong. " + NOTE
    )
    caption = "Errors of predicted times on test problems, all GPUs of a study together"
    return Section("predicted", "Times without a run", [Text(text), Table(caption, columns, rows)])


def unmeasured(study: StudyData) -> Section | None:
    """Choices and times on GPUs that are only described; None where there are none."""
    table = study.unmeasured
    if table is None or table.empty:
        return None
    text = (
        "Nobody measured these GPUs: what stands here rests on their datasheets, on the cost model "
        "of the kernels and on what the trees learnt from the measured GPUs. "
        + _transfer_error(study)
    )
    sizes = sorted(table[study.size].unique())
    middle = table[table[study.size] == sizes[len(sizes) // 2]]
    blocks: list[Block] = [Text(text), _choices(study, middle, "Problems of the middle size")]
    if len(sizes) > 1:
        every = _choices(study, table, "Every test problem of the first split")
        blocks.append(Fold("Every problem", [every]))
    return Section(f"{study.name}-unmeasured", "On GPUs that nobody measured", blocks)


def _transfer_error(study: StudyData) -> str:
    """How far predictions were off on GPUs that were left out of training."""
    for split, asked in study.settings.splits.items():
        whole = _whole(study, split, ALL)
        kinds = {name: entry.kind for name, entry in study.entries.items()}
        learnt = [one for one in whole if kinds.get(one["model"]) == "learnt"]
        if asked.kind == "leave_one_gpu_out" and learnt:
            said = f"a mean error of {_percent(learnt[0]['mape_percent'])} %"
            if study.cards == 1:
                return (
                    f"On GPUs left out of training it had {said}; but those are slices of one card."
                )
            return f"On GPUs left out of training it had {said}."
    return "How far it is off on another GPU nobody tested in this study."


def _choices(study: StudyData, rows: pd.DataFrame, caption: str) -> Table:
    """The trees' choice of each problem, with what the cost model and the roofline say."""
    key = ["gpu", *study.problem_columns]
    learnt = rows[(rows["predictor"] == "learnt") & (rows["rank"] == 1)]
    cost = rows.loc[(rows["predictor"] == "analytical") & (rows["rank"] == 1)]
    beside = cost[[*key, "predicted_ms"]].rename(columns={"predicted_ms": "cost_ms"})
    joined = learnt.merge(beside, on=key, how="left")
    joined = joined.sort_values([*study.problem_columns, "predicted_ms"], kind="stable")
    columns = [
        Column("problem", number=False),
        Column("GPU", number=False),
        Column("configuration", number=False),
        Column("with trees", "ms", group="predicted best"),
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
            wording.number(row["predicted_ms"]),
            wording.number(row["cost_ms"]),
            wording.number(row["roofline_ms"]),
            wording.fixed(row["baseline_ms"] / row["predicted_ms"], 2),
            str(row["bound_by"]),
        ]
        for row in records(joined)
    ]
    return table_of(caption, columns, cells)
