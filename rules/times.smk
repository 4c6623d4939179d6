# What each configuration takes, judged once: by the sweep, by pairs where it ran in any, and by a
# recorded blind test for its problems. Whoever shows or compares times reads these.
#   in   sweeps, pairs, recorded blind tests
#   out  results/times/{gpu}/{study}.parquet  sweep's and judged time, interval, basis, clock, card

for study in experiment.studies:

    rule:
        """Judge the times of every GPU of a study."""
        name:
            f"times_{study}"
        input:
            spec=ancient(studies.spec(study)),
            sweeps=studies.sweeps(study),
            pairs=list(contests.pairs(study).values()),
            blind_sweeps=list(contests.recorded_blind(study, "sweep.parquet").values()),
            blind_pairs=list(contests.recorded_blind(study, "pairs.parquet").values()),
        output:
            studies.times(study),
        log:
            f"results/logs/times/{study}.log",
        params:
            code=code("scripts/times.py"),
            spec=values.specs[values.workload(study)],
            entry=values.untitled[study],
            gpus=studies.gpus(study),
            paired=list(contests.pairs(study)),
            blind=list(contests.recorded_blind(study, "sweep.parquet")),
            folder=lambda wildcards, study=study: studies.folder(study),
        script:
            "../scripts/times.py"
