# Recommendations of models and baselines for every test problem.
#   in   models, training rows (for the baselines), splits, profiles; no sweep
#   out  results/recommendations/{study}.parquet        first candidates per model and baseline
#        results/recommendations/{study}.times.parquet  predicted times of every candidate


rule recommend:
    """Rank the candidates of every test problem with every model and baseline."""
    input:
        **MODELS_READ,
        fitted=lambda wildcards: expand(
            "results/models/{study}/{model}",
            study=wildcards.study,
            model=STUDIES[wildcards.study]["models"],
        ),
        training="results/clean/{study}.parquet",
        splits="results/splits/{study}.json",
        profiles=lambda wildcards: profiles_of(wildcards.study),
    output:
        ranked="results/recommendations/{study}.parquet",
        times="results/recommendations/{study}.times.parquet",
    log:
        "results/logs/recommend/{study}.log",
    threads: lambda wildcards: processes_of(wildcards.study)
    params:
        **ASKED_OF_STUDY,
        code=lambda wildcards: code(
            "scripts/recommend.py",
            *(
                path
                for model in STUDIES[wildcards.study]["models"]
                for path in sources_of(wildcards.study, model)
            ),
        ),
        models=lambda wildcards: STUDIES[wildcards.study]["models"],
        gpus=lambda wildcards: experiment.gpus_of(wildcards.study),
    script:
        "../scripts/recommend.py"
