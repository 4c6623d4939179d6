"""Write a study's answers for the lookup of the report."""

from pathlib import Path
from typing import Any

from launchwise.base.forking import run
from launchwise.base.scripting import log


def main(
    folder: Path,
    question: dict[str, Any],
    final: Path,
    gpus: list[str],
    profiles: list[Path],
    least_gain: float | None,
    threads: int,
    output: Path,
) -> None:
    """Answer what was measured and sizes between, on every GPU of the study.

    Parameters
    ----------
    final
        Folder of the study's product.
    gpus, profiles
        Names, and the file of each; those that the product did not learn from are answered as well.
    least_gain
        See ``least_gain`` of the settings.
    """
    from launchwise.base.storage import write_sealed_json
    from launchwise.exporting.lookup import lookup_entries
    from launchwise.learning.final import read_final
    from launchwise.learning.reading import read_domain

    product = read_final(final, read_domain(folder, gpus, profiles, question))
    entries = lookup_entries(product, gpus, least_gain, threads)
    write_sealed_json(output, {"answers": [entry.plain() for entry in entries]})
    log.info("%d answers on %d GPUs", len(entries), len(gpus))


if __name__ == "__main__":
    run(main, "models")
