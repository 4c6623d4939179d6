"""Pauses between configurations."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from launchwise.measuring.timing import LONGEST_REST, Rest


def hot() -> bool:
    """A throttled card."""
    return True


def cool() -> bool:
    """A card at full clocks."""
    return False


def pause(rest: Rest, throttled: Callable[[], bool], busy_s: float) -> float:
    """Seconds that ``rest`` takes after ``busy_s`` seconds of work."""
    time.sleep(busy_s)
    began = time.monotonic()
    rest.after(throttled)
    return time.monotonic() - began


def test_a_cool_card_is_not_kept_waiting() -> None:
    rest = Rest()
    assert all(pause(rest, cool, 0.01) < 0.005 for _ in range(5))
    assert rest.share == 0


def test_pauses_grow_while_the_card_is_throttled_and_shrink_afterwards() -> None:
    rest = Rest()
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
        rest.after(cool)
    assert rest.share == 0


def test_nobody_rests_who_does_not_want_to() -> None:
    rest = Rest(wanted=False)
    assert pause(rest, hot, 0.01) < 0.005
    assert rest.share == pytest.approx(0)
