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
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Fold, Table, Text
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
from launchwise.report.study_tables import StudyData
from launchwise.workloads import space
from launchwise.workloads.parts import Value
from launchwise.workloads.space import configurations, gpu_facts
from launchwise.workloads.spec import Spec

from ...learning.optima import mean_loss
from ..host_runs import shortened
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
    ``loss_percent`` by prediction; ``their_m`` and ``theirs``: the printed percent, or ``none``,
    ``small`` or ``lost`` where the table has no figure."""
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
        rows.append(
            {
                SIZE: int(record["n"]),
                "rule": rule,
                "best_m": min(own.index, key=own.__getitem__),
                "loss_percent": 100 * (own[rule] / own.min() - 1),
                "their_m": int(record[f"m_{card}"]),
                "theirs": record[f"loss_{card}_percent"] or record[f"loss_{card}"],
            }
        )
    return pd.DataFrame(rows)


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
            field("loses", "theirs", unit="%, paper", number=True),
        )
        fields = [*grouped(CARDS[card], *ours), *grouped(CARDS[card], *theirs, role=THEIRS)]
        parts.append((fields, by_key(losses, SIZE)))
    caption = (
        "Times by the cost model from datasheets, stage 2 by the Thomas algorithm on our GPUs' "
        "host; sizes whose number our text of table III has"
    )
    return beside(caption, SIZES, rules, *parts)


def lost(losses: pd.DataFrame) -> dict[str, Any]:
    """A rule used elsewhere, of :meth:`SubsystemSeries.losses`. ``sizes`` have a loss, at
    ``significant`` of them above :data:`SIGNIFICANT` and beyond error; ``told_percent`` is the
    largest beyond error, 0 where none is."""
    known = losses[losses["state"] == ""]
    percent = known["loss_percent"]
    return {
        "sizes": len(known),
        "mean_percent": mean_loss(percent),
        "worst_percent": float(percent.max()),
        "told_percent": float(percent.mask(known["tied"], 0.0).max()),
        "significant": int((percent.mask(known["tied"], 0.0) > SIGNIFICANT).sum()),
    }


def transfers(every: Sequence[SubsystemSeries]) -> dict[tuple[str, str], pd.DataFrame]:
    """Titles of (source, target) -> losses of the source's corrected optima on the target, another
    GPU; targets that nothing ran in pairs on are left out."""
    return {
        (source.title, target.title): target.losses(source.corrected)
        for source, target in permutations(every, 2)
        if source.kind == target.kind and source.gpu != target.gpu and target.in_pairs
    }


def precisions(every: Sequence[SubsystemSeries]) -> dict[tuple[str, str], pd.DataFrame]:
    """Titles of (float64, float32) cases of a GPU -> losses of the first's optima on the other."""
    return {
        (source.title, target.title): target.losses(source.corrected)
        for source, target in permutations(every, 2)
        if (source.dtype, target.dtype) == ("float64", "float32") and source.gpu == target.gpu
    }


LOST = [
    field("best or tied", "same", unit="sizes", number=True),
    field("in pairs", "sizes", wording.count, "sizes"),
    field("time lost", "mean_percent", decimals(2), "% (geometric mean)"),
    field("time lost", "worst_percent", decimals(2), "% (worst)"),
    field(f"above {SIGNIFICANT} %", "significant", wording.count, "sizes"),
]
UNKNOWN = dict.fromkeys(str(one.value) for one in LOST) | {"same": MISSING}


def borrowed(
    study: StudyData, every: Sequence[SubsystemSeries], published: Mapping[str, Records]
) -> list[Block]:
    """A table on other GPUs and the other precision; nothing where there is one case only."""
    kind, names = shortened(every)
    theirs = published.get("transfer", [])
    rows = [
        {"source": names[source], "target": names[target], **_ours(losses)}
        for (source, target), losses in {**transfers(every), **precisions(every)}.items()
    ]
    predicted = predicted_losses(study, theirs)
    for card, name in CARDS.items():
        shown = {"source": f"{PAPER}, float64", "target": name, FROM_PAPER: True}
        rows += [{**shown, **_printed(card, theirs)}] if theirs else []
        if card in predicted:
            by_model = {"source": f"{PAPER}, by the cost model", "target": name}
            rows.append({**by_model, **_predicted(predicted[card])})
    rows += _single(published)
    if not rows:
        return []
    fields = [field("optima of", "source"), field("used on", "target"), *LOST]
    found: list[Block] = [table_of(f"Corrected optima used elsewhere, {kind}", fields, rows)]
    if predicted:
        found.append(Fold("The paper's rule on its other cards, size by size", [_table(predicted)]))
    return [*found, Text(NOTE, "note")]


PAPER = "RTX 2080 Ti"
NOTE = "Losses here: where both m ran in pairs; above: beyond the errors of both times."


def _ours(losses: pd.DataFrame) -> dict[str, Any]:
    return {"same": f"{losses['tied'].sum()} of {len(losses)}", **lost(losses)}


def _predicted(losses: pd.DataFrame) -> dict[str, Any]:
    percent = losses["loss_percent"]
    return {
        **UNKNOWN,
        "same": f"{(losses['rule'] == losses['best_m']).sum()} of {len(losses)}",
        "worst_percent": float(percent.max()),
        "significant": int((percent > SIGNIFICANT).sum()),
    }


def _printed(card: str, theirs: Records) -> dict[str, Any]:
    """The same figures of table III: it prints losses, not times."""
    printed = [record for record in theirs if record[f"loss_{card}_percent"]]
    percent = [float(record[f"loss_{card}_percent"]) for record in printed]
    same = sum(record["m_heuristic"] == record[f"m_{card}"] for record in theirs)
    return {
        **UNKNOWN,
        "same": f"{same} of {len(theirs)}",
        "worst_percent": max(percent),
        "significant": sum(value > SIGNIFICANT for value in percent),
    }


def _single(published: Mapping[str, Records]) -> list[dict[str, Any]]:
    """Sizes at which the paper's corrected optimum of float64 is its optimum of float32."""
    double = {one["n"]: one["m_corrected"] for one in published.get("optima_float64", [])}
    theirs = published.get("optima_float32", [])
    both = [one for one in theirs if one["n"] and one["n"] in double]
    if not both:
        return []
    alike = sum(one["m_observed"] == double[one["n"]] for one in both)
    found = {"source": f"{PAPER}, float64", "target": f"{PAPER}, float32", FROM_PAPER: True}
    return [{**UNKNOWN, **found, "same": f"{alike} of {len(both)}"}]
