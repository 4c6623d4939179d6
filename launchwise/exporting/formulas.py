"""What exported code computes by itself: the usual choice, what fits a problem, and launches.

Expressions of a workload leave the project if every language can write them: integers of 64 bits
and texts, whole-number arithmetic, comparisons, and ``ceil_div``, ``round_up``,
``next_power_of_2``, ``min``, ``max``, ``abs``. What divides by ``/``, has a fraction or needs
``log2`` stays."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, Literal

import numpy as np

from launchwise.base.expressions import Formulas, parsed
from launchwise.base.vectors import COMPARISONS, Columns, nested
from launchwise.gpus.profile import GpuProfile
from launchwise.learning.features import Domain
from launchwise.workloads.launch_shapes import LaunchExpressions, launch_expressions
from launchwise.workloads.parts import GPU_NAMES, Value
from launchwise.workloads.space import gpu_facts
from launchwise.workloads.spec import Spec
from launchwise.workloads.templates import (
    cpp_text,
    resolved_kernel,
    template_arguments,
    template_names,
)

Kind = Literal["number", "text", "condition"]

Ratio = tuple[str, str]
"""Two whole-number expressions, of which the first is divided by the second."""

INTEGER_FUNCTIONS = {
    **{"+": 2, "-": 2, "*": 2, "//": 2, "%": 2, "negative": 1},
    **{"ceil_div": 2, "round_up": 2, "next_power_of_2": 1, "abs": 1, "min": 0, "max": 0},
}
"""Operator or function to its number of arguments; 0: two or more."""

EXPORTED_FACTS = (*GPU_NAMES, *("gpu_sms", "gpu_cores", "gpu_shared_per_sm_bytes", "gpu_l2_bytes"))
"""Facts of a GPU that exported code has: those of constraints, and the whole ones of features."""


def exported_facts(profile: GpuProfile) -> dict[str, int]:
    """:data:`EXPORTED_FACTS` of a GPU, by their names."""
    facts = {**profile.features(), **gpu_facts(profile.model_dump())}
    return {name: int(facts[name]) for name in EXPORTED_FACTS}


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

    # Derived names that can be exported, and their texts, each after those that it reads itself.
    derived: tuple[tuple[str, str], ...] = ()
    # Usual choices; none where the study has no rule, or one of them cannot be exported.
    usual: tuple[UsualRule, ...] = ()
    # Variant to its kernels; none where host code decides or they cannot be exported.
    launches: Mapping[str, tuple[LaunchExpressions, ...]] = field(default_factory=dict)
    # Variant to what must hold of a problem, a configuration of it and a GPU's facts: whether an
    # answer to one problem may run another.
    fits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Tunables that follow from the problem, and their values.
    follows: tuple[tuple[str, str], ...] = ()
    # Work of a problem, by which times may be scaled: its least bytes, FLOP and items.
    work: tuple[str, ...] = ()
    # Macros of a build that follow from problem and configuration.
    macros: tuple[tuple[str, str], ...] = ()

    @cached_property
    def _formulas(self) -> Formulas:
        return Formulas(dict(self.derived))

    @classmethod
    def of(cls, domain: Domain) -> ExportedFormulas:
        """Those of a study."""
        spec, own = domain.spec, domain.spec.recommendable.variants
        kinds = name_kinds(spec)
        launches = {
            name: tuple(with_arguments(each, spec, kinds) for each in launch_expressions(one))
            for name, one in spec.variants.items()
        }
        work = (spec.work.bytes, spec.work.flop, spec.work.items)
        return cls(
            derived=tuple((name, text) for name, text in spec.derived.items() if name in kinds),
            usual=_usual_rules(domain, kinds),
            launches={
                name: kernels
                for name, kernels in launches.items()
                if kernels and all(_is_number(text, kinds) for one in kernels for text in one.texts)
            },
            fits={
                # Conditions that read no problem hold wherever the variant ran.
                name: _conditions(domain, name, kinds, lambda names: names & {*spec.problem})
                for name in own
            },
            follows=_exported(domain.following, kinds),
            work=tuple(dict.fromkeys(text for text in work if text and _is_number(text, kinds))),
            macros=_exported(spec.macros, kinds),
        )

    def usual_choice(
        self, problem: Mapping[str, Value], neutral: Mapping[str, Value]
    ) -> dict[str, Value] | None:
        """The usual choice for a problem; None where no rule gives one.

        ``neutral``: value of every tunable where nothing sets it.
        """
        formulas = self._formulas
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

    def moved(
        self,
        configuration: Mapping[str, Value],
        problem: Mapping[str, Value],
        facts: Mapping[str, int],
    ) -> dict[str, Value] | None:
        """An answer to another problem with what follows from this one; None if it may not run.

        ``facts``: those of the GPU (:data:`EXPORTED_FACTS`).
        """
        formulas = self._formulas
        found = dict(configuration)
        for name, text in self.follows:
            found[name] = formulas.value(text, {**problem, **found})
        names = {**problem, **found, **facts}
        fits = self.fits.get(str(found["variant"]), ())
        return found if all(formulas.value(text, names) for text in fits) else None

    def fitting(self, columns: Columns) -> np.ndarray:
        """:meth:`moved` of each row, in place: bool, (rows,), whether it may run."""
        for name, text in self.follows:
            columns.bind(name, np.asarray(columns.value(text)))
        found = np.ones(len(columns.value("variant")), dtype=bool)
        for variant, texts in self.fits.items():
            other = columns.value("variant") != variant
            for text in texts:
                found &= other | columns.value(text).astype(bool)
        return found

    def work_of(self, text: str, names: Mapping[str, Value]) -> float:
        """Work by one of :attr:`work`; 1 of an empty text."""
        return float(self._formulas.value(text, names)) if text else 1.0


def name_kinds(spec: Spec) -> dict[str, Kind]:
    """Names that expressions may read, of which derived ones only if they can be exported."""
    kinds: dict[str, Kind] = {"variant": "text", **dict.fromkeys(EXPORTED_FACTS, "number")}
    for name, one in spec.problem.items():
        kinds[name] = "text" if isinstance((one.values or [0])[0], str) else "number"
    for name, tunable in spec.tunables.items():
        kinds[name] = "text" if isinstance(tunable.neutral, str) else "number"
    for name, text in spec.derived.items():
        if kind := kind_of(text, kinds):
            kinds[name] = kind
    return kinds


def with_arguments(
    one: LaunchExpressions, spec: Spec, kinds: Mapping[str, Kind]
) -> LaunchExpressions:
    """A launch with the arguments of its kernel, if it is a template, as expressions of their C++
    text; as it is where not every language can compute one. ``kinds``: see :func:`kind_of`."""
    every = [_argument(each, spec, kinds) for each in template_arguments(one.kernel)]
    arguments = [text for text in every if text is not None]
    if not every or len(arguments) < len(every):
        return one
    return replace(one, kernel=one.kernel.partition("<")[0], arguments=arguments)


def _argument(text: str, spec: Spec, kinds: Mapping[str, Kind]) -> str | None:
    named: dict[str, Any] = {**spec.problem, **spec.tunables}
    used = {*template_names(f"k<{text}>")}
    if text in named:
        # Names of types are those of C++ there.
        types = [each for each in named[text].values or [] if isinstance(each, str)]
        text = "".join(f"{cpp_text(each)!r} if {text} == {each!r} else " for each in types) + text
    elif text in spec.macros:
        text = spec.macros[text]
    elif used.isdisjoint({*named, *spec.derived, *spec.macros}):
        return repr(resolved_kernel(spec, f"k<{text}>", {}, {})[2:-1])
    elif used & {*spec.macros}:
        return None
    kind = kind_of(text, kinds)
    return f"'true' if {text} else 'false'" if kind == "condition" else kind and text


def exported_features(spec: Spec, kinds: Mapping[str, Kind]) -> list[Ratio]:
    """What the trees compare: the workload's own features as far as every language has them, its
    parameters, tunables and derived names. Trees compare, so that a logarithm is its argument."""
    found: list[Ratio] = [
        ratio for text in spec.features.values() if (ratio := feature_ratio(text, kinds))
    ]
    numbers = [
        name for name, kind in kinds.items() if kind == "number" and name not in EXPORTED_FACTS
    ]
    found += [(name, "1") for name in numbers]
    listed: dict[str, Any] = {name: one.values for name, one in spec.problem.items()}
    listed |= {name: one.values for name, one in spec.tunables.items()}
    for name, values in {**listed, "variant": list(spec.recommendable.variants)}.items():
        if kinds.get(name) == "text":
            found += [(f"1 if {name} == {value!r} else 0", "1") for value in values or ()]
    return list(dict.fromkeys(found))


def feature_ratio(text: str, kinds: Mapping[str, Kind]) -> Ratio | None:
    """What orders rows as a feature does: it as one fraction, a logarithm by its argument. None
    where no language but Python has it. ``kinds``: see :func:`kind_of`."""
    node = parsed(text)
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "log2":
        node = node.args[0]
    over, under = map(ast.unparse, _fraction(node))
    if not _is_number(under, kinds):
        # A bandwidth is no whole number, but the same for all candidates.
        under = "1"
    return (over, under) if _is_number(over, kinds) else None


_ONE = ast.Constant(1)


def _fraction(node: ast.expr) -> tuple[ast.expr, ast.expr]:
    """An expression as one fraction, its divisions by ``/`` moved outwards: what is divided, and by
    what, above 0."""
    match node:
        case ast.BinOp(left, ast.Div() | ast.Mult() as sign, right):
            (over, under), (factor, divisor) = _fraction(left), _fraction(right)
            if isinstance(sign, ast.Div):
                factor, divisor = divisor, factor
            return _product(over, factor), _product(under, divisor)
        case ast.BinOp(left, ast.Add() | ast.Sub() as sign, right):
            (first, second), under = _same_divisor([left, right])
            return ast.BinOp(first, sign, second), under
        case ast.Call(ast.Name("min" | "max"), parts):
            overs, under = _same_divisor(parts)
            return ast.Call(node.func, overs, []), under
        case ast.IfExp(test, body, orelse):
            (over, under), (other, divisor) = _fraction(body), _fraction(orelse)
            if under is divisor is _ONE:
                return node, _ONE
            return ast.IfExp(test, over, other), ast.IfExp(test, under, divisor)
    return node, _ONE


def _same_divisor(nodes: Sequence[ast.expr]) -> tuple[list[ast.expr], ast.expr]:
    """What is divided of each, if all are divided by the same, and by what."""
    fractions = [_fraction(one) for one in nodes]
    unders = [under for _, under in fractions]
    overs = [
        reduce(_product, [*unders[:place], *unders[place + 1 :]], over)
        for place, (over, _) in enumerate(fractions)
    ]
    return overs, reduce(_product, unders)


def _product(left: ast.expr, right: ast.expr) -> ast.expr:
    if left is _ONE or right is _ONE:
        return right if left is _ONE else left
    return ast.BinOp(left, ast.Mult(), right)


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
    if isinstance(node, list) and node[0] in ("and", "or", "if"):
        return all(_has_truth(one, kinds) for one in node[1:])
    return _kind(node, kinds) != "text"


def _is_number(text: str, kinds: Mapping[str, Kind]) -> bool:
    return kind_of(text, kinds) == "number"


def _exported(named: Mapping[str, str], kinds: Mapping[str, Kind]) -> tuple[tuple[str, str], ...]:
    return tuple((name, text) for name, text in named.items() if kind_of(text, kinds))


def _conditions(
    domain: Domain,
    variant: str,
    kinds: Mapping[str, Kind],
    reads: Callable[[set[str]], Any],
    more: Iterable[str] = (),
) -> tuple[str, ...]:
    """Conditions of a variant that can be exported, and that read what ``reads`` asks for."""
    spec = domain.spec
    every = (*spec.constraints, *spec.variants[variant].constraints, *domain.constraints, *more)
    return tuple(
        text
        for text in dict.fromkeys(every)
        if is_condition(text, kinds) and reads({*spec.formulas.raw_names(text)})
    )


def _usual_rules(domain: Domain, kinds: Mapping[str, Kind]) -> tuple[UsualRule, ...]:
    spec, found = domain.spec, []
    for rule in domain.usual_rules:
        variant = str(rule.configuration["variant"])
        # In the order in which the rule gives them: later ones may read those before.
        chosen = {"variant": repr(variant)} | {
            name: str(value) if kinds[name] == "number" else repr(value)
            for name, value in rule.configuration.items()
        }
        among: dict[str, Any] = {**domain.candidates, "variant": list(spec.recommendable.variants)}
        more = [f"{name} in {list(each)!r}" for name, each in among.items()]
        # Facts of a GPU are unknown where the usual choice is taken.
        conditions = _conditions(domain, variant, kinds, {*GPU_NAMES}.isdisjoint, more)
        found.append(UsualRule(rule.when, tuple(chosen.items()), conditions))
    exported = all(
        is_condition(one.when, kinds) and all(kind_of(text, kinds) for _, text in one.configuration)
        for one in found
    )
    return tuple(found) if exported else ()
