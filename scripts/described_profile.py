"""Write the profile of a datasheet-only GPU."""

from typing import TYPE_CHECKING

from launchwise.base.scripting import running
from launchwise.gpus.datasheets import described_profile, read_cards, reference_efficiency
from launchwise.gpus.profile import write_profile

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(gpu: str, card: str, cards: str, reference: str, output: str) -> None:
    """Write the profile of ``gpu``: ``card`` of ``cards``, at the efficiency of ``reference``."""
    datasheets = read_cards(cards)
    efficiency = reference_efficiency(datasheets, reference)
    write_profile(output, described_profile(gpu, datasheets, efficiency, card))


if __name__ == "__main__":
    with running(snakemake):
        main(
            snakemake.wildcards.gpu,
            snakemake.params.card,
            snakemake.input.cards,
            snakemake.input.reference,
            snakemake.output[0],
        )
