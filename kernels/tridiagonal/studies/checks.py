"""What a paper says in two places, held against each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from launchwise.report import wording
from launchwise.report.blocks import Block, Text
from launchwise.report.fields import of_texts


@dataclass(frozen=True)
class Check:
    """One thing that the paper says in two places."""

    subject: str
    here: str
    there: str
    agree: bool
    conflict: str = ""  # what follows where they do not agree


def blocks_of(every: Sequence[Check]) -> Iterator[Block]:
    """A table of what does not agree, and a sentence on what does."""
    against = [one for one in every if not one.agree]
    if against:
        rows = [(one.subject, one.here, one.there, one.conflict) for one in against]
        titles = ("subject", "here", "there", "conflict")
        yield of_texts("Contradictions in the paper", titles, rows, role="")
    held = [one.subject for one in every if one.agree]
    if held:
        yield Text(
            f"Of {len(every)} things that the paper says twice, {len(held)} agree: "
            f"{wording.listed(held)}.",
            "note",
        )
