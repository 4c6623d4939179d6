"""Check pairs, of configurations or of libraries, and copy them: from data/recorded/, or there."""

from pathlib import Path
from typing import TYPE_CHECKING

from launchwise.base.forking import run

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(folder: str, gpu: str, kind: str, pairs: str, output: str) -> None:
    """Check ``pairs`` and copy them; ``kind`` is ``pairs`` or ``peers``.

    Raises
    ------
    UserError
        When they do not fit their schema or speak of another GPU.
    """
    from launchwise.base.errors import UserError
    from launchwise.tables.files import read_facts, read_table, write_table
    from launchwise.tables.pairs import pairs_schema
    from launchwise.tables.peers import peers_schema
    from launchwise.workloads.spec import load_spec

    schemas = {"pairs": pairs_schema, "peers": peers_schema}
    schema = schemas[kind](load_spec(Path(folder)))
    table = read_table(pairs, schema)
    if names := sorted(set(table["gpu"]) - {gpu}):
        raise UserError(pairs, "gpu", f"is {names[0]!r}, not {gpu!r}")
    write_table(output, table, schema, read_facts(pairs))


if __name__ == "__main__":
    run(
        main,
        snakemake,
        "tables",
        folder=snakemake.params.folder,
        gpu=snakemake.wildcards.gpu,
        kind=snakemake.params.kind,
        pairs=snakemake.input.pairs,
        output=snakemake.output[0],
    )
