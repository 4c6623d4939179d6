"""A measuring process, as the supervisor holds it: start, a first question, end.

It is started with nothing but its command, so that it loads its libraries and opens the device
while the supervisor still prepares the job, and nvcc runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from launchwise.base.errors import UserError

KILLED_S = 30.0
"""Time for a killed process to end, s: a driver that hangs keeps it for good."""

OPENED_S = 120.0
"""Time that a process may take to open its device, s."""


class MeasuringProcess:
    """A process of :mod:`launchwise.cuda.child`.

    Parameters
    ----------
    command, environment
        What is run, and its variables.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        # A driver's last words need not be text.
        self._errors: IO[str] = tempfile.TemporaryFile(  # noqa: SIM115 (:meth:`end` closes it)
            "w+", encoding="utf-8", errors="replace"
        )
        self.popen = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=dict(environment),
            # Its own group: a Ctrl-C reaches the supervisor alone, which lets the row finish.
            start_new_session=True,
        )

    @property
    def asks(self) -> IO[bytes]:
        """Pipe to the process."""
        assert self.popen.stdin is not None
        return self.popen.stdin

    @property
    def events(self) -> IO[bytes]:
        """Pipe from the process."""
        assert self.popen.stdout is not None
        return self.popen.stdout

    def attributes(self, folder: Path, slice_sms: int | None) -> dict[str, Any]:
        """Attributes of the first visible device, or of its slice, which the process opens.

        Parameters
        ----------
        folder
            Folder of the workload that it will measure.

        Raises
        ------
        UserError
            When the device cannot be opened.
        """
        # A process that has died says more than a broken pipe.
        with contextlib.suppress(BrokenPipeError):
            asked = {"describe": {"folder": str(folder), "slice_sms": slice_sms}}
            self.asks.write(json.dumps(asked).encode() + b"\n")
            self.asks.flush()
        line, until = b"", time.monotonic() + OPENED_S
        while not line.endswith(b"\n"):
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.events], [], [], left)[0]:
                raise UserError(
                    "describe", "", f"the driver does not respond within {OPENED_S:g} s"
                )
            chunk = os.read(self.events.fileno(), 1 << 16)
            if not chunk:
                self.exit_code(KILLED_S)
                raise UserError("describe", "", self.last_words() or "the measuring process died")
            line += chunk
        event = json.loads(line)
        if event["event"] != "attributes":
            raise UserError("describe", "", event["reason"])
        found: dict[str, Any] = event["attributes"]
        return found

    def exit_code(self, seconds: float) -> int | None:
        """Exit code of a process that ends within some seconds; None if it does not."""
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def last_words(self) -> str:
        """Last line of its standard error."""
        self._errors.seek(0)
        said = self._errors.read().strip().splitlines()
        return said[-1] if said else ""

    def kill(self) -> None:
        """End it at once."""
        self.popen.kill()

    def end(self) -> None:
        """Kill it, if it still runs; what it says is not heard any more."""
        if self.popen.poll() is None:
            self.kill()
            self.exit_code(KILLED_S)
        self.events.close()
        self._errors.close()

    def close(self) -> None:
        """:meth:`end` for a process that no thread feeds."""
        self.end()
        # What was not yet written has no reader any more.
        with contextlib.suppress(OSError):
            self.asks.close()


def death(code: int) -> str:
    """An exit code, in words."""
    if code < 0:
        return f"the measuring process was killed by {signal.Signals(-code).name}"
    return f"the measuring process ended with code {code}"
