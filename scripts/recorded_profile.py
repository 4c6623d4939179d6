"""Check and copy the profile of a recorded GPU."""

from typing import TYPE_CHECKING

from launchwise.base.forking import run

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(gpu: str, profile: str, output: str) -> None:
    """Check that ``profile`` describes ``gpu`` and copy it."""
    from launchwise.base.errors import UserError
    from launchwise.gpus.profile import read_profile, write_profile

    found = read_profile(profile, gpu)
    if found.has_attributes_alone:
        raise UserError(profile, "ceilings", "were not measured: run `snakemake -R describe` first")
    write_profile(output, found)


if __name__ == "__main__":
    run(
        main,
        snakemake,
        "tables",
        gpu=snakemake.wildcards.gpu,
        profile=snakemake.input.profile,
        output=snakemake.output[0],
    )
