"""Loss of an optimum borrowed from another GPU or another precision, where both m ran in pairs.

The paper's other cards were not measured here. The cost model predicts the times of every printed m
from their datasheets; stage 2 is the Thomas algorithm. No measured row is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any

import pandas as pd

from launchwise.experiment.published import Records
from launchwise.gpus.profile import GpuProfile
from launchwise.learning.analytical import CostModel
from launchwise.learning.merit import geometric_mean
from launchwise.report import wording
from launchwise.report.blocks import Block, Bullets, Fold, Table, Text
from launchwise.report.fields import (
    FROM_PAPER,
    THEIRS,
    beside,
    by_key,
    decimals,
    field,
    grouped,
    table_of,
)
from launchwise.report.study import StudyData
from launchwise.workloads import space
from launchwise.workloads.parts import Value
from launchwise.workloads.space import configurations, gpu_facts
from launchwise.workloads.spec import Spec

from .series import CHOICE, SIZE, SIZES, SubsystemSeries

CARDS = {"a5000": "RTX A5000", "rtx4080": "RTX 4080"}
"""Cards of table III that the rule of the RTX 2080 Ti was used on."""

SIGNIFICANT = 2.5  # loss (%) above which the paper calls it significant
SMALLEST = 200_000  # rows below which launches and waits decide, which no datasheet tells of

PROBLEM = {"dtype": "float64", "memory": "pinned", "batch": 1}
DESIGN: dict[str, list[Value]] = {
    "variant": ["strided", "strided_scratch"],
    **{name: [0] for name in ("m1", "m2", "m3", "m4", "last_m")},
    "threads": [256],
    "stage2": ["thomas"],
}
"""The published design; m beyond what shared memory holds needs a scratch array here."""


def predicted_losses(study: StudyData, theirs: Records) -> dict[str, pd.DataFrame]:
    """Losses of the paper's rule on each of :data:`CARDS` that is among the described GPUs. A row
    per size of table III that is known: ``n``, ``rule`` (m of the paper's rule), ``best_m`` and
    ``loss_percent`` by prediction; ``their_m`` and ``theirs_percent`` (0 where the table says there
    is no loss, missing where it prints no figure)."""
    known = [record for record in theirs if record["n"] and int(record["n"]) >= SMALLEST]
    return {
        card: _losses(_times(study.spec, card, study.described[card], theirs, known), card, known)
        for card in CARDS
        if known and card in study.described
    }


def _times(
    spec: Spec, card: str, profile: GpuProfile, theirs: Records, known: Records
) -> pd.DataFrame:
    """Predicted time (ms) of every size (rows) and printed m (columns), the faster variant."""
    names = [name for name in theirs[0] if name.startswith("m_")]
    printed: list[Value] = sorted({int(record[name]) for record in theirs for name in names})
    part = space.Part({**DESIGN, CHOICE: printed}, ("streams == published_streams",))
    facts = gpu_facts(profile.model_dump())
    rows = [
        {"gpu": card, **problem, **configuration}
        for record in known
        for problem in [{SIZE: int(record["n"]), **PROBLEM}]
        for configuration in configurations(spec, problem, facts, [part])
    ]
    # The first configuration of a list is the baseline, whatever the part.
    table = pd.DataFrame(rows).query("stage2 == 'thomas'").reset_index(drop=True)
    table["time_ms"] = CostModel(spec, {card: profile}).estimate(table).time_ms
    return table.pivot_table(index=SIZE, columns=CHOICE, values="time_ms", aggfunc="min")


def _losses(times: pd.DataFrame, card: str, known: Records) -> pd.DataFrame:
    rows = []
    for record in known:
        own, rule = times.loc[int(record["n"])], int(record["m_heuristic"])
        printed = record[f"loss_{card}_percent"]
        none = 0.0 if record[f"loss_{card}"] == "none" else None
        rows.append(
            {
                SIZE: int(record["n"]),
                "rule": rule,
                "best_m": min(own.index, key=own.__getitem__),
                "loss_percent": 100 * (own[rule] / own.min() - 1),
                "their_m": int(record[f"m_{card}"]),
                "theirs_percent": float(printed) if printed else none,
            }
        )
    return pd.DataFrame(rows).astype({"theirs_percent": float})


def predicted_transfer(study: StudyData, published: Mapping[str, Records]) -> list[Block]:
    """Both cards' losses by prediction beside the printed ones; nothing without such a card."""
    found = predicted_losses(study, published.get("transfer", []))
    if not found:
        return []
    title = "The paper's rule on its other cards, by prediction and as printed (table III)"
    return [Bullets([_said(*each) for each in found.items()]), Fold(title, [_table(found)])]


def _said(card: str, losses: pd.DataFrame) -> tuple[str, str]:
    both = losses.dropna(subset=["theirs_percent"])
    above = [int((both[name] > SIGNIFICANT).sum()) for name in ("loss_percent", "theirs_percent")]
    # Sizes at which the rule is best by both say nothing of how well a loss is predicted.
    lossy = both[(both["loss_percent"] > 0) | (both["theirs_percent"] > 0)]
    away = (lossy["loss_percent"] - lossy["theirs_percent"]).abs().median()
    same = int((losses["best_m"] == losses["their_m"]).sum())
    return (
        f"{CARDS[card]}, by the cost model:",
        f"the paper's rule loses at most {wording.fixed(both['loss_percent'].max(), 2)} % "
        f"(printed: {wording.fixed(both['theirs_percent'].max(), 2)} %) and more than "
        f"{SIGNIFICANT} % at {above[0]} of {len(both)} sizes (printed: {above[1]}). At the "
        f"{wording.plural(len(lossy), 'size')} with a loss the prediction is "
        f"{wording.fixed(away, 1)} percentage points away in the median. The best {CHOICE} is the "
        f"printed one at {same} of {len(losses)} sizes.",
    )


def _table(found: Mapping[str, pd.DataFrame]) -> Table:
    rules = by_key(next(iter(found.values())), SIZE)
    parts = [([field("paper's rule", "rule", wording.count, CHOICE)], rules)]
    for card, losses in found.items():
        ours = (
            field(f"best {CHOICE}", "best_m", wording.count, "predicted"),
            field("loses", "loss_percent", decimals(2), "%, predicted"),
        )
        theirs = (
            field(f"best {CHOICE}", "their_m", wording.count, "paper"),
            field("loses", "theirs_percent", decimals(2), "%, paper"),
        )
        fields = [*grouped(CARDS[card], *ours), *grouped(CARDS[card], *theirs, role=THEIRS)]
        parts.append((fields, by_key(losses, SIZE)))
    caption = (
        "Times by the cost model from datasheets, stage 2 by the Thomas algorithm on our GPUs' "
        "host; sizes whose number our text of table III has"
    )
    return beside(caption, SIZES, rules, *parts)


def lost(losses: pd.DataFrame) -> dict[str, Any]:
    """A rule used elsewhere, of :meth:`SubsystemSeries.losses`. ``sizes`` have a loss, above
    :data:`SIGNIFICANT` at ``significant`` of them; ``unknown`` sizes have none."""
    known = losses[losses["state"] == ""]
    percent = known["loss_percent"]
    return {
        "sizes": len(known),
        "mean_percent": 100 * (geometric_mean(1 + percent.to_numpy() / 100) - 1),
        "worst_percent": float(percent.max()),
        "worst_size": int(known[SIZE].iloc[int(percent.argmax())]) if len(known) else None,
        "significant": int((percent > SIGNIFICANT).sum()),
        "unknown": len(losses) - len(known),
    }


def transfers(every: Sequence[SubsystemSeries]) -> dict[tuple[str, str, str], pd.DataFrame]:
    """(kind, source, target) -> losses of the source's corrected optima on the target; targets that
    nothing ran in pairs on are left out."""
    return {
        (source.kind, source.gpu, target.gpu): target.losses(source.corrected)
        for source, target in permutations(every, 2)
        if source.kind == target.kind and source.gpu != target.gpu and target.in_pairs
    }


def precisions(every: Sequence[SubsystemSeries]) -> dict[str, pd.DataFrame]:
    """Title of a float32 case -> losses of the corrected optima of its float64 counterpart."""
    double = {case.gpu: case.corrected for case in every if case.dtype == "float64"}
    single = (case for case in every if case.dtype == "float32" and case.gpu in double)
    return {case.title: case.losses(double[case.gpu]) for case in single}


LOST = [
    field("in pairs", "sizes", wording.count, "sizes"),
    field("time lost", "mean_percent", decimals(2), "% (mean)"),
    field("time lost", "worst_percent", decimals(2), "% (worst)"),
    field("worst at", "worst_size", wording.count, "rows"),
    field(f"above {SIGNIFICANT} %", "significant", wording.count, "sizes"),
    field("not in pairs", "unknown", wording.count, "sizes"),
]
UNKNOWN = dict.fromkeys(str(one.value) for one in LOST)


def borrowed(
    study: StudyData, every: Sequence[SubsystemSeries], published: Mapping[str, Records]
) -> list[Block]:
    """Tables on other GPUs and the other precision; none where there is one case only."""
    pairs, single = transfers(every), precisions(every)
    blocks: list[Block] = []
    if pairs:
        blocks.append(_summary(pairs, published))
    blocks += predicted_transfer(study, published)
    if single:
        blocks.append(_precision(single, published))
    if blocks:
        blocks.append(Text(NOTE, "note"))
    return blocks


NOTE = (
    "A loss counts where the rule's m and the best ran in pairs on the target, and is 0 where they "
    "tie within the error between visits: single rows of a sweep tell of the host. GPUs on which "
    "nothing ran in pairs are no targets. A slice is a part of its card."
)


def _summary(
    pairs: Mapping[tuple[str, str, str], pd.DataFrame], published: Mapping[str, Records]
) -> Table:
    rows = [
        {"source": f"{source}, {kind}", "target": target, **lost(losses)}
        for (kind, source, target), losses in pairs.items()
    ]
    theirs = published.get("transfer", [])
    rows += [
        {"source": "RTX 2080 Ti, float64 (paper)", "target": name, **_their_lost(card, theirs)}
        for card, name in CARDS.items()
        if theirs
    ]
    fields = [field("optima of", "source"), field("used on", "target"), *LOST]
    return table_of("Corrected optima of one GPU used on another", fields, rows)


def _their_lost(card: str, theirs: Records) -> dict[str, Any]:
    """The same figures of table III: it prints losses, not times."""
    printed = [record for record in theirs if record[f"loss_{card}_percent"]]
    percent = [float(record[f"loss_{card}_percent"]) for record in printed]
    worst = max(range(len(percent)), key=percent.__getitem__)
    return {
        **UNKNOWN,
        "sizes": len(theirs),
        "worst_percent": percent[worst],
        "worst_size": printed[worst]["n"] or None,
        "significant": sum(value > SIGNIFICANT for value in percent),
        FROM_PAPER: True,
    }


def _precision(single: Mapping[str, pd.DataFrame], published: Mapping[str, Records]) -> Table:
    rows: list[dict[str, Any]] = []
    for title, losses in single.items():
        same = f"{losses['tied'].sum()} of {len(losses)}"
        rows.append({"on": title, "same": same, **lost(losses)})
    if theirs := published.get("optima_float32", []):
        double = {one["n"]: one["m_corrected"] for one in published.get("optima_float64", [])}
        both = [one for one in theirs if one["n"] and one["n"] in double]
        alike = sum(one["m_observed"] == double[one["n"]] for one in both)
        found = {"on": "RTX 2080 Ti, float32 (paper)", FROM_PAPER: True}
        rows.append({**UNKNOWN, **found, "same": f"{alike} of {len(both)}"})
    fields = [
        field("used on", "on"),
        field("best or tied", "same", str, "sizes", True),
        *LOST,
    ]
    return table_of("Corrected optima of float64 used in float32", fields, rows)
