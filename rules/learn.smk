# Studies: one job each. Splits, training rows, every model of every fold and what each says of the
# test candidates, evaluation, product, answers. A model whose file is there and was made from the
# same stays as it is. Where answers are compared in pairs on a live GPU, they are measured between
# learning and evaluation: there these are two jobs.
#   in   sweeps, judged times and profiles of the study's GPUs
#   out  results/splits/{study}.json            every split with its folds
#        results/clean/{study}.parquet          training rows: the only rows that models read
#        results/clean/{study}.removed.parquet  rows removed by the Tukey filter, for either scope
#        results/learnt/{study}/                candidates of the test cases; a file a model and a
#                                               simple rule: what it says of each of them
#        results/fitted/{study}/                the answering model, fitted to all measured rows
#        results/evaluation/{study}.parquet       one row per (model, split, fold, GPU, problem)
#        results/evaluation/{study}.curves.parquet  quality against number of measurements
#        results/evaluation/{study}.summary.json  metrics per (split, GPU, model)
#        results/final/{study}/        the product: fitted model, fastest of each measured problem
#        results/lookup/{study}.json   answers with intervals and what comes close, for the report
#        results/predictions/{study}.published.parquet  predictions beside published run times

for study in experiment.studies:
    for stage, inputs, outputs in studies.jobs(study, update):

        rule:
            """Learn of a study; evaluate what was learnt and answer."""
            name:
                f"{stage}_{study}"
            input:
                **inputs,
                spec=ancient(studies.spec(study)),
            output:
                **outputs,
            log:
                f"results/logs/{stage}/{study}.log",
            priority: studies.priority(study)
            threads: studies.processes(study)
            params:
                code=code("scripts/study.py"),
                settings=lambda wildcards, study=study: studies.job_settings(study, code),
                files=studies.files(study),
                # No outputs: they show answers as long as there is no report.
                front="results/report/index.html",
                archive="results/report.zip",
            script:
                "../scripts/study.py"
