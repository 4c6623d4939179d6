# launchwise: measure launch parameters, learn from them, recommend them.
# Each stage is one file in rules/; `snakemake --list` names every target.
from launchwise.workflow import (
    architectures,
    code,
    folders,
    pattern,
    problems_for,
    shard_of,
    sources,
    start,
)


configfile: "config.yaml"


experiment = start(config, workflow.configfiles)
settings = experiment.settings


include: "rules/common.smk"
include: "rules/measure.smk"
include: "rules/targets.smk"
