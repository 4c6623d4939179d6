"""Write the profile of a datasheet-only GPU."""

from typing import TYPE_CHECKING

from launchwise.base.forking import run

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    gpu: str, card: str, host_gbs: float | None, cards: str, reference: str, output: str
) -> None:
    """Write the profile of ``gpu``: ``card`` of ``cards``, at the efficiency of ``reference``."""
    from launchwise.gpus.datasheets import described_profile, read_cards, reference_efficiency
    from launchwise.gpus.profile import write_profile

    datasheets = read_cards(cards)
    efficiency = reference_efficiency(datasheets, reference)
    write_profile(output, described_profile(gpu, datasheets, efficiency, card, host_gbs))


if __name__ == "__main__":
    run(
        main,
        snakemake,
        "tables",
        gpu=snakemake.wildcards.gpu,
        card=snakemake.params.card,
        host_gbs=snakemake.params.host_gbs,
        cards=snakemake.input.cards,
        reference=snakemake.input.reference,
        output=snakemake.output[0],
    )
