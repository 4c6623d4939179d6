"""Copy files as they are."""

import shutil
from pathlib import Path

from launchwise.base.scripting import run


def main(files: list[Path], copies: list[Path]) -> None:
    """Copy each file to its place among ``copies``."""
    from launchwise.base.storage import whole_file

    for path, copy in zip(files, copies, strict=True):
        with whole_file(copy) as scratch:
            shutil.copyfile(path, scratch)


if __name__ == "__main__":
    run(main)
