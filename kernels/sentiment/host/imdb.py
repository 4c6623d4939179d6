"""The published training data, from files that a user has: pip does not install them.

Reviews: the archive ``aclImdb_v1.tar.gz`` (A. L. Maas et al.: Learning word vectors for sentiment
analysis, ACL 2011), 25 000 to train and 25 000 to test. Vectors: a text file of GloVe with 300
elements per word, ``glove.6B.300d.txt`` or another (J. Pennington, R. Socher, C. D. Manning: GloVe:
global vectors for word representation, EMNLP 2014).
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np

from launchwise.base.errors import UserError

from .network import EMBEDDING
from .reviews import Review, words_of

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
