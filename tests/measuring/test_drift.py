"""Rows that a drift of the reference kernel puts in doubt, from a journal's notes alone."""

from __future__ import annotations

from typing import Any

import pytest

from launchwise.measuring.tasks import drifted_rows


def noted(ratios: list[float], card: str = "one") -> list[dict[str, Any]]:
    """Notes of a reference kernel; before each, one row was measured."""
    return [
        {"note": "control", "card": card, "ratio": ratio, "rows": [[card, place]]}
        for place, ratio in enumerate(ratios)
    ]


@pytest.mark.parametrize("count", [3, 10])
@pytest.mark.parametrize(
    ("ratio", "doubted"), [(1.25, False), (0.75, False), (1.3, True), (0.7, True)]
)
def test_a_card_that_became_faster_has_drifted_like_a_slower_one(
    count: int, ratio: float, doubted: bool
) -> None:
    notes = noted([1.0] * (count - 1) + [ratio])
    assert drifted_rows(notes, 0.25) == ({("one", count - 1)} if doubted else set())


def test_ten_times_of_the_reference_kernel_tell_its_noise() -> None:
    assert drifted_rows(noted([1.0, 1.1] * 5), 0.02) == set()
    nine = noted([1.0, 1.1] * 4 + [1.0])
    assert drifted_rows(nine, 0.02) == {("one", place) for place in (1, 3, 5, 7)}


@pytest.mark.parametrize(
    ("ratio", "doubted"), [(1.45, True), (1.4, False), (0.65, True), (0.7, False)]
)
def test_of_a_noisy_reference_kernel_times_far_off_the_median_are_in_doubt(
    ratio: float, doubted: bool
) -> None:
    # Up and down by .1: three standard deviations of .1 / .954 are .31, off the median 1.1 or 1.
    noisy = [1.0, 1.1] * 8
    found = drifted_rows(noted([*noisy, ratio]), 0.02)
    assert found == ({("one", len(noisy))} if doubted else set())


def test_every_card_has_a_reference_of_its_own() -> None:
    notes = [*noted([1.0] * 12), *noted([1.0, 1.5, 1.0], "two"), {"note": "seconds", "ratio": 9.0}]
    assert drifted_rows(notes, 0.02) == {("two", 1)}
