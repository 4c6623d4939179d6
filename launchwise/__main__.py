"""``python -m launchwise``, and what the command ``launchwise`` starts."""

from launchwise.cli import stopped


def main() -> int:
    """Run a command; Ctrl-C ends in one line, while modules are imported, too."""
    try:
        from launchwise.cli.app import main as command

        return command()
    except KeyboardInterrupt:
        return stopped()


if __name__ == "__main__":
    raise SystemExit(main())
