# What each configuration takes, judged once: by the sweep, by pairs where it ran in any, and by a
# recorded blind test for its problems. Whoever shows or compares times reads these.
#   in   sweeps, pairs, recorded blind tests
#   out  results/times/{gpu}/{study}.parquet  sweep's and judged time, interval, basis, clock, card


def blind_tests(study):
    """GPUs with a recorded blind test of the study. Those of this run answer from these times."""
    return [
        gpu
        for gpu in experiment.gpus_of(study)
        if gpu in RECORDED_IN and has_blind_test(gpu, study)
    ]


for study in experiment.studies:

    rule:
        """Judge the times of every GPU of a study."""
        name:
            f"times_{study}"
        input:
            spec=ancient(spec_of(study)),
            sweeps=sweeps_of(study),
            pairs=list(pairs_of(study).values()),
            blind_sweeps=[blind_file(gpu, study, "sweep.parquet") for gpu in blind_tests(study)],
            blind_pairs=[blind_file(gpu, study, "pairs.parquet") for gpu in blind_tests(study)],
        output:
            times_of(study),
        log:
            f"results/logs/times/{study}.log",
        params:
            code=code("scripts/times.py"),
            spec=SPECS[STUDIES[study]["workload"]],
            entry=UNTITLED[study],
            gpus=experiment.gpus_of(study),
            paired=list(pairs_of(study)),
            blind=blind_tests(study),
            folder=lambda wildcards, study=study: folder_of(study),
        script:
            "../scripts/times.py"
