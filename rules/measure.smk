# From kernels and GPUs to sweeps.
#   in   kernels/{workload}/, a GPU
#   out  results/checks/{gpu}.json               driver, toolkit and libraries of the machine
#        results/gpus/{gpu}.json                 profile: attributes and measured ceilings
#        results/build/{workload}/{arch}.cubins  all builds, with registers and spilled bytes
#        results/guesses/{gpu}/{workload}.json   what a fitted model recommends, measured first
#        results/priors/{gpu}/{workload}.parquet what other GPUs measured, for a search to start from
#        results/sweeps/{gpu}/{workload}.parquet all measurements
#        results/counters/{gpu}/{study}.parquet  counters from Nsight Compute, on request only


rule check:
    """Check that the machine of a live GPU can measure; every other GPU job waits for it."""
    output:
        "results/checks/{gpu}.json",
    log:
        "results/logs/check/{gpu}.log",
    wildcard_constraints:
        gpu=pattern(values.live),
    priority: 10
    # A retry would fail the same way.
    retries: 0
    resources:
        **ON_GPU,
        runtime=5,
    params:
        code=code("scripts/check.py"),
        device=lambda wildcards: values.gpus[wildcards.gpu]["device"],
        arch=lambda wildcards: values.archs[wildcards.gpu],
    script:
        "../scripts/check.py"


rule describe:
    """Measure the profile of a live GPU: attributes and ceilings."""
    input:
        # The profile does not depend on the time or machine of the check.
        check=ancient("results/checks/{gpu}.json"),
        ceilings=[
            project_file("launchwise/cuda/ceilings_rates.cu"),
            project_file("launchwise/cuda/ceilings_latencies.cu"),
        ],
    output:
        "results/gpus/{gpu}.json",
    log:
        "results/logs/describe/{gpu}.log",
    wildcard_constraints:
        gpu=pattern(values.profiled),
    resources:
        **ON_GPU,
        runtime=lambda wildcards, attempt: 10 * attempt,
        mem_mb=lambda wildcards, attempt: 4000 * attempt,
    params:
        code=code("scripts/describe.py", "launchwise/cuda/ceilings.py"),
        entry=lambda wildcards: values.profile_settings(wildcards.gpu),
        arch=lambda wildcards: values.archs[wildcards.gpu],
    script:
        "../scripts/describe.py"


rule compile:
    """Compile every build of a workload for one architecture; needs nvcc but no driver."""
    input:
        sources=lambda wildcards: sources(FOLDERS[wildcards.workload]),
    output:
        "results/build/{workload}/{arch}.cubins",
    log:
        "results/logs/compile/{workload}.{arch}.log",
    threads: CORES
    resources:
        modules=lambda wildcards: cluster.modules(wildcards.arch),
    params:
        code=code("scripts/compile.py"),
        folder=lambda wildcards: FOLDERS[wildcards.workload],
        problems=lambda wildcards: problems_for(experiment, values.archs, **wildcards),
    script:
        "../scripts/compile.py"


rule guess:
    """Recommend configurations, from a fitted model, for a sweep to measure first."""
    input:
        **WORKLOAD_READ,
        profile="results/gpus/{gpu}.json",
        model=lambda wildcards: fitted_model(values.methods[wildcards.workload]),
    output:
        "results/guesses/{gpu}/{workload}.json",
    log:
        "results/logs/guess/{gpu}.{workload}.log",
    wildcard_constraints:
        gpu=pattern(values.live),
    params:
        **OF_WORKLOAD,
        code=code("scripts/guess.py"),
        guesses=lambda wildcards: values.methods[wildcards.workload]["strategy"]["guesses"],
        problems=lambda wildcards: experiment.problems_of(wildcards.gpu, wildcards.workload),
    script:
        "../scripts/guess.py"


rule prior:
    """Collect what other GPUs measured, for a sweep whose strategy starts from it."""
    input:
        **WORKLOAD_READ,
    output:
        "results/priors/{gpu}/{workload}.parquet",
    log:
        "results/logs/prior/{gpu}.{workload}.log",
    wildcard_constraints:
        gpu=pattern(values.live),
    localrule: True
    params:
        **OF_WORKLOAD,
        code=code("scripts/prior.py"),
        # Not inputs: they would wait until a GPU that extends them is measured.
        others=lambda wildcards: prior_sweeps(experiment, wildcards.gpu, wildcards.workload),
        facts=lambda wildcards: prior_facts(experiment, wildcards.gpu, wildcards.workload),
        problems=lambda wildcards: experiment.problems_of(wildcards.gpu, wildcards.workload),
    script:
        "../scripts/prior.py"


rule sweep:
    """Verify and time every configuration of one shard; shards claim problems one by one."""
    input:
        profile="results/gpus/{gpu}.json",
        bundle=lambda wildcards: sweeps.bundle(wildcards.gpu, wildcards.workload),
        sources=lambda wildcards: sources(FOLDERS[wildcards.workload]),
        guesses=lambda wildcards: sweeps.guesses(wildcards.gpu, wildcards.workload),
        prior=lambda wildcards: sweeps.prior(wildcards.gpu, wildcards.workload),
    output:
        "results/sweeps/{gpu}/{workload}/{shard}.parquet",
    log:
        "results/logs/sweep/{gpu}.{workload}.{shard}.log",
    wildcard_constraints:
        gpu=pattern(values.live),
    threads: lambda wildcards: sweeps.threads(wildcards.gpu)
    resources:
        **ON_GPU,
        runtime=lambda wildcards, input, attempt: cluster.minutes(
            wildcards.gpu, wildcards.workload, input.profile, attempt
        ),
        mem_mb=lambda wildcards, attempt: cluster.memory_mb(
            wildcards.gpu, wildcards.workload, attempt
        ),
    params:
        code=code("scripts/sweep.py", "launchwise/cuda/child.py"),
        folder=lambda wildcards: FOLDERS[wildcards.workload],
        slice_sms=lambda wildcards: values.gpus[wildcards.gpu]["slice_sms"],
        problems=lambda wildcards: sweeps.problems(wildcards.gpu, wildcards.workload),
        shards=lambda wildcards: cluster.shards(wildcards.gpu, wildcards.workload),
        blocks=lambda wildcards: experiment.blocks_of(wildcards.gpu, wildcards.workload),
        method=lambda wildcards: values.methods[wildcards.workload],
        seed=settings.seed,
        extends=lambda wildcards: sweeps.extends(wildcards.gpu, wildcards.workload),
        # Not an output: Snakemake deletes the outputs of a failed job, and the journal must stay.
        journal=lambda wildcards: sweeps.journal(**wildcards),
    script:
        "../scripts/sweep.py"


rule gather:
    """Merge the shards of a live sweep, and the recorded rows that it extends, into one table."""
    input:
        **WORKLOAD_READ,
        shards=lambda wildcards: sweeps.shards(wildcards.gpu, wildcards.workload),
    output:
        "results/sweeps/{gpu}/{workload}.parquet",
    log:
        "results/logs/gather/{gpu}.{workload}.log",
    wildcard_constraints:
        gpu=pattern(values.live),
    localrule: True
    params:
        **OF_WORKLOAD,
        code=code("scripts/gather.py"),
        extends=lambda wildcards: sweeps.extends(wildcards.gpu, wildcards.workload),
        method=lambda wildcards: values.methods[wildcards.workload],
    script:
        "../scripts/gather.py"


rule counters:
    """Read hardware counters of a study's fastest configurations; needs Nsight Compute."""
    input:
        profile="results/gpus/{gpu}.json",
        bundle=lambda wildcards: sweeps.compiled(wildcards.gpu, values.workload(wildcards.study)),
        sweep=lambda wildcards: studies.sweep(wildcards.gpu, wildcards.study),
    output:
        "results/counters/{gpu}/{study}.parquet",
    log:
        "results/logs/counters/{gpu}.{study}.log",
    wildcard_constraints:
        gpu=pattern(values.live),
    resources:
        **ON_GPU,
        runtime=lambda wildcards, attempt: 20 * attempt,
    params:
        code=code("scripts/counters.py", "launchwise/cuda/counted.py"),
        folder=lambda wildcards: studies.folder(wildcards.study),
        entry=lambda wildcards: values.without_models[wildcards.study],
        slice_sms=lambda wildcards: values.gpus[wildcards.gpu]["slice_sms"],
        seed=settings.seed,
    script:
        "../scripts/counters.py"
