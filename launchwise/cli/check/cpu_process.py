"""The process that runs kernels on the CPU, as ``launchwise check`` holds it: it may crash or hang.

It loads its libraries while its parent still reads the workload.
"""

from __future__ import annotations

import contextlib
import json
import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any


class Died(Exception):
    """The process ended, or was ended because it did not answer; the message says which."""


class Silent(Died):
    """It did not answer in time."""


class CpuProcess:
    """A process of :mod:`launchwise.cli.check.on_cpu` for a workload; it ends with the block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._errors: IO[str] = tempfile.TemporaryFile(  # noqa: SIM115 (closed with the block)
            "w+", encoding="utf-8", errors="replace"
        )
        self._start()

    def _start(self) -> None:
        self._errors.seek(0)
        self._errors.truncate()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "launchwise.cli.check.on_cpu", str(self._folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def __enter__(self) -> CpuProcess:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()
        self._errors.close()

    def run(self, job: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Its answer to one job; a process that has died is started anew. Raises Silent when there
        is none within so many seconds. Raises Died when the process dies."""
        if self._process.poll() is not None:
            self._process.communicate()
            self._start()
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        # Of a process that has died the last words say more than a broken pipe.
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
        # It answers once for each job, so nothing of an answer waits in a buffer.
        if not select.select([process.stdout], [], [], seconds)[0]:
            process.kill()
            process.wait()
            raise Silent(f"did not finish within {seconds:g} s")
        line = process.stdout.readline()
        if not line:
            code = process.wait()
            raise Died(self._last_words() or f"ended with code {code}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _last_words(self) -> str:
        self._errors.seek(0)
        said = self._errors.read().strip().splitlines()
        return said[-1] if said else ""
