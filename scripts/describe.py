"""Describe one live GPU: attributes and measured ceilings."""

from typing import TYPE_CHECKING

from launchwise.base.scripting import running
from launchwise.experiment.settings import Gpu
from launchwise.gpus.profile import write_profile
from launchwise.measuring.cards import free_card, selects
from launchwise.measuring.describing import measured_profile

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(name: str, entry: Gpu, arch: str, output: str) -> None:
    """Describe a free card that fits ``entry`` and write the profile to ``output``."""
    wanted = f"{entry.device or 'a card'} of {arch}"
    with free_card(name, selects(arch, entry.device), wanted) as card:
        profile = measured_profile(name, card, entry.slice_sms)
    write_profile(output, profile)


if __name__ == "__main__":
    with running(snakemake):
        main(
            snakemake.wildcards.gpu,
            Gpu.model_validate(snakemake.params.entry),
            snakemake.params.arch,
            snakemake.output[0],
        )
