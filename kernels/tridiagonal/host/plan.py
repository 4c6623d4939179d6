"""How a tridiagonal system is cut: levels, their sub-systems, the memory that they need.

A level cuts its rows into P = floor(rows / m) sub-systems of m rows, the last one with what is left
over, and leaves an interface system of 2 P rows (Austin, Berndt, Moulton 2004), which is the next
level's, until it is small enough to be solved as it is. Where blocks join their sub-systems, each
block leaves two rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SMALLEST_M = 3
"""With sub-systems of 2 rows the interface system would be as large as the system."""

ARRAYS = 4
"""a, b, c and d of a system."""


INNER_LAYOUTS = {"interleaved": "strided", "staged": "blockwise"}
"""Layouts whose inner levels have another one. Interface systems lie in natural order; they are
small, so that launches count for more than what each of them does: blocks that join their
sub-systems need one level where others need two."""


def inner_layout(layout: str) -> str:
    """Layout of the levels below the outermost."""
    return INNER_LAYOUTS.get(layout, layout)


@dataclass(frozen=True)
class Level:
    """One cut: ``rows`` into sub-systems of ``m`` rows, ``joined`` neighbours of them together."""

    rows: int
    m: int
    joined: int = 1

    @property
    def subsystems(self) -> int:
        """Number of sub-systems."""
        return self.rows // self.m

    @property
    def groups(self) -> int:
        """Number of groups of joined sub-systems; the last one may have fewer."""
        return -(-self.subsystems // self.joined)

    @property
    def group_rows(self) -> int:
        """Rows of a whole group."""
        return self.m * self.joined

    @property
    def interface_rows(self) -> int:
        """Rows of the interface system: two a group."""
        return 2 * self.groups

    @property
    def longest(self) -> int:
        """Rows of the last sub-system, which takes what is left over."""
        return self.m + self.rows % self.m


HOST_SOLVER_OF = {"host": "lapack", "thomas": "thomas", "cores": "cores"}
"""Who solves the innermost interface system, by the values of the tunable ``stage2``."""


@dataclass(frozen=True)
class Choice:
    """How a system is solved; what each means stands in ``kernels/tridiagonal/spec.yaml``.

    ``sizes`` are m, m1, m2... of the levels; ``host_solver`` (``lapack``, ``thomas`` or ``cores``)
    solves the innermost interface system where ``finish_on_host``.
    """

    layout: str = "staged"
    sizes: tuple[int, ...] = (16,)
    last_m: int = 0
    threads: int = 64
    streams: int = 1
    finish_on_host: bool = False
    host_solver: str = "lapack"

    def levels(self, rows: int) -> list[Level]:
        """How a system of so many rows is cut (see :func:`levels`)."""
        joined = [
            self.threads if layout == "blockwise" else 1
            for layout in (self.layout, inner_layout(self.layout))
        ]
        return levels(rows, self.sizes, *joined)

    @classmethod
    def of(cls, configuration: Mapping[str, Any]) -> Choice:
        """From a configuration of the workload, such as a recommender gives."""
        names = ("m", "m1", "m2", "m3", "m4")
        return cls(
            layout=str(configuration["variant"]),
            sizes=tuple(int(configuration[name]) for name in names if configuration[name]),
            last_m=int(configuration["last_m"]),
            threads=int(configuration["threads"]),
            streams=int(configuration["streams"]),
            finish_on_host=configuration["stage2"] != "device",
            host_solver=HOST_SOLVER_OF.get(str(configuration["stage2"]), cls.host_solver),
        )


def levels(rows: int, sizes: Sequence[int], joined: int = 1, inner_joined: int = 1) -> list[Level]:
    """One level for each of ``sizes`` (m, from the outermost level inwards).

    A level that has fewer rows than its m, or two sub-systems' worth of them at most, is left out
    with all that would follow: there is nothing to gain.

    Parameters
    ----------
    joined, inner_joined
        Neighbouring sub-systems that are reduced together on the outermost level, and on others.

    Raises
    ------
    ValueError
        When there are no rows or an m is below :data:`SMALLEST_M`.
    """
    if rows < 1:
        raise ValueError(f"a system has one row at least, not {rows}")
    found: list[Level] = []
    for m in sizes:
        if m < SMALLEST_M:
            raise ValueError(f"m = {m} is below {SMALLEST_M}")
        level = Level(rows, m, inner_joined if found else joined)
        if level.interface_rows >= rows or not level.subsystems:
            break
        found.append(level)
        rows = level.interface_rows
    return found


def extra_words(cuts: Sequence[Level]) -> int:
    """Words of device memory that the interface systems take, beside the system and its solution.

    Each holds its four arrays; its solution takes the place of d.
    """
    return ARRAYS * sum(level.interface_rows for level in cuts)


def remaining_rows(rows: int, cuts: Sequence[Level]) -> int:
    """Rows of the system that is left to be solved as it is."""
    return cuts[-1].interface_rows if cuts else rows
