"""Copy files as they are."""

import shutil
from typing import TYPE_CHECKING

from launchwise.base.forking import run

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(files: list[str], copies: list[str]) -> None:
    """Copy each file to its place among ``copies``."""
    from launchwise.base.storage import whole_file

    for path, copy in zip(files, copies, strict=True):
        with whole_file(copy) as scratch:
            shutil.copyfile(path, scratch)


if __name__ == "__main__":
    run(
        main,
        snakemake,
        "tables",
        files=list(snakemake.input),
        copies=list(snakemake.output),
    )
