"""Gains of the fastest configurations in pairs, beside gains of single rows of a sweep."""

from __future__ import annotations

from collections import Counter

import pandas as pd

from launchwise.base.paired import EQUAL, FASTER, SLOWER, TIE, UNDECIDED, outcome
from launchwise.learning.merit import geometric_mean
from launchwise.report import wording
from launchwise.report.blocks import Block, Column, Fold, Section, Text, table
from launchwise.report.numbers import records
from launchwise.report.study import StudyData
from launchwise.tables.pairs import NARROW, fastest_in_pairs, gains_known, with_role

USUAL = "usual choice"
"""Verdict where nothing was faster than the usual choice itself."""

TIES = (
    f"A tie is a 95 % interval that holds 1 and lies within {100 * EQUAL:g} % of it; a wider one "
    "that holds 1 leaves it undecided."
)

NOTE = (
    "Configurations ran in turn on one card, in random order. A gain is the median over rounds of "
    "the usual choice's time divided by their own; pairs under different SM clocks, or while heat "
    f"or a weak supply of power held the card back, are discarded. {TIES} "
    "Sweep gain / paired gain: the gain from two rows of the sweep, divided by the gain in pairs."
)


def section(study: StudyData) -> Section | None:
    """Gains in pairs, a row a GPU; None where nothing was compared in pairs."""
    if not study.pairs:
        return None
    columns = [
        Column("GPU", number=False),
        Column("problems", "compared"),
        Column("fastest", "× usual", group="geometric mean of gains"),
        Column("fastest", "× baseline", group="geometric mean of gains"),
        Column("faster", "problems", group="relative to the usual choice"),
        Column("tie", "or the same", group="relative to the usual choice"),
        Column("undecided", "problems", group="relative to the usual choice"),
        Column("known", f"% to ±{100 * NARROW:g} %", group="relative to the usual choice"),
        Column("discarded", "% of pairs"),
        Column("median", group="sweep gain / paired gain"),
        Column("largest", group="sweep gain / paired gain"),
    ]
    rows = [_row(study, gpu, pairs) for gpu, pairs in study.pairs.items()]
    found: list[Block] = [Text(NOTE, "note"), table("Gains in pairs", columns, rows)]
    if missing := [gpu for gpu in study.gpus if gpu not in study.pairs]:
        found.append(
            Text(
                f"Without pairs, so that gains rest on single rows of the sweep: "
                f"{wording.listed(missing)}.",
                "note",
            )
        )
    found += [_every_problem(study, gpu, pairs) for gpu, pairs in study.pairs.items()]
    return Section(f"{study.name}-pairs", "Gains in pairs", found)


def _row(study: StudyData, gpu: str, pairs: pd.DataFrame) -> list[str]:
    best = fastest_in_pairs(pairs, study.problem_columns)
    known = gains_known(pairs, study.problem_columns)
    said = Counter(verdict(row) for row in records(best))
    ratio = _sweep_over_pairs(study, pairs)
    tried = pairs["rounds"].sum()
    return [
        gpu,
        wording.count(len(best)),
        wording.fixed(geometric_mean(best["gain"].to_numpy()), 3),
        wording.fixed(geometric_mean(best["improvement"].dropna().to_numpy()), 3),
        wording.count(said[FASTER]),
        wording.count(said[TIE] + said[USUAL]),
        wording.count(said[UNDECIDED] + said[SLOWER]),
        wording.percent(known.mean(), 0) if len(known) else "–",
        wording.percent(pairs["thrown"].sum() / tried if tried else float("nan")),
        wording.fixed(ratio.median()) if len(ratio) else "–",
        wording.fixed(ratio.max()) if len(ratio) else "–",
    ]


def _sweep_over_pairs(study: StudyData, pairs: pd.DataFrame) -> pd.Series:
    """Gain of the sweep's fastest over the usual choice by its rows, divided by that in pairs."""
    columns = study.problem_columns
    usual = pairs.loc[with_role(pairs, "usual"), [*columns, "sweep_ms"]]
    best = pairs[with_role(pairs, "best") & ~with_role(pairs, "usual") & pairs["gain"].notna()]
    both = best.merge(usual, on=columns, suffixes=("", "_of_usual"))
    return (both["sweep_ms_of_usual"] / both["sweep_ms"] / both["gain"]).dropna()


def _every_problem(study: StudyData, gpu: str, pairs: pd.DataFrame) -> Fold:
    columns = [
        Column("problem", number=False),
        Column("fastest in pairs", number=False),
        Column("gain", "× usual"),
        Column("95 % interval"),
        Column("verdict", number=False),
        Column("rounds", "kept"),
        Column("discarded", "pairs"),
    ]
    best = fastest_in_pairs(pairs, study.problem_columns)
    rows = [
        [
            wording.problem(row, study.problem_columns),
            wording.configuration(row, study.spec),
            wording.fixed(row["gain"], 3),
            wording.interval((row["gain_low"], row["gain_high"])),
            verdict(row),
            wording.count(row["rounds"] - row["thrown"]),
            wording.count(row["thrown"]),
        ]
        for row in records(best.sort_values(study.problem_columns, kind="stable"))
    ]
    title = f"{gpu}: every problem in pairs"
    return Fold(title, [table(f"Fastest in pairs on {gpu}", columns, rows)])


def verdict(row: dict[str, object]) -> str:
    """Whether a configuration is faster than the usual choice, in words."""
    if "usual" in str(row["roles"]).split("+"):
        return USUAL
    return outcome(float(str(row["gain_low"])), float(str(row["gain_high"])))
