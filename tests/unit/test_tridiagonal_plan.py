"""Levels of the partition method: what each leaves, and what it takes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from launchwise.tridiagonal.host import SingularSystem, chunks, solve_on_host
from launchwise.tridiagonal.launches import interleaved, natural
from launchwise.tridiagonal.plan import Level, extra_words, levels, remaining_rows

sizes = st.lists(st.integers(3, 40), max_size=5)


@given(st.integers(1, 10**9), sizes)
def test_every_level_leaves_fewer_rows_than_it_had(rows: int, wanted: list[int]) -> None:
    cuts = levels(rows, wanted)
    left = rows
    for level in cuts:
        assert level.rows == left
        assert level.subsystems * level.m + level.rows % level.m == level.rows
        assert level.m <= level.longest < 2 * level.m
        assert 2 <= level.interface_rows < left
        left = level.interface_rows
    assert remaining_rows(rows, cuts) == left
    assert [level.m for level in cuts] == wanted[: len(cuts)]
    # It stops early only where the rows do not fill one sub-system.
    if len(cuts) < len(wanted):
        assert left < wanted[len(cuts)]


@given(st.integers(10**4, 10**8), st.integers(8, 64))
def test_interfaces_take_little_memory(rows: int, m: int) -> None:
    cuts = levels(rows, [m] * 6)
    # A geometric row with ratio 2 / m, of four words for each two rows in m.
    assert extra_words(cuts) / (4 * rows) <= (2 / m) / (1 - 2 / m)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="m = 2 is below 3"):
        levels(100, [2])
    with pytest.raises(ValueError, match="one row at least"):
        levels(0, [4])


@given(st.integers(3, 5000), st.integers(3, 40), st.integers(1, 40))
def test_chunks_hold_every_subsystem_once_and_stay_alike(rows: int, m: int, count: int) -> None:
    level = Level(max(rows, m), m)
    found = chunks(level, list(range(count)))
    assert sum(chunk.subsystems for chunk in found) == level.subsystems
    assert sum(chunk.rows for chunk in found) == level.rows
    first = 0
    for chunk in found:
        assert chunk.first == first
        # To a kernel a chunk is a system of its own.
        assert Level(chunk.rows, m).subsystems == chunk.subsystems
        first += chunk.subsystems
    numbers = [chunk.subsystems for chunk in found]
    assert max(numbers) - min(numbers) <= 1
    assert len(found) == min(count, level.subsystems)


@given(st.integers(1, 300), st.integers(3, 20))
def test_interleaving_is_undone(rows: int, m: int) -> None:
    values = np.arange(rows)
    stored = interleaved(values, m)
    assert sorted(stored) == sorted(values)
    assert np.array_equal(natural(stored, m), values)
    if rows >= 2 * m:
        # Row 0 of all sub-systems comes first.
        assert stored[1] == m


def test_the_host_says_where_a_system_has_no_solution() -> None:
    zeros = [np.zeros(4) for _ in range(3)]
    with pytest.raises(SingularSystem, match=r"row 1 of 4 .* zero pivot"):
        solve_on_host(*zeros, np.ones(4))
    with pytest.raises(SingularSystem, match="row 1 of 1"):
        solve_on_host(*(np.zeros(1) for _ in range(3)), np.ones(1))
