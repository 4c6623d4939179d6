# The fastest configuration of each problem of one sweep, without a study.
#   in   a sweep, the profile of its GPU
#   out  results/answers/{gpu}/{workload}.json  configuration, time and default of each problem
#        results/answers/{gpu}/{workload}.html  the same as a page, with figures


rule answer:
    """Write the fastest configurations of a sweep, as JSON and as a page."""
    input:
        spec=lambda wildcards: f"{FOLDERS[wildcards.workload]}/spec.yaml",
        sweep="results/sweeps/{gpu}/{workload}.parquet",
        profile="results/gpus/{gpu}.json",
    output:
        facts="results/answers/{gpu}/{workload}.json",
        page="results/answers/{gpu}/{workload}.html",
    log:
        "results/logs/answer/{gpu}.{workload}.log",
    localrule: True
    params:
        code=code("scripts/answer.py"),
        folder=lambda wildcards: FOLDERS[wildcards.workload],
    script:
        "../scripts/answer.py"
