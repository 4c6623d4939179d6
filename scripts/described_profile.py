"""Write the profile of a datasheet-only GPU."""

from pathlib import Path

from launchwise.base.forking import run


def main(
    gpu: str, card: str, host_gbs: float | None, cards: Path, reference: Path, output: Path
) -> None:
    """Write the profile of ``gpu``: ``card`` of ``cards``, at the efficiency of ``reference``."""
    from launchwise.gpus.datasheets import described_profile, read_cards, reference_efficiency
    from launchwise.gpus.profile import write_profile

    datasheets = read_cards(cards)
    efficiency = reference_efficiency(datasheets, reference)
    write_profile(output, described_profile(gpu, datasheets, efficiency, card, host_gbs))


if __name__ == "__main__":
    run(main, "tables")
