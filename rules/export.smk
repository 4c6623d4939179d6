# Answers for other languages and tools, and for the lookup of the report.
#   in   the study's product, profiles of its GPUs and of datasheet-only ones
#   out  results/export/{study}/      a C++ header, a Python module, JSON, wisdom, T4, CMake
#        results/lookup/{study}.json  answers with intervals and what comes close

MANY_PROCESSES = 8
"""Processes beyond which loading the model takes as long as asking it."""


rule export:
    """Write a study's answers for other languages and tools."""
    input:
        **{**MODELS_READ, "spec": lambda wildcards: studies.spec(wildcards.study)},
        final="results/final/{study}",
        profiles=lambda wildcards: studies.answered_profiles(wildcards.study),
        device_names=project_file(DEVICE_NAMES_FILE),
    output:
        directory("results/export/{study}"),
    log:
        "results/logs/export/{study}.log",
    threads: min(MANY_PROCESSES, CORES)
    params:
        code=lambda wildcards: code(
            "scripts/export.py", *studies.sources_of_answering(wildcards.study)
        ),
        question=lambda wildcards: studies.question(wildcards.study),
        gpus=lambda wildcards: studies.answered_gpus(wildcards.study),
        folder=lambda wildcards: studies.folder(wildcards.study),
        least_gain=settings.least_gain,
    script:
        "../scripts/export.py"


rule lookup:
    """Write a study's answers for the lookup of the report."""
    input:
        **MODELS_READ,
        final="results/final/{study}",
        profiles=lambda wildcards: studies.answered_profiles(wildcards.study),
    output:
        "results/lookup/{study}.json",
    log:
        "results/logs/lookup/{study}.log",
    # Those of other studies run beside it.
    threads: max(1, min(MANY_PROCESSES, CORES) // 4)
    params:
        **ASKED_OF_STUDY,
        code=lambda wildcards: code(
            "scripts/lookup.py", *studies.sources_of_answering(wildcards.study)
        ),
        gpus=lambda wildcards: studies.answered_gpus(wildcards.study),
        least_gain=settings.least_gain,
    script:
        "../scripts/lookup.py"
