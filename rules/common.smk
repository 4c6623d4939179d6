# Names used by every stage.
import math
from pathlib import Path

from launchwise.base.storage import digest_files
from launchwise.experiment.confirmation import Confirmation
from launchwise.gpus.datasheets import CARDS_FILE, REFERENCE_PROFILE
from launchwise.importing.cards import DEVICE_NAMES_FILE
from launchwise.workflow.titles import spec_digest, untitled_study


# Built from container.def; used only with --sdm apptainer.
container: "launchwise.sif"


# Plain values for params: a stage reruns when a setting that it reads changes.
GPUS = {name: gpu.model_dump(mode="json") for name, gpu in settings.gpus.items()}
STUDIES = {name: study.model_dump(mode="json") for name, study in experiment.studies.items()}
# Of stages that print no titles.
UNTITLED = {name: untitled_study(study) for name, study in experiment.studies.items()}
MODELS = {
    name: {
        model: experiment.model_of(name, model).model_dump(mode="json") for model in study.models
    }
    for name, study in experiment.studies.items()
}
METHODS = {
    name: sweep.model_dump(mode="json", exclude={"problems", "anew"})
    for name, sweep in experiment.sweeps.items()
}
# None: nothing is compared in pairs.
CONFIRMATION = settings.confirm and settings.confirm.model_dump(mode="json")
# Most rows that one fit learns from.
ROW_CAP = {
    "most": settings.max_rows_per_fit,
    "seed": settings.seed,
    "where": experiment.error("max_rows_per_fit", "").where,
}
# Of every study's answering model.
ANSWERS_TAKE_PART = CONFIRMATION is not None and CONFIRMATION["answers"]
# Studies with a blind test, and its files that can be recorded.
BLIND = [name for name, study in STUDIES.items() if study["blind"] is not None]
BLIND_FILES = ["frozen.json", "sweep.parquet", "pairs.parquet"]
LIVE = [name for name, gpu in settings.gpus.items() if gpu.source == "live"]
RECORDED_IN = recorded_folders(experiment)
# Recorded rows that live GPUs extend.
EXTENDED_IN = extended_folders(experiment)
PROFILES_IN = {**RECORDED_IN, **EXTENDED_IN}
CARDS = described_cards(settings)
HOST_LINKS = host_links(settings)
ARCHS = architectures(experiment)
FOLDERS = folders(experiment)
# What a spec.yaml says, without titles and descriptions: a stage that prints none of them has it as
# an input that may be newer, and this among its parameters.
SPECS = {name: spec_digest(Path(folder, "spec.yaml")) for name, folder in FOLDERS.items()}
CLUSTER = Cluster(experiment, ARCHS)
# Value of --cores. On a cluster: 8, unless its profile sets another (set-threads).
CORES = workflow.resource_settings.cores or 8


wildcard_constraints:
    gpu=pattern(settings.gpus),
    study=pattern(experiment.studies),
    model=pattern({model for models in MODELS.values() for model in models}),
    workload=pattern(experiment.folders),
    split=r"[a-z][a-z0-9_]*",
    arch=r"sm_\d+[af]?",
    shard=r"\d+",


def compiled_alongside(gpu):
    """Whether the sweep job compiles its own kernels while it measures."""
    return GPUS[gpu]["compile"] == "alongside"


def bundle_of(gpu, workload):
    """Cubin bundle of a GPU's sweep; empty if the sweep job compiles."""
    if compiled_alongside(gpu):
        return []
    return f"results/build/{workload}/{ARCHS[gpu]}.cubins"


def extends(gpu, workload):
    """Recorded sweep that a live GPU extends, with its digest; None where there is none.

    Not an input: what a sweep extends is what it is recorded as.
    """
    path = Path(EXTENDED_IN.get(gpu, ""), f"{workload}.parquet")
    if gpu not in EXTENDED_IN or not path.is_file():
        return None
    anew = [dict(selection) for selection in experiment.sweeps[workload].anew]
    return {"path": str(path), "digest": digest_files([path]), "anew": anew}


def guesses_of(gpu, workload):
    """Recommendations of a fitted model to measure first; empty if the strategy names no model."""
    if METHODS[workload]["strategy"]["guesses"] is None:
        return []
    return [f"results/guesses/{gpu}/{workload}.json"]


def prior_of(gpu, workload):
    """What other GPUs measured; empty if the strategy does not ask or none has measured."""
    asked = experiment, gpu, workload
    if not prior_gpus(*asked) and not prior_extended(*asked):
        return []
    return [f"results/priors/{gpu}/{workload}.parquet"]


def counters_of(gpu, study):
    """Hardware counters of a study's fastest configurations; the file may be missing."""
    if gpu in RECORDED_IN:
        return f"{RECORDED_IN[gpu]}/{study}.counters.parquet"
    return f"results/counters/{gpu}/{study}.parquet"


def described(gpu):
    """Settings that the profile of a GPU depends on; those of Slurm and shards do not count."""
    return {key: GPUS[gpu][key] for key in ("source", "arch", "device", "slice_sms")}


def placed(what):
    """Slurm resource of a GPU: its partition, model or constraint."""
    return lambda wildcards: CLUSTER.place(wildcards.gpu, what)


# Resources of every job that measures.
ON_GPU = {
    "gpu": 1,
    "gpu_model": placed("model"),
    "slurm_partition": placed("partition"),
    "constraint": placed("constraint"),
}
# Parameters of stages of one workload.
OF_WORKLOAD = {
    "spec": lambda wildcards: SPECS[wildcards.workload],
    "folder": lambda wildcards: FOLDERS[wildcards.workload],
}


def sweep_of(gpu, study):
    """Sweep that a study has of a GPU."""
    return f"results/sweeps/{gpu}/{STUDIES[study]['workload']}.parquet"


def pairs_of(study, kind="pairs"):
    """GPU to its pairs (``peers``: of libraries): of live GPUs, and of those that have a record."""
    return {
        gpu: f"results/{kind}/{gpu}/{study}.parquet"
        for gpu in experiment.gpus_of(study)
        if (gpu in LIVE and CONFIRMATION)
        or (gpu in RECORDED_IN and Path(recorded_pairs_of(gpu, study, kind)).is_file())
    }


def peers_of(study):
    """GPU to the pairs of the study's libraries."""
    return pairs_of(study, "peers") if STUDIES[study]["peers"] else {}


def recorded_pairs_of(gpu, study, kind):
    """Recorded pairs; the file may be missing."""
    return f"{RECORDED_IN[gpu]}/{study}.{kind}.parquet"


def minutes_of_pairs(gpu, study, attempt):
    """Time limit of a job: what its problems may take, and a start."""
    problems = len(experiment.problems_of(gpu, STUDIES[study]["workload"]))
    return attempt * (15 + math.ceil(3 * CONFIRMATION["seconds"] * problems / 60))


def blind_file(gpu, study, kind):
    """File of a blind test: recorded, or made by this run."""
    folder = f"{RECORDED_IN[gpu]}/blind" if gpu in RECORDED_IN else f"results/blind/{gpu}"
    return f"{folder}/{study}.{kind}"


def has_blind_test(gpu, study):
    """Whether a blind test of the study on a GPU was recorded, or measured by this run."""
    return study in BLIND and Path(blind_file(gpu, study, "pairs.parquet")).is_file()


def profiled_for(gpu, study):
    """GPUs that an answer needs the profiles of: the study's, and one that is held out."""
    return list(dict.fromkeys([*experiment.gpus_of(study), gpu]))


def measured_before(gpu, study):
    """Recorded rows of a held-out GPU, whose problems a blind test leaves out; None without any."""
    path = Path(EXTENDED_IN.get(gpu, ""), f"{STUDIES[study]['workload']}.parquet")
    found = GPUS[gpu]["held_out"] and gpu in EXTENDED_IN and path.is_file()
    return str(path) if found else None


def pairs_before(gpu, study):
    """Pairs of a study, if there are any by now."""
    path = f"results/pairs/{gpu}/{study}.parquet"
    return [path] if Path(path).is_file() else []


def memory_of(gpu, study, attempt):
    """Memory of a job that measures for a study, MB."""
    return CLUSTER.memory_mb(gpu, STUDIES[study]["workload"], attempt)
