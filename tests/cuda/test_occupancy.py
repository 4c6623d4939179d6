"""Occupancy counts warps, of which a block has whole ones."""

import pytest

from launchwise.cuda.parameters import occupancy


@pytest.mark.parametrize(
    ("blocks", "threads", "share"),
    [(32, 4, 0.5), (32, 33, 1.0), (2, 1024, 1.0), (21, 96, 63 / 64), (0, 128, 0.0)],
)
def test_a_block_takes_whole_warps(blocks, threads, share):
    assert occupancy(blocks, threads, 2048) == share
