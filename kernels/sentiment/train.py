"""Train the network on the CPU, with PyTorch."""

from pathlib import Path

from launchwise.base.provenance import commit, now
from launchwise.base.scripting import run
from launchwise.base.storage import write_json
from launchwise.workloads.declared.own_functions import import_from


def main(folder: Path, reviews: Path, seed: int, network: Path, figures: Path) -> None:
    training = import_from(folder, "host.training")
    read_reviews = import_from(folder, "host.reviews").read_reviews
    write_trained = import_from(folder, "host.network").write_trained
    trained, found = training.train(read_reviews(reviews), seed)
    write_trained(network, trained)
    write_json(figures, {**found, "seed": seed, "commit": commit(), "trained_at": now()})


if __name__ == "__main__":
    run(main)
