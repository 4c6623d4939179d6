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
