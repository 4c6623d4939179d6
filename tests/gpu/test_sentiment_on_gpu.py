"""The sentiment workload on a real GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_acoustic_on_gpu import described, measured

from launchwise.gpu import GpuProfile
from launchwise.space import Problem
from tests.measuring.test_sentiment import FOLDER

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="session")
def profile() -> GpuProfile:
    """This machine's first GPU."""
    return described(None)


@pytest.mark.parametrize("given", ["tokens", "embeddings"])
@pytest.mark.parametrize(
    ("batch", "tokens", "memory"),
    [(1, 256, "device"), (37, 50, "device"), (300, 129, "device"), (300, 129, "pinned")],
)
def test_drawn_configurations_are_right(
    profile: GpuProfile, tmp_path: Path, batch: int, tokens: int, memory: str, given: str
) -> None:
    problem: Problem = {"batch": batch, "tokens": tokens, "given": given, "memory": memory}
    strategy = {"kind": "random", "budget": 60}
    rows = measured(FOLDER, profile, [problem], tmp_path, strategy=strategy)
    assert len(rows) == 60
    assert {row["status"] for row in rows} <= {"ok", "slow"}, [
        (row["variant"], row["status"], row["reason"])
        for row in rows
        if row["status"] not in ("ok", "slow")
    ][:3]
    assert len({row["variant"] for row in rows}) > 6
    for row in rows:
        rounds = row["variant"] in ("tensor_tf32", "tensor_bf16")
        assert row["max_error"] < (row["tolerance"] if rounds else 3e-6)
