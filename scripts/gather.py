"""Merge the shards of a sweep, and the recorded rows that it extends."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.forking import run

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    folder: str,
    shards: list[str],
    extends: dict[str, Any] | None,
    method: dict[str, Any],
    output: str,
) -> None:
    """Write one table, sorted by key, of every row in ``shards``.

    Parameters
    ----------
    extends
        Recorded sweep (``path``) whose rows stay, except those measured ``anew``.
    method
        How the rows in ``shards`` were measured.
    """
    from launchwise.measuring.gathering import gather

    gather(Path(folder), shards, extends, method, output)


if __name__ == "__main__":
    run(
        main,
        snakemake,
        "tables",
        folder=snakemake.params.folder,
        shards=list(snakemake.input.shards),
        extends=snakemake.params.extends,
        method=snakemake.params.method,
        output=snakemake.output[0],
    )
