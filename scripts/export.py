"""Write a study's answers for other languages and tools."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.forking import run
from launchwise.base.scripting import log

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    study: str,
    folder: str,
    question: dict[str, Any],
    final: str,
    profiles: dict[str, str],
    least_gain: float | None,
    processes: int,
    device_names: str,
    output: str,
) -> None:
    """Write every format into one folder.

    Parameters
    ----------
    final
        Folder of the study's product.
    profiles
        GPU to its file; those that the product did not learn from are answered as well.
    least_gain
        See ``least_gain`` of the settings.
    device_names
        Table of what CUDA calls the cards.
    """
    from launchwise.exporting.files import write_answers
    from launchwise.exporting.table import answer_table
    from launchwise.gpus.profile import read_profile
    from launchwise.importing.cards import cuda_names
    from launchwise.learning.features import Domain
    from launchwise.learning.final import read_final
    from launchwise.workloads.spec import load_spec

    described = {gpu: read_profile(path, gpu) for gpu, path in profiles.items()}
    domain = Domain(load_spec(Path(folder)), described, **question)
    product = read_final(Path(final), domain)
    names = cuda_names(device_names)
    table = answer_table(product, study, list(described), least_gain, processes, names)
    write_answers(Path(output), table)
    log.info("%d answers on %d devices", len(table.entries), len(table.devices))


if __name__ == "__main__":
    params, given = snakemake.params, snakemake.input
    run(
        main,
        snakemake,
        "models",
        study=snakemake.wildcards.study,
        folder=params.folder,
        question=params.question,
        final=given.final,
        profiles=dict(zip(params.gpus, given.profiles, strict=True)),
        least_gain=params.least_gain,
        processes=snakemake.threads,
        device_names=given.device_names,
        output=snakemake.output[0],
    )
