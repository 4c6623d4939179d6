# What a live GPU gave, copied to data/recorded/.
#   in   a sweep, the profile, pairs, counters, blind tests
#   out  data/recorded/{gpu}/


rule record:
    """Copy a live sweep, with its provenance, to data/recorded/."""
    input:
        **WORKLOAD_READ,
        sweep="results/sweeps/{gpu}/{workload}.parquet",
    output:
        recorded="data/recorded/{gpu}/{workload}.parquet",
        provenance="data/recorded/{gpu}/{workload}.provenance.json",
    log:
        "results/logs/record/{gpu}.{workload}.log",
    wildcard_constraints:
        gpu=pattern(values.live),
    localrule: True
    params:
        **OF_WORKLOAD,
        code=code("scripts/record.py"),
        method=lambda wildcards: values.methods[wildcards.workload],
    script:
        "../scripts/record.py"


# Rule to what it copies, where to, and which wildcards it has.
COPIED = {
    "record_profile": (
        "results/gpus/{gpu}.json",
        "data/recorded/{gpu}/profile.json",
        {"gpu": pattern(values.profiled)},
    ),
    "record_counters": (
        "results/counters/{gpu}/{study}.parquet",
        "data/recorded/{gpu}/{study}.counters.parquet",
        {"gpu": pattern(values.live), "study": pattern(experiment.studies)},
    ),
    "record_pairs": (
        "results/{kind}/{gpu}/{study}.parquet",
        "data/recorded/{gpu}/{study}.{kind}.parquet",
        {
            "kind": "pairs|peers",
            "gpu": pattern(contests.compared),
            "study": pattern(experiment.studies),
        },
    ),
    "record_blind": (
        expand("results/blind/{{gpu}}/{{study}}.{kind}", kind=BLIND_FILES),
        expand("data/recorded/{{gpu}}/blind/{{study}}.{kind}", kind=BLIND_FILES),
        TESTED_BLINDLY,
    ),
}
for name, (files, copies, constraints) in COPIED.items():

    rule:
        """Copy results of a live GPU to data/recorded/."""
        name:
            name
        input:
            files=files,
        output:
            copies=copies,
        log:
            f"results/logs/{name}/" + ".".join(f"{{{each}}}" for each in constraints) + ".log",
        wildcard_constraints:
            **constraints,
        localrule: True
        params:
            code=code("scripts/copy_files.py"),
        script:
            "../scripts/copy_files.py"
