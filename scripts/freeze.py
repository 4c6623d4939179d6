"""Draw the problems of a blind test and write the answers before they are measured."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.forking import run
from launchwise.base.scripting import log

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    name: str,
    study: dict[str, Any],
    folder: str,
    question: dict[str, Any],
    gpu: str,
    final: str,
    sweeps: list[str],
    before: str | None,
    profiles: dict[str, str],
    seed: int,
    frozen: str,
    asked: str,
) -> None:
    """Write the answers, and the problems that are to be measured.

    Parameters
    ----------
    final
        Folder of the study's product.
    sweeps, profiles
        What it learnt from; with a held-out GPU, the profile of this too.
    before
        Other rows of the GPU, whose problems are left out.
    """
    from launchwise.base.provenance import commit, now
    from launchwise.base.storage import write_json
    from launchwise.experiment.study import Study
    from launchwise.gpus.profile import read_profile
    from launchwise.learning.blind.answering import (
        blocks_of,
        draw_problems,
        freeze,
        problem_of,
    )
    from launchwise.learning.features import Domain
    from launchwise.learning.final import read_final
    from launchwise.tables.files import read_table
    from launchwise.tables.measurements import measurement_schema
    from launchwise.workloads.spec import load_spec

    entry = Study.model_validate(study)
    assert entry.blind is not None
    spec = load_spec(Path(folder))
    described = {each: read_profile(path, each) for each, path in profiles.items()}
    domain = Domain(spec, described, **question)
    schema = measurement_schema(spec)
    measured = [
        dict(zip(spec.problem_columns, values, strict=True))
        for path in [*sweeps, *([before] if before else [])]
        for values in read_table(path, schema, spec.problem_columns)
        .drop_duplicates()
        .itertuples(index=False, name=None)
    ]
    problems = draw_problems(entry.blind, domain, gpu, measured, seed)
    product = read_final(Path(final), domain)
    found = freeze(Path(frozen), name, gpu, product, problems, seed, commit(), now())
    drawn = [problem_of(each, spec) for each in found.answers]
    write_json(asked, {"problems": drawn, "blocks": blocks_of(found, entry, spec)})
    log.info("%d problems, digest %s", len(drawn), found.digest)


if __name__ == "__main__":
    params, given = snakemake.params, snakemake.input
    run(
        main,
        snakemake,
        "models",
        name=snakemake.wildcards.study,
        study=params.study,
        folder=params.folder,
        question=params.question,
        gpu=snakemake.wildcards.gpu,
        final=given.final,
        sweeps=list(given.sweeps),
        before=params.before,
        profiles=dict(zip(params.gpus, given.profiles, strict=True)),
        seed=params.seed,
        frozen=snakemake.output.frozen,
        asked=snakemake.output.asked,
    )
