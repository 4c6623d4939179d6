# Answers measured again: which of them are stale since the driver, the toolkit or the card changed.
# `launchwise recheck` runs these rules and no others, on a card of the machine that it is called on.
#   in   results/final/{study}, results/sweeps, profiles; results/pairs/{gpu}/{study}.parquet
#   out  results/recheck/{gpu}/{study}.contests.json   problems drawn: default and recommendation
#        results/recheck/{gpu}/{study}.expected.json   what the product expects of them
#        results/recheck/{gpu}/{study}.pairs.parquet   their times in turn
#        results/recheck/{gpu}/{study}.parquet         a verdict per problem


# Both are described by a profile that was measured.
RECHECKED = [*LIVE, *RECORDED_IN]
RECHECK = settings.recheck.model_dump(mode="json")
RECHECKED_HOW = {
    **(settings.confirm or Confirmation()).model_dump(mode="json"),
    "seconds": RECHECK["seconds"],
}


rule recheck_contests:
    """Draw problems, and list the default and what is recommended for each."""
    input:
        final=ancient("results/final/{study}"),
        profiles=lambda wildcards: map(ancient, profiles_of(wildcards.study)),
    output:
        contests="results/recheck/{gpu}/{study}.contests.json",
        expected="results/recheck/{gpu}/{study}.expected.json",
    log:
        "results/logs/recheck_contests/{gpu}.{study}.log",
    wildcard_constraints:
        gpu=pattern(RECHECKED),
    localrule: True
    params:
        code=code("scripts/recheck_contests.py"),
        question=lambda wildcards: question_of(wildcards.study),
        gpus=lambda wildcards: experiment.gpus_of(wildcards.study),
        folder=lambda wildcards: folder_of(wildcards.study),
        problems=RECHECK["problems"],
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
        sweep=lambda wildcards: ancient(sweep_of(wildcards.gpu, wildcards.study)),
    output:
        "results/recheck/{gpu}/{study}.pairs.parquet",
    log:
        "results/logs/recheck_pairs/{gpu}.{study}.log",
    wildcard_constraints:
        gpu=pattern(RECHECKED),
    localrule: True
    threads: CORES
    resources:
        gpu=1,
    params:
        how=RECHECKED_HOW,
        journal="results/journal/{gpu}/{study}.recheck.jsonl",
        once=True,


rule recheck:
    """Say which answers hold and which are stale."""
    input:
        spec=lambda wildcards: ancient(spec_of(wildcards.study)),
        expected="results/recheck/{gpu}/{study}.expected.json",
        pairs="results/recheck/{gpu}/{study}.pairs.parquet",
        before=lambda wildcards: map(ancient, pairs_before(wildcards.gpu, wildcards.study)),
        sweep=lambda wildcards: ancient(sweep_of(wildcards.gpu, wildcards.study)),
    output:
        "results/recheck/{gpu}/{study}.parquet",
    log:
        "results/logs/recheck/{gpu}.{study}.log",
    wildcard_constraints:
        gpu=pattern(RECHECKED),
    localrule: True
    params:
        **OF_STUDY,
        code=code("scripts/recheck.py"),
        precision=RECHECKED_HOW["precision"],
    script:
        "../scripts/recheck.py"
