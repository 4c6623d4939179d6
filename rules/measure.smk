# From kernels and GPUs to sweeps.
#   in   kernels/{workload}/, a GPU; or data/recorded/{gpu}/; or data/cards.csv
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
        gpu=pattern(LIVE),
    priority: 10
    # A retry would fail the same way.
    retries: 0
    resources:
        **ON_GPU,
        runtime=5,
    params:
        code=code("scripts/check.py"),
        device=lambda wildcards: GPUS[wildcards.gpu]["device"],
        arch=lambda wildcards: ARCHS[wildcards.gpu],
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
        # An extended GPU keeps the profile of its rows.
        gpu=pattern(set(LIVE) - EXTENDED_IN.keys()),
    resources:
        **ON_GPU,
        runtime=lambda wildcards, attempt: 10 * attempt,
        mem_mb=lambda wildcards, attempt: 4000 * attempt,
    params:
        code=code("scripts/describe.py", "launchwise/cuda/describe.py"),
        entry=lambda wildcards: described(wildcards.gpu),
        arch=lambda wildcards: ARCHS[wildcards.gpu],
    script:
        "../scripts/describe.py"


rule recorded_profile:
    """Check and copy the profile of a recorded or extended GPU."""
    input:
        profile=lambda wildcards: f"{PROFILES_IN[wildcards.gpu]}/profile.json",
    output:
        "results/gpus/{gpu}.json",
    log:
        "results/logs/recorded_profile/{gpu}.log",
    wildcard_constraints:
        gpu=pattern(PROFILES_IN),
    localrule: True
    params:
        code=code("scripts/recorded_profile.py"),
    script:
        "../scripts/recorded_profile.py"


rule described_profile:
    """Estimate the profile of a datasheet-only GPU from the efficiency of the reference GPU."""
    input:
        cards=project_file(CARDS_FILE),
        reference=project_file(REFERENCE_PROFILE),
    output:
        "results/gpus/{gpu}.json",
    log:
        "results/logs/described_profile/{gpu}.log",
    wildcard_constraints:
        gpu=pattern(CARDS),
    localrule: True
    params:
        code=code("scripts/described_profile.py"),
        card=lambda wildcards: CARDS[wildcards.gpu],
        host_gbs=lambda wildcards: HOST_LINKS[wildcards.gpu],
    script:
        "../scripts/described_profile.py"


rule compile:
    """Compile every build of a workload for one architecture; needs nvcc but no driver."""
    input:
        sources=lambda wildcards: sources(FOLDERS[wildcards.workload]),
    output:
        "results/build/{workload}/{arch}.cubins",
    log:
        "results/logs/compile/{workload}.{arch}.log",
    threads: CORES
    params:
        code=code("scripts/compile.py"),
        folder=lambda wildcards: FOLDERS[wildcards.workload],
        problems=lambda wildcards: problems_for(experiment, ARCHS, **wildcards),
    script:
        "../scripts/compile.py"


rule guess:
    """Recommend configurations, from a fitted model, for a sweep to measure first."""
    input:
        spec=lambda wildcards: ancient(f"{FOLDERS[wildcards.workload]}/spec.yaml"),
        profile="results/gpus/{gpu}.json",
        model=lambda wildcards: fitted_model(METHODS[wildcards.workload]),
    output:
        "results/guesses/{gpu}/{workload}.json",
    log:
        "results/logs/guess/{gpu}.{workload}.log",
    wildcard_constraints:
        gpu=pattern(LIVE),
    params:
        **OF_WORKLOAD,
        code=code("scripts/guess.py"),
        guesses=lambda wildcards: METHODS[wildcards.workload]["strategy"]["guesses"],
        problems=lambda wildcards: experiment.problems_of(wildcards.gpu, wildcards.workload),
    script:
        "../scripts/guess.py"


rule prior:
    """Collect what other GPUs measured, for a sweep whose strategy starts from it."""
    input:
        spec=lambda wildcards: ancient(f"{FOLDERS[wildcards.workload]}/spec.yaml"),
        sweeps=lambda wildcards: [
            f"results/sweeps/{other}/{wildcards.workload}.parquet"
            for other in prior_gpus(experiment, wildcards.gpu, wildcards.workload)
        ],
    output:
        "results/priors/{gpu}/{workload}.parquet",
    log:
        "results/logs/prior/{gpu}.{workload}.log",
    wildcard_constraints:
        gpu=pattern(LIVE),
    localrule: True
    params:
        **OF_WORKLOAD,
        code=code("scripts/prior.py"),
        gpus=lambda wildcards: prior_gpus(experiment, wildcards.gpu, wildcards.workload),
        # Not inputs: they would wait until the GPU that extends them is measured.
        extended=lambda wildcards: prior_extended(experiment, wildcards.gpu, wildcards.workload),
        problems=lambda wildcards: experiment.problems_of(wildcards.gpu, wildcards.workload),
    script:
        "../scripts/prior.py"


rule sweep:
    """Verify and time every configuration of one shard; shards claim problems one by one."""
    input:
        profile="results/gpus/{gpu}.json",
        bundle=lambda wildcards: bundle_of(wildcards.gpu, wildcards.workload),
        sources=lambda wildcards: sources(FOLDERS[wildcards.workload]),
        guesses=lambda wildcards: guesses_of(wildcards.gpu, wildcards.workload),
        prior=lambda wildcards: prior_of(wildcards.gpu, wildcards.workload),
    output:
        "results/sweeps/{gpu}/{workload}/{shard}.parquet",
    log:
        "results/logs/sweep/{gpu}.{workload}.{shard}.log",
    wildcard_constraints:
        gpu=pattern(LIVE),
    threads: lambda wildcards: CORES if compiled_alongside(wildcards.gpu) else 1
    resources:
        **ON_GPU,
        runtime=lambda wildcards, input, attempt: CLUSTER.minutes(
            wildcards.gpu, wildcards.workload, input.profile, attempt
        ),
        mem_mb=lambda wildcards, attempt: CLUSTER.memory_mb(
            wildcards.gpu, wildcards.workload, attempt
        ),
    params:
        code=code("scripts/sweep.py", "launchwise/cuda/child.py"),
        folder=lambda wildcards: FOLDERS[wildcards.workload],
        slice_sms=lambda wildcards: GPUS[wildcards.gpu]["slice_sms"],
        problems=lambda wildcards: in_order(
            experiment,
            wildcards.gpu,
            wildcards.workload,
            CLUSTER.shards(wildcards.gpu, wildcards.workload),
        ),
        shards=lambda wildcards: CLUSTER.shards(wildcards.gpu, wildcards.workload),
        blocks=lambda wildcards: experiment.blocks_of(wildcards.gpu, wildcards.workload),
        method=lambda wildcards: METHODS[wildcards.workload],
        seed=settings.seed,
        extends=lambda wildcards: extends(wildcards.gpu, wildcards.workload),
        # Not an output: Snakemake deletes the outputs of a failed job, and the journal must stay.
        journal=lambda wildcards: (
            "results/journal/{gpu}/{workload}{kind}/{shard}.jsonl".format(
                kind=".extension" if wildcards.gpu in EXTENDED_IN else "", **wildcards
            )
        ),
    script:
        "../scripts/sweep.py"


rule gather:
    """Merge the shards of a live sweep, and the recorded rows that it extends, into one table."""
    input:
        spec=lambda wildcards: ancient(f"{FOLDERS[wildcards.workload]}/spec.yaml"),
        shards=lambda wildcards: expand(
            "results/sweeps/{{gpu}}/{{workload}}/{shard}.parquet",
            shard=range(1, CLUSTER.shards(wildcards.gpu, wildcards.workload) + 1),
        ),
    output:
        "results/sweeps/{gpu}/{workload}.parquet",
    log:
        "results/logs/gather/{gpu}.{workload}.log",
    wildcard_constraints:
        gpu=pattern(LIVE),
    localrule: True
    params:
        **OF_WORKLOAD,
        code=code("scripts/gather.py"),
        extends=lambda wildcards: extends(wildcards.gpu, wildcards.workload),
        method=lambda wildcards: METHODS[wildcards.workload],
    script:
        "../scripts/gather.py"


rule recorded:
    """Check every row of a recorded sweep and copy it."""
    input:
        spec=lambda wildcards: ancient(f"{FOLDERS[wildcards.workload]}/spec.yaml"),
        sweep=lambda wildcards: f"{RECORDED_IN[wildcards.gpu]}/{{workload}}.parquet",
    output:
        "results/sweeps/{gpu}/{workload}.parquet",
    log:
        "results/logs/recorded/{gpu}.{workload}.log",
    wildcard_constraints:
        gpu=pattern(RECORDED_IN),
    localrule: True
    params:
        **OF_WORKLOAD,
        code=code("scripts/recorded.py"),
    script:
        "../scripts/recorded.py"


rule record:
    """Copy a live sweep, with its provenance, to data/recorded/."""
    input:
        spec=lambda wildcards: ancient(f"{FOLDERS[wildcards.workload]}/spec.yaml"),
        sweep="results/sweeps/{gpu}/{workload}.parquet",
    output:
        recorded="data/recorded/{gpu}/{workload}.parquet",
        provenance="data/recorded/{gpu}/{workload}.provenance.json",
    log:
        "results/logs/record/{gpu}.{workload}.log",
    wildcard_constraints:
        gpu=pattern(LIVE),
    localrule: True
    params:
        **OF_WORKLOAD,
        code=code("scripts/record.py"),
        method=lambda wildcards: METHODS[wildcards.workload],
    script:
        "../scripts/record.py"


use rule recorded_profile as record_profile with:
    """Copy the profile of a live GPU to data/recorded/."""
    input:
        profile="results/gpus/{gpu}.json",
    output:
        "data/recorded/{gpu}/profile.json",
    log:
        "results/logs/record_profile/{gpu}.log",
    wildcard_constraints:
        gpu=pattern(set(LIVE) - EXTENDED_IN.keys()),
    # A rule does not inherit that.
    localrule: True


rule counters:
    """Read hardware counters of a study's fastest configurations; needs Nsight Compute."""
    input:
        profile="results/gpus/{gpu}.json",
        bundle=lambda wildcards: (
            f"results/build/{STUDIES[wildcards.study]['workload']}/{ARCHS[wildcards.gpu]}.cubins"
        ),
        sweep=lambda wildcards: (
            f"results/sweeps/{wildcards.gpu}/{STUDIES[wildcards.study]['workload']}.parquet"
        ),
    output:
        "results/counters/{gpu}/{study}.parquet",
    log:
        "results/logs/counters/{gpu}.{study}.log",
    wildcard_constraints:
        gpu=pattern(LIVE),
    resources:
        **ON_GPU,
        runtime=lambda wildcards, attempt: 20 * attempt,
    params:
        code=code("scripts/counters.py", "launchwise/cuda/counted.py"),
        folder=lambda wildcards: FOLDERS[STUDIES[wildcards.study]["workload"]],
        entry=lambda wildcards: UNTITLED[wildcards.study],
        slice_sms=lambda wildcards: GPUS[wildcards.gpu]["slice_sms"],
        seed=settings.seed,
    script:
        "../scripts/counters.py"


rule record_counters:
    """Copy the hardware counters of a live GPU to data/recorded/."""
    input:
        files="results/counters/{gpu}/{study}.parquet",
    output:
        copies="data/recorded/{gpu}/{study}.counters.parquet",
    log:
        "results/logs/record_counters/{gpu}.{study}.log",
    wildcard_constraints:
        gpu=pattern(LIVE),
    localrule: True
    params:
        code=code("scripts/copy_files.py"),
    script:
        "../scripts/copy_files.py"
