# The fastest configurations of a sweep, compared in pairs: every gain in the report comes from here.
#   in   sweeps, profiles, kernels; or data/recorded/{gpu}/{study}.pairs.parquet, .peers.parquet
#   out  results/contests/{gpu}/{study}.json  which configurations of which problems, and why
#        results/pairs/{gpu}/{study}.parquet  their times in turn, ratios and intervals
#        results/peers/{gpu}/{study}.parquet  the same of other people's libraries


rule contests:
    """List the baseline, the usual choice, the fastest and what is near it, and what is answered."""
    input:
        **({"answers": "results/recommendations/{study}.parquet"} if ANSWERS_TAKE_PART else {}),
        spec=lambda wildcards: ancient(spec_of(wildcards.study)),
        usual=lambda wildcards: usual_of(wildcards.study),
        sweep=lambda wildcards: sweep_of(wildcards.gpu, wildcards.study),
        profile="results/gpus/{gpu}.json",
    output:
        "results/contests/{gpu}/{study}.json",
    log:
        "results/logs/contests/{gpu}.{study}.log",
    wildcard_constraints:
        gpu=pattern(LIVE if CONFIRMATION else []),
    params:
        **ASKED_OF_STUDY,
        code=code("scripts/contests.py"),
        entry=lambda wildcards: UNTITLED[wildcards.study],
        how=CONFIRMATION,
        model=lambda wildcards: answering_model(MODELS[wildcards.study]),
    script:
        "../scripts/contests.py"


rule confirm:
    """Run the configurations of each contest in turn on one card, until their ratios are known."""
    input:
        profile="results/gpus/{gpu}.json",
        bundle=lambda wildcards: bundle_of(wildcards.gpu, STUDIES[wildcards.study]["workload"]),
        sources=lambda wildcards: sources(folder_of(wildcards.study)),
        contests="results/contests/{gpu}/{study}.json",
        sweep=lambda wildcards: sweep_of(wildcards.gpu, wildcards.study),
    output:
        "results/pairs/{gpu}/{study}.parquet",
        peers="results/peers/{gpu}/{study}.parquet",
    log:
        "results/logs/confirm/{gpu}.{study}.log",
    wildcard_constraints:
        gpu=pattern(LIVE if CONFIRMATION else []),
    threads: lambda wildcards: CORES if compiled_alongside(wildcards.gpu) else 1
    resources:
        **ON_GPU,
        runtime=lambda wildcards, attempt: minutes_of_pairs(wildcards.gpu, wildcards.study, attempt),
        mem_mb=lambda wildcards, attempt: memory_of(wildcards.gpu, wildcards.study, attempt),
    params:
        code=code("scripts/confirm.py", "launchwise/cuda/child.py"),
        folder=lambda wildcards: folder_of(wildcards.study),
        slice_sms=lambda wildcards: GPUS[wildcards.gpu]["slice_sms"],
        how=CONFIRMATION,
        method=lambda wildcards: METHODS[STUDIES[wildcards.study]["workload"]],
        seed=settings.seed,
        # Not an output: Snakemake deletes the outputs of a failed job, and the journal must stay.
        journal="results/journal/{gpu}/{study}.pairs.jsonl",
    script:
        "../scripts/confirm.py"


rule recorded_pairs:
    """Check recorded pairs and copy them, beside the usual choice of today."""
    input:
        spec=lambda wildcards: ancient(spec_of(wildcards.study)),
        usual=lambda wildcards: usual_of(wildcards.study),
        same_rounds=lambda wildcards: (
            present(recorded_pairs_of(wildcards.gpu, wildcards.study, "pairs"))
            if wildcards.kind == "peers"
            else []
        ),
        pairs=lambda wildcards: recorded_pairs_of(wildcards.gpu, wildcards.study, wildcards.kind),
    output:
        "results/{kind}/{gpu}/{study}.parquet",
    log:
        "results/logs/recorded_{kind}/{gpu}.{study}.log",
    wildcard_constraints:
        gpu=pattern(RECORDED_IN),
        kind="pairs|peers",
    localrule: True
    params:
        **OF_STUDY,
        code=code("scripts/recorded_pairs.py"),
        own_usual=lambda wildcards: STUDIES[wildcards.study]["usual"],
        clock_tolerance=CONFIRMATION["clock_tolerance"] if CONFIRMATION else None,
    script:
        "../scripts/recorded_pairs.py"


use rule recorded_pairs as record_pairs with:
    """Copy the pairs of a live GPU to data/recorded/."""
    input:
        spec=lambda wildcards: ancient(spec_of(wildcards.study)),
        pairs="results/{kind}/{gpu}/{study}.parquet",
    output:
        "data/recorded/{gpu}/{study}.{kind}.parquet",
    log:
        "results/logs/record_{kind}/{gpu}.{study}.log",
    wildcard_constraints:
        gpu=pattern(LIVE if CONFIRMATION else []),
        kind="pairs|peers",
    # A rule does not inherit that.
    localrule: True
