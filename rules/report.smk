# The pages of the report and its tables.
#   in   every table of every study, the GPUs' profiles, data/cards.csv,
#        data/recorded/h200/profile.json
#        section.py and published/ of every study
#   out  results/report/index.html                  the front page
#        results/report/gpus.html, health.html      the GPUs; how far the sweeps can be trusted
#        results/report/{study}/                    pages of a study
#        results/report/assets/, data/              what they share; what the lookup reads
#        results/report.zip                         all of it, to send
#        results/report/{study}.models.csv          metrics per model and split
#        results/report/{study}.configurations.csv  best fixed configuration per GPU
from pathlib import Path


report: "../report/workflow.rst"


REPORTED = {
    study: {
        "folder": study_folder(study),
        "sweeps": {
            gpu: f"results/sweeps/{gpu}/{entry.workload}.parquet"
            for gpu in experiment.gpus_of(study)
        },
        "judged": dict(zip(experiment.gpus_of(study), times_of(study), strict=True)),
        "profiles": {gpu: f"results/gpus/{gpu}.json" for gpu in experiment.gpus_of(study)},
        "training": f"results/clean/{study}.parquet",
        "removed": f"results/clean/{study}.removed.parquet",
        "evaluation": f"results/evaluation/{study}.parquet",
        "curves": f"results/evaluation/{study}.curves.parquet",
        "facts": f"results/evaluation/{study}.summary.json",
        "times": f"results/recommendations/{study}.times.parquet",
        "models": {model: f"results/models/{study}/{model}" for model in entry.models},
        "pairs": pairs_of(study),
        "peers": peers_of(study),
        "blind": scores_of(study, "json"),
        "scores": scores_of(study, "csv"),
        "answers": f"results/lookup/{study}.json",
        # Only if the settings have datasheet-only GPUs.
        "described": {gpu: f"results/gpus/{gpu}.json" for gpu in CARDS},
        "published": f"results/predictions/{study}.published.parquet" if CARDS else None,
        # Only if they were read: not every machine has Nsight Compute.
        "counters": {
            gpu: path
            for gpu in experiment.gpus_of(study)
            if Path(path := counters_of(gpu, study)).is_file()
        },
    }
    for study, entry in experiment.studies.items()
}
REPORT_PARAMS = {
    "files": REPORTED,
    "kept_out": {study: experiment.kept_out(study) for study in REPORTED},
    "settings": {
        "studies": STUDIES,
        "models": MODELS,
        "search": settings.search.model_dump(mode="json"),
        "seed": settings.seed,
        "least_gain": settings.least_gain,
    },
    "gpus": list(settings.gpus),
}
REPORTED_TABLES = [
    path
    for study in REPORTED.values()
    for name, entry in study.items()
    for path in (entry.values() if isinstance(entry, dict) else [entry])
    if path is not None and name != "folder"
]


REPORT_READS = {
    # Each once: Snakemake compares every input with every output, and studies share many.
    "tables": [] if settings.incomplete_report else list(dict.fromkeys(REPORTED_TABLES)),
    "specs": list(dict.fromkeys(f"{folder_of(study)}/spec.yaml" for study in STUDIES)),
    "published": [
        path for study in REPORTED.values() for path in published_tables(study["folder"])
    ],
    # For published predictions: datasheets and the reference efficiency.
    "cards": project_file(CARDS_FILE),
    "reference": project_file(REFERENCE_PROFILE),
    "prices": [settings.prices] if settings.prices else [],
}


rule report:
    """Write the pages of the report, and its main tables as CSV."""
    input:
        **REPORT_READS,
        templates=sorted(map(str, Path(project_file("launchwise/report/templates")).iterdir())),
    output:
        front=report(
            "results/report/index.html",
            category="Report",
            labels={"what": "the front page, by itself"},
            caption="../report/page.rst",
        ),
        others=["results/report/gpus.html", "results/report/health.html"],
        assets=[directory(f"results/report/{name}") for name in ("assets", "data")],
        studies=[directory(f"results/report/{study}") for study in experiment.studies],
        archive=report(
            "results/report.zip",
            category="Report",
            labels={"what": "every page, to unpack"},
            caption="../report/archive.rst",
        ),
        models=[
            report(
                f"results/report/{study}.models.csv",
                category=entry.title,
                labels={"what": "models and baselines"},
                caption="../report/models.rst",
            )
            for study, entry in experiment.studies.items()
        ],
        configurations=[
            report(
                f"results/report/{study}.configurations.csv",
                category=entry.title,
                labels={"what": "one configuration for all sizes"},
                caption="../report/configurations.rst",
            )
            for study, entry in experiment.studies.items()
        ],
    log:
        "results/logs/report.log",
    threads: max(1, min(len(REPORTED), CORES))
    params:
        **REPORT_PARAMS,
        code=code(
            "scripts/report.py",
            *(path for study in REPORTED.values() for path in section_sources(study["folder"])),
        ),
        settings_files=SETTINGS_FILES,
    script:
        "../scripts/report.py"
