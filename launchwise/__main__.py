"""``python -m launchwise``, and what the command ``launchwise`` starts."""

import sys

STOPPED = 130  # Exit code after Ctrl-C, as shells have it


def main() -> int:
    """Run a command; Ctrl-C ends in one line, while modules are imported, too."""
    try:
        from launchwise.cli.app import main as command

        return command()
    except KeyboardInterrupt:
        print("launchwise: stopped: the same command again goes on", file=sys.stderr)
        return STOPPED


if __name__ == "__main__":
    raise SystemExit(main())
