"""Which imported times are doubted: groups of cards that agree, and the largest of them."""

from __future__ import annotations

from itertools import permutations

from launchwise.importing.cards import MOST_UNEXPLAINED, Timed, doubts


def timed(name: str, *times_ms: float) -> Timed:
    """A sweep of one problem on a card that is not known."""
    return Timed(name, None, (64,), {(n,): ms for n, ms in enumerate(times_ms)}, None, None)


def test_cards_may_agree_through_a_third_one() -> None:
    step = 0.9 * MOST_UNEXPLAINED
    slow, fast, between = timed("slow", step), timed("fast", 1 / step), timed("between", 1.0)
    for chain in permutations((slow, fast, between)):
        assert doubts(chain) == {}
    assert list(doubts([slow, fast])) == [0, 1]


def test_the_one_that_is_alone_is_doubted() -> None:
    sweeps = [timed("one", 1.0, 2.0), timed("other", 1.5, 2.5), timed("odd", 0.01, 0.02)]
    (place, words) = next(iter(doubts(sweeps).items()))
    assert (place, len(doubts(sweeps))) == (2, 1)
    # Its median share of the other's times, of .01 / 1.5 and .02 / 2.5, is 1 / 136.
    assert "from those of other" in words[0]
    assert "by 136 times" in words[0]


def test_problems_of_their_own_are_not_compared() -> None:
    other = Timed("other", None, (65,), {(0,): 1000.0}, None, None)
    assert doubts([timed("one", 1.0), other]) == {}
