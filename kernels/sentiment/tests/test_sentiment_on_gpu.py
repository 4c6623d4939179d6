"""The sentiment workload on a real GPU."""

import pytest
from gpu_runs import described, measured
from test_sentiment import FOLDER

from kernels.sentiment.host.workload import LOOSER

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="session")
def profile():
    return described(None)


@pytest.mark.parametrize("given", ["tokens", "embeddings"])
@pytest.mark.parametrize(
    ("batch", "tokens", "memory"),
    [(1, 256, "device"), (37, 50, "device"), (300, 129, "device"), (300, 129, "pinned")],
)
def test_drawn_configurations_are_right(profile, tmp_path, batch, tokens, memory, given):
    problem = {"batch": batch, "tokens": tokens, "given": given, "memory": memory}
    strategy = {"kind": "random", "budget": 60}
    rows = measured(FOLDER, profile, [problem], tmp_path, strategy=strategy)
    assert len(rows) == 60
    assert {row["status"] for row in rows} <= {"ok", "slow"}, [
        (row["variant"], row["status"], row["reason"])
        for row in rows
        if row["status"] not in ("ok", "slow")
    ][:3]
    assert len({row["variant"] for row in rows}) > 6
    exact = [row for row in rows if row["variant"] not in LOOSER]
    assert {row["class_flips"] for row in exact} == {0}


@pytest.mark.parametrize(("batch", "l2"), [(64, "warm"), (8192, "cold")])
def test_configurations_of_a_problem_find_the_same_l2(profile, tmp_path, batch, l2):
    problem = {"batch": batch, "tokens": 128, "given": "tokens", "memory": "device"}
    strategy = {"kind": "random", "budget": 40}
    rows = measured(FOLDER, profile, [problem], tmp_path, strategy=strategy)
    ok = [row for row in rows if row["status"] == "ok"]
    assert len(ok) > 5
    assert {row["l2"] for row in ok} == {l2}


def test_graphs_answer_as_streams_do(profile, tmp_path):
    problem = {"batch": 300, "tokens": 129, "given": "tokens", "memory": "pinned"}
    rows = measured(
        FOLDER, profile, [problem], tmp_path, strategy={"kind": "random", "budget": 120}
    )
    assert {row["status"] for row in rows} <= {"ok", "slow"}
    graphs = [row for row in rows if row["graph"] == 1]
    assert len(graphs) > 20
    assert max(row["streams"] for row in graphs) > 1
