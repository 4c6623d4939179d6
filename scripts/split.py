"""Split the cases (GPU, problem) of a study into training and test cases."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.forking import run

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    name: str,
    splits: dict[str, Any],
    folder: str,
    sweeps: dict[str, str],
    profiles: dict[str, str],
    blamed: dict[str, list[str]],
    leave_out: dict[str, Any],
    output: str,
) -> None:
    """Write every split and fold of a study.

    Parameters
    ----------
    sweeps, profiles
        GPU to its file.
    blamed
        Split to the file that holds it and its key there.
    leave_out
        GPU to problems that take no part on it.
    """
    from pydantic import TypeAdapter

    from launchwise.base.storage import write_json
    from launchwise.experiment.study import Split
    from launchwise.gpus.profile import read_profile
    from launchwise.learning.splits import make_splits
    from launchwise.tables.files import read_table
    from launchwise.tables.measurements import measurement_schema
    from launchwise.workloads.spec import load_spec

    spec = load_spec(Path(folder))
    schema = measurement_schema(spec)
    tables = {gpu: read_table(path, schema) for gpu, path in sweeps.items()}
    described = {gpu: read_profile(path, gpu) for gpu, path in profiles.items()}
    asked = TypeAdapter(dict[str, Split]).validate_python(splits)
    write_json(output, make_splits(name, asked, spec, tables, described, blamed, leave_out))


if __name__ == "__main__":
    gpus = snakemake.params.gpus
    run(
        main,
        snakemake,
        "tables",
        name=snakemake.wildcards.study,
        splits=snakemake.params.splits,
        folder=snakemake.params.folder,
        sweeps=dict(zip(gpus, snakemake.input.sweeps, strict=True)),
        profiles=dict(zip(gpus, snakemake.input.profiles, strict=True)),
        blamed=snakemake.params.blamed,
        leave_out=snakemake.params.leave_out,
        output=snakemake.output[0],
    )
