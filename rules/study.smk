# Functions shared by the rules of a study: files of its workload, GPUs and models.
from pathlib import Path

from launchwise.learning.recommenders import BY_COST, COMMITTEE, answering_model, kinds_of


def folder_of(study):
    """Folder of the study's workload."""
    return FOLDERS[STUDIES[study]["workload"]]


def spec_of(study):
    """spec.yaml of the study's workload."""
    return f"{folder_of(study)}/spec.yaml"


def features_of(study):
    """features.yaml of the study's workload, as a list; empty if missing."""
    return present(f"{folder_of(study)}/features.yaml")


def cost_of(study):
    """cost.yaml of the study's workload, as a list; empty if missing."""
    return present(f"{folder_of(study)}/cost.yaml")


def usual_of(study):
    """usual.yaml of the study's workload, as a list; empty if missing."""
    return present(f"{folder_of(study)}/usual.yaml")


def present(path):
    """``[path]`` if the file exists, else an empty list."""
    return [path] if Path(path).is_file() else []


def sweeps_of(study):
    """Sweeps of the study's GPUs, in the order of the settings."""
    workload = STUDIES[study]["workload"]
    return [f"results/sweeps/{gpu}/{workload}.parquet" for gpu in experiment.gpus_of(study)]


def times_of(study):
    """Judged times of the study's GPUs, in the order of the settings."""
    return [f"results/times/{gpu}/{study}.parquet" for gpu in experiment.gpus_of(study)]


def profiles_of(study):
    """Profiles of the study's GPUs, in the order of the settings."""
    return [f"results/gpus/{gpu}.json" for gpu in experiment.gpus_of(study)]


def answered_gpus(study):
    """GPUs that exports and the lookup of a study answer for: its own, and datasheet-only ones."""
    return [*experiment.gpus_of(study), *CARDS]


def answered_profiles(study):
    """Profiles of the GPUs of :func:`answered_gpus`, in that order."""
    return [f"results/gpus/{gpu}.json" for gpu in answered_gpus(study)]


def question_of(study):
    """Candidates of the study, when one counts as near the best, features and what is usual."""
    keys = ("candidates", "constraints", "near_best_percent")
    optional = {"only_features": STUDIES[study]["features"], "usual": STUDIES[study]["usual"]}
    return {
        **{key: STUDIES[study][key] for key in keys},
        **{key: value for key, value in optional.items() if value is not None},
    }


def learnt_from(study):
    """Candidates and constraints of the study if models learn from candidates alone, else None."""
    if STUDIES[study]["train_on"] == "all":
        return None
    return {key: STUDIES[study][key] for key in ("candidates", "constraints")}


MANY_FOLDS = 6


def processes_of(study):
    """Processes that fit the study's folds, or ask about them, at once.

    A study of many folds is the longest path and may take all cores. Jobs of the others run beside
    each other: a job for two cores waits until two are free at once.
    """
    gpus = len(experiment.gpus_of(study))
    kinds = [split["kind"] for split in STUDIES[study]["splits"].values()]
    folds = max(1, sum(gpus if kind == "leave_one_gpu_out" else 1 for kind in kinds))
    return min(folds, CORES if folds > MANY_FOLDS else max(1, CORES // 2))


# Parameters of stages of one study; of those that ask it.
OF_STUDY = {
    "spec": lambda wildcards: SPECS[STUDIES[wildcards.study]["workload"]],
    "folder": lambda wildcards: folder_of(wildcards.study),
}
ASKED_OF_STUDY = {**OF_STUDY, "question": lambda wildcards: question_of(wildcards.study)}
# Inputs of stages that ask models.
MODELS_READ = {
    "spec": lambda wildcards: ancient(spec_of(wildcards.study)),
    "features": lambda wildcards: features_of(wildcards.study),
    "cost": lambda wildcards: cost_of(wildcards.study),
    "usual": lambda wildcards: usual_of(wildcards.study),
}


def untitled(model, study):
    """Settings of a model, its name instead of its title."""
    return {**MODELS[study][model], "title": model}


def study_folder(study):
    """Folder with the study's study.yaml, section and published tables."""
    return f"{folder_of(study)}/studies/{study}"


def sources_of(study, model):
    """Source files of the model's kinds: an edit retrains the models of this kind only."""
    folder = folder_of(study)
    kinds = kinds_of(MODELS[study][model], Path(folder))
    return [model_source(kind, folder) for kind in kinds]


def asks_cost(study, model):
    """Whether the model reads the workload's cost.yaml."""
    kinds = kinds_of(MODELS[study][model], Path(folder_of(study)))
    return any(kind in BY_COST for kind in kinds)


def inherited_by_final(study):
    """Fits to the folds, if the answering model is a committee."""
    name = answering_model(MODELS[study])
    return [f"results/models/{study}/{name}"] if MODELS[study][name]["kind"] == COMMITTEE else []


def scores_of(study, ending):
    """GPU to the score of its blind test; a live GPU is there only if it was tested."""
    return {
        gpu: f"results/blind/{gpu}/{study}.score.{ending}"
        for gpu in experiment.tested_blindly(study)
        if has_blind_test(gpu, study)
    }
