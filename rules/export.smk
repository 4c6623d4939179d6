# Answers for other languages and tools.
#   in   the study's product, profiles of its GPUs and of datasheet-only ones
#   out  results/export/{study}/      a C++ header, a Python module, JSON, wisdom, T4, CMake

MANY_PROCESSES = 8
"""Processes beyond which loading the model takes as long as asking it."""


rule export:
    """Write a study's answers for other languages and tools."""
    input:
        **{**MODELS_READ, "spec": lambda wildcards: studies.spec(wildcards.study)},
        final="results/final/{study}/final.json",
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
