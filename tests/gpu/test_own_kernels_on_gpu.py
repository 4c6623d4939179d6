"""``launchwise tune`` on a real GPU: workloads in one file, from nothing to the answer.

Run with -m gpu.
"""

import json
import os
import subprocess
import sys

import pandas as pd
import pytest
from guides import from_guide
from samples import ROOT

pytestmark = pytest.mark.gpu

EXAMPLES = ROOT / "docs" / "tutorial" / "example"
SIZES = {"convolution": ["w=1000", "h=700"], "smooth": ["width=1000", "height=700"]}


def tuned(folder, problem, place):
    """Rows of each status, over all problems."""
    done = subprocess.run(
        [sys.executable, "-m", "launchwise", "tune", str(folder), *problem, "--json"],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    counts = {}
    for answer in json.loads(done.stdout)["answers"]:
        assert answer["configuration"] is not None
        for status, count in answer["statuses"].items():
            counts[status] = counts.get(status, 0) + count
    return counts


@pytest.mark.parametrize("name", SIZES)
def test_the_examples_of_the_documents_run_on_the_gpu(name, tmp_path):
    counts = tuned(EXAMPLES / name, SIZES[name], tmp_path)
    assert counts.keys() <= {"ok", "slow"}
    assert counts["ok"] > 10
    (sweep,) = tmp_path.glob("tuned/*/results/sweeps/local/*.parquet")
    # Symbols of C++ are found, too.
    assert pd.read_parquet(sweep)["occupancy"].between(0.01, 1).all()


def test_the_example_in_triton_runs_on_the_gpu(tmp_path):
    pytest.importorskip("triton")
    example = from_guide("triton", tmp_path / "matmul")
    counts = tuned(example, ["m=1000", "n=777", "k=512"], tmp_path)
    assert counts.keys() <= {"ok", "slow"}
    (sweep,) = tmp_path.glob("tuned/*/results/sweeps/local/*.parquet")
    rows = pd.read_parquet(sweep)
    assert rows["occupancy"].between(0.01, 1).all()
    assert (rows["shared_bytes"] > 0).all()
