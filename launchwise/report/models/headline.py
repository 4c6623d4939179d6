"""Headline figures, the goals of a study that has some, and what the data allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from launchwise.learning.evaluate import SHORT_LISTS
from launchwise.learning.merit import geometric_mean
from launchwise.learning.summary import WORTH_PERCENT
from launchwise.report import wording
from launchwise.report.blind_tests import AGAINST_USUAL, of_mean
from launchwise.report.blocks import MISSING, Block, Section, Text
from launchwise.report.fields import field, grouped, percents, table_of
from launchwise.report.numbers import winners
from launchwise.report.scores import (
    answering,
    best_rule,
    first_split,
    is_tied,
    leader,
    score_of,
    scores_on,
    splits_evaluated,
)
from launchwise.report.study import StudyData

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

    Empty where the study has no goals.
    """
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
    """Test problems of a GPU with what is possible and what ``model`` reaches.

    Returns
    -------
    DataFrame
        Problem columns, ``gain`` and ``noise`` of the best configuration, ``sure`` (its gain
        exceeds two standard errors), ``fraction`` and ``improvement`` of the model.
    """
    rows = study.evaluated(split, gpu, model)
    best = winners(study)
    best = best.loc[best["gpu"] == gpu, [*study.problem_columns, "gain", "noise"]]
    own = best.merge(
        rows[[*study.problem_columns, "fraction", "improvement"]], on=study.problem_columns
    )
    return own.assign(sure=own["gain"] > 1 + 2 * own["noise"])


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
