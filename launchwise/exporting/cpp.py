"""A table of answers as a header of C++17, without anything beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from launchwise.exporting.conditions import cpp_condition
from launchwise.exporting.table import AnswerTable, Entry
from launchwise.workloads.parts import Value

KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
    class compl const constexpr const_cast continue decltype default delete do double dynamic_cast
    else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename union unsigned using virtual
    void volatile wchar_t while xor xor_eq
    """.split()  # noqa: SIM905 (a list of 90 lines is harder to read)
)


def cpp_name(name: str) -> str:
    """A name that C++ allows."""
    found = re.sub(r"\W", "_", name)
    found = f"_{found}" if found[:1].isdigit() else found
    return f"{found}_" if found in KEYWORDS else found


def cpp_header(table: AnswerTable) -> str:
    """The header: ``launchwise::<study>::recommend(device, problem)``."""
    space = cpp_name(table.study)
    commits = _comment(", ".join(table.commits)) or "unknown"
    return f"""\
// {_comment(table.title)}: what to launch, by device and problem.
// Written by launchwise export; measured at commit {commits}.
//
//   auto answer = launchwise::{space}::recommend(device_name, {{{_example(table)}}});
//
// Empty for a problem that no configuration may run: see can_run.
// A size that is not listed has the configuration of the entry nearest in size, and no time: its
// basis is "nearest", answered_for the problem of that entry. An unknown device has the default.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace launchwise::{space} {{

struct problem {{
{_members(table, table.parameters)}}};

struct configuration {{
{_members(table, table.tunables)}}};

struct answer {{
    configuration launch;
    double time_ms;           // measured or expected; 0 where unknown
    double gain;              // usual time / this time; 0 where unknown
    std::string_view basis;   // measured, within, beyond, new_gpu, nearest or default
    problem answered_for;     // whose configuration this is
}};

namespace detail {{
struct entry {{
    int device;
    problem asked;
    answer found;
}};

inline constexpr std::string_view devices[][2] = {{
{_lines(f"{{{_text(name)}, {_text(device)}}}" for name, device in table.devices)}}};

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
// Rounded down, as the workload's expressions are.
constexpr std::int64_t quotient(std::int64_t above, std::int64_t below) {{
    return above / below - (above % below != 0 && (above < 0) != (below < 0));
}}

constexpr std::int64_t remainder(std::int64_t above, std::int64_t below) {{
    return above - quotient(above, below) * below;
}}
}}  // namespace detail

// Whether some configuration may run a problem, by its ranges and constraints.
constexpr bool can_run([[maybe_unused]] const problem &asked) {{
    return true{_conditions(table)};
}}

inline constexpr answer default_answer{{{_values(table.default)}, 0, 0, "default", {{}}}};

// The configuration to launch for a problem on a device, by its name.
constexpr std::optional<answer> recommend(std::string_view device, const problem &asked) {{
    if (!can_run(asked)) return std::nullopt;
    int number = -1;
    for (std::size_t i = 0; i < sizeof(detail::devices) / sizeof(detail::devices[0]); ++i)
        if (number < 0 && (detail::devices[i][0] == device || detail::devices[i][1] == device))
            number = static_cast<int>(i);
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
    // The time of another size is none of this one.
    if (least > 1 && least < std::numeric_limits<double>::infinity()) {{
        best.time_ms = best.gain = 0;
        best.basis = "nearest";
    }}
    return best;
}}

}}  // namespace launchwise::{space}
"""


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
            listed = (_text(each) if isinstance(each, str) else str(each) for each in one.values)
            found.append(f"({' || '.join(f'{own} == {each}' for each in listed)})")
        if one.minimum is not None:
            found.append(f"{own} >= {one.minimum}")
        if one.maximum is not None:
            found.append(f"{own} <= {one.maximum}")
    found += [cpp_condition(text, members, _text) for text in table.limits.conditions]
    return "".join(f"\n        && {each}" for each in found)


def _entry(entry: Entry) -> str:
    time, gain = (0 if value is None else value for value in (entry.time_ms, entry.gain))
    found = f"{{{_values(entry.configuration)}, {time!r}, {gain!r}, {_text(entry.basis)}, {{}}}}"
    return f"{{{entry.device}, {_values(entry.problem)}, {found}}}"


def _values(values: Sequence[Value]) -> str:
    return (
        "{"
        + ", ".join(_text(each) if isinstance(each, str) else str(each) for each in values)
        + "}"
    )


def _text(text: str) -> str:
    """A literal of C++: what is no plain character is written byte by byte."""
    return f'"{"".join(map(_character, text.encode()))}"'


def _character(byte: int) -> str:
    plain = chr(byte)
    return plain if 32 <= byte < 127 and plain not in '"\\?' else f"\\{byte:03o}"


def _lines(lines: object) -> str:
    return "".join(f"    {line},\n" for line in lines)  # type: ignore[attr-defined]


def _comment(text: str) -> str:
    """A text that ends no comment of a line and hides nothing."""
    return "".join(each if each.isprintable() else " " for each in text).replace("\\", "/")


def _example(table: AnswerTable) -> str:
    return ", ".join(cpp_name(name) for name in table.parameters)
