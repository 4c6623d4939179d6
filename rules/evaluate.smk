# Recommendations compared with measurements.
#   in   recommendations, the unfiltered sweeps, their judged times, splits
#   out  results/evaluation/{study}.parquet       one row per (model, split, fold, GPU, problem)
#        results/evaluation/{study}.curves.parquet  quality against number of measurements
#        results/evaluation/{study}.summary.json  metrics per (split, GPU, model)


rule evaluate:
    """Evaluate models, baselines, random draws and the oracle on the test problems."""
    input:
        **MODELS_READ,
        **MEASURED,
        recommendations="results/recommendations/{study}.parquet",
        times="results/recommendations/{study}.times.parquet",
        judged=lambda wildcards: studies.times(wildcards.study),
        splits="results/splits/{study}.json",
    output:
        rows="results/evaluation/{study}.parquet",
        curves="results/evaluation/{study}.curves.parquet",
        summary="results/evaluation/{study}.summary.json",
    log:
        "results/logs/evaluate/{study}.log",
    threads: lambda wildcards: studies.processes(wildcards.study)
    params:
        **ASKED_OF_STUDY,
        code=code("scripts/evaluate.py"),
        random_draws=lambda wildcards: values.studies[wildcards.study]["random_draws"],
        answering=lambda wildcards: studies.answering(wildcards.study),
        gpus=lambda wildcards: studies.gpus(wildcards.study),
    script:
        "../scripts/evaluate.py"
