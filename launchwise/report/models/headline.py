"""Headline figures, the goals of a study that has some, and what the data allows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from launchwise.learning.evaluate import SHORT_LISTS
from launchwise.learning.merit import geometric_mean
from launchwise.learning.summary import WORTH_PERCENT
from launchwise.report import wording
from launchwise.report.blind_tests import AGAINST_USUAL, of_mean
from launchwise.report.blocks import MISSING, Block, Fold, Section, Table, Text
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


@dataclass(frozen=True)
class Verdict:
    """One figure on one GPU: what the best model got, what any model got, what is possible."""

    gpu: str
    model: str
    key: str
    title: str
    relation: str
    shown: Callable[[Any], str]
    goal: float | None  # None where the study has no goals
    value: float
    ceiling: float
    highest: float
    highest_by: str

    @property
    def reached(self) -> bool:
        """Whether there is no goal, or it is met; a mean speed-up must exceed it."""
        if self.goal is None:
            return True
        return self.value > self.goal if self.key == "coefficient" else self.value >= self.goal

    @property
    def words(self) -> str:
        """Reached, missed, or out of reach of any choice among the measured configurations."""
        if self.reached:
            return "reached"
        out_of_reach = self.goal is not None and self.ceiling < self.goal
        return "missed, out of reach" if out_of_reach else "missed"


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


def verdicts(study: StudyData, split: str) -> list[Verdict]:
    """Every headline figure on every whole card that a model was evaluated on."""
    found, wanted = [], goals_of(study)
    for gpu in study.whole:
        name = leader(study, split, gpu)
        if name is None:
            continue
        got = scores_on(study, split, gpu)
        own = got[got["model"] == name].iloc[0]
        oracle = got[got["role"] == "oracle"]
        for key, title, relation, shown in WORDS:
            models = got[got["role"] == "model"].sort_values([key, "model"], kind="stable")
            top = models.iloc[-1]
            ceiling = float(oracle[key].iloc[0]) if len(oracle) else float("nan")
            highest = float(top[key]), str(top["model"])
            named = key, title, relation, shown, wanted.get(key)
            found.append(Verdict(gpu, name, *named, float(own[key]), ceiling, *highest))
    return found


def goals(study: StudyData) -> Section:
    """The headline figures and what the data allows."""
    split = first_split(study)
    found: list[Block] = []
    judged = verdicts(study, split)
    judged_gpus = {verdict.gpu for verdict in judged}
    if judged:
        by = COMBINED if answering(study) else LEADING
        found += promises(study)
        parts: list[Block] = [_table(study, split, judged), Text(f"{NOTE} {by}", "note")]
        found.append(Fold("Headline figures of every whole card", parts))
    for gpu in study.whole:
        if gpu not in judged_gpus:
            found.append(Text(f"No model was evaluated on {gpu}.", "note"))
    found += [_what_data_allows(study, split, gpu) for gpu in study.whole if gpu in judged_gpus]
    return Section(f"{study.name}-goals", "Headline figures", found)


NOTE = (
    "Baseline: the untuned kernel that the workload declares. “Best possible” is the oracle, which "
    "knows every measured time."
)

LEADING = (
    "The model is the one with the highest fraction of the best on this GPU, named after the "
    "test: its figure is optimistic."
)

COMBINED = (
    "The answering model combines its members by a fixed rule: nothing of it is chosen by test "
    "problems."
)


def _table(study: StudyData, split: str, judged: list[Verdict]) -> Table:
    """One row per figure and GPU; goals and verdicts only where the study has goals."""
    has_goals = bool(goals_of(study))
    goal = field("goal", lambda one: f"{one.relation} {one.shown(one.goal)}", number=True)
    said = field("verdict", "words", role=lambda one: "good" if one.reached else "poor")
    fields = [
        field("figure", lambda one: f"{one.title}, {one.gpu}"),
        *([goal] if has_goals else []),
        field(
            "measured",
            lambda one: one.shown(one.value),
            number=True,
            best=lambda one: has_goals and one.reached,
        ),
        field("by model", lambda one: study.title(one.model)),
        field(
            "highest of any model",
            lambda one: f"{one.shown(one.highest)} ({study.title(one.highest_by)})",
        ),
        field("best possible", lambda one: one.shown(one.ceiling), number=True),
        *([said] if has_goals else []),
    ]
    return table_of(f"Headline figures, split “{study.split_title(split)}”", fields, judged)


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
