"""A table of answers as a header of C++17, without anything beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from launchwise.base.literals import cpp_comment, cpp_text
from launchwise.exporting.conditions import cpp_expression
from launchwise.exporting.cpp_formulas import HELPERS, formulas_struct, most_kernels
from launchwise.exporting.cpp_names import cpp_name
from launchwise.exporting.table import AnswerTable, Entry
from launchwise.workloads.parts import Value


def cpp_header(table: AnswerTable) -> str:
    """The header: ``launchwise::<study>::recommend(device, problem)``."""
    space = cpp_name(table.study)
    commits = cpp_comment(", ".join(table.commits)) or "unknown"
    return f"""\
// {cpp_comment(table.title)}: what to launch, by device and problem.
// Written by launchwise export {cpp_comment(table.version)}; measured at commit {commits}.
{_measured(table)}//
//   auto answer = launchwise::{space}::recommend(device_name, {{{_example(table)}}});
//
// Empty for a problem that no configuration may run: see can_run.
// A size that is not listed has the configuration of the entry nearest in size, and no time: its
// basis is "nearest", answered_for the problem of that entry. An unknown device has the choice of
// an experienced engineer ("usual"), else the default. launches_of says how it is launched.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace launchwise::{space} {{

{_types(table)}
{_detail(table)}
{_functions(table)}
}}  // namespace launchwise::{space}
"""


def _types(table: AnswerTable) -> str:
    """Structures that a caller sees."""
    return f"""\
struct problem {{
{_members(table, table.parameters)}}};

struct configuration {{
{_members(table, table.tunables)}}};

struct answer {{
    configuration launch;
    double time_ms;           // measured or expected; 0 where unknown
    double gain;              // usual time / this time; 0 where unknown
    std::string_view basis;   // measured, within, beyond, new_gpu, nearest, usual or default
    problem answered_for;     // whose configuration this is
}};

struct kernel_launch {{
    std::string_view kernel;                   // empty: the main one of host code, others may run
    std::int64_t block[3];                     // threads per block in x, y, z
    std::int64_t grid[3];                      // blocks per grid in x, y, z
    std::optional<std::int64_t> shared_bytes;  // dynamic, per block; empty where host code decides
}};

struct launches {{
    std::size_t count;  // 0 where host code decides
    kernel_launch kernels[{most_kernels(table)}];
}};
"""


def _detail(table: AnswerTable) -> str:
    """The answers, and how near a problem is to another."""
    return f"""\
namespace detail {{
struct entry {{
    int device;
    problem asked;
    answer found;
}};

struct name_of_device {{
    std::string_view name;
    int device;
}};

inline constexpr name_of_device devices[] = {{
{_lines(_names(table))}}};

inline constexpr entry entries[] = {{
{_lines(_entry(entry) for entry in table.entries)}}};

constexpr double ratio(std::int64_t one, std::int64_t other) {{
    const double high = static_cast<double>(one > other ? one : other) + 1;
    const double low = static_cast<double>(one > other ? other : one) + 1;
    return high / low;
}}

constexpr double distance(const problem &one, const problem &other) {{
    double found = 1;
{_distances(table)}    return found;
}}

{HELPERS}
{formulas_struct(table)}}}  // namespace detail
"""


def _functions(table: AnswerTable) -> str:
    """Functions that a caller calls."""
    return f"""\
// Whether some configuration may run a problem, by its ranges and constraints.
constexpr bool can_run([[maybe_unused]] const problem &asked) {{
    return true{_conditions(table)};
}}

inline constexpr answer default_answer{{{_values(table.default)}, 0, 0, "default", {{}}}};

// Blocks, grids and dynamic shared memory of the kernels that a configuration launches.
constexpr launches launches_of(const problem &asked, const configuration &chosen) {{
    const launches found = detail::formulas{{asked, chosen}}.run();
    for (std::size_t i = 0; i < found.count; ++i)
        for (std::size_t k = 0; k < 3; ++k)
            if (found.kernels[i].block[k] < 1 || found.kernels[i].grid[k] < 1) return {{}};
    return found;
}}

// The configuration to launch for a problem on a device, by its name.
constexpr std::optional<answer> recommend(std::string_view device, const problem &asked) {{
    if (!can_run(asked)) return std::nullopt;
    int number = -1;
    for (std::size_t i = 0; i < sizeof(detail::devices) / sizeof(detail::devices[0]); ++i)
        if (number < 0 && detail::devices[i].name == device) number = detail::devices[i].device;
    double least = std::numeric_limits<double>::infinity();
    answer best = default_answer;
    for (const auto &entry : detail::entries) {{
        if (entry.device != number) continue;
        const double far = detail::distance(asked, entry.asked);
        if (far < least) {{
            least = far;
            best = entry.found;
            best.answered_for = entry.asked;
        }}
    }}
    if (!(least < std::numeric_limits<double>::infinity())) {{
        detail::formulas usual{{asked, {_values(table.neutral)}}};
        if (usual.take_usual()) return answer{{usual.chosen, 0, 0, "usual", asked}};
    }}
    // The time of another size is none of this one.
    if (least > 1 && least < std::numeric_limits<double>::infinity()) {{
        best.time_ms = best.gain = 0;
        best.basis = "nearest";
    }}
    return best;
}}
"""


def _measured(table: AnswerTable) -> str:
    lines = (f"{one.name}: {one.measured}" for one in table.devices)
    return "".join(f"//   {cpp_comment(line)}\n" for line in lines)


def _names(table: AnswerTable) -> Iterator[str]:
    for number, device in enumerate(table.devices):
        for name in device.names:
            yield f"{{{cpp_text(name)}, {number}}}"


def _members(table: AnswerTable, names: Sequence[str]) -> str:
    kinds = {True: "std::string_view", False: "std::int64_t"}
    return "".join(f"    {kinds[name in table.texts]} {cpp_name(name)};\n" for name in names)


def _distances(table: AnswerTable) -> str:
    lines = []
    for name in table.parameters:
        member = cpp_name(name)
        if name in table.texts:
            lines.append(
                f"    if (one.{member} != other.{member}) "
                "return std::numeric_limits<double>::infinity();\n"
            )
        else:
            lines.append(f"    found *= ratio(one.{member}, other.{member});\n")
    return "".join(lines)


def _conditions(table: AnswerTable) -> str:
    members = {name: f"asked.{cpp_name(name)}" for name in table.parameters}
    found = []
    for one in table.limits.ranges:
        own = members[one.parameter]
        if one.values is not None:
            listed = (cpp_text(each) if isinstance(each, str) else str(each) for each in one.values)
            found.append(f"({' || '.join(f'{own} == {each}' for each in listed)})")
        if one.minimum is not None:
            found.append(f"{own} >= {one.minimum}")
        if one.maximum is not None:
            found.append(f"{own} <= {one.maximum}")
    found += [cpp_expression(text, members, cpp_text) for text in table.limits.conditions]
    return "".join(f"\n        && {each}" for each in found)


def _entry(entry: Entry) -> str:
    time, gain = (0 if value is None else value for value in (entry.time_ms, entry.gain))
    found = f"{{{_values(entry.configuration)}, {time!r}, {gain!r}, {cpp_text(entry.basis)}, {{}}}}"
    return f"{{{entry.device}, {_values(entry.problem)}, {found}}}"


def _values(values: Sequence[Value]) -> str:
    return (
        "{"
        + ", ".join(cpp_text(each) if isinstance(each, str) else str(each) for each in values)
        + "}"
    )


def _lines(lines: object) -> str:
    return "".join(f"    {line},\n" for line in lines)  # type: ignore[attr-defined]


def _example(table: AnswerTable) -> str:
    return ", ".join(cpp_name(name) for name in table.parameters)
