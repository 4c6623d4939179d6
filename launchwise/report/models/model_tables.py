"""Quality of the models beside baselines and oracle: gains, goals, and a table per split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

import pandas as pd

from launchwise.learning.evaluation import WORTH_PERCENT
from launchwise.learning.merit import HARM_PERCENT, geometric_mean
from launchwise.learning.truth import SHORT_LISTS
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Fold, Section, Table, Text
from launchwise.report.fields import field, grouped, percents, table_of
from launchwise.report.numbers import records, winners
from launchwise.report.scores import (
    AGAINST_USUAL,
    ALL_GPUS,
    answering,
    best_rule,
    first_split,
    is_tied,
    leader,
    null_accuracy,
    of_mean,
    score_of,
    score_table,
    scores_on,
    splits_evaluated,
)
from launchwise.report.study import StudyData

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
    *grouped(
        "duration",
        field("train", "train_s", wording.seconds, "s"),
        field("choose", "choose_ms", wording.seconds, "ms each"),
    ),
]
"""Columns of the model table, from left to right."""

LEAST_IS_BEST = {"harmed", "mape", "train_s", "choose_ms"}

UNMARKED = "fraction_interval"  # Column in which no value is marked as the best


NO_TIME = (
    "No time: problems whose recommendation failed on the GPU or was never measured. Each counts "
    "as fraction 0 and improvement 0, so a single one makes a geometric mean 0."
)


def tables_of(study: StudyData) -> Section:
    """One table per split, models among baselines and oracle; GPUs one by one below."""
    near = f"{study.settings.near_best_percent:g}"
    found: list[Block] = [
        Text(
            "Fraction of the best: best time over time of the recommendation, 1 is perfect. "
            "Improvement: baseline time over time of the recommendation, above 1 is faster. "
            "Accuracy: the share of recommendations that are the best configuration, or within "
            f"{near} % of the best time. Usual choice: what an experienced engineer takes without "
            f"measuring ({study.usual_reasons or 'here the baseline'}). Slower: recommendations "
            f"that take longer than it by more than {HARM_PERCENT:g} %, or have no time. Bold: the "
            "best model of a column; for the mean, also every model that does not differ "
            "significantly from the best (the 95 % interval of the ratio contains 1; bootstrap "
            "over problems). Grey: baselines. Training includes the hyper-parameter search; "
            "choosing is the time to rank the candidates of one problem."
        )
    ]
    if study.evaluation["time_ms"].isna().any():
        found.append(Text(NO_TIME, "note"))
    present = splits_evaluated(study)
    for split in present:
        rows = study.evaluation[study.evaluation["split"] == split]
        evaluated = set(rows["gpu"].unique())
        gpus = [gpu for gpu in study.gpus if gpu in evaluated]
        whole = _model_table(study, split, ALL_GPUS, gpus)
        inside = [_model_table(study, split, gpu, [gpu]) for gpu in gpus if len(gpus) > 1]
        if split == present[0]:
            found.append(whole)
            if inside:
                found.append(Fold(f"Split “{split}”: GPU by GPU", inside))
        else:
            title = f"Split “{split}”: {study.split_title(split)}"
            found.append(Fold(title, [whole, *inside]))
    return Section(f"{study.name}-models", "Models and baselines", found)


def _on(gpus: Sequence[str]) -> str:
    return f"on {gpus[0]}" if len(gpus) == 1 else f"on {wording.listed(gpus)} together"


def _model_table(study: StudyData, split: str, part: str, gpus: Sequence[str]) -> Table:
    found = records(score_table(study, split, part))
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
        f"Split “{split}”: {study.split_title(split)}, {_on(gpus)} "
        f"({problems}; majority-class accuracy {null} %)"
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
    ("coefficient", "mean speed-up", ">", wording.fixed),
    ("improved", "problems improved (%)", "≥", wording.percent),
    ("fraction", "fraction of the best", "≥", wording.fixed),
)
"""Goals in the order they are shown: key, words, relation, how to write the value."""


def goals_of(study: StudyData) -> dict[str, float]:
    """Goals by the keys of :data:`WORDS`, shares as 0..1; empty where the study has none."""
    wanted = study.settings.goals
    if wanted is None:
        return {}
    return {
        "coefficient": wanted.mean_speed_up,
        "improved": wanted.improved_percent / 100,
        "fraction": wanted.best_percent / 100,
    }


def verdicts(study: StudyData, split: str) -> list[dict[str, Any]]:
    """Each goal on every whole card that a model was evaluated on: what is reached, and possible.
    Empty where the study has no goals."""
    found, wanted = [], goals_of(study)
    for gpu in study.whole if wanted else ():
        if (name := leader(study, split, gpu)) is None:
            continue
        got = scores_on(study, split, gpu)
        oracle = got[got["role"] == "oracle"]
        for key, title, relation, shown in WORDS:
            goal, value = wanted[key], score_of(study, split, gpu, name)[key]
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
    field(
        "verdict",
        "verdict",
        role=lambda row: "good" if row["verdict"] == "reached" else "poor",
    ),
]


def goals(study: StudyData) -> Section:
    """Predicted and measured gains, goals of a study that has some, what the data allows."""
    split = first_split(study)
    evaluated = [gpu for gpu in study.whole if leader(study, split, gpu) is not None]
    found: list[Block] = []
    if evaluated:
        found += promises(study)
        if judged := verdicts(study, split):
            caption = f"Goals, split “{study.split_title(split)}”"
            found.append(table_of(caption, VERDICTS, judged))
        found.append(Text(COMBINED if answering(study) else LEADING, "note"))
    for gpu in study.whole:
        if gpu in evaluated:
            found.append(_what_data_allows(study, split, gpu))
        else:
            found.append(Text(f"No model was evaluated on {gpu}.", "note"))
    return Section(f"{study.name}-goals", "Headline figures", found)


LEADING = (
    "The model is the one with the highest fraction of the best on this GPU, named after the "
    "test: its figure is optimistic."
)

COMBINED = (
    "The answering model combines its members by a fixed rule: nothing of it is chosen by test "
    "problems."
)


def problems_tested(study: StudyData, split: str, gpu: str, model: str) -> pd.DataFrame:
    """Test problems of a GPU with what is possible and what ``model`` reaches. Returns problem
    columns, ``gain`` of the best configuration, as the oracle of the tables has it, ``sure`` (that
    of the one that is most surely fast exceeds two standard errors), ``fraction`` and
    ``improvement`` of the model."""
    rows, best = study.evaluated(split, gpu, model), winners(study)
    best = best[best["gpu"] == gpu]
    sure = best["baseline_ms"] / best["surest_ms"] > 1 + 2 * best["noise"]
    own = best[study.problem_columns].assign(sure=sure)
    measured = ["best_ms", "baseline_ms", "fraction", "improvement"]
    own = own.merge(rows[[*study.problem_columns, *measured]], on=study.problem_columns)
    return own.assign(gain=own["baseline_ms"] / own["best_ms"])


def _what_data_allows(study: StudyData, split: str, gpu: str) -> Text:
    name = str(leader(study, split, gpu))
    own = problems_tested(study, split, gpu, name)
    return Text(
        f"On {gpu} the best measured configuration beats the baseline by more than the noise of "
        f"measuring (two standard errors) on {wording.percent(own['sure'].mean())} % of the test "
        f"problems; it is {wording.fixed(own['gain'].mean(), 2)} times as fast on average. "
        + _where_lost(study, own, name)
        + _beside_rules(study, split, gpu, name)
    )


def _beside_rules(study: StudyData, split: str, gpu: str, name: str) -> str:
    rule, own = best_rule(study, split, gpu), score_of(study, split, gpu, name)
    if rule is None:
        return ""
    return (
        f" The best heuristic, “{study.title(rule['model'])}”, reaches "
        f"{wording.fixed(rule['fraction'])} of the best, {study.title(name)} "
        f"{wording.fixed(own['fraction'])}: {_compared(own)}."
    )


def _compared(own: Mapping[str, Any]) -> str:
    problems = wording.plural(own["problems"], "problem")
    ratio = own["beside_best_heuristic"]
    if ratio is None:
        are = "is" if own["problems"] == 1 else "are"
        return f"{problems} {are} too few to tell them apart"
    if is_tied(ratio):
        return (
            f"the 95 % interval of their ratio, {wording.interval(ratio)}, holds 1 ({problems}), "
            "so neither is better"
        )
    return (
        f"the model reaches {wording.interval(ratio)} times as much (95 % interval of {problems})"
    )


def _where_lost(study: StudyData, own: pd.DataFrame, name: str) -> str:
    known = own[own["fraction"].notna()]
    parts = []
    for column in (study.size, *study.kinds):
        means = known.groupby(column)["fraction"].agg(lambda one: geometric_mean(one.to_numpy()))
        if len(means) > 1:
            parts.append(f"{column} {means.idxmin()} ({wording.fixed(means.min())} of the best)")
    return f"{study.title(name)} loses most at {wording.listed(parts)}." if parts else ""


PROMISES = [
    field("split", "split"),
    field("problems", "problems", wording.count, "count"),
    *grouped(
        "fraction of the best",
        field("mean", "fraction_geometric_mean", wording.fixed, "geometric"),
        field("mean", lambda got: of_mean(got) or MISSING, unit="95 % interval", number=True),
    ),
    *grouped(
        "best measured",
        *(field(f"of {k}", name, wording.fixed, "geometric") for k, name in SHORT_LISTS.items()),
    ),
    *AGAINST_USUAL,
    *grouped(
        "90 % intervals of the gain",
        field("intervals", "intervals", wording.count, "count"),
        field("covered", "covered", percents(0), "%"),
    ),
]


def promises(study: StudyData) -> list[Block]:
    """Predicted and measured gains of the answering model, one row per split."""
    name = answering(study)
    rows = [
        {**parts[name], "split": split}
        for split in splits_evaluated(study)
        if name in (parts := study.facts["splits"][split]["all"]["models"])
    ]
    if not rows or name is None:
        return []
    title = study.title(name)
    note = (
        "Best measured: the fastest of the first 5 or 20 recommendations, if they are measured. "
        f"Kept: {title} answers with the usual choice. It leaves the choices of simple rules where "
        "the mean gain over them that its members expect exceeds the deviation of these gains "
        f"times {study.models[name]['caution']:g} / √(training problems). Missed: of the kept, "
        f"problems where the best is faster by more than {WORTH_PERCENT:g} %. Intervals: from the "
        "errors of answers to the test cases of other problems. Covered: answers whose measured "
        "gain lies in the interval."
    )
    return [table_of(f"Predicted and measured gains of {title}", PROMISES, rows), Text(note)]
