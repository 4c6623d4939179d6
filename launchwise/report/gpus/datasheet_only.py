"""Datasheet-only GPUs: what the lookup answers for a study, and intervals of predicted times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from launchwise.learning.merit import geometric_mean
from launchwise.learning.rooflines import least_ms
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Fold, Section, Table, Text
from launchwise.report.fields import field, grouped, table_of
from launchwise.report.gpus.gpu_attributes import by_generation
from launchwise.report.models.predicted_times import percent, whole_split
from launchwise.report.numbers import records, winners
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

    ``apart`` says how far predicted times may be off; None where that is unknown.
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
    reference = study.whole[0]
    best = winners(study)
    best = best.loc[best["gpu"] == reference, [*study.problem_columns, "best_ms"]]
    beside = chosen.merge(best, on=study.problem_columns, how="left")
    beside["choice"] = [wording.configuration(row, study.spec) for row in records(beside)]
    problems = len(beside[study.problem_columns].drop_duplicates())
    fields = [
        field("generation", "generation"),
        field("GPU", "gpu"),
        field("predicted time", "time", _short, f"× best of {reference}"),
        field("predicted gain", "gain", _short, "× baseline"),
        field("most frequent choice", lambda row: str(row["choices"].index[0])),
        field("problems", lambda row: row["choices"].iloc[0], wording.count, f"of {problems}"),
    ]
    rows = []
    for name, gpus in groups.items():
        for number, gpu in enumerate(gpus):
            own = beside[beside["gpu"] == gpu]
            measured = own[own["best_ms"].notna()]
            rows.append(
                {
                    "generation": "" if number else name,
                    "gpu": gpu,
                    "time": _mean_ratio(measured, "predicted_ms", "best_ms"),
                    "gain": _mean_ratio(own, "baseline_ms", "predicted_ms"),
                    "choices": own["choice"].value_counts(),
                }
            )
    caption = (
        f"Datasheet-only GPUs over {wording.plural(problems, 'problem')}: predicted time of the "
        f"answer divided by the best measured time on {reference} (geometric mean)"
    )
    return table_of(caption, fields, rows, PREDICTED)


def _mean_ratio(rows: pd.DataFrame, over: str, under: str) -> float:
    return geometric_mean((rows[over] / rows[under]).to_numpy())


def _transfer_error(study: StudyData) -> str:
    kinds = {name: entry.kind for name, entry in study.entries.items()}
    for split, asked in study.settings.splits.items():
        learnt = [one for one in whole_split(study, split) if kinds.get(one["model"]) == LEARNT]
        if asked.kind == "leave_one_gpu_out" and learnt:
            error = percent(learnt[0]["mape_percent"])
            text = f"On held-out GPUs the trees have a mean error of {error} %"
            return f"{text}; these are slices of one card." if study.cards == 1 else f"{text}."
    return "This study has no split that holds out a GPU, so the error on another GPU is unknown."


def _choices(study: StudyData, chosen: pd.DataFrame, caption: str, apart: Spread | None) -> Table:
    ordered = chosen.sort_values([*study.problem_columns, "predicted_ms"], kind="stable")

    def interval(row: Mapping[str, Any]) -> str:
        if apart is None:
            return MISSING
        return " to ".join(map(_short, apart.limits(row["predicted_ms"], row["roofline_ms"])))

    fields = [
        field("problem", lambda row: wording.problem(row, study.problem_columns)),
        field("GPU", "gpu"),
        field("configuration", lambda row: wording.configuration(row, study.spec)),
        *grouped(
            "predicted",
            field("time", "predicted_ms", _short, "ms"),
            field("90 % interval", interval, unit="ms", number=True),
        ),
        field("roofline", "roofline_ms", _short, "ms"),
        field("gain", lambda row: row["baseline_ms"] / row["predicted_ms"], _short, "× baseline"),
    ]
    return table_of(caption, fields, ordered, PREDICTED)


def _short(value: float) -> str:
    return wording.number(value, DIGITS)


SHARE = 0.9
"""Share of the published times that lie within the interval."""

FEWEST = 10
"""Fewest published times that give an interval."""

LEARNT_TIMES = "learnt"
"""Predictor whose errors they are."""

UNKNOWN = (
    "No interval: too few run times are published for cards that no sweep measured to say how far "
    "predictions are off."
)


@dataclass(frozen=True)
class Spread:
    """Errors of predictions on cards that no sweep measured.

    90 % of the published times lie between predicted / factor and predicted x factor.
    """

    factor: float
    times: int
    gpus: tuple[str, ...]

    @property
    def words(self) -> str:
        """Basis of an interval."""
        return (
            f"Intervals: {wording.percent(SHARE, 0)} % of {self.times} published run times on "
            f"{wording.listed(self.gpus)}, which no sweep measured, lie within a factor "
            f"{wording.number(self.factor, 2)} of what was predicted; none lies below the roofline."
        )

    def limits(self, predicted_ms: float, least_ms: float) -> tuple[float, float]:
        """Interval of a predicted time whose lower bound is known, ms."""
        return max(least_ms, predicted_ms / self.factor), predicted_ms * self.factor


def spread(studies: Sequence[StudyData]) -> Spread | None:
    """Of the whole runs whose number the publications state; None where there are too few."""
    tables = [study.published_times for study in studies if study.published_times is not None]
    used = ["predictor", "gpu", "phases", "runs", "published_ms", "predicted_ms"]
    if not tables:
        return None
    rows = pd.concat([table[used] for table in tables], ignore_index=True)
    rows = rows[(rows["predictor"] == LEARNT_TIMES) & (rows["phases"] == "") & (rows["runs"] > 0)]
    if len(rows) < FEWEST:
        return None
    apart = np.abs(np.log((rows["predicted_ms"] / rows["published_ms"]).to_numpy(dtype=float)))
    gpus = tuple(dict.fromkeys(map(str, rows["gpu"])))
    return Spread(float(np.exp(np.quantile(apart, SHARE))), len(rows), gpus)
