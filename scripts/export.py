"""Write a study's answers for other languages and tools."""

from pathlib import Path
from typing import Any

from launchwise.base.scripting import log, run


def main(
    study: str,
    folder: Path,
    question: dict[str, Any],
    final: Path,
    gpus: list[str],
    profiles: list[Path],
    least_gain: float | None,
    threads: int,
    device_names: Path,
    output: Path,
) -> None:
    """Write every format into one folder.

    ``final``: facts of the study's product.
    ``gpus``, ``profiles``: names, and the file of each; those that the product did not learn from
        are answered as well.
    ``least_gain``: see ``least_gain`` of the settings.
    ``device_names``: table of what CUDA calls the cards.
    """
    from launchwise.exporting.files import write_answers
    from launchwise.exporting.table import answer_table
    from launchwise.importing.cards import cuda_names
    from launchwise.learning.features import read_domain
    from launchwise.learning.final import read_final

    product = read_final(final.parent, read_domain(folder, gpus, profiles, question))
    names = cuda_names(device_names)
    table = answer_table(product, study, gpus, least_gain, threads, names)
    write_answers(output, table)
    log.info("%d answers on %d devices", len(table.entries), len(table.devices))


if __name__ == "__main__":
    run(main)
