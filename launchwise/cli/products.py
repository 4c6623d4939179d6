"""Products of the studies of the project that a command runs in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.cli.studies import find_profile, study_domain, study_named
from launchwise.experiment.experiment import Experiment
from launchwise.learning.final import FACTS_FILE, Final, read_final
from launchwise.learning.stored import read_product_facts

FINAL = Path("results", "final")
RECOMMEND = "recommend"


def known_gpus(study: str, experiment: Experiment, command: str = RECOMMEND) -> list[str]:
    """GPUs that a study's product learnt from.

    Raises
    ------
    UserError
        When there is no such study, or no product of it.
    """
    study_named(study, experiment, command)
    path = experiment.root / FINAL / study / FACTS_FILE
    if not path.is_file():
        message = f"is missing: make it with snakemake --cores all -- final_{study}"
        raise UserError(path.parent.relative_to(experiment.root), "", message)
    return list(read_product_facts(path)["gpus"])


def load_final(study: str, experiment: Experiment, gpus: Sequence[str]) -> Final:
    """A study's product that answers for ``gpus`` besides those of its training rows.

    Raises
    ------
    UserError
        When a GPU is unknown, or the product is missing or damaged.
    """
    known = known_gpus(study, experiment)
    named_by = dict.fromkeys([*known, *gpus], RECOMMEND)
    named_by |= dict.fromkeys(known, str(FINAL / study / FACTS_FILE))
    settings = experiment.studies[study]
    spec = experiment.specs[settings.workload]
    profiles = {gpu: find_profile(gpu, experiment, where) for gpu, where in named_by.items()}
    domain = study_domain(settings, spec, profiles)
    return read_final(experiment.root / FINAL / study, domain)
