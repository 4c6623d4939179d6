"""Settings that measure more problems, laid over those that measure today's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from launchwise.experiment.discovery import STUDY_FILE
from launchwise.experiment.experiment import Experiment
from launchwise.experiment.method import ProblemBlock
from launchwise.experiment.study import ProblemSplit, Study
from launchwise.learning.splits import Case
from launchwise.tables.rows import matches
from launchwise.workloads.space import CONSTRAINTS, ONLY, Problem, problems
from launchwise.workloads.spec import Spec


def blocks_like(
    nearest: Problem, problem: Problem, blocks: Sequence[ProblemBlock], spec: Spec, study: Study
) -> list[dict[str, Any]]:
    """Blocks that measure a problem as those of another do, candidates of the study alone.

    Parameters
    ----------
    nearest
        A problem of ``blocks``.
    blocks
        What the sweep measures.
    """
    values = {name: [value] for name, value in problem.items()}
    found = []
    for block in blocks:
        if nearest not in problems(spec, [block]):
            continue
        narrowed_to: Any = block.get(ONLY, {})
        only = _both(narrowed_to, study.candidates)
        if only is None:
            continue
        constraints = [*block.get(CONSTRAINTS, ()), *study.constraints]
        narrowed: dict[str, Any] = {ONLY: only} if only else {}
        if constraints:
            narrowed[CONSTRAINTS] = list(dict.fromkeys(constraints))
        found.append({**values, **narrowed})
    return found or [dict(values)]


def _both(
    one: Mapping[str, Sequence[Any]], other: Mapping[str, Sequence[Any]]
) -> dict[str, list[Any]] | None:
    """Values that both allow; None where a tunable has none."""
    found = {name: list(values) for name, values in {**one, **other}.items()}
    for name in one.keys() & other.keys():
        found[name] = [value for value in one[name] if value in other[name]]
    return found if all(found.values()) else None


def trained_on(study: Study, problem: Problem) -> dict[str, dict[str, list[Any]]] | None:
    """Values that training selections need so that a split learns from a problem.

    Returns
    -------
    dict
        Split to parameter to its values, of the first split that may take the problem; empty where
        one asks about it already. None where every split would then test what it learns from.
    """
    for split in study.splits.values():
        if not isinstance(split, ProblemSplit):
            if matches(problem, split.among):
                return {}
        elif matches(problem, split.train) or matches(problem, split.test):
            return {}
    for name, split in study.splits.items():
        if not isinstance(split, ProblemSplit) or not (key := _told_apart_by(split)):
            continue
        if problem[key] not in split.test[key]:
            return {
                name: {
                    parameter: [*values, problem[parameter]]
                    for parameter, values in split.train.items()
                    if problem[parameter] not in values
                }
            }
    return None


def _told_apart_by(split: ProblemSplit) -> str | None:
    """First parameter of which no value is both trained on and tested; None without one."""
    both = [name for name in split.test if name in split.train]
    return next((name for name in both if not {*split.test[name]} & {*split.train[name]}), None)


def settings_of(
    experiment: Experiment,
    study: str,
    chosen: Sequence[Case],
    blocks: Mapping[str, Sequence[dict[str, Any]]],
) -> dict[str, Any]:
    """The overlay.

    Parameters
    ----------
    chosen
        What is measured next.
    blocks
        GPU to the blocks that measure its part of it.
    """
    asked = experiment.studies[study]
    lists = {
        gpu: [*experiment.blocks_of(gpu, asked.workload), *more] for gpu, more in blocks.items()
    }
    content: dict[str, Any] = {
        "gpus": {gpu: {"problems": {asked.workload: each}} for gpu, each in lists.items()}
    }
    changed = asked
    for case in chosen:
        for name, more in (trained_on(changed, case.problem) or {}).items():
            split = changed.splits[name]
            train = {**split.train, **more}  # type: ignore[union-attr]
            splits = {**changed.splits, name: split.model_copy(update={"train": train})}
            changed = changed.model_copy(update={"splits": splits})
    grown = {
        name: {"train": split.train}
        for name, split in changed.splits.items()
        if isinstance(split, ProblemSplit) and split != asked.splits[name]
    }
    # A derived study has no file: its splits follow from what is measured.
    if grown and (experiment.study_folders[study] / STUDY_FILE).is_file():
        content["studies"] = {study: {"splits": grown}}
    return content


def as_text(content: Mapping[str, Any], head: str) -> str:
    """The overlay as YAML, below a comment."""
    # Lists that stand in it twice would become references.
    plain = json.loads(json.dumps(content))
    return f"# {head}\n" + yaml.safe_dump(
        plain, sort_keys=False, default_flow_style=None, width=100
    )
