"""Predicted loss of the first card's rule on the other published cards, beside table III.

These cards were not measured here. The cost model predicts the times of every printed m from the
cards' datasheets; stage 2 is the Thomas algorithm, as in the paper. No measured row is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from launchwise.experiment.published import Records
from launchwise.gpus.profile import GpuProfile
from launchwise.learning.analytical import CostModel
from launchwise.report import wording
from launchwise.report.blocks import Block, Bullets, Fold, Table
from launchwise.report.fields import THEIRS, beside, by_key, decimals, field, grouped
from launchwise.report.study import StudyData
from launchwise.workloads.parts import Value
from launchwise.workloads.space import Part, configurations, gpu_facts
from launchwise.workloads.spec import Spec

from .series import CHOICE, SIZE, SIZES

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


@dataclass(frozen=True)
class Predicted:
    """Predictions for one card at the sizes of table III that are known."""

    card: str
    losses: pd.DataFrame
    """One row per size: ``n``, ``rule`` (m of the paper's rule), ``best_m`` and ``loss_percent`` by
    prediction; ``their_m`` and ``theirs_percent`` (0 where the table says there is no loss, missing
    where it prints no figure)."""


def predicted_losses(study: StudyData, theirs: Records) -> list[Predicted]:
    """Losses of the paper's rule on each of :data:`CARDS` that is among the described GPUs."""
    known = [record for record in theirs if record["n"] and int(record["n"]) >= SMALLEST]
    found = []
    for card in CARDS:
        if known and card in study.described:
            times = _times(study.spec, card, study.described[card], theirs, known)
            found.append(Predicted(card, _losses(times, card, known)))
    return found


def _times(
    spec: Spec, card: str, profile: GpuProfile, theirs: Records, known: Records
) -> pd.DataFrame:
    """Predicted time (ms) of every size (rows) and printed m (columns), the faster variant."""
    names = [name for name in theirs[0] if name.startswith("m_")]
    printed: list[Value] = sorted({int(record[name]) for record in theirs for name in names})
    part = Part({**DESIGN, CHOICE: printed}, ("streams == published_streams",))
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
    return [Bullets([_said(each) for each in found]), Fold(_TITLE, [_table(found)])]


_TITLE = "The paper's rule on its other cards, by prediction and as printed"


def _said(one: Predicted) -> tuple[str, str]:
    both = one.losses.dropna(subset=["theirs_percent"])
    above = [int((both[name] > SIGNIFICANT).sum()) for name in ("loss_percent", "theirs_percent")]
    # Sizes at which the rule is best by both say nothing of how well a loss is predicted.
    lossy = both[(both["loss_percent"] > 0) | (both["theirs_percent"] > 0)]
    away = (lossy["loss_percent"] - lossy["theirs_percent"]).abs().median()
    same = int((one.losses["best_m"] == one.losses["their_m"]).sum())
    return (
        f"{CARDS[one.card]}, by the cost model:",
        f"the paper's rule loses at most {wording.fixed(both['loss_percent'].max(), 2)} % "
        f"(printed: {wording.fixed(both['theirs_percent'].max(), 2)} %) and more than "
        f"{SIGNIFICANT} % at {above[0]} of {len(both)} sizes (printed: {above[1]}). At the "
        f"{wording.plural(len(lossy), 'size')} with a loss the prediction is "
        f"{wording.fixed(away, 1)} percentage points away in the median. The best {CHOICE} is the "
        f"printed one at {same} of {len(one.losses)} sizes.",
    )


def _table(found: list[Predicted]) -> Table:
    rules = by_key(found[0].losses, SIZE)
    parts = [([field("paper's rule", "rule", wording.count, CHOICE)], rules)]
    for each in found:
        ours = (
            field(f"best {CHOICE}", "best_m", wording.count, "predicted"),
            field("loses", "loss_percent", decimals(2), "%, predicted"),
        )
        theirs = (
            field(f"best {CHOICE}", "their_m", wording.count, "paper"),
            field("loses", "theirs_percent", decimals(2), "%, paper"),
        )
        name = CARDS[each.card]
        fields = [*grouped(name, *ours), *grouped(name, *theirs, role=THEIRS)]
        parts.append((fields, by_key(each.losses, SIZE)))
    caption = (
        "Times by the cost model from datasheets, stage 2 by the Thomas algorithm on our GPUs' "
        "host; sizes whose number our text of table III has"
    )
    return beside(caption, SIZES, rules, *parts)
