"""Train the sentiment network on the CPU, with PyTorch."""

from typing import TYPE_CHECKING

from kernels.sentiment.host.network import write_trained
from kernels.sentiment.host.reviews import read_reviews
from kernels.sentiment.host.training import train
from launchwise.base.provenance import commit, now
from launchwise.base.scripting import running
from launchwise.base.storage import write_json

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(reviews: str, seed: int, network: str, figures: str) -> None:
    """Write the network and what its training reached."""
    trained, found = train(read_reviews(reviews), seed)
    write_trained(network, trained)
    write_json(figures, {**found, "seed": seed, "commit": commit(), "trained_at": now()})


if __name__ == "__main__":
    with running(snakemake):
        main(
            snakemake.input.reviews,
            snakemake.params.seed,
            snakemake.output.network,
            snakemake.output.figures,
        )
