"""What choosing everything at once gains over parts of the candidates, in the same pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from launchwise.base.paired import FASTER, TIE, Ratio, outcome
from launchwise.experiment.confirmation import Confirmation
from launchwise.learning.features import Domain
from launchwise.learning.merit import geometric_mean
from launchwise.measuring.pairs.present_usual import ratio_of_rounds
from launchwise.report import wording
from launchwise.report.blocks import Block, Fold, Section, Text
from launchwise.report.fields import by_key, decimals, field, grouped, table_of
from launchwise.report.pairs import TIES
from launchwise.report.study import StudyData
from launchwise.tables.pairs import with_role
from launchwise.tables.rows import row_numbers

Record = Mapping[Any, Any]

NOTE = (
    "The fastest configuration of the whole sweep and the fastest of each part ran in turn on one "
    f"card. Gain: the time of the part's fastest divided by that of the fastest of all. {TIES}"
)


def section(study: StudyData) -> Section | None:
    """Gain of the whole over each design, a row a GPU and design; None where none was compared."""
    compared = study.pairs if study.settings.designs else []
    gains = {gpu: gains_over_designs(study, gpu) for gpu in compared}
    gains = {gpu: rows for gpu, rows in gains.items() if len(rows)}
    if not gains:
        return None
    fields = [
        field("GPU", "gpu"),
        field("chosen among", "design"),
        field("problems", "compared", wording.count, "compared"),
        *grouped(
            "gain of the whole",
            field("geometric mean", "mean", wording.fixed),
            field("least", "least", wording.fixed),
            field("largest", "largest", wording.fixed),
        ),
        field("faster", FASTER, wording.count, "problems"),
        field("tie", TIE, wording.count, "or the same"),
    ]
    rows = [
        {"gpu": gpu, "design": title, **_figures(members)}
        for gpu, found in gains.items()
        for title, members in found.groupby("design", sort=False)
    ]
    blocks: list[Block] = [Text(NOTE, "note"), table_of("Gain over parts", fields, rows)]
    blocks += [_every_problem(study, gpu, rows) for gpu, rows in gains.items()]
    return Section(f"{study.name}-designs", "What choosing everything at once gains", blocks)


def gains_over_designs(study: StudyData, gpu: str) -> pd.DataFrame:
    """Gain of the fastest of all over the fastest of each design, in pairs.

    Returns
    -------
    pandas.DataFrame
        A row for each problem and design that has a configuration there: the problem's parameters,
        ``design`` (title), ``part`` and ``whole`` (names of the configurations), ``part_ms``,
        ``whole_ms`` (medians over rounds), ``gain``, ``low`` and ``high`` (its 95 % interval; NaN
        where no pair is left).
    """
    pairs, domain = study.pairs[gpu], Domain(study.spec, study.profiles)
    numbers = row_numbers(pairs, study.problem_columns, ordered=True)
    pairs = pairs.assign(problem=numbers, row=range(len(pairs)))
    ran = pairs[(pairs["status"] == "ok") & (pairs["rounds"] > 0) & pairs["sweep_ms"].notna()]
    members = dict(list(pairs[["problem", "throttle"]].groupby("problem")))
    wholes = _first_of_problems(ran[with_role(ran, "best")])
    # The sweep's time, which chose before the pairs were measured, decides: choosing by the pairs
    # themselves would flatter the design.
    ran = ran.sort_values("sweep_ms", kind="stable")
    parts = {
        design.title: _first_of_problems(
            ran[domain.is_of(ran, design.candidates, design.constraints)]
        )
        for design in study.settings.designs.values()
    }
    found = [
        {
            **{name: whole[name] for name in study.problem_columns},
            "design": title,
            **_gain(chosen[problem], whole, members[problem], wording.namer(study.spec)),
        }
        for problem, whole in sorted(wholes.items())
        for title, chosen in parts.items()
        if problem in chosen
    ]
    return pd.DataFrame(found)


def _first_of_problems(rows: pd.DataFrame) -> dict[int, dict[str, Any]]:
    """Number of a problem to its first row."""
    return by_key(rows.drop_duplicates("problem"), "problem")


def _gain(
    part: Record, whole: Record, members: pd.DataFrame, name: Callable[[Record], str]
) -> dict[str, Any]:
    ratio = Ratio(1.0, 1.0, 1.0, whole["rounds"], 0)
    if part["row"] != whole["row"]:
        ratio = ratio_of_rounds(part, whole, members, Confirmation().clock_tolerance)
    return {
        "part": name(part),
        "whole": name(whole),
        "part_ms": part["time_ms"],
        "whole_ms": whole["time_ms"],
        "gain": ratio.value,
        "low": ratio.low,
        "high": ratio.high,
    }


def _figures(rows: pd.DataFrame) -> dict[str, Any]:
    known = rows[rows["gain"].notna()]
    limits = zip(known["low"], known["high"], strict=True)
    said = Counter(outcome(low, high) for low, high in limits)
    return {
        "compared": len(known),
        "mean": geometric_mean(known["gain"].to_numpy()),
        "least": known["gain"].min(),
        "largest": known["gain"].max(),
        **{name: said[name] for name in (FASTER, TIE)},
    }


def _every_problem(study: StudyData, gpu: str, rows: pd.DataFrame) -> Fold:
    fields = [
        field("problem", lambda row: wording.problem(row, study.problem_columns)),
        field("chosen among", "design"),
        field("fastest of these", "part"),
        field("fastest of all", "whole"),
        field("gain", "gain", decimals(3)),
        field("95 % interval", lambda row: wording.interval((row["low"], row["high"]))),
    ]
    made = table_of(f"Gain over parts of every problem on {gpu}", fields, rows)
    return Fold(f"Every problem on {gpu}", [made])
