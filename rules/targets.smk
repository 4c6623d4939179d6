# Named targets: one per stage of each study, workload and GPU.

OF_STUDIES = {
    "split": "results/splits/{study}.json",
    "clean": "results/clean/{study}.parquet",
    "recommend": "results/recommendations/{study}.parquet",
    "evaluate": "results/evaluation/{study}.parquet",
    "final": "results/final/{study}",
    "export": "results/export/{study}",
    # Predictions are of datasheet-only GPUs.
    **({"predict": "results/predictions/{study}.parquet"} if CARDS else {}),
}
TARGETS = {
    f"{stage}_{study}": expand(path, study=study)
    for study in experiment.studies
    for stage, path in OF_STUDIES.items()
}

for study in experiment.studies:
    rechecked = [gpu for gpu in experiment.gpus_of(study) if gpu in RECHECKED]
    TARGETS[f"recheck_{study}"] = expand(
        "results/recheck/{gpu}/{study}.parquet",
        # Recorded GPUs where none is live: for a machine that has such a card.
        gpu=[gpu for gpu in rechecked if gpu in LIVE] or rechecked,
        study=study,
    )

for study in BLIND:
    tested = [
        gpu for gpu in experiment.tested_blindly(study) if gpu in LIVE or has_blind_test(gpu, study)
    ]
    path = "results/blind/{gpu}/{study}.{kind}.json"
    TARGETS[f"blind_{study}"] = expand(path, gpu=tested, study=study, kind="score")
    answering = [gpu for gpu in tested if gpu in LIVE]
    TARGETS[f"freeze_{study}"] = expand(path, gpu=answering, study=study, kind="frozen")

for workload in {study.workload: None for study in experiment.studies.values()}:
    TARGETS[f"compile_{workload}"] = expand(
        "results/build/{workload}/{arch}.cubins",
        workload=workload,
        arch=sorted(set(ARCHS.values())),
    )

for gpu in settings.gpus:
    TARGETS[f"describe_{gpu}"] = expand("results/gpus/{gpu}.json", gpu=gpu)
    # A datasheet-only GPU has no sweep.
    if gpu not in CARDS:
        TARGETS[f"sweep_{gpu}"] = expand(
            ["results/gpus/{gpu}.json", "results/sweeps/{gpu}/{workload}.parquet"],
            gpu=gpu,
            workload=experiment.workloads_of(gpu),
        )

for gpu in LIVE:
    asked = [study for study in experiment.studies if gpu in experiment.gpus_of(study)]
    peers = [study for study in asked if STUDIES[study]["peers"]]
    counted = [study for study in asked if experiment.studies[study].counters]
    # Of a held-out GPU nothing else is measured.
    blind = [
        study
        for study in BLIND
        if GPUS[gpu]["held_out"] and gpu in experiment.tested_blindly(study)
    ]
    recorded = f"data/recorded/{gpu}"
    TARGETS |= {
        f"confirm_{gpu}": expand(f"results/pairs/{gpu}/{{study}}.parquet", study=asked),
        f"record_pairs_{gpu}": [
            *expand(f"{recorded}/{{study}}.pairs.parquet", study=asked),
            *expand(f"{recorded}/{{study}}.peers.parquet", study=peers),
        ],
        f"record_{gpu}": [
            f"{recorded}/profile.json",
            *expand(
                f"{recorded}/{{workload}}.provenance.json", workload=experiment.workloads_of(gpu)
            ),
            *expand(f"{recorded}/blind/{{study}}.pairs.parquet", study=blind),
        ],
    }
    if counted:
        TARGETS |= {
            f"counters_{gpu}": expand(f"results/counters/{gpu}/{{study}}.parquet", study=counted),
            f"record_counters_{gpu}": expand(
                f"{recorded}/{{study}}.counters.parquet", study=counted
            ),
        }

for target, files in TARGETS.items():

    rule:
        name:
            target
        input:
            files,


rule check_gpus:
    """Check that the machine of every live GPU can measure."""
    input:
        expand("results/checks/{gpu}.json", gpu=LIVE),


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
