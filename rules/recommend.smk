# Recommendations of models and baselines for every test problem.
#   in   models, training rows (for the baselines), splits, profiles; no sweep
#   out  results/recommendations/{study}.parquet        first candidates per model and baseline
#        results/recommendations/{study}.times.parquet  predicted times of every candidate


rule recommend:
    """Rank the candidates of every test problem with every model and baseline."""
    input:
        **MODELS_READ,
        fitted=lambda wildcards: studies.models(wildcards.study),
        training="results/clean/{study}.parquet",
        splits="results/splits/{study}.json",
        profiles=lambda wildcards: studies.profiles(wildcards.study),
    output:
        ranked="results/recommendations/{study}.parquet",
        times="results/recommendations/{study}.times.parquet",
    log:
        "results/logs/recommend/{study}.log",
    threads: lambda wildcards: studies.processes(wildcards.study)
    params:
        **ASKED_OF_STUDY,
        code=lambda wildcards: code(
            "scripts/recommend.py", *studies.sources_of_models(wildcards.study)
        ),
        models=lambda wildcards: values.studies[wildcards.study]["models"],
        gpus=lambda wildcards: studies.gpus(wildcards.study),
    script:
        "../scripts/recommend.py"
