"""Check and copy the profile of a recorded GPU."""

from pathlib import Path

from launchwise.base.forking import run


def main(gpu: str, profile: Path, output: Path) -> None:
    """Check that ``profile`` describes ``gpu`` and copy it."""
    from launchwise.base.errors import UserError
    from launchwise.gpus.profile import read_profile, write_profile

    found = read_profile(profile, gpu)
    if found.has_attributes_alone:
        raise UserError(profile, "ceilings", "were not measured: run `snakemake -R describe` first")
    write_profile(output, found)


if __name__ == "__main__":
    run(main, "tables")
