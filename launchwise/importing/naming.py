"""Gives parameters of others the names and types that a spec may have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from launchwise.base.errors import UserError
from launchwise.base.expressions import FUNCTIONS
from launchwise.importing.sweep import ForeignSweep
from launchwise.workloads.parts import GPU_NAMES, LATER_COLUMNS, MEASURED_COLUMNS, Value

TAKEN = {
    *(*MEASURED_COLUMNS, *LATER_COLUMNS, *GPU_NAMES, *FUNCTIONS),
    *("variant", "only", "constraints", "stated_ms", "and", "or", "not", "in", "if", "else", "is"),
}
"""Names that a parameter of a spec may not have."""


def own_names(names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Names of a file to names that a spec may have, no two alike."""
    used, found = {*TAKEN, *taken}, {}
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
        if not re.match(r"[A-Za-z]", plain):
            plain = f"p{plain}"
        while plain in used:
            plain += "_"
        used.add(plain)
        found[name] = plain
    return found


def renamed(sweep: ForeignSweep, names: Mapping[str, str], texts: Iterable[str]) -> ForeignSweep:
    """``sweep`` with its tunables in the order and with the names of ``names``.

    Parameters
    ----------
    texts
        Tunables whose values become texts, because some of them are no integers.
    """
    as_text = set(texts)

    def value(name: str, given: Value) -> Value:
        return str(given) if name in as_text else given

    rows = [
        replace(
            row,
            configuration={
                own: value(name, row.configuration[name]) for name, own in names.items()
            },
        )
        for row in sweep.rows
    ]
    tunables = {
        own: [value(name, each) for each in sweep.tunables[name]] for name, own in names.items()
    }
    return replace(sweep, tunables=tunables, rows=rows)


def renamed_condition(text: str, names: Mapping[str, str]) -> str:
    """A condition with the names of a spec."""
    if not names:
        return text
    pattern = r"\b(" + "|".join(map(re.escape, sorted(names, key=len, reverse=True))) + r")\b"
    return re.sub(pattern, lambda found: names[found[1]], text)


def same_tunables(sweeps: Iterable[ForeignSweep]) -> list[str]:
    """Tunables of all sweeps, in the order of the first.

    Raises
    ------
    UserError
        When a file has others.
    """
    first, *rest = sweeps
    for other in rest:
        if difference := sorted(set(first.tunables) ^ set(other.tunables)):
            message = f"has other parameters than {first.source}: {', '.join(difference)}"
            raise UserError(other.source, "", message)
    return list(first.tunables)


def without_repeats(sweep: ForeignSweep) -> ForeignSweep:
    """``sweep`` with one row per configuration: the last, as a resumed run writes it anew."""
    rows = {tuple(row.configuration.items()): row for row in sweep.rows}
    left = len(sweep.rows) - len(rows)
    if not left:
        return sweep
    note = f"{left} rows repeat a configuration: the last of each is kept"
    return replace(sweep, rows=list(rows.values()), notes=[*sweep.notes, note])
