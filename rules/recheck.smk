# Answers measured again: which of them are stale since the driver, the toolkit or the card changed.
# `launchwise recheck` runs these rules and no others, on a card of the machine that it is called on.
#   in   results/final/{study}, results/sweeps, profiles; results/pairs/{gpu}/{study}.parquet
#   out  results/recheck/{gpu}/{study}.contests.json   problems drawn: default and recommendation
#        results/recheck/{gpu}/{study}.expected.json   what the product expects of them
#        results/recheck/{gpu}/{study}.pairs.parquet   their times in turn
#        results/recheck/{gpu}/{study}.parquet         a verdict per problem


rule recheck_contests:
    """Draw problems, and list the default and what is recommended for each."""
    input:
        final=ancient("results/final/{study}/final.json"),
        profiles=lambda wildcards: map(ancient, studies.profiles(wildcards.study)),
    output:
        contests="results/recheck/{gpu}/{study}.contests.json",
        expected="results/recheck/{gpu}/{study}.expected.json",
    log:
        "results/logs/recheck_contests/{gpu}.{study}.log",
    wildcard_constraints:
        gpu=pattern(contests.rechecked),
    localrule: True
    params:
        code=code("scripts/recheck_contests.py"),
        question=lambda wildcards: studies.question(wildcards.study),
        gpus=lambda wildcards: studies.gpus(wildcards.study),
        folder=lambda wildcards: studies.folder(wildcards.study),
        problems=settings.recheck.problems,
        seed=settings.seed,
        least_gain=settings.least_gain,
    script:
        "../scripts/recheck_contests.py"


use rule confirm as recheck_pairs with:
    """Run default and recommendation in turn on a card of this machine."""

    # No bundle: a kernel that another toolkit compiles is part of what may have become stale.
    input:
        profile=ancient("results/gpus/{gpu}.json"),
        contests="results/recheck/{gpu}/{study}.contests.json",
        sweep=lambda wildcards: ancient(studies.sweep(wildcards.gpu, wildcards.study)),
    output:
        "results/recheck/{gpu}/{study}.pairs.parquet",
    log:
        "results/logs/recheck_pairs/{gpu}.{study}.log",
    wildcard_constraints:
        gpu=pattern(contests.rechecked),
    localrule: True
    threads: CORES
    resources:
        gpu=1,
    params:
        how=values.recheck,
        journal="results/journal/{gpu}/{study}.recheck.jsonl",
        once=True,


rule recheck:
    """Say which answers hold and which are stale."""
    input:
        **SPEC_READ,
        expected="results/recheck/{gpu}/{study}.expected.json",
        pairs="results/recheck/{gpu}/{study}.pairs.parquet",
        before=lambda wildcards: map(ancient, contests.before(**wildcards, kind="pairs")),
        judged=lambda wildcards: map(ancient, contests.before(**wildcards, kind="times")),
        sweep=lambda wildcards: ancient(studies.sweep(wildcards.gpu, wildcards.study)),
    output:
        "results/recheck/{gpu}/{study}.parquet",
    log:
        "results/logs/recheck/{gpu}.{study}.log",
    wildcard_constraints:
        gpu=pattern(contests.rechecked),
    localrule: True
    params:
        **OF_STUDY,
        code=code("scripts/recheck.py"),
        precision=values.recheck["precision"],
    script:
        "../scripts/recheck.py"
