"""Make the profile of a GPU that nobody measured, from the datasheet of its card."""

from typing import TYPE_CHECKING

from launchwise.base.scripting import running
from launchwise.gpus.datasheets import described_profile, read_cards
from launchwise.gpus.profile import write_profile

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(gpu: str, card: str, cards: str, output: str) -> None:
    """Write the profile of ``gpu``, which ``cards`` has as ``card``."""
    write_profile(output, described_profile(gpu, read_cards(cards), card))


if __name__ == "__main__":
    with running(snakemake):
        main(
            snakemake.wildcards.gpu,
            snakemake.params.card,
            snakemake.input.cards,
            snakemake.output[0],
        )
