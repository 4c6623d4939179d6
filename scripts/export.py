"""Write a study's answers for other languages and tools."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from launchwise.base.scripting import log, run


def main(
    folder: Path,
    question: dict[str, Any],
    lookup: Path,
    objective: str,
    gpus: list[str],
    profiles: list[Path],
    peers: list[Path],
    device_names: Path,
    output: Path,
) -> None:
    """Write every format into one folder.

    ``lookup``: answers of the study's product.
    ``objective``: see ``objective`` of the settings.
    ``gpus``, ``profiles``: names of the GPUs that it answers for, and the file of each.
    ``peers``: pairs of the study's libraries.
    ``device_names``: table of what CUDA calls the cards.
    """
    from launchwise.exporting.exports import write_answers
    from launchwise.exporting.table import read_answer_table
    from launchwise.importing.device_names import cuda_names
    from launchwise.learning.features import read_domain
    from launchwise.report.answer.predicted_times import off_in
    from launchwise.tables.files import read_table
    from launchwise.tables.measurements import peers_schema

    domain = read_domain(folder, gpus, profiles, question)
    table = read_answer_table(lookup, domain, objective).named_by(cuda_names(device_names))
    pairs = [read_table(path, peers_schema(domain.spec)) for path in peers]
    write_answers(output, replace(table.beside_libraries(pairs), off=off_in(Path("results"))))
    log.info("%d answers on %d devices", len(table.entries), len(table.devices))


if __name__ == "__main__":
    run(main)
