# launchwise measures CUDA kernels under launch parameters, learns and recommends.
# Each stage is one file in rules/. `snakemake --list` lists every target.
from launchwise.workflow.cluster import Cluster
from launchwise.workflow.plan import (
    architectures,
    code,
    described_cards,
    fitted_model,
    folders,
    model_code,
    own_files,
    own_rules,
    pattern,
    problems_for,
    readable,
    recorded_folders,
    in_order,
    sources,
    start,
)


configfile: readable("config.yaml", workflow.overwrite_configfiles)


experiment = start(config, "config.yaml", workflow.overwrite_configfiles)
settings = experiment.settings


# Snakemake ignores a default target in an included file.
rule all:
    """Build the report and everything that it needs."""
    default_target: True
    input:
        # All of them: a page alone would look up to date when a study was renamed.
        lambda wildcards: list(rules.report.output),


include: "rules/common.smk"
include: "rules/measure.smk"
include: "rules/study.smk"
include: "rules/split.smk"
include: "rules/clean.smk"
include: "rules/train.smk"
include: "rules/recommend.smk"
include: "rules/evaluate.smk"
include: "rules/predict.smk"
include: "rules/report.smk"
include: "rules/targets.smk"


# Rules of the workloads' own.
for path in own_rules(experiment):

    include: path
