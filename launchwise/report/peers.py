"""The study's fastest configurations beside other people's libraries, in the same pairs."""

from __future__ import annotations

from collections import Counter

import pandas as pd

from launchwise.base.paired import SLOWER, TIE, UNDECIDED, outcome
from launchwise.learning.merit import geometric_mean
from launchwise.report import wording
from launchwise.report.blocks import Block, Column, Fold, Section, Text, table
from launchwise.report.fields import field, table_of
from launchwise.report.pairs import TIES
from launchwise.report.study import StudyData

NOTE = (
    "The library solves the same problems in the same rounds, at the same precision, and its "
    "result is checked like all others. Speed-up: the library's time divided by that of the "
    f"fastest configuration of the sweep, or of the usual choice. {TIES}"
)


def section(study: StudyData) -> Section | None:
    """Speed-ups over libraries, a row a GPU and library; None where none was compared."""
    compared = {gpu: rows for gpu, rows in study.peers.items() if len(rows)}
    if not compared:
        return None
    columns = [
        Column("GPU", number=False),
        Column("library", number=False),
        Column("problems", "compared"),
        Column("fastest", "geometric mean", group="speed-up"),
        Column("least", group="speed-up"),
        Column("usual choice", "geometric mean", group="speed-up"),
        Column("library faster", "problems"),
        Column("tie", "problems"),
        Column("undecided", "problems"),
        Column("failed", "problems"),
    ]
    rows = [
        _row(gpu, name, members)
        for gpu, found in compared.items()
        for name, members in found.groupby("peer", sort=False)
    ]
    found: list[Block] = [Text(NOTE, "note"), table("Comparison with libraries", columns, rows)]
    found += [_every_problem(study, gpu, rows) for gpu, rows in compared.items()]
    return Section(f"{study.name}-peers", "Comparison with libraries", found)


def _row(gpu: str, name: object, rows: pd.DataFrame) -> list[str]:
    known = rows[rows["speedup"].notna()]
    version = next((each for each in rows["version"] if each), "")
    limits = zip(known["speedup_low"], known["speedup_high"], strict=True)
    said = Counter(outcome(low, high) for low, high in limits)
    usual = known["usual_speedup"].dropna()
    return [
        gpu,
        f"{name} ({version})" if version else str(name),
        wording.count(len(known)),
        wording.fixed(geometric_mean(known["speedup"].to_numpy())) if len(known) else "–",
        wording.fixed(known["speedup"].min()) if len(known) else "–",
        wording.fixed(geometric_mean(usual.to_numpy())) if len(usual) else "–",
        wording.count(said[SLOWER]),
        wording.count(said[TIE]),
        wording.count(said[UNDECIDED]),
        wording.count(int((rows["status"] != "ok").sum())),
    ]


def _every_problem(study: StudyData, gpu: str, rows: pd.DataFrame) -> Fold:
    fields = [
        field("problem", lambda row: wording.problem(row, study.problem_columns)),
        field("library", "peer"),
        field("time", "time_ms", wording.fixed, "ms"),
        field("speed-up", "speedup", wording.fixed, "of the fastest"),
        field(
            "95 % interval",
            lambda row: wording.interval((row["speedup_low"], row["speedup_high"])),
            number=True,
        ),
        field("speed-up", "usual_speedup", wording.fixed, "of the usual choice"),
        field("remark", "reason"),
    ]
    ordered = rows.sort_values([*study.problem_columns, "peer"], kind="stable")
    listed = table_of(f"Libraries on {gpu}", fields, ordered)
    return Fold(f"{gpu}: every problem, compared with libraries", [listed])
