"""The table of NumPy's and PyTorch's times on sentiment inference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.peers import numpy_answer, peers, write_peers
from harness.projects import ROOT

from kernels.sentiment.host.network import SHAPES, logits, read_trained
from launchwise.base.storage import read_json

RESULT = ROOT / "benchmarks" / "results" / "pytorch.json"
TABLE = ROOT / "kernels/sentiment/studies/sentiment_inference/published/peers.csv"


def test_numpy_answers_as_the_reference_does() -> None:
    trained = read_trained(ROOT / "kernels" / "sentiment" / "network.npz")
    words, lengths = trained.held_out.tokens[:7], trained.held_out.lengths[:7]
    x = trained.network.embeddings.astype(np.float32)[words]
    mask = (np.arange(x.shape[1])[None, :] < lengths[:, None])[..., None].astype(np.float32)
    weights = {name: getattr(trained.network, name) for name in SHAPES}
    found = numpy_answer(weights, x, lengths.astype(np.float32), mask)
    assert np.allclose(found, logits(trained.network, words, lengths), rtol=0, atol=1e-4)


def test_the_recorded_table_is_that_of_the_recorded_result(tmp_path: Path) -> None:
    write_peers(tmp_path / "peers.csv", read_json(RESULT), "h200")
    assert (tmp_path / "peers.csv").read_text() == TABLE.read_text()


def test_what_a_result_has_is_in_its_table() -> None:
    result: dict[str, Any] = read_json(RESULT)
    result["cpu"] |= {"given": "embeddings in memory", "passes": 5, "one_case_repeats": 200}
    result["pytorch"] |= {
        **{"one_case_from_host_float32_ms": 0.25, "one_by_one_float32_s": 4.5},
        "one_by_one_repeats": 5,
    }
    rows = {row["name"]: row for row in peers(result, "one")}
    assert rows["numpy_cpu"]["total_repeats"] == "5"
    assert rows["pytorch_cpu"]["transferred"] == "embeddings in memory"
    assert float(rows["pytorch_gpu"]["one_case_ms"]) == 0.25
    assert float(rows["pytorch_gpu_one_by_one"]["total_s"]) == pytest.approx(4.5)
    assert {row["gpu"] for row in rows.values()} == {"one"}
