"""Reviews as numbers, the network's file and its training."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from kernels.sentiment.host.network import SHAPES, Network, accuracy, logits, read_trained
from kernels.sentiment.host.network import write_trained as write
from kernels.sentiment.host.reviews import (
    INNER,
    SNIPPETS,
    Review,
    drawn,
    encoded,
    read_reviews,
    vocabulary,
    word_counts,
    words_of,
)
from launchwise.base.errors import UserError

NETWORK = Path(__file__).resolve().parents[3] / "kernels" / "sentiment" / "network.npz"


def archive(path: Path, lines: list[str]) -> Path:
    def packed(name: str, content: bytes) -> bytes:
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w:gz") as tar:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
        return stream.getvalue()

    path.write_bytes(packed(f"x-1.0/{INNER}", packed(SNIPPETS, "\n".join(lines).encode())))
    return path


def test_reviews_are_read_and_neutral_ones_left_out(tmp_path: Path) -> None:
    lines = ["1\t2.5\tA ''fine'' film, isn't it?", "2\t-0.5\tDull!", "3\t0.0\tSo so", "broken"]
    found = read_reviews(archive(tmp_path / "x.tar.gz", lines))
    assert found == [
        Review(("a", "fine", "film", "isn't", "it", "?"), True),
        Review(("dull", "!"), False),
    ]


def test_what_holds_no_reviews_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is missing"):
        read_reviews(tmp_path / "none.tar.gz")
    (tmp_path / "text").write_text("no archive")
    with pytest.raises(UserError, match="holds no rated reviews"):
        read_reviews(tmp_path / "text")
    whole = archive(tmp_path / "x.tar.gz", ["1\t2\tfine"]).read_bytes()
    (tmp_path / "half").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match="holds no rated reviews"):
        read_reviews(tmp_path / "half")


def test_frequent_words_have_numbers_and_others_are_unknown() -> None:
    reviews = [Review(words_of(text), True) for text in ("b a a", "c b a", "d")]
    numbers = vocabulary(reviews, 5)
    # Two numbers are taken, of c and d only the first in the alphabet is left.
    assert numbers == {"a": 2, "b": 3, "c": 4}
    cases = encoded(reviews, numbers)
    assert cases.tokens.tolist() == [[3, 2, 2], [4, 3, 2], [1, 0, 0]]
    assert cases.lengths.tolist() == [3, 3, 1]
    assert word_counts(cases, 5).tolist() == [0, 1, 3, 2, 1]


def test_words_are_drawn_as_often_as_they_occur() -> None:
    counts = np.array([0, 1, 0, 3])
    found = drawn(counts, 400, 50, seed=1)
    assert found.dtype == np.uint16
    shares = np.bincount(found.reshape(-1), minlength=4) / found.size
    assert shares == pytest.approx([0, 0.25, 0, 0.75], abs=0.01)
    assert (drawn(counts, 400, 50, seed=1) == found).all()


def test_words_and_their_embeddings_have_one_answer() -> None:
    trained = read_trained(NETWORK)
    words, lengths = trained.held_out.tokens[:9], trained.held_out.lengths[:9]
    x = trained.network.embeddings[words].astype(np.float32)
    by_words = logits(trained.network, words, lengths)
    assert logits(trained.network, x, lengths) == pytest.approx(by_words, abs=1e-12)
    # What stands behind the end of a review changes nothing.
    other = np.where(np.arange(words.shape[1]) < lengths[:, None], words, 77)
    assert (logits(trained.network, other, lengths) == by_words).all()
    single = logits(trained.network, words, lengths, np.float32)
    assert np.abs(single - by_words).max() < 1e-5 * np.abs(by_words).max()


def test_a_network_comes_back_from_its_file(tmp_path: Path) -> None:
    trained = read_trained(NETWORK)
    write(tmp_path / "n.npz", trained)
    again = read_trained(tmp_path / "n.npz")
    for name in ("embeddings", *SHAPES):
        one, other = getattr(trained.network, name), getattr(again.network, name)
        assert one.dtype == other.dtype
        assert (one == other).all()
    assert (again.held_out.labels == trained.held_out.labels).all()
    assert (again.counts == trained.counts).all()


def test_a_damaged_network_is_said_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "n.npz"
    with pytest.raises(UserError, match="is missing"):
        read_trained(path)
    path.write_bytes(NETWORK.read_bytes()[:100_000])
    with pytest.raises(UserError, match="cannot be read as a file of weights"):
        read_trained(path)
    with np.load(NETWORK) as archive_:
        arrays = {name: archive_[name] for name in archive_.files}
    np.savez(path, **{**arrays, "w2": arrays["w2"].T})
    with pytest.raises(UserError, match=r"w2: is float32 \(64, 150\), must be float32 \(150, 64\)"):
        read_trained(path)
    np.savez(path, **{name: array for name, array in arrays.items() if name != "b4"})
    with pytest.raises(UserError, match="b4: is missing"):
        read_trained(path)
    np.savez(path, **{**arrays, "b4": np.array([{"a": 1}, None], dtype=object)})
    with pytest.raises(UserError, match="cannot be read as a file of weights"):
        read_trained(path)


def test_accuracy_counts_right_answers() -> None:
    found = np.array([[0.1, 0.2], [3.0, 1.0], [0.0, 5.0]])
    assert accuracy(found, np.array([1, 1, 1])) == pytest.approx(2 / 3)


def test_training_learns_what_can_be_learnt() -> None:
    pytest.importorskip("torch")
    from kernels.sentiment.host.training import train

    random = np.random.default_rng(0)
    filler = [f"w{n}" for n in range(30)]
    reviews = []
    for number in range(600):
        words = [*random.choice(filler, 6), "good" if number % 2 else "bad"]
        reviews.append(Review(tuple(map(str, words)), bool(number % 2)))
    trained, figures = train(reviews, seed=3, epochs=2)
    assert figures["accuracy_held_out"] == 1
    assert figures["reviews_held_out"] == 60
    assert isinstance(trained.network, Network)
    assert trained.network.embeddings.dtype == np.float16
    again, _ = train(reviews, seed=3, epochs=2)
    assert (again.network.w1 == trained.network.w1).all()
