"""Film reviews with people's ratings, as numbers.

They come with the source distribution of vaderSentiment 3.3.2 (C. J. Hutto and E. Gilbert: VADER: a
parsimonious rule-based model for sentiment analysis of social media text, ICWSM 2014): 10 605
snippets, each rated by twenty people from -4 to 4. The sign of the mean is the label.
"""

from __future__ import annotations

import io
import re
import tarfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from launchwise.base.errors import UserError

from .network import Cases

INNER = "additional_resources/hutto_ICWSM_2014.tar.gz"
SNIPPETS = "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt"
WORD = re.compile(r"[a-z0-9']+|[!?]")

PADDING, UNKNOWN = 0, 1
"""Words that stand for nothing and for any word outside the vocabulary."""


@dataclass(frozen=True)
class Review:
    """The words of a review, in order, and whether it is positive."""

    words: tuple[str, ...]
    positive: bool


def words_of(text: str) -> tuple[str, ...]:
    """Lower-case words, exclamation and question marks."""
    return tuple(WORD.findall(text.lower().replace("''", " ")))


def read_reviews(path: str | Path) -> list[Review]:
    """Reviews in the source distribution at ``path``, in its order; neutral ones are left out.

    Raises
    ------
    UserError
        When the archive is missing, damaged or another one.
    """
    try:
        with tarfile.open(path) as outer:
            name = next(name for name in outer.getnames() if name.endswith(INNER))
            held = outer.extractfile(name)
            assert held is not None
            with tarfile.open(fileobj=io.BytesIO(held.read())) as inner:
                lines = inner.extractfile(SNIPPETS)
                assert lines is not None
                text = lines.read().decode("utf-8", errors="replace")
    except FileNotFoundError as error:
        raise UserError(path, "", "is missing") from error
    except (OSError, EOFError, tarfile.TarError, KeyError, StopIteration, AssertionError) as error:
        raise UserError(path, "", f"holds no rated reviews: {error}") from error
    found = []
    for line in text.splitlines():
        parts = line.split("\t", 2)
        if len(parts) != 3:
            continue
        rating, words = float(parts[1]), words_of(parts[2])
        if rating and words:
            found.append(Review(words, rating > 0))
    return found


def vocabulary(reviews: Iterable[Review], most: int) -> dict[str, int]:
    """The most frequent words with their numbers; 0 and 1 stay free, ties go by the alphabet."""
    counts = Counter(word for review in reviews for word in review.words)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return {word: number for number, word in enumerate(ranked[: most - 2], start=2)}


def encoded(reviews: Sequence[Review], numbers: dict[str, int]) -> Cases:
    """Reviews by the numbers of their words."""
    longest = max(len(review.words) for review in reviews)
    tokens = np.full((len(reviews), longest), PADDING, np.uint16)
    for row, review in enumerate(reviews):
        tokens[row, : len(review.words)] = [numbers.get(word, UNKNOWN) for word in review.words]
    lengths = np.array([len(review.words) for review in reviews], np.int32)
    return Cases(tokens, lengths, np.array([review.positive for review in reviews], np.uint8))


def word_counts(cases: Cases, words: int) -> np.ndarray:
    """Occurrences of every word, int64 (words,); the padding has none."""
    counts = np.bincount(cases.tokens.reshape(-1), minlength=words).astype(np.int64)
    counts[PADDING] = 0
    return counts


def drawn(counts: np.ndarray, cases: int, tokens: int, seed: int) -> np.ndarray:
    """Words drawn as often as they occur, each for itself: uint16, (cases, tokens)."""
    random = np.random.default_rng(seed)
    upper = np.cumsum(counts) / counts.sum()
    return np.searchsorted(upper, random.random((cases, tokens)), side="right").astype(np.uint16)
