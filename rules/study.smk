# What the rules of a study have in common: files of its GPUs, its workload and its splits.
from pathlib import Path

from launchwise.learning.recommenders import BY_COST, source


def folder_of(study):
    """Folder of the study's workload."""
    return FOLDERS[STUDIES[study]["workload"]]


def spec_of(study):
    """What the study's workload is."""
    return f"{folder_of(study)}/spec.yaml"


def features_of(study):
    """What models may learn of the workload, where that stands in a file of its own."""
    return present(f"{folder_of(study)}/features.yaml")


def cost_of(study):
    """What runs of the workload ask of the hardware, where somebody wrote it down."""
    return present(f"{folder_of(study)}/cost.yaml")


def present(path):
    """``path`` in a list, or none where there is no such file."""
    return [path] if Path(path).is_file() else []


def sweeps_of(study):
    """Sweeps of the study's GPUs, in the order of the settings."""
    workload = STUDIES[study]["workload"]
    return [f"results/sweeps/{gpu}/{workload}.parquet" for gpu in experiment.gpus_of(study)]


def profiles_of(study):
    """Profiles of the study's GPUs, in the order of the settings."""
    return [f"results/gpus/{gpu}.json" for gpu in experiment.gpus_of(study)]


def question_of(study):
    """What may be recommended, and what counts as good."""
    return {key: STUDIES[study][key] for key in ("candidates", "constraints", "near_best_percent")}


def study_folder(study):
    """Folder with the study's study.yaml, section and published tables."""
    return f"{folder_of(study)}/studies/{study}"


def code_of(study, model):
    """Files of a model's kind alone: an edited one trains no other."""
    return model_code(MODELS[study][model]["kind"], folder_of(study))
