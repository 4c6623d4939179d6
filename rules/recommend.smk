# What models and baselines recommend for every test problem.
#   in   models, training rows (baselines are made from them), splits, profiles; no sweep
#   out  results/recommendations/{study}.parquet  candidates, ranked, by model and baseline


rule recommend:
    """Every model's and baseline's ranking of the candidates of every test problem."""
    input:
        # One job for all of them: loading the libraries takes longer than asking the models.
        code=lambda wildcards: code("scripts/recommend.py")
        + [
            path
            for model in STUDIES[wildcards.study]["models"]
            for path in code_of(wildcards.study, model)
        ],
        spec=lambda wildcards: spec_of(wildcards.study),
        features=lambda wildcards: features_of(wildcards.study),
        cost=lambda wildcards: cost_of(wildcards.study),
        models=lambda wildcards: expand(
            "results/models/{study}/{model}",
            study=wildcards.study,
            model=STUDIES[wildcards.study]["models"],
        ),
        training="results/clean/{study}.parquet",
        splits="results/splits/{study}.json",
        profiles=lambda wildcards: profiles_of(wildcards.study),
    output:
        "results/recommendations/{study}.parquet",
    log:
        "results/logs/recommend/{study}.log",
    threads: 1
    params:
        question=lambda wildcards: question_of(wildcards.study),
        models=lambda wildcards: STUDIES[wildcards.study]["models"],
        gpus=lambda wildcards: experiment.gpus_of(wildcards.study),
        folder=lambda wildcards: folder_of(wildcards.study),
    script:
        "../scripts/recommend.py"
