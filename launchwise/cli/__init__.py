"""Commands, and what generates the reference.

:mod:`launchwise.cli.app` is the command ``launchwise``. Modules ``*_commands`` declare
arguments and options, and import everything else when a command runs: ``launchwise --help`` and
completion must not wait for pandas."""

import sys

STOPPED = 130  # Exit code after Ctrl-C, as shells have it


def stopped() -> int:
    """Say that Ctrl-C ended a command; returns the exit code."""
    print("launchwise: stopped: the same command again goes on", file=sys.stderr)
    return STOPPED
