"""The network in C++ with Eigen, and what its absence says."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from kernels.sentiment.host import eigen
from kernels.sentiment.host.eigen import Eigen, NoEigen, library
from kernels.sentiment.host.network import Trained, logits, read_trained

NETWORK = Path(__file__).resolve().parents[1] / "network.npz"


def is_there() -> bool:
    try:
        library()
    except NoEigen:
        return False
    return True


needs_eigen = pytest.mark.skipif(not is_there(), reason="needs Eigen and a C++ compiler")


@pytest.fixture(scope="module")
def trained() -> Trained:
    return read_trained(NETWORK)


@needs_eigen
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("cases", [1, 7])
def test_eigen_answers_as_the_reference_does(trained: Trained, cases: int, threads: int) -> None:
    words, lengths = trained.held_out.tokens[:cases], trained.held_out.lengths[:cases]
    x = trained.network.embeddings.astype(np.float32)[words]
    found = Eigen(trained.network, threads).logits(x, lengths)
    expected = logits(trained.network, words, lengths)
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()


@needs_eigen
def test_arrays_of_another_form_are_refused(trained: Trained) -> None:
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


@needs_eigen
def test_eigen_has_a_version(trained: Trained) -> None:
    assert len(Eigen(trained.network, 1).version.split(".")) == 3


def said_without(monkeypatch: pytest.MonkeyPatch, **variables: str) -> str:
    """What loading says in an environment with these variables, in one line."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(NoEigen) as caught:
        library.__wrapped__()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_missing_eigen_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(eigen.FOLDER_VARIABLE, raising=False)
    monkeypatch.setattr(eigen, "FOLDERS", ())
    monkeypatch.setattr(eigen, "PACKAGE", "no-such-package-of-eigen")
    said = said_without(monkeypatch, CXX=shutil.which("true") or "true")
    assert "install libeigen3-dev" in said
    assert "holds no Eigen/Core" in said_without(monkeypatch, EIGEN3_INCLUDE_DIR=str(tmp_path))


def test_a_missing_compiler_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CXX", raising=False)
    assert "install one of c++, g++, clang++" in said_without(monkeypatch, PATH=str(tmp_path))


def test_a_compiler_that_fails_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "Eigen").mkdir()
    (tmp_path / "Eigen" / "Core").touch()
    named = {"EIGEN3_INCLUDE_DIR": str(tmp_path), "CXX": shutil.which("false") or "false"}
    assert "cannot compile eigen.cpp" in said_without(monkeypatch, **named)
