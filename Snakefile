# launchwise: measure launch parameters, learn from them, recommend them.
# Each stage is one file in rules/; `snakemake --list` names every target.
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


# A default target counts in the Snakefile itself only: Snakemake forgets an included file's.
rule all:
    """The report: everything before it is made as needed."""
    default_target: True
    input:
        "results/report/index.html",


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


# Rules that a workload brings along.
for path in own_rules(experiment):

    include: path
