# Blind tests: answers first, then measurements. A file that is there has no rule, so it is never made
# again by itself: answers that are given after the measurements would prove nothing. To test anew,
# delete the files of the test.
#   in   results/final/{study}, results/lookup/{study}.json, sweeps
#   out  results/blind/{gpu}/{study}.frozen.json    problems, answers, digest
#        results/blind/{gpu}/{study}.sweep.parquet  measurements of these problems
#        results/blind/{gpu}/{study}.pairs.parquet  answers beside the fastest, in pairs
#        results/blind/{gpu}/{study}.score.json     figures; .score.csv: a row per problem


rule freeze:
    """Draw the problems of a blind test and write the answers down."""
    input:
        final=ancient("results/final/{study}/final.json"),
        lookup=ancient("results/lookup/{study}.json"),
        sweeps=lambda wildcards: map(ancient, studies.sweeps(wildcards.study)),
        profiles=lambda wildcards: map(ancient, profiles(contests.profiled(**wildcards))),
    output:
        frozen="results/blind/{gpu}/{study}.frozen.json",
        asked="results/blind/{gpu}/{study}.problems.json",
    log:
        "results/logs/freeze/{gpu}.{study}.log",
    wildcard_constraints:
        **contests.untested("frozen.json"),
    params:
        entry=lambda wildcards: values.untitled[wildcards.study],
        question=lambda wildcards: studies.question(wildcards.study),
        gpus=lambda wildcards: contests.profiled(**wildcards),
        # Not an input: a rule makes it, of a live GPU.
        before=lambda wildcards: contests.measured_before(**wildcards),
        folder=lambda wildcards: studies.folder(wildcards.study),
        listed=lambda wildcards: contests.listed(**wildcards),
        seed=settings.seed,
    script:
        "../scripts/freeze.py"


use rule sweep as blind_sweep with:
    """Measure every candidate of a blind test's problems; compile what they need meanwhile."""
    input:
        profile=ancient("results/gpus/{gpu}.json"),
        frozen="results/blind/{gpu}/{study}.frozen.json",
        asked="results/blind/{gpu}/{study}.problems.json",
    output:
        "results/blind/{gpu}/{study}.sweep.parquet",
    log:
        "results/logs/blind_sweep/{gpu}.{study}.log",
    wildcard_constraints:
        **contests.untested("sweep.parquet"),
    threads: CORES
    resources:
        **ON_GPU,
        runtime=lambda wildcards, attempt: 120 * attempt,
        mem_mb=lambda wildcards, attempt: contests.memory_mb(**wildcards, attempt=attempt),
    params:
        code=None,
        folder=lambda wildcards: studies.folder(wildcards.study),
        problems=None,
        blocks=None,
        shards=1,
        method=lambda wildcards: contests.blind_method(wildcards.study),
        extends=None,
        journal="results/journal/{gpu}/{study}.blind.jsonl",


use rule contests as blind_contests with:
    """List the answer, the baseline, the usual choice and the fastest of each problem."""
    input:
        **SPEC_READ,
        profile=ancient("results/gpus/{gpu}.json"),
        frozen="results/blind/{gpu}/{study}.frozen.json",
        sweep="results/blind/{gpu}/{study}.sweep.parquet",
    output:
        "results/blind/{gpu}/{study}.contests.json",
    log:
        "results/logs/blind_contests/{gpu}.{study}.log",
    wildcard_constraints:
        **contests.untested("contests.json"),
    params:
        code=None,


use rule confirm as blind_pairs with:
    """Run the configurations of each contest in turn on one card."""
    input:
        profile=ancient("results/gpus/{gpu}.json"),
        contests="results/blind/{gpu}/{study}.contests.json",
        sweep="results/blind/{gpu}/{study}.sweep.parquet",
    output:
        "results/blind/{gpu}/{study}.pairs.parquet",
    log:
        "results/logs/blind_pairs/{gpu}.{study}.log",
    wildcard_constraints:
        **contests.untested("pairs.parquet"),
    threads: CORES
    params:
        code=None,
        journal="results/journal/{gpu}/{study}.blind_pairs.jsonl",


rule score:
    """Score the answers of a live GPU's blind test by what was measured afterwards."""
    input:
        **SPEC_READ,
        profile="results/gpus/{gpu}.json",
        frozen="results/blind/{gpu}/{study}.frozen.json",
        sweep="results/blind/{gpu}/{study}.sweep.parquet",
        pairs="results/blind/{gpu}/{study}.pairs.parquet",
    output:
        rows="results/blind/{gpu}/{study}.score.csv",
        summary="results/blind/{gpu}/{study}.score.json",
    log:
        "results/logs/score/{gpu}.{study}.log",
    wildcard_constraints:
        **TESTED_BLINDLY,
    params:
        **ASKED_OF_STUDY,
        code=code("scripts/score.py"),
    script:
        "../scripts/score.py"
