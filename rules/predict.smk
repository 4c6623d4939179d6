# Predicted run times on datasheet-only GPUs.
#   in   sweeps of the study's GPUs, their profiles and those of datasheet-only GPUs, splits,
#        the study's published run times
#   out  results/predictions/{study}.parquet            predicted best per (predictor, GPU, test problem)
#        results/predictions/{study}.published.parquet  predictions beside published run times


rule predict:
    """Predict run times on datasheet-only GPUs: the fastest configurations, and published times."""
    input:
        spec=lambda wildcards: ancient(spec_of(wildcards.study)),
        features=lambda wildcards: features_of(wildcards.study),
        cost=lambda wildcards: cost_of(wildcards.study),
        sweeps=lambda wildcards: sweeps_of(wildcards.study),
        profiles=lambda wildcards: profiles_of(wildcards.study)
        + expand("results/gpus/{gpu}.json", gpu=CARDS),
        splits="results/splits/{study}.json",
        cards=project_file(CARDS_FILE),
        run_times=lambda wildcards: run_time_tables(study_folder(wildcards.study)),
    output:
        predictions="results/predictions/{study}.parquet",
        published="results/predictions/{study}.published.parquet",
    log:
        "results/logs/predict/{study}.log",
    threads: 1
    params:
        **ASKED_OF_STUDY,
        code=lambda wildcards: code(
            "scripts/predict.py",
            *(model_source(kind, folder_of(wildcards.study)) for kind in BY_COST),
        ),
        described=CARDS,
        gpus=lambda wildcards: [*experiment.gpus_of(wildcards.study), *CARDS],
        study_folder=lambda wildcards: study_folder(wildcards.study),
        cap=ROW_CAP,
    script:
        "../scripts/predict.py"
