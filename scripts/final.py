"""Fit the answering model to all measured rows of a study."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.forking import run
from launchwise.base.scripting import log

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    study: dict[str, Any],
    folder: str,
    question: dict[str, Any],
    name: str,
    model: dict[str, Any],
    sweeps: dict[str, str],
    judged: dict[str, str],
    profiles: dict[str, str],
    seed: int,
    output: str,
    fitted: str | None,
    splits: str,
    cap: dict[str, Any],
) -> None:
    """Write the folder of a study's product.

    Parameters
    ----------
    name, model
        Of the settings' models.
    sweeps, judged, profiles
        GPU to its file.
    fitted
        Folder of the model's fits to the folds of ``splits``, which it takes over what it can from.
    cap
        Parameters of :class:`launchwise.learning.row_cap.RowCap`.
    """
    from launchwise.experiment.study import ModelEntry, Study
    from launchwise.gpus.profile import read_profile
    from launchwise.learning.features import Domain
    from launchwise.learning.final import fit_final
    from launchwise.learning.row_cap import RowCap, told
    from launchwise.learning.splits import read_folds
    from launchwise.tables.files import read_table
    from launchwise.tables.measurements import measurement_schema
    from launchwise.tables.times import times_schema
    from launchwise.workloads.spec import load_spec

    spec = load_spec(Path(folder))
    described = {gpu: read_profile(path, gpu) for gpu, path in profiles.items()}
    domain = Domain(spec, described, **question)
    tables = {gpu: read_table(path, measurement_schema(spec)) for gpu, path in sweeps.items()}
    times = {gpu: read_table(path, times_schema(spec)) for gpu, path in judged.items()}
    folds = read_folds(splits) if fitted else []
    facts = fit_final(
        Study.model_validate(study),
        name,
        ModelEntry.model_validate(model),
        domain,
        tables,
        times,
        [Path(path) for path in sweeps.values()],
        seed,
        Path(output),
        {Path(fitted or "", fold.split, fold.fold): fold.test for fold in folds},
        RowCap(**cap),
    )
    log.info("%s: %d rows of %d problems", name, facts["rows"], facts["cases"])
    if facts["rows_left_out"]:
        log.info("%s: %s", name, told(facts["rows_left_out"]))


if __name__ == "__main__":
    params, given = snakemake.params, snakemake.input
    run(
        main,
        snakemake,
        "models",
        study=params.study,
        folder=params.folder,
        question=params.question,
        name=params.name,
        model=params.model,
        sweeps=dict(zip(params.gpus, given.sweeps, strict=True)),
        judged=dict(zip(params.gpus, given.judged, strict=True)),
        profiles=dict(zip(params.gpus, given.profiles, strict=True)),
        seed=params.seed,
        output=snakemake.output[0],
        fitted=given.fitted[0] if given.fitted else None,
        splits=given.splits,
        cap=params.cap,
    )
