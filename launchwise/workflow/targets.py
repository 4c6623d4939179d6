"""Named targets: one per stage of each study, workload and GPU."""

from __future__ import annotations

from launchwise.workflow.contests import Contests
from launchwise.workflow.values import Values
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


def targets(values: Values, contests: Contests) -> Targets:
    """Name of a target to its files."""
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
        found |= _of_gpu(gpu, values)
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


def _of_gpu(gpu: str, values: Values) -> Targets:
    profile = f"results/gpus/{gpu}.json"
    found = {f"describe_{gpu}": [profile]}
    # A datasheet-only GPU has no sweep.
    if gpu not in values.cards:
        workloads = values.experiment.workloads_of(gpu)
        sweeps = [f"results/sweeps/{gpu}/{workload}.parquet" for workload in workloads]
        found[f"sweep_{gpu}"] = [profile, *sweeps]
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
