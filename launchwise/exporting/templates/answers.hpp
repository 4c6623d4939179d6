// {{ table.title | comment }}: what to launch, by device and problem.
// Written by launchwise export {{ table.version | comment }}; measured at commit {{ table.commits | join(", ") | comment or "unknown" }}.
{% for device in table.devices %}
//   {{ (device.name ~ ": " ~ device.measured) | comment }}
{% endfor %}
//
//   auto answer = launchwise::{{ table.study | name }}::recommend(device_name, {{ "{" }}{{ table.parameters | map("name") | join(", ") }}});
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

namespace launchwise::{{ table.study | name }} {

struct problem {
{% for name in table.parameters %}
    {{ "std::string_view" if name in table.texts else "std::int64_t" }} {{ name | name }};
{% endfor %}
};

struct configuration {
{% for name in table.tunables %}
    {{ "std::string_view" if name in table.texts else "std::int64_t" }} {{ name | name }};
{% endfor %}
};

struct answer {
    configuration launch;
    double time_ms;           // measured or expected; 0 where unknown
    double gain;              // usual time / this time; 0 where unknown
    std::string_view basis;   // measured, within, beyond, new_gpu, nearest, usual or default
    problem answered_for;     // whose configuration this is
};

struct kernel_launch {
    std::string_view kernel;                   // empty: the main one of host code, others may run
    std::int64_t block[3];                     // threads per block in x, y, z
    std::int64_t grid[3];                      // blocks per grid in x, y, z
    std::optional<std::int64_t> shared_bytes;  // dynamic, per block; empty where host code decides
};

struct launches {
    std::size_t count;  // 0 where host code decides
    kernel_launch kernels[{{ most_kernels }}];
};

namespace detail {
struct entry {
    int device;
    problem asked;
    answer found;
};

struct name_of_device {
    std::string_view name;
    int device;
};

inline constexpr name_of_device devices[] = {
{% for device in table.devices %}
{% set number = loop.index0 %}
{% for name in device.names %}
    {{ "{" }}{{ name | text }}, {{ number }}},
{% endfor %}
{% endfor %}
};

inline constexpr entry entries[] = {
{% for each in table.entries %}
    {{ "{" }}{{ each.device }}, {{ each.problem | values }}, {{ "{" }}{{ each.configuration | values }}, {{ each.time_ms | number }}, {{ each.gain | number }}, {{ each.basis | text }}, {}}},
{% endfor %}
};

constexpr double ratio(std::int64_t one, std::int64_t other) {
    const double high = static_cast<double>(one > other ? one : other) + 1;
    const double low = static_cast<double>(one > other ? other : one) + 1;
    return high / low;
}

constexpr double distance(const problem &one, const problem &other) {
    double found = 1;
{% for name in table.parameters | map("name") %}
{% if table.parameters[loop.index0] in table.texts %}
    if (one.{{ name }} != other.{{ name }}) return std::numeric_limits<double>::infinity();
{% else %}
    found *= ratio(one.{{ name }}, other.{{ name }});
{% endif %}
{% endfor %}
    return found;
}

{% include "integers.hpp" %}

// A problem and a configuration, and what follows from them.
struct formulas {
    problem asked;
    configuration chosen;
{% for name, text in table.formulas.derived %}
    constexpr {{ "std::string_view" if table.formulas.kinds[name] == "text" else "std::int64_t" }} derived_{{ name | name }}() const {
        return {{ formula(text) }};
    }
{% endfor %}

    // Writes the usual choice into chosen; false where there is none.
    constexpr bool take_usual() {
{% for rule in table.formulas.usual %}
        if ({{ formula(rule.when) }}) {
{% for name, text in rule.configuration %}
            {{ formula(name) }} = {{ formula(text) }};
{% endfor %}
            return true{% for text in rule.conditions %}

                && {{ formula(text) }}{% endfor %};
        }
{% endfor %}
        return false;
    }

    constexpr launches run() const {
{% for variant, kernels in table.formulas.launches.items() %}
        if ({{ formula("variant") }} == {{ variant | text }})
            return {{ "{" }}{{ kernels | length }}, {{ "{" }}{% for one in kernels %}{{ ", " if not loop.first }}{{ "{" }}{{ one.kernel | text }}, {{ "{" }}{{ one.block | map("formula") | join(", ") }}}, {{ "{" }}{{ one.grid | map("formula") | join(", ") }}}, {{ "std::nullopt" if one.shared_bytes is none else formula(one.shared_bytes) }}}{% endfor %}}};
{% endfor %}
        return {};
    }
};
}  // namespace detail

// Whether some configuration may run a problem, by its ranges and constraints.
constexpr bool can_run([[maybe_unused]] const problem &asked) {
    return true{% for each in conditions %}

        && {{ each }}{% endfor %};
}

inline constexpr answer default_answer{{ "{" }}{{ table.default | values }}, 0, 0, "default", {}};

// Blocks, grids and dynamic shared memory of the kernels that a configuration launches.
constexpr launches launches_of(const problem &asked, const configuration &chosen) {
    const launches found = detail::formulas{asked, chosen}.run();
    for (std::size_t i = 0; i < found.count; ++i)
        for (std::size_t k = 0; k < 3; ++k)
            if (found.kernels[i].block[k] < 1 || found.kernels[i].grid[k] < 1) return {};
    return found;
}

// The configuration to launch for a problem on a device, by its name.
constexpr std::optional<answer> recommend(std::string_view device, const problem &asked) {
    if (!can_run(asked)) return std::nullopt;
    int number = -1;
    for (std::size_t i = 0; i < sizeof(detail::devices) / sizeof(detail::devices[0]); ++i)
        if (number < 0 && detail::devices[i].name == device) number = detail::devices[i].device;
    double least = std::numeric_limits<double>::infinity();
    answer best = default_answer;
    for (const auto &entry : detail::entries) {
        if (entry.device != number) continue;
        const double far = detail::distance(asked, entry.asked);
        if (far < least) {
            least = far;
            best = entry.found;
            best.answered_for = entry.asked;
        }
    }
    if (!(least < std::numeric_limits<double>::infinity())) {
        detail::formulas usual{asked, {{ table.neutral | values }}};
        if (usual.take_usual()) return answer{usual.chosen, 0, 0, "usual", asked};
    }
    // The time of another size is none of this one.
    if (least > 1 && least < std::numeric_limits<double>::infinity()) {
        best.time_ms = best.gain = 0;
        best.basis = "nearest";
    }
    return best;
}

}  // namespace launchwise::{{ table.study | name }}
