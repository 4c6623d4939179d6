"""Train the network on the CPU, with PyTorch."""

from pathlib import Path
from typing import TYPE_CHECKING

from launchwise.base.provenance import commit, now
from launchwise.base.scripting import running
from launchwise.base.storage import write_json
from launchwise.workloads.packages import import_from

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(folder: Path, reviews: str, seed: int, network: str, figures: str) -> None:
    """Write the network and what its training reached."""
    training = import_from(folder, "host.training")
    read_reviews = import_from(folder, "host.reviews").read_reviews
    write_trained = import_from(folder, "host.network").write_trained
    trained, found = training.train(read_reviews(reviews), seed)
    write_trained(network, trained)
    write_json(figures, {**found, "seed": seed, "commit": commit(), "trained_at": now()})


if __name__ == "__main__":
    with running(snakemake):
        main(
            Path(snakemake.params.folder),
            snakemake.input.reviews,
            snakemake.params.seed,
            snakemake.output.network,
            snakemake.output.figures,
        )
