# Fitted models.
#   in   training rows, profiles; no sweep and no split, so no model reads test rows
#   out  results/models/{study}/{model}/  fitted models in {split}/{fold}/, and summary.json


rule train:
    """Search hyper-parameters and fit one model on every split and fold."""
    input:
        spec=lambda wildcards: spec_of(wildcards.study),
        features=lambda wildcards: features_of(wildcards.study),
        # An edit retrains only the kinds that read it.
        cost=lambda wildcards: (
            cost_of(wildcards.study) if asks_cost(wildcards.study, wildcards.model) else []
        ),
        training="results/clean/{study}.parquet",
        usual=lambda wildcards: usual_of(wildcards.study),
        profiles=lambda wildcards: profiles_of(wildcards.study),
    output:
        directory("results/models/{study}/{model}"),
    log:
        "results/logs/train/{study}.{model}.log",
    threads: lambda wildcards: processes_of(wildcards.study)
    params:
        code=lambda wildcards: code(
            "scripts/train.py", *sources_of(wildcards.study, wildcards.model)
        ),
        model=lambda wildcards: MODELS[wildcards.study][wildcards.model],
        question=lambda wildcards: question_of(wildcards.study),
        gpus=lambda wildcards: experiment.gpus_of(wildcards.study),
        folder=lambda wildcards: folder_of(wildcards.study),
        search=settings.search.model_dump(mode="json"),
        seed=settings.seed,
        # Not an output: Snakemake deletes the outputs of a failed job, and the trials must stay.
        journal="results/search/{study}/{model}.log",
    script:
        "../scripts/train.py"
