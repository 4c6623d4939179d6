# The model that answers users, fitted to everything that was measured of a study.
#   in   sweeps, judged times, profiles; fits of a committee to the folds, whose plans it takes over
#   out  results/final/{study}/  the fitted model, the fastest of each measured problem, facts


rule final:
    """Fit a study's answering model to all of its measurements."""
    input:
        **MODELS_READ,
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
        **ASKED_OF_STUDY,
        code=lambda wildcards: code(
            "scripts/final.py",
            *sources_of(wildcards.study, answering_model(MODELS[wildcards.study])),
        ),
        entry=lambda wildcards: UNTITLED[wildcards.study],
        name=lambda wildcards: answering_model(MODELS[wildcards.study]),
        model=lambda wildcards: untitled(answering_model(MODELS[wildcards.study]), wildcards.study),
        gpus=lambda wildcards: experiment.gpus_of(wildcards.study),
        cap=ROW_CAP,
        seed=settings.seed,
    script:
        "../scripts/final.py"
