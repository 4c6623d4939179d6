# Named targets: one per stage of each study, workload and GPU (launchwise/workflow/targets.py).

for target, files in targets(values, contests, sweeps).items():

    rule:
        name:
            target
        input:
            files,


rule check_gpus:
    """Check that the machine of every live GPU can measure."""
    input:
        expand("results/checks/{gpu}.json", gpu=values.live),
