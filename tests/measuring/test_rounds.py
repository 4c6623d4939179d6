"""Rounds of pairs on the CPU: the order in them, and one way of timing for all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from launchwise.base.paired import LEAST_ROUNDS
from launchwise.measuring.serving import Task, serve
from launchwise.workloads.space import Configuration, Problem, configurations
from launchwise.workloads.spec import Spec
from launchwise.workloads.workload import Workload
from tests.measuring.conftest import QUICK
from tests.support.host_device import HostDevice

PROBLEM: Problem = {"n": 20, "dtype": "float32", "order": 2}


class Between(HostDevice):
    """Its L2 holds the problem in unpadded rows (125 KiB), not in padded ones (200 KiB)."""

    l2_bytes = 150_000

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.emptied: list[bool] = []

    def timed(self, work: Any, repeats: int, flush: bool) -> list[float]:
        """As usual, keeping whether L2 was to be emptied."""
        self.emptied.append(flush)
        return super().timed(work, repeats, flush)


def said_of_pairs(
    device: HostDevice, workload: Workload, configurations: list[Configuration]
) -> list[dict[str, Any]]:
    """What a measuring process says of pairs against the first configuration."""
    said: list[dict[str, Any]] = []
    # Whatever six rounds say is precise enough.
    pairs = {"precision": 1e9, "seconds": 60.0, "references": [0]}
    serve(device, workload, QUICK, [Task(PROBLEM, configurations, pairs=pairs)], 1, said.append)
    return said


def test_every_round_has_an_order_of_its_own(
    acoustic: tuple[Spec, Workload], acoustic_copy: Path, kernel_cache: Path
) -> None:
    spec, workload = acoustic
    listed = configurations(spec, PROBLEM)[:4]
    device = HostDevice(acoustic_copy, spec.headers, cache=kernel_cache)
    orders: list[list[int]] = [[]]
    for event in said_of_pairs(device, workload, listed):
        if event["event"] == "start":
            tried = {name: event[name] for name in spec.tunable_columns}
            orders[-1].append(listed.index(tried))
        elif event["event"] in ("entered", "round"):
            orders.append([])
    verified, *rounds, rest = orders
    assert (verified, rest) == ([0, 1, 2, 3], [])
    assert len(rounds) == LEAST_ROUNDS
    assert {tuple(sorted(each)) for each in rounds} == {(0, 1, 2, 3)}
    # Of 24 orders, drawn by a fixed seed.
    assert len(set(map(tuple, rounds))) > 4


@pytest.mark.parametrize("turned", [False, True])
def test_where_l2_is_emptied_for_one_it_is_emptied_for_all(
    acoustic: tuple[Spec, Workload], acoustic_copy: Path, kernel_cache: Path, turned: bool
) -> None:
    spec, workload = acoustic
    both = [
        next(each for each in configurations(spec, PROBLEM) if each["row_padding"] == padding)
        for padding in (0, 1)
    ]
    device = Between(acoustic_copy, spec.headers, cache=kernel_cache)
    said = said_of_pairs(device, workload, both[::-1] if turned else both)
    (entered,) = (event for event in said if event["event"] == "entered")
    assert [(one["timer"], one["l2"]) for one in entered["found"]] == [("events", "cold")] * 2
    # Neither verification nor warm-up: two of each.
    assert set(device.emptied[4:]) == {True}
