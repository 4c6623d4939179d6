# Training rows inside Tukey's fences.
#   in   sweeps, splits
#   out  results/clean/{study}.parquet          training rows only: all that models may see
#        results/clean/{study}.removed.parquet  what either scope of the fences removes


rule clean:
    """Training rows of every split, outliers removed."""
    input:
        code=code("scripts/clean.py"),
        spec=lambda wildcards: spec_of(wildcards.study),
        sweeps=lambda wildcards: sweeps_of(wildcards.study),
        splits="results/splits/{study}.json",
    output:
        training="results/clean/{study}.parquet",
        removed="results/clean/{study}.removed.parquet",
    log:
        "results/logs/clean/{study}.log",
    params:
        fences=lambda wildcards: STUDIES[wildcards.study]["fences"],
        gpus=lambda wildcards: experiment.gpus_of(wildcards.study),
        folder=lambda wildcards: folder_of(wildcards.study),
    script:
        "../scripts/clean.py"
