"""An experiment: settings and the folders of workloads, read and checked together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NoReturn

from launchwise.base.errors import UserError, check_known, raising
from launchwise.base.names import SPEC_FILE, beside
from launchwise.base.places import here_or_shipped
from launchwise.base.storage import read_json
from launchwise.base.typed import Model, merged, read_yaml, validated
from launchwise.experiment.discovery import (
    STUDIES,
    STUDY_FILE,
    SWEEP_FILE,
    derived_study,
    derived_sweep,
    find_studies,
    find_workloads,
    problems_in,
)
from launchwise.experiment.method import ProblemBlock, Sweep
from launchwise.experiment.settings import Beneath, Settings, Sources
from launchwise.experiment.study import ModelEntry, Study, StudyFile
from launchwise.experiment.study_checks import check_blocks, drawn_blocks, spread
from launchwise.workloads.checks import corners
from launchwise.workloads.space import Problem, problems
from launchwise.workloads.spec import Spec, load_spec

DOUBTS = "doubts"  # Key of a sweep's provenance: why its times cannot be what they are said to be

RECORDED = "data/recorded"
"""Folder with one folder per recorded GPU, unless its entry names another."""


class Experiment:
    """Settings with their workloads and studies.

    ``settings``: typed settings.
    ``sources``: where the settings came from; for messages.
    ``root``: folder that relative paths start from.
    ``only``: a study: other studies and all sweeps are not read.
    ``folders``: folder of every workload that was found.
    ``studies``: every study that runs, in the order of workload and name.
    ``study_folders``: folder of every study that was found.
    ``sweeps``: what is measured of the workloads that have a ``sweep.yaml``, or settings for one,
        or a spec that describes them whole.
    ``alone``: workloads that their spec describes whole, measured without a study: too few sizes
        for one.
    ``specs``: specs of the workloads that studies, sweeps or GPUs speak of.
    Raises UserError at the first name or value that does not fit.
    """

    def __init__(
        self, settings: Settings, sources: Sources, root: Path, only: str | None = None
    ) -> None:
        self.settings = settings
        self.root = root
        self.sources = sources
        self._only = only
        places = {folder: here_or_shipped(folder, root) for folder in settings.workloads}
        for folder, place in places.items():
            if not place.is_dir():
                self.fail("workloads", f"no folder {folder!r}")
        self.folders = find_workloads(places.values())
        self.study_folders = find_studies(self.folders)
        self.specs: dict[str, Spec] = {}
        self._listed: dict[str, list[Problem]] = {}
        self._with_drawn: dict[str, Study] = {}
        self._flags: dict[tuple[str, str], list[str]] = {}
        self._recorded_in = {
            name: str(here_or_shipped(gpu.path or f"{RECORDED}/{name}"))
            for name, gpu in settings.gpus.items()
        }
        self._have_rows: dict[tuple[str, str], bool] = {}
        self.studies = self._read_studies()
        lacking = [name for name in self.studies if self._lacks_rows(name)]
        is_some = len(lacking) < len(self.studies)
        # They are left out; where no other is, one that could be measured says what it lacks.
        named = {each: self.spec_of(self.studies[each].workload) for each in lacking}
        self.without_rows = [each for each in lacking if is_some or not named[each].has_kernel]
        for name in self.without_rows:
            del self.studies[name]
        self.sweeps = self._read_sweeps()
        self.alone: list[str] = []
        self._derive()

    # Messages

    def error(self, key: str, message: str) -> UserError:
        """Error for ``key`` that names the file that holds it."""
        return self.sources.error(key, message, self._beneath(key))

    def blaming(self, prefix: str) -> AbstractContextManager[None]:
        """Raise misfits with the file that holds their keys, which begin with ``prefix``."""
        return raising(lambda key, message: self.error(f"{prefix}{key}", message))

    def fail(self, key: str, message: str) -> NoReturn:
        raise self.error(key, message)

    def check_known(
        self, key: str, what: str, names: Iterable[str], allowed: Collection[str]
    ) -> None:
        """Check that settings name what there is."""
        with self.blaming(""):
            check_known(key, what, names, allowed)

    def _beneath(self, key: str) -> Beneath | None:
        part, _, name = key.partition(".")
        name = name.partition(".")[0]
        if part == "studies" and name in self.study_folders:
            return Beneath(self.study_folders[name] / STUDY_FILE, f"studies.{name}")
        if part == "sweeps" and name in self.folders:
            path = self.folders[name] / SWEEP_FILE
            return Beneath(path, f"sweeps.{name}") if path.is_file() else None
        return None

    # Reading

    def _changed(
        self, model: type[Model], path: Path, key: str, changes: Mapping[str, Any] | None
    ) -> Model:
        """A file of a workload's folder with what the settings change below ``key``."""
        below = read_yaml(path) if path.is_file() else {}
        if below is not None and not isinstance(below, Mapping):
            raise UserError(path, "", "must map keys to values")
        try:
            return validated(model, merged(below or {}, changes or {}), path)
        except UserError as error:
            raise self.error(f"{key}.{error.key}", error.message) from error

    def _read_studies(self) -> dict[str, Study]:
        whole = self._described_whole()
        for name in [each for each in self.settings.studies if each not in whole]:
            self.check_known(f"studies.{name}", "study", [name], self.study_folders)
        found: dict[str, Study] = {}
        for name, folder in self.study_folders.items():
            left_out = self.settings.studies.get(name, {}) is None
            if left_out or self._only not in (None, name):
                continue
            changes, path = self.settings.studies.get(name), beside(folder, STUDY_FILE)
            own = self._changed(StudyFile, path, f"studies.{name}", changes)
            workload = folder.parents[1].name
            if self.settings.further_models:
                further = [each for each in own.further_models if each not in own.models]
                own = own.model_copy(update={"models": [*own.models, *further]})
            found[name] = Study(workload=workload, **dict(own))
            self.spec_of(workload)
        return found

    def _lacks_rows(self, name: str) -> bool:
        """Whether no GPU of the settings has rows for a study; one that settings or its own file
        name GPUs for is asked for, and an error."""
        named = {*self.settings.studies, *([self._only] if self._only else [])}
        named |= {each for gpu in self.settings.gpus.values() for each in gpu.studies or []}
        is_asked = name in named or self.studies[name].gpus is not None
        return not (is_asked or self.gpus_of(name) or self.kept_out(name))

    def _read_sweeps(self) -> dict[str, Sweep]:
        for workload in self.settings.sweeps:
            self.check_known(f"sweeps.{workload}", "workload", [workload], self.folders)
        found: dict[str, Sweep] = {}
        for workload, folder in self.folders.items() if self._only is None else ():
            path, changes = beside(folder, SWEEP_FILE), self.settings.sweeps.get(workload)
            if path.is_file() or changes:
                found[workload] = self._changed(Sweep, path, f"sweeps.{workload}", changes)
        return found

    def _described_whole(self) -> list[str]:
        if self._only is not None:
            return [*self.folders]  # Settings may name a study after any workload.
        with_studies = {folder.parents[1].name for folder in self.study_folders.values()}
        found = []
        for workload, folder in self.folders.items():
            if workload not in with_studies:
                raw = read_yaml(folder / SPEC_FILE)
                if isinstance(raw, Mapping) and raw.get("arguments"):
                    found.append(workload)
        return found

    def _derive(self) -> None:
        """Sweep and study of workloads that their spec describes whole and some GPU measures."""
        if self._only is not None:
            return
        for name, gpu in self.settings.gpus.items():
            key = f"gpus.{name}.workloads"
            self.check_known(key, "workload", gpu.workloads, self.folders)
            for workload in gpu.workloads:
                self.insist_on_kernel(workload, key)
                self._derive_sweep(workload)
        for workload in self._described_whole():
            if self.settings.studies.get(workload, "") is None:
                continue
            if not any(self._may_ask(gpu, workload) for gpu in self.settings.gpus):
                continue
            spec = self.spec_of(workload)
            self._derive_sweep(workload)
            study = derived_study(spec, self._asked(workload))
            if study is None:
                self.alone.append(workload)
                continue
            if changes := self.settings.studies.get(workload):
                given = merged(study.model_dump(exclude={"workload"}, exclude_unset=True), changes)
                own = validated(StudyFile, given, SPEC_FILE)
                study = Study(workload=workload, **dict(own))
            self.studies[workload] = study
            # Where its files would be, if it had any.
            self.study_folders[workload] = self.folders[workload] / STUDIES / workload

    def _asked(self, workload: str) -> list[Problem]:
        """Problems that GPUs which the derived study of a workload may ask measure, checked."""
        asked: dict[str, list[ProblemBlock]] = {}
        for name, gpu in self.settings.gpus.items():
            if self._may_ask(name, workload):
                own = f"gpus.{name}.problems.{workload}"
                key = own if workload in gpu.problems else f"sweeps.{workload}.problems"
                asked[key] = self.blocks_of(name, workload)
        for key, blocks in asked.items():
            self.check_blocks(workload, blocks, key)
        return [problem for blocks in asked.values() for problem in problems_in(blocks)]

    def _may_ask(self, gpu: str, workload: str) -> bool:
        """Whether a GPU has rows for the derived study of a workload, which has its name."""
        named = self.settings.gpus[gpu].studies
        return (named is None or workload in named) and self.has_rows(gpu, workload)

    def _derive_sweep(self, workload: str) -> None:
        spec = self.spec_of(workload)
        if workload in self.sweeps or not spec.arguments:
            return
        try:
            self.sweeps[workload] = derived_sweep(spec)
        except ValueError as error:
            raise UserError(self.folders[workload] / SPEC_FILE, "", str(error)) from error

    def insist_on_kernel(self, workload: str, key: str) -> None:
        """Check that a workload that ``key`` wants measured has a kernel."""
        if not self.spec_of(workload).has_kernel:
            message = f"workload {workload} has no kernel: others measured it, nothing can here"
            self.fail(key, message)

    def check_blocks(self, workload: str, blocks: list[ProblemBlock], key: str) -> None:
        """Check that blocks of problems, given by ``key``, are of a workload and fit its sweep."""
        sweep = self.sweeps.get(workload)
        strategy = sweep.strategy.kind if sweep else "exhaustive"
        with self.blaming(key):
            check_blocks(self.spec_of(workload), blocks, strategy)

    def spec_of(self, workload: str) -> Spec:
        """Spec of a workload, read when it is first asked for."""
        if workload not in self.specs:
            folder = self.folders[workload]
            spec = self.specs[workload] = load_spec(folder)
            # Nothing else has ever evaluated what a single file says.
            if spec.arguments and (said := corners.complaint(spec, drawn=False)):
                raise UserError(folder / SPEC_FILE, *said)
        return self.specs[workload]

    # Asking

    def is_learnt_from(self, gpu: str) -> bool:
        """Whether studies may have rows of a GPU: neither datasheet-only nor held out."""
        entry = self.settings.gpus[gpu]
        return entry.source != "described" and not entry.held_out

    def recorded_in(self, gpu: str) -> str:
        """Folder of a recorded or extended GPU, relative to where the pipeline runs."""
        return self._recorded_in[gpu]

    def has_rows(self, gpu: str, workload: str) -> bool:
        """Whether studies have rows of a GPU, measured live or recorded, that is not held out."""
        # Rules ask thousands of times.
        if (gpu, workload) not in self._have_rows:
            entry = self.settings.gpus[gpu]
            self._have_rows[gpu, workload] = not entry.held_out and (
                Path(self.recorded_in(gpu), f"{workload}.parquet").is_file()
                if entry.source == "recorded"
                else entry.source == "live" and self.spec_of(workload).has_kernel
            )
        return self._have_rows[gpu, workload]

    def kept_out(self, study: str) -> dict[str, list[str]]:
        """GPU to why the import flagged its rows of the study's workload; trusted ones left out.
        Raises UserError when the provenance of a sweep cannot be read."""
        workload = self.studies[study].workload
        flagged = {gpu: self.doubts(gpu, workload) for gpu in self.settings.gpus}
        return {gpu: doubts for gpu, doubts in flagged.items() if doubts}

    def doubts(self, gpu: str, workload: str) -> list[str]:
        """Why rows of a recorded GPU are kept out of studies; none where they are not."""
        entry = self.settings.gpus[gpu]
        if entry.source != "recorded" or entry.trusted:
            return []
        if (gpu, workload) not in self._flags:
            path = Path(self.recorded_in(gpu), f"{workload}.provenance.json")
            known = read_json(path) if path.is_file() else {}
            if not isinstance(known, Mapping) or not isinstance(known.get(DOUBTS, []), list):
                raise UserError(path, DOUBTS, "must be a list")
            self._flags[gpu, workload] = list(known.get(DOUBTS, []))
        return self._flags[gpu, workload]

    def gpus_of(self, study: str) -> list[str]:
        """GPUs of a study, in the order of the settings. Those that the study names; else every GPU
        that has rows of its workload and, where its entry names studies, names this one."""
        return [gpu for gpu in self.settings.gpus if self._takes_part(gpu, study)]

    def _takes_part(self, gpu: str, study: str) -> bool:
        asked, entry = self.studies[study], self.settings.gpus[gpu]
        if asked.gpus is not None:
            return gpu in asked.gpus
        named = entry.studies is None or study in entry.studies
        known = named and self.has_rows(gpu, asked.workload)
        return known and not self.doubts(gpu, asked.workload)

    def tested_blindly(self, study: str) -> list[str]:
        """GPUs that a study's blind test may ask about: its own, then others. Others are those that
        are held out, and recorded ones whose blind test of this study is recorded: it may be from
        before they had a sweep."""
        own = self.gpus_of(study)
        others = [gpu for gpu in self.settings.gpus if gpu not in own]
        return [*own, *(gpu for gpu in others if self._tested_alone(gpu, study))]

    def _tested_alone(self, gpu: str, study: str) -> bool:
        entry = self.settings.gpus[gpu]
        if entry.held_out:
            return entry.studies is None or study in entry.studies
        recorded = Path(self.recorded_in(gpu), "blind", f"{study}.pairs.parquet")
        return entry.source == "recorded" and recorded.is_file()

    def workloads_of(self, gpu: str) -> list[str]:
        """Workloads that a GPU measures: those of its studies, in their order, then all others."""
        return list(dict.fromkeys([*self._studied_on(gpu), *self._without_study(gpu)]))

    def alone_on(self, gpu: str) -> list[str]:
        """Workloads that a GPU measures and none of its studies asks about."""
        asked = self._studied_on(gpu)
        return [workload for workload in self._without_study(gpu) if workload not in asked]

    def _studied_on(self, gpu: str) -> list[str]:
        # Asked of one GPU: a plan for hundreds must not go through all of them for each.
        return [each.workload for name, each in self.studies.items() if self._takes_part(gpu, name)]

    def _without_study(self, gpu: str) -> list[str]:
        alone = [workload for workload in self.alone if self._may_ask(gpu, workload)]
        return list(dict.fromkeys([*alone, *self.settings.gpus[gpu].workloads]))

    def holders_of_splits(self, study: str) -> dict[str, list[str]]:
        """Split of a study to its :meth:`holder`."""
        splits = self.studies[study].splits
        return {split: self.holder(f"studies.{study}.splits.{split}") for split in splits}

    def holder(self, key: str) -> list[str]:
        """File that holds a key, and its key there. A path from the folder of the run, where the
        file lies inside: it becomes a parameter of rules, which must not change with a project that
        is moved."""
        error, here = self.error(key, ""), Path.cwd()
        path = Path(error.where)
        return [str(path.relative_to(here) if path.is_relative_to(here) else path), error.key]

    def model_of(self, study: str, model: str) -> ModelEntry:
        """Entry of ``model``: the study's own, else that of the settings, else a plain kind."""
        entries = {**self.settings.models, **self.studies[study].own_models}
        return entries.get(model) or ModelEntry(kind=model, title=model.replace("_", " "))

    def problems_of(self, gpu: str, workload: str) -> list[Problem]:
        """Problems that a live sweep measures, in order."""
        blocks = self.blocks_of(gpu, workload)
        # Hundreds of GPUs may share one list of blocks.
        key = f"{workload} {blocks}"
        if key not in self._listed:
            self._listed[key] = problems(self.specs[workload], blocks)
        return list(self._listed[key])

    def with_drawn(self, study: str) -> Study:
        """A study with the problems that it draws: a design takes up to a second, and who asks for
        an answer needs none. Raises UserError where its ranges hold too few."""
        if study not in self._with_drawn:
            asked = self.studies[study]
            with self.blaming(f"studies.{study}."):
                drawn = spread(asked, self.spec_of(asked.workload))
            self._with_drawn[study] = asked.model_copy(update={"spread": drawn})
        return self._with_drawn[study]

    def blocks_of(self, gpu: str, workload: str) -> list[ProblemBlock]:
        """Blocks of problems that a live sweep measures, as the settings have them; without any for
        this GPU, those of the workload and what its studies draw."""
        own = self.settings.gpus[gpu].problems.get(workload)
        if own is not None:
            return own
        asking = [
            self.with_drawn(name)
            for name, each in self.studies.items()
            if each.workload == workload and self._takes_part(gpu, name)
        ]
        return [*self.sweeps[workload].problems, *drawn_blocks(asking, self.specs[workload])]
