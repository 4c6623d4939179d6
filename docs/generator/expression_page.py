"""Page of expressions: operators, functions, names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from docs.generator.markdown import escaped, page_head, schema_link, table, yaml_block
from docs.generator.schemas import FEATURES
from launchwise.base.arithmetic import MOST_BITS
from launchwise.base.arithmetic import MOST_CHARACTERS as MOST_SUM
from launchwise.base.errors import LONGEST_NAME
from launchwise.base.expressions import MOST_CHARACTERS, MOST_LEVELS, evaluate
from launchwise.gpus.machine import Machine
from launchwise.gpus.profile import GPU_FEATURES, GpuProfile
from launchwise.workloads.checks.spec_checks import MOST_NAMES
from launchwise.workloads.cost import LEAST, RESIDENT
from launchwise.workloads.parts import GPU_NAMES

OPERATORS = (
    ("+", "addition", "7 + 2"),
    ("-", "subtraction, or the negative of a number", "7 - 2"),
    ("*", "multiplication", "7 * 2"),
    ("/", "division", "7 / 2"),
    ("//", "division, rounded down", "7 // 2"),
    ("%", "remainder", "7 % 2"),
    ("**", "power", "7 ** 2"),
    ("==  !=  <  <=  >  >=", "comparison of numbers or texts", "1 < 7 <= 8"),
    ("and  or  not", "logic", "7 > 2 and not 7 > 8"),
    ("in  not in", "membership in a list", "'float32' in ('float32', 'float64')"),
    ("… if … else …", "choice", "4 if 'float32' == 'float32' else 8"),
)
"""Operator, what it does, and an example."""

FUNCTION_DESCRIPTIONS = {
    "ceil_div": ("ceil_div(7, 2)", "first number divided by the second, rounded up"),
    "round_up": ("round_up(70, 32)", "first number, rounded up to a multiple of the second"),
    "next_power_of_2": ("next_power_of_2(70)", "smallest power of 2 not below the number"),
    "min": ("min(4, 2, 3)", "smallest of two or more numbers"),
    "max": ("max(4, 2, 3)", "largest of two or more numbers"),
    "abs": ("abs(-3)", "absolute value"),
    "log2": ("log2(8)", "logarithm to base 2"),
}
"""Function to an example and a description."""

READERS = (
    ("`spec.yaml`: `derived`", "problem parameters, tunables, `variant`, derived names above"),
    ("`spec.yaml`: `work`", "problem parameters, derived names that read nothing else"),
    (
        "`spec.yaml`: `constraints`, `block`, `grid`, `shared_bytes`",
        "problem parameters, tunables, `variant`, derived names, [limits of the GPU](#gpu); under "
        "`kernels` also counters of `repeat`",
    ),
    (
        "`spec.yaml`: `repeat`",
        "the same, and counters above; no numbers that `inputs` gives: a bound on them can be a "
        "problem parameter",
    ),
    (
        "`spec.yaml`: `shape`",
        "problem parameters, tunables, `variant`, derived names, numbers that `inputs` gives",
    ),
    ("`spec.yaml`: `value`", "all that `shape` may read, counters of `repeat`"),
    ("`spec.yaml`: `fill`", "problem parameters, derived names"),
    ("`spec.yaml`: `macros`", "problem parameters, build tunables, `variant`, derived names"),
    (
        "`spec.yaml`: `reference`, `given`",
        "names of arguments, problem parameters, tunables, derived names",
    ),
    (
        "`features.yaml`",
        "problem parameters, tunables, `variant`, derived names, [attributes of the GPU](#gpu)",
    ),
    (
        "`cost.yaml`",
        "all of these, derived names of `cost.yaml` above, [constants of the cost model]"
        "(#cost-model)",
    ),
    (
        "`sweep.yaml`, `study.yaml`: `constraints`",
        "problem parameters, tunables, `variant`, derived names",
    ),
)
"""Where expressions stand, and which names they may read."""


def expression_page(example: str) -> str:
    """Page of expressions: operators, functions and the names that they may read."""
    functions = [
        (f"`{name}`", escaped(text), f"`{shown}`", f"`{_shown(shown)}`")
        for name, (shown, text) in FUNCTION_DESCRIPTIONS.items()
    ]
    operators = [
        (" ".join(f"`{each}`" for each in signs.split("  ")), text, f"`{shown}`", _shown(shown))
        for signs, text, shown in OPERATORS
    ]
    described = {name: str(field.description) for name, field in GpuProfile.model_fields.items()}
    limits = {name: described[name.removeprefix("gpu_")] for name in GPU_NAMES}
    attributes = {name: described[key] for name, key in GPU_FEATURES.items()}
    constants = {
        LEAST: "shortest time that any kernel could take for the problem on the GPU, us",
        RESIDENT: "blocks of the kernel that one SM holds at once; in `kernels` only",
        **{f"machine_{name}": text for name, text in Machine.descriptions().items()},
    }
    about = (
        "An expression is a text in `spec.yaml`, `features.yaml`, `cost.yaml`, `sweep.yaml` or "
        "`study.yaml`: arithmetic and conditions in Python's syntax. It is interpreted, never "
        "executed: attributes, subscripts and other calls are errors. A condition holds unless its "
        "value is 0 or false."
    )
    lines = [
        *page_head("Expressions", about),
        "An example is `features.yaml`, which maps names of features to expressions. JSON schema "
        f"for editors: {schema_link(FEATURES)}.",
        "",
        *yaml_block(example),
        "A text inside an expression has its own quotation marks: `\"dtype == 'float32'\"`. "
        'A number alone is quoted too: `"1"`.',
        "",
        *_section("Operators", ("operator", "description", "example", "value"), operators),
        *_section("Functions", ("function", "description", "example", "value"), functions),
        *_section("Names", ("expressions in", "may read"), READERS),
        *_section("Limits", ("what", "most"), _limits()),
        "## GPU",
        "",
        "Limits, for `constraints`, `block`, `grid` and `cost.yaml`:",
        "",
        *_names(limits),
        "Attributes, for `features.yaml` and `cost.yaml`:",
        "",
        *_names(attributes),
        "## Cost model",
        "",
        "Constants for `cost.yaml`, measured or estimated from attributes of the GPU:",
        "",
        *_names(constants),
    ]
    return "\n".join(lines)


def _limits() -> list[tuple[str, str]]:
    return [
        ("characters, with derived names replaced by what they stand for", f"{MOST_CHARACTERS:,}"),
        ("levels of brackets and operators", str(MOST_LEVELS)),
        ("integers: bits; reals must be finite", f"{MOST_BITS:,}"),
        ("characters of two texts that are added", f"{MOST_SUM:,}"),
        ("names of one kind in a spec", str(MOST_NAMES)),
        ("characters of a name", str(LONGEST_NAME)),
    ]


def _section(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"## {title}", "", *table(head, rows), ""]


def _names(described: Mapping[str, str]) -> list[str]:
    rows = [(f"`{name}`", escaped(text)) for name, text in described.items()]
    return [*table(("name", "description"), rows), ""]


def _shown(expression: str) -> str:
    value = evaluate(expression, {})
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"
