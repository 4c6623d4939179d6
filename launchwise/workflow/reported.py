"""What the report reads and is told."""

from __future__ import annotations

from pathlib import Path

from launchwise.gpus.datasheets import CARDS_FILE, REFERENCE_PROFILE
from launchwise.workflow.contests import Contests
from launchwise.workflow.plan import project_file, published_tables, section_sources
from launchwise.workflow.studies import Studies
from launchwise.workflow.values import Plain, Values


class Reported:
    """The report of an experiment's studies.

    Attributes
    ----------
    files
        Study to its files: a path, one per GPU or model, or None.
    """

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
            "training": f"results/clean/{study}.parquet",
            "removed": f"results/clean/{study}.removed.parquet",
            "evaluation": f"results/evaluation/{study}.parquet",
            "curves": f"results/evaluation/{study}.curves.parquet",
            "facts": f"results/evaluation/{study}.summary.json",
            "candidates": f"results/learnt/{study}/candidates.parquet",
            "models": {model: f"results/learnt/{study}/{model}.parquet" for model in models},
            "pairs": contests.pairs(study),
            "peers": contests.peers(study),
            "blind": contests.scores(study, "json"),
            "scores": contests.scores(study, "csv"),
            "answers": f"results/lookup/{study}.json",
            # Only if the settings have datasheet-only GPUs.
            "described": {gpu: f"results/gpus/{gpu}.json" for gpu in cards},
            "published": f"results/predictions/{study}.published.parquet" if cards else None,
            # Only if they were read: not every machine has Nsight Compute.
            "counters": contests.counters(study),
        }

    def reads(self) -> dict[str, list[str] | str]:
        """Inputs of a stage that writes the report.

        Each once: Snakemake compares every input with every output, and studies share many.
        """
        settings = self._values.settings
        specs = map(self._studies.spec, self.files)
        return {
            "tables": [] if settings.incomplete_report else self._tables(),
            "specs": list(dict.fromkeys(specs)),
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
        """Templates of the pages."""
        return sorted(map(str, Path(project_file("launchwise/report/templates")).iterdir()))

    def _tables(self) -> list[str]:
        tables = [
            path
            for files in self.files.values()
            for name, entry in files.items()
            for path in (entry.values() if isinstance(entry, dict) else [entry])
            if path is not None and name != "folder"
        ]
        return list(dict.fromkeys(tables))

    def sections(self) -> list[str]:
        """Source files of the studies' sections."""
        return [path for each in self.files.values() for path in section_sources(each["folder"])]

    def params(self) -> Plain:
        """Parameters of a stage that writes the report."""
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
            },
            "gpus": list(settings.gpus),
        }
