# Data of the studies: recorded measurements, checked and brought here, and judged times.
#   in   data/recorded/{gpu}/, data/cards.csv; sweeps and pairs of live GPUs
#   out  results/gpus/{gpu}.json                profiles of recorded and datasheet-only GPUs
#        results/sweeps/{gpu}/{workload}.parquet recorded sweeps
#        results/pairs/, results/peers/          recorded pairs, beside the usual choice of today
#        results/times/{gpu}/{study}.parquet     what each configuration takes, judged once: by the
#                                                sweep, pairs and a recorded blind test
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


rule times:
    """Judge the times of a study on a live GPU."""
    input:
        **SPEC_READ,
        sweep=lambda wildcards: studies.sweep(wildcards.gpu, wildcards.study),
        pairs=lambda wildcards: contests.pairs_of(**wildcards),
        others=lambda wildcards: contests.recorded_times(wildcards.study),
    output:
        "results/times/{gpu}/{study}.parquet",
    log:
        "results/logs/times/{gpu}.{study}.log",
    wildcard_constraints:
        gpu=pattern(values.live),
    params:
        **OF_STUDY,
        code=code("scripts/times.py"),
        entry=lambda wildcards: values.without_models[wildcards.study],
    script:
        "../scripts/times.py"
