# Training rows after the Tukey filter.
#   in   sweeps, splits
#   out  results/clean/{study}.parquet          training rows: the only rows that models read
#        results/clean/{study}.removed.parquet  rows removed by the Tukey filter, for either scope


rule clean:
    """Filter the training rows of every split (Tukey filter)."""
    input:
        **SPEC_READ,
        sweeps=lambda wildcards: studies.sweeps(wildcards.study),
        splits="results/splits/{study}.json",
    output:
        training="results/clean/{study}.parquet",
        removed="results/clean/{study}.removed.parquet",
    log:
        "results/logs/clean/{study}.log",
    params:
        **OF_STUDY,
        code=code("scripts/clean.py"),
        fences=lambda wildcards: values.studies[wildcards.study]["fences"],
        candidates=lambda wildcards: studies.learnt_from(wildcards.study),
        gpus=lambda wildcards: studies.gpus(wildcards.study),
    script:
        "../scripts/clean.py"
