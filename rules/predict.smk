# Predicted run times on datasheet-only GPUs.
#   in   sweeps of the study's GPUs, their profiles and those of datasheet-only GPUs, splits
#   out  results/predictions/{study}.parquet  predicted best per (predictor, GPU, test problem)


rule predict:
    """Predict the fastest configurations, with run times, on datasheet-only GPUs."""
    input:
        spec=lambda wildcards: spec_of(wildcards.study),
        features=lambda wildcards: features_of(wildcards.study),
        cost=lambda wildcards: cost_of(wildcards.study),
        sweeps=lambda wildcards: sweeps_of(wildcards.study),
        profiles=lambda wildcards: profiles_of(wildcards.study)
        + expand("results/gpus/{gpu}.json", gpu=CARDS),
        splits="results/splits/{study}.json",
    output:
        "results/predictions/{study}.parquet",
    log:
        "results/logs/predict/{study}.log",
    threads: 1
    params:
        code=lambda wildcards: code(
            "scripts/predict.py",
            *(model_source(kind, folder_of(wildcards.study)) for kind in BY_COST),
        ),
        question=lambda wildcards: question_of(wildcards.study),
        described=list(CARDS),
        gpus=lambda wildcards: [*experiment.gpus_of(wildcards.study), *CARDS],
        folder=lambda wildcards: folder_of(wildcards.study),
    script:
        "../scripts/predict.py"
