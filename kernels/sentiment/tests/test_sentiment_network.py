"""Reviews as numbers, the network's file and its training."""

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from kernels.sentiment.host.network import EMBEDDING, SHAPES, logits, read_trained
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
from kernels.sentiment.host.training import TESTED, TOKENS, TRAINED, read_imdb, read_vectors, subset
from launchwise.base.errors import UserError
from launchwise.base.storage import read_json
from launchwise.workloads.declared.own_functions import import_from

NETWORK = Path(__file__).resolve().parents[3] / "kernels" / "sentiment" / "network.npz"


def archive(path, lines):
    def packed(name, content):
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w:gz") as tar:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
        return stream.getvalue()

    path.write_bytes(packed(f"x-1.0/{INNER}", packed(SNIPPETS, "\n".join(lines).encode())))
    return path


def test_reviews_are_read_and_neutral_ones_left_out(tmp_path):
    lines = ["1\t2.5\tA ''fine'' film, isn't it?", "2\t-0.5\tDull!", "3\t0.0\tSo so", "broken"]
    found = read_reviews(archive(tmp_path / "x.tar.gz", lines))
    assert found == [
        Review(("a", "fine", "film", "isn't", "it", "?"), True),
        Review(("dull", "!"), False),
    ]


def test_what_holds_no_reviews_is_said_in_one_line(tmp_path):
    with pytest.raises(UserError, match="is missing"):
        read_reviews(tmp_path / "none.tar.gz")
    (tmp_path / "text").write_text("no archive")
    with pytest.raises(UserError, match="holds no rated reviews"):
        read_reviews(tmp_path / "text")
    whole = archive(tmp_path / "x.tar.gz", ["1\t2\tfine"]).read_bytes()
    (tmp_path / "half").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match="holds no rated reviews"):
        read_reviews(tmp_path / "half")


def test_frequent_words_have_numbers_and_others_are_unknown():
    reviews = [Review(words_of(text), True) for text in ("b a a", "c b a", "d")]
    numbers = vocabulary(reviews, 5)
    # Two numbers are taken, of c and d only the first in the alphabet is left.
    assert numbers == {"a": 2, "b": 3, "c": 4}
    cases = encoded(reviews, numbers)
    assert cases.tokens.tolist() == [[3, 2, 2], [4, 3, 2], [1, 0, 0]]
    assert cases.lengths.tolist() == [3, 3, 1]
    assert word_counts(cases, 5).tolist() == [0, 1, 3, 2, 1]


def test_words_are_drawn_as_often_as_they_occur():
    counts = np.array([0, 1, 0, 3])
    found = drawn(counts, 400, 50, seed=1)
    assert found.dtype == np.uint16
    shares = np.bincount(found.reshape(-1), minlength=4) / found.size
    assert shares == pytest.approx([0, 0.25, 0, 0.75], abs=0.01)
    assert (drawn(counts, 400, 50, seed=1) == found).all()


def test_words_and_their_embeddings_have_one_answer():
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


def test_a_network_comes_back_from_its_file(tmp_path):
    trained = read_trained(NETWORK)
    write(tmp_path / "n.npz", trained)
    again = read_trained(tmp_path / "n.npz")
    for name in ("embeddings", *SHAPES):
        one, other = getattr(trained.network, name), getattr(again.network, name)
        assert one.dtype == other.dtype
        assert (one == other).all()
    assert (again.held_out.labels == trained.held_out.labels).all()
    assert (again.counts == trained.counts).all()


def test_a_damaged_network_is_said_in_one_line(tmp_path):
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


def test_training_learns_what_can_be_learnt():
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
    assert trained.network.embeddings.dtype == np.float16
    again, _ = train(reviews, seed=3, epochs=2)
    assert (again.network.w1 == trained.network.w1).all()


FOLDER = Path(__file__).resolve().parents[1]


def imdb_archive(path, texts):
    with tarfile.open(path, mode="w:gz") as tar:
        for name, text in texts.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    return path


def vectors_file(path, vectors):
    lines = (" ".join([word, *map(str, vector)]) for word, vector in vectors.items())
    path.write_text("\n".join(lines))
    return path


def told_apart(count, seed):
    random = np.random.default_rng(seed)
    texts = {}
    for part in ("train", "test"):
        for number in range(count):
            name = "pos" if number % 2 else "neg"
            filler = " ".join(f"w{n}" for n in random.integers(0, 30, 12))
            word = "good" if number % 2 else "bad"
            texts[f"aclImdb/{part}/{name}/{number}_7.txt"] = f"{filler} {word}"
    return texts


def test_reviews_are_read_in_order_and_cut(tmp_path):
    long = " ".join(["word"] * (TOKENS + 50))
    texts = {
        "aclImdb/train/pos/1_9.txt": "Fine.<br /><br />Film!",
        "aclImdb/train/neg/0_2.txt": long,
        "aclImdb/train/neg/3_1.txt": "...",
        "aclImdb/train/unsup/5_0.txt": "neither",
        "aclImdb/test/neg/7_1.txt": "Dull",
        "aclImdb/README": "about",
    }
    parts = read_imdb(imdb_archive(tmp_path / "x.tar.gz", texts))
    assert parts["train"] == [
        Review(("word",) * TOKENS, False),
        Review(("fine", "film", "!"), True),
    ]
    assert parts["test"] == [Review(("dull",), False)]


def test_another_archive_is_said_in_one_line(tmp_path):
    with pytest.raises(UserError, match="is missing"):
        read_imdb(tmp_path / "none.tar.gz")
    (tmp_path / "text").write_text("no archive")
    with pytest.raises(UserError, match="holds no reviews"):
        read_imdb(tmp_path / "text")
    lacking = imdb_archive(tmp_path / "x.tar.gz", {"aclImdb/train/pos/1_9.txt": "fine"})
    with pytest.raises(UserError, match="test: holds no reviews: not the archive aclImdb_v1"):
        read_imdb(lacking)
    whole = imdb_archive(tmp_path / "y.tar.gz", told_apart(200, 0)).read_bytes()
    (tmp_path / "half").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match="holds no reviews"):
        read_imdb(tmp_path / "half")


def test_a_subset_is_balanced_and_drawn_by_its_seed():
    reviews = [Review((str(n),), n >= 60) for n in range(100)]
    found = subset(reviews, 20, seed=1)
    assert sum(review.positive for review in found) == 10
    assert len({review.words for review in found}) == 20
    assert found == subset(reviews, 20, seed=1) != subset(reviews, 20, seed=2)
    # Of 40 positive reviews no more than 40.
    assert sum(review.positive for review in subset(reviews, 100, seed=1)) == 40


def test_vectors_of_the_asked_words_are_read(tmp_path):
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


def test_training_leaves_the_vectors_as_they_are(tmp_path):
    pytest.importorskip("torch")
    random = np.random.default_rng(0)
    words = ["good", "bad", *(f"w{n}" for n in range(29))]
    vectors = {word: random.normal(0, 0.3, EMBEDDING).astype(np.float32) for word in words}
    script = import_from(FOLDER, "train")
    script.main(
        FOLDER,
        imdb_archive(tmp_path / "x.tar.gz", told_apart(2 * TESTED, 1)),
        3,
        tmp_path / "network.npz",
        tmp_path / "figures.json",
        vectors_file(tmp_path / "glove.txt", vectors),
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
