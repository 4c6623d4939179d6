"""Gains in pairs: over the usual choice, the baseline, parts of the candidates, and libraries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, product
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.robust import EQUAL, LEAST_ROUNDS, OUTCOMES, Ratio, outcome
from launchwise.experiment.method import Confirmation
from launchwise.learning.features import Domain
from launchwise.learning.merit import FEWEST, geometric_mean
from launchwise.measuring.pairs.present_usual import ratio_of_rounds
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Section, Text
from launchwise.report.fields import (
    by_key,
    decimals,
    field,
    file_of,
    grouped,
    percents,
    significant,
    table_of,
)
from launchwise.report.numbers import contests, records
from launchwise.report.pages.index_page import tuning_gains
from launchwise.report.pages.sweep_health import gpu_minutes
from launchwise.report.study_tables import StudyData
from launchwise.tables.measurements import with_role
from launchwise.tables.rows import Z95, row_numbers

FASTEST, USUAL, BASELINE = "fastest", "usual choice", "baseline"

NOTE = (
    "Configurations ran in turn on one card, in random order, libraries in the same rounds at the "
    "same precision. A gain is the median over rounds of the other's time divided by that of the "
    "fastest of the sweep, which chose before, or of the usual choice; where these are one "
    "configuration, it is 1. But for libraries, problems count where the usual choice and today's "
    "fastest ran; a design has its fastest row. Discarded: SM clocks differ by more than "
    f"{100 * Confirmation().clock_tolerance:g} %, or heat or a weak supply held the card back; a "
    "power cap lowers the clocks of both. Intervals (95 %) hold another visit, over libraries "
    f"these rounds alone, of {LEAST_ROUNDS} rounds or more. A tie lies within {100 * EQUAL:g} %. "
    "One timer took all rounds of a problem: events hold the host's launch, replayed graphs do not."
)

OVERVIEW = [
    field("GPU", "gpu"),
    field("gain of", "of"),
    field("over", "over"),
    field("problems", "compared", wording.count, "compared"),
    *grouped(
        "gain",
        field("mean", "mean", wording.fixed, "geometric"),
        field("least", "least", wording.fixed),
        field("largest", "largest", wording.fixed),
    ),
    *(field(name, name, wording.count, "problems") for name in OUTCOMES),
    field("discarded", "thrown", wording.percent, "% of pairs"),
    field("under a power cap", "capped", percents(0), "% of problems"),
    field("failed", "failed", wording.count, "problems"),
    field("sweep paid after", "paid", wording.count, "launches, each problem as often"),
]

EVERY = [
    field("gain of", "of", detail=itemgetter("configuration")),
    field("over", "over", detail=itemgetter("other")),
    field("gain", "gain", decimals(3)),
    field("95 % interval", itemgetter("gain_low", "gain_high"), wording.interval),
    field("verdict", "verdict"),
    field("rounds", "rounds", wording.count, "kept"),
    field("discarded", "thrown", wording.count, "pairs"),
    field("timer", "timer"),
    field("remark", "remark"),
]
"""After the GPU and the problem's parameters."""

Record = Mapping[Any, Any]


def gains_in_pairs(study: StudyData) -> Section | None:
    """A row per GPU and comparison, and every problem in folds; None where nothing ran in pairs."""
    overview: list[dict[str, Any]] = []
    listed: list[dict[str, Any]] = []
    for gpu in dict.fromkeys([*study.pairs, *study.peers]):
        rows = [
            *_over_choices(study, gpu),
            *_over_designs(study, gpu),
            *_over_libraries(study, gpu),
        ]
        overview += _overview(study, gpu, rows)
        # The fastest over the baseline is the same configuration once more.
        listed += [{**row, "gpu": gpu} for row in rows if row["over"] != BASELINE]
    if not overview:
        return None
    problem = [field(name, f"problem {name}") for name in study.problem_columns]
    rows_table = table_of("Every gain in pairs", [field("GPU", "gpu"), *problem, *EVERY], listed)
    every = file_of(f"data/{study.name}.pairs.csv", rows_table)
    caption = "Gains in pairs, over every problem that ran so"
    caption += "; the overview page has test problems alone" if tuning_gains(study) else ""
    table = table_of(caption, OVERVIEW, overview)
    found: list[Block] = [table, Text(NOTE, "note"), *back_to_back(study), every]
    return Section(f"{study.name}-pairs", "Gains in pairs", found)


def _overview(study: StudyData, gpu: str, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    sweep_ms = 60e3 * (gpu_minutes(study.sweeps[gpu]) or np.nan)
    for (of, over), group in groupby(rows, itemgetter("of", "over")):
        members = pd.DataFrame(list(group))
        known = members[members["gain"].notna()]
        said = Counter(known["verdict"])
        tried = (members["rounds"] + members["thrown"]).sum()
        # Over the usual choice and the baseline: what a launch saves, ms.
        saved = known["saved_ms"].mean() if over in (USUAL, BASELINE) else 0.0
        yield {
            "paid": np.ceil(sweep_ms / saved) if saved > 0 else None,
            **{"gpu": gpu, "of": of, "over": over, "compared": len(known)},
            "mean": geometric_mean(known["gain"].to_numpy()),
            "least": known["gain"].min(),
            "largest": known["gain"].max(),
            **{name: said[name] for name in OUTCOMES},
            "thrown": members["thrown"].sum() / tried if tried else float("nan"),
            "capped": known["capped"].mean(),
            "failed": len(members) - len(known),
        }


def _row(study: StudyData, row: Record, ratio: str, **said: str) -> dict[str, Any]:
    """A comparison at a problem; ``ratio`` names the column of its gain."""
    gain, low, high = (float(row[f"{ratio}{end}"]) for end in ("", "_low", "_high"))
    return {
        **{f"problem {name}": row[name] for name in study.problem_columns},
        **{"gain": gain, "gain_low": low, "gain_high": high},
        "saved_ms": row["time_ms"] * (gain - 1),
        "verdict": MISSING if np.isnan(gain) else outcome(low, high),
        "rounds": row["rounds"] - row["thrown"],
        "thrown": row["thrown"],
        "timer": row["timer"],
        "capped": "sw_power_cap" in str(row["throttle"]).split("+"),
        **{"configuration": "", "other": "", "remark": "", **said},
    }


def _over_choices(study: StudyData, gpu: str) -> Iterator[dict[str, Any]]:
    """The sweep's fastest of each problem over the usual choice, then over the baseline."""
    if gpu not in study.pairs:
        return
    rows = records(contests(study, gpu).sort_values(study.problem_columns, kind="stable"))
    for over, ratio in ((USUAL, "gain"), (BASELINE, "improvement")):
        for row in rows:
            name = wording.configuration(row, study.spec)
            yield _row(study, row, ratio, of=FASTEST, over=over, configuration=name)


def _over_designs(study: StudyData, gpu: str) -> Iterator[dict[str, Any]]:
    """The fastest of all over the fastest of each design that has a configuration there."""
    if gpu not in study.pairs or not study.settings.designs:
        return
    pairs, domain = study.pairs[gpu], Domain(study.spec, study.profiles)
    numbers = row_numbers(pairs, study.problem_columns, ordered=True)
    pairs = pairs.assign(problem=numbers, row=range(len(pairs)), error=_errors(study, gpu))
    ran = pairs[(pairs["status"] == "ok") & (pairs["rounds"] > 0) & pairs["time_ms"].notna()]
    members = dict(list(pairs[["problem", "throttle"]].groupby("problem")))
    best = ran.index.isin(contests(study, gpu).index)
    wholes = by_key(ran[best].drop_duplicates("problem"), "problem")
    # A row that was disturbed since the sweep is no measure of its design.
    ran = ran.sort_values("time_ms", kind="stable")
    name = wording.namer(study.spec)
    for design in study.settings.designs.values():
        own = ran[domain.is_of(ran, design.candidates, design.constraints)]
        parts = by_key(own.drop_duplicates("problem"), "problem")
        for problem in sorted(wholes.keys() & parts):
            part, whole = parts[problem], wholes[problem]
            ratio = _ratio(part, whole, members[problem])
            said = {"configuration": name(whole), "other": name(part)}
            row = {**whole, **ratio, "rounds": whole["rounds"]}
            yield _row(study, row, "gain", of=FASTEST, over=design.title, **said)


def _errors(study: StudyData, gpu: str) -> np.ndarray:
    """Error between visits of each row in pairs: float64, shape (rows,); 0 where none is known."""
    keys = [*study.problem_columns, *study.spec.tunable_columns]
    known = study.sweeps[gpu][[*keys, "error"]]
    found = study.pairs[gpu][keys].merge(known, on=keys, how="left")
    return found["error"].fillna(0.0).to_numpy(dtype=float)


def _ratio(part: Record, whole: Record, members: pd.DataFrame) -> dict[str, float]:
    """The ratio of two rows in the same rounds; its limits hold another visit, too."""
    ratio, reach = Ratio(1.0, 1.0, 1.0, whole["rounds"], 0), 1.0
    if part["row"] != whole["row"]:
        ratio = ratio_of_rounds(part, whole, members, Confirmation().clock_tolerance)
        reach = float(np.exp(Z95 * np.hypot(part["error"], whole["error"])))
    low, high = min(ratio.low, ratio.value / reach), max(ratio.high, ratio.value * reach)
    return {"gain": ratio.value, "gain_low": low, "gain_high": high, "thrown": ratio.thrown}


def _over_libraries(study: StudyData, gpu: str) -> Iterator[dict[str, Any]]:
    """The fastest, and the usual choice, over each library; kinds of problems apart."""
    if gpu not in study.peers:
        return
    rows = study.peers[gpu].sort_values(study.problem_columns, kind="stable")
    kinds, value = study.settings.peer_kinds.items(), study.spec.value
    kind = [
        next((name for name, when in kinds if value(when, problem)), "")
        for problem in records(rows[study.problem_columns])
    ]
    for ((peer, name), own), (of, ratio) in product(
        rows.groupby(["peer", np.array(kind, dtype=object)]),
        ((FASTEST, "speedup"), (USUAL, "usual_speedup")),
    ):
        version = next((each for each in own["version"] if each), "")
        over = f"{peer} ({version}), {name}" if name else f"{peer} ({version})"
        for row in records(own):
            time = f"{wording.fixed(row['time_ms'])} ms"
            yield _row(study, row, ratio, of=of, over=over, other=time, remark=row["reason"])


LAUNCHES_NOTE = (
    "Back to back, launches follow each other for a few tenths of a second: the card may reach its "
    "power limit and lower its clocks, and L2 holds what the launch before left. The fastest is "
    "that of the sweep. Gains and energy, that of the rival divided by that of the fastest, are "
    "geometric means over the same problems: those of which both have an energy, on one card in "
    f"one visit, {FEWEST} or more."
)

VISIT = pd.Timedelta("12h")  # Within which rows of one card are of one visit
APART = "have no fastest that ran back to back on their card in their visit: not compared"

FIELDS = [
    field("GPU", "gpu"),
    field("fastest over", "over"),
    field("problems", "problems", wording.count),
    field("gain alone", "alone", wording.fixed),
    *grouped(
        "back to back",
        field("gain", "gain", wording.fixed),
        field("energy", "energy", wording.fixed, "ratio"),
        field("time of the fastest", "time", wording.fixed, "of that alone, median"),
        field("its power", "power_w", wording.count, "W, median"),
        field("its energy", "energy_j", significant(3), "J per run, median"),
        field("faster alone, slower there", "turned", wording.count, "problems"),
    ),
]


def back_to_back(study: StudyData) -> list[Block]:
    """A row per GPU and rival that ran back to back beside the fastest, and libraries that ran so
    elsewhere; nothing without any row."""
    listed, said, columns = list[dict[str, Any]](), list[str](), study.problem_columns
    for gpu, pairs in study.pairs.items():
        rows = relative(pairs, pairs, columns)
        rivals = {
            over: rows[with_role(rows, role) & ~with_role(rows, "best")]
            for over, role in ((USUAL, "usual"), (BASELINE, "baseline"))
        }
        if (peers := study.peers.get(gpu)) is not None:
            beside = relative(peers, pairs, columns)
            rivals |= {str(name): own for name, own in beside.groupby("peer")}
            if apart := int(peers["energy_j"].notna().sum()) - len(beside):
                said.append(f"{gpu}: {wording.plural(apart, 'row')} of libraries {APART}.")
        rivals = {over: own for over, own in rivals.items() if len(own) >= FEWEST}
        listed += [{"gpu": gpu, "over": over, **_ratios(own)} for over, own in rivals.items()]
    if not listed:
        return []
    table = table_of("Launches back to back", FIELDS, listed)
    return [table, Text(" ".join([LAUNCHES_NOTE, *said]), "note")]


def relative(rows: pd.DataFrame, pairs: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Rows that have an energy, with ``time`` (of a launch alone), ``sustained`` and ``energy``
    relative to the sweep's fastest in pairs at the same problem, where that has one, too, of the
    same card (:data:`VISIT`): another draws another power and takes another time."""
    best = pairs[with_role(pairs, "best")].drop_duplicates(list(columns))
    names = {"time": "time_ms", "sustained": "sustained_ms", "energy": "energy_j"}
    keys = [*columns, "card"]
    read = [*keys, *names.values(), "measured_at"]
    both = rows.merge(best[read], on=keys, suffixes=("", "_of_best"))
    own, best_at = (pd.to_datetime(both[f"measured_at{end}"]) for end in ("", "_of_best"))
    both = both[(own - best_at).abs() <= VISIT]
    ratios = {name: both[one] / both[f"{one}_of_best"] for name, one in names.items()}
    return both.assign(**ratios).dropna(subset=[*names])


def _ratios(both: pd.DataFrame) -> dict[str, Any]:
    """Of the fastest and a rival, a row per problem."""
    alone, there, energy = (both[name] for name in ("time", "sustained", "energy"))
    own_ms, own_j = both["sustained_ms_of_best"], both["energy_j_of_best"]
    return {
        "problems": len(both),
        "alone": geometric_mean(alone.to_numpy()),
        "gain": geometric_mean(there.to_numpy()),
        "energy": geometric_mean(energy.to_numpy()),
        "time": (own_ms / both["time_ms_of_best"]).median(),
        "power_w": (1e3 * own_j / own_ms).median(),
        "energy_j": own_j.median(),
        "turned": int(((alone > 1 + EQUAL) & (there < 1 - EQUAL)).sum()),
    }
