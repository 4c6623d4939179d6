# Training and test cases of every split.
#   in   sweeps and profiles of the study's GPUs
#   out  results/splits/{study}.json  every split with its folds; number of distinct cards


rule split:
    """Split the cases (GPU, problem) of a study into training and test cases."""
    input:
        **SPEC_READ,
        **MEASURED,
    output:
        "results/splits/{study}.json",
    log:
        "results/logs/split/{study}.log",
    params:
        **OF_STUDY,
        code=code("scripts/split.py"),
        splits=lambda wildcards: values.untitled[wildcards.study]["splits"],
        gpus=lambda wildcards: studies.gpus(wildcards.study),
        blamed=lambda wildcards: experiment.holders_of_splits(wildcards.study),
        leave_out=lambda wildcards: values.studies[wildcards.study]["leave_out"],
    script:
        "../scripts/split.py"
