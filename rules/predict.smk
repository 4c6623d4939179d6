# Predicted run times on datasheet-only GPUs.
#   in   sweeps of the study's GPUs, their profiles and those of datasheet-only GPUs, splits,
#        the study's published run times
#   out  results/predictions/{study}.parquet            predicted best per (predictor, GPU, test problem)
#        results/predictions/{study}.published.parquet  predictions beside published run times


rule predict:
    """Predict run times on datasheet-only GPUs: the fastest configurations, and published times."""
    input:
        **SPEC_READ,
        features=lambda wildcards: studies.features(wildcards.study),
        cost=lambda wildcards: studies.cost(wildcards.study),
        sweeps=lambda wildcards: studies.sweeps(wildcards.study),
        profiles=lambda wildcards: studies.answered_profiles(wildcards.study),
        splits="results/splits/{study}.json",
        cards=project_file(CARDS_FILE),
        run_times=lambda wildcards: run_time_tables(studies.own_folder(wildcards.study)),
    output:
        predictions="results/predictions/{study}.parquet",
        published="results/predictions/{study}.published.parquet",
    log:
        "results/logs/predict/{study}.log",
    threads: 1
    params:
        **ASKED_OF_STUDY,
        code=lambda wildcards: code("scripts/predict.py", *studies.sources_by_cost(wildcards.study)),
        described=values.cards,
        gpus=lambda wildcards: studies.answered_gpus(wildcards.study),
        study_folder=lambda wildcards: studies.own_folder(wildcards.study),
        cap=values.row_cap,
    script:
        "../scripts/predict.py"
