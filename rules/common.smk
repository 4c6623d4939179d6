# What rules of several stages share.


# Built from container.def; used only with --sdm apptainer.
container: "launchwise.sif"


# For rules of a workload's own, too (rules.smk in its folder).
FOLDERS = values.folders


wildcard_constraints:
    gpu=pattern(settings.gpus),
    study=pattern(experiment.studies),
    workload=pattern(experiment.folders),
    split=r"[a-z][a-z0-9_]*",
    arch=r"sm_\d+[af]?",
    shard=r"\d+",


# Resources of every job that measures.
ON_GPU = {"gpu": 1, **cluster.requests(workflow.resource_settings.default_resources)}
# Parameters of stages of one workload; of one study; of those that ask a study.
OF_WORKLOAD = {
    "spec": lambda wildcards: values.specs[wildcards.workload],
    "folder": lambda wildcards: FOLDERS[wildcards.workload],
}
OF_STUDY = {
    "spec": lambda wildcards: values.specs[values.workload(wildcards.study)],
    "folder": lambda wildcards: studies.folder(wildcards.study),
}
ASKED_OF_STUDY = {**OF_STUDY, "question": lambda wildcards: studies.question(wildcards.study)}
# Inputs of stages that read a spec without its texts.
WORKLOAD_READ = {"spec": lambda wildcards: ancient(f"{FOLDERS[wildcards.workload]}/spec.yaml")}
SPEC_READ = {"spec": lambda wildcards: ancient(studies.spec(wildcards.study))}
# Inputs of stages that ask models.
MODELS_READ = {
    **SPEC_READ,
    "features": lambda wildcards: studies.beside(wildcards.study, "features"),
    "cost": lambda wildcards: studies.beside(wildcards.study, "cost"),
    "usual": lambda wildcards: studies.beside(wildcards.study, "usual"),
}
# Wildcards of blind tests of live GPUs.
TESTED_BLINDLY = {"gpu": pattern(values.live), "study": pattern(values.blind)}
