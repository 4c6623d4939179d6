# The model that answers users, fitted to everything that was measured of a study.
#   in   sweeps, judged times, profiles; fits of a committee to the folds, whose plans it takes over
#   out  results/final/{study}/  the fitted model, the fastest of each measured problem, facts


rule final:
    """Fit a study's answering model to all of its measurements."""
    input:
        **MODELS_READ,
        **MEASURED,
        judged=lambda wildcards: studies.times(wildcards.study),
        splits="results/splits/{study}.json",
        fitted=lambda wildcards: studies.inherited_by_final(wildcards.study),
    output:
        directory("results/final/{study}"),
    log:
        "results/logs/final/{study}.log",
    params:
        **ASKED_OF_STUDY,
        code=lambda wildcards: code(
            "scripts/final.py", *studies.sources_of_answering(wildcards.study)
        ),
        entry=lambda wildcards: values.untitled[wildcards.study],
        name=lambda wildcards: studies.answering(wildcards.study),
        model=lambda wildcards: studies.answering_entry(wildcards.study),
        gpus=lambda wildcards: studies.gpus(wildcards.study),
        cap=values.row_cap,
        seed=settings.seed,
    script:
        "../scripts/final.py"
