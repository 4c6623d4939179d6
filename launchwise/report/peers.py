"""The study's fastest configurations beside other people's libraries, in the same pairs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pandas as pd

from launchwise.base.paired import SLOWER, TIE, UNDECIDED, outcome
from launchwise.learning.merit import geometric_mean
from launchwise.report import wording
from launchwise.report.blocks import Block, Fold, Section, Text
from launchwise.report.fields import field, grouped, table_of
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
    fields = [
        field("GPU", "gpu"),
        field("library", "library"),
        field("problems", "compared", wording.count, "compared"),
        *grouped(
            "speed-up",
            field("fastest", "fastest", wording.fixed, "geometric mean"),
            field("least", "least", wording.fixed),
            field("usual choice", "usual", wording.fixed, "geometric mean"),
        ),
        field("library faster", SLOWER, wording.count, "problems"),
        field("tie", TIE, wording.count, "problems"),
        field("undecided", UNDECIDED, wording.count, "problems"),
        field("failed", "failed", wording.count, "problems"),
    ]
    rows = [
        {"gpu": gpu, **_figures(name, members)}
        for gpu, found in compared.items()
        for name, members in found.groupby("peer", sort=False)
    ]
    found: list[Block] = [Text(NOTE, "note"), table_of("Comparison with libraries", fields, rows)]
    found += [_every_problem(study, gpu, rows) for gpu, rows in compared.items()]
    return Section(f"{study.name}-peers", "Comparison with libraries", found)


def _figures(name: object, rows: pd.DataFrame) -> dict[str, Any]:
    known = rows[rows["speedup"].notna()]
    version = next((each for each in rows["version"] if each), "")
    limits = zip(known["speedup_low"], known["speedup_high"], strict=True)
    said = Counter(outcome(low, high) for low, high in limits)
    return {
        "library": f"{name} ({version})" if version else str(name),
        "compared": len(known),
        "fastest": geometric_mean(known["speedup"].to_numpy()),
        "least": known["speedup"].min(),
        "usual": geometric_mean(known["usual_speedup"].dropna().to_numpy()),
        **{name: said[name] for name in (SLOWER, TIE, UNDECIDED)},
        "failed": int((rows["status"] != "ok").sum()),
    }


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
