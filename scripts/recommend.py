"""A fitted model's ranking of the candidates of every test problem."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.features import Domain
from launchwise.gpu import read_profile
from launchwise.recommending import recommend_model
from launchwise.scripting import running
from launchwise.spec import load_spec
from launchwise.splits import read_folds
from launchwise.tables import recommendation_schema, write_table

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    study: str,
    folder: Path,
    question: dict[str, Any],
    model: Path,
    splits: str,
    profiles: dict[str, str],
    output: str,
) -> None:
    """Write the recommendations of the model in the folder ``model``."""
    spec = load_spec(folder)
    described = {gpu: read_profile(path, gpu) for gpu, path in profiles.items()}
    domain = Domain(spec, described, **question)
    table, facts = recommend_model(study, model, read_folds(splits), domain)
    write_table(output, table, recommendation_schema(spec), facts)


if __name__ == "__main__":
    with running(snakemake):
        params = snakemake.params
        main(
            snakemake.wildcards.study,
            Path(params.folder),
            params.question,
            Path(snakemake.input.model),
            snakemake.input.splits,
            dict(zip(params.gpus, snakemake.input.profiles, strict=True)),
            snakemake.output[0],
        )
