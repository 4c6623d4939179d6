# Recommendations compared with measurements.
#   in   recommendations, the unfiltered sweeps, their judged times, splits
#   out  results/evaluation/{study}.parquet       one row per (model, split, fold, GPU, problem)
#        results/evaluation/{study}.curves.parquet  quality against number of measurements
#        results/evaluation/{study}.summary.json  metrics per (split, GPU, model)


rule evaluate:
    """Evaluate models, baselines, random draws and the oracle on the test problems."""
    input:
        **MODELS_READ,
        recommendations="results/recommendations/{study}.parquet",
        times="results/recommendations/{study}.times.parquet",
        sweeps=lambda wildcards: sweeps_of(wildcards.study),
        judged=lambda wildcards: times_of(wildcards.study),
        profiles=lambda wildcards: profiles_of(wildcards.study),
        splits="results/splits/{study}.json",
    output:
        rows="results/evaluation/{study}.parquet",
        curves="results/evaluation/{study}.curves.parquet",
        summary="results/evaluation/{study}.summary.json",
    log:
        "results/logs/evaluate/{study}.log",
    threads: lambda wildcards: processes_of(wildcards.study)
    params:
        **ASKED_OF_STUDY,
        code=code("scripts/evaluate.py"),
        random_draws=lambda wildcards: STUDIES[wildcards.study]["random_draws"],
        gpus=lambda wildcards: experiment.gpus_of(wildcards.study),
    script:
        "../scripts/evaluate.py"
