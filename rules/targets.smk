# Named targets: one per stage of each study, workload and GPU.

for study, entry in experiment.studies.items():

    rule:
        name:
            f"split_{study}"
        input:
            f"results/splits/{study}.json",

    rule:
        name:
            f"clean_{study}"
        input:
            f"results/clean/{study}.parquet",

    rule:
        name:
            f"recommend_{study}"
        input:
            f"results/recommendations/{study}.parquet",

    rule:
        name:
            f"evaluate_{study}"
        input:
            f"results/evaluation/{study}.parquet",

    rule:
        name:
            f"final_{study}"
        input:
            f"results/final/{study}",

    if study in BLIND:
        tested = [
            gpu
            for gpu in experiment.tested_blindly(study)
            if gpu in LIVE or has_blind_test(gpu, study)
        ]

        rule:
            name:
                f"blind_{study}"
            input:
                expand("results/blind/{gpu}/{study}.score.json", gpu=tested, study=study),

        rule:
            name:
                f"freeze_{study}"
            input:
                expand(
                    "results/blind/{gpu}/{study}.frozen.json",
                    gpu=[gpu for gpu in tested if gpu in LIVE],
                    study=study,
                ),

    rechecked = [gpu for gpu in experiment.gpus_of(study) if gpu in RECHECKED]

    rule:
        name:
            f"recheck_{study}"
        input:
            expand(
                "results/recheck/{gpu}/{study}.parquet",
                # Recorded GPUs where none is live: for a machine that has such a card.
                gpu=[gpu for gpu in rechecked if gpu in LIVE] or rechecked,
                study=study,
            ),

    rule:
        name:
            f"export_{study}"
        input:
            f"results/export/{study}",

    if CARDS:

        rule:
            name:
                f"predict_{study}"
            input:
                f"results/predictions/{study}.parquet",


for workload in {study.workload: None for study in experiment.studies.values()}:

    rule:
        name:
            f"compile_{workload}"
        input:
            expand(
                "results/build/{workload}/{arch}.cubins",
                workload=workload,
                arch=sorted(set(ARCHS.values())),
            ),


rule check_gpus:
    """Check that the machine of every live GPU can measure."""
    input:
        expand("results/checks/{gpu}.json", gpu=LIVE),


for gpu in settings.gpus:

    rule:
        name:
            f"describe_{gpu}"
        input:
            f"results/gpus/{gpu}.json",

    # A datasheet-only GPU has no sweep.
    if gpu in CARDS:
        continue

    rule:
        name:
            f"sweep_{gpu}"
        input:
            f"results/gpus/{gpu}.json",
            expand(
                "results/sweeps/{gpu}/{workload}.parquet",
                gpu=gpu,
                workload=experiment.workloads_of(gpu),
            ),


for gpu in LIVE:

    asked = [study for study in experiment.studies if gpu in experiment.gpus_of(study)]

    rule:
        name:
            f"confirm_{gpu}"
        input:
            expand("results/pairs/{gpu}/{study}.parquet", gpu=gpu, study=asked),

    rule:
        name:
            f"record_pairs_{gpu}"
        input:
            expand("data/recorded/{gpu}/{study}.pairs.parquet", gpu=gpu, study=asked),
            expand(
                "data/recorded/{gpu}/{study}.peers.parquet",
                gpu=gpu,
                study=[study for study in asked if STUDIES[study]["peers"]],
            ),

    rule:
        name:
            f"record_{gpu}"
        input:
            f"data/recorded/{gpu}/profile.json",
            expand(
                "data/recorded/{gpu}/{workload}.provenance.json",
                gpu=gpu,
                workload=experiment.workloads_of(gpu),
            ),
            # Of a held-out GPU nothing else is measured.
            expand(
                "data/recorded/{gpu}/blind/{study}.pairs.parquet",
                gpu=gpu,
                study=[
                    study
                    for study in BLIND
                    if GPUS[gpu]["held_out"] and gpu in experiment.tested_blindly(study)
                ],
            ),

    counted = [
        study
        for study, entry in experiment.studies.items()
        if entry.counters and gpu in experiment.gpus_of(study)
    ]
    if counted:

        rule:
            name:
                f"counters_{gpu}"
            input:
                expand("results/counters/{gpu}/{study}.parquet", gpu=gpu, study=counted),

        rule:
            name:
                f"record_counters_{gpu}"
            input:
                expand("data/recorded/{gpu}/{study}.counters.parquet", gpu=gpu, study=counted),


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
