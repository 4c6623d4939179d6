"""The answers of the front page's lookup: beside the product, and beside the measured times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from recomputing.comparing import Ledger, Table
from recomputing.material import TIMED, Material, ratio_ends, records
from recomputing.pages import read_script

DIGITS = 5  # significant digits of times and gains in the data scripts

SUGGESTIONS = 4

BASES = {
    "measured": "measured on this GPU",
    "within": "between measured sizes",
    "beyond": "beyond what this GPU measured",
    "new_gpu": "no measurement on this GPU:",
    "datasheet": "no measurement on this GPU, known from its datasheet",
}
"""Basis of an answer to how its words on the page begin."""

RATIOS = ("gain", "improvement")


def compare(
    folder: Path, materials: Sequence[Material], least_gain: float | None, ledger: Ledger
) -> None:
    """Compare the lookup's data of every study with its product, and the product with times.

    ``folder``: the report's.
    ``least_gain``: gain that must be sure, of the settings.
    """
    for one in materials:
        if one.answers:
            table = ledger.table("index.html", f"data/{one.name}.js and data/answers/{one.name}/")
            _shown(folder, one, table)
            table = ledger.table("index.html", f"results/lookup/{one.name}.json")
            _measured(one, least_gain, table)


def _shown(folder: Path, one: Material, table: Table) -> None:
    head = read_script(folder / f"data/{one.name}.js")
    configurations = [dict(each["values"]) for each in head["configurations"]]
    table.same("baseline", configurations[head["baseline"]], _used(one, one.baseline))
    shown: dict[tuple[Any, ...], list[Any]] = {}
    for gpu in head["gpus"]:
        for entry in read_script(folder / f"data/answers/{one.name}/{gpu}.js")["entries"]:
            shown[head["gpus"][entry[0]], *head["problems"][entry[1]]] = entry
    table.same("problems", sorted(map(str, shown)), sorted(map(str, one.answers)))
    for case, entry in shown.items():
        if (answer := one.answers.get(case)) is not None:
            _entry(" ".join(map(str, case)), entry, answer, head, configurations, one, table)
    for gpu, rows in head["tested"].items():
        _tested(one, gpu, rows, table)


def _entry(
    place: str,
    entry: Sequence[Any],
    answer: Mapping[str, Any],
    head: Mapping[str, Any],
    configurations: Sequence[Mapping[str, Any]],
    one: Material,
    table: Table,
) -> None:
    _, _, basis, chosen, usual, *numbers, paired, blind, others, scale, alike, unsure = entry
    known = "datasheet" if answer["gpu"] in one.described else answer["basis"]
    begins = BASES[known]
    table.same(f"{place}, basis", head["bases"][basis][: len(begins)], begins)
    for name, at in (("configuration", chosen), ("usual", usual)):
        table.same(f"{place}, {name}", configurations[at], _used(one, answer[name]))
    names = ["time_ms", "time_low_ms", "time_high_ms"]
    names += [f"{ratio}{end}" for ratio in RATIOS for end in ("", "_low", "_high")]
    table.rounded(place, numbers, [answer[name] for name in names], DIGITS)
    table.same(f"{place}, in pairs", [paired, blind], [answer["paired"], answer["blind"]])
    table.same(f"{place}, scale, alike", [scale, alike], [answer["scale"], answer["alike"]])
    table.rounded(f"{place}, unsure", [unsure], [answer["unsure"]], DIGITS)
    table.same(f"{place}, others", len(others), len(answer["others"]))
    for (at, *times), other in zip(others, answer["others"], strict=False):
        table.same(f"{place}, other", configurations[at], _used(one, other["configuration"]))
        limits = [other[name] for name in names[:3]]
        table.rounded(f"{place}, other", times, limits[: max(1, len(times))], DIGITS)


def _used(one: Material, configuration: Mapping[str, Any]) -> dict[str, Any]:
    """The variant and the tunables that it has."""
    own = {**one.spec.neutral, **configuration}
    has = one.spec.variants[own["variant"]].tunables
    names = ["variant", *(name for name in one.spec.tunables if name in has)]
    return {name: own[name] for name in names}


def _tested(one: Material, gpu: str, shown: Sequence[Any], table: Table) -> None:
    """Answers that a blind test checked: fraction, gain and its limits, whether the usual one."""
    scores = pd.read_csv(one.results / f"blind/{gpu}/{one.name}.score.csv")
    scores = scores[scores["status"] == "ok"]
    table.same(f"{gpu}, tested", len(shown), len(scores))
    names = ("fraction", "gain", "gain_low", "gain_high", "is_usual")
    for (problem, *numbers), row in zip(shown, records(scores), strict=False):
        place = f"{gpu} {problem}, tested"
        table.same(place, list(map(str, problem)), [str(row[name]) for name in one.problem])
        table.rounded(place, numbers, [float(row[name]) for name in names], DIGITS)


def _measured(one: Material, least_gain: float | None, table: Table) -> None:
    """Answers to measured problems, beside the judged times. A problem of a blind test counts where
    no sweep has it. The fastest candidate is the answer, or the usual choice (without a time of it
    the baseline), if the fastest does not beat it by what the settings ask; the next fastest follow
    it."""
    rows = one.judged[one.judged["status"].isin(TIMED)]
    swept = set(rows.loc[~rows["blind"], one.case].itertuples(index=False, name=None))
    cases = list(rows[one.case].itertuples(index=False, name=None))
    kept = [
        not blind or case not in swept for blind, case in zip(rows["blind"], cases, strict=True)
    ]
    rows = rows[kept].sort_values(["time_ms", *one.spec.tunable_columns])
    groups = {key: records(own) for key, own in rows.groupby(one.case, sort=False)}
    asked = {case: each for case, each in one.answers.items() if each["basis"] == "measured"}
    table.same("measured problems", sorted(map(str, asked)), sorted(map(str, groups)))
    for case, answer in asked.items():
        if case in groups:
            _answer(" ".join(map(str, case)), one, answer, groups[case], least_gain, table)


def _answer(
    place: str,
    one: Material,
    answer: Mapping[str, Any],
    rows: list[dict[str, Any]],
    least_gain: float | None,
    table: Table,
) -> None:
    usual = one.whole_configuration(answer["usual"])
    named = [tuple(row[name] for name in one.spec.tunable_columns) for row in rows]
    baseline = next((row for row in rows if row["is_baseline"]), None)
    beside = next((row for key, row in zip(named, rows, strict=True) if key == usual), baseline)
    fastest = one.named(tuple(rows[0][name] for name in one.case), rows)
    first = next(row for row in rows if row["sweep_row"] == fastest["sweep_row"])
    if beside is not None and least_gain is not None:
        gain = beside["time_ms"] / first["time_ms"]
        if gain < least_gain:
            first, fastest = beside, {**fastest, "alike": 1, "unsure": 1.0}
    table.same(f"{place}, alike", answer["alike"], fastest["alike"])
    table.rounded(f"{place}, unsure", [answer["unsure"]], [fastest["unsure"]], 12)
    others = [row for row in rows if row is not first][: SUGGESTIONS - 1]
    chosen = [_used(one, {name: row[name] for name in one.spec.tunable_columns}) for row in
              (first, *others)]  # fmt: skip
    given = [answer["configuration"], *(each["configuration"] for each in answer["others"])]
    table.same(f"{place}, configurations", given, chosen)
    for shown, row in zip((answer, *answer["others"]), (first, *others), strict=False):
        times = [row["time_ms"], row["time_low_ms"], row["time_high_ms"]]
        if row is not first:
            times[1:] = [first["time_ms"] * end for end in ratio_ends(row, first)]
        names = ("time_ms", "time_low_ms", "time_high_ms")
        table.rounded(place, [shown[name] for name in names], times, 12)
    for name, other in (("gain", beside), ("improvement", baseline)):
        ends = (f"{name}_low", f"{name}_high")
        apart = None if other is None or first is other else ratio_ends(other, first)
        ratio = None if other is None else other["time_ms"] / first["time_ms"]
        limits = list(apart or (None, None))
        shown_ratio = [answer[each] for each in (name, *ends)]
        table.rounded(f"{place}, {name}", shown_ratio, [ratio, *limits], 12)
    paired = [answer["paired"], answer["blind"]]
    table.same(f"{place}, in pairs", paired, [first["basis"] == "pairs", bool(first["blind"])])
