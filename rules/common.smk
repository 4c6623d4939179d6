# Names shared by every stage.
from launchwise.gpus.datasheets import CARDS_FILE, REFERENCE_PROFILE


# What container.def makes; nobody needs it without --sdm apptainer.
container: "launchwise.sif"


# Plain values for params: a stage reruns when what it reads of the settings changes.
GPUS = {name: gpu.model_dump(mode="json") for name, gpu in settings.gpus.items()}
STUDIES = {name: study.model_dump(mode="json") for name, study in experiment.studies.items()}
MODELS = {
    name: {
        model: experiment.model_of(name, model).model_dump(mode="json") for model in study.models
    }
    for name, study in experiment.studies.items()
}
METHODS = {
    name: sweep.model_dump(mode="json", exclude={"problems"})
    for name, sweep in experiment.sweeps.items()
}
LIVE = [name for name, gpu in settings.gpus.items() if gpu.source == "live"]
RECORDED_IN = recorded_folders(experiment)
CARDS = described_cards(settings)
ARCHS = architectures(experiment)
FOLDERS = folders(experiment)
CLUSTER = Cluster(experiment, ARCHS)
# All that --cores allows; on a cluster a number that its profile may change (set-threads).
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
    """Whether the sweep's own job compiles, while it measures what is ready."""
    return GPUS[gpu]["compile"] == "alongside"


def bundle_of(gpu):
    """What the sweep of a GPU takes its kernels from, where that is made beforehand."""
    if compiled_alongside(gpu):
        return []
    return f"results/build/{{workload}}/{ARCHS[gpu]}.cubins"


def guesses_of(gpu, workload):
    """What a fitted model would measure first, where the sweep's strategy names one."""
    if METHODS[workload]["strategy"]["guesses"] is None:
        return []
    return [f"results/guesses/{gpu}/{workload}.json"]


def counters_of(gpu, study):
    """Where the hardware counters of a study's fastest configurations are, if they were read."""
    if gpu in RECORDED_IN:
        return f"{RECORDED_IN[gpu]}/{study}.counters.parquet"
    return f"results/counters/{gpu}/{study}.parquet"


def described(gpu):
    """What decides how a GPU is described: where jobs run, or how many, is no part of it."""
    return {key: GPUS[gpu][key] for key in ("source", "arch", "device", "slice_sms")}


def placed(what):
    """Where Slurm finds a GPU, as a resource: its partition, model or constraint."""
    return lambda wildcards: CLUSTER.place(wildcards.gpu, what)
