"""Remove the models that were fitted to folds."""

import shutil
from pathlib import Path

from launchwise.base.forking import run
from launchwise.base.scripting import log


def main(folder: Path) -> None:
    """Remove a folder with its files, of which some have several names."""
    files = [path.stat() for path in folder.rglob("*") if path.is_file()]
    sizes = {file.st_ino: file.st_size for file in files}
    shutil.rmtree(folder, ignore_errors=True)
    log.info("%s: %.0f MB removed", folder, sum(sizes.values()) / 1e6)


if __name__ == "__main__":
    run(main, "tables")
