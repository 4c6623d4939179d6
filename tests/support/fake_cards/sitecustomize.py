"""Python on a machine with made-up cards: what talks to CUDA is replaced, in every process.

For tests of the whole pipeline where there is no GPU. This folder comes first in PYTHONPATH, so
that its ``pynvml``, ``pycuda`` and ``cuda`` are found instead of real ones; the two processes that
hold a device, ``launchwise.cuda.ceilings`` and ``launchwise.cuda.child``, are those of this folder.
"""

import importlib.abc
import importlib.util
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPLACED = {
    "launchwise.cuda.ceilings": HERE / "described.py",
    "launchwise.cuda.child": HERE / "measuring.py",
}


class Replaced(importlib.abc.MetaPathFinder):
    """Finds the modules of this folder."""

    def find_spec(self, name, path=None, target=None):
        """As the protocol of importlib says."""
        if name not in REPLACED:
            return None
        return importlib.util.spec_from_file_location(name, REPLACED[name])


sys.meta_path.insert(0, Replaced())
