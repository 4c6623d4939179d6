"""What exported code computes by itself: the usual choice, and how a configuration is launched.

Expressions of a workload leave the project if every language can write them: integers of 64 bits
and texts, whole-number arithmetic, comparisons, and ``ceil_div``, ``round_up``,
``next_power_of_2``, ``min``, ``max``, ``abs``. What divides by ``/``, has a fraction or needs
``log2`` stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from launchwise.base.expressions import Formulas, names_in
from launchwise.base.nested import COMPARISONS, nested
from launchwise.learning.features import Domain
from launchwise.workloads.launch_shapes import LaunchExpressions, launch_expressions
from launchwise.workloads.parts import GPU_NAMES, Value, Variant
from launchwise.workloads.spec import Spec

Kind = Literal["number", "text", "condition"]

INTEGER_FUNCTIONS = {
    **{"+": 2, "-": 2, "*": 2, "//": 2, "%": 2, "negative": 1},
    **{"ceil_div": 2, "round_up": 2, "next_power_of_2": 1, "abs": 1, "min": 0, "max": 0},
}
"""Operator or function to its number of arguments; 0: two or more."""

LARGEST_POWER = 16
LARGEST_INTEGER = 2**63 - 1


@dataclass(frozen=True)
class UsualRule:
    """A usual choice; texts are expressions."""

    when: str  # over the problem: which problems it is for. The first rule that holds counts
    # The variant and tunables to their values, which may read those before; any other tunable is
    # neutral.
    configuration: tuple[tuple[str, str], ...]
    # Over problem and configuration: what must hold of the configuration that the rule gives.
    # Where one does not, the default is taken.
    conditions: tuple[str, ...]


@dataclass(frozen=True)
class ExportedFormulas:
    """Expressions that exported code has."""

    # Derived names that the others read, and their texts, each after those that it reads itself.
    derived: tuple[tuple[str, str], ...] = ()
    kinds: Mapping[str, Kind] = field(default_factory=dict)  # derived name to the kind of its value
    # Usual choices; none where the study has no rule, or one of them cannot be exported.
    usual: tuple[UsualRule, ...] = ()
    # Variant to its kernels; none where host code computes them or they cannot be exported.
    launches: Mapping[str, tuple[LaunchExpressions, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, domain: Domain) -> ExportedFormulas:
        """Those of a study."""
        spec = domain.spec
        kinds = name_kinds(spec)
        usual = _usual_rules(domain, kinds)
        launches = {
            name: kernels
            for name, variant in spec.variants.items()
            if (kernels := _launches(variant, kinds))
        }
        texts = [one.when for one in usual]
        texts += [text for one in usual for text in one.conditions]
        texts += [text for one in usual for _, text in one.configuration]
        texts += [text for kernels in launches.values() for one in kernels for text in one.texts]
        derived = _needed(texts, spec.derived)
        return cls(tuple(derived.items()), {name: kinds[name] for name in derived}, usual, launches)

    def usual_choice(
        self, problem: Mapping[str, Value], neutral: Mapping[str, Value]
    ) -> dict[str, Value] | None:
        """The usual choice for a problem; None where no rule gives one.

        ``neutral``: value of every tunable where nothing sets it.
        """
        formulas = Formulas(dict(self.derived))
        for rule in self.usual:
            chosen: dict[str, Value] = dict(neutral)
            if not formulas.value(rule.when, {**problem, **chosen}):
                continue
            for name, text in rule.configuration:
                chosen[name] = formulas.value(text, {**problem, **chosen})
            names = {**problem, **chosen}
            allowed = all(formulas.value(text, names) for text in rule.conditions)
            return chosen if allowed else None
        return None


def name_kinds(spec: Spec) -> dict[str, Kind]:
    """Names that expressions may read, of which derived ones only if they can be exported."""
    kinds: dict[str, Kind] = {"variant": "text"}
    for name, one in spec.problem.items():
        kinds[name] = "text" if isinstance((one.values or [0])[0], str) else "number"
    for name, tunable in spec.tunables.items():
        kinds[name] = "text" if isinstance(tunable.neutral, str) else "number"
    for name, text in spec.derived.items():
        if kind := kind_of(text, kinds):
            kinds[name] = kind
    return kinds


def kind_of(text: str, kinds: Mapping[str, Kind]) -> Kind | None:
    """Kind of an expression's value; None where it cannot be exported.

    ``kinds``: names that it may read, to the kinds of their values.
    """
    try:
        return _kind(nested(text), kinds)
    except ValueError:
        return None


def is_condition(text: str, kinds: Mapping[str, Kind]) -> bool:
    """Whether an expression can be exported where only its truth counts."""
    try:
        return _has_truth(nested(text), kinds)
    except ValueError:
        return False


def _kind(node: Any, kinds: Mapping[str, Kind]) -> Kind:
    """Kind of a part; a ``ValueError`` where it needs what not every language has."""

    def of(*parts: Any) -> set[Kind]:
        return {_kind(one, kinds) for one in parts}

    match node:
        case ["name", name] if name in kinds:
            return kinds[name]
        case str():
            return "text"
        case int() if abs(node) <= LARGEST_INTEGER:
            return "number"
        case ["if", test, *both] if _has_truth(test, kinds):
            found = of(*both)
            if len(found) == 1 or "text" not in found:
                return found.pop() if len(found) == 1 else "number"
        case ["and" | "or", *parts] if of(*parts) == {"condition"}:
            # Elsewhere than as a condition its value is that of an operand, which C++ lacks.
            return "condition"
        case ["not", operand] if _has_truth(operand, kinds):
            return "condition"
        case [sign, left, right] if sign in COMPARISONS:
            if ("text" in of(left)) == ("text" in of(right)):
                return "condition"
        case ["**", base, int(power)] if 0 <= power <= LARGEST_POWER and "text" not in of(base):
            return "number"
        case [function, *parts] if function in INTEGER_FUNCTIONS:
            count = INTEGER_FUNCTIONS[function]
            allowed = len(parts) == count or (count == 0 and len(parts) > 1)
            if allowed and "text" not in of(*parts):
                return "number"
    raise ValueError(f"{node} is not exported")


def _has_truth(node: Any, kinds: Mapping[str, Kind]) -> bool:
    if isinstance(node, list) and node[0] in ("and", "or"):
        return all(_has_truth(one, kinds) for one in node[1:])
    return _kind(node, kinds) != "text"


def _usual_rules(domain: Domain, kinds: Mapping[str, Kind]) -> tuple[UsualRule, ...]:
    spec, found = domain.spec, []
    for rule in domain.usual_rules:
        variant = str(rule.configuration["variant"])
        # In the order in which the rule gives them: later ones may read those before.
        chosen = {"variant": repr(variant)} | {
            name: str(value) if kinds[name] == "number" else repr(value)
            for name, value in rule.configuration.items()
        }
        conditions = (
            *spec.constraints,
            *spec.variants[variant].constraints,
            *domain.constraints,
            *(f"{name} in {list(each)!r}" for name, each in domain.candidates.items()),
            f"variant in {list(spec.recommendable.variants)!r}",
        )
        found.append(
            UsualRule(
                rule.when,
                tuple(chosen.items()),
                # Facts of a GPU are unknown where the usual choice is taken.
                tuple(
                    text
                    for text in conditions
                    if is_condition(text, kinds)
                    and not {*spec.formulas.raw_names(text)} & {*GPU_NAMES}
                ),
            )
        )
    exported = all(
        is_condition(one.when, kinds) and all(kind_of(text, kinds) for _, text in one.configuration)
        for one in found
    )
    return tuple(found) if exported else ()


def _launches(variant: Variant, kinds: Mapping[str, Kind]) -> tuple[LaunchExpressions, ...]:
    found = launch_expressions(variant)
    texts = [text for one in found for text in one.texts]
    return tuple(found) if all(kind_of(text, kinds) == "number" for text in texts) else ()


def _needed(texts: Iterable[str], derived: Mapping[str, str]) -> dict[str, str]:
    wanted = {name for text in texts for name in names_in(text)}
    for name in reversed(list(derived)):
        if name in wanted:
            wanted |= names_in(derived[name])
    return {name: text for name, text in derived.items() if name in wanted}
