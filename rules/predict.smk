# Predicted run times of the test problems on datasheet-only GPUs, on demand.
#   in   the study's product, splits, profiles
#   out  results/predictions/{study}.parquet  predicted best per (predictor, GPU, test problem)


rule predict:
    """Predict the fastest configurations of test problems on datasheet-only GPUs."""
    input:
        **MODELS_READ,
        final=lambda wildcards: studies.final(wildcards.study),
        profiles=lambda wildcards: studies.answered_profiles(wildcards.study),
        splits="results/splits/{study}.json",
    output:
        "results/predictions/{study}.parquet",
    log:
        "results/logs/predict/{study}.log",
    params:
        **ASKED_OF_STUDY,
        code=code("scripts/predict.py"),
        described=list(values.cards),
        gpus=lambda wildcards: studies.answered_gpus(wildcards.study),
    script:
        "../scripts/predict.py"
