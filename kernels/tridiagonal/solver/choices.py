"""Choices for systems that nobody measured, and whether a choice fits a system and a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from ..host.interface_solvers import HOST_SOLVERS
from ..host.launches import LAYOUTS, MOST_FINISHING, most_shared_bytes, reduced_first
from ..host.plan import Choice, remaining_rows

INNERMOST, ALONE, LAST_M = 2048, 1024, 8
"""Rows that are left to one block, unless somebody knows better; above ``ALONE`` each of its
threads reduces ``LAST_M`` of them first. That takes 48 KB of shared memory in float64, which all
cards have."""

INNER_M = 16

TYPES = ("float32", "float64")
USUAL = (
    (200_000, TYPES, 8, Choice("blockwise", (), threads=64)),
    (700_000, TYPES, 10, Choice("blockwise", (), threads=128)),
    (1_400_000, ("float32",), 20, Choice("blockwise", (), threads=128)),
    (None, TYPES, 20, Choice("staged", (), threads=64)),
)
"""Rows up to which it is used and types, m of the outermost level, and the rest."""


Problem = Mapping[str, Any]  # n, dtype, memory and batch, as the workload's spec names them


def usual_choice(problem: Problem) -> Choice:
    """A choice where nothing was measured: what an H200 wants, and m = 16 on inner levels.

    Levels are added until one block can finish.
    """
    rows = int(problem["n"]) * int(problem["batch"])
    choice, first = next(
        (choice, m)
        for most, types, m, choice in USUAL
        if (most is None or rows <= most) and str(problem["dtype"]) in types
    )
    while (left := remaining_rows(rows, choice.levels(rows))) > INNERMOST:
        choice = replace(choice, sizes=(*choice.sizes, INNER_M) if choice.sizes else (first,))
    return replace(choice, last_m=LAST_M if left > ALONE else 0)


def chosen(problem: Problem, how: Mapping[str, Any]) -> Choice:
    """The usual choice for a problem, but for the fields that a caller names in ``how``.

    Raises ValueError for a field or a value that does not exist, or does not fit the problem's
    memory.
    """
    if strange := sorted(set(how) - {each.name for each in fields(Choice)}):
        known = ", ".join(each.name for each in fields(Choice))
        raise ValueError(f"unknown argument {strange[0]!r} (a choice has: {known})")
    choice = replace(usual_choice(problem), **how)
    if choice.layout not in LAYOUTS:
        raise ValueError(f"unknown layout {choice.layout!r} (allowed: {', '.join(LAYOUTS)})")
    if choice.host_solver not in HOST_SOLVERS:
        known = ", ".join(HOST_SOLVERS)
        raise ValueError(f"unknown host_solver {choice.host_solver!r} (allowed: {known})")
    if choice.layout == "interleaved" and problem["memory"] != "device":
        raise ValueError("interleaved systems are solved where they lie, on the device")
    if choice.threads < 1 or choice.streams < 1:
        raise ValueError("threads and streams must be positive")
    return choice


def insist_on_fit(choice: Choice, rows: int, itemsize: int, shared_limit: int) -> None:
    """Raise ValueError when a block would need more threads or shared memory than it can have."""
    cuts = choice.levels(rows)
    left = remaining_rows(rows, cuts)
    m = reduced_first(left, choice.last_m)
    if m and left // m > MOST_FINISHING and not (choice.finish_on_host and cuts):
        raise ValueError(f"{choice} leaves {left} rows to one block: take more sizes")
    needed = most_shared_bytes(rows, choice, itemsize)
    if needed > shared_limit:
        message = f"needs {needed} bytes of shared memory a block, {shared_limit} are"
        raise ValueError(f"{choice} {message} there: take smaller or more sizes")
