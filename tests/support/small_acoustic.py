"""A copy of the acoustic workload with a small space."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from samples import ROOT

SMALL_SPACE = {
    "bx": "[8, 64]",
    "by": "[1, 8]",
    "bz": "[1, 8]",
    "tx": "[1, 2]",
    "ty": "[1, 2]",
    "tz": "[1, 2]",
    # Kernels that stream along z have no such tile.
    "tile_x": "[64]",
    "tile_y": "[8]",
}


def copy_small_acoustic(into: Path) -> Path:
    """Copy the workload to ``into/kernels/acoustic``, free to be changed."""
    folder = into / "kernels" / "acoustic"
    # What is usual names values that this smaller space does not have.
    ignored = shutil.ignore_patterns("usual.yaml")
    shutil.copytree(ROOT / "kernels" / "acoustic", folder, ignore=ignored)
    text = (folder / "spec.yaml").read_text()
    for name, values in SMALL_SPACE.items():
        head, name_and_kind, tail = re.split(
            rf"^(  {name}:\n    kind: \w+\n    values: ).*$", text, maxsplit=1, flags=re.MULTILINE
        )
        text = f"{head}{name_and_kind}{values}{tail}"
    (folder / "spec.yaml").write_text(text)
    return folder
