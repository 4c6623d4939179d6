"""Bring the profiles of recorded GPUs, and estimate those of datasheet-only ones."""

from pathlib import Path

from launchwise.base.scripting import run


def main(
    gpus: list[str],
    recorded: list[Path],
    described: dict[str, str],
    host_gbs: dict[str, float | None],
    cards: Path,
    reference: Path,
    output: list[Path],
) -> None:
    """Write the profile of each GPU.

    ``gpus``, ``recorded``: recorded GPUs, and the file of each.
    ``described``, ``host_gbs``: datasheet-only GPUs to their cards, and to what is known of their
        link to the host.
    ``cards``, ``reference``: table of cards; profile whose efficiency they are taken to have.
    ``output``: of ``gpus``, then of ``described``.
    """
    from launchwise.base.errors import UserError
    from launchwise.gpus.datasheets import described_profile, read_cards, reference_efficiency
    from launchwise.gpus.profile import read_profile, write_profile

    known = []
    for gpu, path in zip(gpus, recorded, strict=True):
        known.append(read_profile(path, gpu))
        if known[-1].has_attributes_alone:
            message = "were not measured: run `snakemake -R describe` first"
            raise UserError(path, "ceilings", message)
    # Only datasheet-only GPUs need all rates of the reference.
    if described:
        datasheets = read_cards(cards)
        efficiency = reference_efficiency(datasheets, reference)
        for gpu, card in described.items():
            known.append(described_profile(gpu, datasheets, efficiency, card, host_gbs[gpu]))
    for path, profile in zip(output, known, strict=True):
        write_profile(path, profile)


if __name__ == "__main__":
    run(main)
