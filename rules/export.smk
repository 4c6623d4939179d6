# Answers for other languages and tools.
#   in   the answers of the study's product, profiles of its GPUs and of datasheet-only ones, pairs of
#        libraries
#   out  results/export/{study}/      a C++ header, a Python module, JSON, wisdom, T4, CMake


rule export:
    """Write a study's answers for other languages and tools."""
    input:
        **{**MODELS_READ, "spec": lambda wildcards: studies.spec(wildcards.study)},
        lookup="results/lookup/{study}.json",
        profiles=lambda wildcards: studies.answered_profiles(wildcards.study),
        peers=lambda wildcards: list(contests.peers(wildcards.study).values()),
        device_names=project_file(DEVICE_NAMES_FILE),
    output:
        directory("results/export/{study}"),
    log:
        "results/logs/export/{study}.log",
    params:
        code=lambda wildcards: code(
            "scripts/export.py", *studies.sources_of_answering(wildcards.study)
        ),
        question=lambda wildcards: studies.question(wildcards.study),
        gpus=lambda wildcards: studies.answered_gpus(wildcards.study),
        folder=lambda wildcards: studies.folder(wildcards.study),
        objective=settings.objective,
    script:
        "../scripts/export.py"
