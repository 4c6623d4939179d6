"""Expressions of a table of answers as C++: the usual choice, and how it is launched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from launchwise.base.literals import cpp_text
from launchwise.exporting.conditions import cpp_expression
from launchwise.exporting.cpp_names import cpp_name
from launchwise.exporting.table import AnswerTable
from launchwise.workloads.launch_shapes import LaunchExpressions

HELPERS = """\
// Rounded down, as the workload's expressions are.
constexpr std::int64_t quotient(std::int64_t above, std::int64_t below) {
    if (below == 0) return 0;
    return above / below - (above % below != 0 && (above < 0) != (below < 0));
}

constexpr std::int64_t remainder(std::int64_t above, std::int64_t below) {
    return above - quotient(above, below) * below;
}

constexpr std::int64_t ceil_div(std::int64_t above, std::int64_t below) {
    return -quotient(-above, below);
}

constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
    return ceil_div(value, multiple) * multiple;
}

constexpr std::int64_t next_power_of_2(std::int64_t value) {
    std::int64_t found = 1;
    while (found < value && found <= INT64_MAX / 2) found *= 2;
    return found;
}

constexpr std::int64_t power(std::int64_t base, std::int64_t exponent) {
    std::int64_t found = 1;
    for (; exponent > 0; --exponent) found *= base;
    return found;
}

constexpr std::int64_t absolute(std::int64_t value) { return value < 0 ? -value : value; }

constexpr std::int64_t least(std::int64_t one, std::int64_t other) {
    return other < one ? other : one;
}

template <class... More>
constexpr std::int64_t least(std::int64_t one, std::int64_t other, More... more) {
    return least(least(one, other), more...);
}

constexpr std::int64_t most(std::int64_t one, std::int64_t other) {
    return one < other ? other : one;
}

template <class... More>
constexpr std::int64_t most(std::int64_t one, std::int64_t other, More... more) {
    return most(most(one, other), more...);
}
"""
"""What expressions call."""


def most_kernels(table: AnswerTable) -> int:
    """Largest number of kernels that a configuration launches, at least 1."""
    return max([1, *(len(kernels) for kernels in table.formulas.launches.values())])


def formulas_struct(table: AnswerTable) -> str:
    """A struct of a problem and a configuration, with the table's expressions as its methods."""
    members = {name: f"asked.{cpp_name(name)}" for name in table.parameters}
    members |= {name: f"chosen.{cpp_name(name)}" for name in table.tunables}
    members |= {name: f"derived_{cpp_name(name)}()" for name, _ in table.formulas.derived}
    kinds = {"text": "std::string_view"}
    derived = "".join(
        f"    constexpr {kinds.get(table.formulas.kinds[name], 'std::int64_t')} "
        f"derived_{cpp_name(name)}() const {{\n        return {_written(text, members)};\n    }}\n"
        for name, text in table.formulas.derived
    )
    return f"""\
// A problem and a configuration, and what follows from them.
struct formulas {{
    problem asked;
    configuration chosen;
{derived}
    // Writes the usual choice into chosen; false where there is none.
    constexpr bool take_usual() {{
{_usual(table, members)}        return false;
    }}

    constexpr launches run() const {{
{_launches(table, members)}        return {{}};
    }}
}};
"""


def _written(text: str, members: Mapping[str, str]) -> str:
    return cpp_expression(text, members, lambda value: f"std::string_view({cpp_text(value)})")


def _usual(table: AnswerTable, members: Mapping[str, str]) -> str:
    blocks = []
    for rule in table.formulas.usual:
        lines = [
            f"            {members[name]} = {_written(text, members)};\n"
            for name, text in rule.configuration
        ]
        holds = "".join(
            f"\n                && {_written(text, members)}" for text in rule.conditions
        )
        blocks.append(
            f"        if ({_written(rule.when, members)}) {{\n{''.join(lines)}"
            f"            return true{holds};\n        }}\n"
        )
    return "".join(blocks)


def _launches(table: AnswerTable, members: Mapping[str, str]) -> str:
    lines = []
    for variant, kernels in table.formulas.launches.items():
        each = ", ".join(_kernel(one, members) for one in kernels)
        lines.append(
            f"        if ({members['variant']} == {cpp_text(variant)})\n"
            f"            return {{{len(kernels)}, {{{each}}}}};\n"
        )
    return "".join(lines)


def _kernel(one: LaunchExpressions, members: Mapping[str, str]) -> str:
    def sizes(texts: Sequence[str]) -> str:
        return "{" + ", ".join(_written(text, members) for text in texts) + "}"

    shared = "std::nullopt" if one.shared_bytes is None else _written(one.shared_bytes, members)
    return f"{{{cpp_text(one.kernel)}, {sizes(one.block)}, {sizes(one.grid)}, {shared}}}"
