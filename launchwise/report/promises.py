"""Predicted and measured gains of the answering model on the test problems."""

from __future__ import annotations

from launchwise.learning.evaluate import SHORT_LISTS
from launchwise.learning.summary import WORTH_PERCENT
from launchwise.report import wording
from launchwise.report.blocks import Block, Column, Text, table
from launchwise.report.models import answering, splits_evaluated
from launchwise.report.study import StudyData


def promises(study: StudyData) -> list[Block]:
    """Predicted and measured gains of the answering model, one row per split."""
    name = answering(study)
    rows = []
    for split in splits_evaluated(study):
        parts = study.facts["splits"][split]["all"]["models"]
        if name not in parts:
            continue
        got = parts[name]
        low, high = got["fraction_interval"] or (float("nan"), float("nan"))
        rows.append(
            [
                split,
                wording.count(got["problems"]),
                wording.fixed(got["fraction_geometric_mean"]),
                wording.interval((low, high)) if got["fraction_interval"] else "–",
                *(wording.fixed(got[name]) for name in SHORT_LISTS.values()),
                wording.fixed(got["gain_geometric_mean"], 2),
                wording.count(got["harmed"]),
                wording.count(got["kept_usual"]),
                f"{got['missed']} of {got['worthwhile']}",
                wording.count(got["intervals"]),
                "–" if got["covered"] is None else wording.percent(got["covered"], 0),
            ]
        )
    if not rows or name is None:
        return []
    columns = [
        Column("split", number=False),
        Column("problems", "count"),
        Column("mean", "geometric", group="fraction of the best"),
        Column("mean", "95 % interval", group="fraction of the best"),
        *(Column(f"of {count}", "geometric", group="best measured") for count in SHORT_LISTS),
        Column("speed-up", "× usual", group="relative to the usual choice"),
        Column("slower", "problems", group="relative to the usual choice"),
        Column("kept", "problems", group="relative to the usual choice"),
        Column("missed", "of improvable", group="relative to the usual choice"),
        Column("intervals", "count", group="90 % intervals of the gain"),
        Column("covered", "%", group="90 % intervals of the gain"),
    ]
    title = study.title(name)
    note = (
        "Best measured: the fastest of the first 5 or 20 recommendations, if they are measured. "
        f"Kept: {title} answers with the usual choice, because the expected gain is smaller than "
        "the disagreement of its members. Missed: of these, problems where the best is faster by "
        f"more than {WORTH_PERCENT:g} %. Covered: answers whose measured gain lies in the "
        "predicted interval."
    )
    return [table(f"Predicted and measured gains of {title}", columns, rows), Text(note)]
