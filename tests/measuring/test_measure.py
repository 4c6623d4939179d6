"""Pauses between configurations."""

from __future__ import annotations

import time

import pytest

from launchwise.measuring.measure import LONGEST_REST, Rest


class Card:
    """A device that says whether it is throttled, and nothing else."""

    def __init__(self, throttled: bool) -> None:
        self.is_throttled = throttled

    def throttled(self) -> bool:
        """See :class:`launchwise.measuring.measure.TimingDevice`."""
        return self.is_throttled


def pause(rest: Rest, card: Card, busy_s: float) -> float:
    """Seconds that ``rest`` takes after ``busy_s`` seconds of work."""
    time.sleep(busy_s)
    began = time.monotonic()
    rest.after(card)  # type: ignore[arg-type]
    return time.monotonic() - began


def test_a_cool_card_is_not_kept_waiting() -> None:
    rest = Rest()
    assert all(pause(rest, Card(False), 0.01) < 0.005 for _ in range(5))
    assert rest.share == 0


def test_pauses_grow_while_the_card_is_throttled_and_shrink_afterwards() -> None:
    rest, hot, cool = Rest(), Card(True), Card(False)
    shares = []
    for _ in range(12):
        paused = pause(rest, hot, 0.005)
        assert paused >= 0.9 * rest.share * 0.005
        shares.append(rest.share)
    assert shares[0] == 0.25
    assert shares == sorted(shares)
    assert shares[-1] == LONGEST_REST
    pause(rest, cool, 0.001)
    assert 0 < rest.share < LONGEST_REST
    for _ in range(200):
        rest.after(cool)  # type: ignore[arg-type]
    assert rest.share == 0


def test_nobody_rests_who_does_not_want_to() -> None:
    rest = Rest(wanted=False)
    assert pause(rest, Card(True), 0.01) < 0.005
    assert rest.share == pytest.approx(0)
