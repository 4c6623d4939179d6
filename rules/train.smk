# Fitted models: one job for all models of a study, which fits what they share once. It leaves alone
# what is there and was made from the same.
#   in   training rows, profiles; no sweep and no split, so no model reads test rows
#   out  results/models/{study}/{model}/  fitted models in {split}/{fold}/, and summary.json


def trained(study):
    """Model to what decides how it is fitted, beside the training rows."""
    return {
        model: {
            "entry": untitled(model, study),
            "blamed": blamed_for(study, model) if entry["parameters"] else None,
            "spec": SPECS[STUDIES[study]["workload"]],
            # Not an output: Snakemake deletes those of a failed job, and the trials must stay.
            "journal": f"results/search/{study}/{model}.log",
            "code": code("scripts/train.py", *sources_of(study, model)),
            "inputs": [
                *features_of(study),
                *usual_of(study),
                *(cost_of(study) if asks_cost(study, model) else []),
            ],
        }
        for model, entry in MODELS[study].items()
    }


def blamed_for(study, model):
    """File that holds the hyper-parameters of a study's model, and their key there."""
    own = model in experiment.studies[study].own_models
    entry = f"studies.{study}.own_models.{model}" if own else f"models.{model}"
    error = experiment.error(f"{entry}.parameters", "")
    return [error.where, error.key]


def work_of(study):
    """Bytes of recorded rows times models: the longest path starts first."""
    files = [
        Path(RECORDED_IN.get(gpu, ""), f"{STUDIES[study]['workload']}.parquet")
        for gpu in experiment.gpus_of(study)
    ]
    return sum(path.stat().st_size for path in files if path.is_file()) * len(MODELS[study])


for study in experiment.studies:

    rule:
        """Search hyper-parameters and fit the models of a study on every split and fold."""
        name:
            f"train_{study}"
        input:
            spec=ancient(spec_of(study)),
            features=features_of(study),
            cost=cost_of(study) if any(asks_cost(study, each) for each in MODELS[study]) else [],
            training=f"results/clean/{study}.parquet",
            usual=usual_of(study),
            profiles=profiles_of(study),
        output:
            # Not deleted before: what was made from the same stays as it is.
            [update(directory(f"results/models/{study}/{model}")) for model in MODELS[study]],
        log:
            f"results/logs/train/{study}.log",
        priority: work_of(study)
        threads: processes_of(study)
        params:
            models=lambda wildcards, study=study: trained(study),
            question=question_of(study),
            gpus=experiment.gpus_of(study),
            folder=lambda wildcards, study=study: folder_of(study),
            search=settings.search.model_dump(mode="json"),
            seed=settings.seed,
            cap=ROW_CAP,
        script:
            "../scripts/train.py"
