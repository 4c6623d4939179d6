"""Training the network on the CPU with PyTorch, and the published data for it.

As published: Adam with a step of 0.001, cross-entropy, 8 reviews a step, 5 epochs, a fifth of the
units dropped. The network that comes with the project learns its embeddings, because none come with
its reviews; :func:`train_as_published` takes vectors of words as they are.

The published data are files that a user has: the archive ``aclImdb_v1.tar.gz`` (A. L. Maas et al.:
Learning word vectors for sentiment analysis, ACL 2011), 25 000 reviews to train and 25 000 to test,
and a text file of GloVe with 300 elements per word, ``glove.6B.300d.txt`` or another (J.
Pennington, R. Socher, C. D. Manning: GloVe: global vectors for word representation, EMNLP 2014).
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from launchwise.base.errors import UserError

from .network import (
    CLASSES,
    EMBEDDING,
    FIRST,
    SECOND,
    THIRD,
    Cases,
    Network,
    Trained,
    accuracy,
    logits,
)
from .reviews import PADDING, Review, encoded, vocabulary, word_counts, words_of

TOKENS = 256  # words of a published review: longer ones are cut
TRAINED, TESTED = 1000, 200  # reviews of the published subset (section 5.1.1)

PLACE = re.compile(r"aclImdb/(train|test)/(pos|neg)/\d+_\d+\.txt")
BREAK = re.compile(r"<br\s*/?>")

Parts = dict[str, list[Review]]  # ``train`` and ``test`` to their reviews


def read_imdb(path: str | Path) -> Parts:
    """Reviews of the archive at ``path``, each part in the order of its files' names.

    Raises UserError when the archive is missing, damaged or another one.
    """
    found: dict[str, dict[str, Review]] = {"train": {}, "test": {}}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                place = PLACE.fullmatch(member.name.removeprefix("./"))
                held = archive.extractfile(member) if place else None
                if place is None or held is None:
                    continue
                text = BREAK.sub(" ", held.read().decode("utf-8", errors="replace"))
                if words := words_of(text):
                    found[place[1]][place[0]] = Review(words[:TOKENS], place[2] == "pos")
    except FileNotFoundError as error:
        raise UserError(path, "", "is missing") from error
    except (OSError, EOFError, tarfile.TarError) as error:
        raise UserError(path, "", f"holds no reviews: {error}") from error
    if lacking := [part for part, reviews in found.items() if not reviews]:
        raise UserError(path, lacking[0], "holds no reviews: not the archive aclImdb_v1.tar.gz")
    return {part: [reviews[name] for name in sorted(reviews)] for part, reviews in found.items()}


def subset(reviews: Sequence[Review], count: int, seed: int) -> list[Review]:
    """``count`` of the reviews, half of them positive, drawn and ordered by ``seed``.

    Fewer where there are not as many.
    """
    random = np.random.default_rng(seed)
    chosen: list[Review] = []
    for positive in (False, True):
        own = [review for review in reviews if review.positive == positive]
        chosen += [own[at] for at in random.permutation(len(own))[: count // 2]]
    return [chosen[at] for at in random.permutation(len(chosen))]


def read_vectors(path: str | Path, words: Collection[str]) -> dict[str, np.ndarray]:
    """Vectors of those of the words that the file has, float32 (300,).

    Raises UserError when the file is missing or a vector has other elements.
    """
    wanted, found = set(words), {}
    for number, line in enumerate(_lines(path), start=1):
        word, _, rest = line.partition(" ")
        if word not in wanted:
            continue
        try:
            vector = np.array(rest.split(), dtype=np.float32)
        except ValueError as error:
            raise UserError(path, f"line {number}", "is no vector of numbers") from error
        if len(vector) != EMBEDDING or not np.isfinite(vector).all():
            message = f"has {len(vector)} elements, must have {EMBEDDING} finite ones"
            raise UserError(path, f"line {number}", message)
        found[word] = vector
    if not found:
        raise UserError(path, "", "has a vector of none of the reviews' words")
    return found


def _lines(path: str | Path) -> Iterator[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            yield from stream
    except FileNotFoundError as error:
        raise UserError(path, "", "is missing") from error


EPOCHS, BATCH, STEP, DROPOUT = 5, 8, 1e-3, 0.2
HELD_OUT = 0.1
WORDS = 4096
MOST_WORDS = 2**16  # words that a uint16 can number
SPREAD = 0.1  # standard deviation of the embeddings before training


def train(
    reviews: Sequence[Review], seed: int, epochs: int = EPOCHS
) -> tuple[Trained, dict[str, Any]]:
    """Train on nine tenths of the reviews, drawn by ``seed``; the others are held out.

    Returns the network with its held-out reviews, and figures: reviews, words and accuracies (by
    the float64 reference, with embeddings rounded to float16 as they are stored).
    Raises UserError when PyTorch is not there.
    """
    torch = _torch()
    order = np.random.default_rng(seed).permutation(len(reviews))
    count = int(len(reviews) * HELD_OUT)
    parts = [[reviews[i] for i in chosen] for chosen in (order[count:], order[:count])]
    numbers = vocabulary(parts[0], WORDS)
    learnt, held_out = (encoded(part, numbers) for part in parts)
    model = _fit(torch, learnt, seed, epochs)
    network = Network(**{name: _plain(model[name]) for name in model})
    trained = Trained(network, held_out, word_counts(learnt, WORDS))
    return trained, {
        "reviews_trained": len(parts[0]),
        "reviews_held_out": len(parts[1]),
        "words": WORDS,
        "unknown_share": float((held_out.tokens == 1).sum() / held_out.lengths.sum()),
        "longest": int(max(learnt.lengths.max(), held_out.lengths.max())),
        "accuracy_trained": _accuracy(network, learnt),
        "accuracy_held_out": _accuracy(network, held_out),
        "positive_share_held_out": float(held_out.labels.mean()),
        "torch": str(torch.__version__),
    }


def train_as_published(
    learnt: Sequence[Review],
    tested: Sequence[Review],
    vectors: Mapping[str, np.ndarray],
    seed: int,
    epochs: int = EPOCHS,
) -> tuple[Trained, dict[str, Any]]:
    """Train on reviews whose words have given vectors, and test on others.

    ``vectors``: word to its vector, float32 (300,), which training leaves as it is. Other words
    have zeros.
    Returns the network with the tested reviews, and figures: reviews, words, accuracies (by the
    float64 reference, with vectors rounded to float16).
    Raises UserError when PyTorch is not there.
    """
    torch = _torch()
    every = (*learnt, *tested)
    named = (Review(tuple(w for w in one.words if w in vectors), one.positive) for one in every)
    numbers = vocabulary(named, MOST_WORDS)
    table = np.zeros((len(numbers) + 2, EMBEDDING), np.float32)
    for word, number in numbers.items():
        table[number] = vectors[word]
    parts = encoded(learnt, numbers), encoded(tested, numbers)
    model = _fit(torch, parts[0], seed, epochs, table)
    network = Network(**{name: _plain(model[name]) for name in model})
    known = [int((part.tokens > 1).sum()) / int(part.lengths.sum()) for part in parts]
    return Trained(network, parts[1], word_counts(parts[0], len(table))), {
        "reviews_trained": len(learnt),
        "reviews_tested": len(tested),
        "words": len(table),
        "known_share_trained": known[0],
        "known_share_tested": known[1],
        "accuracy_trained": _accuracy(network, parts[0]),
        "accuracy_tested": _accuracy(network, parts[1]),
        "torch": str(torch.__version__),
    }


def _accuracy(network: Network, cases: Cases) -> float:
    return accuracy(logits(network, cases.tokens, cases.lengths), cases.labels)


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        message = "is not installed; training needs it: pip install torch"
        raise UserError("torch", "", message) from error
    return torch


def _fit(
    torch: Any, cases: Cases, seed: int, epochs: int, vectors: np.ndarray | None = None
) -> dict[str, Any]:
    """Weights by their names in :class:`Network`, as tensors.

    ``vectors``: embeddings that stay as they are, float32 (words, 300); without them they are
    learnt.
    """
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)
    nn = torch.nn
    if vectors is None:
        table = nn.Embedding(WORDS, EMBEDDING, padding_idx=PADDING)
        with torch.no_grad():
            table.weight.mul_(SPREAD)
    else:
        given = torch.from_numpy(vectors)
        table = nn.Embedding.from_pretrained(given, freeze=True, padding_idx=PADDING)
    dense = [nn.Linear(*shape) for shape in (
        (EMBEDDING, FIRST), (FIRST, SECOND), (SECOND, THIRD), (THIRD, CLASSES)
    )]  # fmt: skip
    drop = nn.Dropout(DROPOUT)
    everything = nn.ModuleList([table, *dense])
    learnt = [weight for weight in everything.parameters() if weight.requires_grad]
    optimiser = torch.optim.Adam(learnt, lr=STEP)
    tokens = torch.from_numpy(cases.tokens.astype(np.int64))
    lengths = torch.from_numpy(cases.lengths.astype(np.int64))
    labels = torch.from_numpy(cases.labels.astype(np.int64))
    for _ in range(epochs):
        for chosen in torch.randperm(len(tokens)).split(BATCH):
            length = lengths[chosen]
            x = drop(table(tokens[chosen, : int(length.max())]))
            x = drop(torch.relu(dense[0](x)))
            x = torch.relu(dense[1](x))
            mask = torch.arange(x.shape[1])[None, :] < length[:, None]
            pooled = (x * mask[..., None]).sum(1) / length[:, None]
            found = dense[3](drop(torch.relu(dense[2](pooled))))
            optimiser.zero_grad()
            nn.functional.cross_entropy(found, labels[chosen]).backward()
            optimiser.step()
    weights = {"embeddings": table.weight.half()}
    for number, layer in enumerate(dense, start=1):
        weights |= {f"w{number}": layer.weight.t(), f"b{number}": layer.bias}
    return weights


def _plain(tensor: Any) -> np.ndarray:
    return np.ascontiguousarray(tensor.detach().numpy())
