"""Gains in pairs: over the usual choice, over parts of the candidates, over libraries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

import pandas as pd

from launchwise.base.paired import EQUAL, FASTER, SLOWER, TIE, UNDECIDED, Ratio, outcome
from launchwise.experiment.method import Confirmation
from launchwise.learning.features import Domain
from launchwise.learning.merit import geometric_mean
from launchwise.measuring.pairs.present_usual import ratio_of_rounds
from launchwise.report import wording
from launchwise.report.blocks import Block, Fold, Section, Text
from launchwise.report.fields import Field, by_key, field, grouped, percents, table_of
from launchwise.report.numbers import records
from launchwise.report.study import StudyData
from launchwise.tables.pairs import NARROW, fastest_in_pairs, gains_known, with_role
from launchwise.tables.rows import row_numbers

USUAL = "usual choice"
"""Verdict where nothing was faster than the usual choice itself."""

TIES = (
    f"A tie is a 95 % interval that holds 1 and lies within {100 * EQUAL:g} % of it; a wider one "
    "that holds 1 leaves it undecided."
)

PAIRS_NOTE = (
    "Configurations ran in turn on one card, in random order. A gain is the median over rounds of "
    "the usual choice's time divided by their own; pairs under different SM clocks, or while heat "
    f"or a weak supply of power held the card back, are discarded. {TIES} "
    "Sweep gain / paired gain: the gain from two rows of the sweep, divided by the gain in pairs."
)


def gains_in_pairs(study: StudyData) -> Section | None:
    """Gains in pairs, a row a GPU; None where nothing was compared in pairs."""
    if not study.pairs:
        return None
    fields = [
        field("GPU", "gpu"),
        field("problems", "compared", wording.count, "compared"),
        *grouped(
            "geometric mean of gains",
            field("fastest", "gain", wording.fixed, "× usual"),
            field("fastest", "improvement", wording.fixed, "× baseline"),
        ),
        *grouped(
            "relative to the usual choice",
            field("faster", "faster", wording.count, "problems"),
            field("tie", "tie", wording.count, "or the same"),
            field("undecided", "undecided", wording.count, "problems"),
            field("known", "known", percents(0), f"% to ±{100 * NARROW:g} %"),
        ),
        field("discarded", "thrown", wording.percent, "% of pairs"),
        *grouped(
            "sweep gain / paired gain",
            field("median", "median", wording.fixed),
            field("largest", "largest", wording.fixed),
        ),
    ]
    rows = [{"gpu": gpu, **_of_pairs(study, pairs)} for gpu, pairs in study.pairs.items()]
    found: list[Block] = [Text(PAIRS_NOTE, "note"), table_of("Gains in pairs", fields, rows)]
    found += [_every_pair(study, gpu, pairs) for gpu, pairs in study.pairs.items()]
    return Section(f"{study.name}-pairs", "Gains in pairs", found)


def _of_pairs(study: StudyData, pairs: pd.DataFrame) -> dict[str, Any]:
    best = fastest_in_pairs(pairs, study.problem_columns)
    said = Counter(verdict(row) for row in records(best))
    ratio = _sweep_over_pairs(study, pairs)
    tried = pairs["rounds"].sum()
    return {
        "compared": len(best),
        "gain": geometric_mean(best["gain"].to_numpy()),
        "improvement": geometric_mean(best["improvement"].dropna().to_numpy()),
        "faster": said[FASTER],
        "tie": said[TIE] + said[USUAL],
        "undecided": said[UNDECIDED] + said[SLOWER],
        "known": gains_known(pairs, study.problem_columns).mean(),
        "thrown": pairs["thrown"].sum() / tried if tried else float("nan"),
        "median": ratio.median(),
        "largest": ratio.max(),
    }


def _of_ratios(rows: pd.DataFrame, ratio: str) -> dict[str, Any]:
    """Figures of the ratios that are known: their number, mean, ends, and outcomes."""
    known = rows[rows[ratio].notna()]
    limits = zip(known[f"{ratio}_low"], known[f"{ratio}_high"], strict=True)
    said = Counter(outcome(low, high) for low, high in limits)
    return {
        "compared": len(known),
        "mean": geometric_mean(known[ratio].to_numpy()),
        "least": known[ratio].min(),
        "largest": known[ratio].max(),
        **{name: said[name] for name in (FASTER, SLOWER, TIE, UNDECIDED)},
    }


def _interval(ratio: str) -> Field:
    ends = itemgetter(f"{ratio}_low", f"{ratio}_high")
    return field("95 % interval", ends, wording.interval)


def _sweep_over_pairs(study: StudyData, pairs: pd.DataFrame) -> pd.Series:
    """Gain of the sweep's fastest over the usual choice by its rows, divided by that in pairs."""
    columns = study.problem_columns
    usual = pairs.loc[with_role(pairs, "usual"), [*columns, "sweep_ms"]]
    best = pairs[with_role(pairs, "best") & ~with_role(pairs, "usual") & pairs["gain"].notna()]
    both = best.merge(usual, on=columns, suffixes=("", "_of_usual"))
    return (both["sweep_ms_of_usual"] / both["sweep_ms"] / both["gain"]).dropna()


def _every_pair(study: StudyData, gpu: str, pairs: pd.DataFrame) -> Fold:
    fields = [
        field("problem", lambda row: wording.problem(row, study.problem_columns)),
        field("fastest in pairs", lambda row: wording.configuration(row, study.spec)),
        field("gain", "gain", wording.fixed, "× usual"),
        _interval("gain"),
        field("verdict", verdict),
        field("rounds", lambda row: row["rounds"] - row["thrown"], wording.count, "kept"),
        field("discarded", "thrown", wording.count, "pairs"),
    ]
    best = fastest_in_pairs(pairs, study.problem_columns)
    ordered = best.sort_values(study.problem_columns, kind="stable")
    title = f"{gpu}: every problem in pairs"
    return Fold(title, [table_of(f"Fastest in pairs on {gpu}", fields, ordered)])


def verdict(row: dict[str, object]) -> str:
    """Whether a configuration is faster than the usual choice, in words."""
    if "usual" in str(row["roles"]).split("+"):
        return USUAL
    return outcome(float(str(row["gain_low"])), float(str(row["gain_high"])))


Record = Mapping[Any, Any]

PARTS_NOTE = (
    "The fastest configuration of the whole sweep and the fastest of each part ran in turn on one "
    f"card. Gain: the time of the part's fastest divided by that of the fastest of all. {TIES}"
)


def gains_over_parts(study: StudyData) -> Section | None:
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
        {"gpu": gpu, "design": title, **_of_ratios(members, "gain")}
        for gpu, found in gains.items()
        for title, members in found.groupby("design", sort=False)
    ]
    blocks: list[Block] = [Text(PARTS_NOTE, "note"), table_of("Gain over parts", fields, rows)]
    blocks += [_every_part(study, gpu, rows) for gpu, rows in gains.items()]
    return Section(f"{study.name}-designs", "What choosing everything at once gains", blocks)


def gains_over_designs(study: StudyData, gpu: str) -> pd.DataFrame:
    """Gain of the fastest of all over the fastest of each design, in pairs.

    Returns
    -------
    pandas.DataFrame
        A row for each problem and design that has a configuration there: the problem's parameters,
        ``design`` (title), ``part`` and ``whole`` (names of the configurations), ``part_ms``,
        ``whole_ms`` (medians over rounds), ``gain``, ``gain_low`` and ``gain_high`` (its 95 %
        interval; NaN where no pair is left).
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
        "gain_low": ratio.low,
        "gain_high": ratio.high,
    }


def _every_part(study: StudyData, gpu: str, rows: pd.DataFrame) -> Fold:
    fields = [
        field("problem", lambda row: wording.problem(row, study.problem_columns)),
        field("chosen among", "design"),
        field("fastest of these", "part"),
        field("fastest of all", "whole"),
        field("gain", "gain", wording.fixed),
        _interval("gain"),
    ]
    made = table_of(f"Gain over parts of every problem on {gpu}", fields, rows)
    return Fold(f"Every problem on {gpu}", [made])


LIBRARIES_NOTE = (
    "The library solves the same problems in the same rounds, at the same precision, and its "
    "result is checked like all others. Speed-up: the library's time divided by that of the "
    f"fastest configuration of the sweep, or of the usual choice. {TIES}"
)


def gains_over_libraries(study: StudyData) -> Section | None:
    """Speed-ups over libraries, a row a GPU and library; None where none was compared."""
    compared = {gpu: rows for gpu, rows in study.peers.items() if len(rows)}
    if not compared:
        return None
    fields = [
        field("GPU", "gpu"),
        field("library", "library"),
        field("problems", "compared", wording.count, "compared"),
        *grouped(
            "speed-up",
            field("fastest", "mean", wording.fixed, "geometric mean"),
            field("least", "least", wording.fixed),
            field("usual choice", "usual", wording.fixed, "geometric mean"),
        ),
        field("library faster", SLOWER, wording.count, "problems"),
        field("tie", TIE, wording.count, "problems"),
        field("undecided", UNDECIDED, wording.count, "problems"),
        field("failed", "failed", wording.count, "problems"),
    ]
    rows = [
        {"gpu": gpu, **_of_library(name, members)}
        for gpu, found in compared.items()
        for name, members in found.groupby("peer", sort=False)
    ]
    found: list[Block] = [
        Text(LIBRARIES_NOTE, "note"),
        table_of("Comparison with libraries", fields, rows),
    ]
    found += [_every_peer(study, gpu, rows) for gpu, rows in compared.items()]
    return Section(f"{study.name}-peers", "Comparison with libraries", found)


def _of_library(name: object, rows: pd.DataFrame) -> dict[str, Any]:
    known = rows[rows["speedup"].notna()]
    version = next((each for each in rows["version"] if each), "")
    return {
        **_of_ratios(rows, "speedup"),
        "library": f"{name} ({version})" if version else str(name),
        "usual": geometric_mean(known["usual_speedup"].dropna().to_numpy()),
        "failed": int((rows["status"] != "ok").sum()),
    }


def _every_peer(study: StudyData, gpu: str, rows: pd.DataFrame) -> Fold:
    fields = [
        field("problem", lambda row: wording.problem(row, study.problem_columns)),
        field("library", "peer"),
        field("time", "time_ms", wording.fixed, "ms"),
        field("speed-up", "speedup", wording.fixed, "of the fastest"),
        _interval("speedup"),
        field("speed-up", "usual_speedup", wording.fixed, "of the usual choice"),
        field("remark", "reason"),
    ]
    ordered = rows.sort_values([*study.problem_columns, "peer"], kind="stable")
    listed = table_of(f"Libraries on {gpu}", fields, ordered)
    return Fold(f"{gpu}: every problem, compared with libraries", [listed])
