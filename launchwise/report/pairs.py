"""Gains of the fastest configurations in pairs, beside gains of single rows of a sweep."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pandas as pd

from launchwise.base.paired import EQUAL, FASTER, SLOWER, TIE, UNDECIDED, outcome
from launchwise.learning.merit import geometric_mean
from launchwise.report import wording
from launchwise.report.blocks import Block, Fold, Section, Text
from launchwise.report.fields import field, grouped, table_of
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
            field("known", "known", _whole_percent, f"% to ±{100 * NARROW:g} %"),
        ),
        field("discarded", "thrown", wording.percent, "% of pairs"),
        *grouped(
            "sweep gain / paired gain",
            field("median", "median", wording.fixed),
            field("largest", "largest", wording.fixed),
        ),
    ]
    rows = [{"gpu": gpu, **_figures(study, pairs)} for gpu, pairs in study.pairs.items()]
    found: list[Block] = [Text(NOTE, "note"), table_of("Gains in pairs", fields, rows)]
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


def _figures(study: StudyData, pairs: pd.DataFrame) -> dict[str, Any]:
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


def _whole_percent(share: float) -> str:
    return wording.percent(share, 0)


def _sweep_over_pairs(study: StudyData, pairs: pd.DataFrame) -> pd.Series:
    """Gain of the sweep's fastest over the usual choice by its rows, divided by that in pairs."""
    columns = study.problem_columns
    usual = pairs.loc[with_role(pairs, "usual"), [*columns, "sweep_ms"]]
    best = pairs[with_role(pairs, "best") & ~with_role(pairs, "usual") & pairs["gain"].notna()]
    both = best.merge(usual, on=columns, suffixes=("", "_of_usual"))
    return (both["sweep_ms_of_usual"] / both["sweep_ms"] / both["gain"]).dropna()


def _every_problem(study: StudyData, gpu: str, pairs: pd.DataFrame) -> Fold:
    fields = [
        field("problem", lambda row: wording.problem(row, study.problem_columns)),
        field("fastest in pairs", lambda row: wording.configuration(row, study.spec)),
        field("gain", "gain", wording.fixed, "× usual"),
        field("95 % interval", lambda row: (row["gain_low"], row["gain_high"]), wording.interval),
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
