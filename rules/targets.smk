# Named targets: one per stage of each study, workload and GPU (launchwise/workflow/targets.py).

for target, files in targets(values, contests).items():

    rule:
        name:
            target
        input:
            files,


rule check_gpus:
    """Check that the machine of every live GPU can measure."""
    input:
        expand("results/checks/{gpu}.json", gpu=values.live),


rule clean_models:
    """Remove what was fitted to the folds: what is made of it stays, and it can be made again."""
    log:
        "results/logs/clean_models.log",
    localrule: True
    params:
        code=code("scripts/clean_models.py"),
        folder="results/models",
    script:
        "../scripts/clean_models.py"
