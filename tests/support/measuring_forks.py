"""Measuring processes that are forks of their supervisor, where everything is imported already.

A start takes 0.05 s, not half a second.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# The scripts, so that every fork has what they import.
import faulty_child
import host_device
import staged_child
from python_forks import ForkingPopen

MODULES = (faulty_child, host_device, staged_child)
SCRIPTS = [str(Path(module.__file__).resolve()) for module in MODULES]


def script(command: Any, shell: bool) -> list[str] | None:
    """What Python is asked to run if that is one of :data:`SCRIPTS`; else None."""
    of_python = not shell and command[0] == sys.executable
    return list(command[1:]) if of_python and str(command[1]) in SCRIPTS else None


class ForkedProcess(ForkingPopen):
    """A process of one of :data:`SCRIPTS` without exec; any other is started as always."""

    program = staticmethod(script)
