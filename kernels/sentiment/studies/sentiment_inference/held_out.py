"""Held-out reviews as every variant classifies them, beside float64."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from launchwise.experiment.published import Records
from launchwise.report import wording
from launchwise.report.blocks import Block, Text
from launchwise.report.fields import field, table_of

from .measured import Measured, scientific

REFERENCE = "float64"
"""Row of the reference in ``published/held_out.csv``."""


def held_out(case: Measured, published: Mapping[str, Records]) -> Iterator[Block]:
    """A sentence on one GPU, and a table with a row per variant and tool that was compared."""
    rows = [row for row in published.get("held_out", []) if row["gpu"] == case.gpu]
    compared = [row for row in rows if row["name"] != REFERENCE]
    yield Text(sentence(case.gpu, compared, list(case.spec.variants)))
    if compared:
        yield table_of(f"Held-out reviews on {case.gpu}", FIELDS, rows)


def sentence(gpu: str, compared: Sequence[Mapping[str, str]], variants: Sequence[str]) -> str:
    """How many variants were compared, which of them flip a class, and which are missing."""
    own = [row for row in compared if row["name"] in variants]
    if not own:
        return f"No variant was compared with float64 on held-out reviews on {gpu}."
    flips = {row["name"]: int(row["class_flips"]) for row in own}
    flipped = [
        f"{name} ({wording.plural(count, 'review')})" for name, count in flips.items() if count
    ]
    said = (
        f"On {gpu}, {len(own)} of {wording.plural(len(variants), 'variant')} were compared with "
        f"float64 on {wording.count(int(own[0]['reviews']))} held-out reviews: "
    )
    if flipped:
        said += f"{wording.listed(flipped)} classify some differently, the others none."
    else:
        said += "each of them classifies every review as float64 does."
    if missing := [name for name in variants if name not in flips]:
        said += f" Not compared: {wording.listed(missing)}."
    return said


FIELDS = [
    field("answered by", "name"),
    field("classified correctly", lambda row: float(row["accuracy"]), wording.percent, "%"),
    field("classes flipped", lambda row: row["class_flips"] or None, number=True, unit="reviews"),
    field(
        "largest logit error", lambda row: row["logit_error"] or None, scientific, "of the largest"
    ),
    field("measured", "source"),
]
