"""``python -m launchwise``: the same as the command ``launchwise``."""

from launchwise.cli.app import main

if __name__ == "__main__":
    raise SystemExit(main())
