"""Train the network on the CPU, with PyTorch: embeddings with it, or as published over vectors."""

from __future__ import annotations

from pathlib import Path

from launchwise.base.places import commit, now
from launchwise.base.scripting import run
from launchwise.base.storage import write_json
from launchwise.workloads.declared.own_functions import import_from


def main(
    folder: Path,
    reviews: Path,
    seed: int,
    network: Path,
    figures: Path,
    vectors: Path | None = None,
) -> None:
    """``reviews``: rated reviews; IMDB's where ``vectors`` of words are given."""
    training = import_from(folder, "host.training")
    write_trained = import_from(folder, "host.network").write_trained
    if vectors is None:
        read_reviews = import_from(folder, "host.reviews").read_reviews
        trained, found = training.train(read_reviews(reviews), seed)
    else:
        parts = training.read_imdb(reviews)
        learnt = training.subset(parts["train"], training.TRAINED, seed)
        tested = training.subset(parts["test"], training.TESTED, seed)
        words = {word for review in (*learnt, *tested) for word in review.words}
        known = training.read_vectors(vectors, words)
        trained, found = training.train_as_published(learnt, tested, known, seed)
    write_trained(network, trained)
    write_json(figures, {**found, "seed": seed, "commit": commit(), "trained_at": now()})


if __name__ == "__main__":
    run(main)
