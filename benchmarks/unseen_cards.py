"""What to answer on a card that nobody measured, from a few others: kinds, plans and rules.

    python benchmarks/unseen_cards.py benchmarks/results/unseen_cards.json

Every recommender that needs no cost of the kernel is fitted to one problem on a few cards, as an
import of sweeps has it, and asked about a model of card that was left out
(:mod:`harness.unseen_cards`). A *rule* chooses the plan that answers, from what the training cards
show when they are left out themselves. Rules are compared by the mean share of the best, of each
workload and over workloads. ``chosen_by_others`` says what the rule reaches on a workload that is
the best on all the others: no rule is chosen by the workload that it is judged on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from harness.command_line import arguments, provenance
from harness.unseen_cards import MEMBERS, Trial, trials

from launchwise.base.storage import write_json
from launchwise.learning.choosing.plans import (
    BEST_OF,
    CAUTIONS,
    HARM_WEIGHT,
    TOLERATED_LOSS,
    HeldOut,
    Plan,
    agreed,
    centre_and_spread,
    chosen_plan,
    first_rows,
)
from launchwise.learning.merit import HARM_PERCENT
from launchwise.learning.recommenders.committee import FALLBACK
from launchwise.learning.search import best_of, choose

STUDIES = (
    "acoustic_kernels",
    "acoustic_tile",
    "convolution_transfer",
    "granger_time",
    "pnpoly_transfer",
    "pnpoly_turing_transfer",
    "sentiment_inference",
    "tridiagonal_subsystem",
)
"""Studies with rows of two models of card, and of several GPUs for the same problems."""

PROBLEMS = 12
SEED = 2026

FEW = ("knn", "tree", "lightgbm", FALLBACK, "nearest_size")
COMMITTEES = {
    "all kinds": MEMBERS,
    "five kinds": FEW,
    "LightGBM and the best on average": ("lightgbm", FALLBACK),
}

PRIOR_UNITS = 4
"""Cards that the mean cost on other workloads counts as, in the rule of both."""

LARGEST_COST = 3.0
"""Cost above which more makes no difference: an answer that failed has no finite one."""


@dataclass(frozen=True)
class Given:
    """What a rule may know: validation of the training cards, members, costs on other workloads."""

    validated: HeldOut | None
    members: tuple[str, ...]
    elsewhere: Callable[[Plan], float]

    def costs(self, plan: Plan) -> np.ndarray:
        """Cost of a plan on each training card: a missed gain, and three times a loss."""
        held = self.validated
        assert held is not None
        centre, spread = centre_and_spread(held.losses, plan.members)
        times = held.times_ms[first_rows(held.cases, centre + plan.caution * spread, ~held.usual)]
        usual_ms = held.by_case(np.where(held.usual, held.times_ms, np.inf))
        harm = np.maximum(0, np.log(times / usual_ms) - TOLERATED_LOSS)
        return held.by_unit(np.log(times / held.by_case(held.times_ms)) + HARM_WEIGHT * harm)


def every(given: Given) -> list[Plan]:
    """Each kind alone, and all with each caution."""
    alone = [agreed([name]) for name in given.members]
    return [*alone, *(Plan(given.members, caution) for caution in CAUTIONS)]


def one_standard_error(given: Given) -> Plan:
    """The best on average, unless a committee is better by one standard error."""
    if given.validated is None:
        return agreed([FALLBACK])
    alone = {name: given.costs(agreed([name])).mean() for name in given.members}
    leading = tuple(sorted(given.members, key=lambda name: (alone[name], name))[:BEST_OF])
    committees = [(FALLBACK,), given.members, leading]
    plans = [Plan(each, caution) for each in committees for caution in CAUTIONS]
    return plans[choose([given.costs(plan) for plan in plans])]


def smaller_of_two(given: Given) -> Plan:
    """The library's: all members, or the best on average, by the smaller mean cost."""
    if given.validated is None:
        return agreed(given.members)
    return chosen_plan(given.validated, given.members, FALLBACK)


def own_best(given: Given) -> Plan:
    """Whatever was best on the training cards."""
    if given.validated is None:
        return agreed(given.members)
    plans = every(given)
    return plans[best_of([given.costs(plan) for plan in plans])]


def prior_and_own(given: Given) -> Plan:
    """The least mean cost of training cards and of other workloads' held-out cards."""

    def cost(plan: Plan) -> float:
        own = np.zeros(0) if given.validated is None else given.costs(plan)
        total = own.sum() + PRIOR_UNITS * given.elsewhere(plan)
        return float(total / (len(own) + PRIOR_UNITS))

    return min(every(given), key=cost)


def prior_alone(given: Given) -> Plan:
    """The least mean cost on other workloads' held-out cards."""
    return min(every(given), key=given.elsewhere)


def always(plan: Callable[[Sequence[str]], Plan]) -> Callable[[Given], Plan]:
    """A rule that looks at nothing."""
    return lambda given: plan(given.members)


RULES: dict[str, Callable[[Given], Plan]] = {
    "smaller cost of all and the best on average": smaller_of_two,
    "best on average, or one standard error better": one_standard_error,
    "all, without caution": always(lambda members: agreed(members)),
    "all, with caution": always(lambda members: Plan(tuple(members), CAUTIONS[0])),
    "best on training cards": own_best,
    "best on training cards and other workloads": prior_and_own,
    "best on other workloads": prior_alone,
}
ALONE = {name: always(lambda _, name=name: agreed([name])) for name in MEMBERS}  # type: ignore[misc]


def narrowed(held: HeldOut | None, members: Sequence[str]) -> HeldOut | None:
    """Held-out candidates with the predictions of some members."""
    if held is None:
        return None
    return replace(held, losses={name: held.losses[name] for name in members})


def usable(trial: Trial, members: Sequence[str]) -> tuple[str, ...]:
    """Members that predict something everywhere."""
    tables = [trial.asked.losses, *([trial.validated.losses] if trial.validated else [])]
    return tuple(
        name
        for name in members
        if all(name in each and np.isfinite(each[name]).all() for each in tables)
    )


def cost(trial: Trial, plan: Plan) -> float:
    """Mean cost of a plan on the card that was left out."""
    with np.errstate(divide="ignore"):
        missed = np.minimum(-np.log(trial.shares(plan)), LARGEST_COST)
    over = np.minimum(np.log(trial.over_usual(plan)), LARGEST_COST)
    return float((missed + HARM_WEIGHT * np.maximum(0, over - TOLERATED_LOSS)).mean())


def elsewhere(known: Sequence[Trial], workload: str) -> Callable[[Plan], float]:
    """Mean cost of a plan on all workloads but one; of members that a trial lacks, on the rest."""
    others = sorted({each.workload for each in known} - {workload})
    remembered: dict[Plan, float] = {}

    def mean(plan: Plan) -> float:
        if plan not in remembered:
            remembered[plan] = float(np.mean([_of_workload(each, plan) for each in others]))
        return remembered[plan]

    def _of_workload(name: str, plan: Plan) -> float:
        costs = [
            cost(each, replace(plan, members=members))
            for each in known
            if each.workload == name and (members := usable(each, plan.members))
        ]
        return float(np.mean(costs)) if costs else LARGEST_COST

    return mean


def answered(
    known: Sequence[Trial], rule: Callable[[Given], Plan], members: Sequence[str]
) -> list[dict[str, Any]]:
    """Share of the best, and harm, of a rule on every trial."""
    priors = {name: elsewhere(known, name) for name in {each.workload for each in known}}
    found = []
    for each in known:
        own = usable(each, members)
        if not own:
            continue
        given = Given(narrowed(each.validated, own), own, priors[each.workload])
        plan = rule(given)
        asked = replace(each, asked=narrowed(each.asked, own) or each.asked)
        harmed = asked.over_usual(plan) > 1 + HARM_PERCENT / 100
        found.append(
            {
                "workload": each.workload,
                "several": each.gpus > 1,
                "share": float(asked.shares(plan).mean()),
                "harmed": float(harmed.mean()),
            }
        )
    return found


def figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means by workload, then over workloads: of all trials, and of those with several GPUs."""
    parts = {"all": rows, "several_gpus": [row for row in rows if row["several"]]}
    result: dict[str, Any] = {}
    for name, part in parts.items():
        by_workload = {
            workload: [row for row in part if row["workload"] == workload]
            for workload in sorted({row["workload"] for row in part})
        }
        shares = {key: float(np.mean([r["share"] for r in v])) for key, v in by_workload.items()}
        harmed = [float(np.mean([r["harmed"] for r in v])) for v in by_workload.values()]
        result[name] = {
            "share": float(np.mean([*shares.values()])),
            "harmed": float(np.mean(harmed)),
            "workloads": shares,
        }
    return result


def chosen_by_others(rules: Sequence[Mapping[str, Any]], part: str) -> dict[str, Any]:
    """Workload to the rule that is best on all others, and what it reaches on this one."""
    workloads = sorted(rules[0][part]["workloads"])
    if len(workloads) < 2:
        return {}

    def without(one: Mapping[str, Any], workload: str) -> float:
        shares = one[part]["workloads"]
        return float(np.mean([v for key, v in shares.items() if key != workload]))

    best = {workload: max(rules, key=lambda one: without(one, workload)) for workload in workloads}
    reached = {name: one[part]["workloads"][name] for name, one in best.items()}
    return {
        "share": float(np.mean([*reached.values()])),
        "rules": {name: f"{one['rule']}; {one['members']}" for name, one in best.items()},
        "workloads": reached,
    }


def main() -> None:
    """Fit, compare the rules, write the file."""
    given = arguments(__doc__ or "").parse_args()
    studies = ("granger_time", "pnpoly_transfer") if given.smallest else STUDIES
    known: list[Trial] = []
    for study in studies:
        known += trials(study, 1 if given.smallest else PROBLEMS, SEED)
        print(f"{study}: {len(known)} trials", flush=True)
    rules = [
        {"rule": rule, "members": committee, **figures(answered(known, choosing, members))}
        for committee, members in COMMITTEES.items()
        for rule, choosing in RULES.items()
    ]
    kinds = [
        {"kind": name, **figures(answered(known, rule, MEMBERS))} for name, rule in ALONE.items()
    ]
    for one in (*rules, *kinds):
        print(
            f"{one['several_gpus']['share']:.3f} {one['all']['share']:.3f} {one.get('kind', '')}"
            f"{one.get('rule', '')} {one.get('members', '')}"
        )
    result = {
        **{"studies": studies, "seed": SEED, "problems_per_study": PROBLEMS},
        "trials": {
            study: {
                "all": sum(each.study == study for each in known),
                "several_gpus": sum(each.study == study and each.gpus > 1 for each in known),
            }
            for study in studies
        },
        **{"rules": rules, "kinds": kinds},
        "chosen_by_others": {
            part: chosen_by_others(rules, part) for part in ("all", "several_gpus")
        },
    }
    write_json(given.output, {**provenance(), **result})


if __name__ == "__main__":
    main()
