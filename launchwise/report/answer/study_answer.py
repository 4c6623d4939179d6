"""The answer of a study: the lookup, the rule, and how sure what it says is."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from launchwise.report import scores, wording
from launchwise.report.answer import rule
from launchwise.report.blocks import MISSING, Block, Section, Table
from launchwise.report.fields import decimals, field, grouped, percents, table_of
from launchwise.report.front import finder
from launchwise.report.scores import of_mean
from launchwise.report.study import StudyData


def answer(study: StudyData, settings_files: Sequence[str] = ()) -> Section:
    """The lookup of one study, and its rule."""
    blocks: list[Block | None] = [finder.block([study], settings_files), rule.table(study)]
    found = [block for block in blocks if block is not None]
    return Section(f"{study.name}-answer", "Answer", found)


def sure(study: StudyData) -> Section:
    """What answers reach where nothing was measured before."""
    return Section(f"{study.name}-sure", "How sure", [_reached(study)])


REACHED = [
    field("GPU", "gpu"),
    field("answered by", "who"),
    field("mean", "fraction", wording.fixed, "of the best", detail=of_mean),
    field("speed-up", "gain", decimals(2), "× usual"),
    field("problems", "problems", wording.count, "count"),
    field("gains", "covered_here", percents(0), "% in 90 % intervals"),
    *grouped(
        "best simple rule",
        field("name", "rule"),
        field("mean", "rule_fraction", wording.fixed, "of the best"),
        field("speed-up", "rule_gain", decimals(2), "× usual"),
    ),
    *grouped(
        "blind test",
        field("problems", "tested", wording.count, "count", detail=itemgetter("new")),
        field("mean", "blind", wording.fixed, "of the best", detail=itemgetter("blind_interval")),
        field("gains", "covered", percents(0), "% in 90 % intervals"),
        field("times", "times_covered", percents(0), "% in 90 % intervals"),
    ),
]
"""What answers reach; an interval (95 %) stands below its mean."""

UNKNOWN: dict[str, Any] = {
    **{str(one.value): None for one in REACHED if one.column.number},
    **{"fraction_interval": None, "rule": MISSING, "blind_interval": "", "new": ""},
}


def _reached(study: StudyData) -> Table:
    """A row per whole card, and per GPU that only a blind test measured."""
    transfer = scores.first_split_is_transfer(study)
    asked = "trained without the GPU" if transfer else "on held-out sizes"
    gpus = [*study.whole, *scores.only_tested([study])]
    rows = [{**UNKNOWN, **_of_split(study, gpu), **_of_blind_test(study, gpu)} for gpu in gpus]
    fields = [one for one in REACHED if study.blind or one.column.group != "blind test"]
    return table_of(f"What answers reach, {asked}", fields, rows)


def _of_split(study: StudyData, gpu: str) -> dict[str, Any]:
    split = scores.first_split(study)
    name = scores.leader(study, split, gpu)
    if name is None:
        return {"gpu": gpu, "who": MISSING}
    answering = name == scores.answering(study)
    found = {"gpu": gpu, "who": "the answering model" if answering else study.title(name)}
    if (simple := scores.best_rule(study, split, gpu)) is not None:
        found |= {"rule": study.title(simple["model"])}
        found |= {f"rule_{each}": simple[each] for each in ("fraction", "gain")}
    covered = study.facts["splits"][split][gpu]["models"][name].get("covered")
    return {**scores.score_of(study, split, gpu, name), "covered_here": covered, **found}


def _of_blind_test(study: StudyData, gpu: str) -> dict[str, Any]:
    if (got := study.blind.get(gpu)) is None:
        return {}
    new = "no row of this GPU then" if got["new_gpu"] else ""
    tested = {"tested": got["problems"], "blind": got["fraction_geometric_mean"]}
    tested |= {name: got.get(name) for name in ("covered", "times_covered")}
    return {**tested, "new": new, "blind_interval": of_mean(got)}
