# The fastest configurations of a sweep, compared in pairs: every gain in the report comes from here.
#   in   sweeps, profiles, kernels, answers
#   out  results/contests/{gpu}/{study}.json  which configurations of which problems, and why
#        results/pairs/{gpu}/{study}.parquet  their times in turn, ratios and intervals
#        results/peers/{gpu}/{study}.parquet  the same of other people's libraries


rule contests:
    """List the baseline, the usual choice, the fastest and what is near it, and what is answered."""
    input:
        **contests.answers,
        **SPEC_READ,
        usual=lambda wildcards: studies.beside(wildcards.study, "usual"),
        sweep=lambda wildcards: studies.sweep(wildcards.gpu, wildcards.study),
        profile="results/gpus/{gpu}.json",
    output:
        "results/contests/{gpu}/{study}.json",
    log:
        "results/logs/contests/{gpu}.{study}.log",
    wildcard_constraints:
        gpu=pattern(contests.compared),
    params:
        **ASKED_OF_STUDY,
        code=code("scripts/contests.py"),
        entry=lambda wildcards: values.untitled[wildcards.study],
        how=values.confirmation,
        model=lambda wildcards: studies.answering(wildcards.study),
    script:
        "../scripts/contests.py"


rule confirm:
    """Run the configurations of each contest in turn on one card, until their ratios are known."""
    input:
        profile="results/gpus/{gpu}.json",
        bundle=lambda wildcards: sweeps.bundle(wildcards.gpu, values.workload(wildcards.study)),
        sources=lambda wildcards: sources(studies.folder(wildcards.study)),
        contests="results/contests/{gpu}/{study}.json",
        sweep=lambda wildcards: studies.sweep(wildcards.gpu, wildcards.study),
    output:
        "results/pairs/{gpu}/{study}.parquet",
        peers="results/peers/{gpu}/{study}.parquet",
    log:
        "results/logs/confirm/{gpu}.{study}.log",
    wildcard_constraints:
        gpu=pattern(contests.compared),
    threads: lambda wildcards: sweeps.threads(wildcards.gpu)
    resources:
        **ON_GPU,
        runtime=lambda wildcards, attempt: contests.minutes(**wildcards, attempt=attempt),
        mem_mb=lambda wildcards, attempt: contests.memory_mb(**wildcards, attempt=attempt),
    params:
        code=code("scripts/confirm.py", "launchwise/cuda/child.py"),
        folder=lambda wildcards: studies.folder(wildcards.study),
        slice_sms=lambda wildcards: values.gpus[wildcards.gpu]["slice_sms"],
        how=values.confirmation,
        method=lambda wildcards: values.methods[values.workload(wildcards.study)],
        seed=settings.seed,
        earlier=lambda wildcards: contests.recorded_before(**wildcards),
        # Not an output: Snakemake deletes the outputs of a failed job, and the journal must stay.
        journal="results/journal/{gpu}/{study}.pairs.jsonl",
    script:
        "../scripts/confirm.py"
