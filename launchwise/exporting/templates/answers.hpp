// {{ table.spec.title | comment }}: what to launch, by device and problem.
// Written by launchwise export {{ table.version | comment }}; measured at commit {{ table.stored.commits | join(", ") | comment or "unknown" }}.
{% for device in table.devices %}
//   {{ (device.name ~ ": " ~ device.measured) | comment }}
{% endfor %}
//
//   auto answer = launchwise::{{ table.study | name }}::recommend(device_name, {{ "{" }}{{ table.parameters | map("name") | join(", ") }}});
//
// Empty for a problem that no configuration may run: see can_run.
// {{ "The same answer as launchwise recommend and the report give." if table.launches_usual else "The best of this file's configurations, the answer of launchwise recommend where it is one." }} A problem that is not listed has the
// configuration that {{ "the model is expected to choose" if table.launches_usual else "is expected to be the best of these" }} and, within what was measured, the time of the
// entry nearest in size scaled to it (answered_for is its problem), and 90 % limits; outside says how
// far it lies from that. An unknown device has {{ 'the choice of an experienced engineer ("usual"), else' if table.launches_usual else "the first of this file's configurations that may run," }}
// the default. Where a GPU without measurements has a time without limits, {{ table.no_limits | comment }}.
// launches_of says how it is launched.
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
    std::string_view basis;   // measured, within, beyond, new_gpu, usual or default
    problem answered_for;     // whose time this is
    double time_low_ms, time_high_ms, gain_low, gain_high;  // limits; 0 where unknown
    double outside;           // how far outside of what was measured, 1 within; 0: no such texts
};

// A std::string_view of a kernel, of a template with its arguments.
struct kernel_name {
    char text[{{ longest_name }}];
    std::size_t size;
    constexpr operator std::string_view() const { return {text, size}; }
};

struct kernel_launch {
    kernel_name kernel;                        // empty: that of host code
    std::int64_t block[3];                     // threads per block in x, y, z
    std::int64_t grid[3];                      // blocks per grid in x, y, z
    std::optional<std::int64_t> shared_bytes;  // dynamic, per block; empty where Triton decides
};

struct launches {
    std::size_t count;  // 0 where host code decides
    kernel_launch kernels[{{ most_kernels }}];
};

namespace detail {
struct entry {
    int device;
    problem asked;
    int choice, usual;  // places of configurations
    double time_ms, gain;
    std::string_view basis;
    double time_low_ms, time_high_ms, gain_low, gain_high;
    int scale;  // by which work its time is scaled; 0: by none
};

struct facts_of_device {
{% for name in facts %}
    std::int64_t {{ name }};
{% endfor %}
    bool judged;
    // Limits of what is stated between entries, as factors; 0 where unknown.
    double time_low, time_high, gain_low, gain_high;
    double reach;  // usual distance of a measured problem to the nearest; 0 where unknown
};

struct node {
    int feature;  // -1: a leaf
    double threshold;
    int left, right;
    double value;
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

inline constexpr facts_of_device facts_of[] = {
{% for device in table.devices %}
    {{ "{" }}{{ device.facts | join(", ") }}, {{ "true" if device.judge else "false" }}, {{ (device.between_ms or (0, 0)) | join(", ") }}, {{ (device.between_gain or (0, 0)) | join(", ") }}, {{ device.reach or 0 }}},
{% endfor %}
};

inline constexpr configuration configurations[] = {
{% for each in table.configurations %}
    {{ each | values }},
{% endfor %}
};

// Configurations that are judged where no entry answers.
inline constexpr int candidates[] = {{ "{" }}{{ (table.stored.candidates or (-1,)) | join(", ") }}};

{% for device in table.devices if device.judge %}
inline constexpr node trees_of_{{ table.number(device.name) }}[] = {
{% set judge = device.judge %}
{% for n in range(judge.feature | length) %}
    {{ "{" }}{{ judge.feature[n] }}, {{ judge.threshold[n] }}, {{ judge.left[n] }}, {{ judge.right[n] }}, {{ judge.value[n] }}},
{% endfor %}
};
inline constexpr int roots_of_{{ table.number(device.name) }}[] = {{ "{" }}{{ device.judge.starts | join(", ") }}};

{% endfor %}
inline constexpr entry entries[] = {
{% for each in table.entries %}
    {{ "{" }}{{ each.device }}, {{ each.problem | values }}, {{ each.choice }}, {{ each.usual }}, {{ each.time_ms | number }}, {{ each.gain | number }}, {{ each.basis | text }}, {{ (each.interval_ms or (0, 0)) | join(", ") }}, {{ (each.gain_interval or (0, 0)) | join(", ") }}, {{ each.scale }}},
{% endfor %}
};

constexpr double ratio(std::int64_t one, std::int64_t other) {
    const double high = static_cast<double>(one > other ? one : other) + 1;
    const double low = static_cast<double>(one > other ? other : one) + 1;
    return low >= 1 ? high / low : high - low + 1;
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

// The problem's part of how far it lies outside of [low, high].
constexpr double beyond(std::int64_t value, std::int64_t low, std::int64_t high) {
    return ratio(value, value < low ? low : value > high ? high : value);
}

// e to a power by products alone: the same in every language.
constexpr double growth(double exponent) {
    double found = 1 + exponent / {{ 2 ** squarings }};
    for (int i = 0; i < {{ squarings }}; ++i) found *= found;
    return found;
}

constexpr bool same(const configuration &one, const configuration &other) {
    return true{% for name in table.tunables | map("name") %}

        && one.{{ name }} == other.{{ name }}{% endfor %};
}

constexpr void add(kernel_name &name, std::string_view part) {
    for (const char each : part) name.text[name.size++] = each;
}

constexpr void add(kernel_name &name, std::int64_t value) {
    if (value < 0) add(name, "-");
    if (value / 10 != 0) add(name, absolute(value / 10));
    name.text[name.size++] = static_cast<char>('0' + absolute(value % 10));
}

template <class... Parts> constexpr kernel_name named(const Parts &...parts) {
    kernel_name found{};
    (add(found, parts), ...);
    return found;
}

// A problem, a configuration and a GPU, and what follows from them.
struct formulas {
    problem asked;
    configuration chosen;
    facts_of_device gpu;
{% for name, text in table.formulas.derived %}
    constexpr {{ "std::string_view" if kinds[name] == "text" else "std::int64_t" }} derived_{{ name | name }}() const {
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

    // Writes what follows from the problem into chosen; false where it may not run.
    constexpr bool move() {
{% for name, text in table.formulas.follows %}
        {{ formula(name) }} = {{ formula(text) }};
{% endfor %}
{% for variant, texts in table.formulas.fits.items() if texts %}
        if ({{ formula("variant") }} == {{ variant | text }})
            return true{% for text in texts %}

                && {{ formula(text) }}{% endfor %};
{% endfor %}
        return true;
    }

    // Work by which a time is scaled.
    constexpr double work([[maybe_unused]] int scale) const {
{% for text in table.formulas.work %}
        if (scale == {{ loop.index }}) return static_cast<double>({{ formula(text) }});
{% endfor %}
        return 1;
    }

    constexpr double feature([[maybe_unused]] int number) const {
        double over = 1, under = 1;
        switch (number) {
{% for over, under in table.stored.features %}
            case {{ loop.index0 }}: over = static_cast<double>({{ formula(over) }});{% if under != "1" %} under = static_cast<double>({{ formula(under) }});{% endif %} break;
{% endfor %}
        }
        return over / (under == 0 ? 1 : under);
    }

    // Log time over that of the best candidate, as the device's trees expect it.
    constexpr double loss([[maybe_unused]] int device) const {
        [[maybe_unused]] double values[{{ [1, table.stored.features | length] | max }}] = {};
        for (int i = 0; i < {{ table.stored.features | length }}; ++i) values[i] = feature(i);
{% for device in table.devices if device.judge %}
        if (device == {{ table.number(device.name) }}) return sum(trees_of_{{ table.number(device.name) }}, roots_of_{{ table.number(device.name) }}, values);
{% endfor %}
        return 0;
    }

    template <std::size_t nodes, std::size_t trees>
    static constexpr double sum(const node (&all)[nodes], const int (&roots)[trees], const double *values) {
        double found = 0;
        for (const int root : roots) {
            int at = root;
            while (all[at].feature >= 0)
                at = values[all[at].feature] <= all[at].threshold ? all[at].left : all[at].right;
            found += all[at].value;
        }
        return found;
    }

    constexpr launches run() const {
{% for variant, kernels in table.formulas.launches.items() %}
        if ({{ formula("variant") }} == {{ variant | text }})
            return {{ "{" }}{{ kernels | length }}, {{ "{" }}{% for one in kernels %}{{ ", " if not loop.first }}{{ "{" }}named(std::string_view({{ one.kernel | text }}){% for each in one.arguments %}, std::string_view("{{ ", " if not loop.first else "<" }}"), {{ formula(each) }}{{ ', std::string_view(">")' if loop.last }}{% endfor %}), {{ "{" }}{{ one.block | map("formula") | join(", ") }}}, {{ "{" }}{{ one.grid | map("formula") | join(", ") }}}, {{ "std::nullopt" if one.shared_bytes is none else formula(one.shared_bytes) }}}{% endfor %}}};
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

inline constexpr answer default_answer{{ "{" }}{{ table.default | values }}, 0, 0, "default", {}, 0, 0, 0, 0, 1};

// Blocks, grids and dynamic shared memory of the kernels that a configuration launches.
constexpr launches launches_of(const problem &asked, const configuration &chosen) {
    const launches found = detail::formulas{asked, chosen, {}}.run();
    for (std::size_t i = 0; i < found.count; ++i)
        for (std::size_t k = 0; k < 3; ++k)
            if (found.kernels[i].block[k] < 1 || found.kernels[i].grid[k] < 1) return {};
    return found;
}

namespace detail {
// How far outside of what the device of an entry with the same texts measured.
constexpr double outside(const problem &asked, const entry &near) {
    bool any = false;
    double found = 1, nearest = 0;
    [[maybe_unused]] problem low = asked, high = asked;
    for (const auto &entry : entries) {
        const double far = distance(asked, entry.asked);
        const bool known = entry.device == near.device && (entry.basis == "measured" || entry.basis == "new_gpu");
        if (!known || !(far < std::numeric_limits<double>::infinity())) continue;
        nearest = any && nearest < far ? nearest : far;
{% for name in table.parameters if name not in table.texts %}
        low.{{ name | name }} = any && low.{{ name | name }} < entry.asked.{{ name | name }} ? low.{{ name | name }} : entry.asked.{{ name | name }};
        high.{{ name | name }} = any && high.{{ name | name }} > entry.asked.{{ name | name }} ? high.{{ name | name }} : entry.asked.{{ name | name }};
{% endfor %}
        any = true;
    }
    if (!any) return 0;
{% for name in table.parameters if name not in table.texts %}
    found *= beyond(asked.{{ name | name }}, low.{{ name | name }}, high.{{ name | name }});
{% endfor %}
    const double reach = facts_of[near.device].reach;
    return reach > 0 && nearest / reach > found ? nearest / reach : found;
}

constexpr answer listed(const problem &asked, const entry &one) {
    return {configurations[one.choice], one.time_ms, one.gain, one.basis, one.asked, one.time_low_ms, one.time_high_ms, one.gain_low, one.gain_high, outside(asked, one)};
}

// The answer for a problem that no entry is of; near is the nearest entry that has a time.
constexpr std::optional<answer> between(const problem &asked, const entry &near) {
    const facts_of_device &gpu = facts_of[near.device];
    formulas usual{asked, {{ table.neutral | values }}, gpu};
    bool has_usual = usual.take_usual(), found = false;
    configuration chosen{};
    double least = std::numeric_limits<double>::infinity();
    if (gpu.judged) {
        if ({{ "has_usual" if table.launches_usual else "false" }}) {
            chosen = usual.chosen;
            least = usual.loss(near.device);
            found = true;
        }
        for (const int place : candidates) {
            formulas one{asked, configurations[place], gpu};
            if (!one.move()) continue;
            const double loss = one.loss(near.device);
            if (found && !(loss < least)) continue;
            chosen = one.chosen;
            least = loss;
            found = true;
        }
    } else {
        for (const auto &entry : entries) {
            if (entry.device != near.device) continue;
            const double far = distance(asked, entry.asked);
            formulas one{asked, configurations[entry.choice], gpu};
            if (!(far < least) || !one.move()) continue;
            chosen = one.chosen;
            least = far;
            found = true;
        }
    }
    if (!found) return std::nullopt;
    configuration kept = usual.chosen;
    if (!has_usual) {
        kept = usual.chosen = configurations[near.usual];
        has_usual = usual.move();
        if (has_usual) kept = usual.chosen;
    }
    const bool is_usual = has_usual && same(chosen, usual.chosen);
    double gain = is_usual ? 1 : 0;
    if (gpu.judged && has_usual) gain = growth(usual.loss(near.device) - least);
    const double far = outside(asked, near);
    const formulas here{asked, {}, gpu}, there{near.asked, {}, gpu};
    const double time = near.time_ms > 0 && far == 1 ? near.time_ms * (here.work(near.scale) / there.work(near.scale)) : 0;
    const std::string_view basis = near.basis == "new_gpu" ? near.basis : far == 1 ? std::string_view("within") : std::string_view("beyond");
    const bool sure = !is_usual && gain > 0 && far == 1;
{% if table.stored.least_gain is not none %}
    // No gain that the settings require is sure.
    if (!is_usual && !(sure && gain * gpu.gain_low >= {{ table.stored.least_gain }}))
        return answer{kept, time * gain, 1, basis, near.asked, 0, 0, 0, 0, far};
{% endif %}
    return answer{chosen, time, gain, basis, near.asked, time * gpu.time_low, time * gpu.time_high, sure ? gain * gpu.gain_low : 0, sure ? gain * gpu.gain_high : 0, far};
}
}  // namespace detail

// The configuration to launch for a problem on a device, by its name.
constexpr std::optional<answer> recommend(std::string_view device, const problem &asked) {
    if (!can_run(asked)) return std::nullopt;
    int number = -1;
    for (std::size_t i = 0; i < sizeof(detail::devices) / sizeof(detail::devices[0]); ++i)
        if (number < 0 && detail::devices[i].name == device) number = detail::devices[i].device;
    double least = std::numeric_limits<double>::infinity(), least_timed = least;
    const detail::entry *near = nullptr, *timed = nullptr;
    for (const auto &entry : detail::entries) {
        if (entry.device != number) continue;
        const double far = detail::distance(asked, entry.asked);
        if (far < least) {
            least = far;
            near = &entry;
        }
        if (!(far < least_timed) || !(entry.time_ms > 0)) continue;
        least_timed = far;
        timed = &entry;
    }
    if (near && least == 1) return detail::listed(asked, *near);
    if (near)
        if (const auto found = detail::between(asked, timed ? *timed : *near)) return found;
    detail::formulas usual{asked, {{ table.neutral | values }}, {}};
    if ({{ "usual.take_usual()" if table.launches_usual else "false" }}) return answer{usual.chosen, 0, 0, "usual", asked, 0, 0, 0, 0, 1};
{% if not table.launches_usual %}
    // Of an unknown device facts are those of the first one.
    for (const int place : detail::candidates) {
        detail::formulas one{asked, detail::configurations[place], detail::facts_of[number < 0 ? 0 : number]};
        if (one.move()) return answer{one.chosen, 0, 0, "default", asked, 0, 0, 0, 0, 1};
    }
{% endif %}
    answer found = default_answer;
    found.answered_for = asked;
    return found;
}

}  // namespace launchwise::{{ table.study | name }}
