"""Check and copy the profile of a recorded GPU."""

from typing import TYPE_CHECKING

from launchwise.base.scripting import running
from launchwise.gpus.profile import read_profile, write_profile

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(gpu: str, profile: str, output: str) -> None:
    """Check that ``profile`` describes ``gpu`` and copy it."""
    write_profile(output, read_profile(profile, gpu))


if __name__ == "__main__":
    with running(snakemake):
        main(snakemake.wildcards.gpu, snakemake.input.profile, snakemake.output[0])
