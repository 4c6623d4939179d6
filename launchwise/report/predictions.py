"""Errors of predicted times: per study, and all studies side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from launchwise.learning.prediction_errors import ALL
from launchwise.report import maps, models, wording
from launchwise.report.blocks import Block, Cell, Column, Fold, Row, Section, Table, Text
from launchwise.report.study import StudyData
from launchwise.tables.learning import predicted_column

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
        *(Cell(percent(entry[name])) for name in ("median_percent", "mape_percent", "p90_percent")),
        Cell(wording.fixed(entry["ratio"], 2)),
        *(Cell(wording.fixed(entry[name], 3)) for name in ("spearman", "spearman_within")),
    ]


def percent(value: Any) -> str:
    """Percents to one decimal."""
    return wording.fixed(value, 1)


def _errors(study: StudyData) -> Errors:
    found: Errors = study.facts.get("predictions", [])
    return found


def whole_split(study: StudyData, split: str, gpu: str = ALL) -> list[Mapping[str, Any]]:
    """Errors over all rows of a split on a GPU, the best median first."""
    own = [
        one for one in _errors(study) if (one["split"], one["gpu"], one["by"]) == (split, gpu, "")
    ]
    return sorted(own, key=lambda one: (one["median_percent"], one["model"]))


def predictions(study: StudyData) -> Section | None:
    """Measured against predicted time; None where no model predicts any."""
    split = models.first_split(study)
    whole = whole_split(study, split, ALL)
    if not whole:
        return None
    found: list[Block] = [Text(_lead(study, whole), "lead"), Text(NOTE)]
    splits = list(dict.fromkeys(one["split"] for one in _errors(study)))
    found.append(_table(study, split, ALL))
    gpus = list(dict.fromkeys(one["gpu"] for one in _errors(study) if one["gpu"] != ALL))
    more: list[Block] = []
    for name in splits:
        parts = [*([ALL] if name != split else []), *(gpus if len(gpus) > 1 else [])]
        more += [_table(study, name, gpu) for gpu in parts if whole_split(study, name, gpu)]
    if more:
        found.append(Fold("Other splits, and GPU by GPU", more))
    found += _where(study, split)
    found += _scatter(study, whole)
    return Section(f"{study.name}-predicted", "Predicted against measured time", found)


def _lead(study: StudyData, whole: Errors) -> str:
    kinds = {name: entry.kind for name, entry in study.entries.items()}
    learnt = [one for one in whole if kinds.get(one["model"]) not in NO_LEARNING]
    said = []
    if learnt:
        best = learnt[0]
        said.append(
            f"{study.title(best['model'])} predicts times of problems that were not in training "
            f"with a median error of {percent(best['median_percent'])} % "
            f"(mean {percent(best['mape_percent'])} %)."
        )
    without = [one for one in whole if kinds.get(one["model"]) in NO_LEARNING]
    if without:
        words = [
            f"{study.title(one['model'])} {percent(one['median_percent'])} %" for one in without
        ]
        said.append(f"Without any measurement of the kernels: {wording.listed(words)}.")
    return " ".join(each[:1].upper() + each[1:] for each in said)


def _table(study: StudyData, split: str, gpu: str) -> Table:
    rows = [
        Row([Cell(study.title(one["model"])), *_figures(one)])
        for one in whole_split(study, split, gpu)
    ]
    on = "all GPUs" if gpu == ALL else gpu
    caption = f"Errors of predicted times, split “{split}”: {study.split_title(split)}, {on}"
    return Table(caption, [Column("model", number=False), *COLUMNS], rows)


def _where(study: StudyData, split: str) -> list[Block]:
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
            cells.append(Cell(percent(entry["median_percent"]) if entry else "–"))
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
    # One panel says how the points lie; the table has the errors of all models.
    drawn = next((one for one in whole if predicted_column(str(one["model"])) in joined), None)
    if drawn is None:
        return []
    others = {predicted_column(str(one["model"])) for one in whole if one is not drawn}
    kept = joined.drop(columns=list(others & set(joined)))
    said = {str(drawn["model"]): f"median {percent(drawn['median_percent'])} %"}
    return [maps.predicted(study, kept, said)]


def overall(studies: Sequence[StudyData], first: Sequence[Block] = ()) -> Section | None:
    """The predictors of every study side by side, every split on all its GPUs.

    Parameters
    ----------
    first
        What leads the section: predictions against published run times.
    """
    columns = [Column("study", number=False), Column("split", number=False)]
    columns += [Column("predictor", number=False), *COLUMNS]
    rows = []
    for study in studies:
        for split in study.settings.splits:
            whole = {one["model"]: one for one in whole_split(study, split, ALL)}
            shown = [name for name, entry in study.entries.items() if entry.kind in PREDICTORS]
            for name in shown:
                if name in whole:
                    named = [Cell(study.name), Cell(split), Cell(study.title(name))]
                    rows.append(Row([*named, *_figures(whole[name])]))
    if not rows and not first:
        return None
    text = (
        "On the GPUs that were measured: the roofline knows the problem's bytes and "
        "FLOP and the GPU's measured ceilings; the cost model also what each kernel does, read off "
        "its source, and micro-benchmarks of the GPU (estimates where its profile has none); trees "
        "then learn from sweeps what the cost model gets wrong. " + NOTE
    )
    caption = "Errors of predicted times on test problems, all GPUs of a study together"
    blocks = list(first)
    if rows:
        blocks += [Text(text), Table(caption, columns, rows)]
    return Section("predicted", "Predicted run times", blocks)
