"""Write rows of other GPUs, for a sweep whose strategy starts from them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.forking import run
from launchwise.base.scripting import log

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    folder: str,
    sweeps: dict[str, str],
    extended: dict[str, str],
    problems: list[dict[str, Any]],
    output: str,
) -> None:
    """Write the rows of each problem, or of the nearest one that was measured.

    Parameters
    ----------
    sweeps
        Other GPU to its sweep.
    extended
        Other GPU that is extended to its recorded sweep.
    """
    from launchwise.measuring.priors import write_prior
    from launchwise.tables.files import read_table
    from launchwise.tables.measurements import measurement_schema
    from launchwise.workloads.spec import load_spec

    spec = load_spec(Path(folder))
    schema = measurement_schema(spec)
    tables = {gpu: read_table(path, schema) for gpu, path in sweeps.items()}
    tables |= {gpu: read_table(path, measurement_schema(spec)) for gpu, path in extended.items()}
    elsewhere = write_prior(output, spec, tables, problems)
    log.info(
        "%d problems, %d of them from the nearest problem measured, by %s",
        len(problems), elsewhere, ", ".join(tables),
    )  # fmt: skip


if __name__ == "__main__":
    run(
        main,
        snakemake,
        "tables",
        folder=snakemake.params.folder,
        sweeps=dict(zip(snakemake.params.gpus, snakemake.input.sweeps, strict=True)),
        extended={each["gpu"]: each["path"] for each in snakemake.params.extended},
        problems=snakemake.params.problems,
        output=snakemake.output[0],
    )
