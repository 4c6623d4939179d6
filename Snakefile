# launchwise measures CUDA kernels under launch parameters, learns and recommends.
# Each stage is one file in rules/. `snakemake --list` lists every target.
import gc

from launchwise.gpus.datasheets import CARDS_FILE, REFERENCE_PROFILE
from launchwise.importing.device_names import DEVICE_NAMES_FILE
from launchwise.workflow.checks import readable, settings_file, start
from launchwise.workflow.answer_checks import BLIND_FILES, Contests, recorded_workloads
from launchwise.workflow.plan import (
    Code,
    fitted_model,
    name_in_one_word,
    own_rules,
    pattern,
    problems_for,
    project_file,
    record_version,
    run_time_tables,
    settings_to_name,
    sources,
)
from launchwise.workflow.studies import Studies, Values, present, profiles
from launchwise.workflow.sweeps import Cluster, Sweeps, prior_facts, prior_sweeps
from launchwise.workflow.targets import Reported, targets
from launchwise.workflow.telling import (
    check_submission,
    note_interrupts,
    tell_beginning,
    tell_failures,
    tell_interruption,
    tell_missing_records,
    tell_plan,
)

# What is imported stays: the collector of garbage need not go through it again and again.
gc.freeze()
name_in_one_word()


# config.yaml, or the settings of a workflow that has this one as a module.
SETTINGS = settings_file(workflow)


configfile: readable(SETTINGS, workflow.overwrite_configfiles or workflow.modifier.skip_configfile)


experiment = start(
    config, SETTINGS, workflow.overwrite_configfiles, in_job=not workflow.is_main_process
)
settings = experiment.settings
# What rules ask (launchwise/workflow): plain values, and files and parameters by their wildcards.
code = Code()
values = Values(experiment)
# Value of --cores. On a cluster: 8, unless its profile sets another (set-threads).
CORES = workflow.resource_settings.cores or 8
cluster = Cluster(experiment, values.archs)
sweeps = Sweeps(values, cluster, CORES)
studies = Studies(values, CORES)
contests = Contests(values, cluster)
recorded = recorded_workloads(values, studies, contests)
reported = Reported(values, studies, contests)
tell_missing_records(workflow)
if workflow.output_settings.dryrun:
    tell_plan(experiment, cluster)


onstart:
    check_submission(workflow, experiment)
    if not workflow.local_exec:
        tell_plan(experiment, cluster)
    record_version()
    note_interrupts()
    tell_beginning(workflow)


onerror:
    if not tell_interruption():
        tell_failures(workflow)


# Snakemake ignores a default target in an included file.
rule all:
    """Build the report and everything that it needs, and answers without a study."""
    default_target: True
    input:
        # All of them: a page alone would look up to date when a study was renamed.
        lambda wildcards: list(rules.report.output) if experiment.studies else [],
        lambda wildcards: [
            f"results/answers/{gpu}/{workload}.json"
            for gpu in settings.gpus
            for workload in experiment.alone_on(gpu)
        ],
        [studies.final(study) for study in experiment.studies],
        # What is between data and results is made again only where somebody asks for it.
        [path for study in experiment.studies for path in studies.learnt(study)],


include: "rules/common.smk"
include: "rules/measure.smk"
include: "rules/answer.smk"
include: "rules/confirm.smk"
include: "rules/data.smk"
include: "rules/learn.smk"
include: "rules/blind.smk"
include: "rules/record.smk"
include: "rules/recheck.smk"
include: "rules/export.smk"
include: "rules/predict.smk"
include: "rules/report.smk"
include: "rules/targets.smk"


# Rules of the workloads' own.
for path in own_rules(experiment):

    include: path
