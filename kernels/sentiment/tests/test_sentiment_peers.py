"""Tables of other tools' times on sentiment inference, and of classified held-out reviews."""

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest
from harness.peers import held_out, numpy_answer, peers, source_of, write_tables
from harness.projects import ROOT

from kernels.sentiment.host import eigen
from kernels.sentiment.host.eigen import Eigen, NoEigen, library
from kernels.sentiment.host.network import SHAPES, logits, read_trained
from launchwise.base.storage import read_json

RESULTS = ROOT / "benchmarks" / "results"
TABLES = ROOT / "kernels/sentiment/studies/sentiment_inference/published"
TIMES = {"total_s": 2.0, "each_s": [1.9, 2.0, 2.1], "one_case_ms": 0.25}
RESULT = {
    **{"measured_at": "2026-01-02T03:04:05", "commit": "0123456789", "gpu": "one"},
    **{"device": "NVIDIA One", "cpu_name": "Processor"},
    "cpu": {
        **{"cores": 16, "given": "nothing", "passes": 3, "one_case_repeats": 200},
        **dict.fromkeys(("eigen_all_cores", "numpy", "torch"), TIMES),
        "eigen_one_core": {**TIMES, "total_s": 16.0},
    },
    "pytorch": {
        **{"passes": 3, "one_case_repeats": 200, "at_once": {**TIMES, "total_s": 0.125}},
        "one_by_one": {"total_s": 4.5, "each_s": [4.5]},
    },
    "held_out": {
        "reviews": 1056,
        "variants": {
            "float64": {"accuracy": 0.785},
            "naive": {"accuracy": 0.784, "class_flips": 1, "logit_error": 1e-7},
        },
    },
}
"""A result of ``sentiment_peers.py``."""


def test_numpy_answers_as_the_reference_does():
    trained = read_trained(ROOT / "kernels" / "sentiment" / "network.npz")
    words, lengths = trained.held_out.tokens[:7], trained.held_out.lengths[:7]
    x = trained.network.embeddings.astype(np.float32)[words]
    mask = (np.arange(x.shape[1])[None, :] < lengths[:, None])[..., None].astype(np.float32)
    weights = {name: getattr(trained.network, name) for name in SHAPES}
    found = numpy_answer(weights, x, lengths.astype(np.float32), mask)
    assert np.allclose(found, logits(trained.network, words, lengths), rtol=0, atol=1e-4)


@pytest.mark.parametrize(("table", "rows_of"), [("peers.csv", peers), ("held_out.csv", held_out)])
def test_recorded_tables_are_those_of_recorded_results(table, rows_of):
    rows = read(TABLES / table)
    results = {path.name: read_json(path) for path in RESULTS.glob("sentiment_peers_*.json")}
    for file, result in results.items():
        made = rows_of(result, source_of(result, file))
        assert [row for row in rows if row["gpu"] == result["gpu"]] == made
    # Rows of GPUs without such a result are those of an earlier script.
    older = [row for row in rows if row["gpu"] not in {one["gpu"] for one in results.values()}]
    assert {row["source"].split(", ")[0] for row in older} <= {
        "launchwise: benchmarks/results/pytorch.json"
    }


def read(path):
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_rows_of_other_gpus_stay(tmp_path):
    write_tables(tmp_path, RESULT, "sentiment_peers_one.json")
    first = read(tmp_path / "peers.csv")
    write_tables(tmp_path, {**RESULT, "gpu": "two"}, "sentiment_peers_two.json")
    write_tables(tmp_path, {**RESULT, "gpu": "two"}, "sentiment_peers_two.json")
    rows = read(tmp_path / "peers.csv")
    assert rows[: len(first)] == first
    assert [row["gpu"] for row in rows] == ["one"] * len(first) + ["two"] * len(first)
    assert [row["gpu"] for row in read(tmp_path / "held_out.csv")] == ["one"] * 2 + ["two"] * 2


def test_what_a_result_has_is_in_its_tables(tmp_path):
    write_tables(tmp_path, RESULT, "sentiment_peers_one.json")
    rows = {row["name"]: row for row in read(tmp_path / "peers.csv")}
    assert set(rows) == {
        *("eigen_one_core", "eigen_all_cores", "numpy_cpu", "pytorch_cpu"),
        *("pytorch_gpu", "pytorch_gpu_one_by_one"),
    }
    assert rows["eigen_one_core"]["total_s"] == "16"
    assert rows["eigen_one_core"]["device"] == "one CPU core of the GPU's host, Processor"
    assert rows["eigen_all_cores"]["device"].startswith("16 CPU cores")
    assert rows["pytorch_gpu"]["one_case_ms"] == "0.25"
    assert rows["pytorch_gpu_one_by_one"]["total_s"] == "4.5"
    assert {row["total_repeats"] for row in rows.values()} == {"3"}
    naive = next(row for row in read(tmp_path / "held_out.csv") if row["name"] == "naive")
    assert (naive["class_flips"], naive["reviews"], naive["accuracy"]) == ("1", "1056", "0.784")
    assert naive["source"].endswith("sentiment_peers_one.json, 2026-01-02, commit 0123456")


NETWORK = Path(__file__).resolve().parents[1] / "network.npz"


def is_there():
    try:
        library()
    except NoEigen:
        return False
    return True


needs_eigen = pytest.mark.skipif(not is_there(), reason="needs Eigen and a C++ compiler")


@pytest.fixture(scope="module")
def trained():
    return read_trained(NETWORK)


@needs_eigen
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("cases", [1, 7])
def test_eigen_answers_as_the_reference_does(trained, cases, threads):
    words, lengths = trained.held_out.tokens[:cases], trained.held_out.lengths[:cases]
    x = trained.network.embeddings.astype(np.float32)[words]
    found = Eigen(trained.network, threads).logits(x, lengths)
    expected = logits(trained.network, words, lengths)
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()


@needs_eigen
def test_arrays_of_another_form_are_refused(trained):
    answer = Eigen(trained.network, 1).logits
    x, one = np.zeros((2, 3, 300), np.float32), np.ones(2, np.int32)
    for wrong, lengths in (
        (x.astype(np.float64), one),
        (x[:, :, ::2], one),
        (x[:, ::2], one),
        (x, one[:1]),
        (x, one.astype(np.int64)),
        (x, 4 * one),
        (x, 0 * one),
    ):
        with pytest.raises(ValueError, match="must be"):
            answer(wrong, lengths)


def said_without(monkeypatch, **variables):
    """What loading says in an environment with these variables, in one line."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(NoEigen) as caught:
        library.__wrapped__()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_missing_eigen_is_one_line(monkeypatch, tmp_path):
    monkeypatch.delenv(eigen.FOLDER_VARIABLE, raising=False)
    monkeypatch.setattr(eigen, "FOLDERS", ())
    monkeypatch.setattr(eigen, "PACKAGE", "no-such-package-of-eigen")
    said = said_without(monkeypatch, CXX=shutil.which("true") or "true")
    assert "install libeigen3-dev" in said
    assert "holds no Eigen/Core" in said_without(monkeypatch, EIGEN3_INCLUDE_DIR=str(tmp_path))


def test_a_failing_or_missing_compiler_is_one_line(monkeypatch, tmp_path):
    (tmp_path / "Eigen").mkdir()
    (tmp_path / "Eigen" / "Core").touch()
    named = {"EIGEN3_INCLUDE_DIR": str(tmp_path), "CXX": shutil.which("false") or "false"}
    assert "cannot compile eigen.cpp" in said_without(monkeypatch, **named)
    monkeypatch.delenv("CXX")
    assert "install one of c++, g++, clang++" in said_without(monkeypatch, PATH=str(tmp_path))
