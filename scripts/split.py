"""Split the cases (GPU, problem) of a study into training and test cases."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from launchwise.base.scripting import running
from launchwise.base.storage import write_json
from launchwise.experiment.study import Split
from launchwise.gpus.profile import read_profile
from launchwise.learning.splits import make_splits
from launchwise.tables.files import read_table
from launchwise.tables.schemas import measurement_schema
from launchwise.workloads.spec import load_spec

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    name: str,
    splits: dict[str, Any],
    folder: Path,
    sweeps: dict[str, str],
    profiles: dict[str, str],
    output: str,
) -> None:
    """Write every split and fold of a study.

    Parameters
    ----------
    sweeps, profiles
        GPU to its file.
    """
    spec = load_spec(folder)
    schema = measurement_schema(spec)
    tables = {gpu: read_table(path, schema) for gpu, path in sweeps.items()}
    described = {gpu: read_profile(path, gpu) for gpu, path in profiles.items()}
    asked = TypeAdapter(dict[str, Split]).validate_python(splits)
    write_json(output, make_splits(name, asked, spec, tables, described))


if __name__ == "__main__":
    with running(snakemake):
        gpus = snakemake.params.gpus
        main(
            snakemake.wildcards.study,
            snakemake.params.splits,
            Path(snakemake.params.folder),
            dict(zip(gpus, snakemake.input.sweeps, strict=True)),
            dict(zip(gpus, snakemake.input.profiles, strict=True)),
            snakemake.output[0],
        )
