# Data of the studies: recorded measurements, checked and brought here, and judged times.
#   in   data/recorded/{gpu}/, data/cards.csv; sweeps and pairs of live GPUs
#   out  results/gpus/{gpu}.json                profiles of recorded and datasheet-only GPUs
#        results/sweeps/{gpu}/{workload}.parquet recorded sweeps
#        results/pairs/, results/peers/          recorded pairs, beside the usual choice of today
#        results/times/{gpu}/{study}.parquet     what each configuration takes: by the sweep, pairs and
#                                                a recorded blind test. Of a row that several studies
#                                                ask about the same: all studies of a workload are
#                                                judged in one job, by the pairs of all of them
#        results/blind/{gpu}/{study}.score.*     scores of recorded blind tests


rule profiles:
    """Check and copy the profiles of recorded GPUs; estimate those of datasheet-only ones."""
    input:
        recorded=[f"{folder}/profile.json" for folder in values.profiles_in.values()],
        cards=project_file(CARDS_FILE),
        reference=project_file(REFERENCE_PROFILE),
    output:
        profiles([*values.profiles_in, *values.cards]),
    log:
        "results/logs/profiles.log",
    priority: 10
    params:
        code=code("scripts/profiles.py"),
        gpus=list(values.profiles_in),
        described=values.cards,
        host_gbs=values.host_links,
    script:
        "../scripts/profiles.py"


for workload, wanted in recorded.items():

    rule:
        """Check what is recorded of a workload and bring it; judge times, score blind tests."""
        name:
            f"data_{workload}"
        input:
            spec=ancient(f"{FOLDERS[workload]}/spec.yaml"),
            usual=present(f"{FOLDERS[workload]}/usual.yaml"),
            recorded=wanted.sources(),
            profiles=profiles(wanted.tested()),
        output:
            wanted.targets(),
        log:
            f"results/logs/data/{workload}.log",
        priority: 9
        params:
            code=code("scripts/data.py"),
            spec=values.specs[workload],
            wanted=wanted.model_dump(mode="json"),
            folder=lambda wildcards, workload=workload: FOLDERS[workload],
            gpus=wanted.tested(),
            clock_tolerance=values.clock_tolerance,
        script:
            "../scripts/data.py"


for number, (workload, asking, gpus) in enumerate(studies.judged_live()):

    rule:
        """Judge the times of a workload on a live GPU, by what all its studies compared there."""
        name:
            f"times_{workload}_{number}"
        input:
            spec=ancient(f"{FOLDERS[workload]}/spec.yaml"),
            sweep=f"results/sweeps/{{gpu}}/{workload}.parquet",
            pairs=[
                f"results/pairs/{{gpu}}/{study}.parquet" for study in asking if contests.compared
            ],
            others=[path for study in asking for path in contests.recorded_times(study)],
        output:
            [f"results/times/{{gpu}}/{study}.parquet" for study in asking],
        log:
            f"results/logs/times/{{gpu}}.{workload}.log",
        wildcard_constraints:
            gpu=pattern(gpus),
        params:
            code=code("scripts/times.py"),
            spec=values.specs[workload],
            folder=FOLDERS[workload],
            studies={study: values.without_models[study] for study in asking},
        script:
            "../scripts/times.py"
