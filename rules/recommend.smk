# What models and baselines recommend for every test problem.
#   in   models (or training rows, for baselines), splits, profiles; no sweep
#   out  results/recommendations/{study}/{model}.parquet    every candidate, ranked
#        results/recommendations/{study}/baselines.parquet  the first of every baseline


rule recommend:
    """A model's ranking of the candidates of every test problem."""
    input:
        code=lambda wildcards: code("scripts/recommend.py") + code_of(wildcards.model),
        spec=lambda wildcards: spec_of(wildcards.study),
        features=lambda wildcards: features_of(wildcards.study),
        model="results/models/{study}/{model}",
        splits="results/splits/{study}.json",
        profiles=lambda wildcards: profiles_of(wildcards.study),
    output:
        "results/recommendations/{study}/{model}.parquet",
    log:
        "results/logs/recommend/{study}.{model}.log",
    threads: 1
    params:
        question=lambda wildcards: question_of(wildcards.study),
        gpus=lambda wildcards: experiment.gpus_of(wildcards.study),
        folder=lambda wildcards: folder_of(wildcards.study),
    script:
        "../scripts/recommend.py"


rule baselines:
    """What every baseline recommends for every test problem."""
    input:
        code=code("scripts/baselines.py"),
        spec=lambda wildcards: spec_of(wildcards.study),
        features=lambda wildcards: features_of(wildcards.study),
        training=lambda wildcards: training_of(wildcards.study),
        splits="results/splits/{study}.json",
        profiles=lambda wildcards: profiles_of(wildcards.study),
    output:
        "results/recommendations/{study}/baselines.parquet",
    log:
        "results/logs/baselines/{study}.log",
    params:
        question=lambda wildcards: question_of(wildcards.study),
        splits=lambda wildcards: list(STUDIES[wildcards.study]["splits"]),
        gpus=lambda wildcards: experiment.gpus_of(wildcards.study),
        folder=lambda wildcards: folder_of(wildcards.study),
    script:
        "../scripts/baselines.py"
