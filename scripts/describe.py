"""Describe one live GPU: attributes and measured ceilings."""

from pathlib import Path

from launchwise.base.scripting import run
from launchwise.experiment.settings import Gpu
from launchwise.gpus.profile import write_profile
from launchwise.measuring.cards import free_card, measured_profile, selects


def main(gpu: str, entry: Gpu, arch: str, output: Path) -> None:
    """Describe a free card that fits ``entry`` and write the profile to ``output``."""
    wanted = f"{entry.device or 'a card'} of {arch}"
    with free_card(gpu, selects(arch, entry.device), wanted) as card:
        profile = measured_profile(gpu, card, entry.slice_sms)
    write_profile(output, profile)


if __name__ == "__main__":
    run(main)
