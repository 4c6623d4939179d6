# The model that answers users, fitted to everything that was measured of a study.
#   in   sweeps, judged times, profiles; fits of a committee to the folds, whose plans it takes over
#   out  results/final/{study}/  the fitted model, the fastest of each measured problem, facts


rule final:
    """Fit a study's answering model to all of its measurements."""
    input:
        spec=lambda wildcards: ancient(spec_of(wildcards.study)),
        features=lambda wildcards: features_of(wildcards.study),
        cost=lambda wildcards: cost_of(wildcards.study),
        usual=lambda wildcards: usual_of(wildcards.study),
        sweeps=lambda wildcards: sweeps_of(wildcards.study),
        judged=lambda wildcards: times_of(wildcards.study),
        profiles=lambda wildcards: profiles_of(wildcards.study),
        splits="results/splits/{study}.json",
        fitted=lambda wildcards: inherited_by_final(wildcards.study),
    output:
        directory("results/final/{study}"),
    log:
        "results/logs/final/{study}.log",
    params:
        code=lambda wildcards: code(
            "scripts/final.py",
            *sources_of(wildcards.study, answering_model(MODELS[wildcards.study])),
        ),
        spec=lambda wildcards: SPECS[STUDIES[wildcards.study]["workload"]],
        entry=lambda wildcards: UNTITLED[wildcards.study],
        question=lambda wildcards: question_of(wildcards.study),
        name=lambda wildcards: answering_model(MODELS[wildcards.study]),
        model=lambda wildcards: untitled(answering_model(MODELS[wildcards.study]), wildcards.study),
        gpus=lambda wildcards: experiment.gpus_of(wildcards.study),
        folder=lambda wildcards: folder_of(wildcards.study),
        cap=ROW_CAP,
        seed=settings.seed,
    script:
        "../scripts/final.py"
