"""Training on the published data: the archive of reviews, the file of vectors, and the network."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
from published_tables import facts, table

from kernels.sentiment.host.network import EMBEDDING, read_trained
from kernels.sentiment.host.reviews import Review
from kernels.sentiment.host.training import TESTED, TOKENS, TRAINED, read_imdb, read_vectors, subset
from launchwise.base.errors import UserError
from launchwise.base.storage import read_json
from launchwise.workloads.declared.own_functions import import_from

FOLDER = Path(__file__).resolve().parents[1]


def archive(path: Path, texts: dict[str, str]) -> Path:
    with tarfile.open(path, mode="w:gz") as tar:
        for name, text in texts.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    return path


def vectors_file(path: Path, vectors: dict[str, np.ndarray]) -> Path:
    lines = (" ".join([word, *map(str, vector)]) for word, vector in vectors.items())
    path.write_text("\n".join(lines))
    return path


def told_apart(count: int, seed: int) -> dict[str, str]:
    random = np.random.default_rng(seed)
    texts = {}
    for part in ("train", "test"):
        for number in range(count):
            name = "pos" if number % 2 else "neg"
            filler = " ".join(f"w{n}" for n in random.integers(0, 30, 12))
            word = "good" if number % 2 else "bad"
            texts[f"aclImdb/{part}/{name}/{number}_7.txt"] = f"{filler} {word}"
    return texts


def test_reviews_are_read_in_order_and_cut(tmp_path: Path) -> None:
    long = " ".join(["word"] * (TOKENS + 50))
    texts = {
        "aclImdb/train/pos/1_9.txt": "Fine.<br /><br />Film!",
        "aclImdb/train/neg/0_2.txt": long,
        "aclImdb/train/neg/3_1.txt": "...",
        "aclImdb/train/unsup/5_0.txt": "neither",
        "aclImdb/test/neg/7_1.txt": "Dull",
        "aclImdb/README": "about",
    }
    parts = read_imdb(archive(tmp_path / "x.tar.gz", texts))
    assert parts["train"] == [
        Review(("word",) * TOKENS, False),
        Review(("fine", "film", "!"), True),
    ]
    assert parts["test"] == [Review(("dull",), False)]


def test_another_archive_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is missing"):
        read_imdb(tmp_path / "none.tar.gz")
    (tmp_path / "text").write_text("no archive")
    with pytest.raises(UserError, match="holds no reviews"):
        read_imdb(tmp_path / "text")
    lacking = archive(tmp_path / "x.tar.gz", {"aclImdb/train/pos/1_9.txt": "fine"})
    with pytest.raises(UserError, match="test: holds no reviews: not the archive aclImdb_v1"):
        read_imdb(lacking)
    whole = archive(tmp_path / "y.tar.gz", told_apart(200, 0)).read_bytes()
    (tmp_path / "half").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match="holds no reviews"):
        read_imdb(tmp_path / "half")


def test_a_subset_is_balanced_and_drawn_by_its_seed() -> None:
    reviews = [Review((str(n),), n >= 60) for n in range(100)]
    found = subset(reviews, 20, seed=1)
    assert sum(review.positive for review in found) == 10
    assert len({review.words for review in found}) == 20
    assert found == subset(reviews, 20, seed=1) != subset(reviews, 20, seed=2)
    # Of 40 positive reviews no more than 40.
    assert sum(review.positive for review in subset(reviews, 100, seed=1)) == 40


def test_vectors_of_the_asked_words_are_read(tmp_path: Path) -> None:
    vectors = {word: np.full(EMBEDDING, n, np.float32) for n, word in enumerate(("a", "b", "c"))}
    path = vectors_file(tmp_path / "glove.txt", vectors)
    found = read_vectors(path, ["b", "c", "d"])
    assert set(found) == {"b", "c"}
    assert (found["c"] == 2).all()
    assert found["c"].dtype == np.float32
    with pytest.raises(UserError, match="none of the reviews' words"):
        read_vectors(path, ["d"])
    with pytest.raises(UserError, match="is missing"):
        read_vectors(tmp_path / "none.txt", ["a"])
    path.write_text("a 1.0 2.0\n")
    with pytest.raises(UserError, match="line 1: has 2 elements, must have 300 finite ones"):
        read_vectors(path, ["a"])
    path.write_text("b 1.0\na one\n")
    with pytest.raises(UserError, match="line 2: is no vector of numbers"):
        read_vectors(path, ["a"])


def test_training_leaves_the_vectors_as_they_are(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    random = np.random.default_rng(0)
    words = ["good", "bad", *(f"w{n}" for n in range(29))]
    vectors = {word: random.normal(0, 0.3, EMBEDDING).astype(np.float32) for word in words}
    script = import_from(FOLDER, "train_as_published")
    script.main(
        FOLDER,
        archive(tmp_path / "x.tar.gz", told_apart(2 * TESTED, 1)),
        vectors_file(tmp_path / "glove.txt", vectors),
        3,
        tmp_path / "network.npz",
        tmp_path / "figures.json",
    )
    figures = read_json(tmp_path / "figures.json")
    assert (figures["reviews_trained"], figures["reviews_tested"]) == (2 * TESTED, TESTED)
    assert TRAINED > 2 * TESTED
    assert figures["accuracy_tested"] == 1
    # One of thirty fillers has no vector.
    assert figures["known_share_tested"] == pytest.approx(1 - 12 / 13 / 30, abs=0.02)
    assert figures["words"] == len(words) + 2
    trained = read_trained(tmp_path / "network.npz")
    table = trained.network.embeddings
    known = {tuple(vector.astype(np.float16)) for vector in vectors.values()}
    assert {tuple(row) for row in table[2:]} == known
    assert not table[:2].any()
    assert len(trained.held_out.labels) == TESTED


def test_printed_speed_ups_of_reviews_follow_from_the_printed_seconds() -> None:
    times = table("sentiment_inference", "times").set_index("implementation")
    printed = times["speed_up"].dropna()
    assert list(printed.index) == ["CUDA naive", "CUDA shared memory", "CUDA streams"]
    by_seconds = times.loc["CPU (C++ with Eigen)", "total_s"] / times["total_s"]
    # The last of them is rounded down less than half a unit.
    assert np.allclose(by_seconds[printed.index], printed, rtol=0, atol=0.7)


def test_claimed_gains_of_reviews_are_those_of_the_printed_times() -> None:
    times = table("sentiment_inference", "times").set_index("implementation")
    given = facts("sentiment_inference")
    steps = {
        "gain_shared_all_percent": ("total_s", "CUDA naive", "CUDA shared memory"),
        "gain_shared_one_percent": ("one_case_ms", "CUDA naive", "CUDA shared memory"),
    }
    for fact, (column, before, after) in steps.items():
        saved = 100 * (1 - times.loc[after, column] / times.loc[before, column])
        assert saved == pytest.approx(float(given[fact]), abs=0.5)
    single = times.loc["CPU (C++ with Eigen)", "one_case_ms"] / times["one_case_ms"]
    assert round(single["CUDA naive"]) == int(given["speed_up_claimed"]) == 500
    assert round(single["CUDA streams"]) == 682
    assert int(given["speed_up_all_claimed"]) < times.loc["CUDA naive", "speed_up"] == 159


def test_published_times_of_one_review_and_of_all_disagree() -> None:
    times = table("sentiment_inference", "times").dropna(subset="total_s")
    mean = 1e3 * times["total_s"] / int(facts("sentiment_inference")["cases"])
    assert list((times["one_case_ms"] / mean).round(1)) == [9.0, 2.9, 2.6, 2.3]
