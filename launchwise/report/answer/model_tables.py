"""Quality of the models beside baselines and oracle, by measurements, and on other GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from launchwise.learning.curves import LONGEST, RANDOM, SEARCH
from launchwise.learning.merit import HARM_PERCENT
from launchwise.report import numbers, theme, wording
from launchwise.report.blocks import Block, Cell, Figure, File, Panel, Section, Table, Text
from launchwise.report.fields import by_gpu, field, grouped, table_of
from launchwise.report.numbers import (
    ALL_GPUS,
    first_split,
    fractions,
    is_tied,
    leader,
    null_accuracy,
    records,
    score_of,
    scores_on,
)
from launchwise.report.study_tables import MODELS, StudyData
from launchwise.tables.rows import Z95, fastest_rows

SCORES = [
    *grouped(
        "fraction of the best",
        field("mean", "fraction", wording.fixed, "geometric"),
        field("mean", "fraction_interval", wording.interval, "95 % interval"),
        field("5th", "fraction_p5", wording.fixed, "percentile"),
        field("worst", "worst", wording.fixed, "problem"),
    ),
    *grouped(
        "improved",
        field("problems", "improved", wording.percent, "%"),
        field("runs", "improved_runs", wording.percent, "%"),
        field("coefficient", "coefficient", wording.fixed, "× baseline"),
    ),
    *grouped(
        "relative to the usual choice",
        field("speed-up", "gain", wording.fixed, "geometric"),
        field("slower", "harmed", wording.count, "problems"),
        field("least", "least_gain", wording.fixed, "one problem"),
    ),
    *grouped(
        "accuracy",
        field("exact", "exact", wording.percent, "%"),
        field("near", "accuracy", wording.percent, "%"),
    ),
    *grouped(
        "predicted times",
        field("MAPE", "mape", wording.number, "%"),
        field("Spearman", "spearman", wording.fixed, "mean"),
    ),
]
"""Columns of the model table, from left to right."""

LEAST_IS_BEST = {"harmed", "mape"}

UNMARKED = "fraction_interval"  # Column in which no value is marked as the best


def tables_of(study: StudyData) -> Section | None:
    """Models among baselines and oracle in the first split, and the goals of a study that has some;
    other splits and GPUs are in the CSV file."""
    split = first_split(study)
    evaluated = set(study.evaluation.loc[study.evaluation["split"] == split, "gpu"].unique())
    gpus = [gpu for gpu in study.gpus if gpu in evaluated]
    if not gpus:
        return None
    found: list[Block] = [_model_table(study, split, ALL_GPUS, gpus), Text(NOTE.format(
        near=f"{study.settings.near_best_percent:g}",
        usual=study.usual_reasons or "here the baseline",
    ), "note")]  # fmt: skip
    if judged := verdicts(study, split):
        caption = f"Goals, split “{study.split_title(split)}”"
        found.append(table_of(caption, VERDICTS, judged))
    found.append(File(MODELS.format(study=study.name), "Every split, GPU and method (CSV)"))
    return Section(f"{study.name}-models", "Models and baselines", found)


NOTE = (
    "Fraction of the best: least time over time of the recommendation; without a time it is 0. "
    "Improvement: baseline time over time of the recommendation. Near: within {near} % of the best "
    f"time. Usual choice: {{usual}}. Slower: by more than {HARM_PERCENT:g} %. Bold: the best model "
    "of a column, and those whose mean cannot be told apart from it. Grey: simple rules; the "
    "baseline is the declared one. Least: speed-up at the problem that gains least."
)


def _model_table(study: StudyData, split: str, part: str, gpus: Sequence[str]) -> Table:
    found = records(scores_on(study, split, part))
    best = _best_values([record for record in found if record["role"] == "model"])

    def won(record: Mapping[str, Any], key: str) -> bool:
        tied = key == "fraction" and is_tied(record["beside_best_model"])
        best_one = key in best and record[key] == best[key]
        return record["role"] == "model" and (tied or best_one)

    unmeasured = any(record["unmeasured"] for record in found)
    fields = [
        field("method", lambda record: study.title(record["model"])),
        *([field("no time", "unmeasured", wording.count, "count")] if unmeasured else []),
        *(replace(one, best=partial(won, key=str(one.value))) for one in SCORES),
    ]
    null = wording.percent(null_accuracy(study, split, part))
    problems = wording.plural(max(record["problems"] for record in found), "problem")
    caption = (
        f"Split “{split}”: {study.split_title(split)}, on {wording.listed(gpus)}"
        f"{' together' if len(gpus) > 1 else ''} ({problems}; majority-class accuracy {null} %)"
    )
    return table_of(caption, fields, found, itemgetter("role"))


def _best_values(models: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Column of :data:`SCORES` to its best value, where models differ."""
    best = {}
    for key in [str(one.value) for one in SCORES if one.value != UNMARKED]:
        values = {record[key] for record in models if not pd.isna(record[key])}
        if len(values) > 1:
            best[key] = min(values) if key in LEAST_IS_BEST else max(values)
    return best


WORDS = (
    ("coefficient", "mean speed-up", ">", wording.fixed, "mean_speed_up", 1),
    ("improved", "problems improved (%)", "≥", wording.percent, "improved_percent", 100),
    ("fraction", "fraction of the best", "≥", wording.fixed, "best_percent", 100),
)
"""Goals in the order they are shown: key, words, relation, how to write the value, key of the
settings, and its value there for one of the figure's."""


def verdicts(study: StudyData, split: str) -> list[dict[str, Any]]:
    """Each goal on every whole card that a model was evaluated on: what is reached, and possible.
    Empty where the study has no goals."""
    found, wanted = [], study.settings.goals
    for gpu in study.whole if wanted else ():
        if (name := leader(study, split, gpu)) is None:
            continue
        got = scores_on(study, split, gpu)
        oracle = got[got["role"] == "oracle"]
        for key, title, relation, shown, setting, scale in WORDS:
            goal = getattr(wanted, setting) / scale
            value = score_of(study, split, gpu, name)[key]
            ceiling = float(oracle[key].iloc[0]) if len(oracle) else float("nan")
            # A mean speed-up must exceed its goal.
            reached = value > goal if relation == ">" else value >= goal
            missed = "missed, out of reach" if ceiling < goal else "missed"
            row = {
                "figure": f"{title}, {gpu}",
                "goal": f"{relation} {shown(goal)}",
                "measured": shown(value),
                "model": study.title(name),
                "possible": shown(ceiling),
                "verdict": "reached" if reached else missed,
            }
            found.append(row)
    return found


VERDICTS = [
    field("figure", "figure"),
    field("goal", "goal", number=True),
    field("measured", "measured", number=True, best=lambda row: row["verdict"] == "reached"),
    field("by model", "model"),
    field("best possible", "possible", number=True),
    field("verdict", "verdict", role=lambda row: "good" if row["verdict"] == "reached" else "poor"),
]


def transferred(study: StudyData) -> Section | None:
    """Loss of one GPU's best configurations on other GPUs; None with a single GPU."""
    if len(study.gpus) < 2:
        return None
    pairs = losses_by_transfer(study)
    known: dict[str, dict[str, Mapping[str, Any]]] = {gpu: {} for gpu in study.gpus}
    for pair in records(pairs):
        known[pair["target"]][pair["source"]] = pair
    fields = [field(f"best of {gpu}", partial(_loss, source=gpu)) for gpu in study.gpus]
    caption = (
        "Loss in percent (geometric mean) where one GPU's configurations of least time are used on "
        "another, over the least times there; surely: by the errors of both times; those whose "
        "repeats disagree are left out"
    )
    found = [by_gpu(caption, "", fields, known), *(Text(one, "note") for one in _kept_out(study))]
    return Section(f"{study.name}-transfer", "Transfer between GPUs", found)


def _loss(pairs: Mapping[str, Mapping[str, Any]], source: str) -> Cell:
    if (pair := pairs.get(source)) is None:
        return Cell("")
    lacking = pair["impossible"]
    said = (
        [f"{wording.percent(pair['worst'])} surely at worst"] if lacking < pair["problems"] else []
    )
    said += [f"{wording.plural(lacking, 'problem')} without a sure time"] if lacking else []
    return Cell(wording.percent(pair["loss"], 2), detail=", ".join(said))


def _kept_out(study: StudyData) -> list[str]:
    return [
        f"The rows of {gpu} are kept out: {'; '.join(why)}." for gpu, why in study.kept_out.items()
    ]


def losses_by_transfer(study: StudyData) -> pd.DataFrame:
    """Loss from using GPU ``source``'s best configuration on GPU ``target``: of least time, as the
    evaluation has it. Returns one row an ordered pair with common problems: ``source``, ``target``,
    ``problems`` that both measured, ``loss`` (geometric mean of time over best, minus 1), ``worst``
    (the largest that the errors of both times leave, if ``leveled``), ``impossible`` (problems
    where the target has no time for that configuration, or one that tells nothing)."""
    problem = study.problem_columns
    rows = fractions(study)[["gpu", *study.spec.key_columns[1:], "time_ms", "leveled"]]
    best = fastest_rows(rows, ["gpu", *problem], study.spec)
    rows, best = (each.join(study.measured["error"]) for each in (rows, best))
    chosen = best.drop(columns=["time_ms", "leveled", "error"]).rename(columns={"gpu": "source"})
    names = {"gpu": "target", "time_ms": "best", "error": "best_error"}
    there = best[["gpu", *problem, "time_ms", "error"]].rename(columns=names)
    pairs = chosen.merge(there, on=problem).query("source != target")
    pairs = pairs.merge(rows.rename(columns={"gpu": "target"}), how="left")
    pairs["log"] = np.log(pairs["time_ms"] / pairs["best"])
    reach = Z95 * np.hypot(pairs["error"], pairs["best_error"])
    surely = (pairs["log"] - reach).clip(lower=0)
    pairs["surely"] = surely.where(pairs["leveled"].eq(True) | pairs["log"].isna(), 0.0)
    groups = pairs.groupby(["source", "target"])
    each = groups["log"]
    found: dict[str, Any] = {"problems": each.size(), "impossible": each.size() - each.count()}
    found |= {"loss": np.expm1(each.mean()), "worst": np.expm1(groups["surely"].max())}
    return pd.DataFrame(found).reset_index()


DRAWN_MODELS = 4  # Models that are drawn beside the answering one: the best at first choice
LEAST_REGRET = 0.01  # Least regret that is drawn, %: no measurement tells smaller ones from 0
MARKERS = 9  # Markers of a line: one per point would hide the dashes

DRAWN_HEURISTICS = ("best_on_average", "nearest_size", "nearest_gpu")


def learning_curves(study: StudyData) -> Section | None:
    """Quality against number of measurements in the first split; None without such a table."""
    if study.curves is None:
        return None
    split = numbers.first_split(study)
    rows = study.curves
    rows = rows[(rows["split"] == split) & (rows["gpu"] == ALL_GPUS)]
    if rows.empty:
        return None
    curves = rows.pivot(index="model", columns="measured", values="fraction")
    curves = curves.loc[curves[1].sort_values(ascending=False, kind="stable").index]
    problems = wording.plural(int(rows["problems"].max()), "problem")
    asked = f"Split “{split}”, {problems}"
    title = "Quality against number of measurements"
    return Section(f"{study.name}-curves", title, [_figure(study, curves, asked)])


def _title(study: StudyData, model: str) -> str:
    return {RANDOM: "random order", SEARCH: "search"}.get(model) or study.title(model)


def _figure(study: StudyData, curves: pd.DataFrame, asked: str) -> Figure:
    roles = study.evaluation.drop_duplicates("model").set_index("model")["role"]
    fitted = [str(name) for name in curves.index if roles.get(name) == "model"]
    answering = numbers.answering(study)
    first = [answering] if answering in fitted else []
    others = [name for name in fitted if name not in first]
    heuristics = [name for name in DRAWN_HEURISTICS if name in curves.index]
    searches = [name for name in (SEARCH,) if name in curves.index]
    drawn = [*first, *others[:DRAWN_MODELS], *heuristics, *searches, RANDOM]
    counts = [int(count) for count in curves.columns]
    titles = [_title(study, name) for name in drawn]
    regrets = 100 * (1 - curves.loc[drawn].to_numpy(dtype=float))
    # No axis has a log of 0: a line ends where every problem has its best.
    regrets = np.where(regrets >= LEAST_REGRET, regrets, np.nan)
    traces = [
        _line(counts, row, title, place)
        for place, (row, title) in enumerate(zip(regrets, titles, strict=True))
    ]
    layout = theme.layout(
        theme.log_axis("configurations measured per problem", counts),
        theme.log_axis("regret (%)", regrets.ravel()),
    )
    return Figure(
        id=f"{study.name}-learning-curves",
        caption=(
            f"{asked}: regret (100 % minus % of the best speed, geometric mean) once the first 1 "
            f"to {LONGEST} recommendations were measured and the fastest is kept."
        ),
        alt="Lines: regret against number of configurations measured, one line per method.",
        panels=[Panel("", traces, layout)],
        keys=theme.keys(titles, markers=True),
        height=360,
        width=420,
        limit=760,
    )


def _line(counts: list[int], regrets: np.ndarray, title: str, place: int) -> dict[str, Any]:
    trace = theme.line(
        counts, regrets, name=title, place=place, template="%{x} measured: regret %{y:.3~g} %"
    )
    trace["marker"]["maxdisplayed"] = MARKERS
    return trace
