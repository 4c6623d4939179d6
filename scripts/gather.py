"""Merge the shards of a sweep, and the recorded rows that it extends."""

from pathlib import Path
from typing import Any

from launchwise.base.scripting import run


def main(
    folder: Path,
    shards: list[Path],
    extends: dict[str, Any] | None,
    method: dict[str, Any],
    output: Path,
) -> None:
    """Write one table, sorted by key, of every row in ``shards``.

    ``extends``: recorded sweep (``path``) whose rows stay, except those measured ``anew``.
    ``method``: how the rows in ``shards`` were measured.
    """
    from launchwise.measuring.earlier_rows import gather

    gather(folder, shards, extends, method, output)


if __name__ == "__main__":
    run(main)
