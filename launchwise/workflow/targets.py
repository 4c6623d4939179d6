"""What a run makes: named targets of each study, workload and GPU, and the report."""

from __future__ import annotations

from pathlib import Path

from launchwise.gpus.datasheets import CARDS_FILE, REFERENCE_PROFILE
from launchwise.workflow.answer_checks import DRAWN, Contests
from launchwise.workflow.plan import project_file, published_tables, section_sources
from launchwise.workflow.studies import Plain, Studies, Values
from launchwise.workflow.sweeps import Sweeps
from launchwise.workloads.spec import Spec

Targets = dict[str, list[str]]

OF_STUDIES = {
    "split": "results/splits/{study}.json",
    "clean": "results/clean/{study}.parquet",
    "final": "results/final/{study}/final.json",
    "lookup": "results/lookup/{study}.json",
    "export": "results/export/{study}",
}
"""Stage of every study to what it makes."""

PREDICTED = "results/predictions/{study}.parquet"
"""Predictions are of datasheet-only GPUs: without any there is no such target."""


def targets(values: Values, contests: Contests, sweeps: Sweeps) -> Targets:
    found: Targets = {}
    for study in values.studies:
        found |= _of_study(study, values)
    measurable = [study for study in values.studies if _spec(study, values).has_kernel]
    for study in measurable:
        found[f"recheck_{study}"] = _rechecks(study, values, contests)
    for study in values.blind:
        found |= _blind_tests(study, values, contests)
    archs = sorted(set(values.archs.values()))
    compiled = dict.fromkeys(map(values.workload, measurable))
    # Too few sizes for a study, or none asked for.
    compiled |= dict.fromkeys(each for gpu in values.live for each in _measured(gpu, values))
    for workload in compiled:
        found[f"compile_{workload}"] = [f"results/build/{workload}/{arch}.cubins" for arch in archs]
    for gpu in values.gpus:
        found |= _of_gpu(gpu, values, sweeps)
    for gpu in values.live:
        found |= _of_live_gpu(gpu, values)
    return found


def _measured(gpu: str, values: Values) -> list[str]:
    experiment = values.experiment
    return [each for each in experiment.workloads_of(gpu) if experiment.spec_of(each).has_kernel]


def _of_study(study: str, values: Values) -> Targets:
    made = OF_STUDIES | ({"predict": PREDICTED} if values.cards else {})
    return {f"{stage}_{study}": [path.format(study=study)] for stage, path in made.items()}


def _spec(study: str, values: Values) -> Spec:
    return values.experiment.specs[values.workload(study)]


def _rechecks(study: str, values: Values, contests: Contests) -> list[str]:
    """Live GPUs; recorded ones where none is live: for a machine that has such a card."""
    gpus = [gpu for gpu in values.experiment.gpus_of(study) if gpu in contests.rechecked]
    gpus = [gpu for gpu in gpus if gpu in values.live] or gpus
    return [f"results/recheck/{gpu}/{study}.parquet" for gpu in gpus]


def _blind_tests(study: str, values: Values, contests: Contests) -> Targets:
    tested = values.experiment.tested_blindly(study)
    live = [gpu for gpu in tested if gpu in values.live]
    scored = [gpu for gpu in tested if gpu in live or contests.has_blind_test(gpu, study)]
    return {
        f"blind_{study}": [f"results/blind/{gpu}/{study}.score.json" for gpu in scored],
        f"freeze_{study}": [f"results/blind/{gpu}/{study}.frozen.json" for gpu in live],
    }


def _of_gpu(gpu: str, values: Values, sweeps: Sweeps) -> Targets:
    profile = f"results/gpus/{gpu}.json"
    found = {f"describe_{gpu}": [profile]}
    # A datasheet-only GPU has no sweep.
    if gpu not in values.cards:
        workloads = values.experiment.workloads_of(gpu)
        tables = [f"results/sweeps/{gpu}/{workload}.parquet" for workload in workloads]
        # A shard that was deleted is measured again.
        asked = workloads if gpu in values.live else []
        shards = [path for workload in asked for path in sweeps.shards(gpu, workload)]
        found[f"sweep_{gpu}"] = [profile, *tables, *shards]
    return found


def _of_live_gpu(gpu: str, values: Values) -> Targets:
    experiment, recorded = values.experiment, f"data/recorded/{gpu}"
    asked = [study for study in experiment.studies if gpu in experiment.gpus_of(study)]
    peers = [study for study in asked if experiment.studies[study].peers]
    counted = [study for study in asked if experiment.studies[study].counters]
    # Of a held-out GPU nothing else is measured.
    blind = [
        study
        for study in values.blind
        if values.gpus[gpu]["held_out"] and gpu in experiment.tested_blindly(study)
    ]
    found = {
        f"confirm_{gpu}": [f"results/pairs/{gpu}/{study}.parquet" for study in asked],
        f"record_pairs_{gpu}": [
            *(f"{recorded}/{study}.pairs.parquet" for study in asked),
            *(f"{recorded}/{study}.peers.parquet" for study in peers),
        ],
        f"record_{gpu}": [
            f"{recorded}/profile.json",
            *(
                f"{recorded}/{workload}.provenance.json"
                for workload in experiment.workloads_of(gpu)
            ),
            *(f"{recorded}/blind/{study}.pairs.parquet" for study in blind),
        ],
    }
    if counted:
        found[f"counters_{gpu}"] = [f"results/counters/{gpu}/{study}.parquet" for study in counted]
        found[f"record_counters_{gpu}"] = [
            f"{recorded}/{study}.counters.parquet" for study in counted
        ]
    return found


class Reported:
    """The report of an experiment's studies. ``files``: study to its files: a path, one per GPU or
    model, or None."""

    def __init__(self, values: Values, studies: Studies, contests: Contests) -> None:
        self._values, self._studies, self._contests = values, studies, contests
        self.files = {study: self._files(study) for study in values.studies}

    def _files(self, study: str) -> Plain:
        studies, contests, cards = self._studies, self._contests, self._values.cards
        gpus = studies.gpus(study)
        models = self._values.models[study]
        return {
            "folder": studies.own_folder(study),
            "sweeps": dict(zip(gpus, studies.sweeps(study), strict=True)),
            "judged": dict(zip(gpus, studies.times(study), strict=True)),
            "profiles": dict(zip(gpus, studies.profiles(study), strict=True)),
            "evaluation": f"results/evaluation/{study}.parquet",
            "curves": f"results/evaluation/{study}.curves.parquet",
            "facts": f"results/evaluation/{study}.summary.json",
            "candidates": f"results/learnt/{study}/candidates.parquet",
            "models": {model: f"results/learnt/{study}/{model}.parquet" for model in models},
            "pairs": contests.pairs(study),
            "peers": contests.peers(study),
            "blind": contests.scores(study, "json"),
            "drawn": contests.scores(DRAWN + study, "json"),
            "scores": contests.scores(study, "csv"),
            "frozen": contests.frozen(study),
            "answers": f"results/lookup/{study}.json",
            # Only if the settings have datasheet-only GPUs.
            "described": {gpu: f"results/gpus/{gpu}.json" for gpu in cards},
            "published": f"results/predictions/{study}.published.parquet" if cards else None,
            # Only if they were read: not every machine has Nsight Compute.
            "counters": contests.counters(study),
        }

    def reads(self) -> dict[str, list[str] | str]:
        """Inputs of a stage that writes the report. Each once: Snakemake compares every input with
        every output, and studies share many."""
        settings = self._values.settings
        specs = map(self._studies.spec, self.files)
        return {
            "tables": [] if settings.incomplete_report else self._tables(),
            "specs": list(dict.fromkeys(specs)),
            "loads": [path for study in self.files for path in self._studies.load(study)],
            "published": [
                path for each in self.files.values() for path in published_tables(each["folder"])
            ],
            # For published predictions: datasheets and the reference efficiency.
            "cards": project_file(CARDS_FILE),
            "reference": project_file(REFERENCE_PROFILE),
            "prices": [settings.prices] if settings.prices else [],
        }

    @staticmethod
    def templates() -> list[str]:
        return sorted(map(str, Path(project_file("launchwise/report/templates")).iterdir()))

    def _tables(self) -> list[str]:
        tables = [
            path
            for files in self.files.values()
            for name, entry in files.items()
            for path in (entry.values() if isinstance(entry, dict) else [entry])
            if path is not None and name not in ("folder", "frozen")
        ]
        return list(dict.fromkeys(tables))

    def sections(self) -> list[str]:
        return [path for each in self.files.values() for path in section_sources(each["folder"])]

    def params(self) -> Plain:
        settings, experiment = self._values.settings, self._values.experiment
        return {
            "files": self.files,
            "kept_out": {study: experiment.kept_out(study) for study in self.files},
            "settings": {
                "studies": self._values.studies,
                "models": self._values.models,
                "search": settings.search.model_dump(mode="json"),
                "seed": settings.seed,
                "least_gain": settings.least_gain,
                "objective": settings.objective,
            },
            "gpus": list(settings.gpus),
        }
